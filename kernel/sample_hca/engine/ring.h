/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rings in memory that userspace can write. Owns the index arithmetic and the
 * rule that an entry is copied before it is looked at; never allocates or maps
 * the memory (../ring_mem.c does) and never interprets an entry.
 */
#ifndef SHCA_ENGINE_RING_H
#define SHCA_ENGINE_RING_H

#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <asm/barrier.h>
#include <rdma/sample_hca-abi.h>

/**
 * struct shca_ring - where a ring is
 * @hdr: shared header; every field in it may change at any time
 * @slots: first entry
 * @entries: how many slots, a power of two; 0 when there is no ring
 * @stride: bytes from one slot to the next
 */
struct shca_ring {
	struct shca_ring_hdr *hdr;
	void *slots;
	u32 entries;
	u32 stride;
};

/**
 * struct shca_queue - a ring that the engine consumes
 * @ring: the shared memory
 * @consumer: index of the next entry; the copy that counts, the one in
 *            the header is only for the provider to read
 */
struct shca_queue {
	struct shca_ring ring;
	u32 consumer;
};

static inline void *shca_ring_slot(const struct shca_ring *ring, u32 index)
{
	return ring->slots + (size_t)(index & (ring->entries - 1)) * ring->stride;
}

/**
 * shca_queue_pending() - count the entries that wait
 * @q: queue, its owner's lock held
 *
 * Return: the number of entries, or -EBADMSG when the producer index cannot
 * be one that a provider wrote.
 */
static inline int shca_queue_pending(const struct shca_queue *q)
{
	u32 n;

	if (!q->ring.entries)
		return 0;
	/* The index is read before the entries that it tells of. */
	n = smp_load_acquire(&q->ring.hdr->producer) - q->consumer;
	return n > q->ring.entries ? -EBADMSG : n;
}

/**
 * shca_queue_copy() - copy the next entry to memory that userspace cannot reach
 * @q: queue with at least one entry, its owner's lock held
 * @to: destination
 * @length: bytes to copy, at most the stride
 */
static inline void shca_queue_copy(const struct shca_queue *q, void *to,
				   size_t length)
{
	memcpy(to, shca_ring_slot(&q->ring, q->consumer), length);
	/* The compiler must not read the shared slot again in place of @to. */
	barrier();
}

/**
 * shca_queue_pop() - give the next entry's slot back to the provider
 * @q: queue with at least one entry, its owner's lock held
 */
static inline void shca_queue_pop(struct shca_queue *q)
{
	q->consumer++;
	/* The slot may be written again only after it was read. */
	smp_store_release(&q->ring.hdr->consumer, q->consumer);
}

/**
 * shca_queue_push() - produce in the provider's place
 * @q: queue, its owner's lock held
 * @entry: the entry
 * @length: its size, at most the stride
 *
 * For work requests that come as a command. A process that fills the ring
 * itself at the same time damages only its own queue.
 * Return: 0, -ENOMEM when the queue is full, -EINVAL when its producer index
 * cannot be one that a provider wrote.
 */
static inline int shca_queue_push(struct shca_queue *q, const void *entry,
				  size_t length)
{
	int n = shca_queue_pending(q);

	if (n < 0)
		return -EINVAL;
	if (n == q->ring.entries)
		return -ENOMEM;
	memcpy(shca_ring_slot(&q->ring, q->consumer + n), entry, length);
	/* The entry is there before its index is. */
	smp_store_release(&q->ring.hdr->producer, q->consumer + n + 1);
	return 0;
}

/**
 * shca_queue_discard() - drop all entries, whatever the producer index says
 * @q: queue, its owner's lock held
 */
static inline void shca_queue_discard(struct shca_queue *q)
{
	if (!q->ring.entries)
		return;
	q->consumer = READ_ONCE(q->ring.hdr->producer);
	WRITE_ONCE(q->ring.hdr->consumer, q->consumer);
}

#endif /* SHCA_ENGINE_RING_H */
