// SPDX-License-Identifier: GPL-2.0
/*
 * The live gift regions: tells a gift umem from any other by its address, adds
 * up what all of them have, and lists them. Never changes a region.
 */
#include <linux/atomic.h>
#include <linux/device.h>
#include <linux/hash.h>
#include <linux/mutex.h>
#include <linux/xarray.h>

#include "gift.h"

#define BUCKET_BITS	6

/*
 * Regions by whose memory they are in, so that a process which has, or looks
 * through, very many of its own gets in the way of few others.
 *
 * Whoever looks into a region that is not its own holds the lock; a region
 * leaves only with it held. Nothing else is locked while it is held, except
 * what reading or printing takes.
 */
static struct bucket {
	struct mutex lock;	/* regions */
	struct xarray regions;	/* by the address of struct ib_umem */
} buckets[1 << BUCKET_BITS];

static atomic64_t nr_regions;
static atomic64_t nr_pages[IB_GIFT_PAGE_KINDS];

static struct bucket *bucket_of(const struct mm_struct *mm)
{
	return &buckets[hash_ptr(mm, BUCKET_BITS)];
}

/**
 * gift_regions_init() - before the first region
 */
void gift_regions_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(buckets); i++) {
		mutex_init(&buckets[i].lock);
		xa_init_flags(&buckets[i].regions, XA_FLAGS_ACCOUNT);
	}
}

/**
 * gift_regions_exit() - after the last region
 *
 * Whoever has a region uses a symbol of this module, or has a reference of it
 * (every.c), so none is left. A tree may still have nodes, from an insertion
 * that found no memory for all of them.
 */
void gift_regions_exit(void)
{
	int i;

	WARN_ON(atomic64_read(&nr_regions));
	for (i = 0; i < ARRAY_SIZE(buckets); i++)
		xa_destroy(&buckets[i].regions);
}

/**
 * gift_region_add() - a region has come to life
 * @gift: the region, complete
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int gift_region_add(struct gift_umem *gift)
{
	struct bucket *bucket = bucket_of(gift->umem.owning_mm);
	int kind, ret;

	mutex_lock(&bucket->lock);
	ret = xa_insert(&bucket->regions, (unsigned long)&gift->umem, gift,
			GFP_KERNEL_ACCOUNT);
	mutex_unlock(&bucket->lock);
	if (ret)
		return ret;
	atomic64_inc(&nr_regions);
	for (kind = 0; kind < IB_GIFT_PAGE_KINDS; kind++)
		atomic64_add(gift->counts.pages[kind], &nr_pages[kind]);
	return 0;
}

/**
 * gift_region_find() - the region of a gift umem
 * @umem: a umem that the caller keeps alive, or NULL
 *
 * Context: any.
 * Return: the region, or NULL when @umem is none.
 */
struct gift_umem *gift_region_find(const struct ib_umem *umem)
{
	if (!umem)
		return NULL;
	return xa_load(&bucket_of(umem->owning_mm)->regions,
		       (unsigned long)umem);
}

/**
 * gift_is_region() - tell a gift umem from any other
 * @umem: a umem that the caller keeps alive, or NULL
 *
 * Context: any.
 * Return: whether it is a live gift region's.
 */
bool gift_is_region(const struct ib_umem *umem)
{
	return gift_region_find(umem);
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
	struct bucket *bucket;
	struct gift_umem *gift;
	int kind;

	/* The caller owns the umem, so what this finds cannot go away. */
	if (!gift_is_region(umem))
		return NULL;
	bucket = bucket_of(umem->owning_mm);
	mutex_lock(&bucket->lock);
	gift = xa_erase(&bucket->regions, (unsigned long)umem);
	mutex_unlock(&bucket->lock);
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
	struct bucket *bucket = bucket_of(mm);
	struct gift_umem *gift;

	mutex_lock(&bucket->lock);
	for (gift = xa_find(&bucket->regions, index, ULONG_MAX, XA_PRESENT);
	     gift; gift = xa_find_after(&bucket->regions, index, ULONG_MAX,
					XA_PRESENT))
		if (gift->umem.owning_mm == mm)
			break;
	if (gift)
		kref_get(&gift->ref);
	mutex_unlock(&bucket->lock);
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
	struct bucket *bucket = bucket_of(mm);
	struct gift_umem *gift;
	unsigned long index;
	int kind;

	mutex_lock(&bucket->lock);
	xa_for_each(&bucket->regions, index, gift) {
		if (gift->umem.owning_mm != mm)
			continue;
		stats->regions++;
		for (kind = 0; kind < IB_GIFT_PAGE_KINDS; kind++)
			stats->pages[kind] += gift->counts.pages[kind];
	}
	mutex_unlock(&bucket->lock);
}

static void show_bucket(struct seq_file *m, struct bucket *bucket)
{
	struct gift_umem *gift;
	unsigned long index;
	int kind;

	mutex_lock(&bucket->lock);
	xa_for_each(&bucket->regions, index, gift) {
		/* dev_name() of a device that is renamed may be freed memory. */
		seq_printf(m, "%s %d ", gift->umem.ibdev->name, gift->tgid);
		seq_escape(m, gift->comm, " \t\n\\");
		seq_printf(m, " 0x%lx %zu", gift->umem.address,
			   gift->umem.length);
		for (kind = 0; kind < IB_GIFT_PAGE_KINDS; kind++)
			seq_printf(m, " %llu", gift->counts.pages[kind]);
		seq_putc(m, '\n');
	}
	mutex_unlock(&bucket->lock);
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
	int i;

	seq_puts(m, "device pid comm address length pinned zero huge_zero ksm shared file\n");
	for (i = 0; i < ARRAY_SIZE(buckets); i++)
		show_bucket(m, &buckets[i]);
	return 0;
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
	struct gift_umem *gift;

	gift = gift_region_find(umem);
	if (!gift)
		return false;
	*counts = gift->counts;
	return true;
}
EXPORT_SYMBOL_GPL(ib_gift_umem_stats);
