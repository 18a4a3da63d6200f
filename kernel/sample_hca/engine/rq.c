// SPDX-License-Identifier: GPL-2.0
/*
 * The receive side of the responder: takes receive work requests off the
 * queue, fills their memory and completes them. Owns the receive side of a QP;
 * which packet does what is in op.c.
 */
#include "engine.h"

/**
 * shca_rq_ready() - load the oldest receive work request
 * @qp: the responder, rq.lock held
 *
 * A ring that no provider wrote is a fault of the QP's owner, and the QP goes
 * to the error state: the packet is then lost like any other.
 * Return: false when there is none (RNR NAK).
 */
bool shca_rq_ready(struct shca_qp *qp)
{
	struct shca_rq *rq = &qp->rq;
	int n = shca_queue_pending(&rq->queue);

	if (n < 0)
		shca_qp_fatal(qp);
	if (n <= 0)
		return false;
	shca_queue_copy(&rq->queue, rq->raw,
			min_t(size_t, rq->queue.ring.stride, sizeof(rq->raw)));
	return true;
}

/* Check what userspace wrote, before anything is done by it. */
static bool shca_rq_wellformed(const struct shca_rq *rq)
{
	return rq->wqe.num_sge <= rq->max_sge && !rq->wqe.reserved;
}

/* Complete the loaded work request. */
static int shca_rq_push(struct shca_qp *qp, struct shca_cqe *cqe,
			bool solicited)
{
	cqe->wr_id = qp->rq.wqe.wr_id;
	cqe->qp_num = qp->qpn;
	cqe->src_qp = qp->attrs.dest_qpn;
	/* Before the completion: who has polled it may post again. */
	shca_queue_pop(&qp->rq.queue);
	return shca_cq_push(qp->rq.cq, cqe, solicited);
}

/**
 * shca_rq_complete() - complete the loaded work request with success
 * @qp: the responder, rq.lock held
 * @fields: opcode, flags, byte_len and what depends on flags
 * @solicited: the sender asked for an event
 *
 * Return: 0, or -ENOSPC when the completion is lost; then the QP is in the
 * error state.
 */
int shca_rq_complete(struct shca_qp *qp, const struct shca_cqe *fields,
		     bool solicited)
{
	struct shca_cqe cqe = *fields;
	int ret;

	cqe.status = SHCA_WC_SUCCESS;
	ret = shca_rq_push(qp, &cqe, solicited);
	if (ret)
		shca_qp_fatal(qp);
	return ret;
}

/**
 * shca_rq_refuse() - complete the loaded work request with an error
 * @qp: the responder, rq.lock held; it goes to the error state
 * @status: the error
 */
void shca_rq_refuse(struct shca_qp *qp, enum shca_wc_status status)
{
	struct shca_cqe cqe = {
		.status = status,
		.opcode = SHCA_WC_RECV,
	};

	shca_rq_push(qp, &cqe, true);
	shca_qp_fail(qp);
}

/**
 * shca_rq_fill() - place a message in the loaded work request's memory
 * @qp: the responder, rq.lock held
 * @from: the message
 *
 * Return: SHCA_WC_SUCCESS, or what the sender's completion says after the
 * receive has been completed with its own error.
 */
int shca_rq_fill(struct shca_qp *qp, const struct shca_sgl *from)
{
	struct shca_rq *rq = &qp->rq;
	const struct shca_sge *sge = (void *)(rq->raw + SHCA_RECV_WQE_SIZE);
	enum shca_wc_status own, theirs = SHCA_WC_REM_OP_ERR;

	if (!shca_rq_wellformed(rq)) {
		own = SHCA_WC_LOC_QP_OP_ERR;
		goto refuse;
	}
	if (shca_sgl_gather(&rq->sgl, qp, sge, rq->wqe.num_sge,
			    IB_ACCESS_LOCAL_WRITE)) {
		own = SHCA_WC_LOC_PROT_ERR;
		goto put;
	}
	if (from->length > rq->sgl.length) {
		own = SHCA_WC_LOC_LEN_ERR;
		theirs = SHCA_WC_REM_INV_REQ_ERR;
		goto put;
	}
	shca_sgl_copy(&rq->sgl, from, from->length);
	shca_sgl_put(&rq->sgl);
	return SHCA_WC_SUCCESS;

put:
	shca_sgl_put(&rq->sgl);
refuse:
	shca_rq_refuse(qp, own);
	return theirs;
}

/**
 * shca_rq_flush() - complete every receive with WR_FLUSH_ERR
 * @qp: the QP; nothing happens unless it is in the error state
 *
 * From here on a poster rings the doorbell.
 * Context: process, sleeps.
 */
void shca_rq_flush(struct shca_qp *qp)
{
	struct shca_queue *queue = &qp->rq.queue;
	struct shca_cqe cqe = {
		.status = SHCA_WC_WR_FLUSH_ERR,
		.opcode = SHCA_WC_RECV,
	};

	int n;

	mutex_lock(&qp->rq.lock);
	if (READ_ONCE(qp->state) != IB_QPS_ERR || !queue->ring.entries)
		goto out;
	WRITE_ONCE(queue->ring.hdr->flags, SHCA_RING_DOORBELL);
	/*
	 * Pairs with the poster's barrier: either it sees the flag after it
	 * has moved the index, or its index is seen here after the flag was set.
	 */
	smp_mb();
	/* Counted once: a process may post as fast as this flushes. */
	n = shca_queue_pending(queue);
	if (n < 0)
		shca_queue_discard(queue);
	while (n-- > 0) {
		shca_queue_copy(queue, &qp->rq.wqe, sizeof(qp->rq.wqe));
		shca_rq_push(qp, &cqe, true);
	}
out:
	mutex_unlock(&qp->rq.lock);
}

/**
 * shca_rq_post() - post a receive work request that came as a command
 * @qp: the QP
 * @wqe: a receive work queue entry, wellformed for this QP
 * @length: its size
 *
 * Context: process, sleeps.
 * Return: 0, -EINVAL in RESET, -ENOMEM when the queue is full.
 */
int shca_rq_post(struct shca_qp *qp, const void *wqe, size_t length)
{
	int ret = -EINVAL;

	mutex_lock(&qp->rq.lock);
	if (READ_ONCE(qp->state) != IB_QPS_RESET)
		ret = shca_queue_push(&qp->rq.queue, wqe, length);
	mutex_unlock(&qp->rq.lock);
	return ret;
}

/**
 * shca_rq_doorbell() - a process has posted to a receive queue that asks for it
 * @qp: the QP
 *
 * Context: process, sleeps.
 */
void shca_rq_doorbell(struct shca_qp *qp)
{
	shca_rq_flush(qp);
}

/**
 * shca_rq_discard() - forget everything that is posted, without completions
 * @qp: the QP, both locks held
 */
void shca_rq_discard(struct shca_qp *qp)
{
	struct shca_queue *queue = &qp->rq.queue;

	if (!queue->ring.entries)
		return;
	shca_queue_discard(queue);
	WRITE_ONCE(queue->ring.hdr->flags, 0);
}
