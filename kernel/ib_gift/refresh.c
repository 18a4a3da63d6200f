// SPDX-License-Identifier: GPL-2.0
/*
 * ib_gift_umem_refresh(): a gift umem of which the stale pages are taken again
 * and all others are those that the region has already. A umem never changes:
 * a device may have its scatterlist mapped. So there is a second one for a
 * while, and this file owns what the two have in common. It does not decide what
 * is stale and takes no page itself.
 *
 * Two regions with pages in common, twins, say so in a bitmap of the pages that
 * they do not have in common. The first of them to be released gives back only
 * those and ends the relation: from then on every page is the other one's own.
 * A region has one twin at most.
 */
#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/export.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "gift.h"
#include "trace.h"

/* Pages passed over between two offers of the CPU. */
#define SKIP_CHUNK	65536UL

static DEFINE_MUTEX(twins_lock);	/* twin and own of every region */

static atomic64_t nr_refreshes;
static atomic64_t nr_retaken;

/* Makes regions twins, and the bitmap theirs. */
static int join(struct gift_umem *old, struct gift_umem *new,
		unsigned long *own, unsigned long nr_own)
{
	int ret = -EBUSY;

	mutex_lock(&twins_lock);
	if (!old->twin) {
		old->twin = new;
		new->twin = old;
		old->own = own;
		new->own = own;
		old->nr_own = nr_own;
		new->nr_own = nr_own;
		ret = 0;
	}
	mutex_unlock(&twins_lock);
	return ret;
}

/* Undoes join(). Returns the bitmap, or NULL for a region without a twin. */
static unsigned long *part(struct gift_umem *gift)
{
	unsigned long *own;

	mutex_lock(&twins_lock);
	own = gift->own;
	if (own) {
		gift->twin->twin = NULL;
		gift->twin->own = NULL;
		gift->twin = NULL;
		gift->own = NULL;
	}
	mutex_unlock(&twins_lock);
	return own;
}

/* gift_cursor_skip() however far: the index is not there yet, or of no use. */
static void skip(struct gift_cursor *cursor, const struct gift_umem *gift,
		 unsigned long pages)
{
	for (; pages > SKIP_CHUNK; pages -= SKIP_CHUNK) {
		gift_cursor_skip(cursor, gift, SKIP_CHUNK);
		cond_resched();
	}
	gift_cursor_skip(cursor, gift, pages);
}

/*
 * Gives back those of the first pages of a region that have their bit set, and
 * counts nothing else as the region's.
 */
static void give_back(struct gift_umem *gift, const unsigned long *own,
		      unsigned long nr)
{
	struct gift_cursor cursor = { .sg = gift->umem.sgt_append.sgt.sgl };
	unsigned long at = 0, next;
	enum ib_gift_page_kind kind;
	struct page *page;

	memset(&gift->counts, 0, sizeof(gift->counts));
	for (next = find_first_bit(own, nr); next < nr;
	     next = find_next_bit(own, nr, at)) {
		skip(&cursor, gift, next - at);
		page = gift_cursor_next(&cursor, gift, &kind);
		at = next + 1;
		gift_give_back(page, 1, kind);
		gift->counts.pages[kind]++;
		cond_resched();
	}
}

/**
 * gift_part() - give back a region as far as its twin has not the same pages
 * @gift: region that is released
 *
 * What is left in @gift->counts is what was given back.
 *
 * Context: may sleep; any process.
 * Return: true; false when the region has no twin, and nothing has happened.
 */
bool gift_part(struct gift_umem *gift)
{
	unsigned long *own = part(gift);

	if (!own)
		return false;
	give_back(gift, own, gift->npages);
	gift_uncharge(gift->umem.owning_mm, gift->nr_own);
	kvfree(own);
	return true;
}

/* Gives back those of the first pages of a batch that were taken again. */
static void untake(struct gift_batch *batch, const unsigned long *own,
		   unsigned long first, unsigned long end)
{
	unsigned long page;

	for (page = find_next_bit(own, end, first); page < end;
	     page = find_next_bit(own, end, page + 1))
		gift_give_back(batch->pages[page - first], 1,
			       batch->kinds[page - first]);
}

/*
 * Takes the pages of a batch that are not in common again: they replace what
 * the batch has. On failure none of the batch is kept.
 */
static int take(struct gift_umem *gift, struct gift_batch *batch,
		struct gift_batch *taken, unsigned long first,
		unsigned long nr)
{
	unsigned long start = gift->umem.address & PAGE_MASK;
	unsigned long page, end = first + nr, stop;
	int got;

	for (page = find_next_bit(gift->own, end, first); page < end;
	     page = find_next_bit(gift->own, end, page + got)) {
		stop = find_next_zero_bit(gift->own, end, page);
		got = gift_take(taken, gift->umem.owning_mm,
				start + page * PAGE_SIZE, stop - page);
		if (got < 0) {
			untake(batch, gift->own, first, page);
			return got;
		}
		memcpy(batch->pages + (page - first), taken->pages,
		       got * sizeof(*taken->pages));
		memcpy(batch->kinds + (page - first), taken->kinds,
		       got * sizeof(*taken->kinds));
	}
	return 0;
}

/*
 * Fills a region with the pages of its twin and those taken again. @done is the
 * number of pages that it has, also after a failure.
 */
static int fill(struct gift_umem *gift, struct gift_umem *old,
		unsigned long *done)
{
	unsigned long first = gift->umem.address >> PAGE_SHIFT;
	struct gift_batch *batch, *taken;
	struct gift_cursor cursor;
	enum ib_gift_page_kind kind;
	unsigned long nr, i;
	int ret = -ENOMEM;

	*done = 0;
	batch = kzalloc(sizeof(*batch), GFP_KERNEL);
	taken = kzalloc(sizeof(*taken), GFP_KERNEL);
	if (!batch || !taken)
		goto out;
	gift_cursor_set(&cursor, old, 0);
	for (; *done < gift->npages; *done += nr) {
		cond_resched();
		ret = -EINTR;
		if (fatal_signal_pending(current))
			goto out;
		nr = GIFT_BATCH - (first + *done) % GIFT_BATCH;
		nr = min(nr, gift->npages - *done);
		for (i = 0; i < nr; i++) {
			batch->pages[i] = gift_cursor_next(&cursor, old, &kind);
			batch->kinds[i] = kind;
		}
		ret = take(gift, batch, taken, *done, nr);
		if (ret)
			goto out;
		ret = gift_append(gift, batch, nr, gift->npages - *done - nr);
		if (ret) {
			untake(batch, gift->own, *done, *done + nr);
			goto out;
		}
	}
	ret = 0;
out:
	kfree(taken);
	kfree(batch);
	return ret;
}

/* How the pages that two regions do not have in common were taken. */
static void count_own(struct gift_umem *gift,
		      struct ib_gift_umem_counts *counts)
{
	struct gift_cursor cursor = { .sg = gift->umem.sgt_append.sgt.sgl };
	unsigned long at = 0, next;
	enum ib_gift_page_kind kind;

	memset(counts, 0, sizeof(*counts));
	for_each_set_bit(next, gift->own, gift->npages) {
		skip(&cursor, gift, next - at);
		gift_cursor_next(&cursor, gift, &kind);
		at = next + 1;
		counts->pages[kind]++;
		cond_resched();
	}
}

/* A twin of a region that takes the pages anew whose bit in own is set. */
static struct gift_umem *take_again(struct gift_umem *old, unsigned long *own,
				    unsigned long nr_own)
{
	u64 start = ktime_get_ns();
	struct ib_gift_umem_counts counts;
	struct gift_umem *gift;
	unsigned long done;
	int ret;

	gift = gift_alloc(old->umem.ibdev, old->umem.address,
			  old->umem.length, old->npages);
	if (!gift)
		return ERR_PTR(-ENOMEM);
	gift->umem.iova = old->umem.iova;
	gift->dma_attrs = old->dma_attrs;
	ret = gift_charge(gift->umem.owning_mm, nr_own);
	if (ret)
		goto err_drop;
	ret = join(old, gift, own, nr_own);
	if (ret)
		goto err_uncharge;
	ret = fill(gift, old, &done);
	if (!ret) {
		count_own(gift, &counts);
		ret = gift_finish(gift);
	}
	if (ret)
		goto err_part;
	atomic64_inc(&nr_refreshes);
	atomic64_add(nr_own, &nr_retaken);
	trace_umem_refresh(gift, &counts, ktime_get_ns() - start);
	return gift;

err_part:
	part(gift);
	give_back(gift, own, done);
err_uncharge:
	gift_uncharge(gift->umem.owning_mm, nr_own);
err_drop:
	gift_drop(gift);
	return ERR_PTR(ret);
}

/* The part of a region that a range names: false when it is not in the region. */
static bool find_range(const struct gift_umem *gift, u64 addr, u64 length,
		       unsigned long *first, unsigned long *end)
{
	u64 offset = addr - gift->umem.address;

	if (addr < gift->umem.address || !length ||
	    offset >= gift->umem.length || length > gift->umem.length - offset)
		return false;
	offset += offset_in_page(gift->umem.address);
	*first = offset >> PAGE_SHIFT;
	*end = ((offset + length - 1) >> PAGE_SHIFT) + 1;
	return true;
}

/**
 * ib_gift_umem_refresh() - take the stale pages of a gift umem again
 * @umem: what ib_gift_umem_get() or this function returned
 * @addr: user address from which on stale pages are looked for
 * @length: number of bytes, all of them in the umem
 * @retaken: to fill in, number of pages that were taken again
 *
 * @umem stays what it is and is mapped for the device as it was. What comes back
 * is another umem of the same memory, mapped for the device by itself, with the
 * same pages except for those which IB_GIFT_IOC_STALE calls stale: in their
 * place are the ones that the process has now, taken as a registration takes
 * them. The driver makes the device read by the new umem, waits until it no
 * longer does by the old one, and releases that; when it cannot, it releases
 * the new one and everything is as it was. Until one of them is released, neither
 * can be refreshed.
 *
 * Only the pages that are taken again are charged, for as long as there are
 * both. A failure leaves nothing behind.
 *
 * Context: a process with the memory of the one that registered; may sleep;
 * mmap lock not held. The caller keeps @umem from being released meanwhile.
 * Return: the new umem, for ib_gift_umem_release(); NULL when no page in the range
 * is stale; or as an error pointer: -EINVAL when @umem is not a gift region of
 * the caller's memory, or one that a redirected ib_umem_get() made, or the range
 * not within it; -EBUSY when it has been
 * refreshed and both umems are still there; -EPERM, -ENOMEM when RLIMIT_MEMLOCK
 * forbids it; -EFAULT when a stale page is no longer mapped or readable; -EINTR
 * after a fatal signal; -ENOMEM; and what else pinning says.
 */
struct ib_umem *ib_gift_umem_refresh(struct ib_umem *umem, u64 addr,
				     u64 length, u64 *retaken)
{
	unsigned long first, end, nr_own, *own;
	struct gift_umem *old, *gift;
	int ret;

	*retaken = 0;
	old = gift_region_find(umem);
	if (!old || old->hooked || umem->owning_mm != current->mm ||
	    !find_range(old, addr, length, &first, &end)) {
		ibdev_dbg(umem->ibdev,
			  "gift: refresh of address %#llx size %#llx: not in this region\n",
			  addr, length);
		return ERR_PTR(-EINVAL);
	}

	own = kvcalloc(BITS_TO_LONGS(old->npages), sizeof(*own),
		       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!own)
		return ERR_PTR(-ENOMEM);
	ret = gift_stale_pages(old, first, end, own);
	nr_own = ret ? 0 : bitmap_weight(own, old->npages);
	if (!nr_own) {
		kvfree(own);
		return ERR_PTR(ret);
	}
	gift = take_again(old, own, nr_own);
	if (IS_ERR(gift)) {
		kvfree(own);
		return ERR_CAST(gift);
	}
	*retaken = nr_own;
	return &gift->umem;
}
EXPORT_SYMBOL_GPL(ib_gift_umem_refresh);

/**
 * gift_count_refreshes() - how many times a region had pages taken again
 *
 * Return: the number since the module was loaded.
 */
u64 gift_count_refreshes(void)
{
	return atomic64_read(&nr_refreshes);
}

/**
 * gift_count_retaken() - how many pages that were
 *
 * Return: the number since the module was loaded.
 */
u64 gift_count_retaken(void)
{
	return atomic64_read(&nr_retaken);
}
