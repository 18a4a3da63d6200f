// SPDX-License-Identifier: GPL-2.0
/*
 * The requester: takes work requests off the send queue in order, carries each
 * out until it is done, and completes it. Owns the send side of a QP; what a
 * single opcode means is in op.c.
 *
 * One work request is under way at a time. It stays the oldest in the ring, in
 * the engine's own copy, until it is done: a retry uses that copy, so
 * what userspace writes to the slot meanwhile has no effect.
 */
#include <linux/jiffies.h>
#include <linux/sched.h>

#include "engine.h"

#define SHCA_RNR_RETRY_INFINITE	7

/**
 * struct shca_budget - how much to do before others get their turn
 * @wqes: attempts
 * @bytes: bytes
 * @any_first: the first attempt may be of any size
 */
struct shca_budget {
	unsigned int wqes;
	u64 bytes;
	bool any_first;
};

/* A doorbell keeps its caller for a short time only. */
static const struct shca_budget shca_doorbell_budget = {
	.wqes = 32,
	.bytes = 1 << 20,
};

/* Small, too: all queue pairs of the kernel take turns. */
static const struct shca_budget shca_work_budget = {
	.wqes = 64,
	.bytes = 4 << 20,
	.any_first = true,
};

static struct shca_sge *shca_sq_sges(struct shca_sq *sq)
{
	return (struct shca_sge *)(sq->raw + SHCA_SEND_WQE_SIZE);
}

/* Bytes that the loaded work request asks to move; it may be malformed. */
static u64 shca_sq_bytes(struct shca_sq *sq)
{
	struct shca_sge *sge = shca_sq_sges(sq);
	u32 nr = min(sq->wqe.num_sge, sq->max_sge);
	u64 bytes = 0;

	if (sq->wqe.flags & SHCA_SEND_INLINE)
		return 0;
	while (nr--)
		bytes += (sge++)->length;
	return bytes;
}

static void shca_sq_load(struct shca_qp *qp)
{
	struct shca_sq *sq = &qp->sq;

	shca_queue_copy(&sq->queue, sq->raw,
			min_t(size_t, sq->queue.ring.stride, sizeof(sq->raw)));
	sq->started = true;
	sq->wait = SHCA_SQ_READY;
	sq->unanswered = false;
	sq->retries = qp->attrs.retry_cnt;
	sq->rnr_retries = qp->attrs.rnr_retry;
}

static void shca_sq_complete(struct shca_qp *qp, const struct shca_op *op,
			     enum shca_wc_status status)
{
	struct shca_sq *sq = &qp->sq;
	struct shca_cqe cqe = {
		.wr_id = sq->wqe.wr_id,
		.status = status,
		.opcode = op ? op->completion : 0,
		.qp_num = qp->qpn,
		.byte_len = shca_sq_bytes(sq),
	};

	sq->started = false;
	sq->wait = SHCA_SQ_READY;
	/* Before the completion: who has polled it may post again. */
	shca_queue_pop(&sq->queue);
	if (status != SHCA_WC_SUCCESS || sq->signal_all ||
	    sq->wqe.flags & SHCA_SEND_SIGNALED) {
		if (shca_cq_push(sq->cq, &cqe, false))
			shca_qp_fatal(qp);
	}
	if (status != SHCA_WC_SUCCESS)
		shca_qp_fail(qp);
	else if (READ_ONCE(qp->state) == IB_QPS_SQD && qp->attrs.sqd_event)
		qp->event(qp, IB_EVENT_SQ_DRAINED);
}

static void shca_sq_wait(struct shca_qp *qp, unsigned long delay)
{
	qp->sq.wait = SHCA_SQ_WAIT_TIMER;
	qp->sq.not_before = jiffies + delay;
}

/* Check what userspace wrote, before anything is done by it. */
static bool shca_sq_wellformed(const struct shca_sq *sq,
			       const struct shca_op *op)
{
	const struct shca_send_wqe *wqe = &sq->wqe;

	if (!op || wqe->flags & ~op->send_flags || wqe->reserved)
		return false;
	if (!op->has_data)
		return !wqe->num_sge;
	if (wqe->flags & SHCA_SEND_INLINE)
		return !wqe->num_sge && wqe->inline_length <= sq->max_inline;
	return wqe->num_sge <= sq->max_sge;
}

static int shca_sq_gather(struct shca_qp *qp, const struct shca_op *op)
{
	struct shca_sq *sq = &qp->sq;

	if (sq->wqe.flags & SHCA_SEND_INLINE)
		shca_sgl_buffer(&sq->sgl, sq->raw + SHCA_SEND_WQE_SIZE,
				sq->wqe.inline_length);
	else if (shca_sgl_gather(&sq->sgl, qp, shca_sq_sges(sq),
				 sq->wqe.num_sge, op->local_access))
		return SHCA_WC_LOC_PROT_ERR;
	return sq->sgl.length > SHCA_MAX_MSG_SIZE ? SHCA_WC_LOC_LEN_ERR :
						    SHCA_WC_SUCCESS;
}

/*
 * Keys are taken into use only when every lock that the operation needs is
 * held: who waits for a key's last user then never waits for a waiter.
 */
static int shca_sq_transfer(struct shca_qp *qp, const struct shca_op *op)
{
	struct shca_qp *peer = shca_qp_lock_peer(qp);
	int ret;

	ret = shca_sq_gather(qp, op);
	if (ret == SHCA_WC_SUCCESS)
		ret = peer ? op->run(qp, peer, op) : -ETIMEDOUT;
	shca_sgl_put(&qp->sq.sgl);

	/* The responder says how long it wants to be left alone. */
	if (ret == -EAGAIN)
		shca_sq_wait(qp, shca_rnr_delay(peer->attrs.min_rnr_timer));
	if (peer)
		shca_qp_unlock_peer(peer);
	return ret;
}

static int shca_sq_execute(struct shca_qp *qp, const struct shca_op *op)
{
	if (!shca_sq_wellformed(&qp->sq, op))
		return SHCA_WC_LOC_QP_OP_ERR;
	return op->local ? op->run(qp, NULL, op) : shca_sq_transfer(qp, op);
}

/* One attempt at the loaded work request. */
static void shca_sq_attempt(struct shca_qp *qp)
{
	struct shca_sq *sq = &qp->sq;
	const struct shca_op *op;
	int ret;

	op = shca_qp_op(qp, sq->wqe.opcode);
	if (sq->unanswered && !sq->retries--) {
		shca_sq_complete(qp, op, SHCA_WC_RETRY_EXC_ERR);
		return;
	}

	ret = shca_sq_execute(qp, op);
	if (ret == -ETIMEDOUT) {
		sq->unanswered = true;
		if (qp->attrs.timeout)
			shca_sq_wait(qp, shca_ack_delay(qp->attrs.timeout));
		else
			sq->wait = SHCA_SQ_WAIT_FOREVER;
		return;
	}
	if (ret == -EAGAIN) {
		sq->unanswered = false;
		sq->retries = qp->attrs.retry_cnt;
		if (qp->attrs.rnr_retry == SHCA_RNR_RETRY_INFINITE ||
		    sq->rnr_retries--)
			return;
		ret = SHCA_WC_RNR_RETRY_EXC_ERR;
	}
	shca_sq_complete(qp, op, ret);
}

/*
 * Complete everything that is posted with WR_FLUSH_ERR. Counted once: a
 * process may post as fast as this flushes, and rings for what comes later.
 */
static void shca_sq_flush(struct shca_qp *qp)
{
	struct shca_sq *sq = &qp->sq;
	struct shca_cqe cqe = {
		.status = SHCA_WC_WR_FLUSH_ERR,
		.qp_num = qp->qpn,
	};
	int n = shca_queue_pending(&sq->queue);

	sq->started = false;
	sq->wait = SHCA_SQ_READY;
	if (n < 0)
		shca_queue_discard(&sq->queue);
	while (n-- > 0) {
		shca_queue_copy(&sq->queue, &sq->wqe, sizeof(sq->wqe));
		shca_queue_pop(&sq->queue);
		cqe.wr_id = sq->wqe.wr_id;
		shca_cq_push(sq->cq, &cqe, false);
	}
}

/* Whether a work request is loaded that may be tried now. */
static bool shca_sq_ready(struct shca_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);
	struct shca_sq *sq = &qp->sq;
	int n;

	if (state != IB_QPS_RTS && !(state == IB_QPS_SQD && sq->started))
		return false;
	if (!sq->started) {
		n = shca_queue_pending(&sq->queue);
		if (n < 0)
			shca_qp_fatal(qp);
		if (n <= 0)
			return false;
		shca_sq_load(qp);
	}
	switch (sq->wait) {
	case SHCA_SQ_WAIT_FOREVER:
		return false;
	case SHCA_SQ_WAIT_TIMER:
		if (time_before(jiffies, sq->not_before)) {
			shca_qp_wake(qp, sq->not_before - jiffies);
			return false;
		}
		sq->wait = SHCA_SQ_READY;
		break;
	case SHCA_SQ_READY:
		break;
	}
	return true;
}

static void shca_sq_run(struct shca_qp *qp, const struct shca_budget *budget)
{
	struct shca_sq *sq = &qp->sq;
	unsigned int wqes = 0;
	u64 bytes = 0;

	mutex_lock(&sq->lock);
	while (shca_sq_ready(qp)) {
		bytes += shca_sq_bytes(sq);
		if (wqes == budget->wqes ||
		    (bytes > budget->bytes && !(budget->any_first && !wqes))) {
			shca_qp_kick(qp);
			break;
		}
		shca_sq_attempt(qp);
		wqes++;
		cond_resched();
	}
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		shca_sq_flush(qp);
	mutex_unlock(&sq->lock);
}

/**
 * shca_sq_post() - post a work request that came as a command
 * @qp: the QP
 * @wqe: a send work queue entry, wellformed for this QP
 * @length: its size
 *
 * Context: process, sleeps.
 * Return: 0, -EINVAL in a state in which nothing may be posted, -ENOMEM when
 * the queue is full.
 */
int shca_sq_post(struct shca_qp *qp, const void *wqe, size_t length)
{
	int ret = -EINVAL;

	mutex_lock(&qp->sq.lock);
	if (READ_ONCE(qp->state) >= IB_QPS_RTS)
		ret = shca_queue_push(&qp->sq.queue, wqe, length);
	mutex_unlock(&qp->sq.lock);
	return ret;
}

/**
 * shca_sq_doorbell() - a process has posted to the send queue
 * @qp: the QP
 *
 * Does a bounded amount of work and leaves the rest to the work item.
 * Context: process, sleeps.
 */
void shca_sq_doorbell(struct shca_qp *qp)
{
	shca_sq_run(qp, &shca_doorbell_budget);
}

/**
 * shca_sq_work() - the send side's part of the work item
 * @qp: the QP
 *
 * Context: process, sleeps.
 */
void shca_sq_work(struct shca_qp *qp)
{
	shca_sq_run(qp, &shca_work_budget);
}

/**
 * shca_sq_discard() - forget everything that is posted, without completions
 * @qp: the QP, both locks held
 */
void shca_sq_discard(struct shca_qp *qp)
{
	qp->sq.started = false;
	qp->sq.wait = SHCA_SQ_READY;
	shca_queue_discard(&qp->sq.queue);
}
