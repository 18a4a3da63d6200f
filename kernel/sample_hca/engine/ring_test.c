// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: index arithmetic of rings in memory that a process can write: wraps, a
 * producer index that no provider wrote, and who moves which index. Allocates
 * its rings itself; no process is involved.
 */
#include <kunit/test.h>

#include "ring.h"

#define ENTRIES		8
#define STRIDE		64

struct ring_fixture {
	struct shca_ring_hdr hdr;
	u8 slots[ENTRIES][STRIDE];
	struct shca_queue q;
};

static int ring_init(struct kunit *test)
{
	struct ring_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	if (!f)
		return -ENOMEM;
	f->q.ring.hdr = &f->hdr;
	f->q.ring.slots = f->slots;
	f->q.ring.entries = ENTRIES;
	f->q.ring.stride = STRIDE;
	test->priv = f;
	return 0;
}

/* ---- how many wait ---- */

struct pending_row {
	const char *name;
	u32 entries;
	u32 producer;
	u32 consumer;
	int expected;
};

static const struct pending_row pending_rows[] = {
	{ "empty", 8, 0, 0, 0 },
	{ "one", 8, 1, 0, 1 },
	{ "full", 8, 8, 0, 8 },
	{ "one more than full", 8, 9, 0, -EBADMSG },
	{ "far more than full", 8, 0x80000000, 0, -EBADMSG },
	{ "producer moved back by one", 8, 99, 100, -EBADMSG },
	{ "producer moved back to 0", 8, 0, 100, -EBADMSG },
	{ "empty, before the wrap", 8, U32_MAX, U32_MAX, 0 },
	{ "one, and the producer wraps", 8, 0, U32_MAX, 1 },
	{ "full across the wrap", 8, 4, U32_MAX - 3, 8 },
	{ "one more than full across the wrap", 8, 5, U32_MAX - 3, -EBADMSG },
	{ "producer moved back across the wrap", 8, U32_MAX, 0, -EBADMSG },
	{ "across the sign bit", 8, 0x80000002, 0x7ffffffe, 4 },
	{ "a ring of one entry, empty", 1, 5, 5, 0 },
	{ "a ring of one entry, full", 1, 6, 5, 1 },
	{ "a ring of one entry, one more than full", 1, 7, 5, -EBADMSG },
	{ "the largest ring, full", 4096, 4095, U32_MAX, 4096 },
	{ "no ring at all", 0, 77, 0, 0 },
};

static void pending_desc(const struct pending_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(pending, pending_rows, pending_desc);

static void entries_that_wait(struct kunit *test)
{
	const struct pending_row *row = test->param_value;
	struct ring_fixture *f = test->priv;

	f->q.ring.entries = row->entries;
	f->q.consumer = row->consumer;
	f->hdr.producer = row->producer;
	/* What the header says of the consumer means nothing. */
	f->hdr.consumer = row->producer + 3;
	KUNIT_EXPECT_EQ(test, shca_queue_pending(&f->q), row->expected);
}

/* ---- which slot ---- */

struct slot_row {
	const char *name;
	u32 entries;
	u32 index;
	u32 slot;
};

static const struct slot_row slot_rows[] = {
	{ "first", 8, 0, 0 },
	{ "last", 8, 7, 7 },
	{ "first of the second round", 8, 8, 0 },
	{ "before the wrap", 8, U32_MAX, 7 },
	{ "across the sign bit", 8, 0x80000001, 1 },
	{ "a ring of one entry", 1, 12345, 0 },
	{ "a ring of two", 2, U32_MAX, 1 },
};

static void slot_desc(const struct slot_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(slot, slot_rows, slot_desc);

static void slot_of_an_index(struct kunit *test)
{
	const struct slot_row *row = test->param_value;
	struct ring_fixture *f = test->priv;

	f->q.ring.entries = row->entries;
	KUNIT_EXPECT_PTR_EQ(test, shca_ring_slot(&f->q.ring, row->index),
			    (void *)f->slots[row->slot]);
}

/* ---- producing and consuming ---- */

/* A provider's side of the ring: entry, then index. */
static void produce(struct ring_fixture *f, u8 byte)
{
	memset(f->slots[f->hdr.producer % ENTRIES], byte, STRIDE);
	f->hdr.producer++;
}

static void order_survives_the_wrap(struct kunit *test)
{
	struct ring_fixture *f = test->priv;
	u8 put = 0, got = 0, entry[STRIDE];
	int round, i, n;

	f->hdr.producer = U32_MAX - 50;
	f->q.consumer = U32_MAX - 50;
	for (round = 0; round < 40; round++) {
		n = 1 + round % ENTRIES;
		for (i = 0; i < n; i++)
			produce(f, put++);
		KUNIT_ASSERT_EQ(test, shca_queue_pending(&f->q), n);
		for (i = 0; i < n; i++) {
			shca_queue_copy(&f->q, entry, STRIDE);
			KUNIT_EXPECT_EQ(test, entry[0], got);
			KUNIT_EXPECT_EQ(test, entry[STRIDE - 1], got);
			got++;
			shca_queue_pop(&f->q);
			KUNIT_EXPECT_EQ(test, f->hdr.consumer, f->q.consumer);
		}
	}
	KUNIT_EXPECT_EQ(test, shca_queue_pending(&f->q), 0);
	/* It did wrap. */
	KUNIT_EXPECT_LT(test, f->q.consumer, 1000);
}

static void copy_takes_no_more_than_asked_for(struct kunit *test)
{
	struct ring_fixture *f = test->priv;
	u8 entry[STRIDE];

	produce(f, 0xaa);
	memset(entry, 0x11, sizeof(entry));
	shca_queue_copy(&f->q, entry, 16);
	KUNIT_EXPECT_EQ(test, entry[15], 0xaa);
	KUNIT_EXPECT_EQ(test, entry[16], 0x11);
}

static void own_index_is_believed(struct kunit *test)
{
	struct ring_fixture *f = test->priv;

	produce(f, 1);
	produce(f, 2);
	f->hdr.consumer = 77;
	KUNIT_EXPECT_EQ(test, shca_queue_pending(&f->q), 2);
	shca_queue_pop(&f->q);
	KUNIT_EXPECT_EQ(test, f->hdr.consumer, 1);
	KUNIT_EXPECT_EQ(test, shca_queue_pending(&f->q), 1);
}

struct discard_row {
	const char *name;
	u32 producer;
	u32 consumer;
};

static const struct discard_row discard_rows[] = {
	{ "some entries", 5, 2 },
	{ "none", 5, 5 },
	{ "across the wrap", 2, U32_MAX },
	{ "an index that no provider wrote", 0x12345678, 3 },
	{ "an index that was moved back", 1, 3 },
};

static void discard_desc(const struct discard_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(discard, discard_rows, discard_desc);

static void discard_leaves_nothing(struct kunit *test)
{
	const struct discard_row *row = test->param_value;
	struct ring_fixture *f = test->priv;

	f->hdr.producer = row->producer;
	f->q.consumer = row->consumer;
	shca_queue_discard(&f->q);
	KUNIT_EXPECT_EQ(test, shca_queue_pending(&f->q), 0);
	KUNIT_EXPECT_EQ(test, f->hdr.producer, row->producer);
	KUNIT_EXPECT_EQ(test, f->hdr.consumer, row->producer);

	/* And the queue works on. */
	produce(f, 9);
	KUNIT_EXPECT_EQ(test, shca_queue_pending(&f->q), 1);
}

static void no_ring_is_left_alone(struct kunit *test)
{
	struct shca_queue none = {};

	KUNIT_EXPECT_EQ(test, shca_queue_pending(&none), 0);
	shca_queue_discard(&none);
	KUNIT_EXPECT_EQ(test, none.consumer, 0);
	KUNIT_EXPECT_EQ(test, shca_queue_push(&none, "x", 1), -ENOMEM);
}

/* ---- producing in the provider's place ---- */

struct push_row {
	const char *name;
	u32 producer;
	u32 consumer;
	int expected;
};

static const struct push_row push_rows[] = {
	{ "into an empty ring", 0, 0, 0 },
	{ "into the last slot", 7, 0, 0 },
	{ "into a full ring", 8, 0, -ENOMEM },
	{ "index across the wrap", U32_MAX, U32_MAX - 2, 0 },
	{ "full across the wrap", 4, U32_MAX - 3, -ENOMEM },
	{ "behind an index that no provider wrote", 100, 0, -EINVAL },
	{ "behind an index that was moved back", 1, 2, -EINVAL },
};

static void push_desc(const struct push_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(push, push_rows, push_desc);

static void push_one(struct kunit *test)
{
	const struct push_row *row = test->param_value;
	static const u8 entry[] = { 1, 2, 3, 4 };
	struct ring_fixture *f = test->priv;

	f->hdr.producer = row->producer;
	f->q.consumer = row->consumer;
	KUNIT_ASSERT_EQ(test, shca_queue_push(&f->q, entry, sizeof(entry)),
			row->expected);
	KUNIT_EXPECT_EQ(test, f->hdr.producer,
			row->producer + !row->expected);
	KUNIT_EXPECT_EQ(test, f->q.consumer, row->consumer);
	KUNIT_EXPECT_EQ(test, memcmp(f->slots[row->producer % ENTRIES], entry,
				     sizeof(entry)) == 0, !row->expected);
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE_PARAM(entries_that_wait, pending_gen_params),
	KUNIT_CASE_PARAM(slot_of_an_index, slot_gen_params),
	KUNIT_CASE(order_survives_the_wrap),
	KUNIT_CASE(copy_takes_no_more_than_asked_for),
	KUNIT_CASE(own_index_is_believed),
	KUNIT_CASE_PARAM(discard_leaves_nothing, discard_gen_params),
	KUNIT_CASE(no_ring_is_left_alone),
	KUNIT_CASE_PARAM(push_one, push_gen_params),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "sample_hca_ring",
	.init = ring_init,
	.test_cases = ring_cases,
};

kunit_test_suite(ring_suite);
