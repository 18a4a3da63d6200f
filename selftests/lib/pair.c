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

/* Reads into the peer's memory, from its start on. */
static void read_part(struct pair *p, struct ibv_mr *region, size_t from, size_t length)
{
	/* What sends packets begins a long read again before it has ended. */
	const size_t chunk = dev_is_sample() ? MIB : 64 * KIB;

	if (!p->into || p->into->length < length)
		p->into = mr_new(p->peer->pd, length);
	memset(p->into->addr, 0xee, length);
	for (size_t at = 0; at < length; at += chunk) {
		size_t n = length - at < chunk ? length - at : chunk;
		enum ibv_wc_status s;

		s = do_rdma(p->peer, IBV_WR_RDMA_READ, p->into,
			    (char *)p->into->addr + at, n,
			    (uintptr_t)region->addr + from + at, region->rkey);
		MUST_STATUS(IBV_WC_SUCCESS, s);
	}
}

const unsigned char *pair_read(struct pair *p, struct ibv_mr *region)
{
	read_part(p, region, 0, region->length);
	return p->into->addr;
}

unsigned char *pair_look(struct pair *p, struct ibv_mr *region, const struct mem *m)
{
	unsigned char *copy = malloc(mem_seen(m));

	MUST(copy);
	for (size_t i = 0; i < m->windows; i++) {
		read_part(p, region, i * m->distance, m->window);
		memcpy(copy + i * m->window, p->into->addr, m->window);
	}
	return copy;
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
