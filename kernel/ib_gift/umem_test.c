// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: which ranges a registration takes, and how many pages they touch.
 * Built in the place of umem.c, whose rule it is. Registers nothing.
 */
#include "umem.c"

#include <kunit/test.h>

struct range_row {
	const char *name;
	unsigned long addr;
	size_t size;
	unsigned long expected;
};

#define P	PAGE_SIZE

static const struct range_row range_rows[] = {
	{ "one byte", 0x1000, 1, 1 },
	{ "the last byte of a page", 0x1000 + P - 1, 1, 1 },
	{ "two bytes across a page's end", 0x1000 + P - 1, 2, 2 },
	{ "one page", 0x1000, P, 1 },
	{ "one page, unaligned", 0x1001, P, 2 },
	{ "one page and a byte", 0x1000, P + 1, 2 },
	{ "a page, and a byte on each side", 0x1000 + P - 1, P + 2, 3 },
	{ "from address 0", 0, P, 1 },
	{ "no byte", 0x1000, 0, 0 },
	{ "no byte, unaligned", 0x1001, 0, 0 },
	{ "all there is", 0, ULONG_MAX, 0 },
	{ "the last byte of all", ULONG_MAX, 1, 0 },
	{ "wraps around to 0", -P, P, 0 },
	{ "wraps around", ULONG_MAX - 10, 100, 0 },
	{ "ends in the last page, which would wrap when rounded", -P, P - 1, 0 },
	{ "ends before the last page", -2 * P, P, 1 },
	{ "most pages that an unsigned int counts", 0, (size_t)UINT_MAX * P,
	  UINT_MAX },
	{ "one page more", 0, (size_t)UINT_MAX * P + 1, 0 },
};

static void range_desc(const struct range_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(range, range_rows, range_desc);

static void pages_of_a_range(struct kunit *test)
{
	const struct range_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, range_pages(row->addr, row->size), row->expected);
}

static struct kunit_case range_cases[] = {
	KUNIT_CASE_PARAM(pages_of_a_range, range_gen_params),
	{}
};

static struct kunit_suite range_suite = {
	.name = "ib_gift_range",
	.test_cases = range_cases,
};

kunit_test_suite(range_suite);
