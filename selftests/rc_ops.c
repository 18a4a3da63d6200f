// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What every opcode does when all is well, over RC: the right bytes to the right
 * place and nowhere else, and completions that say so. Windows' own rules are
 * in send_inv.c, errors in rc_err.c, notification and order in rc_cq.c.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/pair.h"

#define PAGE		4096UL
#define ARENA		(MIB + 16 * PAGE)
#define CANARY		0xa5
#define IMM		0x01020304

/* A message: its length and how each side scatters it over its memory. */
struct layout {
	const char *name;
	size_t length;
	size_t from_offset, to_offset;
	int from_sges, to_sges;
};

static const struct layout layouts[] = {
	{ "no byte", 0, 0, 0, 0, 0 },
	{ "no byte, one SGE of length 0", 0, 64, 64, 1, 1 },
	{ "one byte", 1, 0, 0, 1, 1 },
	{ "one byte, the last of a page", 1, PAGE - 1, PAGE - 1, 1, 1 },
	{ "100 bytes within a page", 100, 8, 300, 1, 1 },
	{ "two bytes over a page's end", 2, PAGE - 1, 2 * PAGE - 1, 1, 1 },
	{ "a page, aligned", PAGE, 0, PAGE, 1, 1 },
	{ "a page and 3 bytes, unaligned", PAGE + 3, 17, 4001, 1, 1 },
	{ "5001 bytes in 4 SGEs to one", 5001, 101, 77, 4, 1 },
	{ "5001 bytes in one SGE to 4", 5001, 101, 77, 1, 4 },
	{ "70000 bytes in 3 SGEs to 4", 70000, 4095, 1, 3, 4 },
	{ "3 bytes in 4 SGEs, one of them empty", 3, 4094, 4095, 4, 4 },
	{ "1 MiB less a byte, unaligned", MIB - 1, 1, 3, 1, 1 },
	{ "1 MiB in 4 SGEs to 3", MIB, 5, 4093, 4, 3 },
};

struct piece {
	size_t offset, length;
};

/*
 * Cuts a message into pieces that lie apart in memory. With fewer bytes than
 * pieces some are empty.
 */
static void cut(size_t length, size_t offset, int n, struct piece *pieces)
{
	size_t done = 0;

	for (int i = 0; i < n; i++) {
		size_t take = i == n - 1 ? length - done : length / n;

		pieces[i] = (struct piece){ offset, take };
		offset += take + 61 + 7 * i;
		done += take;
	}
}

static void to_sges(const struct piece *pieces, int n, struct ibv_mr *mr,
		    struct ibv_sge *sges)
{
	for (int i = 0; i < n; i++)
		sges[i] = SGE(mr, (char *)mr->addr + pieces[i].offset,
			      pieces[i].length);
}

/* What each opcode uses: who scatters, who is told, and how it completes. */
struct op {
	enum ibv_wr_opcode opcode;
	bool rdma;			/* names remote memory */
	bool reads;			/* moves bytes towards the requester */
	bool receives;			/* consumes a receive */
	bool imm;
	enum ibv_wc_opcode wc_opcode, recv_opcode;
};

static const struct op ops[] = {
	[0] = { IBV_WR_SEND, .receives = true,
		.wc_opcode = IBV_WC_SEND, .recv_opcode = IBV_WC_RECV },
	[1] = { IBV_WR_SEND_WITH_IMM, .receives = true, .imm = true,
		.wc_opcode = IBV_WC_SEND, .recv_opcode = IBV_WC_RECV },
	[2] = { IBV_WR_SEND_WITH_INV, .receives = true,
		.wc_opcode = IBV_WC_SEND, .recv_opcode = IBV_WC_RECV },
	[3] = { IBV_WR_RDMA_WRITE, .rdma = true,
		.wc_opcode = IBV_WC_RDMA_WRITE },
	[4] = { IBV_WR_RDMA_WRITE_WITH_IMM, .rdma = true, .receives = true,
		.imm = true, .wc_opcode = IBV_WC_RDMA_WRITE,
		.recv_opcode = IBV_WC_RECV_RDMA_WITH_IMM },
	[5] = { IBV_WR_RDMA_READ, .rdma = true, .reads = true,
		.wc_opcode = IBV_WC_RDMA_READ },
};

struct stage {
	struct pair p;
	struct ibv_mr *here, *there;	/* the peer's memory and the owner's */
	struct window window;
};

static struct stage stage_new(const struct op *op, const struct qp_param *param)
{
	struct stage s = { .p = pair_new(param) };

	s.here = mr_new(s.p.peer->pd, ARENA);
	s.there = mr_new(s.p.owner->pd, ARENA);
	if (op->opcode == IBV_WR_SEND_WITH_INV)
		s.window = mw_new(s.p.owner->pd);
	return s;
}

static void check_sent(const struct stage *s, const struct op *op, size_t length)
{
	struct ibv_wc wc = cq_next(s->p.peer->scq);

	MUST_WC(wc, 0x5e4d, IBV_WC_SUCCESS);
	CHECK_EQ(op->wc_opcode, wc.opcode);
	CHECK_EQ(s->p.peer->qp->qp_num, wc.qp_num);
	if (op->reads)
		CHECK_EQ(length, wc.byte_len);
}

static void check_received(const struct stage *s, const struct op *op,
			   size_t length)
{
	unsigned int expected = op->imm ? IBV_WC_WITH_IMM : 0;
	struct ibv_wc wc = cq_next(s->p.owner->rcq);

	MUST_WC(wc, 0x4ecf, IBV_WC_SUCCESS);
	CHECK_EQ(op->recv_opcode, wc.opcode);
	CHECK_EQ(length, wc.byte_len);
	CHECK_EQ(s->p.owner->qp->qp_num, wc.qp_num);
	CHECK_EQ(s->p.peer->qp->qp_num, wc.src_qp);
	if (op->opcode == IBV_WR_SEND_WITH_INV) {
		expected = IBV_WC_WITH_INV;
		CHECK_EQ(s->window.rkey, wc.invalidated_rkey);
	}
	CHECK_EQ(expected, wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV));
	if (op->imm)
		CHECK_EQ(IMM, ntohl(wc.imm_data));
}

/* Posts the receive and the request through ibv_post_send(). */
static void post(struct stage *s, const struct op *op, struct ibv_sge *local,
		 int locals, struct ibv_sge *remote, int remotes)
{
	struct ibv_recv_wr rwr = { .wr_id = 0x4ecf }, *rbad;
	struct ibv_send_wr wr = {
		.wr_id = 0x5e4d,
		.opcode = op->opcode,
		.sg_list = local,
		.num_sge = locals,
	};

	if (op->receives) {
		/* A write with immediate consumes a receive and none of its memory. */
		rwr.sg_list = op->rdma ? NULL : remote;
		rwr.num_sge = op->rdma ? 0 : remotes;
		MUST_ERR(0, ibv_post_recv(s->p.owner->qp, &rwr, &rbad));
	}
	if (op->imm)
		wr.imm_data = htonl(IMM);
	if (op->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = s->window.rkey;
	if (op->rdma) {
		wr.wr.rdma.remote_addr = remotes ? remote[0].addr :
			(uintptr_t)s->there->addr;
		wr.wr.rdma.rkey = s->there->rkey;
	}
	post_send(s->p.peer, &wr);
}

static void move(struct stage *s, const struct op *op, const struct layout *l)
{
	/* A remote range is one piece; what is scattered is the local memory. */
	int locals = op->reads ? l->to_sges : l->from_sges;
	int remotes = op->rdma ? !!l->from_sges : l->to_sges;
	struct ibv_mr *source = op->reads ? s->there : s->here;
	struct ibv_mr *target = op->reads ? s->here : s->there;
	struct piece local[4], remote[4], *from = local, *to = remote;
	struct ibv_sge lsge[4], rsge[4];
	unsigned char *expected = malloc(ARENA), *message = malloc(l->length + 1);
	int nfrom = locals, nto = remotes;
	size_t done = 0;

	MUST(expected && message);
	cut(l->length, op->reads ? l->to_offset : l->from_offset, locals, local);
	cut(l->length, op->reads ? l->from_offset : l->to_offset, remotes, remote);
	if (op->reads) {
		from = remote;
		to = local;
		nfrom = remotes;
		nto = locals;
	}
	test_fill(source->addr, ARENA, l->length + op->opcode);
	memset(target->addr, CANARY, ARENA);
	memset(expected, CANARY, ARENA);
	for (int i = 0; i < nfrom; done += from[i++].length)
		memcpy(message + done, (char *)source->addr + from[i].offset,
		       from[i].length);
	done = 0;
	for (int i = 0; i < nto; done += to[i++].length)
		memcpy(expected + to[i].offset, message + done, to[i].length);

	if (op->opcode == IBV_WR_SEND_WITH_INV)
		MUST_STATUS(IBV_WC_SUCCESS,
			    mw_bind(s->p.owner, &s->window, s->there,
				    s->there->addr, PAGE,
				    IBV_ACCESS_REMOTE_WRITE));
	to_sges(local, locals, s->here, lsge);
	to_sges(remote, remotes, s->there, rsge);
	post(s, op, lsge, locals, rsge, remotes);
	check_sent(s, op, l->length);
	if (op->receives)
		check_received(s, op, l->length);
	CHECK_BYTES(expected, target->addr, ARENA);
	free(expected);
	free(message);
}

static void moves(const struct test_case *c)
{
	const struct op *op = &ops[c->n];
	struct stage s = stage_new(op, NULL);

	for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
		test_context("%s", layouts[i].name);
		move(&s, op, &layouts[i]);
	}
}

/* A receive larger than the message is filled from its start only. */
static void larger_receive(const struct test_case *c)
{
	struct stage s = stage_new(&ops[0], NULL);
	unsigned char *expected = malloc(ARENA);
	struct ibv_wc wc;

	MUST(expected);
	test_fill(s.here->addr, ARENA, 3);
	memset(s.there->addr, CANARY, ARENA);
	memset(expected, CANARY, ARENA);
	memcpy(expected, s.here->addr, 5000);
	post_recv(s.p.owner, 1, s.there, s.there->addr, ARENA);
	MUST_STATUS(IBV_WC_SUCCESS, do_rdma(s.p.peer, IBV_WR_SEND, s.here,
					    s.here->addr, 5000, 0, 0));
	wc = cq_next(s.p.owner->rcq);
	MUST_WC(wc, 1, IBV_WC_SUCCESS);
	CHECK_EQ(5000, wc.byte_len);
	CHECK_BYTES(expected, s.there->addr, ARENA);
}

/* The caller's buffer is its own again when the post returns; no key is needed. */
static void inline_all(const struct test_case *c)
{
	const struct op *op = &ops[c->n];
	struct stage s = stage_new(op, &(struct qp_param){ .inline_data = 64 });
	uint32_t max = s.p.peer->cap.max_inline_data;
	unsigned char *expected = malloc(PAGE);
	char *data = malloc(max + 1);

	MUST(expected && data);
	CHECK_BETWEEN(64, max, 65536);
	for (uint32_t n = 0; n <= max; n++) {
		uint32_t first = n / 3;
		struct ibv_sge sge[2] = {
			{ (uintptr_t)data, first, 0xbad },
			{ (uintptr_t)data + first, n - first, 0xbad },
		};
		struct ibv_send_wr wr = {
			.wr_id = n, .opcode = op->opcode, .sg_list = sge,
			.num_sge = 2, .send_flags = IBV_SEND_INLINE,
			.wr.rdma = { (uintptr_t)s.there->addr + 7, s.there->rkey },
		};
		struct ibv_wc wc;

		test_context("%u bytes", n);
		test_fill(data, n, n);
		memset(expected, CANARY, PAGE);
		memcpy(expected + 7, data, n < PAGE - 7 ? n : PAGE - 7);
		memset(s.there->addr, CANARY, PAGE);
		if (op->receives)
			post_recv(s.p.owner, n, s.there, (char *)s.there->addr + 7,
				  ARENA - 7);
		post_send(s.p.peer, &wr);
		memset(data, 0xff, max);
		wc = cq_next(s.p.peer->scq);
		MUST_WC(wc, n, IBV_WC_SUCCESS);
		if (op->receives) {
			wc = cq_next(s.p.owner->rcq);
			MUST_WC(wc, n, IBV_WC_SUCCESS);
			CHECK_EQ(n, wc.byte_len);
		}
		CHECK_BYTES(expected, s.there->addr, PAGE);
	}
}

static void inline_too_long(const struct test_case *c)
{
	struct stage s = stage_new(&ops[0], &(struct qp_param){ .inline_data = 64 });
	uint32_t max = s.p.peer->cap.max_inline_data;
	struct ibv_sge sge = { (uintptr_t)s.here->addr, max + 1, s.here->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
	}, *bad = NULL;

	CHECK_ERR(EINVAL, ibv_post_send(s.p.peer->qp, &wr, &bad));
	CHECK(bad == &wr);
	CHECK(cq_quiet(s.p.peer->scq, 20));
}

#define EX_OPS	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |	\
		 IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE | \
		 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |			\
		 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_LOCAL_INV |	\
		 IBV_QP_EX_WITH_BIND_MW)

static void start_op(struct stage *s, struct ibv_qp_ex *qpx, const struct op *op)
{
	uint64_t addr = (uintptr_t)s->there->addr + PAGE - 50;

	switch (op->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qpx);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qpx, htonl(IMM));
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qpx, s->window.rkey);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qpx, s->there->rkey, addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qpx, s->there->rkey, addr, htonl(IMM));
		break;
	default:
		ibv_wr_rdma_read(qpx, s->there->rkey, addr);
	}
}

enum how { ONE_SGE, SGE_LIST, INLINE, INLINE_LIST, HOWS };

static void set_data(struct ibv_qp_ex *qpx, enum how how, struct ibv_mr *mr,
		     char *data)
{
	struct ibv_sge sge[2] = { SGE(mr, data, 20), SGE(mr, data + 20, 40) };
	struct ibv_data_buf buf[2] = { { data, 20 }, { data + 20, 40 } };

	switch (how) {
	case ONE_SGE:
		ibv_wr_set_sge(qpx, mr->lkey, (uintptr_t)data, 60);
		break;
	case SGE_LIST:
		ibv_wr_set_sge_list(qpx, 2, sge);
		break;
	case INLINE:
		ibv_wr_set_inline_data(qpx, data, 60);
		break;
	default:
		ibv_wr_set_inline_data_list(qpx, 2, buf);
	}
}

static void through_qp_ex(const struct test_case *c)
{
	const struct op *op = &ops[c->n];
	struct qp_param param = { .inline_data = 64, .send_ops = EX_OPS };
	struct stage s = stage_new(op, &param);
	struct ibv_qp_ex *qpx = s.p.peer->qpx;

	for (enum how how = ONE_SGE; how < HOWS; how++) {
		char *local = (char *)s.here->addr + 11;
		char *remote = (char *)s.there->addr + PAGE - 50;
		char *source = op->reads ? remote : local;
		char *target = op->reads ? local : remote;

		if (op->reads && how >= INLINE)
			break;
		test_context("way %d of giving the data", how);
		test_fill(source, 60, how + 9);
		memset(target, CANARY, 61);
		if (op->opcode == IBV_WR_SEND_WITH_INV)
			MUST_STATUS(IBV_WC_SUCCESS,
				    mw_bind(s.p.owner, &s.window, s.there,
					    s.there->addr, PAGE,
					    IBV_ACCESS_REMOTE_READ));
		if (op->receives)
			post_recv(s.p.owner, 0x4ecf, op->rdma ? NULL : s.there,
				  remote, 60);
		ibv_wr_start(qpx);
		qpx->wr_id = 0x5e4d;
		qpx->wr_flags = IBV_SEND_SIGNALED;
		start_op(&s, qpx, op);
		set_data(qpx, how, s.here, local);
		MUST_ERR(0, ibv_wr_complete(qpx));
		check_sent(&s, op, 60);
		if (op->receives)
			check_received(&s, op, 60);
		CHECK_BYTES(source, target, 60);
		CHECK_EQ(CANARY, (unsigned char)target[60]);
	}
}

static void qp_ex_batch(const struct test_case *c)
{
	struct stage s = stage_new(&ops[3], &(struct qp_param){ .send_ops = EX_OPS });
	struct ibv_qp_ex *qpx = s.p.peer->qpx;
	unsigned char *to = s.there->addr;

	memset(to, CANARY, PAGE);
	test_fill(s.here->addr, PAGE, 4);
	for (int aborted = 1; aborted >= 0; aborted--) {
		ibv_wr_start(qpx);
		for (int i = 0; i < 8; i++) {
			qpx->wr_id = i;
			qpx->wr_flags = i == 7 ? IBV_SEND_SIGNALED : 0;
			ibv_wr_rdma_write(qpx, s.there->rkey, (uintptr_t)to + i * 32);
			ibv_wr_set_sge(qpx, s.here->lkey,
				       (uintptr_t)s.here->addr + i * 32, 32);
		}
		if (aborted) {
			ibv_wr_abort(qpx);
			CHECK(cq_quiet(s.p.peer->scq, 20));
			CHECK_EQ(CANARY, to[0]);
		} else {
			MUST_ERR(0, ibv_wr_complete(qpx));
		}
	}
	MUST_WC(cq_next(s.p.peer->scq), 7, IBV_WC_SUCCESS);
	CHECK_BYTES(s.here->addr, to, 256);
	CHECK_EQ(CANARY, to[256]);
}

/* A fenced send carries what the read before it brought. */
static void fence(const struct test_case *c)
{
	struct stage s = stage_new(&ops[5], NULL);
	char *here = s.here->addr, *there = s.there->addr;

	for (int i = 0; i < 20; i++) {
		struct ibv_sge sge = SGE(s.here, here, 65536);
		struct ibv_send_wr send = {
			.wr_id = 2, .opcode = IBV_WR_SEND, .sg_list = &sge,
			.num_sge = 1,
			.send_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED,
		}, read = {
			.wr_id = 1, .opcode = IBV_WR_RDMA_READ, .sg_list = &sge,
			.num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)there, s.there->rkey },
			.next = &send,
		}, *bad;

		test_fill(there, 65536, i);
		memset(here, CANARY, 65536);
		post_recv(s.p.owner, 3, s.there, there + 65536, 65536);
		MUST_ERR(0, ibv_post_send(s.p.peer->qp, &read, &bad));
		MUST_WC(cq_next(s.p.peer->scq), 1, IBV_WC_SUCCESS);
		MUST_WC(cq_next(s.p.peer->scq), 2, IBV_WC_SUCCESS);
		MUST_WC(cq_next(s.p.owner->rcq), 3, IBV_WC_SUCCESS);
		CHECK_BYTES(there, there + 65536, 65536);
	}
}

/* Connected to itself, a queue pair is its own responder. */
static void loopback(const struct test_case *c)
{
	struct rc *rc = rc_create(dev_open(), NULL);
	struct rc_addr self = rc_addr(rc);
	struct ibv_mr *mr = mr_new(rc->pd, 2 * PAGE);
	char *to = (char *)mr->addr + PAGE;

	rc_connect(rc, &self);
	test_fill(mr->addr, PAGE, 1);
	MUST_STATUS(IBV_WC_SUCCESS, do_rdma(rc, IBV_WR_RDMA_WRITE, mr, mr->addr,
					    PAGE, (uintptr_t)to, mr->rkey));
	CHECK_BYTES(mr->addr, to, PAGE);
	test_fill(mr->addr, PAGE, 2);
	post_recv(rc, 1, mr, to, PAGE);
	MUST_STATUS(IBV_WC_SUCCESS,
		    do_rdma(rc, IBV_WR_SEND, mr, mr->addr, PAGE, 0, 0));
	MUST_WC(cq_next(rc->rcq), 1, IBV_WC_SUCCESS);
	CHECK_BYTES(mr->addr, to, PAGE);
}

#define OP_CASES(i, name)						\
	{ name " moves the right bytes and no others, at every size and layout", \
	  moves, NULL, i },						\
	{ name " through ibv_wr_* does the same", through_qp_ex, NULL, i }

static const struct test_case cases[] = {
	OP_CASES(0, "SEND"),
	OP_CASES(1, "SEND with immediate"),
	OP_CASES(2, "SEND with invalidate"),
	OP_CASES(3, "RDMA WRITE"),
	OP_CASES(4, "RDMA WRITE with immediate"),
	OP_CASES(5, "RDMA READ"),
	{ "SEND into a larger receive fills its beginning only", larger_receive },
	{ "SEND inline of every length moves the right bytes", inline_all, NULL, 0 },
	{ "RDMA WRITE inline of every length moves the right bytes", inline_all,
	  NULL, 3 },
	{ "inline data beyond max_inline_data is EINVAL", inline_too_long },
	{ "a batch of ibv_wr_* is posted whole or, when aborted, not at all",
	  qp_ex_batch },
	{ "a fenced SEND carries what the RDMA READ before it brought", fence },
	{ "a queue pair connected to itself works", loopback },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
