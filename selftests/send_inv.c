// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Send with invalidate: that it kills the window it names and nothing else, by
 * each way to post one, what it carries, what the receiver learns, and what is
 * refused when it is posted. The keys that it does not invalidate are in
 * inv_refused.c, what it does against time is in inv_order.c.
 */
#include <assert.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <infiniband/gift.h>
#include <rdma/sample_hca-abi.h>

#include "lib/link.h"
#include "lib/pair.h"
#include "lib/ways.h"

#define PAGE	4096UL
#define CANARY	0xa5
#define WINDOW	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

struct stage {
	struct pair p;
	enum way way;
	struct ibv_mr *here, *there;	/* the peer's memory and the owner's */
	struct window window;		/* on the owner's first page */
};

static struct stage stage_new(enum way way)
{
	struct qp_param param = way_param(way, (struct qp_param){
		.inline_data = 512, .sge = 8 });
	struct stage s = { .way = way };

	if (way == BY_COMMAND && !dev_is_sample())
		test_skip("%s takes no work requests in commands", dev_name());
	s.p = pair_new(&param);
	s.here = mr_new(s.p.peer->pd, 2 * PAGE);
	s.there = mr_new(s.p.owner->pd, 4 * PAGE);
	memset(s.here->addr, 0x11, 2 * PAGE);
	memset(s.there->addr, CANARY, 4 * PAGE);
	s.window = mw_new(s.p.owner->pd);
	return s;
}

static enum ibv_wc_status bind_window(struct stage *s, struct window *w)
{
	return mw_bind(s->p.owner, w, s->there, s->there->addr, PAGE, WINDOW);
}

/* By the same way, so that one queue is not filled by two. */
static enum ibv_wc_status write_by(struct stage *s, uint32_t rkey)
{
	struct ibv_sge sge = SGE(s->here, s->here->addr, 64);

	way_send(s->p.peer, s->way, &(struct ibv_send_wr){
		.wr_id = 3, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { (uintptr_t)s->there->addr, rkey } });
	return cq_next(s->p.peer->scq).status;
}

static void post_inv(struct stage *s, uint64_t wr_id, uint32_t rkey,
		     struct ibv_sge *sges, int n, unsigned int flags)
{
	way_send(s->p.peer, s->way, &(struct ibv_send_wr){
		.wr_id = wr_id, .opcode = IBV_WR_SEND_WITH_INV, .sg_list = sges,
		.num_sge = n, .send_flags = flags, .invalidate_rkey = rkey });
}

static void check_received(struct ibv_wc wc, uint64_t wr_id, uint32_t rkey,
			   uint32_t length)
{
	MUST_WC(wc, wr_id, IBV_WC_SUCCESS);
	CHECK_EQ(IBV_WC_RECV, wc.opcode);
	CHECK_EQ(IBV_WC_WITH_INV, wc.wc_flags & (IBV_WC_WITH_INV | IBV_WC_WITH_IMM));
	CHECK_EQ(rkey, wc.invalidated_rkey);
	CHECK_EQ(length, wc.byte_len);
}

static void kills_its_window(const struct test_case *c)
{
	struct stage s = stage_new(c->n);
	struct window second = mw_new(s.p.owner->pd);
	struct ibv_sge sge = SGE(s.here, s.here->addr, 100);
	uint32_t dead;

	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &second));
	dead = s.window.rkey;
	MUST_STATUS(IBV_WC_SUCCESS, write_by(&s, dead));
	CHECK_BYTES(s.here->addr, s.there->addr, 64);

	post_recv(s.p.owner, 5, s.there, (char *)s.there->addr + PAGE, PAGE);
	post_inv(&s, 4, dead, &sge, 1, 0);
	check_received(cq_next(s.p.owner->rcq), 5, dead, 100);
	MUST_WC(cq_next(s.p.peer->scq), 4, IBV_WC_SUCCESS);
	CHECK_BYTES(s.here->addr, (char *)s.there->addr + PAGE, 100);

	/* The other window on the same region, and the region, live on. */
	memset(s.here->addr, 0x22, 64);
	CHECK_STATUS(IBV_WC_SUCCESS, write_by(&s, second.rkey));
	CHECK_STATUS(IBV_WC_SUCCESS, write_by(&s, s.there->rkey));
	memset(s.here->addr, 0x33, 64);
	MUST_STATUS(IBV_WC_REM_ACCESS_ERR, write_by(&s, dead));
	CHECK_EQ(0x22, *(unsigned char *)s.there->addr);
}

/* ---- what it carries ---- */

/* One message in these pieces, into a receive in those; bytes end to end. */
static void carry(struct stage *s, struct ibv_sge *from, int n_from,
		  struct ibv_sge *to, int n_to, uint32_t length, unsigned int flags)
{
	struct ibv_recv_wr recv = { .wr_id = 5, .sg_list = to, .num_sge = n_to }, *bad;
	unsigned char *at = (unsigned char *)s->there->addr + PAGE;

	MUST_STATUS(IBV_WC_SUCCESS, bind_window(s, &s->window));
	test_fill(s->here->addr, 2 * PAGE, s->window.rkey);
	memset(at, CANARY, 2 * PAGE);
	MUST_ERR(0, ibv_post_recv(s->p.owner->qp, &recv, &bad));
	post_inv(s, 4, s->window.rkey, from, n_from, flags);
	check_received(cq_next(s->p.owner->rcq), 5, s->window.rkey, length);
	MUST_WC(cq_next(s->p.peer->scq), 4, IBV_WC_SUCCESS);
	MUST_EQ(CANARY, at[length]);
	if (!test_bytes(__FILE__, __LINE__, "the message", s->here->addr, at, length))
		test_exit();
	/* Dead, and so free to be bound by the next. */
}

static void carries(struct stage *s, uint32_t length, unsigned int flags)
{
	struct ibv_sge from = SGE(s->here, s->here->addr, length);
	struct ibv_sge to = SGE(s->there, (char *)s->there->addr + PAGE, 2 * PAGE);

	carry(s, &from, 1, &to, 1, length, flags);
}

static void every_inline_length(const struct test_case *c)
{
	struct stage s = stage_new(c->n);

	CHECK_BETWEEN(512, s.p.peer->cap.max_inline_data, 4096);
	for (uint32_t n = 0; n <= s.p.peer->cap.max_inline_data; n++) {
		test_context("%u bytes inline", n);
		carries(&s, n, IBV_SEND_INLINE);
	}
}

/* Cut in pieces of these lengths, one byte apart from the next size of page. */
static void pieces(const struct test_case *c)
{
	static const uint32_t cuts[][8] = {
		{ 1, 1, 1, 1, 1, 1, 1, 1 }, { 0, 7, 0, 0, 9, 0, 1, 0 },
		{ 4095, 1, 1, 4095 }, { 4096, 4096 }, { 4097, 0, 4095 }, { 0 },
		{ 1, 2, 3, 5, 8, 13, 21, 34 },
	};
	struct stage s = stage_new(c->n);

	for (size_t f = 0; f < ARRAY_LEN(cuts); f++) {
		struct ibv_sge from[8], to[8];
		uint32_t length = 0;

		for (int i = 0; i < 8; i++) {
			from[i] = SGE(s.here, (char *)s.here->addr + length, cuts[f][i]);
			/* The receive is cut the other way round. */
			length += cuts[f][i];
		}
		for (int i = 0, at = 0; i < 8; i++) {
			to[i] = SGE(s.there, (char *)s.there->addr + PAGE + at,
				    cuts[f][7 - i]);
			at += cuts[f][7 - i];
		}
		test_context("cut %zu", f);
		carry(&s, from, 8, to, 8, length, 0);
		if (length <= 512) {
			test_context("cut %zu, inline", f);
			carry(&s, from, 8, to, 8, length, IBV_SEND_INLINE);
		}
	}
}

static void no_bytes(const struct test_case *c)
{
	struct stage s = stage_new(c->n);
	struct ibv_sge sge = SGE(s.here, s.here->addr, 0);
	struct ibv_sge to = SGE(s.there, s.there->addr, 0);
	/* An element of no bytes names no memory, whatever key it has. */
	struct ibv_sge bad_key = { .lkey = 0x77 };

	test_context("no element into no element");
	carry(&s, NULL, 0, NULL, 0, 0, 0);
	test_context("no element, inline");
	carry(&s, NULL, 0, NULL, 0, 0, IBV_SEND_INLINE);
	test_context("an element of no bytes");
	carry(&s, &sge, 1, &to, 1, 0, 0);
	test_context("an element of no bytes without a key");
	carry(&s, &bad_key, 1, NULL, 0, 0, 0);
	test_context("no element into room for more");
	to.length = 64;
	carry(&s, NULL, 0, &to, 1, 0, 0);
	test_context("a whole page and more");
	carries(&s, PAGE + 1, 0);
}

static void frees_region(const struct test_case *c)
{
	struct stage s = stage_new(BY_OPCODE);

	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
	post_recv(s.p.owner, 5, NULL, NULL, 0);
	post_inv(&s, 4, s.window.rkey, NULL, 0, 0);
	MUST_WC(cq_next(s.p.owner->rcq), 5, IBV_WC_SUCCESS);
	CHECK_ERR(0, ibv_dereg_mr(s.there));
}

static void too_long_kills_nothing(const struct test_case *c)
{
	struct stage s = stage_new(c->n);
	struct ibv_sge sge = SGE(s.here, s.here->addr, 64);

	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
	post_recv(s.p.owner, 5, s.there, (char *)s.there->addr + PAGE, 63);
	post_inv(&s, 4, s.window.rkey, &sge, 1, 0);
	MUST_WC(cq_next(s.p.owner->rcq), 5, IBV_WC_LOC_LEN_ERR);
	MUST_WC(cq_next(s.p.peer->scq), 4, IBV_WC_REM_INV_REQ_ERR);
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
}

/* ---- what is refused when it is posted ---- */

#define UNKNOWN	0x80000000U

struct bad {
	const char *name;
	uint32_t opcode;
	unsigned int flags;
	unsigned int ways;	/* not all can say it, and get it to the device */
};

#define POST	0x1
#define EX	0x4
#define COMMAND	0x8
static_assert(POST == 1 << BY_OPCODE && EX == 1 << BY_QP_EX && COMMAND == 1 << BY_COMMAND,
	      "the bits of the ways");
#define INV	IBV_SEND_INVALIDATE

static const struct bad bad_requests[] = {
	{ "the flag with immediate data", IBV_WR_SEND_WITH_IMM, INV, POST | COMMAND },
	{ "the flag with a send with invalidate", IBV_WR_SEND_WITH_INV, INV,
	  POST | EX | COMMAND },
	{ "the flag with an RDMA WRITE", IBV_WR_RDMA_WRITE, INV, POST | EX | COMMAND },
	{ "the flag with one that has immediate data", IBV_WR_RDMA_WRITE_WITH_IMM, INV,
	  POST | COMMAND },
	{ "the flag with an RDMA READ", IBV_WR_RDMA_READ, INV, POST | EX | COMMAND },
	{ "the flag with a local invalidate", IBV_WR_LOCAL_INV, INV, POST },
	{ "the flag with a bind", IBV_WR_BIND_MW, INV, POST },
	{ "the flag where the key has no place", IBV_WR_SEND, INV, EX | COMMAND },
	{ "a checksum", IBV_WR_SEND_WITH_INV, IBV_SEND_IP_CSUM, POST | EX | COMMAND },
	{ "flag 0x20", IBV_WR_SEND_WITH_INV, 0x20, POST | EX | COMMAND },
	{ "flag 0x80", IBV_WR_SEND_WITH_INV, 0x80, POST | EX | COMMAND },
	{ "flag 0x10000", IBV_WR_SEND_WITH_INV, 0x10000, POST | EX | COMMAND },
	{ "flag 0x80000000", IBV_WR_SEND_WITH_INV, UNKNOWN, POST | EX | COMMAND },
	{ "flag 0x80000000 with the flag", IBV_WR_SEND, INV | UNKNOWN, POST | EX | COMMAND },
	{ "an opcode that the device has not", IBV_WR_ATOMIC_CMP_AND_SWP, 0,
	  POST | COMMAND },
	{ "an opcode that nobody has", 77, 0, POST },
};

/*
 * Good, bad, good: the first is sent, the second is named and the third is not
 * posted. A batch of ibv_wr_*() is posted whole or not at all.
 */
static void bad_request(struct stage *s, const struct bad *b)
{
	bool batch = s->way == BY_QP_EX;
	struct ibv_send_wr wr[3], *bad;

	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = 10 + i, .next = i < 2 ? &wr[i + 1] : NULL,
			.opcode = i == 1 ? (enum ibv_wr_opcode)b->opcode : IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED | (i == 1 ? b->flags : 0),
			.invalidate_rkey = s->window.rkey,
		};
	CHECK_ERR(EINVAL, way_post(s->p.peer, s->way, wr, &bad));
	CHECK(batch || bad == &wr[1]);
	if (batch)
		return;
	MUST_WC(cq_next(s->p.peer->scq), 10, IBV_WC_SUCCESS);
	MUST_WC(cq_next(s->p.owner->rcq), 5, IBV_WC_SUCCESS);
	post_recv(s->p.owner, 5, NULL, NULL, 0);
}

static void bad_requests_are_named(const struct test_case *c)
{
	struct stage s = stage_new(c->n);

	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
	post_recv(s.p.owner, 5, NULL, NULL, 0);
	for (size_t i = 0; i < ARRAY_LEN(bad_requests); i++) {
		test_context("%s", bad_requests[i].name);
		if (bad_requests[i].ways & 1 << s.way)
			bad_request(&s, &bad_requests[i]);
	}
	test_context("afterwards");
	CHECK(cq_quiet(s.p.owner->rcq, 30));
	CHECK(cq_quiet(s.p.peer->scq, 0));
	CHECK_STATUS(IBV_WC_SUCCESS, write_by(&s, s.window.rkey));
}

/* The device has RC only, whoever asks: the provider, or the driver past it. */
static void other_types(const struct test_case *c)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_DRIVER,
	};
	struct dev *dev = dev_open();
	struct rc *rc = rc_create(dev, NULL);

	if (!dev_is_sample())
		test_skip("%s may have other types", dev_name());
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = rc->scq, .recv_cq = rc->rcq, .qp_type = types[i],
			.cap = { 8, 8, 1, 1, 0 },
		};
		struct ibv_qp_init_attr_ex ex = {
			.send_cq = rc->scq, .recv_cq = rc->rcq, .qp_type = types[i],
			.cap = attr.cap, .pd = rc->pd,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_INV,
		};

		test_context("type %d", types[i]);
		CHECK_NULL_ERRNO(EOPNOTSUPP, ibv_create_qp(rc->pd, &attr));
		CHECK_NULL_ERRNO(EOPNOTSUPP, ibv_create_qp_ex(dev->ctx, &ex));
	}
}

/* ---- what the receiver sees ---- */

/* Polled one field at a time. */
static void extended_cq(const struct test_case *c)
{
	struct stage s = stage_new(BY_OPCODE);
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16, .wc_flags = IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_BYTE_LEN |
				       IBV_WC_EX_WITH_QP_NUM };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(s.p.dev->ctx, &attr);
	struct ibv_qp_init_attr init = {
		.send_cq = s.p.owner->scq, .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 },
	};
	struct ibv_poll_cq_attr poll = {};
	struct ibv_sge sge = SGE(s.here, s.here->addr, 48);
	struct rc owner = *s.p.owner;
	int err = ENOENT;

	MUST(cq);
	init.recv_cq = ibv_cq_ex_to_cq(cq);
	owner.qp = ibv_create_qp(owner.pd, &init);
	MUST(owner.qp);
	MUST_ERR(0, rc_modify(s.p.peer, IBV_QPS_RESET, NULL));
	rc_pair(s.p.peer, &owner);
	MUST_STATUS(IBV_WC_SUCCESS, mw_bind(&owner, &s.window, s.there, s.there->addr,
					    PAGE, WINDOW));
	post_recv(&owner, 5, s.there, (char *)s.there->addr + PAGE, PAGE);
	post_inv(&s, 4, s.window.rkey, &sge, 1, 0);
	MUST_WC(cq_next(s.p.peer->scq), 4, IBV_WC_SUCCESS);
	for (int i = 0; i < 1000 && err == ENOENT; i++) {
		err = ibv_start_poll(cq, &poll);
		if (err)
			test_sleep_ms(2);
	}
	MUST_ERR(0, err);
	CHECK_EQ(5, cq->wr_id);
	CHECK_STATUS(IBV_WC_SUCCESS, cq->status);
	CHECK_EQ(IBV_WC_RECV, ibv_wc_read_opcode(cq));
	CHECK_EQ(IBV_WC_WITH_INV, ibv_wc_read_wc_flags(cq));
	CHECK_EQ(s.window.rkey, ibv_wc_read_invalidated_rkey(cq));
	CHECK_EQ(48, ibv_wc_read_byte_len(cq));
	CHECK_EQ(owner.qp->qp_num, ibv_wc_read_qp_num(cq));
	CHECK_ERR(ENOENT, ibv_next_poll(cq));
	ibv_end_poll(cq);
}

/*
 * A link of its own gives its keys' indexes from 1 on, so that the window with
 * this one can be had: no two bytes of its key are alike.
 */
static void asymmetric_key(const struct test_case *c)
{
	/* A window for each index up to that one: fewer where a window costs much. */
	const uint32_t key = test_slowness() > 1 ? 0x00010203 : 0x01020304;
	struct qp_param param = {};
	struct link link;
	struct stage s = {};

	link_need();
	link = link_new(5);
	s.p.dev = dev_open_name(link.name);
	s.p.peer = rc_create(s.p.dev, &param);
	s.p.owner = rc_create(s.p.dev, &param);
	rc_pair(s.p.peer, s.p.owner);
	s.here = mr_new(s.p.peer->pd, PAGE);
	s.there = mr_new(s.p.owner->pd, 2 * PAGE);
	do {
		if (s.window.mw)
			MUST_ERR(0, ibv_dealloc_mw(s.window.mw));
		s.window = mw_new(s.p.owner->pd);
		MUST(s.window.rkey >> 8 <= key >> 8);
	} while (s.window.rkey >> 8 != key >> 8);
	s.window.rkey = key - 1;
	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
	MUST_EQ(key, s.window.rkey);
	CHECK_STATUS(IBV_WC_SUCCESS, write_by(&s, key));
	post_recv(s.p.owner, 5, NULL, NULL, 0);
	post_inv(&s, 4, key, NULL, 0, 0);
	check_received(cq_next(s.p.owner->rcq), 5, key, 0);
}

static void drop_link(const struct test_case *c)
{
	struct link link = { "shcatest5", "shcatest5" };

	link_need();
	link_drop(&link);
	CHECK(!dev_exists(link.name));
}

/* ---- what the device and the queue pair promise ---- */

static void capability(const struct test_case *c)
{
	struct dev *dev = dev_open();
	struct ibv_device_attr_ex ex;
	uint64_t caps = 0;

	/* Bit 21, which was SEND_W_INV once. */
	CHECK(dev->attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	CHECK(dev->attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	MUST_ERR(0, ibv_query_device_ex(dev->ctx, NULL, &ex));
	CHECK_EQ(dev->attr.device_cap_flags, ex.orig_attr.device_cap_flags);
	CHECK_BETWEEN(1, dev->attr.max_mw, 1 << 24);
	if (dev_is_sample()) {
		/* By its soname: libibverbs has loaded the provider by another. */
		void *lib = dlopen("libsample_hca.so.1", RTLD_NOW | RTLD_NOLOAD);
		int (*query_caps)(struct ibv_context *context, uint64_t *caps);

		MUST(lib);
		query_caps = (typeof(query_caps))dlsym(lib, "shca_query_caps");
		MUST(query_caps);
		CHECK_ERR(0, query_caps(dev->ctx, &caps));
		CHECK_EQ(SHCA_CAP_GIFT | SHCA_CAP_SEND_W_INV, caps);
		CHECK_ERR(EINVAL, query_caps(NULL, &caps));
		CHECK_ERR(EINVAL, query_caps(dev->ctx, NULL));
	}
}

/* One operation at a time, of all that could be asked for. */
static void ex_grants(const struct test_case *c)
{
	static const uint64_t works =
		IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
		IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
		IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
		IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
	struct dev *dev = dev_open();
	struct rc *rc = rc_create(dev, NULL);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = rc->scq, .recv_cq = rc->rcq, .qp_type = IBV_QPT_RC,
		.cap = { 8, 8, 1, 1, 0 }, .pd = rc->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};

	if (!dev_is_sample())
		test_skip("%s may grant others", dev_name());
	for (int bit = 0; bit < 64; bit++) {
		struct ibv_qp *qp;

		attr.send_ops_flags = 1ULL << bit;
		test_context("bit %d", bit);
		if (!(works & attr.send_ops_flags)) {
			CHECK_NULL_ERRNO(EOPNOTSUPP, ibv_create_qp_ex(dev->ctx, &attr));
			/* It spoils those that work. */
			attr.send_ops_flags |= works;
			CHECK_NULL_ERRNO(EOPNOTSUPP, ibv_create_qp_ex(dev->ctx, &attr));
			continue;
		}
		qp = ibv_create_qp_ex(dev->ctx, &attr);
		MUST(qp);
		MUST_ERR(0, ibv_destroy_qp(qp));
	}
}

struct message {
	uint64_t addr;
	uint32_t rkey;
};

/* The peer in a process of its own, told what to use over the socket. */
static void peer_process(void *arg)
{
	int sock = *(int *)arg;
	struct rc *rc = rc_create(dev_open(), NULL);
	struct ibv_mr *mr = mr_new(rc->pd, PAGE);
	struct ibv_sge sge = SGE(mr, mr->addr, 32);
	struct message m;

	rc_connect_socket(rc, sock);
	memset(mr->addr, 0x44, PAGE);
	sock_get(sock, &m, sizeof(m));
	MUST_STATUS(IBV_WC_SUCCESS, do_rdma(rc, IBV_WR_RDMA_WRITE, mr, mr->addr, 64,
					    m.addr, m.rkey));
	sock_meet(sock);
	sock_meet(sock);
	post_send(rc, &(struct ibv_send_wr){
		.wr_id = 3, .opcode = IBV_WR_SEND_WITH_INV, .sg_list = &sge,
		.num_sge = 1, .invalidate_rkey = m.rkey });
	MUST_WC(cq_next(rc->scq), 3, IBV_WC_SUCCESS);
	MUST_STATUS(IBV_WC_REM_ACCESS_ERR,
		    do_rdma(rc, IBV_WR_RDMA_WRITE, mr, mr->addr, 64, m.addr, m.rkey));
}

static void two_processes(const struct test_case *c)
{
	struct window w;
	struct message m;
	struct ibv_mr *mr;
	struct rc *rc;
	int sock[2];
	pid_t pid;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = test_fork(peer_process, &sock[1]);
	rc = rc_create(dev_open(), NULL);
	mr = mr_new(rc->pd, 2 * PAGE);
	rc_connect_socket(rc, sock[0]);
	w = mw_new(rc->pd);
	MUST_STATUS(IBV_WC_SUCCESS, mw_bind(rc, &w, mr, mr->addr, PAGE, WINDOW));
	m = (struct message){ (uintptr_t)mr->addr, w.rkey };
	sock_put(sock[0], &m, sizeof(m));
	sock_meet(sock[0]);
	CHECK_EQ(0x44, ((char *)mr->addr)[63]);
	memset(mr->addr, CANARY, PAGE);
	post_recv(rc, 5, mr, (char *)mr->addr + PAGE, PAGE);
	sock_meet(sock[0]);
	check_received(cq_next(rc->rcq), 5, w.rkey, 32);
	test_join(pid);
	CHECK_EQ(CANARY, *(unsigned char *)mr->addr);
}

#define IN_EACH_WAY(text, fn)						\
	{ "IBV_WR_SEND_WITH_INV " text, fn, NULL, BY_OPCODE },		\
	{ "IBV_SEND_INVALIDATE " text, fn, NULL, BY_FLAG },		\
	{ "ibv_wr_send_inv " text, fn, NULL, BY_QP_EX },		\
	{ "a work request in a command " text, fn, NULL, BY_COMMAND }

static const struct test_case cases[] = {
	IN_EACH_WAY("kills its window, and no other on the region", kills_its_window),
	IN_EACH_WAY("carries inline data of every length", every_inline_length),
	IN_EACH_WAY("carries data in pieces", pieces),
	IN_EACH_WAY("carries no bytes", no_bytes),
	IN_EACH_WAY("invalidates nothing when its data does not fit",
		    too_long_kills_nothing),
	{ "an invalidated window no longer holds its region", frees_region },
	{ "ibv_post_send names a request that means nothing and posts those before it",
	  bad_requests_are_named, NULL, BY_OPCODE },
	{ "ibv_wr_complete refuses a batch with a request that means nothing",
	  bad_requests_are_named, NULL, BY_QP_EX },
	{ "a command names a request that means nothing and posts those before it",
	  bad_requests_are_named, NULL, BY_COMMAND },
	{ "no queue pair can be made that has no send with invalidate", other_types },
	{ "an extended completion queue shows the flag and the key", extended_cq },
	{ "the key comes back in the byte order that it went in with", asymmetric_key,
	  .timeout = 90 },
	{ "the link of that test goes away again", drop_link },
	{ "the device says that it can", capability },
	{ "ibv_create_qp_ex grants what works and refuses what does not", ex_grants },
	{ "between two processes the window dies before the receiver is told",
	  two_processes },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
