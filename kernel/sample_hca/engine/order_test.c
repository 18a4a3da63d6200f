// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: in which order a send with invalidate happens: whoever sees the receive
 * completion finds the data in place and the key dead. A receiver is played that
 * looks the moment it is notified; keys and queues are real, the QPs only as far as
 * the operation uses them.
 */
#include <kunit/test.h>

#include "engine.h"

#define BASE	0x200000ULL
#define LENGTH	64
#define ENTRIES	2
#define FULL	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_MW_BIND)

struct recv_entry {
	struct shca_recv_wqe wqe;
	struct shca_sge sge;
};

/* What the receiver has seen when it was notified. */
struct seen {
	int times;
	bool data;
	enum shca_key_state window;
	struct shca_cqe cqe;
};

struct fixture {
	struct shca_hca hca;
	struct page *page;
	struct shca_pages pages;
	struct shca_region region;
	struct shca_key window;
	struct shca_qp sender;
	struct shca_qp receiver;
	struct shca_ring_hdr recv_hdr;
	struct recv_entry recv[ENTRIES];
	struct shca_cq cq;
	struct shca_ring_hdr cq_hdr;
	struct shca_cqe cqes[ENTRIES];
	u8 message[LENGTH];
	struct seen seen;
	char pd;
};

static void notify(struct shca_cq *cq)
{
	struct fixture *f = container_of(cq, struct fixture, cq);

	f->seen.times++;
	f->seen.data = !memcmp(page_address(f->page), f->message, LENGTH);
	f->seen.window = f->window.state;
	f->seen.cqe = f->cqes[0];
}

static void event(struct shca_cq *cq, enum ib_event_type type)
{
}

static void add_key(struct kunit *test, struct shca_key *key)
{
	struct fixture *f = test->priv;

	key->pd = &f->pd;
	KUNIT_ASSERT_EQ(test, shca_key_add(&f->hca.keys, key), 0);
}

static int order_init(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	if (!f)
		return -ENOMEM;
	f->page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!f->page)
		return -ENOMEM;
	test->priv = f;
	memset(f->message, 0x5a, sizeof(f->message));
	shca_key_table_init(&f->hca.keys);
	f->hca.send_w_inv = true;

	f->pages.page = &f->page;
	f->pages.nr = 1;
	f->region.pages = &f->pages;
	f->region.key = (struct shca_key){
		.kind = SHCA_KEY_REGION,
		.state = SHCA_KEY_VALID,
		.access = FULL,
		.base = BASE,
		.length = PAGE_SIZE,
		.region = &f->region,
	};
	add_key(test, &f->region.key);
	f->window.kind = SHCA_KEY_WINDOW_2;
	f->window.state = SHCA_KEY_FREE;
	add_key(test, &f->window);

	f->receiver.hca = &f->hca;
	f->receiver.pd = &f->pd;
	INIT_LIST_HEAD(&f->receiver.windows);
	f->receiver.state = IB_QPS_RTS;
	f->receiver.rq.max_sge = 1;
	f->receiver.rq.cq = &f->cq;
	f->receiver.rq.queue.ring = (struct shca_ring){
		.hdr = &f->recv_hdr,
		.slots = f->recv,
		.entries = ENTRIES,
		.stride = sizeof(f->recv[0]),
	};
	f->recv[0].wqe.num_sge = 1;
	f->recv[0].sge = (struct shca_sge){
		.addr = BASE,
		.length = LENGTH,
		.lkey = f->region.key.key,
	};
	f->recv_hdr.producer = 1;

	f->cq.notify = notify;
	f->cq.event = event;
	shca_cq_init(&f->cq, &(struct shca_ring){
		.hdr = &f->cq_hdr,
		.slots = f->cqes,
		.entries = ENTRIES,
		.stride = SHCA_CQE_SIZE,
	});
	f->sender.hca = &f->hca;
	shca_sgl_buffer(&f->sender.sq.sgl, f->message, sizeof(f->message));
	return 0;
}

static void order_exit(struct kunit *test)
{
	struct fixture *f = test->priv;

	if (!f)
		return;
	KUNIT_EXPECT_EQ(test, shca_key_remove(&f->window), 0);
	KUNIT_EXPECT_EQ(test, shca_key_remove(&f->region.key), 0);
	KUNIT_EXPECT_EQ(test, f->pages.users, 0);
	shca_key_table_destroy(&f->hca.keys);
	__free_page(f->page);
}

static void placed_and_dead_before_it_is_seen(struct kunit *test)
{
	const struct shca_op *op = shca_op_find(SHCA_WR_SEND_WITH_INV, IB_QPT_RC);
	struct fixture *f = test->priv;
	const struct shca_bind bind = {
		.pd = &f->pd,
		.qp = &f->receiver,
		.mw_rkey = f->window.key,
		.new_rkey = f->window.key ^ 1,
		.mr_lkey = f->region.key.key,
		.access = IB_ACCESS_REMOTE_READ,
		.addr = BASE,
		.length = LENGTH,
	};

	KUNIT_ASSERT_NOT_NULL(test, op);
	KUNIT_ASSERT_EQ(test, shca_key_bind(&f->hca.keys, &bind), 0);
	KUNIT_ASSERT_EQ(test, f->window.state, SHCA_KEY_VALID);
	f->sender.sq.wqe.invalidate_rkey = bind.new_rkey;
	shca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);

	KUNIT_EXPECT_EQ(test, op->run(&f->sender, &f->receiver, op), SHCA_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, f->seen.times, 1);
	KUNIT_EXPECT_TRUE(test, f->seen.data);
	KUNIT_EXPECT_EQ(test, f->seen.window, SHCA_KEY_FREE);
	KUNIT_EXPECT_EQ(test, f->seen.cqe.status, SHCA_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, f->seen.cqe.flags, SHCA_WC_WITH_INV);
	KUNIT_EXPECT_EQ(test, f->seen.cqe.ex, bind.new_rkey);
}

static struct kunit_case order_cases[] = {
	KUNIT_CASE(placed_and_dead_before_it_is_seen),
	{}
};

static struct kunit_suite order_suite = {
	.name = "sample_hca_order",
	.init = order_init,
	.exit = order_exit,
	.test_cases = order_cases,
};

kunit_test_suite(order_suite);
