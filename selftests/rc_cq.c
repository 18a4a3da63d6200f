// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completions: which requests have one, in which order, when the rings wrap,
 * and when a completion channel tells of them.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/pair.h"

#define PAGE	4096UL

struct stage {
	struct pair p;
	struct ibv_mr *here, *there;
};

static struct stage stage_new(const struct qp_param *param)
{
	struct stage s = { .p = pair_new(param) };

	s.here = mr_new(s.p.peer->pd, MIB);
	s.there = mr_new(s.p.owner->pd, MIB);
	return s;
}

static int write_one(struct stage *s, uint64_t wr_id, unsigned int flags,
		     uint32_t length)
{
	struct ibv_sge sge = SGE(s->here, s->here->addr, length);
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge,
		.num_sge = 1, .send_flags = flags,
		.wr.rdma = { (uintptr_t)s->there->addr, s->there->rkey },
	}, *bad;

	return ibv_post_send(s->p.peer->qp, &wr, &bad);
}

static void unsignaled(const struct test_case *c)
{
	struct stage s = stage_new(NULL);

	for (int i = 0; i < 10; i++)
		MUST_ERR(0, write_one(&s, i, 0, 64));
	MUST_ERR(0, write_one(&s, 10, IBV_SEND_SIGNALED, 64));
	MUST_WC(cq_next(s.p.peer->scq), 10, IBV_WC_SUCCESS);
	CHECK(cq_quiet(s.p.peer->scq, 50));
}

static void all_signaled(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .sig_all = true });

	for (int i = 0; i < 10; i++)
		MUST_ERR(0, write_one(&s, i, 0, 64));
	for (int i = 0; i < 10; i++)
		MUST_WC(cq_next(s.p.peer->scq), i, IBV_WC_SUCCESS);
	CHECK(cq_quiet(s.p.peer->scq, 50));
}

/* Unsignaled requests give their places back when a later one completes. */
static void wraps_unsignaled(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .send_wr = 16 });
	uint32_t depth = s.p.peer->cap.max_send_wr;

	for (uint32_t i = 0; i < 5 * depth; i++) {
		bool last = i % depth == depth - 1;

		test_context("request %u of queues of %u", i, depth);
		MUST_ERR(0, write_one(&s, i, last ? IBV_SEND_SIGNALED : 0, 8));
		if (last)
			MUST_WC(cq_next(s.p.peer->scq), i, IBV_WC_SUCCESS);
	}
}

/* All indexes of all four rings go round several times, one and many at a time. */
static void wraps(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){
		.send_wr = 8, .recv_wr = 8, .cqe = 8, .sig_all = true });
	char *here = s.here->addr, *there = s.there->addr;
	unsigned int turn = 0;

	for (int burst = 1; burst <= 8; burst++) {
		for (int round = 0; round < 7; round++) {
			test_context("burst %d, round %d", burst, round);
			for (int i = 0; i < burst; i++) {
				memset(there + i * 256, 0xee, 256);
				post_recv(s.p.owner, turn + i, s.there,
					  there + i * 256, 256);
			}
			for (int i = 0; i < burst; i++) {
				test_fill(here + i * 256, 100 + i, turn + i);
				post_simple(s.p.peer, IBV_WR_SEND, turn + i, s.here,
					    here + i * 256, 100 + i, 0, 0);
			}
			for (int i = 0; i < burst; i++) {
				struct ibv_wc wc = cq_next(s.p.owner->rcq);

				MUST_WC(wc, turn + i, IBV_WC_SUCCESS);
				CHECK_EQ(100 + i, wc.byte_len);
				CHECK_BYTES(here + i * 256, there + i * 256, 100 + i);
				MUST_WC(cq_next(s.p.peer->scq), turn + i,
					IBV_WC_SUCCESS);
			}
			turn += burst;
		}
	}
}

/* The order of posting is the order of completion, on both sides. */
static void order(const struct test_case *c)
{
	static const enum ibv_wr_opcode mix[] = {
		IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_SEND,
	};
	struct stage s = stage_new(NULL);
	char *here = s.here->addr;
	uint64_t recv_id = 0;

	for (uint64_t i = 0; i < 64; i++)
		post_recv(s.p.owner, i, s.there, s.there->addr, MIB);
	for (uint64_t i = 0; i < 60; i++)
		/* Long and short ones: an overtaking one would come early. */
		post_simple(s.p.peer, mix[i % ARRAY_LEN(mix)], i, s.here, here,
			    i % 3 ? 16 : 30000, (uintptr_t)s.there->addr,
			    s.there->rkey);
	for (uint64_t i = 0; i < 60; i++) {
		MUST_WC(cq_next(s.p.peer->scq), i, IBV_WC_SUCCESS);
		if (mix[i % ARRAY_LEN(mix)] != IBV_WR_RDMA_READ &&
		    mix[i % ARRAY_LEN(mix)] != IBV_WR_RDMA_WRITE)
			MUST_WC(cq_next(s.p.owner->rcq), recv_id++, IBV_WC_SUCCESS);
	}
	CHECK(cq_quiet(s.p.owner->rcq, 20));
}

/* Data of a write is there before the completion of a send behind it. */
static void write_before_send(const struct test_case *c)
{
	struct stage s = stage_new(NULL);
	volatile uint32_t *flag = s.there->addr;

	for (uint32_t i = 1; i < 200; i++) {
		*(uint32_t *)s.here->addr = i;
		post_recv(s.p.owner, i, NULL, NULL, 0);
		MUST_ERR(0, write_one(&s, i, 0, 4));
		post_simple(s.p.peer, IBV_WR_SEND, i, NULL, NULL, 0, 0, 0);
		MUST_WC(cq_next(s.p.owner->rcq), i, IBV_WC_SUCCESS);
		MUST_EQ(i, *flag);
		MUST_WC(cq_next(s.p.peer->scq), i, IBV_WC_SUCCESS);
	}
}

static void poll_many(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .sig_all = true });
	struct ibv_wc wc[32];
	int n = 0;

	CHECK_EQ(0, ibv_poll_cq(s.p.peer->scq, 32, wc));
	for (int i = 0; i < 20; i++)
		MUST_ERR(0, write_one(&s, i, 0, 8));
	while (n < 20) {
		int got = ibv_poll_cq(s.p.peer->scq, n ? 32 : 3, wc + n);

		CHECK_BETWEEN(0, got, n ? 32 : 3);
		n += got;
	}
	CHECK_EQ(20, n);
	for (int i = 0; i < n; i++)
		MUST_WC(wc[i], i, IBV_WC_SUCCESS);
	CHECK_EQ(0, ibv_poll_cq(s.p.peer->scq, 32, wc));
}

/* Two queues of the same queue pair and two queue pairs share a CQ. */
static void shared_cq(const struct test_case *c)
{
	struct dev *dev = dev_open();
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 64, NULL, NULL, 0);
	struct rc *rc[2] = { rc_create(dev, NULL), rc_create(dev, NULL) };
	struct ibv_mr *mr;
	unsigned int seen = 0;

	MUST(cq);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
			.cap = { 8, 8, 1, 1, 0 },
		};

		MUST_ERR(0, ibv_destroy_qp(rc[i]->qp));
		rc[i]->qp = ibv_create_qp(rc[i]->pd, &init);
		MUST(rc[i]->qp);
	}
	rc_pair(rc[0], rc[1]);
	for (int i = 0; i < 2; i++) {
		mr = mr_new(rc[i]->pd, PAGE);
		post_recv(rc[i], 0x10 + i, mr, mr->addr, PAGE);
	}
	for (int i = 0; i < 2; i++)
		post_simple(rc[i], IBV_WR_SEND, 0x20 + i, NULL, NULL, 0, 0, 0);
	for (int i = 0; i < 4; i++) {
		struct ibv_wc wc = cq_next(cq);
		int side = wc.wr_id & 1;

		CHECK_STATUS(IBV_WC_SUCCESS, wc.status);
		CHECK_EQ(rc[side]->qp->qp_num, wc.qp_num);
		CHECK_EQ(wc.wr_id & 0x10 ? IBV_WC_RECV : IBV_WC_SEND, wc.opcode);
		seen |= 1U << (side + (wc.wr_id & 0x10 ? 0 : 2));
	}
	CHECK_EQ(0xf, seen);
	CHECK_ERR(EBUSY, ibv_destroy_cq(cq));
}

static bool event_within(struct ibv_comp_channel *channel, struct ibv_cq *cq,
			 unsigned int ms)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *event_cq;
	void *context;

	if (poll(&p, 1, ms) < 1)
		return false;
	MUST_ERR(0, ibv_get_cq_event(channel, &event_cq, &context));
	CHECK(event_cq == cq);
	CHECK(context == cq->cq_context);
	ibv_ack_cq_events(event_cq, 1);
	return true;
}

static void send_one(struct stage *s, uint64_t wr_id, unsigned int flags)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .opcode = IBV_WR_SEND,
		.send_flags = flags | IBV_SEND_SIGNALED,
	}, *bad;

	post_recv(s->p.owner, wr_id, NULL, NULL, 0);
	MUST_ERR(0, ibv_post_send(s->p.peer->qp, &wr, &bad));
	MUST_WC(cq_next(s->p.peer->scq), wr_id, IBV_WC_SUCCESS);
	MUST_WC(cq_next(s->p.owner->rcq), wr_id, IBV_WC_SUCCESS);
}

#define MS_NONE	50		/* long enough to believe that nothing comes */
#define MS_SOON	20000

static void events(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .channel = true });
	struct ibv_comp_channel *channel = s.p.owner->channel;
	struct ibv_cq *cq = s.p.owner->rcq;

	send_one(&s, 1, 0);
	test_context("not asked for");
	CHECK(!event_within(channel, cq, MS_NONE));
	for (int i = 0; i < 3; i++) {
		test_context("asked for, time %d", i);
		MUST_ERR(0, ibv_req_notify_cq(cq, 0));
		CHECK(!event_within(channel, cq, MS_NONE));
		send_one(&s, 2, 0);
		CHECK(event_within(channel, cq, MS_SOON));
		send_one(&s, 3, IBV_SEND_SOLICITED);
		CHECK(!event_within(channel, cq, MS_NONE));
	}
	test_context("asked for twice");
	MUST_ERR(0, ibv_req_notify_cq(cq, 0));
	MUST_ERR(0, ibv_req_notify_cq(cq, 0));
	send_one(&s, 4, 0);
	CHECK(event_within(channel, cq, MS_SOON));
	CHECK(!event_within(channel, cq, MS_NONE));
	test_context("the peer's channel");
	CHECK(!event_within(s.p.peer->channel, s.p.peer->scq, MS_NONE));
}

static void solicited_only(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .channel = true });
	struct ibv_comp_channel *channel = s.p.owner->channel;
	struct ibv_cq *cq = s.p.owner->rcq;

	MUST_ERR(0, ibv_req_notify_cq(cq, 1));
	send_one(&s, 1, 0);
	CHECK(!event_within(channel, cq, MS_NONE));
	send_one(&s, 2, IBV_SEND_SOLICITED);
	CHECK(event_within(channel, cq, MS_SOON));
	send_one(&s, 3, IBV_SEND_SOLICITED);
	CHECK(!event_within(channel, cq, MS_NONE));

	/* Any next completion is more than the next solicited one: it stays. */
	test_context("any completion, then solicited ones asked for");
	MUST_ERR(0, ibv_req_notify_cq(cq, 0));
	MUST_ERR(0, ibv_req_notify_cq(cq, 1));
	send_one(&s, 4, 0);
	CHECK(event_within(channel, cq, MS_SOON));
}

static void solicited_error(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .channel = true });
	struct ibv_cq *cq = s.p.owner->rcq;

	MUST_ERR(0, ibv_req_notify_cq(cq, 1));
	post_recv(s.p.owner, 1, NULL, NULL, 0);
	MUST_ERR(0, rc_modify(s.p.owner, IBV_QPS_ERR, NULL));
	CHECK(event_within(s.p.owner->channel, cq, MS_SOON));
	MUST_WC(cq_next(cq), 1, IBV_WC_WR_FLUSH_ERR);
}

static void *sleeper(void *arg)
{
	struct stage *s = arg;
	struct ibv_cq *cq;
	void *context;

	MUST_ERR(0, ibv_get_cq_event(s->p.owner->channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	return cq;
}

/* A thread asleep in ibv_get_cq_event() is woken, no completion missed. */
static void wakes_sleeper(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .channel = true });
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		void *woken_by;

		test_context("turn %d", i);
		MUST_ERR(0, ibv_req_notify_cq(s.p.owner->rcq, 0));
		MUST_ERR(0, pthread_create(&thread, NULL, sleeper, &s));
		if (i & 1)
			test_sleep_ms(5);
		post_recv(s.p.owner, i, NULL, NULL, 0);
		MUST_ERR(0, ibv_post_send(s.p.peer->qp, &wr, &bad));
		MUST_ERR(0, pthread_join(thread, &woken_by));
		CHECK(woken_by == s.p.owner->rcq);
		MUST_WC(cq_next(s.p.owner->rcq), i, IBV_WC_SUCCESS);
	}
}

static void overflow(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){
		.send_wr = 32, .cqe = 2, .sig_all = true });
	int room = s.p.peer->scq->cqe, posted = 0;
	struct ibv_wc wc;

	CHECK_BETWEEN(2, room, 31);
	for (int i = 0; i <= room; i++)
		if (!write_one(&s, i, 0, 8))
			posted++;
	CHECK_EQ(room + 1, posted);
	/* The CQ tells, and so do the queue pairs that can no longer complete. */
	CHECK_EQ(IBV_EVENT_CQ_ERR, async_wait(s.p.dev->ctx, MS_SOON));
	for (int i = 0; i < room; i++) {
		if (ibv_poll_cq(s.p.peer->scq, 1, &wc) < 1)
			break;
		/* What was completed before it overflowed is not garbled. */
		CHECK_EQ(i, wc.wr_id);
	}
	for (int i = 0; i < 1000 && rc_state(s.p.peer) != IBV_QPS_ERR; i++)
		test_sleep_ms(2);
	CHECK_EQ(IBV_QPS_ERR, rc_state(s.p.peer));
	MUST_ERR(0, ibv_destroy_qp(s.p.peer->qp));
	MUST_ERR(0, ibv_destroy_cq(s.p.peer->scq));
}

static const struct test_case cases[] = {
	{ "an unsignaled request has no completion", unsignaled },
	{ "with sq_sig_all every request has one", all_signaled },
	{ "unsignaled requests free their places in the send queue",
	  wraps_unsignaled },
	{ "rings wrap round without losing or repeating anything", wraps },
	{ "completions come in the order of posting on both sides", order },
	{ "a write's data is there before the send behind it completes",
	  write_before_send },
	{ "ibv_poll_cq returns at most what it is asked for, each once", poll_many },
	{ "queue pairs and queues share a CQ", shared_cq },
	{ "an event comes once, for the first completion after it was asked for",
	  events },
	{ "with solicited_only an event comes for a solicited completion only",
	  solicited_only },
	{ "a completion in error counts as solicited", solicited_error },
	{ "a thread asleep in ibv_get_cq_event is woken every time", wakes_sleeper },
	{ "a CQ that overflows raises CQ_ERR and its queue pairs go to ERR",
	  overflow },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
