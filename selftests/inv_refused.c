// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Every key that may not be invalidated, between two processes: what each side
 * sees, that nothing was invalidated, and that both go on with a new queue pair.
 * The table at the end is the one in Documentation/send-with-invalidate.rst. What
 * is invalidated is in send_inv.c.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/pair.h"
#include "lib/ways.h"

#define PAGE	4096UL
#define CANARY	0xa5
#define DATA	0x11
#define WINDOW	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/* The ways in, and a LOCAL_INV that the owner posts. */
#define BY_OWNER	WAYS

/* The connections between the two processes. */
enum conn { MAIN, SAME_PD, OTHER_PD, FRESH, CONNS };

/* One row of the table. */
struct row {
	enum key {
		NEVER_BOUND, INVALIDATED, LOCALLY_INVALIDATED, DEALLOCATED,
		USER_REGION, LKEY, LOW_BITS, OLD_KEY, ZERO, NO_SUCH, OTHER_QPS,
		OTHER_PDS, TYPE_1, TYPE_1_FREE, PEERS_OWN, QP_WAS_RESET,
	} key;
	enum ibv_wc_status receive, send, local;
};

/* What the owner's process asks of the peer's. */
enum what { CONNECT, WRITE, SEND, INVALIDATE, BE_REFUSED, BIND_OWN, CHECK_OWN, IDLE };

struct order {
	enum what what;
	unsigned int way;
	enum conn conn;
	uint64_t addr;
	uint32_t rkey;
	enum ibv_wc_status status;
	bool others;
};

struct side {
	int sock;
	unsigned int way;
	bool others;			/* connections beside MAIN */
	struct dev *dev;
	struct ibv_pd *pd[2];		/* and the other one */
	struct rc *rc[CONNS];
	struct ibv_mr *mr[2];		/* in each protection domain */
	struct window window;		/* of the first */
	struct ibv_mr *windows_mr;
};

static int domain(enum conn on)
{
	return on == OTHER_PD;
}

static void side_connect(struct side *s, enum conn on)
{
	struct qp_param param = way_param(s->way, (struct qp_param){
		.pd = s->pd[domain(on)], .timeout = 10, .retry_cnt = 2 });

	s->rc[on] = rc_create(s->dev, &param);
	rc_connect_socket(s->rc[on], s->sock);
}

/* Both processes come through here at the same time. */
static void side_new(struct side *s)
{
	if (!s->dev)
		s->dev = dev_open();
	for (int i = 0; i < 2; i++) {
		s->pd[i] = ibv_alloc_pd(s->dev->ctx);
		MUST(s->pd[i]);
		s->mr[i] = mr_new(s->pd[i], 4 * PAGE);
	}
	for (enum conn on = MAIN; on < FRESH; on++)
		if (on == MAIN || s->others)
			side_connect(s, on);
}

static void check_state(struct rc *rc, enum ibv_qp_state expected)
{
	for (int i = 0; i < 1000 && rc_state(rc) != expected; i++)
		test_sleep_ms(2);
	CHECK_EQ(expected, rc_state(rc));
}

/* Neither an event nor a completion more than there should be. */
static void check_silence(struct side *s)
{
	CHECK_EQ(-1, async_wait(s->dev->ctx, 10));
	for (enum conn on = MAIN; on < CONNS; on++)
		if (s->rc[on]) {
			CHECK(cq_quiet(s->rc[on]->scq, 0));
			CHECK(cq_quiet(s->rc[on]->rcq, 0));
		}
}

/* ---- the peer's process ---- */

/* A list of which the first entry is refused while the others wait behind it. */
static void be_refused(struct side *s, const struct order *o)
{
	struct rc *rc = s->rc[MAIN];
	struct ibv_sge sge = SGE(s->mr[0], s->mr[0]->addr, 64);
	struct ibv_send_wr wr[3], *bad;

	for (int i = 0; i < 2; i++)
		post_recv(rc, 30 + i, s->mr[0], (char *)s->mr[0]->addr + PAGE, 64);
	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = 10 + i, .next = i < 2 ? &wr[i + 1] : NULL,
			.opcode = i ? IBV_WR_SEND : IBV_WR_SEND_WITH_INV,
			.send_flags = IBV_SEND_SIGNALED,
			.sg_list = &sge, .num_sge = 1, .invalidate_rkey = o->rkey,
		};
	MUST_ERR(0, way_post(rc, o->way, wr, &bad));
	MUST_WC(cq_next(rc->scq), 10, o->status);
	MUST_WC(cq_next(rc->scq), 11, IBV_WC_WR_FLUSH_ERR);
	MUST_WC(cq_next(rc->scq), 12, IBV_WC_WR_FLUSH_ERR);
	MUST_WC(cq_next(rc->rcq), 30, IBV_WC_WR_FLUSH_ERR);
	MUST_WC(cq_next(rc->rcq), 31, IBV_WC_WR_FLUSH_ERR);
	check_state(rc, IBV_QPS_ERR);
	check_silence(s);
}

static enum ibv_wc_status obey(struct side *s, const struct order *o, uint32_t *rkey)
{
	struct ibv_mr *mr = s->mr[domain(o->conn)];
	struct rc *rc = s->rc[o->conn];
	struct ibv_sge sge = {};
	struct ibv_send_wr wr = { .wr_id = 4, .opcode = IBV_WR_SEND_WITH_INV,
				  .invalidate_rkey = o->rkey, .sg_list = &sge,
				  .num_sge = 1 };

	/* There is none before the first CONNECT. */
	if (mr)
		sge = SGE(mr, mr->addr, 64);
	switch (o->what) {
	case CONNECT:
		if (o->conn == FRESH)
			side_connect(s, FRESH);
		else
			side_new(s);
		memset(s->mr[0]->addr, DATA, PAGE);
		memset(s->mr[1]->addr, DATA, PAGE);
		break;
	case WRITE:
		return do_rdma(rc, IBV_WR_RDMA_WRITE, mr, mr->addr, 64, o->addr,
			       o->rkey);
	case SEND:
		return do_rdma(rc, IBV_WR_SEND, mr, mr->addr, 64, 0, 0);
	case INVALIDATE:
		way_send(rc, o->way, &wr);
		return cq_next(rc->scq).status;
	case BE_REFUSED:
		be_refused(s, o);
		break;
	case BIND_OWN:
		s->window = mw_new(s->pd[0]);
		MUST_STATUS(IBV_WC_SUCCESS, mw_bind(rc, &s->window, s->mr[0],
						    s->mr[0]->addr, PAGE, WINDOW));
		*rkey = s->window.rkey;
		break;
	case CHECK_OWN:
		CHECK_ERR(EBUSY, ibv_dereg_mr(s->mr[0]));
		break;
	case IDLE:
		check_state(s->rc[MAIN], IBV_QPS_RTS);
		check_silence(s);
		break;
	}
	return IBV_WC_SUCCESS;
}

struct reply {
	enum ibv_wc_status status;
	uint32_t rkey;
};

static void peer_process(void *arg)
{
	struct side s = { .sock = *(int *)arg };
	struct reply reply;
	struct order o;

	while (recv(s.sock, &o, sizeof(o), MSG_WAITALL) == sizeof(o)) {
		if (o.what == CONNECT && o.conn != FRESH)
			s = (struct side){ .sock = s.sock, .dev = s.dev, .way = o.way,
					   .others = o.others };
		test_context("%s, the peer", o.way == BY_OWNER ? "LOCAL_INV" :
			     way_names[o.way]);
		reply.status = obey(&s, &o, &reply.rkey);
		sock_put(s.sock, &reply, sizeof(reply));
	}
}

/* ---- the owner's process ---- */

static struct reply ask(struct side *s, struct order o)
{
	struct reply reply;

	o.way = s->way;
	o.others = s->others;
	sock_put(s->sock, &o, sizeof(o));
	/* The peer connects while this side does. */
	if (o.what == CONNECT && o.conn == FRESH)
		side_connect(s, FRESH);
	else if (o.what == CONNECT)
		side_new(s);
	sock_get(s->sock, &reply, sizeof(reply));
	return reply;
}

static enum ibv_wc_status peer_writes(struct side *s, enum conn on, struct ibv_mr *mr,
				      uint32_t rkey)
{
	struct order o = { WRITE, .conn = on, .rkey = rkey,
			   .addr = (uintptr_t)mr->addr };

	return ask(s, o).status;
}

static enum ibv_wc_status peer_invalidates(struct side *s, enum conn on, uint32_t rkey)
{
	return ask(s, (struct order){ INVALIDATE, .conn = on, .rkey = rkey }).status;
}

static enum ibv_wc_status peer_sends(struct side *s, enum conn on)
{
	return ask(s, (struct order){ SEND, .conn = on }).status;
}

static void bind_on(struct side *s, enum conn on, struct window *w)
{
	struct ibv_mr *mr = s->mr[domain(on)];

	MUST_STATUS(IBV_WC_SUCCESS, mw_bind(s->rc[on], w, mr, mr->addr, PAGE,
					    WINDOW));
}

static struct window bound(struct side *s, enum conn on)
{
	struct window w = mw_new(s->pd[domain(on)]);

	bind_on(s, on, &w);
	return w;
}

static struct ibv_mw *type_1(struct side *s, bool bound)
{
	struct ibv_mw *mw = ibv_alloc_mw(s->pd[0], IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.wr_id = 0xb1, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { s->mr[0], (uintptr_t)s->mr[0]->addr, PAGE, WINDOW },
	};

	MUST(mw);
	if (bound) {
		MUST_ERR(0, ibv_bind_mw(s->rc[MAIN]->qp, mw, &bind));
		MUST_WC(cq_next(s->rc[MAIN]->scq), 0xb1, IBV_WC_SUCCESS);
	}
	return mw;
}

/* Makes the key that is refused. */
static uint32_t make_key(struct side *s, enum key what)
{
	struct window w;
	uint32_t rkey;

	switch (what) {
	case NEVER_BOUND:
		return mw_new(s->pd[0]).rkey;
	case INVALIDATED:
		w = bound(s, MAIN);
		post_recv(s->rc[MAIN], 5, s->mr[0], s->mr[0]->addr, 64);
		if (s->way == BY_OWNER)
			s->way = BY_OPCODE;
		MUST_STATUS(IBV_WC_SUCCESS, peer_invalidates(s, MAIN, w.rkey));
		MUST_WC(cq_next(s->rc[MAIN]->rcq), 5, IBV_WC_SUCCESS);
		return w.rkey;
	case LOCALLY_INVALIDATED:
		w = bound(s, MAIN);
		MUST_STATUS(IBV_WC_SUCCESS, mw_local_inv(s->rc[MAIN], w.rkey));
		return w.rkey;
	case DEALLOCATED:
		w = bound(s, MAIN);
		MUST_ERR(0, ibv_dealloc_mw(w.mw));
		return w.rkey;
	case USER_REGION:
		return s->mr[0]->rkey;
	case LKEY:
		s->windows_mr = mr_reg(s->pd[0], s->mr[0]->addr, PAGE,
				       IBV_ACCESS_LOCAL_WRITE);
		return s->windows_mr->lkey;
	case LOW_BITS:
		return s->window.rkey ^ 0x40;
	case OLD_KEY:
		rkey = s->window.rkey;
		MUST_STATUS(IBV_WC_SUCCESS, mw_local_inv(s->rc[MAIN], rkey));
		bind_on(s, MAIN, &s->window);
		return rkey;
	case ZERO:
		return 0;
	case NO_SUCH:
		return 0xfffffe01;
	case OTHER_QPS:
		return bound(s, SAME_PD).rkey;
	case OTHER_PDS:
		return bound(s, OTHER_PD).rkey;
	case TYPE_1:
		return type_1(s, true)->rkey;
	case TYPE_1_FREE:
		return type_1(s, false)->rkey;
	case PEERS_OWN:
		return ask(s, (struct order){ BIND_OWN }).rkey;
	case QP_WAS_RESET:
		w = bound(s, SAME_PD);
		MUST_ERR(0, rc_modify(s->rc[SAME_PD], IBV_QPS_RESET, NULL));
		return w.rkey;
	}
	MUST(false);
	return 0;
}

/* What the key gave before, it gives still. */
static void check_alive(struct side *s, enum key what, uint32_t rkey)
{
	struct rc *rc = s->rc[SAME_PD];

	switch (what) {
	case USER_REGION:
	case TYPE_1:
	case OTHER_QPS:
		CHECK_STATUS(IBV_WC_SUCCESS, peer_writes(s, SAME_PD, s->mr[0], rkey));
		CHECK_EQ(DATA, *(unsigned char *)s->mr[0]->addr);
		break;
	case OTHER_PDS:
		CHECK_STATUS(IBV_WC_SUCCESS, peer_writes(s, OTHER_PD, s->mr[1], rkey));
		CHECK_EQ(DATA, *(unsigned char *)s->mr[1]->addr);
		CHECK_ERR(EBUSY, ibv_dereg_mr(s->mr[1]));
		break;
	case LKEY:
		post_recv(rc, 6, s->windows_mr, s->windows_mr->addr, 64);
		CHECK_STATUS(IBV_WC_SUCCESS, peer_sends(s, SAME_PD));
		MUST_WC(cq_next(rc->rcq), 6, IBV_WC_SUCCESS);
		break;
	case PEERS_OWN:
		ask(s, (struct order){ CHECK_OWN });
		break;
	default:
		break;
	}
	/* A region is held by the windows that are bound on it. */
	CHECK_ERR(EBUSY, ibv_dereg_mr(s->mr[0]));
	MUST_ERR(0, ibv_dealloc_mw(s->window.mw));
}

/* A new queue pair does all that the old one could. */
static void go_on(struct side *s)
{
	struct window w;

	ask(s, (struct order){ CONNECT, .conn = FRESH });
	if (s->way == BY_OWNER)
		s->way = BY_OPCODE;
	w = bound(s, FRESH);
	CHECK_STATUS(IBV_WC_SUCCESS, peer_writes(s, FRESH, s->mr[0], w.rkey));
	post_recv(s->rc[FRESH], 7, s->mr[0], (char *)s->mr[0]->addr + PAGE, 64);
	CHECK_STATUS(IBV_WC_SUCCESS, peer_invalidates(s, FRESH, w.rkey));
	MUST_WC(cq_next(s->rc[FRESH]->rcq), 7, IBV_WC_SUCCESS);
}

/*
 * The owner's own sends wait in SQD, in which the queue pair still receives, so
 * that its send queue has something to flush.
 */
static void refuse_send(struct side *s, const struct row *row, uint32_t rkey)
{
	struct order o = { BE_REFUSED, .conn = MAIN, .rkey = rkey, .status = row->send };
	struct rc *rc = s->rc[MAIN];
	unsigned char *at = s->mr[0]->addr;

	MUST_ERR(0, rc_modify(rc, IBV_QPS_SQD, NULL));
	for (int i = 0; i < 2; i++)
		post_simple(rc, IBV_WR_SEND, 40 + i, NULL, NULL, 0, 0, 0);
	memset(at, CANARY, 4 * PAGE);
	for (int i = 0; i < 3; i++)
		post_recv(rc, 20 + i, s->mr[0], at + PAGE, 64);
	ask(s, o);
	MUST_WC(cq_next(rc->rcq), 20, row->receive);
	MUST_WC(cq_next(rc->rcq), 21, IBV_WC_WR_FLUSH_ERR);
	MUST_WC(cq_next(rc->rcq), 22, IBV_WC_WR_FLUSH_ERR);
	MUST_WC(cq_next(rc->scq), 40, IBV_WC_WR_FLUSH_ERR);
	MUST_WC(cq_next(rc->scq), 41, IBV_WC_WR_FLUSH_ERR);
	/* Data may be where the receive wants it and is nowhere else. */
	for (size_t i = 0; i < 4 * PAGE; i++)
		if (i < PAGE || i >= PAGE + 64)
			MUST_EQ(CANARY, at[i]);
}

/* The peer is not told: its queue pair finds out when it sends. */
static void refuse_local(struct side *s, const struct row *row, uint32_t rkey)
{
	struct rc *rc = s->rc[MAIN];
	struct ibv_send_wr wr[3], *bad;

	for (int i = 0; i < 2; i++)
		post_recv(rc, 20 + i, s->mr[0], s->mr[0]->addr, 64);
	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = 40 + i, .next = i < 2 ? &wr[i + 1] : NULL,
			.opcode = i ? IBV_WR_SEND : IBV_WR_LOCAL_INV,
			.send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = rkey,
		};
	MUST_ERR(0, ibv_post_send(rc->qp, wr, &bad));
	MUST_WC(cq_next(rc->scq), 40, row->local);
	MUST_WC(cq_next(rc->scq), 41, IBV_WC_WR_FLUSH_ERR);
	MUST_WC(cq_next(rc->scq), 42, IBV_WC_WR_FLUSH_ERR);
	MUST_WC(cq_next(rc->rcq), 20, IBV_WC_WR_FLUSH_ERR);
	MUST_WC(cq_next(rc->rcq), 21, IBV_WC_WR_FLUSH_ERR);
	ask(s, (struct order){ IDLE });
	CHECK_STATUS(IBV_WC_RETRY_EXC_ERR, peer_sends(s, MAIN));
}

/* Whether the key is made, or used afterwards, on a connection beside MAIN. */
static bool needs_others(enum key what)
{
	switch (what) {
	case USER_REGION:
	case LKEY:
	case OTHER_QPS:
	case OTHER_PDS:
	case TYPE_1:
	case QP_WAS_RESET:
		return true;
	default:
		return false;
	}
}

static void refused(const struct test_case *c)
{
	const struct row *row = c->arg;
	uint32_t rkey;
	int sock[2];
	pid_t pid;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = test_fork(peer_process, &sock[1]);
	close(sock[1]);
	for (unsigned int way = 0; way <= BY_OWNER; way++) {
		struct side s = { .sock = sock[0], .way = way,
				  .others = needs_others(row->key) };

		if (way == BY_COMMAND && !dev_is_sample())
			continue;
		test_context("%s", way == BY_OWNER ? "LOCAL_INV" : way_names[way]);
		ask(&s, (struct order){ CONNECT });
		s.window = bound(&s, MAIN);
		rkey = make_key(&s, row->key);
		if (way == BY_OWNER)
			refuse_local(&s, row, rkey);
		else
			refuse_send(&s, row, rkey);
		check_state(s.rc[MAIN], IBV_QPS_ERR);
		check_silence(&s);
		check_alive(&s, row->key, rkey);
		go_on(&s);
	}
	shutdown(sock[0], SHUT_WR);
	test_join(pid);
}

/* Text, key, and what the receive, the send and a LOCAL_INV complete with. */
#define REFUSED(text, key, receive, send, local)			\
	{ text " is not invalidated", refused,				\
	  &(const struct row){ key, IBV_WC_##receive, IBV_WC_##send,	\
			       IBV_WC_##local }, .timeout = 60 }

static const struct test_case cases[] = {
	REFUSED("a window that was never bound", NEVER_BOUND,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("a window that a send has invalidated", INVALIDATED,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("a window that its owner has invalidated", LOCALLY_INVALIDATED,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("a window that is no more", DEALLOCATED,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("the rkey of a user's region", USER_REGION,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("an lkey", LKEY,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("the right index and wrong low 8 bits", LOW_BITS,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("the key that a window had before it was bound again", OLD_KEY,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("key 0", ZERO,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("a key that nothing has", NO_SUCH,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("a window bound to another QP", OTHER_QPS,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("a window of another protection domain", OTHER_PDS,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("a window of the other process", PEERS_OWN,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("a window whose QP was reset", QP_WAS_RESET,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("a window of type 1", TYPE_1,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
	REFUSED("a window of type 1 that is not bound", TYPE_1_FREE,
		REM_INV_REQ_ERR, REM_INV_REQ_ERR, MW_BIND_ERR),
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
