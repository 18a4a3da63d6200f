// SPDX-License-Identifier: GPL-2.0
/*
 * Takes user pages, each the way its kind asks for, and gives them back the
 * way they were taken. Owns every reference and pin of the module; keeps no
 * record of them.
 */
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "../compat.h"
#include "gift.h"

/* Kinds that no reference is kept of, and those of which one is. */
#define DROPPED	(BIT(IB_GIFT_PAGE_PINNED) | BIT(IB_GIFT_PAGE_ZERO))
#define HELD	(BIT(IB_GIFT_PAGE_HUGE_ZERO) | BIT(IB_GIFT_PAGE_KSM) | \
		 BIT(IB_GIFT_PAGE_SHARED) | BIT(IB_GIFT_PAGE_FILE))

/* Drops the plain references to those pages of a batch whose kind is in mask. */
static void drop(struct gift_batch *batch, unsigned int nr, unsigned long mask)
{
	unsigned int i, run;

	for (i = 0; i < nr; i += run) {
		struct page *page = batch->pages[i];
		struct folio *folio;

		run = 1;
		if (!(BIT(batch->kinds[i]) & mask))
			continue;
		if (is_zone_device_page(page)) {
			put_page(page);
			continue;
		}
		folio = page_folio(page);
		while (i + run < nr && BIT(batch->kinds[i + run]) & mask &&
		       page_folio(batch->pages[i + run]) == folio)
			run++;
		folio_put_refs(folio, run);
	}
}

/* Unpins those pages of a batch that are to be pinned. */
static void unpin(struct gift_batch *batch, unsigned int nr)
{
	unsigned int i, end;

	for (i = 0; i < nr; i = end + 1) {
		for (end = i; end < nr; end++)
			if (batch->kinds[end] != IB_GIFT_PAGE_PINNED)
				break;
		unpin_user_pages(batch->pages + i, end - i);
	}
}

/* Pins all of a range or nothing. */
static int pin_range(unsigned long addr, struct page **pages, unsigned int nr,
		     unsigned int flags)
{
	unsigned int done;
	int ret;

	for (done = 0; done < nr; done += ret) {
		ret = pin_user_pages_fast(addr + done * PAGE_SIZE, nr - done,
					  flags, pages + done);
		if (ret <= 0) {
			unpin_user_pages(pages, done);
			return ret ? ret : -EFAULT;
		}
	}
	return 0;
}

/*
 * Pins the pages of a batch that are to be pinned, all or nothing.
 *
 * As a rule without FOLL_WRITE: the page must not be made dirty, and a mapping
 * may be read-only. A pin makes sure that an anonymous page is this process's alone;
 * while it is pinned the page stays so, through fork and swap, and a write
 * fault of the owner reuses it. Pages of shared mappings are written in place.
 */
static int pin(struct gift_batch *batch, unsigned long addr, unsigned int nr)
{
	unsigned int i, end;
	int ret;

	for (i = 0; i < nr; i = end) {
		end = i + 1;
		if (batch->kinds[i] != IB_GIFT_PAGE_PINNED)
			continue;
		while (end < nr && batch->kinds[end] == IB_GIFT_PAGE_PINNED)
			end++;
		ret = pin_range(addr + i * PAGE_SIZE, batch->pages + i, end - i,
				batch->pin_flags);
		if (ret) {
			unpin(batch, i);
			return ret;
		}
	}
	return 0;
}

/*
 * Pins from the front of a range what is certainly this process's alone, at
 * the price of a plain pin. Returns how many pages that are; 0 says nothing.
 *
 * An anonymous page can only be pinned while no other process maps it, and
 * without faulting nothing is unshared to make it so. The reverse does not
 * hold (see gift_kind()), so what stops here is looked at more closely.
 */
static unsigned int pin_owned(struct gift_batch *batch, unsigned long addr,
			      unsigned int nr)
{
	int got, own;

	got = pin_user_pages_fast(addr, nr, FOLL_LONGTERM | FOLL_NOFAULT,
				  batch->pages);
	if (got <= 0)
		return 0;
	for (own = 0; own < got; own++)
		if (!folio_test_anon(page_folio(batch->pages[own])))
			break;
	unpin_user_pages(batch->pages + own, got - own);
	memset(batch->kinds, IB_GIFT_PAGE_PINNED, own);
	return own;
}

/**
 * gift_take() - take the pages of a range of the caller's memory
 * @batch: to fill in; all 0 before the first call for a region
 * @mm: the caller's memory, current->mm
 * @addr: user address, a multiple of PAGE_SIZE
 * @nr: number of pages, 1 to GIFT_BATCH
 *
 * Faults pages in for reading, finds out what they are, and keeps a reference
 * or pins them as their kind asks. A page to be pinned has no plain reference
 * left by then, not even by a neighbour in the same huge page that is pinned
 * too: it would be in the way of migration out of a zone where pages may not
 * stay, and of reusing a page of which the other owner is gone.
 *
 * When a pin fails, a held neighbour may be the reason; then all of the batch
 * is pinned like ib_umem_get() would, and only a failure of that is reported.
 *
 * Context: may sleep; must not be called with the mmap lock held.
 * Return: number of pages taken, at least 1, or a negative errno: -EFAULT for
 * what is not mapped or not readable, -EOPNOTSUPP for a file on device memory,
 * -EINTR after a fatal signal, -ENOMEM, or what else pin_user_pages_fast()
 * says. After an error nothing is taken.
 */
int gift_take(struct gift_batch *batch, struct mm_struct *mm,
	      unsigned long addr, unsigned int nr)
{
	int ret, got;

	if (!batch->not_owned) {
		got = pin_owned(batch, addr, nr);
		if (got)
			return got;
	}

	got = get_user_pages_fast(addr, nr, 0, batch->pages);
	if (got <= 0)
		return got ? got : -EFAULT;

	ret = gift_classify(batch, mm, addr, got);
	if (ret) {
		/* Nothing is pinned yet, but this drops all. */
		memset(batch->kinds, IB_GIFT_PAGE_PINNED, got);
		drop(batch, got, DROPPED);
		return ret;
	}

	/* Memory tends to go on as it ends here. */
	batch->not_owned = batch->kinds[got - 1] != IB_GIFT_PAGE_PINNED ||
			   !folio_test_anon(page_folio(batch->pages[got - 1]));

	/* The zero page is never freed, and its count could overflow. */
	drop(batch, got, DROPPED);
	ret = pin(batch, addr, got);
	if (!ret)
		return got;

	drop(batch, got, HELD);
	memset(batch->kinds, IB_GIFT_PAGE_PINNED, got);
	got = pin_user_pages_fast(addr, got, COMPAT_UMEM_READ_PIN,
				  batch->pages);
	return got ? got : -EFAULT;
}

/**
 * gift_untake() - give back a batch as it was taken
 * @batch: what gift_take() filled in
 * @nr: number of pages that it returned
 */
void gift_untake(struct gift_batch *batch, unsigned int nr)
{
	drop(batch, nr, HELD);
	unpin(batch, nr);
}

/**
 * gift_give_back() - give back physically contiguous pages of one kind
 * @page: the first
 * @nr: number of pages
 * @kind: how they were taken
 *
 * Context: may sleep; any process, or none.
 */
void gift_give_back(struct page *page, unsigned long nr,
		    enum ib_gift_page_kind kind)
{
	unsigned long i, run;

	if (kind == IB_GIFT_PAGE_ZERO)
		return;
	if (kind == IB_GIFT_PAGE_PINNED) {
		unpin_user_page_range_dirty_lock(page, nr, false);
		return;
	}
	for (i = 0; i < nr; i += run) {
		struct folio *folio = page_folio(nth_page(page, i));

		for (run = 1; i + run < nr; run++)
			if (page_folio(nth_page(page, i + run)) != folio)
				break;
		folio_put_refs(folio, run);
	}
}
