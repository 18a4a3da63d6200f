// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the page of a region by its number. The scatterlist is chained, and its
 * entries and the runs differ in length, so places in them are kept at regular
 * distances. Looks at no page.
 */
#include <linux/nospec.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "gift.h"

/* Pages from one mark to the next. */
#define MARK_PAGES	1024

static unsigned int entry_pages(const struct scatterlist *sg)
{
	return DIV_ROUND_UP(sg->length, PAGE_SIZE);
}

/**
 * gift_cursor_skip() - move a cursor forward
 * @cursor: cursor
 * @gift: the region that it is in
 * @pages: number of pages, which the region has from there on
 */
void gift_cursor_skip(struct gift_cursor *cursor, const struct gift_umem *gift,
		      unsigned long pages)
{
	unsigned long left;

	/*
	 * A cursor at the end of an entry or a run stays there until there is
	 * something to come, since the last of them has no next.
	 */
	for (left = pages; left > entry_pages(cursor->sg) - cursor->sg_page;) {
		left -= entry_pages(cursor->sg) - cursor->sg_page;
		cursor->sg = sg_next(cursor->sg);
		cursor->sg_page = 0;
	}
	cursor->sg_page += left;
	for (left = pages; left > gift_run_pages(&gift->runs, cursor->run) -
				  cursor->run_page;) {
		left -= gift_run_pages(&gift->runs, cursor->run) -
			cursor->run_page;
		cursor->run++;
		cursor->run_page = 0;
	}
	cursor->run_page += left;
}

/**
 * gift_index_build() - make the pages of a region easy to find
 * @gift: region with all its pages in the scatterlist
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int gift_index_build(struct gift_umem *gift)
{
	/* Mark i stands at page (i + 1) * MARK_PAGES. */
	unsigned long nr = (gift->npages - 1) / MARK_PAGES, mark;
	struct gift_cursor cursor;

	if (!nr)
		return 0;
	gift->marks = kvmalloc_array(nr, sizeof(*gift->marks),
				     GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!gift->marks)
		return -ENOMEM;
	gift_cursor_set(&cursor, gift, 0);
	for (mark = 0; mark < nr; mark++) {
		gift_cursor_skip(&cursor, gift, MARK_PAGES);
		gift->marks[mark] = cursor;
		cond_resched();
	}
	return 0;
}

/**
 * gift_index_free() - undo gift_index_build()
 * @gift: region
 */
void gift_index_free(struct gift_umem *gift)
{
	kvfree(gift->marks);
	gift->marks = NULL;
}

/**
 * gift_cursor_set() - find a page
 * @cursor: to set
 * @gift: region with an index
 * @page: number of the page, less than @gift->npages
 */
void gift_cursor_set(struct gift_cursor *cursor, const struct gift_umem *gift,
		     unsigned long page)
{
	unsigned long mark;

	/* A process names it, and its check may have been guessed. */
	page = array_index_nospec(page, gift->npages);
	mark = page / MARK_PAGES;
	if (mark)
		*cursor = gift->marks[mark - 1];
	else
		*cursor = (struct gift_cursor) {
			.sg = gift->umem.sgt_append.sgt.sgl,
		};
	gift_cursor_skip(cursor, gift, page % MARK_PAGES);
}

/**
 * gift_cursor_next() - the page at a cursor, which moves on
 * @cursor: cursor, not behind the last page
 * @gift: the region that it is in
 * @kind: to fill in, how the page was taken
 *
 * Return: the page.
 */
struct page *gift_cursor_next(struct gift_cursor *cursor,
			      const struct gift_umem *gift,
			      enum ib_gift_page_kind *kind)
{
	gift_cursor_skip(cursor, gift, 1);
	*kind = gift_run_kind(&gift->runs, cursor->run);
	return nth_page(sg_page(cursor->sg), cursor->sg_page - 1);
}
