// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns the owner-and-peer set-up and what the peer reads; see pair.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mm.h"
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

static void connect_again(struct pair *p)
{
	MUST_ERR(0, rc_modify(p->peer, IBV_QPS_RESET, NULL));
	MUST_ERR(0, rc_modify(p->owner, IBV_QPS_RESET, NULL));
	rc_pair(p->peer, p->owner);
}

static void *read_in_a_loop(void *arg)
{
	struct reader *r = arg;
	const unsigned char *bytes = r->p->into->addr;

	while (!r->stop) {
		enum ibv_wc_status status;
		size_t at;

		status = do_rdma(r->p->peer, IBV_WR_RDMA_READ, r->p->into,
				 r->p->into->addr, r->length, r->addr, r->rkey);
		if (r->refusable && status == IBV_WC_REM_ACCESS_ERR) {
			connect_again(r->p);
			r->refused++;
			r->reads++;
			continue;
		}
		MUST_STATUS(IBV_WC_SUCCESS, status);
		for (at = PAGE; at < r->length; at += PAGE)
			if (bytes[at] != bytes[0])
				break;
		r->mixed += at < r->length;
		r->seen[bytes[0]]++;
		r->reads++;
	}
	return NULL;
}

void reader_start(struct reader *r, struct pair *p, struct ibv_mr *mr, uint64_t addr,
		  bool refusable)
{
	*r = (struct reader){ .p = p, .rkey = mr->rkey, .addr = addr,
			      .length = mr->length, .refusable = refusable };
	p->into = mr_new(p->peer->pd, mr->length);
	MUST_ERR(0, pthread_create(&r->thread, NULL, read_in_a_loop, r));
}

void reader_wait(struct reader *r)
{
	unsigned long reads = r->reads;

	while (r->reads < reads + 2)
		usleep(100);
}

void reader_stop(struct reader *r, unsigned char one, unsigned char other)
{
	r->stop = true;
	MUST_ERR(0, pthread_join(r->thread, NULL));
	CHECK_EQ(0, r->mixed);
	CHECK(r->seen[one] > 0);
	CHECK(r->seen[other] > 0);
	CHECK_EQ(r->reads, r->seen[one] + r->seen[other]);
}

void reader_stop_refused(struct reader *r, unsigned char one)
{
	r->stop = true;
	MUST_ERR(0, pthread_join(r->thread, NULL));
	CHECK_EQ(0, r->mixed);
	CHECK(r->seen[one] > 0);
	CHECK(r->refused > 0);
	CHECK_EQ(r->reads, r->seen[one] + r->refused);
}

void *copy_of(const void *p, size_t length)
{
	void *copy = malloc(length);

	MUST(copy);
	return memcpy(copy, p, length);
}
