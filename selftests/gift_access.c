// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * GIFT goes with read access only: which flags it is refused with, that no
 * operation writes through a gift region, and that it serves as a source.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/pair.h"
#include "lib/proc.h"

#define PAGE	4096UL

static void refused_with(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, MIB);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	long long pins = pins_now();

	CHECK_NULL_ERRNO(EINVAL, ibv_reg_mr(pd, m.p, m.length, GIFT_READ | c->n));
	CHECK_EQ(0, gift_stats().regions);
	CHECK_EQ(pins, pins_now());
	CHECK_EQ(0, pinned_vm(0));
	CHECK_EQ(0, mem_range(m.p, m.length, "Anonymous"));
	/* Nothing in the way of the next one. */
	MUST_ERR(0, ibv_dereg_mr(mr_reg(pd, m.p, m.length, GIFT_READ)));
}

/* That the device has no on-demand paging is said before the driver is asked. */
static void refused_on_demand(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, MIB);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	int stock;

	MUST(!ibv_reg_mr(pd, m.p, m.length,
			 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_READ));
	/* EINVAL in Linux 6.1, EOPNOTSUPP in 6.12. */
	stock = errno;
	CHECK(stock == EINVAL || stock == EOPNOTSUPP);
	CHECK_NULL_ERRNO(stock, ibv_reg_mr(pd, m.p, m.length,
					   GIFT_READ | IBV_ACCESS_ON_DEMAND));
	CHECK_EQ(0, gift_stats().regions);
	CHECK_EQ(0, pinned_vm(0));
}

/* What a read-only region answers a gift region answers, and stays as it is. */
enum target { RECEIVE, READ_INTO, REMOTE_WRITE, WRITE_IMM, BIND, TARGETS };

struct outcome {
	enum ibv_wc_status here, there;
};

static struct outcome write_into(enum target target, unsigned int access,
				 struct mem *m)
{
	struct pair p = pair_new(NULL);
	struct ibv_mr *region = mr_reg(p.owner->pd, m->p, m->length, access);
	struct ibv_mr *data = mr_new(p.peer->pd, PAGE);
	struct outcome o = { IBV_WC_SUCCESS, IBV_WC_SUCCESS };
	uint64_t at = (uintptr_t)m->p;
	struct window w;

	memset(data->addr, 0x99, PAGE);
	switch (target) {
	case RECEIVE:
		post_recv(p.owner, 1, region, m->p, PAGE);
		o.there = do_rdma(p.peer, IBV_WR_SEND, data, data->addr, 64, 0, 0);
		o.here = cq_next(p.owner->rcq).status;
		break;
	case READ_INTO:
		o.here = do_rdma(p.owner, IBV_WR_RDMA_READ, region, m->p, 64,
				 (uintptr_t)data->addr, data->rkey);
		break;
	case REMOTE_WRITE:
		o.there = do_rdma(p.peer, IBV_WR_RDMA_WRITE, data, data->addr, 64,
				  at, region->rkey);
		break;
	case WRITE_IMM:
		post_recv(p.owner, 1, NULL, NULL, 0);
		o.there = do_rdma(p.peer, IBV_WR_RDMA_WRITE_WITH_IMM, data,
				  data->addr, 64, at, region->rkey);
		break;
	case BIND:
		w = mw_new(p.owner->pd);
		o.here = mw_bind(p.owner, &w, region, m->p, PAGE,
				 IBV_ACCESS_REMOTE_READ);
		break;
	default:
		MUST(false);
	}
	MUST_ERR(0, ibv_destroy_qp(p.owner->qp));
	MUST_ERR(0, ibv_dereg_mr(region));
	return o;
}

static void never_written(const struct test_case *c)
{
	static const struct outcome expected[TARGETS] = {
		[RECEIVE] = { IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
		[READ_INTO] = { IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS },
		[REMOTE_WRITE] = { IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR },
		[WRITE_IMM] = { IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR },
		[BIND] = { IBV_WC_MW_BIND_ERR, IBV_WC_SUCCESS },
	};
	static const struct mem_kind *const kinds[] = {
		&mem_untouched, &mem_written, &mem_private_file,
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct mem m = mem_make(kinds[i], 4 * PAGE);
		unsigned char *before = calloc(4, PAGE);
		struct outcome gift, plain;

		MUST(before);
		/* A look would touch it. */
		if (kinds[i] != &mem_untouched)
			memcpy(before, m.p, m.length);
		test_context("%s", kinds[i]->name);
		gift = write_into(c->n, GIFT_READ, &m);
		CHECK_STATUS(expected[c->n].here, gift.here);
		CHECK_STATUS(expected[c->n].there, gift.there);
		CHECK_BYTES(before, m.p, m.length);

		plain = write_into(c->n, IBV_ACCESS_REMOTE_READ, &m);
		CHECK_STATUS(plain.here, gift.here);
		CHECK_STATUS(plain.there, gift.there);
		CHECK_BYTES(before, m.p, m.length);
	}
}

static void as_source(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, 2 * MIB);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr, *into = mr_new(p.peer->pd, MIB);
	unsigned char *zeros = calloc(1, MIB);

	MUST(zeros);
	mr = mr_reg(p.owner->pd, m.p, m.length, IB_UVERBS_ACCESS_GIFT);
	memset(into->addr, 0xee, MIB);
	post_recv(p.peer, 1, into, into->addr, MIB);
	MUST_STATUS(IBV_WC_SUCCESS, do_rdma(p.owner, IBV_WR_SEND, mr, m.p, MIB, 0, 0));
	MUST_STATUS(IBV_WC_SUCCESS, cq_next(p.peer->rcq).status);
	CHECK_BYTES(zeros, into->addr, MIB);

	memset(into->addr, 0xee, MIB);
	MUST_STATUS(IBV_WC_SUCCESS,
		    do_rdma(p.owner, IBV_WR_RDMA_WRITE, mr, m.p + MIB, MIB,
			    (uintptr_t)into->addr, into->rkey));
	CHECK_BYTES(zeros, into->addr, MIB);
	CHECK_EQ(0, mem_range(m.p, m.length, "Anonymous"));
}

static void no_remote_read(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, PAGE);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr, *into = mr_new(p.peer->pd, PAGE);

	mr = mr_reg(p.owner->pd, m.p, PAGE, IB_UVERBS_ACCESS_GIFT);
	memset(into->addr, 0xee, PAGE);
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR,
		     do_rdma(p.peer, IBV_WR_RDMA_READ, into, into->addr, 64,
			     (uintptr_t)m.p, mr->rkey));
	CHECK_EQ(0xee, ((unsigned char *)into->addr)[0]);
}

#define REFUSED(flag)							\
	{ "GIFT with " #flag " is refused with EINVAL", refused_with, NULL, \
	  IBV_ACCESS_##flag }

static const struct test_case cases[] = {
	REFUSED(LOCAL_WRITE),
	{ "GIFT with LOCAL_WRITE and REMOTE_WRITE is refused with EINVAL",
	  refused_with, NULL, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
	{ "GIFT with LOCAL_WRITE and REMOTE_ATOMIC is refused with EINVAL",
	  refused_with, NULL, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC },
	REFUSED(REMOTE_WRITE),
	REFUSED(REMOTE_ATOMIC),
	REFUSED(MW_BIND),
	{ "GIFT with ON_DEMAND is refused as ON_DEMAND alone is", refused_on_demand },
	{ "a receive into a gift region fails as into a read-only region",
	  never_written, NULL, RECEIVE },
	{ "an RDMA READ into a gift region fails as into a read-only region",
	  never_written, NULL, READ_INTO },
	{ "a peer's RDMA WRITE to a gift region is refused as to a read-only region",
	  never_written, NULL, REMOTE_WRITE },
	{ "a peer's RDMA WRITE with immediate to a gift region is refused as to a read-only region",
	  never_written, NULL, WRITE_IMM },
	{ "a window on a gift region is refused as on a region without MW_BIND",
	  never_written, NULL, BIND },
	{ "a gift region is sent and written from, and stays untouched", as_source },
	{ "a gift region without REMOTE_READ is not readable from afar",
	  no_remote_read },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
