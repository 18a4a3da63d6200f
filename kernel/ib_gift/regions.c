// SPDX-License-Identifier: GPL-2.0
/*
 * The live gift regions: tells a gift umem from any other by its address, adds
 * up what all of them have, and lists them. Never changes a region.
 */
#include <linux/atomic.h>
#include <linux/device.h>
#include <linux/mutex.h>
#include <linux/xarray.h>

#include "gift.h"

/* Keyed by the address of struct ib_umem. */
static DEFINE_XARRAY_FLAGS(regions, XA_FLAGS_ACCOUNT);

/*
 * Whoever looks into a region that is not its own holds this; a region leaves
 * only with it held. Nothing else is locked while it is held, except what
 * reading or printing takes.
 */
static DEFINE_MUTEX(regions_lock);

static atomic64_t nr_regions;
static atomic64_t nr_pages[IB_GIFT_PAGE_KINDS];

/**
 * gift_region_add() - a region has come to life
 * @gift: the region, complete
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int gift_region_add(struct gift_umem *gift)
{
	int kind, ret;

	mutex_lock(&regions_lock);
	ret = xa_insert(&regions, (unsigned long)&gift->umem, gift,
			GFP_KERNEL_ACCOUNT);
	mutex_unlock(&regions_lock);
	if (ret)
		return ret;
	atomic64_inc(&nr_regions);
	for (kind = 0; kind < IB_GIFT_PAGE_KINDS; kind++)
		atomic64_add(gift->counts.pages[kind], &nr_pages[kind]);
	return 0;
}

/**
 * gift_region_remove() - a umem is about to be released
 * @umem: any umem, or NULL
 *
 * Context: may sleep, if @umem is a gift region.
 * Return: the region, which nobody else can find any more; NULL when @umem is
 * none.
 */
struct gift_umem *gift_region_remove(struct ib_umem *umem)
{
	struct gift_umem *gift;
	int kind;

	/* The caller owns the umem, so what this finds cannot go away. */
	if (!umem || !xa_load(&regions, (unsigned long)umem))
		return NULL;
	mutex_lock(&regions_lock);
	gift = xa_erase(&regions, (unsigned long)umem);
	mutex_unlock(&regions_lock);
	atomic64_dec(&nr_regions);
	for (kind = 0; kind < IB_GIFT_PAGE_KINDS; kind++)
		atomic64_sub(gift->counts.pages[kind], &nr_pages[kind]);
	return gift;
}

/**
 * gift_region_next() - go through the regions of a process
 * @mm: its memory
 * @index: 0 at first; where to go on
 *
 * Context: may sleep.
 * Return: the next, for gift_put(), or NULL. The driver may have released it
 * by the time it is looked at: its pages must not be touched then, and nobody
 * can tell.
 */
struct gift_umem *gift_region_next(struct mm_struct *mm, unsigned long *index)
{
	struct gift_umem *gift;

	mutex_lock(&regions_lock);
	for (gift = xa_find(&regions, index, ULONG_MAX, XA_PRESENT); gift;
	     gift = xa_find_after(&regions, index, ULONG_MAX, XA_PRESENT))
		if (gift->umem.owning_mm == mm)
			break;
	if (gift)
		kref_get(&gift->ref);
	mutex_unlock(&regions_lock);
	++*index;
	return gift;
}

/**
 * gift_regions_of() - add up the regions of a process
 * @mm: its memory
 * @stats: to fill in
 *
 * Context: may sleep.
 */
void gift_regions_of(struct mm_struct *mm, struct ib_gift_stats *stats)
{
	struct gift_umem *gift;
	unsigned long index;
	int kind;

	mutex_lock(&regions_lock);
	xa_for_each(&regions, index, gift) {
		if (gift->umem.owning_mm != mm)
			continue;
		stats->regions++;
		for (kind = 0; kind < IB_GIFT_PAGE_KINDS; kind++)
			stats->pages[kind] += gift->counts.pages[kind];
	}
	mutex_unlock(&regions_lock);
}

/**
 * gift_regions_show() - list all regions, one a line
 * @m: where to
 * @unused: unused
 *
 * Context: may sleep.
 * Return: 0.
 */
int gift_regions_show(struct seq_file *m, void *unused)
{
	struct gift_umem *gift;
	unsigned long index;
	int kind;

	seq_puts(m, "device pid comm address length pinned zero huge_zero ksm shared file\n");
	mutex_lock(&regions_lock);
	xa_for_each(&regions, index, gift) {
		seq_printf(m, "%s %d ", dev_name(&gift->umem.ibdev->dev),
			   gift->tgid);
		seq_escape(m, gift->comm, " \t\n\\");
		seq_printf(m, " 0x%lx %zu", gift->umem.address,
			   gift->umem.length);
		for (kind = 0; kind < IB_GIFT_PAGE_KINDS; kind++)
			seq_printf(m, " %llu", gift->counts.pages[kind]);
		seq_putc(m, '\n');
	}
	mutex_unlock(&regions_lock);
	return 0;
}

/**
 * gift_regions_none() - is no region alive
 *
 * Return: whether there is none.
 */
bool gift_regions_none(void)
{
	return xa_empty(&regions);
}

/**
 * gift_count_regions() - number of live regions
 *
 * Return: that.
 */
u64 gift_count_regions(void)
{
	return atomic64_read(&nr_regions);
}

/**
 * gift_count_pages() - pages of a kind in all live regions
 * @kind: the kind
 *
 * Return: number of pages; one that is in two regions counts twice.
 */
u64 gift_count_pages(enum ib_gift_page_kind kind)
{
	return atomic64_read(&nr_pages[kind]);
}

/**
 * ib_gift_umem_stats() - how the pages of a umem were taken
 * @umem: a umem that the caller keeps alive
 * @counts: to fill in
 *
 * Context: any.
 * Return: true; false when @umem is not a gift region, and then @counts is as
 * before.
 */
bool ib_gift_umem_stats(struct ib_umem *umem,
			struct ib_gift_umem_counts *counts)
{
	struct gift_umem *gift = xa_load(&regions, (unsigned long)umem);

	if (!gift)
		return false;
	*counts = gift->counts;
	return true;
}
EXPORT_SYMBOL_GPL(ib_gift_umem_stats);
