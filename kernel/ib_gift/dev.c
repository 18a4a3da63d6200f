// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/ib_gift: answers any user about devices that it can see and about its
 * own memory. Changes nothing and says nothing about other processes.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "gift.h"

union gift_arg {
	struct ib_gift_query query;
	struct ib_gift_stats stats;
	struct ib_gift_stale stale;
};

static long query(union gift_arg *arg)
{
	struct ib_gift_query *q = &arg->query;
	u64 caps;
	int ret;

	if (q->comp_mask)
		return -EOPNOTSUPP;
	if (q->reserved)
		return -EINVAL;
	if (strnlen(q->device, sizeof(q->device)) == sizeof(q->device))
		return -EINVAL;
	ret = gift_device_caps(q->device, &caps);
	if (ret)
		return ret;
	q->caps = caps;
	q->abi_version = IB_GIFT_ABI_VERSION;
	return 0;
}

static long stats(union gift_arg *arg)
{
	struct ib_gift_stats *s = &arg->stats;

	if (s->comp_mask)
		return -EOPNOTSUPP;
	memset(s, 0, sizeof(*s));
	gift_regions_of(current->mm, s);
	return 0;
}

static long stale(union gift_arg *arg)
{
	if (arg->stale.comp_mask)
		return -EOPNOTSUPP;
	return gift_stale(current->mm, &arg->stale);
}

/* By ioctl number; size is that of version 1, which no caller is below. */
static const struct {
	long (*func)(union gift_arg *arg);
	size_t size;
} calls[] = {
	[_IOC_NR(IB_GIFT_IOC_QUERY)] = { query, sizeof(struct ib_gift_query) },
	[_IOC_NR(IB_GIFT_IOC_STATS)] = { stats, sizeof(struct ib_gift_stats) },
	[_IOC_NR(IB_GIFT_IOC_STALE)] = { stale, sizeof(struct ib_gift_stale) },
};

static long gift_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	void __user *user = (void __user *)uarg;
	unsigned int nr = _IOC_NR(cmd);
	size_t size = _IOC_SIZE(cmd);
	union gift_arg arg = {};
	long ret;

	if (_IOC_TYPE(cmd) != IB_GIFT_IOC_MAGIC || nr >= ARRAY_SIZE(calls) ||
	    _IOC_DIR(cmd) != (_IOC_READ | _IOC_WRITE))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(calls));
	if (size < calls[nr].size)
		return -EINVAL;
	ret = copy_struct_from_user(&arg, calls[nr].size, user, size);
	if (ret)
		return ret;
	ret = calls[nr].func(&arg);
	if (ret)
		return ret;
	return copy_to_user(user, &arg, calls[nr].size) ? -EFAULT : 0;
}

static const struct file_operations gift_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = gift_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice gift_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ib_gift",
	.mode = 0666,
	.fops = &gift_fops,
	.groups = gift_attr_groups,
};

/**
 * gift_dev_register() - make the device node and its counters
 *
 * Return: 0 or a negative errno.
 */
int gift_dev_register(void)
{
	return misc_register(&gift_misc);
}

/**
 * gift_dev_unregister() - undo gift_dev_register()
 */
void gift_dev_unregister(void)
{
	misc_deregister(&gift_misc);
}
