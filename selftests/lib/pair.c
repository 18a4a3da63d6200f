// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns the owner-and-peer set-up; see pair.h. */
#include <stdlib.h>
#include <string.h>

#include "pair.h"

struct pair pair_new(const struct qp_param *param)
{
	struct pair p = { .dev = dev_open() };

	p.peer = rc_create(p.dev, param);
	p.owner = rc_create(p.dev, param);
	rc_pair(p.peer, p.owner);
	return p;
}

const unsigned char *pair_read(struct pair *p, struct ibv_mr *region)
{
	if (!p->into)
		p->into = mr_new(p->peer->pd, PAIR_MAX);
	MUST(region->length <= PAIR_MAX);
	memset(p->into->addr, 0xee, region->length);
	for (size_t at = 0; at < region->length; at += MIB) {
		size_t n = region->length - at < MIB ? region->length - at : MIB;
		enum ibv_wc_status s;

		s = do_rdma(p->peer, IBV_WR_RDMA_READ, p->into,
			    (char *)p->into->addr + at, n,
			    (uintptr_t)region->addr + at, region->rkey);
		MUST_STATUS(IBV_WC_SUCCESS, s);
	}
	return p->into->addr;
}

void pair_check(struct pair *p, struct ibv_mr *region, const void *expected)
{
	const unsigned char *peer_sees = pair_read(p, region);

	CHECK_BYTES(expected, peer_sees, region->length);
}

void *copy_of(const void *p, size_t length)
{
	void *copy = malloc(length);

	MUST(copy);
	return memcpy(copy, p, length);
}
