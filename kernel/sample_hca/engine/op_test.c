// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the opcode table against a second writing of it: which QP types may
 * post what, with which flags, and what becomes of it. Also the access flags of
 * a bind. Built in the place of op.c, whose tables these are; carries nothing out.
 */
#include "op.c"

#include <kunit/test.h>

struct op_row {
	const char *name;
	u32 opcode;
	bool inline_data;
	u32 local_access;
	u32 completion;
	bool local;
	bool has_data;
	bool consumes_recv;
	u32 recv_flags;
};

#define LW	IB_ACCESS_LOCAL_WRITE

static const struct op_row op_rows[] = {
	{ "SEND", SHCA_WR_SEND, true, 0, SHCA_WC_SEND,
	  .has_data = true, .consumes_recv = true },
	{ "SEND_WITH_IMM", SHCA_WR_SEND_WITH_IMM, true, 0, SHCA_WC_SEND,
	  .has_data = true, .consumes_recv = true,
	  .recv_flags = SHCA_WC_WITH_IMM },
	{ "SEND_WITH_INV", SHCA_WR_SEND_WITH_INV, true, 0, SHCA_WC_SEND,
	  .has_data = true, .consumes_recv = true,
	  .recv_flags = SHCA_WC_WITH_INV },
	{ "RDMA_WRITE", SHCA_WR_RDMA_WRITE, true, 0, SHCA_WC_RDMA_WRITE,
	  .has_data = true },
	{ "RDMA_WRITE_WITH_IMM", SHCA_WR_RDMA_WRITE_WITH_IMM, true, 0,
	  SHCA_WC_RDMA_WRITE, .has_data = true, .consumes_recv = true,
	  .recv_flags = SHCA_WC_WITH_IMM },
	{ "RDMA_READ", SHCA_WR_RDMA_READ, false, LW, SHCA_WC_RDMA_READ,
	  .has_data = true },
	{ "BIND_MW", SHCA_WR_BIND_MW, false, 0, SHCA_WC_BIND_MW,
	  .local = true },
	{ "LOCAL_INV", SHCA_WR_LOCAL_INV, false, 0, SHCA_WC_LOCAL_INV,
	  .local = true },
};

static void op_desc(const struct op_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(op, op_rows, op_desc);

static void opcode_on_rc(struct kunit *test)
{
	const struct op_row *row = test->param_value;
	const struct shca_op *op = shca_op_find(row->opcode, IB_QPT_RC);
	u32 flags = SHCA_SEND_SIGNALED | SHCA_SEND_SOLICITED | SHCA_SEND_FENCE;

	KUNIT_ASSERT_NOT_NULL(test, op);
	KUNIT_EXPECT_STREQ(test, op->name, row->name);
	KUNIT_EXPECT_NOT_NULL(test, op->run);
	KUNIT_EXPECT_EQ(test, op->send_flags,
			flags | (row->inline_data ? SHCA_SEND_INLINE : 0));
	KUNIT_EXPECT_EQ(test, op->local_access, row->local_access);
	KUNIT_EXPECT_EQ(test, (u32)op->completion, row->completion);
	KUNIT_EXPECT_EQ(test, op->local, row->local);
	KUNIT_EXPECT_EQ(test, op->has_data, row->has_data);
	KUNIT_EXPECT_EQ(test, op->consumes_recv, row->consumes_recv);
	KUNIT_EXPECT_EQ(test, op->recv_flags, row->recv_flags);
}

static void every_opcode_has_its_row(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(op_rows), ARRAY_SIZE(shca_ops));
}

/*
 * InfiniBand Architecture, transport functions by service: a send with
 * invalidate, a bind and a local invalidate are a reliable connection's.
 */
static const enum ib_qp_type not_offered[] = {
	IB_QPT_SMI, IB_QPT_GSI, IB_QPT_UC, IB_QPT_UD, IB_QPT_RAW_IPV6,
	IB_QPT_RAW_ETHERTYPE, IB_QPT_RAW_PACKET, IB_QPT_XRC_INI,
	IB_QPT_XRC_TGT, IB_QPT_DRIVER,
};

static void no_other_qp_type_posts(struct kunit *test)
{
	int type, i;

	for (type = 0; type < ARRAY_SIZE(not_offered); type++)
		for (i = 0; i < ARRAY_SIZE(op_rows); i++)
			KUNIT_EXPECT_NULL_MSG(test, shca_op_find(op_rows[i].opcode,
								 not_offered[type]),
					      "%s on QP type %d",
					      op_rows[i].name,
					      not_offered[type]);
}

static void no_such_opcode(struct kunit *test)
{
	static const u32 opcodes[] = {
		SHCA_WR_LOCAL_INV + 1, 9, 255, 256, 0x7fffffff, 0x80000000,
		U32_MAX,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++)
		KUNIT_EXPECT_NULL_MSG(test, shca_op_find(opcodes[i], IB_QPT_RC),
				      "opcode %#x", opcodes[i]);
}

/* ---- access flags of a bind ---- */

struct bind_access_row {
	const char *name;
	u32 abi;
	u32 ib;
	bool known;
};

static const struct bind_access_row bind_access_rows[] = {
	{ "none", 0, 0, true },
	{ "write", SHCA_BIND_REMOTE_WRITE, IB_ACCESS_REMOTE_WRITE, true },
	{ "read", SHCA_BIND_REMOTE_READ, IB_ACCESS_REMOTE_READ, true },
	{ "atomic", SHCA_BIND_REMOTE_ATOMIC, IB_ACCESS_REMOTE_ATOMIC, true },
	{ "zero-based", SHCA_BIND_ZERO_BASED, IB_ZERO_BASED, true },
	{ "all", SHCA_BIND_REMOTE_WRITE | SHCA_BIND_REMOTE_READ |
	  SHCA_BIND_REMOTE_ATOMIC | SHCA_BIND_ZERO_BASED,
	  IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
	  IB_ACCESS_REMOTE_ATOMIC | IB_ZERO_BASED, true },
	{ "the next bit", 1 << 4, 0, false },
	{ "the highest bit beside a known one", BIT(31) | SHCA_BIND_REMOTE_READ,
	  IB_ACCESS_REMOTE_READ, false },
	{ "the kernel's own value of zero-based", IB_ZERO_BASED, 0, false },
};

static void bind_access_desc(const struct bind_access_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bind_access, bind_access_rows, bind_access_desc);

static void access_of_a_bind(struct kunit *test)
{
	const struct bind_access_row *row = test->param_value;
	u32 ib = U32_MAX;

	KUNIT_EXPECT_EQ(test, shca_op_bind_access(row->abi, &ib), row->known);
	if (row->known)
		KUNIT_EXPECT_EQ(test, ib, row->ib);
}

static struct kunit_case op_cases[] = {
	KUNIT_CASE_PARAM(opcode_on_rc, op_gen_params),
	KUNIT_CASE(every_opcode_has_its_row),
	KUNIT_CASE(no_other_qp_type_posts),
	KUNIT_CASE(no_such_opcode),
	KUNIT_CASE_PARAM(access_of_a_bind, bind_access_gen_params),
	{}
};

static struct kunit_suite op_suite = {
	.name = "sample_hca_op",
	.test_cases = op_cases,
};

kunit_test_suite(op_suite);
