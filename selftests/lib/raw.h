/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The sample HCA's rings without the provider: where this process has them
 * mapped, how to ring the doorbell, and a connection that is to be abused beside
 * one that is not.
 */
#ifndef SELFTESTS_RAW_H
#define SELFTESTS_RAW_H

#include <rdma/sample_hca-abi.h>

#include "pair.h"

/* A ring of the provider's, as this process maps it. */
struct ring {
	unsigned char *start;
	size_t length;
	unsigned long offset;		/* what it was mapped by */
};

#define MAX_RINGS 64

/* Fills @out, which has MAX_RINGS places; the number of rings. */
int rings(struct ring *out);
/* The entry that a request was written to: the one with its wr_id. */
void *find_entry(uint64_t wr_id);
/* The ring that an entry is in. */
struct shca_ring_hdr *ring_of(void *entry);
/* A post of nothing, which makes the driver look at the rings. */
void doorbell(struct rc *rc);

struct stage {
	struct pair p;				/* to be abused */
	struct ibv_mr *here, *there;		/* its memory, 4 pages each */
	struct pair bystander;
	struct ibv_mr *calm, *calm_there;
};

/* What the memory is filled with. */
#define STAGE_HERE	0x11
#define STAGE_THERE	0xa5

/* Skips the case if the device is not a sample HCA. */
struct stage stage_new(void);
/* Queue pairs that have nothing to do with it go on as if nothing were. */
void check_bystander(struct stage *s, unsigned int seed);
/* Posts in SQD, where entries wait and can be made bad ... */
void post_in_sqd(struct stage *s, struct ibv_send_wr *wr);
/* ... and are let go. */
void let_go(struct stage *s);
/* Both sides back to where they were, as after any error. */
void stage_again(struct stage *s);

/* Numbers at which checks are likely to be wrong, and others. */
uint32_t nasty(uint64_t *random);

#endif /* SELFTESTS_RAW_H */
