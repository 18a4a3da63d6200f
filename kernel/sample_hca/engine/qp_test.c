// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: what the InfiniBand Architecture lays down in tables for a queue pair
 * of type RC: encoded times, and the state transitions with the attributes that
 * each needs and takes. The transitions are ib_core's rule, by which the driver
 * goes; here is the specification's table to hold against it.
 */
#include <kunit/test.h>
#include <linux/jiffies.h>

#include "engine.h"

#define JIFFY_NS	((u64)NSEC_PER_SEC / HZ)

/* ---- RNR NAK timer, table "Encoding for RNR NAK Timer Field" ---- */

struct rnr_row {
	u8 encoded;
	u32 hundredths_ms;
};

static const struct rnr_row rnr_rows[] = {
	{ 0, 65536 }, { 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 }, { 5, 6 },
	{ 6, 8 }, { 7, 12 }, { 8, 16 }, { 9, 24 }, { 10, 32 }, { 11, 48 },
	{ 12, 64 }, { 13, 96 }, { 14, 128 }, { 15, 192 }, { 16, 256 },
	{ 17, 384 }, { 18, 512 }, { 19, 768 }, { 20, 1024 }, { 21, 1536 },
	{ 22, 2048 }, { 23, 3072 }, { 24, 4096 }, { 25, 6144 }, { 26, 8192 },
	{ 27, 12288 }, { 28, 16384 }, { 29, 24576 }, { 30, 32768 },
	{ 31, 49152 },
};

static void rnr_desc(const struct rnr_row *row, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "code %u is %u.%02u ms",
		 row->encoded, row->hundredths_ms / 100,
		 row->hundredths_ms % 100);
}

KUNIT_ARRAY_PARAM(rnr, rnr_rows, rnr_desc);

/* Never earlier than asked for, and at most two ticks later. */
static void rnr_delay(struct kunit *test)
{
	const struct rnr_row *row = test->param_value;
	u64 asked = row->hundredths_ms * 10000ULL;
	u64 got = shca_rnr_delay(row->encoded) * JIFFY_NS;

	KUNIT_EXPECT_GE(test, got, asked);
	KUNIT_EXPECT_LE(test, got, asked + 2 * JIFFY_NS);
}

/* Code 0 is the longest; from 1 on every second code is twice as long. */
static void rnr_table_is_regular(struct kunit *test)
{
	int i;

	KUNIT_ASSERT_EQ(test, ARRAY_SIZE(rnr_rows), 32);
	for (i = 4; i < 32; i++)
		KUNIT_EXPECT_EQ(test, rnr_rows[i].hundredths_ms,
				2 * rnr_rows[i - 2].hundredths_ms);
	for (i = 1; i < 32; i++)
		KUNIT_EXPECT_LT(test, shca_rnr_delay(i), shca_rnr_delay(0));
	for (i = 2; i < 32; i++)
		KUNIT_EXPECT_GE(test, shca_rnr_delay(i), shca_rnr_delay(i - 1));
}

/* ---- local ACK timeout: 4.096 us * 2^n, and up to four times that ---- */

static const u8 ack_codes[] = {
	1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
	21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
};

static void ack_desc(const u8 *code, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "code %u is 4.096 us * 2^%u",
		 *code, *code);
}

KUNIT_ARRAY_PARAM(ack, ack_codes, ack_desc);

static void ack_delay(struct kunit *test)
{
	const u8 *code = test->param_value;
	u64 t = 4096ULL << *code;
	u64 got = shca_ack_delay(*code) * JIFFY_NS;

	KUNIT_EXPECT_GE(test, got, t);
	KUNIT_EXPECT_LE(test, got, 4 * t + 2 * JIFFY_NS);
}

/* ---- state transitions ---- */

/**
 * struct transition_row - a transition that RC has
 * @from: state
 * @to: state
 * @required: attributes without which it is refused
 * @optional: attributes that may come with it
 */
struct transition_row {
	enum ib_qp_state from;
	enum ib_qp_state to;
	int required;
	int optional;
};

static const struct transition_row transition_rows[] = {
	{ IB_QPS_RESET, IB_QPS_INIT,
	  IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS, 0 },
	{ IB_QPS_INIT, IB_QPS_INIT,
	  0, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS },
	{ IB_QPS_INIT, IB_QPS_RTR,
	  IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
	  IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	  IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX },
	{ IB_QPS_RTR, IB_QPS_RTS,
	  IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
	  IB_QP_MAX_QP_RD_ATOMIC,
	  IB_QP_CUR_STATE | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS |
	  IB_QP_MIN_RNR_TIMER | IB_QP_PATH_MIG_STATE },
	{ IB_QPS_RTS, IB_QPS_RTS,
	  0, IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_ALT_PATH |
	  IB_QP_PATH_MIG_STATE | IB_QP_MIN_RNR_TIMER },
	{ IB_QPS_RTS, IB_QPS_SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY },
	{ IB_QPS_SQD, IB_QPS_RTS,
	  0, IB_QP_CUR_STATE | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS |
	  IB_QP_MIN_RNR_TIMER | IB_QP_PATH_MIG_STATE },
	{ IB_QPS_SQD, IB_QPS_SQD,
	  0, IB_QP_PORT | IB_QP_AV | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
	  IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC |
	  IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX |
	  IB_QP_MIN_RNR_TIMER | IB_QP_PATH_MIG_STATE },

	/* From everywhere, and with nothing else. */
	{ IB_QPS_RESET, IB_QPS_RESET },
	{ IB_QPS_INIT, IB_QPS_RESET }, { IB_QPS_INIT, IB_QPS_ERR },
	{ IB_QPS_RTR, IB_QPS_RESET }, { IB_QPS_RTR, IB_QPS_ERR },
	{ IB_QPS_RTS, IB_QPS_RESET }, { IB_QPS_RTS, IB_QPS_ERR },
	{ IB_QPS_SQD, IB_QPS_RESET }, { IB_QPS_SQD, IB_QPS_ERR },
	{ IB_QPS_ERR, IB_QPS_RESET }, { IB_QPS_ERR, IB_QPS_ERR },
};

/* SQE is left out: an RC queue pair never gets there. */
static const enum ib_qp_state states[] = {
	IB_QPS_RESET, IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS, IB_QPS_SQD,
	IB_QPS_ERR,
};

static const char * const state_names[] = {
	[IB_QPS_RESET] = "RESET", [IB_QPS_INIT] = "INIT", [IB_QPS_RTR] = "RTR",
	[IB_QPS_RTS] = "RTS", [IB_QPS_SQD] = "SQD", [IB_QPS_ERR] = "ERR",
};

static void transition_desc(const struct transition_row *row, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s to %s",
		 state_names[row->from], state_names[row->to]);
}

KUNIT_ARRAY_PARAM(transition, transition_rows, transition_desc);

static bool allowed(enum ib_qp_state from, enum ib_qp_state to, int mask)
{
	return ib_modify_qp_is_ok(from, to, IB_QPT_RC, mask | IB_QP_STATE);
}

static void transition_with_its_attributes(struct kunit *test)
{
	const struct transition_row *row = test->param_value;
	int bit;

	KUNIT_EXPECT_TRUE(test, allowed(row->from, row->to, row->required));
	KUNIT_EXPECT_TRUE(test, allowed(row->from, row->to,
					row->required | row->optional));
	for (bit = 1; bit & IB_QP_ATTR_STANDARD_BITS; bit <<= 1) {
		if (bit == IB_QP_STATE)
			continue;
		if (bit & row->required)
			KUNIT_EXPECT_FALSE_MSG(test,
					       allowed(row->from, row->to,
						       row->required & ~bit),
					       "without %#x", bit);
		else
			KUNIT_EXPECT_EQ_MSG(test,
					    allowed(row->from, row->to,
						    row->required | bit),
					    !!(bit & row->optional),
					    "with %#x", bit);
	}
}

static const struct transition_row *find(enum ib_qp_state from,
					 enum ib_qp_state to)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(transition_rows); i++)
		if (transition_rows[i].from == from &&
		    transition_rows[i].to == to)
			return &transition_rows[i];
	return NULL;
}

static void no_other_transition(struct kunit *test)
{
	int from, to;

	for (from = 0; from < ARRAY_SIZE(states); from++) {
		for (to = 0; to < ARRAY_SIZE(states); to++) {
			if (find(states[from], states[to]))
				continue;
			KUNIT_EXPECT_FALSE_MSG(test,
					       allowed(states[from],
						       states[to], 0),
					       "%s to %s",
					       state_names[states[from]],
					       state_names[states[to]]);
			KUNIT_EXPECT_FALSE_MSG(test,
					       allowed(states[from], states[to],
						       IB_QP_ATTR_STANDARD_BITS),
					       "%s to %s with everything",
					       state_names[states[from]],
					       state_names[states[to]]);
		}
	}
}

static struct kunit_case qp_cases[] = {
	KUNIT_CASE_PARAM(rnr_delay, rnr_gen_params),
	KUNIT_CASE(rnr_table_is_regular),
	KUNIT_CASE_PARAM(ack_delay, ack_gen_params),
	KUNIT_CASE_PARAM(transition_with_its_attributes, transition_gen_params),
	KUNIT_CASE(no_other_transition),
	{}
};

static struct kunit_suite qp_suite = {
	.name = "sample_hca_qp",
	.test_cases = qp_cases,
};

kunit_test_suite(qp_suite);
