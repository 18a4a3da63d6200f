// SPDX-License-Identifier: GPL-2.0
/*
 * What `cat` reads: counters in /sys/class/misc/ib_gift and the list of live
 * regions in /sys/kernel/debug/ib_gift. Counts nothing itself.
 */
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sysfs.h>

#include "gift.h"

struct gift_attr {
	struct device_attribute attr;
	enum ib_gift_page_kind kind;
};

static ssize_t pages_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	struct gift_attr *ga = container_of(attr, struct gift_attr, attr);

	return sysfs_emit(buf, "%llu\n", gift_count_pages(ga->kind));
}

#define PAGES_ATTR(_name, _kind)				\
	{							\
		.attr = __ATTR(_name, 0444, pages_show, NULL),	\
		.kind = IB_GIFT_PAGE_##_kind,			\
	}

static struct gift_attr pages_pinned = PAGES_ATTR(pages_pinned, PINNED);
static struct gift_attr pages_held_zero = PAGES_ATTR(pages_held_zero, ZERO);
static struct gift_attr pages_held_huge_zero =
	PAGES_ATTR(pages_held_huge_zero, HUGE_ZERO);
static struct gift_attr pages_held_ksm = PAGES_ATTR(pages_held_ksm, KSM);
static struct gift_attr pages_held_shared =
	PAGES_ATTR(pages_held_shared, SHARED);
static struct gift_attr pages_held_file = PAGES_ATTR(pages_held_file, FILE);

static ssize_t regions_show(struct device *dev, struct device_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%llu\n", gift_count_regions());
}
static DEVICE_ATTR_RO(regions);

static ssize_t refreshes_show(struct device *dev, struct device_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "%llu\n", gift_count_refreshes());
}
static DEVICE_ATTR_RO(refreshes);

static ssize_t pages_retaken_show(struct device *dev,
				  struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", gift_count_retaken());
}
static DEVICE_ATTR_RO(pages_retaken);

static ssize_t bytes_not_copied_show(struct device *dev,
				     struct device_attribute *attr, char *buf)
{
	u64 held = 0;
	int kind;

	for (kind = 0; kind < IB_GIFT_PAGE_KINDS; kind++)
		if (kind != IB_GIFT_PAGE_PINNED)
			held += gift_count_pages(kind);
	return sysfs_emit(buf, "%llu\n", held << PAGE_SHIFT);
}
static DEVICE_ATTR_RO(bytes_not_copied);

static struct attribute *gift_attrs[] = {
	&dev_attr_regions.attr,
	&dev_attr_bytes_not_copied.attr,
	&dev_attr_refreshes.attr,
	&dev_attr_pages_retaken.attr,
	&pages_pinned.attr.attr,
	&pages_held_zero.attr.attr,
	&pages_held_huge_zero.attr.attr,
	&pages_held_ksm.attr.attr,
	&pages_held_shared.attr.attr,
	&pages_held_file.attr.attr,
	NULL,
};

static const struct attribute_group gift_attr_group = {
	.attrs = gift_attrs,
};

const struct attribute_group *gift_attr_groups[] = {
	&gift_attr_group,
	NULL,
};

DEFINE_SHOW_ATTRIBUTE(gift_regions);

static struct dentry *gift_debugfs;

/**
 * gift_debugfs_init() - make what can be seen in debugfs
 */
void gift_debugfs_init(void)
{
	gift_debugfs = debugfs_create_dir("ib_gift", NULL);
	debugfs_create_file("regions", 0400, gift_debugfs, NULL,
			    &gift_regions_fops);
}

/**
 * gift_debugfs_exit() - undo gift_debugfs_init()
 */
void gift_debugfs_exit(void)
{
	debugfs_remove_recursive(gift_debugfs);
}
