// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The queue pair's states: every transition, what each asks for, what it shows
 * when queried, and which posts are refused in which state and why.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/pair.h"

#define PAGE	4096UL
#define STATES	(IBV_QPS_ERR + 1)

static const char *const state_names[STATES] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
};

/*
 * IBA figure 125 with what Linux makes of it: an RC queue pair is never in SQE,
 * and RESET does not lead to ERR.
 */
static const bool legal[STATES][STATES] = {
	/*		   RESET INIT RTR RTS SQD SQE ERR */
	[IBV_QPS_RESET] = { 1,	 1,   0,  0,  0,  0,  0 },
	[IBV_QPS_INIT]	= { 1,	 1,   1,  0,  0,  0,  1 },
	[IBV_QPS_RTR]	= { 1,	 0,   0,  1,  0,  0,  1 },
	[IBV_QPS_RTS]	= { 1,	 0,   0,  1,  1,  0,  1 },
	[IBV_QPS_SQD]	= { 1,	 0,   0,  1,  1,  0,  1 },
	[IBV_QPS_ERR]	= { 1,	 0,   0,  0,  0,  0,  1 },
};

/* The attributes that a transition from one state to another takes. */
static int transition(const struct rc *rc, enum ibv_qp_state from,
		      enum ibv_qp_state to, const struct rc_addr *peer,
		      struct ibv_qp_attr *attr)
{
	int mask = rc_attr(rc, to, peer, attr);

	/* RTS takes its attributes from RTR only. */
	if (to == IBV_QPS_RTS && from != IBV_QPS_RTR)
		mask = IBV_QP_STATE;
	return mask;
}

/* A new queue pair in a state. */
static struct rc *in_state(struct dev *dev, enum ibv_qp_state state)
{
	static const enum ibv_qp_state path[] = {
		IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD,
	};
	struct rc *rc = rc_create(dev, NULL);
	struct rc_addr self = rc_addr(rc);

	if (state == IBV_QPS_ERR) {
		MUST_ERR(0, rc_modify(rc, IBV_QPS_INIT, &self));
		MUST_ERR(0, rc_modify(rc, IBV_QPS_ERR, &self));
	}
	for (size_t i = 0; i < ARRAY_LEN(path) && rc_state(rc) != state; i++)
		MUST_ERR(0, rc_modify(rc, path[i], &self));
	MUST_EQ(state, rc_state(rc));
	return rc;
}

static void transitions(const struct test_case *c)
{
	const enum ibv_qp_state from = c->n;
	struct dev *dev = dev_open();

	for (enum ibv_qp_state to = IBV_QPS_RESET; to < STATES; to++) {
		struct rc *rc = in_state(dev, from);
		struct rc_addr self = rc_addr(rc);
		struct ibv_qp_attr attr;
		int mask = transition(rc, from, to, &self, &attr);

		test_context("%s to %s", state_names[from], state_names[to]);
		CHECK_ERR(legal[from][to] ? 0 : EINVAL,
			  ibv_modify_qp(rc->qp, &attr, mask));
		CHECK_EQ(legal[from][to] ? to : from, rc_state(rc));
		rc_destroy(rc);
	}
}

/* Each attribute that a transition needs, left out; and one that it cannot have. */
static void attributes(const struct test_case *c)
{
	static const enum ibv_qp_state before[] = {
		[IBV_QPS_INIT] = IBV_QPS_RESET,
		[IBV_QPS_RTR] = IBV_QPS_INIT,
		[IBV_QPS_RTS] = IBV_QPS_RTR,
	};
	const enum ibv_qp_state to = c->n, from = before[to];
	struct rc *rc = in_state(dev_open(), from);
	struct rc_addr self = rc_addr(rc);
	struct ibv_qp_attr attr;
	int mask = rc_attr(rc, to, &self, &attr);

	for (int bit = 0; bit < 21; bit++) {
		if (!(mask & 1 << bit) || 1 << bit == IBV_QP_STATE)
			continue;
		test_context("without attribute 1 << %d", bit);
		CHECK_ERR(EINVAL, ibv_modify_qp(rc->qp, &attr, mask & ~(1 << bit)));
		CHECK_EQ(from, rc_state(rc));
	}
	test_context("with IBV_QP_QKEY");
	CHECK_ERR(EINVAL, ibv_modify_qp(rc->qp, &attr, mask | IBV_QP_QKEY));
	CHECK_EQ(from, rc_state(rc));
	test_context("as it should be");
	CHECK_ERR(0, ibv_modify_qp(rc->qp, &attr, mask));
	CHECK_EQ(to, rc_state(rc));
}

static void attribute_values(const struct test_case *c)
{
	struct dev *dev = dev_open();
	struct rc *rc = in_state(dev, IBV_QPS_RESET);
	struct rc_addr self = rc_addr(rc);
	struct ibv_qp_attr attr;
	int mask;

	mask = rc_attr(rc, IBV_QPS_INIT, &self, &attr);
	attr.port_num = 2;
	CHECK_ERR(EINVAL, ibv_modify_qp(rc->qp, &attr, mask));
	attr.port_num = 1;
	attr.pkey_index = 0x7fff;
	CHECK_ERR(EINVAL, ibv_modify_qp(rc->qp, &attr, mask));
	MUST_ERR(0, rc_modify(rc, IBV_QPS_INIT, &self));

	mask = rc_attr(rc, IBV_QPS_RTR, &self, &attr);
	attr.max_dest_rd_atomic = 255;
	CHECK_ERR(EINVAL, ibv_modify_qp(rc->qp, &attr, mask));
	mask = rc_attr(rc, IBV_QPS_RTR, &self, &attr);
	attr.path_mtu = 9;
	CHECK_ERR(EINVAL, ibv_modify_qp(rc->qp, &attr, mask));
	mask = rc_attr(rc, IBV_QPS_RTR, &self, &attr);
	attr.ah_attr.grh.sgid_index = 255;
	CHECK_ERR(EINVAL, ibv_modify_qp(rc->qp, &attr, mask));
	CHECK_EQ(IBV_QPS_INIT, rc_state(rc));
	MUST_ERR(0, rc_modify(rc, IBV_QPS_RTR, &self));

	mask = rc_attr(rc, IBV_QPS_RTS, &self, &attr);
	attr.max_rd_atomic = 255;
	CHECK_ERR(EINVAL, ibv_modify_qp(rc->qp, &attr, mask));
	attr.max_rd_atomic = 1;
	attr.cur_qp_state = IBV_QPS_INIT;
	CHECK_ERR(EINVAL, ibv_modify_qp(rc->qp, &attr, mask | IBV_QP_CUR_STATE));
	CHECK_EQ(IBV_QPS_RTR, rc_state(rc));
	MUST_ERR(0, rc_modify(rc, IBV_QPS_RTS, &self));
}

static void query(const struct test_case *c)
{
	struct dev *dev = dev_open();
	struct rc *rc = rc_create(dev, &(struct qp_param){
		.timeout = 13, .retry_cnt = 5, .rnr_retry = 4, .min_rnr_timer = 9,
		.send_wr = 10, .recv_wr = 20, .sge = 3, .inline_data = 16,
		.access = IBV_ACCESS_REMOTE_READ });
	struct rc_addr peer = rc_addr(rc);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	peer.psn = 0x123456;
	rc_connect(rc, &peer);
	MUST_ERR(0, ibv_query_qp(rc->qp, &attr, (1 << 21) - 1, &init));
	CHECK_EQ(IBV_QPS_RTS, attr.qp_state);
	CHECK_EQ(13, attr.timeout);
	CHECK_EQ(5, attr.retry_cnt);
	CHECK_EQ(4, attr.rnr_retry);
	CHECK_EQ(9, attr.min_rnr_timer);
	CHECK_EQ(rc->qp->qp_num, attr.dest_qp_num);
	CHECK_EQ(IBV_ACCESS_REMOTE_READ, attr.qp_access_flags);
	CHECK_EQ(4, attr.max_rd_atomic);
	CHECK_EQ(4, attr.max_dest_rd_atomic);
	CHECK_EQ(1, attr.port_num);
	CHECK_EQ(dev->mtu, attr.path_mtu);
	CHECK_EQ(0x123456, attr.rq_psn);
	CHECK_EQ(rc_addr(rc).psn, attr.sq_psn);
	CHECK_EQ(dev->gid_index, attr.ah_attr.grh.sgid_index);
	CHECK(!memcmp(&dev->gid, &attr.ah_attr.grh.dgid, sizeof(dev->gid)));
	CHECK_BETWEEN(10, init.cap.max_send_wr, dev->attr.max_qp_wr);
	CHECK_BETWEEN(20, init.cap.max_recv_wr, dev->attr.max_qp_wr);
	CHECK_BETWEEN(3, init.cap.max_send_sge, dev->attr.max_sge);
	CHECK_BETWEEN(3, init.cap.max_recv_sge, dev->attr.max_sge);
	CHECK_BETWEEN(16, init.cap.max_inline_data, 65536);
	CHECK_EQ(rc->cap.max_send_wr, init.cap.max_send_wr);
	CHECK_EQ(rc->cap.max_inline_data, init.cap.max_inline_data);
}

/* Creation of what the device does not have is refused, by itself. */
static void bad_create(const struct test_case *c)
{
	struct dev *dev = dev_open();
	struct rc *rc = rc_create(dev, NULL);
	const struct ibv_qp_init_attr good = {
		.send_cq = rc->scq, .recv_cq = rc->rcq, .qp_type = IBV_QPT_RC,
		.cap = { 8, 8, 1, 1, 0 },
	};
	struct ibv_qp_init_attr a;

	a = good;
	a.cap.max_send_wr = dev->attr.max_qp_wr + 1;
	CHECK_NULL_ERRNO(EINVAL, ibv_create_qp(rc->pd, &a));
	a = good;
	a.cap.max_recv_wr = dev->attr.max_qp_wr + 1;
	CHECK_NULL_ERRNO(EINVAL, ibv_create_qp(rc->pd, &a));
	a = good;
	a.cap.max_send_sge = dev->attr.max_sge + 1;
	CHECK_NULL_ERRNO(EINVAL, ibv_create_qp(rc->pd, &a));
	a = good;
	a.cap.max_recv_sge = dev->attr.max_sge + 1;
	CHECK_NULL_ERRNO(EINVAL, ibv_create_qp(rc->pd, &a));
	a = good;
	a.cap.max_inline_data = 1 << 24;
	CHECK_NULL_ERRNO(EINVAL, ibv_create_qp(rc->pd, &a));
	a = good;
	MUST_ERR(0, ibv_destroy_qp(ibv_create_qp(rc->pd, &a)));

	CHECK_NULL_ERRNO(EINVAL, ibv_create_cq(dev->ctx, 0, NULL, NULL, 0));
	CHECK_NULL_ERRNO(EINVAL, ibv_create_cq(dev->ctx, dev->attr.max_cqe + 1, NULL,
					       NULL, 0));
	CHECK_NULL_ERRNO(EINVAL, ibv_create_cq(dev->ctx, 8, NULL, NULL, 99));
	CHECK_ERR(EBUSY, ibv_destroy_cq(rc->scq));
	CHECK_ERR(EBUSY, ibv_dealloc_pd(rc->pd));
}

/* A receive is taken from INIT on, a send from RTS on. */
static void posts_by_state(const struct test_case *c)
{
	static const bool may_recv[STATES] = {
		[IBV_QPS_INIT] = 1, [IBV_QPS_RTR] = 1, [IBV_QPS_RTS] = 1,
		[IBV_QPS_SQD] = 1, [IBV_QPS_ERR] = 1,
	};
	static const bool may_send[STATES] = {
		[IBV_QPS_RTS] = 1, [IBV_QPS_SQD] = 1, [IBV_QPS_ERR] = 1,
	};
	struct dev *dev = dev_open();

	for (enum ibv_qp_state s = IBV_QPS_RESET; s < STATES; s++) {
		struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *sbad = NULL;
		struct ibv_recv_wr recv = {}, *rbad = NULL;
		struct rc *rc;

		if (s == IBV_QPS_SQE)
			continue;
		rc = in_state(dev, s);
		test_context("in %s", state_names[s]);
		CHECK_ERR(may_recv[s] ? 0 : EINVAL,
			  ibv_post_recv(rc->qp, &recv, &rbad));
		CHECK(may_recv[s] || rbad == &recv);
		CHECK_ERR(may_send[s] ? 0 : EINVAL,
			  ibv_post_send(rc->qp, &send, &sbad));
		CHECK(may_send[s] || sbad == &send);
		rc_destroy(rc);
	}
}

/* In SQD new requests wait; back in RTS they are carried out. */
static void drained(const struct test_case *c)
{
	struct pair p = pair_new(NULL);
	struct ibv_mr *here = mr_new(p.peer->pd, PAGE);
	struct ibv_mr *there = mr_new(p.owner->pd, PAGE);

	test_fill(here->addr, PAGE, 8);
	MUST_ERR(0, rc_modify(p.peer, IBV_QPS_SQD, NULL));
	post_simple(p.peer, IBV_WR_RDMA_WRITE, 1, here, here->addr, 64,
		    (uintptr_t)there->addr, there->rkey);
	CHECK(cq_quiet(p.peer->scq, 100));
	CHECK_EQ(0, *(char *)there->addr);
	MUST_ERR(0, ibv_modify_qp(p.peer->qp, &(struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS }, IBV_QP_STATE));
	MUST_WC(cq_next(p.peer->scq), 1, IBV_WC_SUCCESS);
	CHECK_BYTES(here->addr, there->addr, 64);
}

/* In RTR a queue pair answers, though it may not ask. */
static void answers_in_rtr(const struct test_case *c)
{
	struct dev *dev = dev_open();
	struct rc *a = rc_create(dev, NULL), *b = rc_create(dev, NULL);
	struct rc_addr aa = rc_addr(a), ba = rc_addr(b);
	struct ibv_mr *here = mr_new(a->pd, PAGE), *there = mr_new(b->pd, PAGE);

	rc_connect(a, &ba);
	MUST_ERR(0, rc_modify(b, IBV_QPS_INIT, &aa));
	MUST_ERR(0, rc_modify(b, IBV_QPS_RTR, &aa));
	post_recv(b, 1, there, there->addr, PAGE);
	MUST_STATUS(IBV_WC_SUCCESS, do_rdma(a, IBV_WR_SEND, here, here->addr, 64, 0, 0));
	MUST_WC(cq_next(b->rcq), 1, IBV_WC_SUCCESS);
	MUST_STATUS(IBV_WC_SUCCESS, do_rdma(a, IBV_WR_RDMA_READ, here, here->addr, 64,
					    (uintptr_t)there->addr, there->rkey));
}

/* Sent in INIT posts nothing; the receives posted there are used from RTR on. */
static void recv_in_init(const struct test_case *c)
{
	struct dev *dev = dev_open();
	struct rc *a = rc_create(dev, NULL), *b = rc_create(dev, NULL);
	struct rc_addr aa = rc_addr(a), ba = rc_addr(b);
	struct ibv_mr *there = mr_new(b->pd, PAGE);

	MUST_ERR(0, rc_modify(b, IBV_QPS_INIT, &aa));
	for (int i = 0; i < 5; i++)
		post_recv(b, i, there, there->addr, PAGE);
	CHECK(cq_quiet(b->rcq, 30));
	MUST_ERR(0, rc_modify(b, IBV_QPS_RTR, &aa));
	rc_connect(a, &ba);
	for (int i = 0; i < 5; i++) {
		MUST_STATUS(IBV_WC_SUCCESS, do_rdma(a, IBV_WR_SEND, NULL, NULL, 0, 0, 0));
		MUST_WC(cq_next(b->rcq), i, IBV_WC_SUCCESS);
	}
}

/* One request that is not right in a list: it and the rest are not posted. */
enum offence { OPCODE, OPCODE_HUGE, SGES, FLAGS, INLINE_READ, ATOMIC };

static void bad_send(const struct test_case *c)
{
	struct pair p = pair_new(&(struct qp_param){ .inline_data = 64 });
	struct ibv_mr *mr = mr_new(p.peer->pd, PAGE);
	struct ibv_mr *there = mr_new(p.owner->pd, PAGE);
	struct ibv_sge sges[64], one = SGE(mr, mr->addr, 8);
	struct ibv_send_wr wr[5], *bad = NULL;

	for (size_t i = 0; i < ARRAY_LEN(sges); i++)
		sges[i] = one;
	for (int i = 0; i < 5; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = i, .next = i < 4 ? &wr[i + 1] : NULL,
			.opcode = IBV_WR_RDMA_WRITE, .sg_list = &one, .num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)there->addr, there->rkey },
		};
	MUST(p.peer->cap.max_send_sge < ARRAY_LEN(sges));
	switch (c->n) {
	case OPCODE:
		wr[3].opcode = IBV_WR_TSO;
		break;
	case OPCODE_HUGE:
		wr[3].opcode = 0x7ffffff0;
		break;
	case SGES:
		wr[3].sg_list = sges;
		wr[3].num_sge = p.peer->cap.max_send_sge + 1;
		break;
	case FLAGS:
		wr[3].send_flags |= 1 << 20;
		break;
	case INLINE_READ:
		wr[3].opcode = IBV_WR_RDMA_READ;
		wr[3].send_flags |= IBV_SEND_INLINE;
		break;
	case ATOMIC:
		wr[3].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		break;
	}
	CHECK_ERR(EINVAL, ibv_post_send(p.peer->qp, wr, &bad));
	CHECK_EQ(3, bad - wr);
	for (int i = 0; i < 3; i++)
		MUST_WC(cq_next(p.peer->scq), i, IBV_WC_SUCCESS);
	CHECK(cq_quiet(p.peer->scq, 30));
	/* The queue goes on working. */
	CHECK_STATUS(IBV_WC_SUCCESS, do_rdma(p.peer, IBV_WR_RDMA_WRITE, mr, mr->addr,
					     8, (uintptr_t)there->addr, there->rkey));
}

static void bad_recv(const struct test_case *c)
{
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_new(p.owner->pd, PAGE);
	struct ibv_sge sges[64];
	struct ibv_recv_wr wr[3], *bad = NULL;

	for (size_t i = 0; i < ARRAY_LEN(sges); i++)
		sges[i] = SGE(mr, mr->addr, 8);
	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_recv_wr){ .wr_id = i, .sg_list = sges,
			.num_sge = 1, .next = i < 2 ? &wr[i + 1] : NULL };
	wr[1].num_sge = p.owner->cap.max_recv_sge + 1;
	MUST((size_t)wr[1].num_sge <= ARRAY_LEN(sges));
	CHECK_ERR(EINVAL, ibv_post_recv(p.owner->qp, wr, &bad));
	CHECK_EQ(1, bad - wr);
	/* The one before it is in the queue, those from it on are not. */
	post_recv(p.owner, 77, NULL, NULL, 0);
	for (int i = 0; i < 2; i++)
		MUST_STATUS(IBV_WC_SUCCESS,
			    do_rdma(p.peer, IBV_WR_SEND, NULL, NULL, 0, 0, 0));
	MUST_WC(cq_next(p.owner->rcq), 0, IBV_WC_SUCCESS);
	MUST_WC(cq_next(p.owner->rcq), 77, IBV_WC_SUCCESS);
}

/* One more than the queue holds: ENOMEM at that one, and the rest is done. */
static void full_queues(const struct test_case *c)
{
	struct pair p = pair_new(&(struct qp_param){ .send_wr = 8, .recv_wr = 8,
						     .min_rnr_timer = 1 });
	uint32_t sends = p.peer->cap.max_send_wr, recvs = p.owner->cap.max_recv_wr;
	struct ibv_send_wr *wr = calloc(sends + 2, sizeof(*wr)), *bad = NULL;
	struct ibv_recv_wr *rwr = calloc(recvs + 2, sizeof(*rwr)), *rbad = NULL;

	MUST(wr && rwr);
	CHECK_BETWEEN(8, sends, 4096);
	CHECK_BETWEEN(8, recvs, 4096);
	/* Nobody receives yet, so nothing leaves the queue. */
	for (uint32_t i = 0; i < sends + 2; i++)
		wr[i] = (struct ibv_send_wr){ .wr_id = i, .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.next = i < sends + 1 ? &wr[i + 1] : NULL };
	CHECK_ERR(ENOMEM, ibv_post_send(p.peer->qp, wr, &bad));
	CHECK_EQ(sends, bad - wr);
	for (uint32_t i = 0; i < sends; i++) {
		post_recv(p.owner, i, NULL, NULL, 0);
		MUST_WC(cq_next(p.peer->scq), i, IBV_WC_SUCCESS);
		MUST_WC(cq_next(p.owner->rcq), i, IBV_WC_SUCCESS);
	}
	for (uint32_t i = 0; i < recvs + 2; i++)
		rwr[i] = (struct ibv_recv_wr){ .wr_id = i,
			.next = i < recvs + 1 ? &rwr[i + 1] : NULL };
	CHECK_ERR(ENOMEM, ibv_post_recv(p.owner->qp, rwr, &rbad));
	CHECK_EQ(recvs, rbad - rwr);
	MUST_STATUS(IBV_WC_SUCCESS, do_rdma(p.peer, IBV_WR_SEND, NULL, NULL, 0, 0, 0));
	MUST_WC(cq_next(p.owner->rcq), 0, IBV_WC_SUCCESS);
	/* The place is free again. */
	post_recv(p.owner, 5, NULL, NULL, 0);
}

#define FROM(s)	{ "from " #s " exactly the specification's transitions are taken", \
		  transitions, NULL, IBV_QPS_##s }
#define ATTRS(s) { "to " #s " every attribute it needs is asked for", attributes, \
		   NULL, IBV_QPS_##s }
#define BAD(text, offence)						\
	{ text " is EINVAL, and what is before it in the list is posted",	\
	  bad_send, NULL, offence }

static const struct test_case cases[] = {
	FROM(RESET), FROM(INIT), FROM(RTR), FROM(RTS), FROM(SQD), FROM(ERR),
	ATTRS(INIT), ATTRS(RTR), ATTRS(RTS),
	{ "attributes out of range are EINVAL and change nothing", attribute_values },
	{ "ibv_query_qp returns what was set", query },
	{ "creation beyond the device's limits is refused", bad_create },
	{ "sends and receives are taken in the states that allow them, else EINVAL",
	  posts_by_state },
	{ "in SQD requests wait and in RTS they go on", drained },
	{ "a QP in RTR answers its peer", answers_in_rtr },
	{ "receives posted in INIT are used from RTR on", recv_in_init },
	BAD("an opcode that an RC QP does not have", OPCODE),
	BAD("an opcode that nobody has", OPCODE_HUGE),
	BAD("a request with too many SGEs", SGES),
	BAD("an unknown send flag", FLAGS),
	BAD("an RDMA READ with inline data", INLINE_READ),
	BAD("an atomic, which the device does not have,", ATOMIC),
	{ "a receive with too many SGEs is EINVAL", bad_recv },
	{ "a full queue is ENOMEM at the first request that has no place",
	  full_queues },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
