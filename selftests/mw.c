// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Type 2 memory windows: what a bind asks for, what a bound window lets through,
 * and local invalidation. Remote invalidation is in send_inv.c, what neither may
 * invalidate in inv_refused.c, type 1 in mw1.c.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/pair.h"
#include "lib/proc.h"

#define PAGE	4096UL
#define CANARY	0xa5
#define WINDOW	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

struct stage {
	struct pair p;
	struct ibv_mr *here, *there;
	struct window window;
};

static struct stage stage_new(void)
{
	/* A failed bind ends the owner's side, and the peer need not wait long. */
	static const struct qp_param param = { .timeout = 10, .retry_cnt = 2 };
	struct stage s = { .p = pair_new(&param) };

	s.here = mr_new(s.p.peer->pd, PAGE);
	s.there = mr_new(s.p.owner->pd, 4 * PAGE);
	memset(s.here->addr, 0x11, PAGE);
	memset(s.there->addr, CANARY, 4 * PAGE);
	s.window = mw_new(s.p.owner->pd);
	return s;
}

/* One access by the peer through a window on the middle two pages of four. */
struct access {
	enum ibv_wr_opcode opcode;
	unsigned int window;
	long from;
	uint32_t length;
	bool through_region;
	enum ibv_wc_status status;
};

static void access_window(const struct test_case *c)
{
	const struct access *a = c->arg;
	struct stage s = stage_new();
	char *start = (char *)s.there->addr + PAGE;
	unsigned char *expected = malloc(4 * PAGE);

	MUST(expected);
	memset(expected, CANARY, 4 * PAGE);
	MUST_STATUS(IBV_WC_SUCCESS, mw_bind(s.p.owner, &s.window, s.there, start,
					    2 * PAGE, a->window));
	if (a->status == IBV_WC_SUCCESS && a->opcode == IBV_WR_RDMA_WRITE)
		memset(expected + PAGE + a->from, 0x11, a->length);
	CHECK_STATUS(a->status, do_rdma(s.p.peer, a->opcode, s.here, s.here->addr,
					a->length, (uintptr_t)start + a->from,
					s.window.rkey));
	CHECK_BYTES(expected, s.there->addr, 4 * PAGE);
	if (a->opcode == IBV_WR_RDMA_READ)
		CHECK_EQ(a->status == IBV_WC_SUCCESS ? CANARY : 0x11,
			 *(unsigned char *)s.here->addr);
	free(expected);
}

#define W	IBV_WR_RDMA_WRITE
#define R	IBV_WR_RDMA_READ
#define OK	IBV_WC_SUCCESS
#define NO	IBV_WC_REM_ACCESS_ERR

static const struct access
	first_bytes = { W, WINDOW, 0, 64, .status = OK },
	last_bytes = { W, WINDOW, 2 * PAGE - 64, 64, .status = OK },
	over_the_middle = { W, WINDOW, PAGE - 3, 7, .status = OK },
	read_all = { R, WINDOW, 0, PAGE, .status = OK },
	before = { W, WINDOW, -1, 64, .status = NO },
	behind = { W, WINDOW, 2 * PAGE, 1, .status = NO },
	over_the_end = { W, WINDOW, 2 * PAGE - 63, 64, .status = NO },
	read_behind = { R, WINDOW, 2 * PAGE - 63, 64, .status = NO },
	write_read_only = { W, IBV_ACCESS_REMOTE_READ, 0, 64, .status = NO },
	read_write_only = { R, IBV_ACCESS_REMOTE_WRITE, 0, 64, .status = NO };

/* A bind across protection domains is refused by the post, as ibv_bind_mw(). */
enum whose { REGION, WINDOWS };

static void foreign_bind(const struct test_case *c)
{
	struct stage s = stage_new();
	struct ibv_pd *other = ibv_alloc_pd(s.p.dev->ctx);
	struct ibv_mr *mr = s.there;

	MUST(other);
	if (c->n == REGION)
		mr = mr_reg(other, mr->addr, 4 * PAGE, MR_ALL);
	else
		s.window = mw_new(other);
	CHECK_ERR(EPERM, mw_post_bind(s.p.owner, &s.window, mr, mr->addr, PAGE,
				      WINDOW));
	CHECK(cq_quiet(s.p.owner->scq, 30));
	CHECK(do_rdma(s.p.peer, W, s.here, s.here->addr, 64,
		      (uintptr_t)s.there->addr, ibv_inc_rkey(s.window.rkey)) != OK);
	CHECK_EQ(CANARY, *(unsigned char *)s.there->addr);
}

/* Which binds are refused, by what is wrong with them. */
enum wrong { MR_WITHOUT_BIND, MR_WITHOUT_WRITE, TOO_LONG, BEFORE_START, WRAPS };

static void bad_bind(const struct test_case *c)
{
	struct stage s = stage_new();
	struct ibv_mr *mr = s.there;
	char *start = mr->addr;
	uint64_t length = PAGE;
	uint32_t key;

	switch (c->n) {
	case MR_WITHOUT_BIND:
		mr = mr_reg(s.p.owner->pd, start, 4 * PAGE,
			    MR_ALL & ~IBV_ACCESS_MW_BIND);
		break;
	case MR_WITHOUT_WRITE:
		mr = mr_reg(s.p.owner->pd, start, 4 * PAGE,
			    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
		break;
	case TOO_LONG:
		length = 4 * PAGE + 1;
		break;
	case BEFORE_START:
		start--;
		break;
	case WRAPS:
		length = -(uint64_t)16;
		break;
	}
	key = ibv_inc_rkey(s.window.rkey);
	CHECK_STATUS(IBV_WC_MW_BIND_ERR,
		     mw_bind(s.p.owner, &s.window, mr, start, length, WINDOW));
	/* The key that it was to have opens nothing. */
	CHECK(do_rdma(s.p.peer, W, s.here, s.here->addr, 64,
		      (uintptr_t)s.there->addr, key) != OK);
	CHECK_EQ(CANARY, *(unsigned char *)s.there->addr);
	CHECK_ERR(0, ibv_dereg_mr(s.there));
}

/* Another queue pair of the owner's, with a peer of its own, in the same PD. */
static void other_qp(const struct test_case *c)
{
	struct stage s = stage_new();
	struct rc *owner = rc_create(s.p.dev, &(struct qp_param){
		.pd = s.p.owner->pd });
	struct rc *peer = rc_create(s.p.dev, &(struct qp_param){
		.pd = s.p.peer->pd });

	rc_pair(owner, peer);
	MUST_STATUS(OK, mw_bind(s.p.owner, &s.window, s.there, s.there->addr, PAGE,
				WINDOW));
	CHECK_STATUS(NO, do_rdma(peer, W, s.here, s.here->addr, 64,
				 (uintptr_t)s.there->addr, s.window.rkey));
	CHECK_EQ(CANARY, *(unsigned char *)s.there->addr);
	CHECK_STATUS(OK, do_rdma(s.p.peer, W, s.here, s.here->addr, 64,
				 (uintptr_t)s.there->addr, s.window.rkey));
}

static void bound_twice(const struct test_case *c)
{
	struct stage s = stage_new();
	char *two = (char *)s.there->addr + PAGE;

	MUST_STATUS(OK, mw_bind(s.p.owner, &s.window, s.there, s.there->addr, PAGE,
				WINDOW));
	/* o10-37.2.30: a bound type 2 window is not free to be bound. */
	CHECK_STATUS(IBV_WC_MW_BIND_ERR,
		     mw_bind(s.p.owner, &s.window, s.there, two, PAGE, WINDOW));
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
}

static void rebind(const struct test_case *c)
{
	struct stage s = stage_new();
	char *one = s.there->addr, *two = one + PAGE;
	uint32_t old;

	MUST_STATUS(OK, mw_bind(s.p.owner, &s.window, s.there, one, PAGE, WINDOW));
	old = s.window.rkey;
	MUST_STATUS(OK, mw_local_inv(s.p.owner, old));
	MUST_STATUS(OK, mw_bind(s.p.owner, &s.window, s.there, two, PAGE, WINDOW));
	CHECK_EQ(old >> 8, s.window.rkey >> 8);
	CHECK_STATUS(OK, do_rdma(s.p.peer, W, s.here, s.here->addr, 64,
				 (uintptr_t)two, s.window.rkey));
	CHECK_EQ(0x11, *two);
	CHECK_STATUS(NO, do_rdma(s.p.peer, W, s.here, s.here->addr, 64,
				 (uintptr_t)one, old));
	CHECK_EQ(CANARY, *(unsigned char *)one);
}

/* What a window is bound on stays what it is: memory, rights and domain. */
static void rereg_bound(const struct test_case *c)
{
	struct stage s = stage_new();
	struct ibv_mr *other = mr_new(s.p.owner->pd, PAGE);
	const long long pins = pins_now(), pinned = pinned_vm(0);
	struct ibv_mr was = *s.there;

	MUST_STATUS(OK, mw_bind(s.p.owner, &s.window, s.there, was.addr, PAGE, WINDOW));
	CHECK_ERR(EBUSY, mr_rereg(s.there, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				  other->addr, PAGE, 0));
	CHECK_ERR(EBUSY, mr_rereg(s.there, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, MR_ALL));
	CHECK_ERR(EBUSY, mr_rereg(s.there, IBV_REREG_MR_CHANGE_PD, s.p.peer->pd, NULL, 0, 0));
	CHECK_EQ(pins, pins_now());
	CHECK_EQ(pinned, pinned_vm(0));
	CHECK_STATUS(OK, do_rdma(s.p.peer, W, s.here, s.here->addr, 64,
				 (uintptr_t)was.addr, s.window.rkey));
	CHECK_EQ(0x11, *(unsigned char *)was.addr);

	MUST_STATUS(OK, mw_local_inv(s.p.owner, s.window.rkey));
	CHECK_ERR(0, mr_rereg(s.there, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other->addr,
			      PAGE, 0));
	CHECK_EQ(pins - 3, pins_now());
	CHECK_EQ(pinned - 3 * (long long)PAGE, pinned_vm(0));
}

static void local_inv(const struct test_case *c)
{
	struct stage s = stage_new();
	struct ibv_send_wr wr = { .wr_id = 6, .opcode = IBV_WR_LOCAL_INV };
	struct ibv_wc wc;

	MUST_STATUS(OK, mw_bind(s.p.owner, &s.window, s.there, s.there->addr, PAGE,
				WINDOW));
	wr.invalidate_rkey = s.window.rkey;
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
	post_send(s.p.owner, &wr);
	wc = cq_next(s.p.owner->scq);
	MUST_WC(wc, 6, IBV_WC_SUCCESS);
	CHECK_EQ(IBV_WC_LOCAL_INV, wc.opcode);
	CHECK_STATUS(NO, do_rdma(s.p.peer, W, s.here, s.here->addr, 64,
				 (uintptr_t)s.there->addr, s.window.rkey));
	CHECK_EQ(CANARY, *(unsigned char *)s.there->addr);
	CHECK_ERR(0, ibv_dereg_mr(s.there));
}

static void bind_completion(const struct test_case *c)
{
	struct stage s = stage_new();
	struct ibv_send_wr wr = {
		.wr_id = 9, .opcode = IBV_WR_BIND_MW,
		.bind_mw = {
			.mw = s.window.mw,
			.rkey = (s.window.rkey & ~0xffU) | 0xe7,
			.bind_info = { s.there, (uintptr_t)s.there->addr, PAGE, WINDOW },
		},
	};
	struct ibv_wc wc;

	post_send(s.p.owner, &wr);
	wc = cq_next(s.p.owner->scq);
	MUST_WC(wc, 9, IBV_WC_SUCCESS);
	CHECK_EQ(IBV_WC_BIND_MW, wc.opcode);
	CHECK_EQ(s.p.owner->qp->qp_num, wc.qp_num);
	/* The low 8 bits are the caller's to choose. */
	CHECK_STATUS(OK, do_rdma(s.p.peer, W, s.here, s.here->addr, 64,
				 (uintptr_t)s.there->addr, wr.bind_mw.rkey));
}

/* Binding is ordered with what is posted behind it. */
static void bind_then_send(const struct test_case *c)
{
	struct stage s = stage_new();

	for (int i = 0; i < 50; i++) {
		uint32_t rkey = ibv_inc_rkey(s.window.rkey), told;
		struct ibv_sge sge = { (uintptr_t)&rkey, sizeof(rkey), 0 };
		struct ibv_send_wr send = {
			.wr_id = 2, .opcode = IBV_WR_SEND, .sg_list = &sge,
			.num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		};
		struct ibv_send_wr wr = {
			.wr_id = 1, .opcode = IBV_WR_BIND_MW, .next = &send,
			.bind_mw = { s.window.mw, rkey, { s.there,
				(uintptr_t)s.there->addr, PAGE, WINDOW } },
		}, *bad;
		struct ibv_mr *mr = mr_reg(s.p.owner->pd, &rkey, sizeof(rkey),
					   IBV_ACCESS_LOCAL_WRITE);

		sge.lkey = mr->lkey;
		post_recv(s.p.peer, 3, s.here, s.here->addr, 64);
		MUST_ERR(0, ibv_post_send(s.p.owner->qp, &wr, &bad));
		MUST_WC(cq_next(s.p.peer->rcq), 3, IBV_WC_SUCCESS);
		memcpy(&told, s.here->addr, sizeof(told));
		MUST_STATUS(OK, do_rdma(s.p.peer, W, s.here, s.here->addr, 64,
					(uintptr_t)s.there->addr, told));
		MUST_WC(cq_next(s.p.owner->scq), 2, IBV_WC_SUCCESS);
		s.window.rkey = rkey;
		MUST_STATUS(OK, mw_local_inv(s.p.owner, rkey));
		MUST_ERR(0, ibv_dereg_mr(mr));
	}
}

static void destroyed_qp(const struct test_case *c)
{
	struct stage s = stage_new();

	MUST_STATUS(OK, mw_bind(s.p.owner, &s.window, s.there, s.there->addr, PAGE,
				WINDOW));
	MUST_ERR(0, ibv_destroy_qp(s.p.owner->qp));
	CHECK_ERR(0, ibv_dealloc_mw(s.window.mw));
	CHECK_ERR(0, ibv_dereg_mr(s.there));
}

#define ACCESS(text, a)	{ text, access_window, &(a) }
#define BAD_BIND(text, wrong)						\
	{ "a bind " text " is refused and opens nothing", bad_bind, NULL, wrong }

static const struct test_case cases[] = {
	ACCESS("a window lets its first bytes be written", first_bytes),
	ACCESS("a window lets its last bytes be written", last_bytes),
	ACCESS("a window lets bytes over a page's end be written", over_the_middle),
	ACCESS("a window lets itself be read", read_all),
	ACCESS("a window refuses a write from a byte before it", before),
	ACCESS("a window refuses a write behind it", behind),
	ACCESS("a window refuses a write a byte over its end", over_the_end),
	ACCESS("a window refuses a read a byte over its end", read_behind),
	ACCESS("a read-only window refuses a write", write_read_only),
	ACCESS("a write-only window refuses a read", read_write_only),
	{ "a bind to another protection domain's region is EPERM", foreign_bind, NULL,
	  REGION },
	{ "a bind of another protection domain's window is EPERM", foreign_bind, NULL,
	  WINDOWS },
	BAD_BIND("to a region without MW_BIND", MR_WITHOUT_BIND),
	BAD_BIND("for writing to a region without LOCAL_WRITE", MR_WITHOUT_WRITE),
	BAD_BIND("a byte longer than its region", TOO_LONG),
	BAD_BIND("from a byte before its region", BEFORE_START),
	BAD_BIND("whose length wraps", WRAPS),
	{ "a window serves only the QP that it is bound to", other_qp },
	{ "a bound window is not bound again", bound_twice },
	{ "invalidated and bound again, a window opens its new range and closes the old", rebind },
	{ "a region with a window bound on it cannot be registered again, and stays as it is",
	  rereg_bound },
	{ "LOCAL_INV closes its window and lets the region go", local_inv },
	{ "a bind completes as one and takes the low 8 bits of the key from the caller",
	  bind_completion },
	{ "a window is open when the send behind its bind arrives", bind_then_send },
	{ "a window whose QP is destroyed can be deallocated", destroyed_qp },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
