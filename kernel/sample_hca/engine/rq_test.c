// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: which receive work requests are taken, whatever a process wrote. Built
 * in the place of rq.c, whose check it is; fills no memory.
 */
#include "rq.c"

#include <kunit/test.h>

struct recv_row {
	const char *name;
	u32 max_sge;
	u32 num_sge;
	u32 reserved;
	bool taken;
};

static const struct recv_row recv_rows[] = {
	{ "no piece", 3, 0, 0, true },
	{ "one piece", 3, 1, 0, true },
	{ "as many pieces as the QP has", 3, 3, 0, true },
	{ "a piece too many", 3, 4, 0, false },
	{ "far too many pieces", 3, U32_MAX, 0, false },
	{ "a number that is negative elsewhere", 3, 1U << 31, 0, false },
	{ "no piece where none may be", 0, 0, 0, true },
	{ "a piece where none may be", 0, 1, 0, false },
	{ "a reserved field", 3, 1, 1, false },
	{ "a reserved field, its highest bit", 3, 1, 1U << 31, false },
	{ "a reserved field and no piece", 3, 0, 1, false },
};

static void recv_desc(const struct recv_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(recv, recv_rows, recv_desc);

static void recv_wellformed(struct kunit *test)
{
	const struct recv_row *row = test->param_value;
	struct shca_rq *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rq);
	rq->max_sge = row->max_sge;
	rq->wqe.num_sge = row->num_sge;
	rq->wqe.reserved = row->reserved;
	KUNIT_EXPECT_EQ(test, shca_rq_wellformed(rq), row->taken);
}

static struct kunit_case rq_cases[] = {
	KUNIT_CASE_PARAM(recv_wellformed, recv_gen_params),
	{}
};

static struct kunit_suite rq_suite = {
	.name = "sample_hca_rq",
	.test_cases = rq_cases,
};

kunit_test_suite(rq_suite);
