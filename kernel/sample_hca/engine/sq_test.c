// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: which work queue entries the send side takes, whatever a process wrote.
 * Built in the place of sq.c, whose check it is; carries nothing out.
 */
#include "sq.c"

#include <kunit/test.h>

#define TEST_MAX_SGE	3
#define TEST_MAX_INLINE	48

struct wqe_row {
	const char *name;
	u32 opcode;
	u32 flags;
	u32 num_sge;
	u32 inline_length;
	u32 reserved;
	bool taken;
};

#define INL	SHCA_SEND_INLINE

static const struct wqe_row wqe_rows[] = {
	{ "SEND of nothing", SHCA_WR_SEND, 0, 0, 0, 0, true },
	{ "SEND, every flag but inline", SHCA_WR_SEND,
	  SHCA_SEND_SIGNALED | SHCA_SEND_SOLICITED | SHCA_SEND_FENCE,
	  1, 0, 0, true },
	{ "SEND, as many pieces as the QP has", SHCA_WR_SEND, 0, 3, 0, 0, true },
	{ "SEND, a piece too many", SHCA_WR_SEND, 0, 4, 0, 0, false },
	{ "SEND, far too many pieces", SHCA_WR_SEND, 0, U32_MAX, 0, 0, false },
	{ "SEND, a length that only inline data has", SHCA_WR_SEND, 0, 1, 9999,
	  0, true },
	{ "SEND inline, nothing", SHCA_WR_SEND, INL, 0, 0, 0, true },
	{ "SEND inline, as much as the QP has", SHCA_WR_SEND, INL, 0, 48, 0,
	  true },
	{ "SEND inline, a byte too much", SHCA_WR_SEND, INL, 0, 49, 0, false },
	{ "SEND inline, far too much", SHCA_WR_SEND, INL, 0, U32_MAX, 0, false },
	{ "SEND inline with a piece", SHCA_WR_SEND, INL, 1, 8, 0, false },
	{ "SEND, an unknown flag", SHCA_WR_SEND, 1 << 4, 0, 0, 0, false },
	{ "SEND, the highest flag", SHCA_WR_SEND, 1U << 31, 0, 0, 0, false },
	{ "SEND, a reserved field", SHCA_WR_SEND, 0, 1, 0, 1, false },
	{ "SEND_WITH_IMM", SHCA_WR_SEND_WITH_IMM, 0, 2, 0, 0, true },
	{ "SEND_WITH_INV", SHCA_WR_SEND_WITH_INV, 0, 2, 0, 0, true },
	{ "SEND_WITH_INV inline", SHCA_WR_SEND_WITH_INV, INL, 0, 8, 0, true },
	{ "RDMA_WRITE inline", SHCA_WR_RDMA_WRITE, INL, 0, 8, 0, true },
	{ "RDMA_WRITE_WITH_IMM, a piece too many", SHCA_WR_RDMA_WRITE_WITH_IMM,
	  0, 4, 0, 0, false },
	{ "RDMA_READ", SHCA_WR_RDMA_READ, 0, 3, 0, 0, true },
	{ "RDMA_READ inline", SHCA_WR_RDMA_READ, INL, 0, 8, 0, false },
	{ "BIND_MW", SHCA_WR_BIND_MW, SHCA_SEND_SIGNALED, 0, 0, 0, true },
	{ "BIND_MW with data", SHCA_WR_BIND_MW, 0, 1, 0, 0, false },
	{ "BIND_MW inline", SHCA_WR_BIND_MW, INL, 0, 0, 0, false },
	{ "LOCAL_INV", SHCA_WR_LOCAL_INV, SHCA_SEND_FENCE, 0, 0, 0, true },
	{ "LOCAL_INV with data", SHCA_WR_LOCAL_INV, 0, 1, 0, 0, false },
	{ "LOCAL_INV, a reserved field", SHCA_WR_LOCAL_INV, 0, 0, 0, 1, false },
	{ "no such opcode", SHCA_WR_LOCAL_INV + 1, 0, 0, 0, 0, false },
	{ "no such opcode by far", U32_MAX, 0, 0, 0, 0, false },
};

static void wqe_desc(const struct wqe_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wqe, wqe_rows, wqe_desc);

static struct shca_sq *test_sq(struct kunit *test)
{
	struct shca_sq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sq);
	sq->max_sge = TEST_MAX_SGE;
	sq->max_inline = TEST_MAX_INLINE;
	return sq;
}

static void wqe_wellformed(struct kunit *test)
{
	const struct wqe_row *row = test->param_value;
	struct shca_sq *sq = test_sq(test);

	sq->wqe.opcode = row->opcode;
	sq->wqe.flags = row->flags;
	sq->wqe.num_sge = row->num_sge;
	sq->wqe.inline_length = row->inline_length;
	sq->wqe.reserved = row->reserved;
	KUNIT_EXPECT_EQ(test,
			shca_sq_wellformed(sq, shca_op_find(row->opcode,
							    IB_QPT_RC)),
			row->taken);
}

/* ---- bytes that an entry asks to move, before anybody has checked it ---- */

struct bytes_row {
	const char *name;
	u32 flags;
	u32 num_sge;
	u32 length[TEST_MAX_SGE];
	u64 expected;
};

static const struct bytes_row bytes_rows[] = {
	{ "no piece", 0, 0, { 7, 7, 7 }, 0 },
	{ "one piece", 0, 1, { 7, 9, 11 }, 7 },
	{ "every piece", 0, 3, { 7, 9, 11 }, 27 },
	{ "more pieces than there may be", 0, U32_MAX, { 7, 9, 11 }, 27 },
	{ "a sum beyond 32 bits", 0, 3, { U32_MAX, U32_MAX, U32_MAX },
	  3ULL * U32_MAX },
	{ "inline data is not counted", INL, 3, { 7, 9, 11 }, 0 },
};

static void bytes_desc(const struct bytes_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bytes, bytes_rows, bytes_desc);

static void bytes_of_an_entry(struct kunit *test)
{
	const struct bytes_row *row = test->param_value;
	struct shca_sq *sq = test_sq(test);
	int i;

	sq->wqe.flags = row->flags;
	sq->wqe.num_sge = row->num_sge;
	for (i = 0; i < TEST_MAX_SGE; i++)
		shca_sq_sges(sq)[i].length = row->length[i];
	KUNIT_EXPECT_EQ(test, shca_sq_bytes(sq), row->expected);
}

static struct kunit_case sq_cases[] = {
	KUNIT_CASE_PARAM(wqe_wellformed, wqe_gen_params),
	KUNIT_CASE_PARAM(bytes_of_an_entry, bytes_gen_params),
	{}
};

static struct kunit_suite sq_suite = {
	.name = "sample_hca_sq",
	.test_cases = sq_cases,
};

kunit_test_suite(sq_suite);
