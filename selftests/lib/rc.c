// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns queue pairs, their connection, memory and windows; see rc.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rc.h"

/* Zero stands for the default and a negative number for zero. */
static int choose(int given, int otherwise)
{
	return given < 0 ? 0 : given ? given : otherwise;
}

static void create_qp(struct rc *rc)
{
	const struct qp_param *p = &rc->param;
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = rc->scq,
		.recv_cq = rc->rcq,
		.cap = {
			.max_send_wr = p->send_wr,
			.max_recv_wr = p->recv_wr,
			.max_send_sge = p->sge,
			.max_recv_sge = p->sge,
			.max_inline_data = p->inline_data,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = p->sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = rc->pd,
		.send_ops_flags = p->send_ops,
	};
	struct ibv_qp_init_attr plain = {
		.send_cq = rc->scq,
		.recv_cq = rc->rcq,
		.cap = ex.cap,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = p->sig_all,
	};

	if (p->send_ops) {
		rc->qp = ibv_create_qp_ex(rc->dev->ctx, &ex);
		MUST(rc->qp);
		rc->qpx = ibv_qp_to_qp_ex(rc->qp);
		rc->cap = ex.cap;
	} else {
		rc->qp = ibv_create_qp(rc->pd, &plain);
		MUST(rc->qp);
		rc->cap = plain.cap;
	}
}

struct rc *rc_create(struct dev *dev, const struct qp_param *param)
{
	struct rc *rc = calloc(1, sizeof(*rc));
	struct qp_param *p;

	MUST(rc);
	p = &rc->param;
	if (param)
		*p = *param;
	p->send_wr = p->send_wr ? p->send_wr : 64;
	p->recv_wr = p->recv_wr ? p->recv_wr : 64;
	p->sge = p->sge ? p->sge : 4;
	p->cqe = p->cqe ? p->cqe : p->send_wr + p->recv_wr;
	p->access = p->access ? p->access : QP_REMOTE_ALL;
	p->timeout = choose(p->timeout, dev_is_sample() ? 14 : 19);
	p->retry_cnt = choose(p->retry_cnt, 7);
	p->rnr_retry = choose(p->rnr_retry, 7);
	p->min_rnr_timer = choose(p->min_rnr_timer, 12);

	rc->dev = dev;
	rc->pd = p->pd ? p->pd : ibv_alloc_pd(dev->ctx);
	MUST(rc->pd);
	if (p->channel) {
		rc->channel = ibv_create_comp_channel(dev->ctx);
		MUST(rc->channel);
	}
	rc->scq = ibv_create_cq(dev->ctx, p->cqe, rc, rc->channel, 0);
	MUST(rc->scq);
	rc->rcq = ibv_create_cq(dev->ctx, p->cqe, rc, rc->channel, 0);
	MUST(rc->rcq);
	create_qp(rc);
	return rc;
}

void rc_destroy(struct rc *rc)
{
	MUST_ERR(0, ibv_destroy_qp(rc->qp));
	MUST_ERR(0, ibv_destroy_cq(rc->scq));
	MUST_ERR(0, ibv_destroy_cq(rc->rcq));
	if (rc->channel)
		MUST_ERR(0, ibv_destroy_comp_channel(rc->channel));
	if (!rc->param.pd)
		MUST_ERR(0, ibv_dealloc_pd(rc->pd));
	free(rc);
}

struct rc_addr rc_addr(const struct rc *rc)
{
	return (struct rc_addr){
		.gid = rc->dev->gid,
		.qpn = rc->qp->qp_num,
		.psn = rc->qp->qp_num * 77 & 0xffffff,
	};
}

static int attr_init(const struct rc *rc, struct ibv_qp_attr *a)
{
	a->pkey_index = 0;
	a->port_num = 1;
	a->qp_access_flags = rc->param.access;
	return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

static int attr_rtr(const struct rc *rc, const struct rc_addr *peer,
		    struct ibv_qp_attr *a)
{
	a->path_mtu = rc->dev->mtu;
	a->dest_qp_num = peer->qpn;
	a->rq_psn = peer->psn;
	a->max_dest_rd_atomic = 4;
	a->min_rnr_timer = rc->param.min_rnr_timer;
	a->ah_attr = (struct ibv_ah_attr){
		.grh = {
			.dgid = peer->gid,
			.sgid_index = rc->dev->gid_index,
			.hop_limit = 64,
		},
		.is_global = 1,
		.port_num = 1,
	};
	return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static int attr_rts(const struct rc *rc, struct ibv_qp_attr *a)
{
	a->timeout = rc->param.timeout;
	a->retry_cnt = rc->param.retry_cnt;
	a->rnr_retry = rc->param.rnr_retry;
	a->sq_psn = rc_addr(rc).psn;
	a->max_rd_atomic = 4;
	return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
}

int rc_attr(const struct rc *rc, enum ibv_qp_state to,
	    const struct rc_addr *peer, struct ibv_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = to;
	switch (to) {
	case IBV_QPS_INIT:
		return IBV_QP_STATE | attr_init(rc, attr);
	case IBV_QPS_RTR:
		return IBV_QP_STATE | attr_rtr(rc, peer, attr);
	case IBV_QPS_RTS:
		return IBV_QP_STATE | attr_rts(rc, attr);
	default:
		return IBV_QP_STATE;
	}
}

int rc_modify(struct rc *rc, enum ibv_qp_state to, const struct rc_addr *peer)
{
	struct ibv_qp_attr attr;
	int mask = rc_attr(rc, to, peer, &attr);

	return ibv_modify_qp(rc->qp, &attr, mask);
}

void rc_connect(struct rc *rc, const struct rc_addr *peer)
{
	MUST_ERR(0, rc_modify(rc, IBV_QPS_INIT, peer));
	MUST_ERR(0, rc_modify(rc, IBV_QPS_RTR, peer));
	MUST_ERR(0, rc_modify(rc, IBV_QPS_RTS, peer));
}

void rc_pair(struct rc *a, struct rc *b)
{
	struct rc_addr aa = rc_addr(a), ba = rc_addr(b);

	rc_connect(a, &ba);
	rc_connect(b, &aa);
}

void sock_put(int sock, const void *record, size_t length)
{
	MUST(send(sock, record, length, MSG_NOSIGNAL) == (ssize_t)length);
}

void sock_get(int sock, void *record, size_t length)
{
	MUST(recv(sock, record, length, MSG_WAITALL) == (ssize_t)length);
}

void sock_meet(int sock)
{
	char c = '.';

	sock_put(sock, &c, 1);
	sock_get(sock, &c, 1);
}

void rc_connect_socket(struct rc *rc, int sock)
{
	struct rc_addr mine = rc_addr(rc), peer;

	sock_put(sock, &mine, sizeof(mine));
	sock_get(sock, &peer, sizeof(peer));
	rc_connect(rc, &peer);
	sock_meet(sock);
}

enum ibv_qp_state rc_state(struct rc *rc)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	MUST_ERR(0, ibv_query_qp(rc->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

struct ibv_mr *mr_reg(struct ibv_pd *pd, void *addr, size_t length,
		      unsigned int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, length, access);

	MUST(mr);
	return mr;
}

int mr_rereg(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
	     unsigned int access)
{
	errno = 0;
	if (!ibv_rereg_mr(mr, flags, pd, addr, length, access))
		return 0;
	return errno ? errno : EIO;
}

struct ibv_mr *mr_new(struct ibv_pd *pd, size_t length)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, length + 2 * page, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* Between pages of its own: no huge page reaches into other memory. */
	MUST(p != MAP_FAILED);
	MUST(!mprotect(p + page, length, PROT_READ | PROT_WRITE));
	return mr_reg(pd, p + page, length, MR_ALL);
}

bool cq_wait(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms)
{
	double end = test_now() + ms * 0.001;
	unsigned int turns = 0;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		MUST(n >= 0);
		if (n)
			return true;
		/* Two CPUs, and the engine may need the other one. */
		if (turns++ > 100)
			usleep(100);
	} while (test_now() < end);
	return false;
}

struct ibv_wc cq_next(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!cq_wait(cq, &wc, 20000)) {
		test_fail(__FILE__, __LINE__,
			  "ibv_poll_cq: expected a completion within 20 s, got none");
		test_exit();
	}
	return wc;
}

bool cq_quiet(struct ibv_cq *cq, unsigned int ms)
{
	struct ibv_wc wc;

	if (!cq_wait(cq, &wc, ms))
		return true;
	test_note("unexpected completion: wr_id 0x%llx, %s, opcode %d",
		  (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
		  wc.opcode);
	return false;
}

bool test_wc(const char *file, int line, struct ibv_wc wc, uint64_t wr_id,
	     enum ibv_wc_status status)
{
	if (wc.wr_id == wr_id && wc.status == status)
		return true;
	test_fail(file, line,
		  "completion: expected wr_id 0x%llx with '%s', got 0x%llx with '%s' (vendor_err %u)",
		  (unsigned long long)wr_id, ibv_wc_status_str(status),
		  (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
		  wc.vendor_err);
	return false;
}

bool test_status(const char *file, int line, const char *what,
		 enum ibv_wc_status expected, enum ibv_wc_status got)
{
	if (expected == got)
		return true;
	test_fail(file, line, "%s: expected '%s', got '%s'", what,
		  ibv_wc_status_str(expected), ibv_wc_status_str(got));
	return false;
}

void post_recv(struct rc *rc, uint64_t wr_id, struct ibv_mr *mr, void *addr,
	       uint32_t length)
{
	struct ibv_sge sge = {};
	struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad;

	if (mr) {
		sge = SGE(mr, addr, length);
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	MUST_ERR(0, ibv_post_recv(rc->qp, &wr, &bad));
}

void post_send(struct rc *rc, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	MUST_ERR(0, ibv_post_send(rc->qp, wr, &bad));
}

void post_simple(struct rc *rc, enum ibv_wr_opcode opcode, uint64_t wr_id,
		 struct ibv_mr *mr, void *addr, uint32_t length,
		 uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_sge sge = {};
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.wr.rdma = { .remote_addr = remote_addr, .rkey = rkey },
	};

	if (length) {
		sge = SGE(mr, addr, length);
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	post_send(rc, &wr);
}

enum ibv_wc_status do_rdma(struct rc *rc, enum ibv_wr_opcode opcode,
			   struct ibv_mr *mr, void *addr, uint32_t length,
			   uint64_t remote_addr, uint32_t rkey)
{
	post_simple(rc, opcode, 0xd0, mr, addr, length, remote_addr, rkey);
	return cq_next(rc->scq).status;
}

struct window mw_new(struct ibv_pd *pd)
{
	struct window w = { .mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2) };

	MUST(w.mw);
	w.rkey = w.mw->rkey;
	return w;
}

int mw_post_bind(struct rc *rc, struct window *w, struct ibv_mr *mr, void *addr,
		 uint64_t length, unsigned int access)
{
	struct ibv_send_wr wr = {
		.wr_id = 0xb1d,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = w->mw,
			.rkey = ibv_inc_rkey(w->rkey),
			.bind_info = {
				.mr = mr,
				.addr = (uintptr_t)addr,
				.length = length,
				.mw_access_flags = access,
			},
		},
	}, *bad;

	return ibv_post_send(rc->qp, &wr, &bad);
}

enum ibv_wc_status mw_bind(struct rc *rc, struct window *w, struct ibv_mr *mr,
			   void *addr, uint64_t length, unsigned int access)
{
	struct ibv_wc wc;

	MUST_ERR(0, mw_post_bind(rc, w, mr, addr, length, access));
	wc = cq_next(rc->scq);
	if (wc.status == IBV_WC_SUCCESS)
		w->rkey = ibv_inc_rkey(w->rkey);
	return wc.status;
}

enum ibv_wc_status mw_local_inv(struct rc *rc, uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = 0x14f, .opcode = IBV_WR_LOCAL_INV,
				  .invalidate_rkey = rkey };

	post_send(rc, &wr);
	return cq_next(rc->scq).status;
}
