// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: which access flags IB_ACCESS_GIFT goes with. Registers nothing.
 */
#include <kunit/test.h>

#include "ib_gift.h"

struct access_row {
	const char *name;
	int access;
	int expected;
};

#define GIFT_READ	(IB_ACCESS_GIFT | IB_ACCESS_REMOTE_READ)
/* Every flag that any kernel knows, GIFT aside. */
#define OTHERS	(BIT(29) - 1)

static const struct access_row access_rows[] = {
	{ "GIFT alone, which is local read", IB_ACCESS_GIFT, 0 },
	{ "GIFT and REMOTE_READ", GIFT_READ, 0 },
	{ "GIFT and ZERO_BASED", GIFT_READ | IB_ZERO_BASED, 0 },
	{ "GIFT and HUGETLB", GIFT_READ | IB_ACCESS_HUGETLB, 0 },
	{ "GIFT and RELAXED_ORDERING", GIFT_READ | IB_ACCESS_RELAXED_ORDERING, 0 },
	{ "GIFT and every other optional flag",
	  IB_ACCESS_GIFT | IB_ACCESS_OPTIONAL, 0 },
	{ "GIFT and LOCAL_WRITE", IB_ACCESS_GIFT | IB_ACCESS_LOCAL_WRITE,
	  -EINVAL },
	{ "GIFT and REMOTE_WRITE", IB_ACCESS_GIFT | IB_ACCESS_REMOTE_WRITE,
	  -EINVAL },
	{ "GIFT and REMOTE_ATOMIC", IB_ACCESS_GIFT | IB_ACCESS_REMOTE_ATOMIC,
	  -EINVAL },
	{ "GIFT and MW_BIND", IB_ACCESS_GIFT | IB_ACCESS_MW_BIND, -EINVAL },
	{ "GIFT and ON_DEMAND", IB_ACCESS_GIFT | IB_ACCESS_ON_DEMAND, -EINVAL },
	{ "a legal flag beside an illegal one changes nothing",
	  GIFT_READ | IB_ACCESS_RELAXED_ORDERING | IB_ACCESS_LOCAL_WRITE, -EINVAL },
	{ "GIFT and LOCAL_WRITE and REMOTE_WRITE",
	  GIFT_READ | IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, -EINVAL },
	{ "GIFT and everything", IB_ACCESS_GIFT | OTHERS, -EINVAL },
	{ "no flag", 0, 0 },
	{ "LOCAL_WRITE without GIFT", IB_ACCESS_LOCAL_WRITE, 0 },
	{ "ON_DEMAND without GIFT", IB_ACCESS_ON_DEMAND, 0 },
	{ "MW_BIND without GIFT", IB_ACCESS_MW_BIND, 0 },
	{ "everything without GIFT", OTHERS, 0 },
};

static void access_desc(const struct access_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(access, access_rows, access_desc);

static void check_access(struct kunit *test)
{
	const struct access_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, ib_gift_check_access(row->access), row->expected);
}

/*
 * A stock ib_core lets only the optional range through to a driver, and uverbs
 * carries the flags in an int.
 */
static void flag_has_its_place(struct kunit *test)
{
	int known = IB_ACCESS_SUPPORTED & ~IB_ACCESS_OPTIONAL;

	KUNIT_EXPECT_EQ(test, (int)IB_ACCESS_GIFT, 1 << 29);
	KUNIT_EXPECT_EQ(test, (int)IB_ACCESS_GIFT,
			(int)IB_UVERBS_ACCESS_OPTIONAL_LAST);
	KUNIT_EXPECT_TRUE(test, IB_ACCESS_GIFT & IB_ACCESS_OPTIONAL);
	KUNIT_EXPECT_EQ(test, IB_ACCESS_GIFT & known, 0);
	KUNIT_EXPECT_NE(test, (int)IB_ACCESS_GIFT,
			(int)IB_ACCESS_RELAXED_ORDERING);
}

static struct kunit_case access_cases[] = {
	KUNIT_CASE_PARAM(check_access, access_gen_params),
	KUNIT_CASE(flag_has_its_place),
	{}
};

static struct kunit_suite access_suite = {
	.name = "ib_gift_access",
	.test_cases = access_cases,
};

kunit_test_suite(access_suite);
