// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: writing completions and notifying who asked to be. Owns
 * the producer side of the ring; never reads a completion back.
 */
#include "engine.h"

/**
 * shca_cq_init() - make an empty queue
 * @cq: the queue; the caller sets the callbacks
 * @ring: its memory
 */
void shca_cq_init(struct shca_cq *cq, const struct shca_ring *ring)
{
	spin_lock_init(&cq->lock);
	cq->ring = *ring;
	cq->producer = 0;
	cq->armed = 0;
	cq->overrun = false;
}

static bool shca_cq_store(struct shca_cq *cq, const struct shca_cqe *cqe)
{
	u32 used;

	/* A slot is written only after its last reader has let go of it. */
	used = cq->producer - smp_load_acquire(&cq->ring.hdr->consumer);
	if (used >= cq->ring.entries)
		return false;
	memcpy(shca_ring_slot(&cq->ring, cq->producer), cqe, sizeof(*cqe));
	cq->producer++;
	/* The completion is there before its index is. */
	smp_store_release(&cq->ring.hdr->producer, cq->producer);
	return true;
}

static bool shca_cq_disarm(struct shca_cq *cq, bool solicited)
{
	if (!cq->armed || (cq->armed == IB_CQ_SOLICITED && !solicited))
		return false;
	cq->armed = 0;
	return true;
}

/**
 * shca_cq_push() - add a completion
 * @cq: the queue
 * @cqe: the completion
 * @solicited: it counts as solicited; an error always does
 *
 * A queue that overran once takes nothing more: what it lost cannot be made
 * up for (InfiniBand Architecture 11.2.8.1, CQ error).
 * Context: process; calls the queue's callbacks.
 * Return: 0, or -ENOSPC when the completion is lost.
 */
int shca_cq_push(struct shca_cq *cq, const struct shca_cqe *cqe, bool solicited)
{
	bool notify = false, broke = false, stored = false;

	spin_lock(&cq->lock);
	if (!cq->overrun) {
		stored = shca_cq_store(cq, cqe);
		broke = !stored;
		cq->overrun = broke;
		if (stored)
			notify = shca_cq_disarm(cq, solicited || cqe->status !=
						SHCA_WC_SUCCESS);
	}
	spin_unlock(&cq->lock);

	if (notify)
		cq->notify(cq);
	if (broke)
		cq->event(cq, IB_EVENT_CQ_ERR);
	return stored ? 0 : -ENOSPC;
}

/**
 * shca_cq_arm() - ask for one notification
 * @cq: the queue
 * @flags: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP; a queue armed for any
 *         completion stays so (verbs: request completion notification)
 */
void shca_cq_arm(struct shca_cq *cq, enum ib_cq_notify_flags flags)
{
	spin_lock(&cq->lock);
	if (cq->armed != IB_CQ_NEXT_COMP)
		cq->armed = flags & IB_CQ_SOLICITED_MASK;
	spin_unlock(&cq->lock);
}
