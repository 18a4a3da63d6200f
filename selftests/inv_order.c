// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Send with invalidate against time: what is before its completion and what is
 * after it, accesses under way, retries, and that one message invalidates once.
 * What it does when nothing disturbs it is in send_inv.c.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "lib/link.h"
#include "lib/pair.h"
#include "lib/proc.h"
#include "lib/ways.h"

#define PAGE	4096UL
#define CANARY	0xa5
#define WINDOW	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
/* So long that a copy of it can be met under way. */
#define LONG	(4 * MIB)

struct stage {
	struct pair p;
	struct ibv_mr *here, *there;	/* the peer's memory and the owner's */
	struct window window;		/* on all of the owner's */
};

static struct stage stage_of(struct pair p, size_t length)
{
	struct stage s = { .p = p };

	s.here = mr_new(p.peer->pd, length);
	s.there = mr_new(p.owner->pd, length);
	memset(s.here->addr, 0x11, length);
	memset(s.there->addr, CANARY, length);
	s.window = mw_new(p.owner->pd);
	return s;
}

static struct stage stage_new(size_t length)
{
	return stage_of(pair_new(NULL), length);
}

static void bind_window(struct stage *s)
{
	MUST_STATUS(IBV_WC_SUCCESS,
		    mw_bind(s->p.owner, &s->window, s->there, s->there->addr,
			    s->there->length, WINDOW));
}

/* Binds under exactly this key, whatever the window had before. */
static void bind_as(struct stage *s, uint32_t rkey)
{
	s->window.rkey = (rkey & ~0xffU) | ((rkey - 1) & 0xff);
	bind_window(s);
	MUST_EQ(rkey, s->window.rkey);
}

/* Both sides as they were before they were connected, and connected again. */
static void connect_again(struct rc *a, struct rc *b)
{
	MUST_ERR(0, rc_modify(a, IBV_QPS_RESET, NULL));
	MUST_ERR(0, rc_modify(b, IBV_QPS_RESET, NULL));
	while (async_wait(a->dev->ctx, 0) >= 0)
		;
	rc_pair(a, b);
}

static void post_inv(struct stage *s, uint64_t wr_id, uint32_t rkey)
{
	post_send(s->p.peer, &(struct ibv_send_wr){
		.wr_id = wr_id, .opcode = IBV_WR_SEND_WITH_INV,
		.invalidate_rkey = rkey });
}

static void check_received(struct ibv_wc wc, uint64_t wr_id, uint32_t rkey)
{
	MUST_WC(wc, wr_id, IBV_WC_SUCCESS);
	CHECK_EQ(IBV_WC_WITH_INV, wc.wc_flags & IBV_WC_WITH_INV);
	CHECK_EQ(rkey, wc.invalidated_rkey);
}

/* The first byte that is not @value, or NULL. */
static const unsigned char *other_than(const void *p, int value, size_t length)
{
	const unsigned char *at = p;

	for (size_t i = 0; i < length; i++)
		if (at[i] != value)
			return at + i;
	return NULL;
}

static void check_all(const void *p, int value, size_t length)
{
	const unsigned char *at = other_than(p, value, length);

	if (at)
		test_fail(__FILE__, __LINE__, "byte %zu: expected 0x%x, got 0x%x",
			  at - (const unsigned char *)p, value, *at);
}

/* ---- an access under way ---- */

struct flight {
	enum ibv_wr_opcode opcode;
	bool dealloc;		/* the window, in the place of a LOCAL_INV */
};

/*
 * One that is met half-way ends before the completion of what takes its key away:
 * nothing of it is written afterwards, and it reads nothing that was written
 * afterwards.
 */
static void in_flight(const struct test_case *c)
{
	const struct flight *f = c->arg;
	struct stage s = stage_new(LONG);
	bool reads = f->opcode == IBV_WR_RDMA_READ;
	volatile unsigned char *to = reads ? s.here->addr : s.there->addr;
	int before = reads ? 0x11 : CANARY, met = 0, turns = 0;
	enum ibv_wc_status status;

	while (met < 5 && turns++ < 60) {
		test_context("turn %d", turns);
		memset(s.here->addr, 0x11, LONG);
		memset(s.there->addr, CANARY, LONG);
		bind_window(&s);
		post_simple(s.p.peer, f->opcode, 1, s.here, s.here->addr, LONG,
			    (uintptr_t)s.there->addr, s.window.rkey);
		for (double end = test_now() + 10; to[0] == before && test_now() < end;)
			;
		met += to[0] != before && to[LONG - 1] == before;
		if (f->dealloc) {
			MUST_ERR(0, ibv_dealloc_mw(s.window.mw));
			s.window = mw_new(s.p.owner->pd);
		} else {
			MUST_STATUS(IBV_WC_SUCCESS, mw_local_inv(s.p.owner,
								 s.window.rkey));
		}
		memset(s.there->addr, 0xee, LONG);
		status = cq_next(s.p.peer->scq).status;
		if (!reads)
			check_all(s.there->addr, 0xee, LONG);
		else
			CHECK(!memchr(s.here->addr, 0xee, LONG));
		if (test_failed())
			return;
		if (status != IBV_WC_SUCCESS) {
			CHECK_STATUS(IBV_WC_REM_ACCESS_ERR, status);
			connect_again(s.p.peer, s.p.owner);
		}
	}
	test_note("met %d under way in %d turns", met, turns);
	CHECK_BETWEEN(1, met, turns);
}

/* ---- writers that do not stop ---- */

enum { WRITERS = 3, WRITES = 12, FOREIGN = 2, ROUNDS = 40 };

struct hammer {
	struct stage s;
	struct rc *foreign[FOREIGN], *foreign_owner[FOREIGN];
	pthread_barrier_t start;
	bool remote;
	unsigned int round;
};

struct writer {
	struct hammer *h;
	int number;
	pthread_t thread;
};

static void pause_some(unsigned int turns)
{
	while (turns--)
		sched_yield();
}

/* Writes through the window's own queue pair, as long as it is let. */
static void *write_on(void *arg)
{
	struct writer *w = arg;
	struct stage *s = &w->h->s;
	size_t slice = s->there->length / WRITERS / PAGE * PAGE;

	pthread_barrier_wait(&w->h->start);
	for (int i = 0; i < WRITES; i++)
		post_simple(s->p.peer, IBV_WR_RDMA_WRITE, 100 + w->number, s->here,
			    s->here->addr, slice,
			    (uintptr_t)s->there->addr + w->number * slice,
			    s->window.rkey);
	return NULL;
}

/* And with the same key through others, to which the window is not bound. */
static void *write_elsewhere(void *arg)
{
	struct writer *w = arg;
	struct stage *s = &w->h->s;

	pthread_barrier_wait(&w->h->start);
	pause_some(w->h->round % 7);
	post_simple(w->h->foreign[w->number], IBV_WR_RDMA_WRITE, 200, s->here,
		    s->here->addr, PAGE, (uintptr_t)s->there->addr, s->window.rkey);
	return NULL;
}

static void *invalidate(void *arg)
{
	struct hammer *h = arg;

	pthread_barrier_wait(&h->start);
	pause_some(h->round % 13);
	if (h->remote)
		post_inv(&h->s, 4, h->s.window.rkey);
	else
		post_send(h->s.p.owner, &(struct ibv_send_wr){
			.wr_id = 5, .opcode = IBV_WR_LOCAL_INV,
			.invalidate_rkey = h->s.window.rkey });
	return NULL;
}

struct tally {
	unsigned int done, refused;
};

/* From the first completion on the owner's memory is its own. */
static void hammer_round(struct hammer *h, struct tally *tally)
{
	struct writer writers[WRITERS + FOREIGN];
	struct stage *s = &h->s;
	pthread_t invalidator;
	struct ibv_wc wc;

	bind_window(s);
	if (h->remote)
		post_recv(s->p.owner, 5, NULL, NULL, 0);
	for (int i = 0; i < WRITERS + FOREIGN; i++) {
		bool own = i < WRITERS;

		writers[i] = (struct writer){ h, own ? i : i - WRITERS };
		MUST(!pthread_create(&writers[i].thread, NULL,
				     own ? write_on : write_elsewhere, &writers[i]));
	}
	MUST(!pthread_create(&invalidator, NULL, invalidate, h));

	wc = cq_next(h->remote ? s->p.owner->rcq : s->p.owner->scq);
	if (h->remote)
		check_received(wc, 5, s->window.rkey);
	else
		MUST_WC(wc, 5, IBV_WC_SUCCESS);
	memset(s->there->addr, CANARY, s->there->length);

	for (int i = 0; i < WRITERS + FOREIGN; i++)
		MUST(!pthread_join(writers[i].thread, NULL));
	MUST(!pthread_join(invalidator, NULL));
	for (int i = 0; i < WRITERS * WRITES + h->remote; i++) {
		wc = cq_next(s->p.peer->scq);
		if (wc.status == IBV_WC_SUCCESS)
			tally->done++;
		else if (wc.status == IBV_WC_REM_ACCESS_ERR)
			tally->refused++;
		else
			CHECK_STATUS(IBV_WC_WR_FLUSH_ERR, wc.status);
	}
	check_all(s->there->addr, CANARY, s->there->length);
	for (int i = 0; i < FOREIGN; i++) {
		MUST_WC(cq_next(h->foreign[i]->scq), 200, IBV_WC_REM_ACCESS_ERR);
		connect_again(h->foreign[i], h->foreign_owner[i]);
	}
	connect_again(s->p.peer, s->p.owner);
}

static void hammered(const struct test_case *c)
{
	struct hammer h = { .s = stage_new(3 * 16 * PAGE), .remote = c->n };
	struct tally tally = {};

	for (int i = 0; i < FOREIGN; i++) {
		h.foreign[i] = rc_create(h.s.p.dev, &(struct qp_param){
			.pd = h.s.p.peer->pd });
		h.foreign_owner[i] = rc_create(h.s.p.dev, &(struct qp_param){
			.pd = h.s.p.owner->pd });
		rc_pair(h.foreign[i], h.foreign_owner[i]);
	}
	for (h.round = 0; h.round < ROUNDS && !test_failed(); h.round++) {
		test_context("round %u", h.round);
		MUST(!pthread_barrier_init(&h.start, NULL, WRITERS + FOREIGN + 1));
		hammer_round(&h, &tally);
		pthread_barrier_destroy(&h.start);
	}
	test_note("%u requests were done, %u met a dead key", tally.done, tally.refused);
	/* Both sides of the moment were seen. */
	CHECK(tally.done > (h.remote ? ROUNDS : 0));
	CHECK(tally.refused > 0);
}

static void *post_later(void *arg)
{
	struct hammer *h = arg;

	pthread_barrier_wait(&h->start);
	post_inv(&h->s, 4, h->s.window.rkey);
	return NULL;
}

/* Who polls as fast as can be never sees the receive before the key is dead. */
static void dead_when_seen(const struct test_case *c)
{
	struct hammer h = { .s = stage_new(PAGE) };
	struct stage *s = &h.s;

	MUST(!pthread_barrier_init(&h.start, NULL, 2));
	for (int i = 0; i < 150; i++) {
		pthread_t thread;
		struct ibv_wc wc;

		test_context("round %d", i);
		bind_window(s);
		post_recv(s->p.owner, 5, NULL, NULL, 0);
		MUST(!pthread_create(&thread, NULL, post_later, &h));
		pthread_barrier_wait(&h.start);
		for (double end = test_now() + 20; !ibv_poll_cq(s->p.owner->rcq, 1, &wc);)
			MUST(test_now() < end);
		/* Busy as long as a window is bound on it. */
		MUST_ERR(0, ibv_dereg_mr(s->there));
		check_received(wc, 5, s->window.rkey);
		MUST(!pthread_join(thread, NULL));
		MUST_WC(cq_next(s->p.peer->scq), 4, IBV_WC_SUCCESS);
		s->there = mr_new(s->p.owner->pd, PAGE);
	}
}

/* What is posted in front of it is done, what is posted behind it is refused. */
static void in_line(const struct test_case *c)
{
	struct stage s = stage_of(pair_new(&(struct qp_param){ .inline_data = 64 }),
				  2 * PAGE);
	char in_front = 0x21, behind = 0x22;
	struct ibv_sge sge[2] = { { (uintptr_t)&in_front, 1 }, { (uintptr_t)&behind, 1 } };
	struct ibv_send_wr wr[4], *bad;
	unsigned char *at = s.there->addr;

	bind_window(&s);
	post_recv(s.p.owner, 5, NULL, NULL, 0);
	for (int i = 0; i < 4; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = i, .next = i < 3 ? &wr[i + 1] : NULL,
			.opcode = i == 2 ? IBV_WR_SEND_WITH_INV : IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
			.sg_list = &sge[i > 2], .num_sge = i != 2,
			.invalidate_rkey = s.window.rkey,
		};
	for (int i = 0; i < 4; i++)
		if (i != 2) {
			wr[i].wr.rdma.remote_addr = (uintptr_t)at + i;
			wr[i].wr.rdma.rkey = s.window.rkey;
		}
	MUST_ERR(0, ibv_post_send(s.p.peer->qp, wr, &bad));
	check_received(cq_next(s.p.owner->rcq), 5, s.window.rkey);
	CHECK_EQ(in_front, at[0]);
	CHECK_EQ(in_front, at[1]);
	for (int i = 0; i < 3; i++)
		MUST_WC(cq_next(s.p.peer->scq), i, IBV_WC_SUCCESS);
	MUST_WC(cq_next(s.p.peer->scq), 3, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(CANARY, at[3]);
	CHECK_EQ(IBV_EVENT_QP_ACCESS_ERR, async_wait(s.p.dev->ctx, 1000));
}

/* ---- messages that are sent more than once ---- */

/*
 * A second invalidation by the same message would show: the window is bound again
 * under the very same key, and a second receive is there to be taken.
 */
static void check_once(struct stage *s, uint32_t rkey)
{
	bind_as(s, rkey);
	CHECK(cq_quiet(s->p.owner->rcq, 150));
	CHECK_EQ(IBV_QPS_RTS, rc_state(s->p.owner));
	CHECK_STATUS(IBV_WC_SUCCESS,
		     do_rdma(s->p.peer, IBV_WR_RDMA_WRITE, s->here, s->here->addr, 64,
			     (uintptr_t)s->there->addr, rkey));
	CHECK_EQ(0x11, *(unsigned char *)s->there->addr);
}

static void rnr_then_once(const struct test_case *c)
{
	struct stage s = stage_new(PAGE);
	uint32_t rkey;

	bind_window(&s);
	rkey = s.window.rkey;
	post_inv(&s, 4, rkey);
	CHECK(cq_quiet(s.p.peer->scq, 100));
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
	post_recv(s.p.owner, 5, NULL, NULL, 0);
	post_recv(s.p.owner, 6, NULL, NULL, 0);
	check_received(cq_next(s.p.owner->rcq), 5, rkey);
	MUST_WC(cq_next(s.p.peer->scq), 4, IBV_WC_SUCCESS);
	check_once(&s, rkey);
}

static void rnr_for_ever(const struct test_case *c)
{
	struct stage s = stage_of(pair_new(&(struct qp_param){
		.rnr_retry = 2, .min_rnr_timer = 10 }), PAGE);
	struct rc_addr owner;

	bind_window(&s);
	post_inv(&s, 4, s.window.rkey);
	MUST_WC(cq_next(s.p.peer->scq), 4, IBV_WC_RNR_RETRY_EXC_ERR);
	CHECK_EQ(IBV_QPS_RTS, rc_state(s.p.owner));
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
	/* And it is still there for whom it is meant. */
	MUST_ERR(0, rc_modify(s.p.peer, IBV_QPS_RESET, NULL));
	owner = rc_addr(s.p.owner);
	rc_connect(s.p.peer, &owner);
	CHECK_STATUS(IBV_WC_SUCCESS,
		     do_rdma(s.p.peer, IBV_WR_RDMA_WRITE, s.here, s.here->addr, 64,
			     (uintptr_t)s.there->addr, s.window.rkey));
}

/* Two sides on a link of the test's own, whose port can be taken down. */
static struct stage stage_on_link(struct link *link, const struct qp_param *param)
{
	struct pair p;

	link_need();
	*link = link_new(4);
	p.dev = dev_open_name(link->name);
	p.into = NULL;
	p.peer = rc_create(p.dev, param);
	p.owner = rc_create(p.dev, param);
	rc_pair(p.peer, p.owner);
	return stage_of(p, PAGE);
}

static void set_port(const struct link *link, const char *state)
{
	MUST_EQ(0, RUN("ip", "link", "set", link->netdev, state));
}

static void lost_then_once(const struct test_case *c)
{
	struct link link;
	struct stage s = stage_on_link(&link, &(struct qp_param){ .timeout = 15 });
	uint32_t rkey;

	bind_window(&s);
	rkey = s.window.rkey;
	post_recv(s.p.owner, 5, NULL, NULL, 0);
	post_recv(s.p.owner, 6, NULL, NULL, 0);
	set_port(&link, "down");
	post_inv(&s, 4, rkey);
	CHECK(cq_quiet(s.p.peer->scq, 200));
	CHECK(cq_quiet(s.p.owner->rcq, 0));
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
	set_port(&link, "up");
	check_received(cq_next(s.p.owner->rcq), 5, rkey);
	MUST_WC(cq_next(s.p.peer->scq), 4, IBV_WC_SUCCESS);
	check_once(&s, rkey);
}

static void lost_for_ever(const struct test_case *c)
{
	struct link link;
	struct stage s = stage_on_link(&link, &(struct qp_param){
		.timeout = 10, .retry_cnt = 2 });

	bind_window(&s);
	post_recv(s.p.owner, 5, NULL, NULL, 0);
	set_port(&link, "down");
	post_inv(&s, 4, s.window.rkey);
	MUST_WC(cq_next(s.p.peer->scq), 4, IBV_WC_RETRY_EXC_ERR);
	set_port(&link, "up");
	CHECK(cq_quiet(s.p.owner->rcq, 100));
	CHECK_EQ(IBV_QPS_RTS, rc_state(s.p.owner));
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
}

static void drop_link(const struct test_case *c)
{
	struct link link = { "shcatest4", "shcatest4" };

	link_need();
	link_drop(&link);
	CHECK(!dev_exists(link.name));
}

/* ---- two who invalidate ---- */

struct race {
	struct stage s;
	pthread_barrier_t start;
	bool late;
};

static void *race_remote(void *arg)
{
	struct race *r = arg;

	pthread_barrier_wait(&r->start);
	if (r->late)
		test_sleep_ms(2);
	post_inv(&r->s, 4, r->s.window.rkey);
	return NULL;
}

static void race(const struct test_case *c)
{
	struct race r = { .s = stage_new(PAGE) };
	struct stage *s = &r.s;
	int remote = 0, local = 0;

	for (int i = 0; i < 90 && !test_failed(); i++) {
		struct ibv_wc receive, send, own;
		pthread_t thread;

		test_context("round %d", i);
		bind_window(s);
		post_recv(s->p.owner, 5, NULL, NULL, 0);
		r.late = i % 3 == 1;
		MUST(!pthread_barrier_init(&r.start, NULL, 2));
		MUST(!pthread_create(&thread, NULL, race_remote, &r));
		pthread_barrier_wait(&r.start);
		if (i % 3 == 2)
			test_sleep_ms(2);
		post_send(s->p.owner, &(struct ibv_send_wr){
			.wr_id = 6, .opcode = IBV_WR_LOCAL_INV,
			.invalidate_rkey = s->window.rkey });
		MUST(!pthread_join(thread, NULL));
		own = cq_next(s->p.owner->scq);
		receive = cq_next(s->p.owner->rcq);
		send = cq_next(s->p.peer->scq);
		if (own.status == IBV_WC_SUCCESS) {
			local++;
			CHECK_WC(receive, 5, IBV_WC_REM_INV_REQ_ERR);
			CHECK_WC(send, 4, IBV_WC_REM_INV_REQ_ERR);
		} else {
			remote++;
			CHECK_WC(own, 6, IBV_WC_MW_BIND_ERR);
			check_received(receive, 5, s->window.rkey);
			CHECK_WC(send, 4, IBV_WC_SUCCESS);
		}
		connect_again(s->p.peer, s->p.owner);
		pthread_barrier_destroy(&r.start);
	}
	test_note("the send was first %d times, LOCAL_INV %d times", remote, local);
	CHECK(remote > 0);
	CHECK(local > 0);
}

/* ---- many times ---- */

/*
 * Four times what the 8 bits of the key that the owner chooses take to come round.
 * The old key is tried when the window has the next one: that ends the queue
 * pairs, and with them that binding.
 */
static void cycles(const struct test_case *c)
{
	struct stage s = stage_of(pair_new(&(struct qp_param){
		.send_ops = way_param(BY_QP_EX, (struct qp_param){}).send_ops }),
				  2 * PAGE);
	uint32_t index = s.window.rkey >> 8, seen = 0;
	bool low[256] = {};

	for (uint32_t i = 0; i < 1000; i++) {
		struct ibv_send_wr wr = { .wr_id = i, .opcode = IBV_WR_SEND_WITH_INV };
		uint32_t used;

		test_context("cycle %u", i);
		bind_window(&s);
		used = s.window.rkey;
		MUST_EQ(index, used >> 8);
		seen += !low[used & 0xff];
		low[used & 0xff] = true;
		*(uint32_t *)s.here->addr = i;
		MUST_STATUS(IBV_WC_SUCCESS,
			    do_rdma(s.p.peer, IBV_WR_RDMA_WRITE, s.here, s.here->addr,
				    64, (uintptr_t)s.there->addr, used));
		MUST_EQ(i, *(uint32_t *)s.there->addr);

		wr.invalidate_rkey = used;
		post_recv(s.p.owner, i, NULL, NULL, 0);
		way_send(s.p.peer, i % BY_COMMAND, &wr);
		check_received(cq_next(s.p.owner->rcq), i, used);
		MUST_WC(cq_next(s.p.peer->scq), i, IBV_WC_SUCCESS);

		bind_window(&s);
		MUST_EQ(ibv_inc_rkey(used), s.window.rkey);
		*(uint32_t *)s.here->addr = ~i;
		MUST_STATUS(IBV_WC_REM_ACCESS_ERR,
			    do_rdma(s.p.peer, IBV_WR_RDMA_WRITE, s.here, s.here->addr,
				    64, (uintptr_t)s.there->addr, used));
		MUST_EQ(i, *(uint32_t *)s.there->addr);
		connect_again(s.p.peer, s.p.owner);
		/* Odd steps, so that every low byte is used and not every second. */
		if (i % 128 == 127)
			s.window.rkey = ibv_inc_rkey(s.window.rkey);
	}
	CHECK_EQ(256, seen);
}

#define FLIGHT(opcode, dealloc)	in_flight, &(const struct flight){ opcode, dealloc }

static const struct test_case cases[] = {
	{ "a WRITE under way ends before LOCAL_INV of its key completes",
	  FLIGHT(IBV_WR_RDMA_WRITE, false), .timeout = 60 },
	{ "a READ under way ends before LOCAL_INV of its key completes",
	  FLIGHT(IBV_WR_RDMA_READ, false), .timeout = 60 },
	{ "a WRITE under way ends before its window is deallocated",
	  FLIGHT(IBV_WR_RDMA_WRITE, true), .timeout = 60 },
	{ "a READ under way ends before its window is deallocated",
	  FLIGHT(IBV_WR_RDMA_READ, true), .timeout = 60 },
	{ "under writers that do not stop, no byte changes after the receive completes",
	  hammered, .n = true, .timeout = 60 },
	{ "under writers that do not stop, no byte changes after LOCAL_INV completes",
	  hammered, .n = false, .timeout = 60 },
	{ "the key is dead when the receive can be seen", dead_when_seen },
	{ "requests in front of it are done, requests behind it are refused", in_line },
	{ "waiting for a receive invalidates nothing, and then it does once",
	  rnr_then_once },
	{ "one that never finds a receive invalidates nothing", rnr_for_ever },
	{ "sent again after it was lost, it invalidates once", lost_then_once },
	{ "one that is lost for ever invalidates nothing", lost_for_ever },
	{ "the link of these tests goes away again", drop_link },
	{ "of a send with invalidate and a LOCAL_INV at the same time one succeeds",
	  race, .timeout = 60 },
	{ "1000 times a window is bound, used and invalidated, and its old key is refused",
	  cycles, .timeout = 90 },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
