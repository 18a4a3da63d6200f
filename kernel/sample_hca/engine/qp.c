// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs as the wire sees them: finding the peer, going to the error
 * state, and the work item that does what no doorbell waits for. Owns the
 * number space that all sample HCAs of a kernel share; never executes a work
 * request (sq.c, rq.c and op.c do).
 */
#include "engine.h"

/* 0 and 1 are the special QPs of the subnet and general services. */
#define SHCA_QPN_LIMIT		XA_LIMIT(2, (1U << 24) - 1)

static DEFINE_XARRAY_ALLOC(shca_qps);
static u32 shca_next_qpn = 2;
static struct workqueue_struct *shca_wq;

/* RNR NAK timer field in units of 10 us (InfiniBand Architecture table 45). */
static const u32 shca_rnr_10us[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
	384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
	24576, 32768, 49152,
};

/**
 * shca_rnr_delay() - how long to wait before sending again after an RNR NAK
 * @encoded: the responder's min_rnr_timer, 0 to 31
 *
 * Return: jiffies, never less than what was asked for.
 */
unsigned long shca_rnr_delay(u8 encoded)
{
	return usecs_to_jiffies(10 * shca_rnr_10us[encoded & 31]) + 1;
}

/**
 * shca_ack_delay() - how long to wait for an answer
 * @encoded: local ACK timeout, 1 to 31: 4.096 us * 2^@encoded
 *
 * Four times that, the longest that InfiniBand Architecture C9-142 allows: the
 * peer is a process on the same machine, which may be slow to get ready.
 * Return: jiffies.
 */
unsigned long shca_ack_delay(u8 encoded)
{
	return nsecs_to_jiffies((4 * 4096ULL) << (encoded & 31)) + 1;
}

/**
 * shca_engine_init() - make what all adapters share
 *
 * Return: 0 or -ENOMEM.
 */
int shca_engine_init(void)
{
	shca_wq = alloc_workqueue("sample_hca", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return shca_wq ? 0 : -ENOMEM;
}

/**
 * shca_engine_exit() - undo shca_engine_init() when no QP is left
 */
void shca_engine_exit(void)
{
	unsigned long index = 0;

	destroy_workqueue(shca_wq);
	WARN_ON(xa_find(&shca_qps, &index, ULONG_MAX, XA_PRESENT));
	xa_destroy(&shca_qps);
}

static void shca_qp_put(struct shca_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->gone);
}

/**
 * shca_qp_kick() - let the work item run now
 * @qp: the QP, reachable or held
 */
void shca_qp_kick(struct shca_qp *qp)
{
	mod_delayed_work(shca_wq, &qp->work, 0);
}

/**
 * shca_qp_wake() - let the work item run later
 * @qp: the QP, reachable or held
 * @delay: jiffies from now
 *
 * Never puts off a run that is due earlier: it will ask again.
 */
void shca_qp_wake(struct shca_qp *qp, unsigned long delay)
{
	queue_delayed_work(shca_wq, &qp->work, delay);
}

static void shca_qp_work(struct work_struct *work)
{
	struct shca_qp *qp = container_of(to_delayed_work(work), struct shca_qp,
					  work);

	shca_sq_work(qp);
	shca_rq_flush(qp);
}

/**
 * shca_qp_add() - give a QP its number and make it reachable
 * @qp: filled in as far as it is the driver's: hca, pd, type, event, and the
 *      queues, CQs and limits of both sides
 *
 * Context: process, may sleep.
 * Return: 0, -ENOMEM, or -EBUSY when all numbers are taken.
 */
int shca_qp_add(struct shca_qp *qp)
{
	int ret;

	refcount_set(&qp->refs, 1);
	init_completion(&qp->gone);
	qp->state = IB_QPS_RESET;
	mutex_init(&qp->sq.lock);
	mutex_init(&qp->rq.lock);
	INIT_DELAYED_WORK(&qp->work, shca_qp_work);
	INIT_LIST_HEAD(&qp->windows);

	ret = xa_alloc_cyclic(&shca_qps, &qp->qpn, qp, SHCA_QPN_LIMIT,
			      &shca_next_qpn, GFP_KERNEL);
	return ret < 0 ? ret : 0;
}

/**
 * shca_qp_lock() - stop both sides of a QP
 * @qp: the QP
 *
 * Waits for a work request that is being executed on either side. State and
 * attributes may be read and written until shca_qp_unlock().
 * Context: process, sleeps.
 */
void shca_qp_lock(struct shca_qp *qp)
{
	mutex_lock(&qp->sq.lock);
	mutex_lock(&qp->rq.lock);
}

/**
 * shca_qp_unlock() - let both sides go on
 * @qp: the QP
 */
void shca_qp_unlock(struct shca_qp *qp)
{
	mutex_unlock(&qp->rq.lock);
	mutex_unlock(&qp->sq.lock);
}

/**
 * shca_qp_set_state() - move a QP to another state
 * @qp: the QP, locked with shca_qp_lock()
 * @state: a state that the transition table allows from the one it is in
 *
 * RESET drops what is posted, without completions, and invalidates the
 * windows that are bound to the QP.
 * Context: process, sleeps.
 */
void shca_qp_set_state(struct shca_qp *qp, enum ib_qp_state state)
{
	WRITE_ONCE(qp->state, state);
	switch (state) {
	case IB_QPS_RESET:
		cancel_delayed_work(&qp->work);
		shca_sq_discard(qp);
		shca_rq_discard(qp);
		shca_key_unbind_qp(&qp->hca->keys, qp);
		memset(&qp->attrs, 0, sizeof(qp->attrs));
		break;
	case IB_QPS_SQD:
		if (!qp->sq.started && qp->attrs.sqd_event)
			qp->event(qp, IB_EVENT_SQ_DRAINED);
		break;
	case IB_QPS_RTS:
	case IB_QPS_ERR:
		shca_qp_kick(qp);
		break;
	default:
		break;
	}
}

/**
 * shca_qp_remove() - end a QP; nobody works with it afterwards
 * @qp: a QP for which no doorbell can ring any more
 *
 * Context: process, sleeps.
 */
void shca_qp_remove(struct shca_qp *qp)
{
	xa_erase(&shca_qps, qp->qpn);
	shca_qp_lock(qp);
	shca_qp_set_state(qp, IB_QPS_RESET);
	shca_qp_unlock(qp);
	shca_qp_put(qp);
	wait_for_completion(&qp->gone);
	cancel_delayed_work_sync(&qp->work);
}

static bool shca_qp_is_down(const struct shca_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	return state == IB_QPS_ERR || state == IB_QPS_RESET;
}

/**
 * shca_qp_fail() - go to the error state and flush soon
 * @qp: a QP of which sq.lock or rq.lock is held
 */
void shca_qp_fail(struct shca_qp *qp)
{
	if (shca_qp_is_down(qp))
		return;
	WRITE_ONCE(qp->state, IB_QPS_ERR);
	shca_qp_kick(qp);
}

/**
 * shca_qp_fatal() - the same for a fault that no completion can tell of
 * @qp: a QP of which sq.lock or rq.lock is held
 */
void shca_qp_fatal(struct shca_qp *qp)
{
	if (shca_qp_is_down(qp))
		return;
	shca_qp_fail(qp);
	qp->event(qp, IB_EVENT_QP_FATAL);
}

static bool shca_qp_receives(const struct shca_qp *qp)
{
	switch (READ_ONCE(qp->state)) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
		return true;
	default:
		return false;
	}
}

static bool shca_qps_connected(const struct shca_qp *qp,
			       const struct shca_qp *peer)
{
	return qp->type == peer->type && peer->attrs.dest_qpn == qp->qpn &&
	       !memcmp(&peer->attrs.sgid, &qp->attrs.dgid, sizeof(union ib_gid)) &&
	       !memcmp(&peer->attrs.dgid, &qp->attrs.sgid, sizeof(union ib_gid)) &&
	       READ_ONCE(qp->hca->port_up) && READ_ONCE(peer->hca->port_up);
}

/**
 * shca_qp_lock_peer() - find the QP that would get a packet, ready to take it
 * @qp: the sender, its sq.lock held
 *
 * A peer that is not connected to @qp, not ready to receive, or behind a port
 * that is down does not answer, as on a wire.
 * Context: process, sleeps.
 * Return: the peer with its rq.lock held, for shca_qp_unlock_peer(), or NULL.
 */
struct shca_qp *shca_qp_lock_peer(struct shca_qp *qp)
{
	struct shca_qp *peer;

	xa_lock(&shca_qps);
	peer = xa_load(&shca_qps, qp->attrs.dest_qpn);
	if (peer)
		refcount_inc(&peer->refs);
	xa_unlock(&shca_qps);
	if (!peer)
		return NULL;

	mutex_lock(&peer->rq.lock);
	if (shca_qp_receives(peer) && shca_qps_connected(qp, peer))
		return peer;
	shca_qp_unlock_peer(peer);
	return NULL;
}

/**
 * shca_qp_unlock_peer() - undo shca_qp_lock_peer()
 * @peer: what it returned
 */
void shca_qp_unlock_peer(struct shca_qp *peer)
{
	mutex_unlock(&peer->rq.lock);
	shca_qp_put(peer);
}
