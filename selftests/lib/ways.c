// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns the translation of a list of requests to each way; see ways.h. */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/gift.h>
#include <rdma/ib_user_verbs.h>

#include "ways.h"

#define MAX_LIST	8
#define MAX_SGES	64

const char *const way_names[WAYS] = {
	"IBV_WR_SEND_WITH_INV", "IBV_SEND_INVALIDATE", "ibv_wr_send_inv",
	"the command POST_SEND",
};

struct qp_param way_param(enum way by, struct qp_param param)
{
	if (by == BY_QP_EX)
		param.send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV |
				 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
				 IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
	return param;
}

static int post_by_flag(struct rc *rc, struct ibv_send_wr *wr,
			struct ibv_send_wr **bad)
{
	struct ibv_send_wr copy[MAX_LIST], *orig[MAX_LIST], *copy_bad = NULL;
	int n = 0, err;

	for (; wr; wr = wr->next) {
		MUST(n < MAX_LIST);
		orig[n] = wr;
		copy[n] = *wr;
		if (copy[n].opcode == IBV_WR_SEND_WITH_INV) {
			copy[n].opcode = IBV_WR_SEND;
			copy[n].send_flags |= IBV_SEND_INVALIDATE;
		}
		if (n)
			copy[n - 1].next = &copy[n];
		n++;
	}
	err = ibv_post_send(rc->qp, copy, &copy_bad);
	*bad = err && copy_bad >= copy && copy_bad < copy + n ?
	       orig[copy_bad - copy] : NULL;
	return err;
}

static void build(struct ibv_qp_ex *qpx, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf buf[MAX_SGES];

	qpx->wr_id = wr->wr_id;
	qpx->wr_flags = wr->send_flags;
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qpx);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qpx, wr->invalidate_rkey);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	default:
		MUST(false);
	}
	if (wr->send_flags & IBV_SEND_INLINE) {
		for (int i = 0; i < wr->num_sge; i++)
			buf[i] = (struct ibv_data_buf){
				(void *)(uintptr_t)wr->sg_list[i].addr,
				wr->sg_list[i].length };
		ibv_wr_set_inline_data_list(qpx, wr->num_sge, buf);
	} else {
		ibv_wr_set_sge_list(qpx, wr->num_sge, wr->sg_list);
	}
}

static int post_by_qp_ex(struct rc *rc, struct ibv_send_wr *wr)
{
	ibv_wr_start(rc->qpx);
	for (; wr; wr = wr->next)
		build(rc->qpx, wr);
	return ibv_wr_complete(rc->qpx);
}

struct post_command {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_post_send post;
	unsigned char rest[MAX_LIST * sizeof(struct ib_uverbs_send_wr) +
			   MAX_SGES * sizeof(struct ib_uverbs_sge)];
};

int post_by_command(struct rc *rc, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad)
{
	struct ib_uverbs_post_send_resp resp = {};
	struct ibv_send_wr *orig[MAX_LIST];
	struct post_command cmd = {};
	struct ib_uverbs_sge *sge;
	int n = 0, sges = 0;
	size_t length;

	for (struct ibv_send_wr *w = wr; w; w = w->next) {
		struct ib_uverbs_send_wr to = {
			.wr_id = w->wr_id, .num_sge = w->num_sge,
			.opcode = w->opcode, .send_flags = w->send_flags,
			.ex.invalidate_rkey = w->invalidate_rkey,
			.wr.rdma = { w->wr.rdma.remote_addr, w->wr.rdma.rkey },
		};

		MUST(n < MAX_LIST && w->num_sge >= 0);
		memcpy(cmd.rest + n * sizeof(to), &to, sizeof(to));
		orig[n++] = w;
		sges += w->num_sge;
	}
	MUST(sges <= MAX_SGES);
	length = n * sizeof(struct ib_uverbs_send_wr);
	for (struct ibv_send_wr *w = wr; w; w = w->next) {
		static_assert(sizeof(*sge) == sizeof(*w->sg_list),
			      "the command has the verbs' scatter/gather element");
		if (w->num_sge)
			memcpy(cmd.rest + length, w->sg_list,
			       w->num_sge * sizeof(*sge));
		length += w->num_sge * sizeof(*sge);
	}
	length += sizeof(cmd.hdr) + sizeof(cmd.post);
	cmd.post = (struct ib_uverbs_post_send){
		.response = (uintptr_t)&resp, .qp_handle = rc->qp->handle,
		.wr_count = n, .sge_count = sges,
		.wqe_size = sizeof(struct ib_uverbs_send_wr),
	};
	cmd.hdr = (struct ib_uverbs_cmd_hdr){
		IB_USER_VERBS_CMD_POST_SEND, length / 4, sizeof(resp) / 4 };
	*bad = NULL;
	if (write(rc->qp->context->cmd_fd, &cmd, length) == (ssize_t)length)
		return 0;
	/* Counted from 1. */
	if (resp.bad_wr >= 1 && resp.bad_wr <= (uint32_t)n)
		*bad = orig[resp.bad_wr - 1];
	return errno;
}

int way_post(struct rc *rc, enum way by, struct ibv_send_wr *wr,
	     struct ibv_send_wr **bad)
{
	*bad = NULL;
	switch (by) {
	case BY_OPCODE:
		return ibv_post_send(rc->qp, wr, bad);
	case BY_FLAG:
		return post_by_flag(rc, wr, bad);
	case BY_QP_EX:
		return post_by_qp_ex(rc, wr);
	case BY_COMMAND:
		return post_by_command(rc, wr, bad);
	default:
		MUST(false);
		return -1;
	}
}

void way_send(struct rc *rc, enum way by, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	MUST_ERR(0, way_post(rc, by, wr, &bad));
}
