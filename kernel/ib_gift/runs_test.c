// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the bookkeeping of how pages were taken gives back, in page order,
 * exactly what was put in. Touches no page.
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "gift.h"

/* What one run can count; see runs.c. */
#define RUN_MAX		((1U << 29) - 1)
#define ADDS_MAX	8

struct run {
	enum ib_gift_page_kind kind;
	unsigned int pages;
};

/* Lists end with a run of no pages. */
struct runs_row {
	const char *name;
	struct run add[ADDS_MAX];
	struct run expected[ADDS_MAX];
};

#define PIN	IB_GIFT_PAGE_PINNED
#define ZERO	IB_GIFT_PAGE_ZERO
#define KSM	IB_GIFT_PAGE_KSM
#define CACHE	IB_GIFT_PAGE_FILE

static const struct runs_row runs_rows[] = {
	{ "nothing", {}, {} },
	{ "one page", { { ZERO, 1 } }, { { ZERO, 1 } } },
	{ "one batch", { { PIN, GIFT_BATCH } }, { { PIN, GIFT_BATCH } } },
	{ "two of a kind are one",
	  { { PIN, 3 }, { PIN, 4 } }, { { PIN, 7 } } },
	{ "many batches of a kind are one",
	  { { CACHE, 512 }, { CACHE, 512 }, { CACHE, 512 }, { CACHE, 1 } },
	  { { CACHE, 1537 } } },
	{ "two kinds are two", { { PIN, 3 }, { ZERO, 4 } },
	  { { PIN, 3 }, { ZERO, 4 } } },
	{ "kinds that take turns stay apart",
	  { { PIN, 1 }, { ZERO, 1 }, { PIN, 1 }, { ZERO, 1 }, { KSM, 1 } },
	  { { PIN, 1 }, { ZERO, 1 }, { PIN, 1 }, { ZERO, 1 }, { KSM, 1 } } },
	{ "only the last run grows",
	  { { PIN, 2 }, { ZERO, 2 }, { ZERO, 2 }, { PIN, 2 }, { PIN, 2 } },
	  { { PIN, 2 }, { ZERO, 4 }, { PIN, 4 } } },
	{ "the first and the last kind",
	  { { 0, 9 }, { IB_GIFT_PAGE_KINDS - 1, 9 } },
	  { { 0, 9 }, { IB_GIFT_PAGE_KINDS - 1, 9 } } },
	{ "a run is filled to its last page",
	  { { CACHE, RUN_MAX - 512 }, { CACHE, 512 } }, { { CACHE, RUN_MAX } } },
	{ "what does not fit into a run begins the next",
	  { { CACHE, RUN_MAX - 511 }, { CACHE, 512 }, { CACHE, 5 } },
	  { { CACHE, RUN_MAX }, { CACHE, 6 } } },
	{ "after a full run comes the next",
	  { { CACHE, RUN_MAX }, { CACHE, 1 }, { PIN, 1 } },
	  { { CACHE, RUN_MAX }, { CACHE, 1 }, { PIN, 1 } } },
};

static void runs_desc(const struct runs_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(runs, runs_rows, runs_desc);

static void add_and_read_back(struct kunit *test)
{
	const struct runs_row *row = test->param_value;
	struct gift_runs runs = {};
	unsigned int i;

	for (i = 0; i < ADDS_MAX && row->add[i].pages; i++) {
		KUNIT_ASSERT_EQ(test, gift_runs_reserve(&runs, 1), 0);
		gift_runs_add(&runs, row->add[i].kind, row->add[i].pages);
	}
	for (i = 0; i < runs.nr && i < ADDS_MAX; i++) {
		KUNIT_EXPECT_EQ(test, (int)gift_run_kind(&runs, i),
				(int)row->expected[i].kind);
		KUNIT_EXPECT_EQ(test, gift_run_pages(&runs, i),
				row->expected[i].pages);
	}
	KUNIT_EXPECT_EQ(test, i == ADDS_MAX ? 0 : row->expected[i].pages, 0);
	gift_runs_free(&runs);
	KUNIT_EXPECT_PTR_EQ(test, runs.run, (u32 *)NULL);
	KUNIT_EXPECT_EQ(test, runs.nr, 0);
}

#define MANY_PAGES	20000

/* Page by page the same as an array with one entry a page. */
static void many_runs(struct kunit *test)
{
	unsigned int page = 0, at = 0, wrong = 0, run, n;
	struct gift_runs runs = {};
	struct rnd_state rnd;
	u8 *kinds;

	kinds = kunit_kzalloc(test, MANY_PAGES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, kinds);
	prandom_seed_state(&rnd, 1);
	while (page < MANY_PAGES) {
		u8 kind = prandom_u32_state(&rnd) % IB_GIFT_PAGE_KINDS;

		n = min(1 + prandom_u32_state(&rnd) % 9, MANY_PAGES - page);
		KUNIT_ASSERT_EQ(test, gift_runs_reserve(&runs, 1), 0);
		gift_runs_add(&runs, kind, n);
		memset(kinds + page, kind, n);
		page += n;
	}
	for (run = 0; run < runs.nr; run++) {
		n = gift_run_pages(&runs, run);
		KUNIT_ASSERT_LE(test, at + n, MANY_PAGES);
		while (n--)
			wrong += kinds[at++] != gift_run_kind(&runs, run);
		if (run)
			wrong += gift_run_kind(&runs, run) ==
				 gift_run_kind(&runs, run - 1);
	}
	KUNIT_EXPECT_EQ(test, at, MANY_PAGES);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	gift_runs_free(&runs);
}

/* Reserving moves what is there and never shrinks. */
static void reserve_keeps_what_is_there(struct kunit *test)
{
	struct gift_runs runs = {};
	unsigned int i;

	KUNIT_ASSERT_EQ(test, gift_runs_reserve(&runs, 0), 0);
	KUNIT_EXPECT_EQ(test, runs.nr, 0);
	for (i = 0; i < 100; i++) {
		KUNIT_ASSERT_EQ(test, gift_runs_reserve(&runs, 1 + i % 50), 0);
		KUNIT_EXPECT_GE(test, runs.room, runs.nr + 1 + i % 50);
		gift_runs_add(&runs, i % 2 ? PIN : ZERO, i + 1);
	}
	KUNIT_ASSERT_EQ(test, runs.nr, 100);
	for (i = 0; i < 100; i++)
		KUNIT_EXPECT_EQ(test, gift_run_pages(&runs, i), i + 1);
	gift_runs_free(&runs);
}

static struct kunit_case runs_cases[] = {
	KUNIT_CASE_PARAM(add_and_read_back, runs_gen_params),
	KUNIT_CASE(many_runs),
	KUNIT_CASE(reserve_keeps_what_is_there),
	{}
};

static struct kunit_suite runs_suite = {
	.name = "ib_gift_runs",
	.test_cases = runs_cases,
};

kunit_test_suite(runs_suite);
