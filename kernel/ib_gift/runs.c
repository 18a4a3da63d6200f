// SPDX-License-Identifier: GPL-2.0
/*
 * How each page of a region was taken, kept as runs of the same kind in page
 * order: a scatterlist merges neighbours whatever their kind, so it cannot tell.
 * Never touches a page.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "gift.h"

/* A run in 32 bits: number of pages, and above it the kind. */
#define RUN_KIND_SHIFT	29
#define RUN_PAGES_MAX	((1U << RUN_KIND_SHIFT) - 1)

static_assert(IB_GIFT_PAGE_KINDS <= 1 << (32 - RUN_KIND_SHIFT));

/**
 * gift_runs_reserve() - make room, so that adding cannot fail
 * @runs: runs, all 0 at first
 * @more: how many calls of gift_runs_add() are to come
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int gift_runs_reserve(struct gift_runs *runs, unsigned int more)
{
	unsigned int need = runs->nr + more;
	unsigned int room;
	u32 *run;

	if (need <= runs->room)
		return 0;
	room = max(need, runs->room + runs->room / 2);
	run = kvmalloc_array(room, sizeof(*run), GFP_KERNEL_ACCOUNT |
			     __GFP_NOWARN);
	if (!run)
		return -ENOMEM;
	if (runs->nr)
		memcpy(run, runs->run, runs->nr * sizeof(*run));
	kvfree(runs->run);
	runs->run = run;
	runs->room = room;
	return 0;
}

/**
 * gift_runs_add() - append pages of one kind
 * @runs: runs with room reserved
 * @kind: how the pages were taken
 * @nr: number of pages, GIFT_BATCH at most
 */
void gift_runs_add(struct gift_runs *runs, enum ib_gift_page_kind kind,
		   unsigned int nr)
{
	if (runs->nr && gift_run_kind(runs, runs->nr - 1) == kind) {
		unsigned int have = gift_run_pages(runs, runs->nr - 1);
		unsigned int fits = min(nr, RUN_PAGES_MAX - have);

		runs->run[runs->nr - 1] += fits;
		nr -= fits;
	}
	if (nr)
		runs->run[runs->nr++] = nr | (u32)kind << RUN_KIND_SHIFT;
}

/**
 * gift_run_kind() - how the pages of a run were taken
 * @runs: runs
 * @i: which, less than @runs->nr
 *
 * Return: the kind.
 */
enum ib_gift_page_kind gift_run_kind(const struct gift_runs *runs,
				     unsigned int i)
{
	return runs->run[i] >> RUN_KIND_SHIFT;
}

/**
 * gift_run_pages() - how many pages a run has
 * @runs: runs
 * @i: which, less than @runs->nr
 *
 * Return: the number, at least 1.
 */
unsigned int gift_run_pages(const struct gift_runs *runs, unsigned int i)
{
	return runs->run[i] & RUN_PAGES_MAX;
}

/**
 * gift_runs_free() - forget all runs
 * @runs: runs
 */
void gift_runs_free(struct gift_runs *runs)
{
	kvfree(runs->run);
	memset(runs, 0, sizeof(*runs));
}
