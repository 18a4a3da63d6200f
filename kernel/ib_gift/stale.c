// SPDX-License-Identifier: GPL-2.0
/*
 * Which pages of a process's gift regions its page tables no longer map where
 * it registered them. Compares page tables with scatterlists: reads no memory,
 * faults nothing in, and looks at no process but the caller.
 */
#include <linux/bitmap.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../compat.h"
#include "gift.h"

/* Pages of the range that are looked at before the caller is told. */
#define CHUNK	(PAGE_SIZE * BITS_PER_BYTE)

/**
 * struct chunk - a part of the range
 * @first: number of its first page, by address
 * @nr: pages in it
 * @registered: bitmap of those in a gift region,
 * @stale: bitmap of those that differ
 * @pages: what is mapped, a batch at a time
 */
struct chunk {
	unsigned long first;
	unsigned long nr;
	unsigned long *registered;
	unsigned long *stale;
	struct page *pages[GIFT_BATCH];
};

/*
 * Which pages are mapped from addr on, within one mapping. Each comes with a
 * reference. Returns how many, 0 if there is none at addr.
 *
 * FOLL_FORCE: what is protected against reading is still mapped.
 */
static long mapped(struct vm_area_struct *vma, unsigned long addr,
		   unsigned long nr, struct page **pages)
{
	long got;

	nr = min(nr, (vma->vm_end - addr) >> PAGE_SHIFT);
	/* Where FOLL_NOFAULT does not stop hugetlb from being faulted in. */
	if (is_vm_hugetlb_page(vma))
		got = get_user_pages_fast_only(addr, nr, 0, pages);
	else
		got = compat_get_user_pages(addr, nr, FOLL_NOFAULT | FOLL_FORCE,
					    pages);
	return max(got, 0L);
}

/*
 * Is a mapped page what was registered, or does it read the same? Zeros do,
 * whether of the zero page, of the huge zero page, or of that after it has been
 * split: nothing else in a private mapping without a file is not anonymous.
 */
static bool fresh(struct vm_area_struct *vma, struct page *page,
		  struct page *registered, enum ib_gift_page_kind kind)
{
	if (page == registered)
		return true;
	return (kind == IB_GIFT_PAGE_ZERO || kind == IB_GIFT_PAGE_HUGE_ZERO) &&
	       vma_is_anonymous(vma) && is_cow_mapping(vma->vm_flags) &&
	       !folio_test_anon(page_folio(page));
}

/* Marks those of nr pages from addr on that differ from those at the cursor. */
static int compare(struct mm_struct *mm, unsigned long addr, unsigned long nr,
		   struct gift_umem *gift, struct gift_cursor *cursor,
		   struct chunk *chunk)
{
	unsigned long bit = (addr >> PAGE_SHIFT) - chunk->first;
	struct vm_area_struct *vma;
	enum ib_gift_page_kind kind;
	struct page *registered;
	unsigned long at, i;
	long got;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	for (at = compat_untagged_addr(mm, addr); nr;
	     at += got * PAGE_SIZE, nr -= got) {
		got = 0;
		vma = find_vma(mm, at);
		if (vma && at >= vma->vm_start)
			got = mapped(vma, at, nr, chunk->pages);
		for (i = 0; i < got; i++, bit++) {
			registered = gift_cursor_next(cursor, gift, &kind);
			if (!fresh(vma, chunk->pages[i], registered, kind))
				__set_bit(bit, chunk->stale);
			put_page(chunk->pages[i]);
		}
		if (!got) {
			gift_cursor_next(cursor, gift, &kind);
			__set_bit(bit++, chunk->stale);
			got = 1;
		}
	}
	mmap_read_unlock(mm);
	return 0;
}

/*
 * Compares the pages of a region from number at on, by address, up to end. Bits
 * are those of the chunk's bitmap, which need not be as short as a chunk.
 */
static int compare_pages(struct mm_struct *mm, struct gift_umem *gift,
			 unsigned long at, unsigned long end,
			 struct chunk *chunk)
{
	struct gift_cursor cursor;
	unsigned long nr;
	int ret;

	gift_cursor_set(&cursor, gift,
			at - (gift->umem.address >> PAGE_SHIFT));
	for (; at < end; at += nr) {
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
		nr = min(end - at, (unsigned long)GIFT_BATCH);
		ret = compare(mm, at << PAGE_SHIFT, nr, gift, &cursor,
			      chunk);
		if (ret)
			return ret;
	}
	return 0;
}

/* Compares what a region and a chunk have in common. */
static int compare_region(struct mm_struct *mm, struct gift_umem *gift,
			  struct chunk *chunk)
{
	unsigned long first = gift->umem.address >> PAGE_SHIFT;
	unsigned long at = max(first, chunk->first);
	unsigned long end = min(first + gift->npages, chunk->first + chunk->nr);

	if (at >= end)
		return 0;
	bitmap_set(chunk->registered, at - chunk->first, end - at);
	return compare_pages(mm, gift, at, end, chunk);
}

static int compare_chunk(struct mm_struct *mm, struct chunk *chunk)
{
	struct gift_umem *gift;
	unsigned long index = 0;
	int ret;

	bitmap_zero(chunk->registered, CHUNK);
	bitmap_zero(chunk->stale, CHUNK);
	while ((gift = gift_region_next(mm, &index))) {
		ret = compare_region(mm, gift, chunk);
		gift_put(gift);
		if (ret)
			return ret;
	}
	return 0;
}

/* Stores what is stale, as words of 64 bits whatever a long has. */
static int put_bitmap(u64 __user *to, struct chunk *chunk)
{
	u64 *words = (u64 *)chunk->registered;	/* no longer needed */

	bitmap_to_arr64(words, chunk->stale, chunk->nr);
	return copy_to_user(to, words, BITS_TO_U64(chunk->nr) * sizeof(u64)) ?
	       -EFAULT : 0;
}

/**
 * gift_stale() - which pages of a range are stale
 * @mm: the caller's memory, current->mm
 * @query: addr, length and bitmap say what is asked; registered and stale, and
 *	the words at bitmap, are filled in
 *
 * A snapshot, page by page, of memory that the caller's other threads may
 * change. A page that they register or deregister meanwhile may count or not.
 *
 * Context: may sleep; mmap lock not held.
 * Return: 0, -EINVAL for no sensible range, -EFAULT for a bad bitmap, -ENOMEM,
 * or -EINTR after a fatal signal.
 */
int gift_stale(struct mm_struct *mm, struct ib_gift_stale *query)
{
	u64 __user *bitmap = u64_to_user_ptr(query->bitmap);
	unsigned long first, end;
	struct chunk *chunk;
	u64 last;
	int ret;

	if (!query->length ||
	    check_add_overflow(query->addr, query->length - 1, &last) ||
	    last >= TASK_SIZE)
		return -EINVAL;
	first = query->addr >> PAGE_SHIFT;
	end = (last >> PAGE_SHIFT) + 1;

	ret = -ENOMEM;
	chunk = kmalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return ret;
	chunk->registered = bitmap_alloc(CHUNK, GFP_KERNEL);
	chunk->stale = bitmap_alloc(CHUNK, GFP_KERNEL);
	if (!chunk->registered || !chunk->stale)
		goto out;

	query->registered = 0;
	query->stale = 0;
	for (; first < end; first += chunk->nr) {
		cond_resched();
		ret = -EINTR;
		if (fatal_signal_pending(current))
			goto out;
		chunk->first = first;
		chunk->nr = min(end - first, CHUNK);
		ret = compare_chunk(mm, chunk);
		if (ret)
			goto out;
		query->registered += bitmap_weight(chunk->registered, CHUNK);
		query->stale += bitmap_weight(chunk->stale, CHUNK);
		if (!bitmap)
			continue;
		ret = put_bitmap(bitmap, chunk);
		if (ret)
			goto out;
		bitmap += BITS_TO_U64(chunk->nr);
	}
	ret = 0;
out:
	bitmap_free(chunk->registered);
	bitmap_free(chunk->stale);
	kfree(chunk);
	return ret;
}

/**
 * gift_stale_pages() - which pages of a region are stale
 * @gift: region in the caller's memory
 * @first: number in the region of the first page to look at
 * @end: of the first page not to look at any more
 * @stale: bitmap of the whole region, all 0, to fill in
 *
 * By the same rule as gift_stale().
 *
 * Context: may sleep; mmap lock not held.
 * Return: 0, -ENOMEM, or -EINTR after a fatal signal.
 */
int gift_stale_pages(struct gift_umem *gift, unsigned long first,
		     unsigned long end, unsigned long *stale)
{
	unsigned long start = gift->umem.address >> PAGE_SHIFT;
	struct chunk *chunk;
	int ret;

	chunk = kmalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return -ENOMEM;
	chunk->first = start;
	chunk->stale = stale;
	ret = compare_pages(gift->umem.owning_mm, gift, start + first,
			    start + end, chunk);
	kfree(chunk);
	return ret;
}
