// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: every page of a region is found by its number, with its kind, however
 * scatterlist entries, runs and marks fall. The regions are made up of page
 * frame numbers; no page is touched.
 */
#include <kunit/test.h>
#include <linux/scatterlist.h>

#include "gift.h"

/**
 * struct index_row - the shape of a region
 * @name: what is special about it
 * @npages: pages
 * @entry: pages of a scatterlist entry, taken in turn; ends with 0
 * @run: pages of a run, taken in turn; ends with 0
 */
struct index_row {
	const char *name;
	unsigned long npages;
	unsigned int entry[4];
	unsigned int run[4];
};

static const struct index_row index_rows[] = {
	{ "one page", 1, { 1 }, { 1 } },
	{ "one entry, one run", 100, { 100 }, { 100 } },
	{ "entries of one page, runs of one page", 100, { 1 }, { 1 } },
	{ "one entry, runs of one page", 100, { 100 }, { 1 } },
	{ "entries of one page, one run", 100, { 1 }, { 100 } },
	{ "entries and runs of different lengths", 500, { 7, 1, 3 }, { 2, 5 } },
	{ "entries that end where runs end", 600, { 6 }, { 3 } },
	{ "one page before the first mark", 1023, { 512 }, { 10, 1 } },
	{ "up to the first mark", 1024, { 512 }, { 10, 1 } },
	{ "one page behind the first mark", 1025, { 512 }, { 10, 1 } },
	{ "two marks exactly", 2048, { 1024 }, { 1024 } },
	{ "a mark within an entry and a run", 3000, { 900 }, { 700 } },
	{ "a mark at the end of an entry", 3000, { 1024 }, { 700 } },
	{ "a mark at the end of a run", 3000, { 700 }, { 1024 } },
	{ "an entry over several marks", 5000, { 5000 }, { 3, 4 } },
	{ "a run over several marks", 5000, { 3, 4 }, { 5000 } },
	{ "a chained scatterlist", 4100, { 1 }, { 11, 2 } },
};

/*
 * Entries are a frame apart, so that none leads into the next. All frames are
 * ones that a machine of 128 MiB has.
 */
static struct page *expected_page(unsigned long page, unsigned int entry)
{
	return pfn_to_page(0x1000 + page + entry);
}

static enum ib_gift_page_kind kind_of_run(unsigned int run)
{
	return run % IB_GIFT_PAGE_KINDS;
}

/* The length of number @n of a sequence that is @left pages before its end. */
static unsigned int length(const unsigned int *turns, unsigned int n,
			   unsigned long left)
{
	unsigned int count = 0;

	while (count < 4 && turns[count])
		count++;
	return min_t(unsigned long, turns[n % count], left);
}

static void make_entries(struct kunit *test, struct gift_umem *gift,
			 const struct index_row *row)
{
	struct sg_table *sgt = &gift->umem.sgt_append.sgt;
	unsigned long left = row->npages;
	unsigned int nr, i;
	struct scatterlist *sg;

	for (nr = 0; left; nr++)
		left -= length(row->entry, nr, left);
	KUNIT_ASSERT_EQ(test, sg_alloc_table(sgt, nr, GFP_KERNEL), 0);
	left = row->npages;
	for_each_sgtable_sg(sgt, sg, i) {
		nr = length(row->entry, i, left);
		sg_set_page(sg, expected_page(row->npages - left, i),
			    nr * PAGE_SIZE, 0);
		left -= nr;
	}
}

static void make_runs(struct kunit *test, struct gift_umem *gift,
		      const struct index_row *row)
{
	unsigned long left = row->npages;
	unsigned int run, nr;

	for (run = 0; left; run++) {
		nr = length(row->run, run, left);
		KUNIT_ASSERT_EQ(test, gift_runs_reserve(&gift->runs, 1), 0);
		gift_runs_add(&gift->runs, kind_of_run(run), nr);
		left -= nr;
	}
}

/* Pages that are not where they belong, from page @first on. */
static unsigned long wrong_pages(const struct gift_umem *gift,
				 const struct index_row *row,
				 unsigned long first, unsigned long end)
{
	unsigned long at_entry = 0, at_run = 0, wrong = 0, page;
	unsigned int entry = 0, run = 0;
	enum ib_gift_page_kind kind;
	struct gift_cursor cursor;

	gift_cursor_set(&cursor, gift, first);
	for (page = 0; page < end; page++) {
		while (page >= at_entry + length(row->entry, entry, ULONG_MAX))
			at_entry += length(row->entry, entry++, ULONG_MAX);
		while (page >= at_run + length(row->run, run, ULONG_MAX))
			at_run += length(row->run, run++, ULONG_MAX);
		if (page < first)
			continue;
		wrong += gift_cursor_next(&cursor, gift, &kind) !=
			 expected_page(page, entry);
		wrong += kind != kind_of_run(run);
	}
	return wrong;
}

static void index_desc(const struct index_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(index, index_rows, index_desc);

static void every_page_is_found(struct kunit *test)
{
	const struct index_row *row = test->param_value;
	struct gift_umem *gift;
	unsigned long page;

	gift = kunit_kzalloc(test, sizeof(*gift), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, gift);
	gift->npages = row->npages;
	make_entries(test, gift, row);
	make_runs(test, gift, row);
	KUNIT_ASSERT_EQ(test, gift_index_build(gift), 0);

	KUNIT_EXPECT_EQ(test, wrong_pages(gift, row, 0, row->npages), 0);
	/* One by one, close to each mark and at a distance that is prime. */
	for (page = 0; page < row->npages; page++)
		if (page % 97 == 0 || (page + 2) % 1024 < 4 ||
		    page + 1 == row->npages)
			KUNIT_EXPECT_EQ_MSG(test,
					    wrong_pages(gift, row, page,
							page + 1),
					    0, "page %lu", page);
	gift_index_free(gift);
	gift_runs_free(&gift->runs);
	sg_free_table(&gift->umem.sgt_append.sgt);
}

static struct kunit_case index_cases[] = {
	KUNIT_CASE_PARAM(every_page_is_found, index_gen_params),
	{}
};

static struct kunit_suite index_suite = {
	.name = "ib_gift_index",
	.test_cases = index_cases,
};

kunit_test_suite(index_suite);
