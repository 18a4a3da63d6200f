// SPDX-License-Identifier: GPL-2.0
/*
 * What each opcode does: one table, and one function for each kind of
 * operation. Only here is the order of an operation's steps known.
 *
 * A run function is called with the sender's sq.lock and the peer's rq.lock
 * held, and with the work request's local memory in shca_sq.sgl.
 */
#include <linux/nospec.h>

#include "engine.h"

/*
 * Refuse a request for which no receive completion can speak: the responder's
 * owner learns of it from an event (InfiniBand Architecture 11.6.3.2).
 */
static int shca_op_nak(struct shca_qp *peer, enum ib_event_type event,
		       enum shca_wc_status status)
{
	shca_qp_fail(peer);
	peer->event(peer, event);
	return status;
}

/* Complete the receive; what goes wrong there is the receiver's matter. */
static int shca_op_receive(struct shca_qp *qp, struct shca_qp *peer,
			   const struct shca_op *op,
			   enum shca_wc_opcode opcode, u32 length)
{
	const struct shca_send_wqe *wqe = &qp->sq.wqe;
	const struct shca_cqe cqe = {
		.opcode = opcode,
		.flags = op->recv_flags,
		.byte_len = length,
		.ex = op->recv_flags ? wqe->ex : 0,
	};

	if (shca_rq_complete(peer, &cqe, wqe->flags & SHCA_SEND_SOLICITED))
		return SHCA_WC_REM_OP_ERR;
	return SHCA_WC_SUCCESS;
}

/*
 * Place, invalidate, complete, in this order: whoever sees the completion
 * finds the data in place and the key dead.
 */
static int shca_op_send(struct shca_qp *qp, struct shca_qp *peer,
			const struct shca_op *op)
{
	const struct shca_sgl *data = &qp->sq.sgl;
	int ret;

	if (!shca_rq_ready(peer))
		return -EAGAIN;
	ret = shca_rq_fill(peer, data);
	if (ret)
		return ret;
	if (op->recv_flags & SHCA_WC_WITH_INV &&
	    shca_key_invalidate(&peer->hca->keys, qp->sq.wqe.invalidate_rkey,
				peer->pd, peer)) {
		shca_rq_refuse(peer, SHCA_WC_REM_INV_REQ_ERR);
		return SHCA_WC_REM_INV_REQ_ERR;
	}
	return shca_op_receive(qp, peer, op, SHCA_WC_RECV, data->length);
}

/* Begin to use what the request's rkey leads to. */
static int shca_op_remote(struct shca_qp *qp, struct shca_qp *peer, u32 access)
{
	const struct shca_send_wqe *wqe = &qp->sq.wqe;

	if (memchr_inv(wqe->rdma.reserved, 0, sizeof(wqe->rdma.reserved)))
		return SHCA_WC_LOC_QP_OP_ERR;
	/* The QP does not offer the operation at all. */
	if (!(peer->attrs.access & access))
		return shca_op_nak(peer, IB_EVENT_QP_REQ_ERR,
				   SHCA_WC_REM_INV_REQ_ERR);
	if (shca_sgl_remote(&qp->sq.remote, peer, wqe->rdma.rkey,
			    wqe->rdma.remote_addr, qp->sq.sgl.length, access))
		return shca_op_nak(peer, IB_EVENT_QP_ACCESS_ERR,
				   SHCA_WC_REM_ACCESS_ERR);
	return SHCA_WC_SUCCESS;
}

static int shca_op_write(struct shca_qp *qp, struct shca_qp *peer,
			 const struct shca_op *op)
{
	const struct shca_sgl *data = &qp->sq.sgl;
	int ret;

	/* Nothing is placed by a request that will be sent again. */
	if (op->consumes_recv && !shca_rq_ready(peer))
		return -EAGAIN;
	ret = shca_op_remote(qp, peer, IB_ACCESS_REMOTE_WRITE);
	if (ret)
		return ret;
	shca_sgl_copy(&qp->sq.remote, data, data->length);
	shca_sgl_put(&qp->sq.remote);
	if (!op->consumes_recv)
		return SHCA_WC_SUCCESS;
	return shca_op_receive(qp, peer, op, SHCA_WC_RECV_RDMA_WITH_IMM,
			       data->length);
}

static int shca_op_read(struct shca_qp *qp, struct shca_qp *peer,
			const struct shca_op *op)
{
	const struct shca_sgl *data = &qp->sq.sgl;
	int ret;

	if (!qp->attrs.max_rd_atomic)
		return SHCA_WC_LOC_QP_OP_ERR;
	if (!peer->attrs.max_dest_rd_atomic)
		return shca_op_nak(peer, IB_EVENT_QP_REQ_ERR,
				   SHCA_WC_REM_INV_REQ_ERR);
	ret = shca_op_remote(qp, peer, IB_ACCESS_REMOTE_READ);
	if (ret)
		return ret;
	shca_sgl_copy(data, &qp->sq.remote, data->length);
	shca_sgl_put(&qp->sq.remote);
	return SHCA_WC_SUCCESS;
}

static bool shca_op_bind_access(u32 access, u32 *ib_access)
{
	static const struct {
		u32 abi;
		u32 ib;
	} map[] = {
		{ SHCA_BIND_REMOTE_WRITE, IB_ACCESS_REMOTE_WRITE },
		{ SHCA_BIND_REMOTE_READ, IB_ACCESS_REMOTE_READ },
		{ SHCA_BIND_REMOTE_ATOMIC, IB_ACCESS_REMOTE_ATOMIC },
		{ SHCA_BIND_ZERO_BASED, IB_ZERO_BASED },
	};
	int i;

	*ib_access = 0;
	for (i = 0; i < ARRAY_SIZE(map); i++) {
		if (access & map[i].abi)
			*ib_access |= map[i].ib;
		access &= ~map[i].abi;
	}
	return !access;
}

static int shca_op_bind(struct shca_qp *qp, struct shca_qp *peer,
			const struct shca_op *op)
{
	const struct shca_send_wqe *wqe = &qp->sq.wqe;
	struct shca_bind bind = {
		.pd = qp->pd,
		.qp = qp,
		.mw_rkey = wqe->bind.mw_rkey,
		.new_rkey = wqe->bind.new_rkey,
		.mr_lkey = wqe->bind.mr_lkey,
		.addr = wqe->bind.addr,
		.length = wqe->bind.length,
	};

	if (!shca_op_bind_access(wqe->bind.access, &bind.access) ||
	    shca_key_bind(&qp->hca->keys, &bind))
		return SHCA_WC_MW_BIND_ERR;
	return SHCA_WC_SUCCESS;
}

/*
 * A refused local invalidate is the specification's memory management
 * operation error, which verbs call by its older name.
 */
static int shca_op_local_inv(struct shca_qp *qp, struct shca_qp *peer,
			     const struct shca_op *op)
{
	if (shca_key_invalidate(&qp->hca->keys, qp->sq.wqe.invalidate_rkey,
				qp->pd, qp))
		return SHCA_WC_MW_BIND_ERR;
	return SHCA_WC_SUCCESS;
}

/*
 * Work requests of one QP are carried out one after another, so a fence is
 * always obeyed.
 */
#define SHCA_OP_FLAGS	(SHCA_SEND_SIGNALED | SHCA_SEND_SOLICITED |	\
			 SHCA_SEND_FENCE)
#define SHCA_OP_RC	BIT(IB_QPT_RC)

static const struct shca_op shca_ops[] = {
	[SHCA_WR_SEND] = {
		.name = "SEND",
		.run = shca_op_send,
		.qp_types = SHCA_OP_RC,
		.send_flags = SHCA_OP_FLAGS | SHCA_SEND_INLINE,
		.completion = SHCA_WC_SEND,
		.has_data = true,
		.consumes_recv = true,
	},
	[SHCA_WR_SEND_WITH_IMM] = {
		.name = "SEND_WITH_IMM",
		.run = shca_op_send,
		.qp_types = SHCA_OP_RC,
		.send_flags = SHCA_OP_FLAGS | SHCA_SEND_INLINE,
		.completion = SHCA_WC_SEND,
		.has_data = true,
		.consumes_recv = true,
		.recv_flags = SHCA_WC_WITH_IMM,
	},
	[SHCA_WR_SEND_WITH_INV] = {
		.name = "SEND_WITH_INV",
		.run = shca_op_send,
		.qp_types = SHCA_OP_RC,
		.send_flags = SHCA_OP_FLAGS | SHCA_SEND_INLINE,
		.completion = SHCA_WC_SEND,
		.has_data = true,
		.consumes_recv = true,
		.recv_flags = SHCA_WC_WITH_INV,
	},
	[SHCA_WR_RDMA_WRITE] = {
		.name = "RDMA_WRITE",
		.run = shca_op_write,
		.qp_types = SHCA_OP_RC,
		.send_flags = SHCA_OP_FLAGS | SHCA_SEND_INLINE,
		.completion = SHCA_WC_RDMA_WRITE,
		.has_data = true,
	},
	[SHCA_WR_RDMA_WRITE_WITH_IMM] = {
		.name = "RDMA_WRITE_WITH_IMM",
		.run = shca_op_write,
		.qp_types = SHCA_OP_RC,
		.send_flags = SHCA_OP_FLAGS | SHCA_SEND_INLINE,
		.completion = SHCA_WC_RDMA_WRITE,
		.has_data = true,
		.consumes_recv = true,
		.recv_flags = SHCA_WC_WITH_IMM,
	},
	[SHCA_WR_RDMA_READ] = {
		.name = "RDMA_READ",
		.run = shca_op_read,
		.qp_types = SHCA_OP_RC,
		.send_flags = SHCA_OP_FLAGS,
		.local_access = IB_ACCESS_LOCAL_WRITE,
		.completion = SHCA_WC_RDMA_READ,
		.has_data = true,
	},
	[SHCA_WR_BIND_MW] = {
		.name = "BIND_MW",
		.run = shca_op_bind,
		.qp_types = SHCA_OP_RC,
		.send_flags = SHCA_OP_FLAGS,
		.completion = SHCA_WC_BIND_MW,
		.local = true,
	},
	[SHCA_WR_LOCAL_INV] = {
		.name = "LOCAL_INV",
		.run = shca_op_local_inv,
		.qp_types = SHCA_OP_RC,
		.send_flags = SHCA_OP_FLAGS,
		.completion = SHCA_WC_LOCAL_INV,
		.local = true,
	},
};

/**
 * shca_op_find() - look up an opcode
 * @opcode: enum shca_wr_opcode, or anything else
 * @type: transport of the QP that posts it
 *
 * Return: its entry, or NULL when no such operation exists on such a QP.
 */
const struct shca_op *shca_op_find(u32 opcode, enum ib_qp_type type)
{
	const struct shca_op *op;

	if (opcode >= ARRAY_SIZE(shca_ops))
		return NULL;
	op = &shca_ops[array_index_nospec(opcode, ARRAY_SIZE(shca_ops))];
	/* Not every type has a bit: IB_QPT_DRIVER is 255. */
	if (type >= BITS_PER_TYPE(op->qp_types))
		return NULL;
	return op->qp_types & BIT(type) ? op : NULL;
}

/**
 * shca_qp_op() - look up an opcode that a QP's owner may post
 * @qp: the QP
 * @opcode: enum shca_wr_opcode, or anything else
 *
 * Return: its entry, or NULL.
 */
const struct shca_op *shca_qp_op(const struct shca_qp *qp, u32 opcode)
{
	const struct shca_op *op = shca_op_find(opcode, qp->type);

	if (op && op->recv_flags & SHCA_WC_WITH_INV && !qp->hca->send_w_inv)
		return NULL;
	return op;
}
