// SPDX-License-Identifier: GPL-2.0
/*
 * every_driver: makes unchanged drivers honour GIFT. Calls of ib_umem_get() and
 * ib_umem_release(), which live in ib_uverbs, are redirected here by ftrace; every
 * call that is not about a gift region goes on untouched. Owns the two hooks, the
 * parameter that switches them, and the order in which that is done. Never says
 * which drivers are fit for it (devices.c), never takes a page (umem.c).
 *
 * What must never happen is that a gift region is released by ib_umem_release()
 * itself, or that code of this module runs after it is gone. Hence:
 *
 * - A hooked call is counted in users before it leaves the hook: get_hook() runs
 *   until ftrace lets go of the hook. The count stays for as long as the call is
 *   under way and, if it succeeds, until its region has been released. So users
 *   covers a region from before it exists, whether it can be found yet or not.
 *   Each of them has a reference of the module as well.
 * - On: release is hooked first, then get, then users goes from 0 to 1, which lets
 *   calls in. When the second hook fails, the first has seen no gift region.
 * - Off: users goes from 1 to 0 in one step, or, when there are any, stays and
 *   the answer is EBUSY. From then on nothing comes in, and nothing is left that
 *   the release hook would have to catch; so the hooks go, get first.
 * - Unloading: with a reference, there is none. Without, the state of the module
 *   lets no call take another, so users is 1 and the switch cannot be refused.
 *   After unregister_ftrace_function() no hook runs; synchronize_rcu_tasks() then
 *   waits for those that have given up their reference and are on their last
 *   instructions here, since they do not sleep between the two.
 * - ib_uverbs cannot go before this module, which uses its symbols, and PERMANENT
 *   hooks make the kernel refuse to switch ftrace off.
 * - IPMODIFY belongs to one user of a function at a time. A live patch of one of
 *   the two and every_driver exclude each other, whichever comes first.
 * - The module itself calls the functions only without the flag and for what is no
 *   gift region, so its calls need not be told from others. The hooks call neither
 *   and need no protection against recursion, which could pass over a release.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sysfs.h>

#include "../compat.h"
#include "gift.h"

/* 0: off; 1: on; one more for each hooked call and each region from one. */
static atomic_t users;

/* Switching, and what follows. */
static DEFINE_MUTEX(every_lock);
/* What the parameter says; until the module is ready, what it is to become. */
static bool every_on;
static enum {
	EVERY_LOADING, EVERY_STARTING, EVERY_READY, EVERY_GONE
} every_stage;

/**
 * gift_every_put() - a region that a hooked call made is gone
 *
 * Context: any. The module may go after this: the caller returns without
 * sleeping and without looking at its data.
 */
void gift_every_put(void)
{
	atomic_dec(&users);
	module_put(THIS_MODULE);
}

#if COMPAT_CAN_REDIRECT

static bool user_get(void)
{
	if (!try_module_get(THIS_MODULE))
		return false;
	if (atomic_inc_not_zero(&users))
		return true;
	module_put(THIS_MODULE);
	return false;
}

/* What a driver's call of ib_umem_get() becomes, with user_get() done. */
static struct ib_umem *hooked_get(struct ib_device *device, unsigned long addr,
				  size_t size, int access)
{
	struct ib_umem *umem = ib_gift_umem_get(device, addr, size, access);

	if (IS_ERR(umem))
		gift_every_put();
	else
		container_of(umem, struct gift_umem, umem)->hooked = true;
	return umem;
}

static void notrace get_hook(unsigned long ip, unsigned long parent_ip,
			     struct ftrace_ops *ops, struct ftrace_regs *regs)
{
	struct ib_device *device = (void *)compat_ftrace_arg(regs, 0);
	int access = compat_ftrace_arg(regs, 3);

	if (likely(!(access & IB_ACCESS_GIFT)))
		return;
	if (gift_device_fit(device) && user_get())
		compat_ftrace_redirect(regs, hooked_get);
}

static void notrace release_hook(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *ops,
				 struct ftrace_regs *regs)
{
	struct ib_umem *umem = (void *)compat_ftrace_arg(regs, 0);

	if (unlikely(gift_is_region(umem)))
		compat_ftrace_redirect(regs, ib_gift_umem_release);
}

#define HOOK_FLAGS	(FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY | \
			 FTRACE_OPS_FL_PERMANENT)

/* In the order in which they are hooked. */
static struct hook {
	const char *name;
	void *func;
	struct ftrace_ops ops;
} hooks[] = {
	{
		.name = "ib_umem_release",
		.func = ib_umem_release,
		.ops = { .func = release_hook, .flags = HOOK_FLAGS },
	}, {
		.name = "ib_umem_get",
		.func = ib_umem_get,
		.ops = { .func = get_hook, .flags = HOOK_FLAGS },
	},
};

static int hook(struct hook *hook)
{
	unsigned long addr = (unsigned long)hook->func;
	int ret;

	ret = ftrace_set_filter_ip(&hook->ops, addr, 0, 0);
	if (ret)
		return ret;
	ret = register_ftrace_function(&hook->ops);
	if (ret)
		ftrace_set_filter_ip(&hook->ops, addr, 1, 0);
	return ret;
}

static void unhook(struct hook *hook)
{
	/* Fails only for what is not registered, or when ftrace has broken. */
	WARN_ON(unregister_ftrace_function(&hook->ops));
	ftrace_set_filter_ip(&hook->ops, (unsigned long)hook->func, 1, 0);
}

static void unhook_first(int nr)
{
	while (nr--)
		unhook(&hooks[nr]);
}

static int hook_all(void)
{
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		ret = hook(&hooks[i]);
		if (ret) {
			pr_err("every_driver: %s cannot be redirected, error %d%s\n",
			       hooks[i].name, ret, ret == -EBUSY ?
			       ": is it live-patched, or ftrace switched off?" :
			       "");
			unhook_first(i);
			return ret;
		}
	}
	return 0;
}

static void unhook_all(void)
{
	unhook_first(ARRAY_SIZE(hooks));
}

#else

static int hook_all(void)
{
	pr_err("every_driver: this kernel cannot redirect functions\n");
	return -EOPNOTSUPP;
}

static void unhook_all(void)
{
}

#endif

static int switch_on(void)
{
	int ret = hook_all();

	if (!ret)
		atomic_set(&users, 1);
	return ret;
}

static int switch_off(void)
{
	if (atomic_cmpxchg(&users, 1, 0) != 1)
		return -EBUSY;
	unhook_all();
	return 0;
}

static int every_set(const char *val, const struct kernel_param *kp)
{
	bool on = true;
	int ret = 0;

	if (val)
		ret = kstrtobool(val, &on);
	if (ret)
		return ret;
	mutex_lock(&every_lock);
	if (every_stage == EVERY_GONE)
		ret = -ENODEV;
	else if (every_stage == EVERY_STARTING)
		ret = -EBUSY;
	else if (every_stage == EVERY_READY && on != every_on)
		ret = on ? switch_on() : switch_off();
	if (!ret)
		every_on = on;
	mutex_unlock(&every_lock);
	return ret;
}

static int every_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%c\n", READ_ONCE(every_on) ? 'Y' : 'N');
}

static const struct kernel_param_ops every_ops = {
	.flags = KERNEL_PARAM_OPS_FL_NOARG,
	.set = every_set,
	.get = every_get,
};

module_param_cb(every_driver, &every_ops, NULL, 0644);
MODULE_PARM_DESC(every_driver,
		 "honour GIFT on unchanged drivers, by redirecting ib_umem_get (default: N)");

/**
 * gift_every_on() - are other drivers' calls redirected
 *
 * Return: that; it may change at any time.
 */
bool gift_every_on(void)
{
	return atomic_read(&users);
}

/**
 * gift_every_init() - do all that can fail of what the parameter says
 *
 * Context: before anything by which a process could get hold of the module, since
 * one whose init fails goes even if it is in use. Hooks what is to be hooked, and
 * lets no call in.
 * Return: 0 or a negative errno; then nothing is redirected.
 */
int gift_every_init(void)
{
	int ret = 0;

	mutex_lock(&every_lock);
	if (every_on)
		ret = hook_all();
	every_stage = ret ? EVERY_GONE : EVERY_STARTING;
	mutex_unlock(&every_lock);
	return ret;
}

/**
 * gift_every_start() - the module is ready: let calls in
 */
void gift_every_start(void)
{
	mutex_lock(&every_lock);
	if (every_on)
		atomic_set(&users, 1);
	every_stage = EVERY_READY;
	mutex_unlock(&every_lock);
}

/**
 * gift_every_cancel() - undo gift_every_init(), in the place of starting
 */
void gift_every_cancel(void)
{
	mutex_lock(&every_lock);
	if (every_on)
		unhook_all();
	every_stage = EVERY_GONE;
	mutex_unlock(&every_lock);
}

/**
 * gift_every_exit() - nothing is redirected any more
 *
 * Context: the module is going, and has no user.
 */
void gift_every_exit(void)
{
	mutex_lock(&every_lock);
	if (every_on)
		WARN_ON(switch_off());
	every_stage = EVERY_GONE;
	mutex_unlock(&every_lock);
	synchronize_rcu_tasks();
}
