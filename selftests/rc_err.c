// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What goes wrong on an established connection: the status at both ends, the
 * states, the asynchronous events, what is flushed, and that memory stays as it
 * was. Refused posts and transitions are in rc_state.c.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/pair.h"

#define PAGE	4096UL
#define CANARY	0xa5
#define MS_SOON	20000

struct stage {
	struct pair p;
	struct ibv_mr *here, *there;
};

static struct stage stage_new(const struct qp_param *param)
{
	struct stage s = { .p = pair_new(param) };

	s.here = mr_new(s.p.peer->pd, 4 * PAGE);
	s.there = mr_new(s.p.owner->pd, 4 * PAGE);
	memset(s.here->addr, 0x11, 4 * PAGE);
	memset(s.there->addr, CANARY, 4 * PAGE);
	return s;
}

static void check_untouched(const struct ibv_mr *mr, unsigned char byte)
{
	unsigned char *expected = malloc(mr->length);

	MUST(expected);
	memset(expected, byte, mr->length);
	CHECK_BYTES(expected, mr->addr, mr->length);
	free(expected);
}

static void check_state(struct rc *rc, enum ibv_qp_state expected)
{
	/* A remote side learns of it when it answers. */
	for (int i = 0; i < 1000 && rc_state(rc) != expected; i++)
		test_sleep_ms(2);
	CHECK_EQ(expected, rc_state(rc));
}

/*
 * One remote access by the peer that the owner's side must refuse: what is
 * asked for, and how it differs from what is allowed.
 */
struct refusal {
	enum ibv_wr_opcode opcode;
	unsigned int mr_access;		/* 0: MR_ALL */
	unsigned int qp_access;		/* of the owner; 0: QP_REMOTE_ALL */
	long shift;			/* of the address from the region's start */
	uint32_t length;
	uint32_t key_xor;
	bool other_pd;
	bool invalid_request;		/* not a matter of access to memory */
};

static void refused_access(const struct test_case *c)
{
	const struct refusal *r = c->arg;
	struct qp_param param = { .access = r->qp_access };
	struct stage s = stage_new(&param);
	struct ibv_mr *region, *others;
	struct ibv_pd *pd = s.p.owner->pd;
	char *start = (char *)s.there->addr + PAGE;

	if (r->other_pd) {
		pd = ibv_alloc_pd(s.p.dev->ctx);
		MUST(pd);
	}
	region = mr_reg(pd, start, PAGE, r->mr_access ? r->mr_access : MR_ALL);
	others = mr_new(s.p.owner->pd, PAGE);
	post_recv(s.p.owner, 7, others, others->addr, PAGE);
	post_simple(s.p.peer, r->opcode, 1, s.here, s.here->addr, r->length,
		    (uintptr_t)start + r->shift, region->rkey ^ r->key_xor);
	post_simple(s.p.peer, IBV_WR_SEND, 2, NULL, NULL, 0, 0, 0);

	MUST_WC(cq_next(s.p.peer->scq), 1, r->invalid_request ?
		IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR);
	MUST_WC(cq_next(s.p.peer->scq), 2, IBV_WC_WR_FLUSH_ERR);
	check_state(s.p.peer, IBV_QPS_ERR);
	check_state(s.p.owner, IBV_QPS_ERR);
	MUST_WC(cq_next(s.p.owner->rcq), 7, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(r->invalid_request ? IBV_EVENT_QP_REQ_ERR :
		 IBV_EVENT_QP_ACCESS_ERR, async_wait(s.p.dev->ctx, MS_SOON));
	check_untouched(s.there, CANARY);
	check_untouched(s.here, 0x11);
}

#define W	IBV_WR_RDMA_WRITE
#define R	IBV_WR_RDMA_READ
#define RW_ONLY	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static const struct refusal
	wrong_rkey_low = { W, .length = 64, .key_xor = 0x01 },
	wrong_rkey_high = { W, .length = 64, .key_xor = 0x7f00 },
	read_wrong_rkey = { R, .length = 64, .key_xor = 0x80 },
	write_past_end = { W, .length = PAGE + 1 },
	write_before_start = { W, .length = 64, .shift = -1 },
	write_over_end = { W, .length = 2, .shift = PAGE - 1 },
	write_at_end = { W, .length = 1, .shift = PAGE },
	read_past_end = { R, .length = PAGE + 1 },
	read_before_start = { R, .length = 64, .shift = -1 },
	imm_past_end = { IBV_WR_RDMA_WRITE_WITH_IMM, .length = PAGE + 1 },
	far_away = { W, .length = 64, .shift = -0x7000000000000000 },
	wraps = { W, .length = 64, .shift = 0x7fffffffffffffff },
	mr_no_write = { W, .length = 64,
			.mr_access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE },
	mr_no_read = { R, .length = 64, .mr_access = RW_ONLY },
	qp_no_write = { W, .length = 64, .qp_access = IBV_ACCESS_REMOTE_READ,
			.invalid_request = true },
	qp_no_read = { R, .length = 64, .qp_access = IBV_ACCESS_REMOTE_WRITE,
		       .invalid_request = true },
	write_other_pd = { W, .length = 64, .other_pd = true },
	read_other_pd = { R, .length = 64, .other_pd = true };

/* A length of 0 touches nothing: neither key nor address is looked at. */
static void zero_length(const struct test_case *c)
{
	struct stage s = stage_new(NULL);

	CHECK_STATUS(IBV_WC_SUCCESS, do_rdma(s.p.peer, IBV_WR_RDMA_WRITE, NULL,
					     NULL, 0, 0x1234, 0));
	CHECK_STATUS(IBV_WC_SUCCESS, do_rdma(s.p.peer, IBV_WR_RDMA_READ, NULL,
					     NULL, 0, 0x1234, 0));
	CHECK_EQ(IBV_QPS_RTS, rc_state(s.p.owner));
}

/* The requester's own memory is not right: it fails before the peer notices. */
enum local { WRONG_LKEY, OTHER_PD, OUT_OF_RANGE, NOT_WRITABLE, DEREGISTERED };

static void local_error(const struct test_case *c)
{
	struct stage s = stage_new(NULL);
	struct ibv_sge sge = SGE(s.here, s.here->addr, 64);
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = c->n == NOT_WRITABLE ? IBV_WR_RDMA_READ :
			  IBV_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)s.there->addr, s.there->rkey },
	};
	struct ibv_pd *pd = ibv_alloc_pd(s.p.dev->ctx);
	struct ibv_mr *mr;

	MUST(pd);
	switch (c->n) {
	case WRONG_LKEY:
		sge.lkey ^= 1;
		break;
	case OTHER_PD:
		mr = mr_reg(pd, s.here->addr, PAGE, MR_ALL);
		sge.lkey = mr->lkey;
		break;
	case OUT_OF_RANGE:
		sge.addr += 4 * PAGE - 63;
		break;
	case NOT_WRITABLE:
		mr = mr_reg(s.p.peer->pd, s.here->addr, PAGE,
			    IBV_ACCESS_REMOTE_READ);
		sge.lkey = mr->lkey;
		break;
	case DEREGISTERED:
		mr = mr_reg(s.p.peer->pd, s.here->addr, PAGE, MR_ALL);
		sge.lkey = mr->lkey;
		MUST_ERR(0, ibv_dereg_mr(mr));
		break;
	}
	post_send(s.p.peer, &wr);
	MUST_WC(cq_next(s.p.peer->scq), 1, IBV_WC_LOC_PROT_ERR);
	check_state(s.p.peer, IBV_QPS_ERR);
	CHECK_EQ(IBV_QPS_RTS, rc_state(s.p.owner));
	check_untouched(s.there, CANARY);
	check_untouched(s.here, 0x11);
}

/* The receiver's memory is not right: both ends fail. */
static void receive_error(const struct test_case *c)
{
	struct stage s = stage_new(NULL);
	struct ibv_sge sge = SGE(s.there, s.there->addr, 64);
	struct ibv_recv_wr wr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (c->n == WRONG_LKEY)
		sge.lkey ^= 1;
	else
		sge.addr += 4 * PAGE - 63;
	MUST_ERR(0, ibv_post_recv(s.p.owner->qp, &wr, &bad));
	post_simple(s.p.peer, IBV_WR_SEND, 1, s.here, s.here->addr, 64, 0, 0);
	MUST_WC(cq_next(s.p.owner->rcq), 3, IBV_WC_LOC_PROT_ERR);
	MUST_WC(cq_next(s.p.peer->scq), 1, IBV_WC_REM_OP_ERR);
	check_state(s.p.owner, IBV_QPS_ERR);
	check_state(s.p.peer, IBV_QPS_ERR);
	check_untouched(s.there, CANARY);
}

static void receive_too_short(const struct test_case *c)
{
	struct stage s = stage_new(NULL);

	post_recv(s.p.owner, 3, s.there, s.there->addr, 63);
	post_simple(s.p.peer, IBV_WR_SEND, 1, s.here, s.here->addr, 64, 0, 0);
	MUST_WC(cq_next(s.p.owner->rcq), 3, IBV_WC_LOC_LEN_ERR);
	MUST_WC(cq_next(s.p.peer->scq), 1, IBV_WC_REM_INV_REQ_ERR);
	check_state(s.p.owner, IBV_QPS_ERR);
	check_state(s.p.peer, IBV_QPS_ERR);
	/* Data may have been placed, but never beyond the buffer. */
	CHECK_EQ(CANARY, ((unsigned char *)s.there->addr)[63]);
}

static void rnr_exhausted(const struct test_case *c)
{
	/* 3 retries of 1.28 ms (IBA, table 45: code 14 is 1.28 ms). */
	struct stage s = stage_new(&(struct qp_param){ .rnr_retry = c->n ? 3 : -1,
						       .min_rnr_timer = 14 });

	post_simple(s.p.peer, IBV_WR_SEND, 1, s.here, s.here->addr, 64, 0, 0);
	post_simple(s.p.peer, IBV_WR_SEND, 2, s.here, s.here->addr, 64, 0, 0);
	MUST_WC(cq_next(s.p.peer->scq), 1, IBV_WC_RNR_RETRY_EXC_ERR);
	MUST_WC(cq_next(s.p.peer->scq), 2, IBV_WC_WR_FLUSH_ERR);
	check_state(s.p.peer, IBV_QPS_ERR);
	CHECK_EQ(IBV_QPS_RTS, rc_state(s.p.owner));
	/* A receive that comes too late is not used. */
	post_recv(s.p.owner, 3, s.there, s.there->addr, 64);
	CHECK(cq_quiet(s.p.owner->rcq, 30));
	check_untouched(s.there, CANARY);
}

static void rnr_times(const struct test_case *c)
{
	/* 4 retries of 40.96 ms. */
	struct stage s = stage_new(&(struct qp_param){ .rnr_retry = 4,
						       .min_rnr_timer = 24 });
	double start = test_now();

	post_simple(s.p.peer, IBV_WR_SEND, 1, s.here, s.here->addr, 64, 0, 0);
	MUST_WC(cq_next(s.p.peer->scq), 1, IBV_WC_RNR_RETRY_EXC_ERR);
	/* The time may be longer by any amount on a busy machine, not shorter. */
	CHECK_BETWEEN(4 * 40, (test_now() - start) * 1000, 20000);
}

static void rnr_for_ever(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .rnr_retry = 7,
						       .min_rnr_timer = 1 });

	post_simple(s.p.peer, IBV_WR_SEND, 1, s.here, s.here->addr, 64, 0, 0);
	post_simple(s.p.peer, IBV_WR_SEND, 2, s.here, (char *)s.here->addr, 8, 0, 0);
	/* Far more than 7 times the 0.01 ms that the receiver asks for. */
	CHECK(cq_quiet(s.p.peer->scq, 300));
	post_recv(s.p.owner, 3, s.there, s.there->addr, 64);
	MUST_WC(cq_next(s.p.owner->rcq), 3, IBV_WC_SUCCESS);
	MUST_WC(cq_next(s.p.peer->scq), 1, IBV_WC_SUCCESS);
	CHECK_BYTES(s.here->addr, s.there->addr, 64);
	CHECK(cq_quiet(s.p.peer->scq, 50));
	post_recv(s.p.owner, 4, s.there, s.there->addr, 64);
	MUST_WC(cq_next(s.p.owner->rcq), 4, IBV_WC_SUCCESS);
	MUST_WC(cq_next(s.p.peer->scq), 2, IBV_WC_SUCCESS);
}

static void rnr_write_imm(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .min_rnr_timer = 1 });

	post_simple(s.p.peer, IBV_WR_RDMA_WRITE_WITH_IMM, 1, s.here, s.here->addr,
		    64, (uintptr_t)s.there->addr, s.there->rkey);
	CHECK(cq_quiet(s.p.peer->scq, 50));
	/* Nor is anything placed yet. */
	check_untouched(s.there, CANARY);
	post_recv(s.p.owner, 3, NULL, NULL, 0);
	MUST_WC(cq_next(s.p.owner->rcq), 3, IBV_WC_SUCCESS);
	MUST_WC(cq_next(s.p.peer->scq), 1, IBV_WC_SUCCESS);
	CHECK_BYTES(s.here->addr, s.there->addr, 64);
}

/* Timeout 8 is 1.05 ms; the specification allows four times that. */
#define IMPATIENT { .timeout = 8, .retry_cnt = 2 }

enum gone { NEVER_WAS, DESTROYED, IN_RESET, IN_INIT, IN_ERR, NOT_CONNECTED };

static void peer_gone(const struct test_case *c)
{
	static const struct qp_param impatient = IMPATIENT;
	struct dev *dev = dev_open();
	struct rc *rc = rc_create(dev, &impatient);
	struct rc *other = rc_create(dev, &impatient);
	struct rc *third = rc_create(dev, &impatient);
	struct rc_addr a = rc_addr(rc), b = rc_addr(other), t = rc_addr(third);
	struct ibv_mr *mr = mr_new(rc->pd, PAGE);

	switch (c->n) {
	case NEVER_WAS:
		b.qpn = 0xfffff0;
		break;
	case DESTROYED:
		MUST_ERR(0, ibv_destroy_qp(other->qp));
		break;
	case IN_INIT:
		MUST_ERR(0, rc_modify(other, IBV_QPS_INIT, NULL));
		break;
	case IN_ERR:
		rc_connect(other, &a);
		MUST_ERR(0, rc_modify(other, IBV_QPS_ERR, NULL));
		break;
	case NOT_CONNECTED:
		/* It is connected, and to another queue pair. */
		rc_connect(other, &t);
		break;
	}
	rc_connect(rc, &b);
	post_simple(rc, IBV_WR_RDMA_WRITE, 1, mr, mr->addr, 64, 0, 0);
	post_simple(rc, IBV_WR_SEND, 2, NULL, NULL, 0, 0, 0);
	MUST_WC(cq_next(rc->scq), 1, IBV_WC_RETRY_EXC_ERR);
	MUST_WC(cq_next(rc->scq), 2, IBV_WC_WR_FLUSH_ERR);
	check_state(rc, IBV_QPS_ERR);
}

static void peer_late(const struct test_case *c)
{
	struct dev *dev = dev_open();
	/* 7 retries of 0.27 to 1.07 s. */
	struct rc *rc = rc_create(dev, &(struct qp_param){ .timeout = 16 });
	struct rc *other = rc_create(dev, NULL);
	struct rc_addr a = rc_addr(rc), b = rc_addr(other);
	struct ibv_mr *mr = mr_new(rc->pd, PAGE), *there = mr_new(other->pd, PAGE);

	rc_connect(rc, &b);
	post_simple(rc, IBV_WR_SEND, 1, mr, mr->addr, 64, 0, 0);
	test_sleep_ms(100);
	CHECK(cq_quiet(rc->scq, 0));
	MUST_ERR(0, rc_modify(other, IBV_QPS_INIT, &a));
	post_recv(other, 2, there, there->addr, PAGE);
	MUST_ERR(0, rc_modify(other, IBV_QPS_RTR, &a));
	MUST_WC(cq_next(rc->scq), 1, IBV_WC_SUCCESS);
	MUST_WC(cq_next(other->rcq), 2, IBV_WC_SUCCESS);
}

/* Everything outstanding in both queues, in order, and what is posted later. */
static void flush(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .min_rnr_timer = 31 });
	struct rc *rc = s.p.peer;

	for (int i = 0; i < 20; i++)
		post_recv(rc, 100 + i, s.here, s.here->addr, 64);
	for (int i = 0; i < 20; i++) {
		/* The first one waits for a receive, the rest for the first. */
		struct ibv_send_wr wr = { .wr_id = i, .opcode = IBV_WR_SEND };

		post_send(rc, &wr);
	}
	CHECK(cq_quiet(rc->scq, 20));
	MUST_ERR(0, rc_modify(rc, IBV_QPS_ERR, NULL));
	for (int i = 0; i < 20; i++) {
		MUST_WC(cq_next(rc->scq), i, IBV_WC_WR_FLUSH_ERR);
		MUST_WC(cq_next(rc->rcq), 100 + i, IBV_WC_WR_FLUSH_ERR);
	}
	for (int i = 0; i < 3; i++) {
		struct ibv_send_wr wr = { .wr_id = 50 + i, .opcode = IBV_WR_SEND };
		struct ibv_wc wc;

		test_context("posted in ERR, %d", i);
		post_send(rc, &wr);
		wc = cq_next(rc->scq);
		MUST_WC(wc, 50 + i, IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(rc->qp->qp_num, wc.qp_num);
		post_recv(rc, 60 + i, NULL, NULL, 0);
		MUST_WC(cq_next(rc->rcq), 60 + i, IBV_WC_WR_FLUSH_ERR);
	}
	CHECK(cq_quiet(rc->scq, 20));
	CHECK(cq_quiet(rc->rcq, 20));
}

/* Requests without a completion of their own have one when they are flushed. */
static void flush_unsignaled(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .min_rnr_timer = 31 });
	struct rc *rc = s.p.peer;

	for (int i = 0; i < 5; i++) {
		struct ibv_send_wr wr = { .wr_id = i, .opcode = IBV_WR_SEND }, *bad;

		MUST_ERR(0, ibv_post_send(rc->qp, &wr, &bad));
	}
	MUST_ERR(0, rc_modify(rc, IBV_QPS_ERR, NULL));
	for (int i = 0; i < 5; i++)
		MUST_WC(cq_next(rc->scq), i, IBV_WC_WR_FLUSH_ERR);
}

static void error_unsignaled(const struct test_case *c)
{
	struct stage s = stage_new(NULL);
	struct ibv_sge sge = SGE(s.here, s.here->addr, 64);
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge,
		.num_sge = 1, .wr.rdma = { (uintptr_t)s.there->addr, 0xbad },
	}, *bad;

	MUST_ERR(0, ibv_post_send(s.p.peer->qp, &wr, &bad));
	MUST_WC(cq_next(s.p.peer->scq), 1, IBV_WC_REM_ACCESS_ERR);
}

/* What was done before the error stands; what comes after it is not done. */
static void stops_at_error(const struct test_case *c)
{
	struct stage s = stage_new(NULL);
	unsigned char *to = s.there->addr;

	for (int i = 0; i < 8; i++)
		post_simple(s.p.peer, IBV_WR_RDMA_WRITE, i, s.here, s.here->addr, 16,
			    (uintptr_t)to + i * 16,
			    i == 4 ? s.there->rkey ^ 1 : s.there->rkey);
	for (int i = 0; i < 8; i++)
		MUST_WC(cq_next(s.p.peer->scq), i,
			i < 4 ? IBV_WC_SUCCESS : i == 4 ? IBV_WC_REM_ACCESS_ERR :
			IBV_WC_WR_FLUSH_ERR);
	CHECK_BYTES(s.here->addr, to, 64);
	CHECK_EQ(CANARY, to[64]);
	CHECK_EQ(CANARY, to[5 * 16]);
}

/* After an error, RESET makes it as new. */
static void reuse(const struct test_case *c)
{
	struct stage s = stage_new(NULL);
	struct ibv_wc wc;

	for (int i = 0; i < 5; i++) {
		test_context("turn %d", i);
		memset(s.there->addr, CANARY, 64);
		post_recv(s.p.owner, 9, NULL, NULL, 0);
		MUST_STATUS(IBV_WC_SUCCESS,
			    do_rdma(s.p.peer, IBV_WR_RDMA_WRITE, s.here, s.here->addr,
				    64, (uintptr_t)s.there->addr, s.there->rkey));
		CHECK_BYTES(s.here->addr, s.there->addr, 64);
		MUST_STATUS(IBV_WC_REM_ACCESS_ERR,
			    do_rdma(s.p.peer, IBV_WR_RDMA_WRITE, s.here, s.here->addr,
				    64, (uintptr_t)s.there->addr, 0xbad));
		MUST_WC(cq_next(s.p.owner->rcq), 9, IBV_WC_WR_FLUSH_ERR);
		MUST_ERR(0, rc_modify(s.p.peer, IBV_QPS_RESET, NULL));
		MUST_ERR(0, rc_modify(s.p.owner, IBV_QPS_RESET, NULL));
		CHECK_EQ(0, ibv_poll_cq(s.p.peer->scq, 1, &wc));
		rc_pair(s.p.peer, s.p.owner);
	}
}

/* What was outstanding at RESET is forgotten without a completion. */
static void reset_forgets(const struct test_case *c)
{
	struct stage s = stage_new(&(struct qp_param){ .min_rnr_timer = 31 });
	struct rc *rc = s.p.peer;

	for (int i = 0; i < 10; i++) {
		post_recv(rc, 100 + i, NULL, NULL, 0);
		post_simple(rc, IBV_WR_SEND, i, NULL, NULL, 0, 0, 0);
	}
	MUST_ERR(0, rc_modify(rc, IBV_QPS_RESET, NULL));
	CHECK(cq_quiet(rc->scq, 50));
	CHECK(cq_quiet(rc->rcq, 10));
	MUST_ERR(0, rc_modify(s.p.owner, IBV_QPS_RESET, NULL));
	rc_pair(s.p.peer, s.p.owner);
	post_recv(s.p.owner, 1, s.there, s.there->addr, 64);
	post_simple(rc, IBV_WR_SEND, 77, s.here, s.here->addr, 64, 0, 0);
	MUST_WC(cq_next(rc->scq), 77, IBV_WC_SUCCESS);
	MUST_WC(cq_next(s.p.owner->rcq), 1, IBV_WC_SUCCESS);
	CHECK_BYTES(s.here->addr, s.there->addr, 64);
	/* The receives of before are not there for what comes now. */
	post_simple(s.p.owner, IBV_WR_SEND, 5, NULL, NULL, 0, 0, 0);
	CHECK(cq_quiet(rc->rcq, 50));
	CHECK(cq_quiet(rc->scq, 10));
}

#define REFUSED(id, text) { text " is refused with a remote access error", \
			    refused_access, &(id) }

static const struct test_case cases[] = {
	REFUSED(wrong_rkey_low, "a write by an rkey with wrong low 8 bits"),
	REFUSED(wrong_rkey_high, "a write by an rkey with a wrong index"),
	REFUSED(read_wrong_rkey, "a read by a wrong rkey"),
	REFUSED(write_past_end, "a write one byte longer than its region"),
	REFUSED(write_before_start, "a write that starts a byte before its region"),
	REFUSED(write_over_end, "a write of 2 bytes from the region's last on"),
	REFUSED(write_at_end, "a write of 1 byte just behind its region"),
	REFUSED(read_past_end, "a read one byte longer than its region"),
	REFUSED(read_before_start, "a read that starts a byte before its region"),
	REFUSED(imm_past_end, "a write with immediate beyond its region"),
	REFUSED(far_away, "a write far from its region"),
	REFUSED(wraps, "a write whose offset overflows"),
	REFUSED(mr_no_write, "a write to a region without REMOTE_WRITE"),
	REFUSED(mr_no_read, "a read from a region without REMOTE_READ"),
	{ "a write on a QP without REMOTE_WRITE is an invalid request",
	  refused_access, &qp_no_write },
	{ "a read on a QP without REMOTE_READ is an invalid request",
	  refused_access, &qp_no_read },
	REFUSED(write_other_pd, "a write to another protection domain's region"),
	REFUSED(read_other_pd, "a read from another protection domain's region"),
	{ "RDMA of length 0 needs neither key nor address", zero_length },
	{ "a wrong lkey is a local protection error", local_error, NULL, WRONG_LKEY },
	{ "another protection domain's lkey is a local protection error",
	  local_error, NULL, OTHER_PD },
	{ "an SGE a byte beyond its region is a local protection error",
	  local_error, NULL, OUT_OF_RANGE },
	{ "a read into a region without LOCAL_WRITE is a local protection error",
	  local_error, NULL, NOT_WRITABLE },
	{ "a deregistered region's lkey is a local protection error",
	  local_error, NULL, DEREGISTERED },
	{ "a receive with a wrong lkey fails at both ends", receive_error, NULL,
	  WRONG_LKEY },
	{ "a receive a byte beyond its region fails at both ends", receive_error,
	  NULL, OUT_OF_RANGE },
	{ "a message a byte longer than its receive is a length error",
	  receive_too_short },
	{ "a send without a receive fails at once with rnr_retry 0",
	  rnr_exhausted, NULL, 0 },
	{ "a send without a receive fails when rnr_retry is exhausted",
	  rnr_exhausted, NULL, 1 },
	{ "each RNR retry waits for the time that the receiver asks for",
	  rnr_times },
	{ "with rnr_retry 7 a send waits for its receive for ever", rnr_for_ever },
	{ "a write with immediate waits for its receive", rnr_write_imm },
	{ "a request to a QP that never was exceeds its retries", peer_gone, NULL,
	  NEVER_WAS },
	{ "a request to a destroyed QP exceeds its retries", peer_gone, NULL,
	  DESTROYED },
	{ "a request to a QP in RESET exceeds its retries", peer_gone, NULL,
	  IN_RESET },
	{ "a request to a QP in INIT exceeds its retries", peer_gone, NULL, IN_INIT },
	{ "a request to a QP in ERR exceeds its retries", peer_gone, NULL, IN_ERR },
	{ "a request to a QP connected elsewhere exceeds its retries", peer_gone,
	  NULL, NOT_CONNECTED },
	{ "a peer that becomes ready within the retries is reached", peer_late },
	{ "in ERR everything outstanding and posted is flushed in order", flush },
	{ "unsignaled requests complete when they are flushed", flush_unsignaled },
	{ "an unsignaled request that fails has a completion", error_unsignaled },
	{ "what is behind a failed request is not carried out", stops_at_error },
	{ "after RESET a failed QP works as new", reuse },
	{ "RESET forgets what was outstanding", reset_forgets },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
