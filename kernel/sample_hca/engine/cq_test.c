// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the engine's side of a completion queue: what is written where, what
 * overruns, and when somebody is notified. The other side is played here.
 */
#include <kunit/test.h>

#include "engine.h"

#define ENTRIES		4

struct cq_fixture {
	struct shca_cq cq;
	struct shca_ring_hdr hdr;
	struct shca_cqe slots[ENTRIES];
	int notified;
	int errors;
	enum ib_event_type last_event;
};

static struct cq_fixture *of(struct shca_cq *cq)
{
	return container_of(cq, struct cq_fixture, cq);
}

static void notify(struct shca_cq *cq)
{
	of(cq)->notified++;
}

static void event(struct shca_cq *cq, enum ib_event_type type)
{
	of(cq)->errors++;
	of(cq)->last_event = type;
}

static int cq_init(struct kunit *test)
{
	struct cq_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct shca_ring ring;

	if (!f)
		return -ENOMEM;
	ring = (struct shca_ring){
		.hdr = &f->hdr,
		.slots = f->slots,
		.entries = ENTRIES,
		.stride = SHCA_CQE_SIZE,
	};
	f->cq.notify = notify;
	f->cq.event = event;
	shca_cq_init(&f->cq, &ring);
	test->priv = f;
	return 0;
}

static int push(struct cq_fixture *f, u64 wr_id)
{
	const struct shca_cqe cqe = { .wr_id = wr_id };

	return shca_cq_push(&f->cq, &cqe, false);
}

static void entry_comes_before_its_index(struct kunit *test)
{
	struct cq_fixture *f = test->priv;
	const struct shca_cqe cqe = {
		.wr_id = 0x1122334455667788ULL,
		.status = SHCA_WC_REM_INV_REQ_ERR,
		.opcode = SHCA_WC_RECV,
		.flags = SHCA_WC_WITH_INV,
		.qp_num = 0x123456,
		.byte_len = 99,
		.invalidated_rkey = 0x01020304,
		.src_qp = 0x654321,
	};

	KUNIT_ASSERT_EQ(test, shca_cq_push(&f->cq, &cqe, false), 0);
	KUNIT_EXPECT_EQ(test, f->hdr.producer, 1);
	KUNIT_EXPECT_EQ(test, memcmp(&f->slots[0], &cqe, sizeof(cqe)), 0);
	KUNIT_EXPECT_EQ(test, f->slots[1].wr_id, 0);
}

/* Indexes far from 0, the ring filled and emptied in every step. */
static void order_survives_the_wrap(struct kunit *test)
{
	struct cq_fixture *f = test->priv;
	u64 put = 0, got = 0;
	int round, i;

	f->cq.producer = U32_MAX - 9;
	f->hdr.producer = f->cq.producer;
	f->hdr.consumer = f->cq.producer;
	for (round = 0; round < 20; round++) {
		for (i = 0; i <= round % ENTRIES; i++)
			KUNIT_ASSERT_EQ(test, push(f, put++), 0);
		while (f->hdr.consumer != f->hdr.producer) {
			KUNIT_EXPECT_EQ(test, got++,
					f->slots[f->hdr.consumer % ENTRIES].wr_id);
			f->hdr.consumer++;
		}
	}
	KUNIT_EXPECT_EQ(test, got, put);
	KUNIT_EXPECT_LT(test, f->hdr.producer, 1000);
}

static void overrun_is_told_once_and_for_all(struct kunit *test)
{
	struct cq_fixture *f = test->priv;
	int i;

	for (i = 0; i < ENTRIES; i++)
		KUNIT_ASSERT_EQ(test, push(f, i), 0);
	KUNIT_EXPECT_EQ(test, f->errors, 0);
	KUNIT_EXPECT_EQ(test, push(f, 100), -ENOSPC);
	KUNIT_EXPECT_EQ(test, f->errors, 1);
	KUNIT_EXPECT_EQ(test, (int)f->last_event, (int)IB_EVENT_CQ_ERR);
	KUNIT_EXPECT_EQ(test, f->slots[0].wr_id, 0);

	/* Room that is made afterwards does not bring back what was lost. */
	f->hdr.consumer = ENTRIES;
	KUNIT_EXPECT_EQ(test, push(f, 101), -ENOSPC);
	KUNIT_EXPECT_EQ(test, f->errors, 1);
	KUNIT_EXPECT_EQ(test, f->hdr.producer, ENTRIES);
}

struct consumer_row {
	const char *name;
	u32 consumer;	/* while 2 entries wait, the producer at 10 */
	int expected;
};

static const struct consumer_row consumer_rows[] = {
	{ "where it belongs", 8, 0 },
	{ "caught up", 10, 0 },
	{ "full", 6, -ENOSPC },
	{ "more than full", 5, -ENOSPC },
	{ "ahead of the producer", 11, -ENOSPC },
	{ "far away", 0x80000000, -ENOSPC },
};

static void consumer_desc(const struct consumer_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(consumer, consumer_rows, consumer_desc);

/* Whatever a process writes there, only slots of its ring are written. */
static void consumer_index(struct kunit *test)
{
	const struct consumer_row *row = test->param_value;
	struct cq_fixture *f = test->priv;

	f->cq.producer = 10;
	f->hdr.producer = 10;
	f->hdr.consumer = row->consumer;
	KUNIT_EXPECT_EQ(test, push(f, 1), row->expected);
	KUNIT_EXPECT_EQ(test, f->cq.producer, 10 + !row->expected);
}

static void producer_in_the_header_means_nothing(struct kunit *test)
{
	struct cq_fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, push(f, 5), 0);
	f->hdr.producer = 0x5555;
	KUNIT_ASSERT_EQ(test, push(f, 6), 0);
	KUNIT_EXPECT_EQ(test, f->slots[1].wr_id, 6);
	KUNIT_EXPECT_EQ(test, f->hdr.producer, 2);
}

/**
 * struct arm_row - requests for notification, then one completion
 * @name: what is special about it
 * @first: first request, 0 for none
 * @second: second request, 0 for none
 * @solicited: the completion counts as solicited
 * @status: of the completion
 * @notified: notifications expected
 */
struct arm_row {
	const char *name;
	enum ib_cq_notify_flags first;
	enum ib_cq_notify_flags second;
	bool solicited;
	u32 status;
	int notified;
};

static const struct arm_row arm_rows[] = {
	{ "not armed", 0, 0, true, SHCA_WC_SUCCESS, 0 },
	{ "not armed, error", 0, 0, false, SHCA_WC_LOC_PROT_ERR, 0 },
	{ "armed for any", IB_CQ_NEXT_COMP, 0, false, SHCA_WC_SUCCESS, 1 },
	{ "armed for any, solicited", IB_CQ_NEXT_COMP, 0, true,
	  SHCA_WC_SUCCESS, 1 },
	{ "armed for solicited, a plain one", IB_CQ_SOLICITED, 0, false,
	  SHCA_WC_SUCCESS, 0 },
	{ "armed for solicited, a solicited one", IB_CQ_SOLICITED, 0, true,
	  SHCA_WC_SUCCESS, 1 },
	{ "armed for solicited, an error", IB_CQ_SOLICITED, 0, false,
	  SHCA_WC_WR_FLUSH_ERR, 1 },
	{ "armed for solicited, then for any", IB_CQ_SOLICITED, IB_CQ_NEXT_COMP,
	  false, SHCA_WC_SUCCESS, 1 },
	{ "armed for any, then for solicited", IB_CQ_NEXT_COMP, IB_CQ_SOLICITED,
	  false, SHCA_WC_SUCCESS, 1 },
	{ "armed twice", IB_CQ_NEXT_COMP, IB_CQ_NEXT_COMP, false,
	  SHCA_WC_SUCCESS, 1 },
	{ "armed with a report of missed events",
	  IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS, 0, false,
	  SHCA_WC_SUCCESS, 1 },
};

static void arm_desc(const struct arm_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(arm, arm_rows, arm_desc);

static void notification(struct kunit *test)
{
	const struct arm_row *row = test->param_value;
	const struct shca_cqe cqe = { .status = row->status };
	struct cq_fixture *f = test->priv;

	if (row->first)
		shca_cq_arm(&f->cq, row->first);
	if (row->second)
		shca_cq_arm(&f->cq, row->second);
	KUNIT_ASSERT_EQ(test, shca_cq_push(&f->cq, &cqe, row->solicited), 0);
	KUNIT_EXPECT_EQ(test, f->notified, row->notified);

	/* One request is one notification. */
	if (row->notified) {
		KUNIT_ASSERT_EQ(test, shca_cq_push(&f->cq, &cqe, true), 0);
		KUNIT_EXPECT_EQ(test, f->notified, row->notified);
	}
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(entry_comes_before_its_index),
	KUNIT_CASE(order_survives_the_wrap),
	KUNIT_CASE(overrun_is_told_once_and_for_all),
	KUNIT_CASE_PARAM(consumer_index, consumer_gen_params),
	KUNIT_CASE(producer_in_the_header_means_nothing),
	KUNIT_CASE_PARAM(notification, arm_gen_params),
	{}
};

static struct kunit_suite cq_suite = {
	.name = "sample_hca_cq",
	.init = cq_init,
	.test_cases = cq_cases,
};

kunit_test_suite(cq_suite);
