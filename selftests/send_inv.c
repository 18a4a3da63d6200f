// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Send with invalidate: that it kills the window it names and nothing else, by
 * each of its three ways in, what the receiver learns, and every key for which
 * it is refused. Windows' other rules are in mw.c.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <infiniband/gift.h>
#include <rdma/sample_hca-abi.h>

#include "lib/pair.h"

#define PAGE	4096UL
#define CANARY	0xa5
#define WINDOW	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/* The ways to post one. */
enum way { BY_OPCODE, BY_FLAG, BY_QP_EX, WAYS };

static const char *const way_names[WAYS] = {
	"IBV_WR_SEND_WITH_INV", "IBV_SEND_INVALIDATE", "ibv_wr_send_inv",
};

struct stage {
	struct pair p;
	enum way way;
	struct ibv_mr *here, *there;	/* the peer's memory and the owner's */
	struct window window;		/* on all of the owner's */
};

static struct stage stage_new(enum way way)
{
	struct qp_param param = {
		.inline_data = 64,
		.send_ops = way != BY_QP_EX ? 0 :
			IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV |
			IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct stage s = { .p = pair_new(&param), .way = way };

	s.here = mr_new(s.p.peer->pd, PAGE);
	s.there = mr_new(s.p.owner->pd, 2 * PAGE);
	memset(s.here->addr, 0x11, PAGE);
	memset(s.there->addr, CANARY, 2 * PAGE);
	s.window = mw_new(s.p.owner->pd);
	return s;
}

static enum ibv_wc_status bind_window(struct stage *s, struct window *w)
{
	return mw_bind(s->p.owner, w, s->there, s->there->addr, PAGE, WINDOW);
}

static enum ibv_wc_status write_by(struct stage *s, uint32_t rkey)
{
	return do_rdma(s->p.peer, IBV_WR_RDMA_WRITE, s->here, s->here->addr, 64,
		       (uintptr_t)s->there->addr, rkey);
}

static void post_inv(struct rc *rc, enum way by, uint64_t wr_id, uint32_t rkey,
		     struct ibv_mr *mr, uint32_t length, unsigned int flags)
{
	struct ibv_sge sge = SGE(mr, mr->addr, length);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.opcode = by == BY_FLAG ? IBV_WR_SEND : IBV_WR_SEND_WITH_INV,
		.send_flags = flags | (by == BY_FLAG ? IBV_SEND_INVALIDATE : 0),
		.sg_list = &sge,
		.num_sge = !!length,
		.invalidate_rkey = rkey,
	};

	if (by != BY_QP_EX) {
		post_send(rc, &wr);
		return;
	}
	ibv_wr_start(rc->qpx);
	rc->qpx->wr_id = wr_id;
	rc->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_inv(rc->qpx, rkey);
	if (flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(rc->qpx, mr->addr, length);
	else if (length)
		ibv_wr_set_sge(rc->qpx, mr->lkey, (uintptr_t)mr->addr, length);
	MUST_ERR(0, ibv_wr_complete(rc->qpx));
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
	uint32_t dead;

	test_context("%s", way_names[s.way]);
	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &second));
	dead = s.window.rkey;
	MUST_STATUS(IBV_WC_SUCCESS, write_by(&s, dead));
	CHECK_BYTES(s.here->addr, s.there->addr, 64);

	post_recv(s.p.owner, 5, s.there, (char *)s.there->addr + PAGE, PAGE);
	post_inv(s.p.peer, s.way, 4, dead, s.here, 100, 0);
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

static void sizes(const struct test_case *c)
{
	static const uint32_t lengths[] = { 0, 1, 63, 64, PAGE };
	struct stage s = stage_new(c->n);

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		for (int inlined = 0; inlined <= (lengths[i] <= 64); inlined++) {
			test_context("%s, %u bytes%s", way_names[s.way], lengths[i],
				     inlined ? " inline" : "");
			MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
			test_fill(s.here->addr, PAGE, lengths[i] + inlined);
			memset(s.there->addr, CANARY, 2 * PAGE);
			post_recv(s.p.owner, 5, s.there, s.there->addr, 2 * PAGE);
			post_inv(s.p.peer, s.way, 4, s.window.rkey, s.here,
				 lengths[i], inlined ? IBV_SEND_INLINE : 0);
			check_received(cq_next(s.p.owner->rcq), 5, s.window.rkey,
				       lengths[i]);
			MUST_WC(cq_next(s.p.peer->scq), 4, IBV_WC_SUCCESS);
			CHECK_BYTES(s.here->addr, s.there->addr, lengths[i]);
			CHECK_EQ(CANARY, ((unsigned char *)s.there->addr)[lengths[i]]);
		}
	}
}

/* The keys that a send with invalidate may not name. */
enum key {
	NEVER_BOUND, INVALIDATED, LOCALLY_INVALIDATED, DEALLOCATED, USER_REGION,
	LKEY, LOW_BITS, OLD_KEY, ZERO, NO_SUCH, OTHER_QP, OTHER_PD, PEERS_OWN,
};

/* Makes the key. *still says which window must still be bound afterwards. */
static uint32_t make_key(struct stage *s, enum key what, struct window **still,
			 struct ibv_mr **still_on)
{
	static struct window other;
	struct ibv_mr *mr;
	struct pair p2;
	uint32_t rkey;

	*still = &s->window;
	*still_on = s->there;
	switch (what) {
	case NEVER_BOUND:
		return mw_new(s->p.owner->pd).rkey;
	case INVALIDATED:
		other = mw_new(s->p.owner->pd);
		MUST_STATUS(IBV_WC_SUCCESS, bind_window(s, &other));
		post_recv(s->p.owner, 5, NULL, NULL, 0);
		post_inv(s->p.peer, s->way, 4, other.rkey, s->here, 0, 0);
		MUST_WC(cq_next(s->p.owner->rcq), 5, IBV_WC_SUCCESS);
		MUST_WC(cq_next(s->p.peer->scq), 4, IBV_WC_SUCCESS);
		return other.rkey;
	case LOCALLY_INVALIDATED:
		other = mw_new(s->p.owner->pd);
		MUST_STATUS(IBV_WC_SUCCESS, bind_window(s, &other));
		MUST_STATUS(IBV_WC_SUCCESS, mw_local_inv(s->p.owner, other.rkey));
		return other.rkey;
	case DEALLOCATED:
		other = mw_new(s->p.owner->pd);
		MUST_STATUS(IBV_WC_SUCCESS, bind_window(s, &other));
		MUST_ERR(0, ibv_dealloc_mw(other.mw));
		return other.rkey;
	case USER_REGION:
		return s->there->rkey;
	case LKEY:
		mr = mr_reg(s->p.owner->pd, s->there->addr, PAGE,
			    IBV_ACCESS_LOCAL_WRITE);
		return mr->lkey;
	case LOW_BITS:
		return s->window.rkey ^ 0x40;
	case OLD_KEY:
		rkey = s->window.rkey;
		MUST_STATUS(IBV_WC_SUCCESS, mw_local_inv(s->p.owner, rkey));
		MUST_STATUS(IBV_WC_SUCCESS, bind_window(s, &s->window));
		return rkey;
	case ZERO:
		return 0;
	case NO_SUCH:
		return 0xfffffe01;
	case OTHER_QP:
	case OTHER_PD:
		/* Bound to another queue pair of the owner, and alive there. */
		p2 = (struct pair){ .dev = s->p.dev };
		p2.owner = rc_create(s->p.dev, &(struct qp_param){
			.pd = what == OTHER_QP ? s->p.owner->pd : NULL });
		p2.peer = rc_create(s->p.dev, NULL);
		rc_pair(p2.owner, p2.peer);
		mr = mr_new(p2.owner->pd, PAGE);
		other = mw_new(p2.owner->pd);
		MUST_STATUS(IBV_WC_SUCCESS, mw_bind(p2.owner, &other, mr, mr->addr,
						    PAGE, WINDOW));
		*still = &other;
		*still_on = mr;
		return other.rkey;
	case PEERS_OWN:
		/* Bound at the sender's end of the connection, not the receiver's. */
		other = mw_new(s->p.peer->pd);
		MUST_STATUS(IBV_WC_SUCCESS, mw_bind(s->p.peer, &other, s->here,
						    s->here->addr, PAGE, WINDOW));
		*still = &other;
		*still_on = s->here;
		return other.rkey;
	}
	MUST(false);
	return 0;
}

static void check_state(struct rc *rc, enum ibv_qp_state expected)
{
	for (int i = 0; i < 1000 && rc_state(rc) != expected; i++)
		test_sleep_ms(2);
	CHECK_EQ(expected, rc_state(rc));
}

static void refuse(enum key key, enum way way)
{
	struct stage s = stage_new(way);
	struct ibv_mr *still_on;
	struct window *still;
	struct rc *fresh;
	uint32_t rkey;

	test_context("%s", way_names[way]);
	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
	rkey = make_key(&s, key, &still, &still_on);
	for (int i = 0; i < 3; i++)
		post_recv(s.p.owner, 20 + i, s.there, (char *)s.there->addr + PAGE, 64);
	post_inv(s.p.peer, way, 10, rkey, s.here, 64, 0);
	for (int i = 1; i < 3; i++)
		post_simple(s.p.peer, IBV_WR_SEND, 10 + i, NULL, NULL, 0, 0, 0);

	MUST_WC(cq_next(s.p.owner->rcq), 20, IBV_WC_REM_INV_REQ_ERR);
	MUST_WC(cq_next(s.p.peer->scq), 10, IBV_WC_REM_INV_REQ_ERR);
	for (int i = 1; i < 3; i++) {
		MUST_WC(cq_next(s.p.owner->rcq), 20 + i, IBV_WC_WR_FLUSH_ERR);
		MUST_WC(cq_next(s.p.peer->scq), 10 + i, IBV_WC_WR_FLUSH_ERR);
	}
	check_state(s.p.owner, IBV_QPS_ERR);
	check_state(s.p.peer, IBV_QPS_ERR);
	CHECK(cq_quiet(s.p.owner->rcq, 10));

	/* A region is held by the windows bound on it: nothing was invalidated. */
	CHECK_ERR(EBUSY, ibv_dereg_mr(still_on));
	MUST_ERR(0, ibv_dealloc_mw(still->mw));
	CHECK_ERR(0, ibv_dereg_mr(still_on));

	/* And the process can go on with a new queue pair. */
	fresh = rc_create(s.p.dev, NULL);
	rc_pair(fresh, rc_create(s.p.dev, NULL));
	CHECK_STATUS(IBV_WC_SUCCESS,
		     do_rdma(fresh, IBV_WR_RDMA_WRITE, NULL, NULL, 0, 0, 0));
}

static void refused(const struct test_case *c)
{
	for (enum way way = BY_OPCODE; way < WAYS; way++)
		refuse(c->n, way);
}

static void frees_region(const struct test_case *c)
{
	struct stage s = stage_new(BY_OPCODE);

	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
	post_recv(s.p.owner, 5, NULL, NULL, 0);
	post_inv(s.p.peer, s.way, 4, s.window.rkey, s.here, 0, 0);
	MUST_WC(cq_next(s.p.owner->rcq), 5, IBV_WC_SUCCESS);
	CHECK_ERR(0, ibv_dereg_mr(s.there));
}

/* Waiting for a receive invalidates nothing yet; and then it does once. */
static void waits_for_receive(const struct test_case *c)
{
	struct stage s = stage_new(BY_OPCODE);
	struct ibv_mr *mr = s.there;

	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
	post_inv(s.p.peer, s.way, 4, s.window.rkey, s.here, 64, 0);
	CHECK(cq_quiet(s.p.peer->scq, 100));
	CHECK_ERR(EBUSY, ibv_dereg_mr(mr));
	post_recv(s.p.owner, 5, mr, (char *)mr->addr + PAGE, 64);
	check_received(cq_next(s.p.owner->rcq), 5, s.window.rkey, 64);
	MUST_WC(cq_next(s.p.peer->scq), 4, IBV_WC_SUCCESS);
	CHECK_ERR(0, ibv_dereg_mr(mr));
}

static void too_long_kills_nothing(const struct test_case *c)
{
	struct stage s = stage_new(BY_OPCODE);

	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
	post_recv(s.p.owner, 5, s.there, (char *)s.there->addr + PAGE, 63);
	post_inv(s.p.peer, s.way, 4, s.window.rkey, s.here, 64, 0);
	MUST_WC(cq_next(s.p.owner->rcq), 5, IBV_WC_LOC_LEN_ERR);
	MUST_WC(cq_next(s.p.peer->scq), 4, IBV_WC_REM_INV_REQ_ERR);
	CHECK_ERR(EBUSY, ibv_dereg_mr(s.there));
}

/* Longer than the 8 bits of the key that the owner chooses take to come round. */
static void cycles(const struct test_case *c)
{
	enum { ROUNDS = 600 };
	struct stage s = stage_new(c->n);

	for (uint32_t i = 0; i < ROUNDS; i++) {
		test_context("round %u", i);
		MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
		*(uint32_t *)s.here->addr = i;
		MUST_STATUS(IBV_WC_SUCCESS, write_by(&s, s.window.rkey));
		MUST_EQ(i, *(uint32_t *)s.there->addr);
		post_recv(s.p.owner, i, NULL, NULL, 0);
		post_inv(s.p.peer, s.way, i, s.window.rkey, s.here, 0, 0);
		check_received(cq_next(s.p.owner->rcq), i, s.window.rkey, 0);
		MUST_WC(cq_next(s.p.peer->scq), i, IBV_WC_SUCCESS);
	}
	MUST_STATUS(IBV_WC_REM_ACCESS_ERR, write_by(&s, s.window.rkey));
}

/* Combinations that mean nothing on the wire are refused when they are posted. */
static void bad_flag(const struct test_case *c)
{
	struct stage s = stage_new(BY_OPCODE);
	struct ibv_send_wr wr = {
		.opcode = c->n, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INVALIDATE,
		.invalidate_rkey = 1,
		.wr.rdma = { (uintptr_t)s.there->addr, s.there->rkey },
	}, *bad = NULL;

	MUST_STATUS(IBV_WC_SUCCESS, bind_window(&s, &s.window));
	wr.invalidate_rkey = s.window.rkey;
	post_recv(s.p.owner, 5, NULL, NULL, 0);
	CHECK_ERR(EINVAL, ibv_post_send(s.p.peer->qp, &wr, &bad));
	CHECK(bad == &wr);
	CHECK(cq_quiet(s.p.owner->rcq, 30));
	CHECK_STATUS(IBV_WC_SUCCESS, write_by(&s, s.window.rkey));
}

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

static void ex_grants(const struct test_case *c)
{
	struct dev *dev = dev_open();
	struct rc *rc = rc_create(dev, NULL);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = rc->scq, .recv_cq = rc->rcq, .qp_type = IBV_QPT_RC,
		.cap = { 8, 8, 1, 1, 0 }, .pd = rc->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};

	attr.send_ops_flags = 1ULL << 40;
	CHECK_NULL_ERRNO(EOPNOTSUPP, ibv_create_qp_ex(dev->ctx, &attr));
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_TSO;
	CHECK_NULL_ERRNO(EOPNOTSUPP, ibv_create_qp_ex(dev->ctx, &attr));
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_INV;
	MUST_ERR(0, ibv_destroy_qp(ibv_create_qp_ex(dev->ctx, &attr)));
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
	struct message m;

	rc_connect_socket(rc, sock);
	memset(mr->addr, 0x44, PAGE);
	sock_get(sock, &m, sizeof(m));
	MUST_STATUS(IBV_WC_SUCCESS, do_rdma(rc, IBV_WR_RDMA_WRITE, mr, mr->addr, 64,
					    m.addr, m.rkey));
	sock_meet(sock);
	sock_meet(sock);
	post_inv(rc, BY_OPCODE, 3, m.rkey, mr, 32, 0);
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

#define REFUSED(text, key) { "it is refused with " text, refused, NULL, key }

static const struct test_case cases[] = {
	{ "IBV_WR_SEND_WITH_INV kills its window, and no other on the region",
	  kills_its_window, NULL, BY_OPCODE },
	{ "IBV_WR_SEND with IBV_SEND_INVALIDATE kills its window, and no other on the region",
	  kills_its_window, NULL, BY_FLAG },
	{ "ibv_wr_send_inv kills its window, and no other on the region",
	  kills_its_window, NULL, BY_QP_EX },
	{ "IBV_WR_SEND_WITH_INV carries data of every size", sizes, NULL, BY_OPCODE },
	{ "IBV_SEND_INVALIDATE carries data of every size", sizes, NULL, BY_FLAG },
	{ "ibv_wr_send_inv carries data of every size", sizes, NULL, BY_QP_EX },
	REFUSED("a window that was never bound", NEVER_BOUND),
	REFUSED("a window that a send has invalidated", INVALIDATED),
	REFUSED("a window that its owner has invalidated", LOCALLY_INVALIDATED),
	REFUSED("a window that is no more", DEALLOCATED),
	REFUSED("the rkey of a user's region", USER_REGION),
	REFUSED("an lkey", LKEY),
	REFUSED("the right index and wrong low 8 bits", LOW_BITS),
	REFUSED("the key that a window had before it was bound again", OLD_KEY),
	REFUSED("key 0", ZERO),
	REFUSED("a key that nothing has", NO_SUCH),
	REFUSED("a window bound to another QP", OTHER_QP),
	REFUSED("a window of another protection domain", OTHER_PD),
	REFUSED("a window of the sender's", PEERS_OWN),
	{ "an invalidated window no longer holds its region", frees_region },
	{ "it invalidates when it is received, not while it waits for that",
	  waits_for_receive },
	{ "it invalidates nothing when its data does not fit",
	  too_long_kills_nothing },
	{ "bind, use and invalidate works while the key's low bits wrap", cycles,
	  NULL, BY_OPCODE },
	{ "IBV_SEND_INVALIDATE with immediate data is EINVAL", bad_flag, NULL,
	  IBV_WR_SEND_WITH_IMM },
	{ "IBV_SEND_INVALIDATE with an RDMA WRITE is EINVAL", bad_flag, NULL,
	  IBV_WR_RDMA_WRITE },
	{ "the device says that it can", capability },
	{ "ibv_create_qp_ex grants it and refuses what the device cannot do",
	  ex_grants },
	{ "between two processes the window dies before the receiver is told",
	  two_processes },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
