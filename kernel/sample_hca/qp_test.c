// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the ranges of a queue pair's attributes, at each edge. Built in the
 * place of qp.c, whose table it is; no queue pair is made.
 */
#include "qp.c"

#include <kunit/test.h>

struct range_row {
	const char *name;
	int mask;
	struct ib_qp_attr attr;
	bool in_range;
};

#define GRH	.ah_attr.ah_flags = IB_AH_GRH

static const struct range_row range_rows[] = {
	{ "nothing", 0, {}, true },
	{ "port 0", IB_QP_PORT, { .port_num = 0 }, false },
	{ "port 1", IB_QP_PORT, { .port_num = 1 }, true },
	{ "port 2", IB_QP_PORT, { .port_num = 2 }, false },
	{ "P_Key index 0", IB_QP_PKEY_INDEX, { .pkey_index = 0 }, true },
	{ "P_Key index 1", IB_QP_PKEY_INDEX, { .pkey_index = 1 }, false },
	{ "MTU 0", IB_QP_PATH_MTU, { .path_mtu = 0 }, false },
	{ "MTU 256", IB_QP_PATH_MTU, { .path_mtu = IB_MTU_256 }, true },
	{ "MTU 4096", IB_QP_PATH_MTU, { .path_mtu = IB_MTU_4096 }, true },
	{ "MTU code 6", IB_QP_PATH_MTU, { .path_mtu = IB_MTU_4096 + 1 }, false },
	{ "timeout 0", IB_QP_TIMEOUT, { .timeout = 0 }, true },
	{ "timeout 31", IB_QP_TIMEOUT, { .timeout = 31 }, true },
	{ "timeout 32", IB_QP_TIMEOUT, { .timeout = 32 }, false },
	{ "retry count 7", IB_QP_RETRY_CNT, { .retry_cnt = 7 }, true },
	{ "retry count 8", IB_QP_RETRY_CNT, { .retry_cnt = 8 }, false },
	{ "RNR retry 7", IB_QP_RNR_RETRY, { .rnr_retry = 7 }, true },
	{ "RNR retry 8", IB_QP_RNR_RETRY, { .rnr_retry = 8 }, false },
	{ "RNR timer 31", IB_QP_MIN_RNR_TIMER, { .min_rnr_timer = 31 }, true },
	{ "RNR timer 32", IB_QP_MIN_RNR_TIMER, { .min_rnr_timer = 32 }, false },
	{ "reads as a requester, 0", IB_QP_MAX_QP_RD_ATOMIC,
	  { .max_rd_atomic = 0 }, true },
	{ "reads as a requester, most", IB_QP_MAX_QP_RD_ATOMIC,
	  { .max_rd_atomic = SHCA_MAX_RD_ATOMIC }, true },
	{ "reads as a requester, one more", IB_QP_MAX_QP_RD_ATOMIC,
	  { .max_rd_atomic = SHCA_MAX_RD_ATOMIC + 1 }, false },
	{ "reads as a responder, most", IB_QP_MAX_DEST_RD_ATOMIC,
	  { .max_dest_rd_atomic = SHCA_MAX_RD_ATOMIC }, true },
	{ "reads as a responder, one more", IB_QP_MAX_DEST_RD_ATOMIC,
	  { .max_dest_rd_atomic = SHCA_MAX_RD_ATOMIC + 1 }, false },
	{ "peer 0xffffff", IB_QP_DEST_QPN, { .dest_qp_num = 0xffffff }, true },
	{ "peer 0x1000000", IB_QP_DEST_QPN, { .dest_qp_num = 0x1000000 }, false },
	{ "address with GRH", IB_QP_AV, { GRH }, true },
	{ "address without GRH", IB_QP_AV, {}, false },
	{ "a value out of range that is not to be looked at", IB_QP_TIMEOUT,
	  { .timeout = 1, .port_num = 99, .retry_cnt = 99 }, true },
	{ "one of two out of range", IB_QP_TIMEOUT | IB_QP_RETRY_CNT,
	  { .timeout = 1, .retry_cnt = 99 }, false },
};

static void range_desc(const struct range_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(range, range_rows, range_desc);

static void attribute_in_range(struct kunit *test)
{
	const struct range_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, shca_qp_attr_in_range(&row->attr, row->mask),
			row->in_range);
}

static struct kunit_case range_cases[] = {
	KUNIT_CASE_PARAM(attribute_in_range, range_gen_params),
	{}
};

static struct kunit_suite range_suite = {
	.name = "sample_hca_qp_attr",
	.test_cases = range_cases,
};

kunit_test_suite(range_suite);
