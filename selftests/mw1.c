// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Type 1 memory windows, which belong to a protection domain and are bound by
 * ibv_bind_mw(): what they let through, and how they are bound anew and unbound.
 * Type 2 windows are in mw.c.
 */
#include <string.h>

#include "lib/pair.h"

#define PAGE	4096UL
#define CANARY	0xa5
#define DATA	0x11
#define WINDOW	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
#define LONG	(4 * MIB)

struct stage {
	struct pair p;
	struct ibv_mr *here, *there;
	struct ibv_mw *mw;
};

static struct stage stage_of(size_t length)
{
	static const struct qp_param param = { .timeout = 10, .retry_cnt = 2 };
	struct stage s = { .p = pair_new(&param) };

	s.here = mr_new(s.p.peer->pd, length);
	s.there = mr_new(s.p.owner->pd, length);
	memset(s.here->addr, DATA, length);
	memset(s.there->addr, CANARY, length);
	s.mw = ibv_alloc_mw(s.p.owner->pd, IBV_MW_TYPE_1);
	MUST(s.mw);
	return s;
}

static struct stage stage_new(void)
{
	return stage_of(4 * PAGE);
}

static int post_bind(struct stage *s, struct ibv_mr *mr, uint64_t addr,
		     uint64_t length, unsigned int access)
{
	struct ibv_mw_bind bind = {
		.wr_id = 8, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, addr, length, access },
	};

	return ibv_bind_mw(s->p.owner->qp, s->mw, &bind);
}

static enum ibv_wc_status bind_pages(struct stage *s, int first, int pages)
{
	struct ibv_wc wc;

	MUST_ERR(0, post_bind(s, s->there, (uintptr_t)s->there->addr + first * PAGE,
			      pages * PAGE, WINDOW));
	wc = cq_next(s->p.owner->scq);
	MUST(wc.wr_id == 8);
	CHECK(wc.status != IBV_WC_SUCCESS || wc.opcode == IBV_WC_BIND_MW);
	return wc.status;
}

static enum ibv_wc_status write_page(struct stage *s, struct rc *from, int page,
				     uint32_t rkey)
{
	return do_rdma(from, IBV_WR_RDMA_WRITE, s->here, s->here->addr, 64,
		       (uintptr_t)s->there->addr + page * PAGE, rkey);
}

static int at_page(struct stage *s, int page)
{
	return ((unsigned char *)s->there->addr)[page * PAGE];
}

/* A refused access ends both queue pairs; the window outlives that. */
static void connect_again(struct stage *s)
{
	MUST_ERR(0, rc_modify(s->p.peer, IBV_QPS_RESET, NULL));
	MUST_ERR(0, rc_modify(s->p.owner, IBV_QPS_RESET, NULL));
	while (async_wait(s->p.dev->ctx, 0) >= 0)
		;
	rc_pair(s->p.peer, s->p.owner);
}

static void opens_its_pages(const struct test_case *c)
{
	struct stage s = stage_new();
	uint32_t before = s.mw->rkey;

	MUST_STATUS(IBV_WC_SUCCESS, bind_pages(&s, 1, 2));
	CHECK(s.mw->rkey != before);
	CHECK_EQ(before >> 8, s.mw->rkey >> 8);
	CHECK_STATUS(IBV_WC_SUCCESS, write_page(&s, s.p.peer, 1, s.mw->rkey));
	CHECK_STATUS(IBV_WC_SUCCESS, write_page(&s, s.p.peer, 2, s.mw->rkey));
	CHECK_EQ(DATA, at_page(&s, 1));
	CHECK_EQ(DATA, at_page(&s, 2));
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR, write_page(&s, s.p.peer, 3, s.mw->rkey));
	connect_again(&s);
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR, write_page(&s, s.p.peer, 0, s.mw->rkey));
	connect_again(&s);
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR, write_page(&s, s.p.peer, 1, before));
	CHECK_EQ(CANARY, at_page(&s, 0));
	CHECK_EQ(CANARY, at_page(&s, 3));
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
}

/* In the same protection domain; in another one it is nobody's key. */
static void serves_its_domain(const struct test_case *c)
{
	struct stage s = stage_new();

	MUST_STATUS(IBV_WC_SUCCESS, bind_pages(&s, 0, 1));
	for (int other = 0; other < 2; other++) {
		struct rc *owner = rc_create(s.p.dev, &(struct qp_param){
			.pd = other ? NULL : s.p.owner->pd });
		struct rc *peer = rc_create(s.p.dev, &(struct qp_param){
			.pd = s.p.peer->pd });

		test_context(other ? "another domain" : "the same domain");
		rc_pair(owner, peer);
		memset(s.there->addr, CANARY, PAGE);
		CHECK_STATUS(other ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS,
			     write_page(&s, peer, 0, s.mw->rkey));
		CHECK_EQ(other ? CANARY : DATA, at_page(&s, 0));
	}
}

static void outlives_its_qp(const struct test_case *c)
{
	struct stage s = stage_new();
	struct rc *owner = rc_create(s.p.dev, &(struct qp_param){
		.pd = s.p.owner->pd });

	MUST_STATUS(IBV_WC_SUCCESS, bind_pages(&s, 0, 1));
	MUST_ERR(0, ibv_destroy_qp(s.p.owner->qp));
	MUST_ERR(0, rc_modify(s.p.peer, IBV_QPS_RESET, NULL));
	rc_pair(s.p.peer, owner);
	CHECK_STATUS(IBV_WC_SUCCESS, write_page(&s, s.p.peer, 0, s.mw->rkey));
	CHECK_EQ(DATA, at_page(&s, 0));
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
	CHECK_ERR(0, ibv_dealloc_mw(s.mw));
	CHECK_ERR(0, ibv_dereg_mr(s.there));
}

static void bound_anew(const struct test_case *c)
{
	struct stage s = stage_new();
	uint32_t old;

	MUST_STATUS(IBV_WC_SUCCESS, bind_pages(&s, 0, 1));
	old = s.mw->rkey;
	MUST_STATUS(IBV_WC_SUCCESS, bind_pages(&s, 2, 1));
	CHECK_EQ(ibv_inc_rkey(old), s.mw->rkey);
	CHECK_STATUS(IBV_WC_SUCCESS, write_page(&s, s.p.peer, 2, s.mw->rkey));
	CHECK_EQ(DATA, at_page(&s, 2));
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR, write_page(&s, s.p.peer, 0, old));
	connect_again(&s);
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR, write_page(&s, s.p.peer, 0, s.mw->rkey));
	CHECK_EQ(CANARY, at_page(&s, 0));
}

static void unbound(const struct test_case *c)
{
	struct stage s = stage_new();
	uint32_t old;

	MUST_STATUS(IBV_WC_SUCCESS, bind_pages(&s, 0, 1));
	old = s.mw->rkey;
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
	MUST_ERR(0, post_bind(&s, NULL, 0, 0, 0));
	MUST_WC(cq_next(s.p.owner->scq), 8, IBV_WC_SUCCESS);
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR, write_page(&s, s.p.peer, 0, old));
	CHECK_EQ(CANARY, at_page(&s, 0));
	CHECK_ERR(0, ibv_dereg_mr(s.there));
}

/* A bind that is refused takes nothing away. */
static void refused_bind(const struct test_case *c)
{
	struct stage s = stage_new();
	struct ibv_mr *no_bind = mr_reg(s.p.owner->pd, s.there->addr, PAGE,
					MR_ALL & ~IBV_ACCESS_MW_BIND);
	uint32_t old;

	MUST_STATUS(IBV_WC_SUCCESS, bind_pages(&s, 0, 1));
	old = s.mw->rkey;
	test_context("refused by the post");
	CHECK_ERR(EINVAL, post_bind(&s, s.there, (uintptr_t)s.there->addr, PAGE,
				    WINDOW | IBV_ACCESS_ZERO_BASED));
	CHECK_EQ(old, s.mw->rkey);
	test_context("a page too long");
	CHECK_STATUS(IBV_WC_MW_BIND_ERR, bind_pages(&s, 1, 4));
	connect_again(&s);
	CHECK_STATUS(IBV_WC_SUCCESS, write_page(&s, s.p.peer, 0, old));
	test_context("a region without MW_BIND");
	MUST_ERR(0, post_bind(&s, no_bind, (uintptr_t)s.there->addr, PAGE, WINDOW));
	MUST_WC(cq_next(s.p.owner->scq), 8, IBV_WC_MW_BIND_ERR);
	connect_again(&s);
	CHECK_STATUS(IBV_WC_SUCCESS, write_page(&s, s.p.peer, 0, old));
	CHECK_EQ(DATA, at_page(&s, 0));
}

/* Bound anew, it waits for a WRITE by the key that it had. */
static void waits(const struct test_case *c)
{
	struct stage s = stage_of(LONG);
	volatile unsigned char *at = s.there->addr;
	int met = 0, turns = 0;

	while (met < 3 && turns++ < 60) {
		enum ibv_wc_status status;

		test_context("turn %d", turns);
		memset(s.there->addr, CANARY, LONG);
		MUST_STATUS(IBV_WC_SUCCESS, bind_pages(&s, 0, LONG / PAGE));
		post_simple(s.p.peer, IBV_WR_RDMA_WRITE, 1, s.here, s.here->addr, LONG,
			    (uintptr_t)s.there->addr, s.mw->rkey);
		for (double end = test_now() + 10; at[0] == CANARY && test_now() < end;)
			;
		met += at[0] != CANARY && at[LONG - 1] == CANARY;
		MUST_STATUS(IBV_WC_SUCCESS, bind_pages(&s, 0, 1));
		memset(s.there->addr, 0xee, LONG);
		status = cq_next(s.p.peer->scq).status;
		MUST(!memchr(s.there->addr, DATA, LONG));
		if (status != IBV_WC_SUCCESS)
			connect_again(&s);
	}
	test_note("met %d under way in %d turns", met, turns);
	CHECK_BETWEEN(1, met, turns);
}

static const struct test_case cases[] = {
	{ "a type 1 window opens its pages and no others, under a new key",
	  opens_its_pages },
	{ "it serves every QP of its protection domain and no other", serves_its_domain },
	{ "it outlives the QP that bound it", outlives_its_qp },
	{ "bound anew, it opens its new pages and closes the old", bound_anew },
	{ "bound to no bytes, it is closed and lets its region go", unbound },
	{ "a bind that is refused leaves it as it is", refused_bind },
	{ "bound anew, it waits for a WRITE that is under way", waits },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
