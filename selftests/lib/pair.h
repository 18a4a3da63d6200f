/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A memory's owner and the peer that reads it, as two connected queue pairs of
 * one process with a protection domain each.
 */
#ifndef SELFTESTS_PAIR_H
#define SELFTESTS_PAIR_H

#include <pthread.h>
#include <stdatomic.h>

#include "mem.h"
#include "rc.h"

struct pair {
	struct dev *dev;
	struct rc *peer, *owner;
	struct ibv_mr *into;		/* the peer's, as long as was needed */
};

struct pair pair_new(const struct qp_param *param);
/* What the peer sees of the whole region: RDMA READs into its own memory. */
const unsigned char *pair_read(struct pair *p, struct ibv_mr *region);
/* Checks that the peer sees what is expected. */
void pair_check(struct pair *p, struct ibv_mr *region, const void *expected);
/*
 * A copy of what the peer sees of where a test looks (see mem_look()). The region
 * may be at another address than the memory is now.
 */
unsigned char *pair_look(struct pair *p, struct ibv_mr *region, const struct mem *m);
/*
 * A thread that has the peer read a region over and over, all of it with one RDMA
 * READ each, and looks at the first byte of each page. With @refusable it may be
 * refused the region, and connects again.
 */
struct reader {
	struct pair *p;
	uint32_t rkey;
	uint64_t addr;
	size_t length;
	bool refusable;
	pthread_t thread;
	atomic_bool stop;
	atomic_ulong reads;		/* with those that were refused */
	unsigned long refused, mixed, seen[256];
};

/* At @addr: where a zero-based region begins is not where its memory does. */
void reader_start(struct reader *r, struct pair *p, struct ibv_mr *mr, uint64_t addr,
		  bool refusable);
/* Until it has read once from beginning to end. */
void reader_wait(struct reader *r);
/* Checks that it saw pages of one and of the other, and never of both at once. */
void reader_stop(struct reader *r, unsigned char one, unsigned char other);
/* Checks that it saw pages of one or was refused, and nothing else. */
void reader_stop_refused(struct reader *r, unsigned char one);
/* A copy in memory of its own. */
void *copy_of(const void *p, size_t length);

#endif /* SELFTESTS_PAIR_H */
