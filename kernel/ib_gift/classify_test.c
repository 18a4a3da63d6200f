// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: what is held and what is pinned, fact by fact: the contract's list of
 * page kinds. Looks at no page.
 */
#include <kunit/test.h>

#include "gift.h"

struct kind_row {
	const char *name;
	struct gift_page_facts facts;
	enum ib_gift_page_kind expected;
};

#define MAPPED(where)	.mapping = GIFT_MAPPING_##where

static const struct kind_row kind_rows[] = {
	/* Anonymous memory: the number of owners decides. */
	{ "anonymous, mapped once",
	  { .anon = true, .mapcount = 1 }, IB_GIFT_PAGE_PINNED },
	{ "anonymous, mapped twice",
	  { .anon = true, .mapcount = 2 }, IB_GIFT_PAGE_SHARED },
	{ "anonymous, mapped very often",
	  { .anon = true, .mapcount = 100000 }, IB_GIFT_PAGE_SHARED },
	{ "anonymous, just unmapped by reclaim",
	  { .anon = true, .mapcount = 0 }, IB_GIFT_PAGE_PINNED },
	{ "anonymous, mapped once, in a private file's mapping",
	  { .anon = true, .mapcount = 1, MAPPED(PRIVATE_FILE) },
	  IB_GIFT_PAGE_PINNED },
	{ "anonymous, mapped twice, in a private file's mapping",
	  { .anon = true, .mapcount = 2, MAPPED(PRIVATE_FILE) },
	  IB_GIFT_PAGE_SHARED },

	/* KSM: merged is shared, however few map it. */
	{ "KSM, mapped once",
	  { .anon = true, .ksm = true, .mapcount = 1 }, IB_GIFT_PAGE_KSM },
	{ "KSM, mapped often",
	  { .anon = true, .ksm = true, .mapcount = 50 }, IB_GIFT_PAGE_KSM },

	/* Never held, whatever else is true of it. */
	{ "hugetlb, mapped once",
	  { .hugetlb = true, .anon = true, .mapcount = 1 }, IB_GIFT_PAGE_PINNED },
	{ "hugetlb, shared by fork",
	  { .hugetlb = true, .anon = true, .mapcount = 2 }, IB_GIFT_PAGE_PINNED },
	{ "hugetlb, in the cache of a private mapping",
	  { .hugetlb = true, MAPPED(PRIVATE_FILE) }, IB_GIFT_PAGE_PINNED },
	{ "device memory, anonymous and shared",
	  { .device = true, .anon = true, .mapcount = 2 }, IB_GIFT_PAGE_PINNED },
	{ "device memory in a private mapping",
	  { .device = true, MAPPED(PRIVATE_FILE) }, IB_GIFT_PAGE_PINNED },

	/* Zero pages. */
	{ "zero page in anonymous memory",
	  { .zero = true, MAPPED(PRIVATE_ANON) }, IB_GIFT_PAGE_ZERO },
	{ "zero page in a private file's mapping",
	  { .zero = true, MAPPED(PRIVATE_FILE) }, IB_GIFT_PAGE_ZERO },
	{ "zero page in a shared mapping",
	  { .zero = true, MAPPED(SHARED) }, IB_GIFT_PAGE_PINNED },
	{ "zero page in a mapping that is gone",
	  { .zero = true, MAPPED(UNKNOWN) }, IB_GIFT_PAGE_PINNED },
	{ "huge zero page",
	  { MAPPED(PRIVATE_ANON) }, IB_GIFT_PAGE_HUGE_ZERO },

	/* The page cache. */
	{ "page cache in a private mapping",
	  { MAPPED(PRIVATE_FILE) }, IB_GIFT_PAGE_FILE },
	{ "page cache in a shared mapping",
	  { MAPPED(SHARED) }, IB_GIFT_PAGE_PINNED },
	{ "page cache in a mapping that is gone",
	  { MAPPED(UNKNOWN) }, IB_GIFT_PAGE_PINNED },
	{ "page cache, mapped by many, in a shared mapping",
	  { .mapcount = 7, MAPPED(SHARED) }, IB_GIFT_PAGE_PINNED },
};

static void kind_desc(const struct kind_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(kind, kind_rows, kind_desc);

static void page_kind(struct kunit *test)
{
	const struct kind_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, (int)gift_kind(&row->facts), (int)row->expected);
}

/* In doubt a page is pinned: that is what stock would have done. */
static void no_fact_is_pinned(struct kunit *test)
{
	const struct gift_page_facts nothing = {};

	KUNIT_EXPECT_EQ(test, (int)gift_kind(&nothing), IB_GIFT_PAGE_PINNED);
}

/* Every combination of facts: hugetlb and device memory are never held. */
static void never_held(struct kunit *test)
{
	unsigned int bits, mapping;

	for (bits = 0; bits < 64; bits++) {
		for (mapping = 0; mapping <= GIFT_MAPPING_PRIVATE_FILE; mapping++) {
			const struct gift_page_facts facts = {
				.hugetlb = bits & 1,
				.device = bits & 2,
				.anon = bits & 4,
				.ksm = bits & 8,
				.zero = bits & 16,
				.mapcount = bits & 32 ? 2 : 1,
				.mapping = mapping,
			};
			int kind = gift_kind(&facts);

			KUNIT_ASSERT_GE(test, kind, 0);
			KUNIT_ASSERT_LT(test, kind, (int)IB_GIFT_PAGE_KINDS);
			if (facts.hugetlb || facts.device)
				KUNIT_EXPECT_EQ_MSG(test, kind,
						    (int)IB_GIFT_PAGE_PINNED,
						    "facts %#x mapping %u",
						    bits, mapping);
		}
	}
}

static struct kunit_case classify_cases[] = {
	KUNIT_CASE_PARAM(page_kind, kind_gen_params),
	KUNIT_CASE(no_fact_is_pinned),
	KUNIT_CASE(never_held),
	{}
};

static struct kunit_suite classify_suite = {
	.name = "ib_gift_classify",
	.test_cases = classify_cases,
};

kunit_test_suite(classify_suite);
