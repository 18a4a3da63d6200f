// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Registration of every kind of memory, plain and GIFT: what it costs, how its
 * pages are taken, and what a peer reads before and after the owner writes.
 * Other processes are in gift_fork.c, access rights in gift_access.c.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/pair.h"
#include "lib/proc.h"

#define PAGE	4096UL
#define LENGTH	(4 * MIB)
/* What else runs on the machine may take or give back this much meanwhile. */
#define SLACK	(1 * MIB)

struct cost {
	long long anon, cached, pins;
};

static struct cost cost_now(void)
{
	return (struct cost){ mem_anon(), mem_cached(), pins_now() };
}

static struct cost cost_since(struct cost before)
{
	struct cost now = cost_now();

	return (struct cost){ now.anon - before.anon, now.cached - before.cached,
			      now.pins - before.pins };
}

#define CHECK_ABOUT(expected, got)					\
	CHECK_BETWEEN((long long)(expected) - (long long)SLACK, got,	\
		      (long long)(expected) + (long long)SLACK)

static void plain_cost(const struct test_case *c)
{
	const struct mem_kind *kind = c->arg;
	struct mem m = mem_make(kind, LENGTH);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	struct cost before = cost_now(), cost;
	struct ibv_mr *mr;

	mr = mr_reg(pd, m.p, m.length, IBV_ACCESS_REMOTE_READ);
	cost = cost_since(before);
	CHECK_ABOUT(kind->plain_copies ? LENGTH : 0, cost.anon);
	if (kind->fills_cache)
		CHECK_ABOUT(LENGTH, cost.cached);
	CHECK_EQ(LENGTH / PAGE, cost.pins);
	CHECK_EQ(LENGTH, pinned_vm(0));

	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_EQ(0, cost_since(before).pins);
	CHECK_EQ(0, pinned_vm(0));
	mem_drop(&m);
}

static void check_taken(const struct mem_kind *kind, unsigned long pages)
{
	static const char *const names[IB_GIFT_PAGE_KINDS] = {
		"pinned", "zero", "huge zero", "KSM", "shared", "file",
	};
	struct ib_gift_stats s = gift_stats();

	CHECK_EQ(1, s.regions);
	for (int i = 0; i < IB_GIFT_PAGE_KINDS; i++) {
		test_context("pages taken as %s", names[i]);
		CHECK_EQ(i == (int)kind->taken ? pages : 0, s.pages[i]);
	}
	test_context("%s", "");
}

static void gift_cost(const struct test_case *c)
{
	const struct mem_kind *kind = c->arg;
	struct mem m = mem_make(kind, LENGTH);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	struct cost before = cost_now(), cost;
	struct ibv_mr *mr;

	mr = mr_reg(pd, m.p, m.length, GIFT_READ);
	cost = cost_since(before);
	CHECK_ABOUT(0, cost.anon);
	CHECK_ABOUT(kind->fills_cache ? LENGTH : 0, cost.cached);
	CHECK_EQ(mem_coherent(kind) ? LENGTH / PAGE : 0, cost.pins);
	CHECK_EQ(LENGTH, pinned_vm(0));
	check_taken(kind, LENGTH / PAGE);

	MUST_ERR(0, ibv_dereg_mr(mr));
	cost = cost_since(before);
	CHECK_ABOUT(0, cost.anon);
	CHECK_EQ(0, cost.pins);
	CHECK_EQ(0, pinned_vm(0));
	CHECK_EQ(0, gift_stats().regions);
	mem_drop(&m);
}

static void peer_sees(const struct test_case *c)
{
	const struct mem_kind *kind = c->arg;
	struct mem m = mem_make(kind, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, m.length, GIFT_READ);
	unsigned char *old;

	/* The peer reads first: the owner's own look faults pages in. */
	old = copy_of(pair_read(&p, mr), LENGTH);
	CHECK_BYTES(m.p, old, LENGTH);

	if (!kind->read_only) {
		memset(m.p, 0x5a, LENGTH);
		test_context("after the owner's write");
		pair_check(&p, mr, mem_coherent(kind) ? m.p : old);

		MUST_ERR(0, ibv_dereg_mr(mr));
		mr = mr_reg(p.owner->pd, m.p, m.length, GIFT_READ);
		test_context("registered again");
		pair_check(&p, mr, m.p);
		/* What it has written is the owner's alone. */
		memset(m.p, 0xa5, LENGTH);
		test_context("registered again and written again");
		pair_check(&p, mr, m.p);
	}
	MUST_ERR(0, ibv_dereg_mr(mr));
	mem_drop(&m);
}

/* Untouched, owned and untouched again, beginning and ending within a page. */
static void mixed_unaligned(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct pair p = pair_new(NULL);
	unsigned char *start = m.p + 100, *middle = m.p + MIB, *expected;
	const size_t length = LENGTH - PAGE - 300;
	struct ib_gift_stats s;
	struct ibv_mr *mr;

	test_fill(middle, 2 * MIB, 9);
	mr = mr_reg(p.owner->pd, start, length, GIFT_READ);
	s = gift_stats();
	CHECK_EQ(2 * MIB / PAGE, s.pages[IB_GIFT_PAGE_PINNED]);
	CHECK_EQ(LENGTH / PAGE - 1 - 2 * MIB / PAGE, s.pages[IB_GIFT_PAGE_ZERO]);

	expected = calloc(1, length);
	MUST(expected);
	memcpy(expected + (middle - start), middle, 2 * MIB);
	pair_check(&p, mr, expected);
	/* The owner's write shows in the middle, which it owned, and only there. */
	memset(m.p, 0x11, LENGTH);
	memset(expected + (middle - start), 0x11, 2 * MIB);
	pair_check(&p, mr, expected);
}

static void one_byte(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, 2 * PAGE);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr, *into = mr_new(p.peer->pd, PAGE);
	unsigned char *byte = m.p + PAGE - 1;

	mr = mr_reg(p.owner->pd, byte, 1, GIFT_READ);
	CHECK_EQ(1, gift_stats().pages[IB_GIFT_PAGE_PINNED]);
	MUST_STATUS(IBV_WC_SUCCESS,
		    do_rdma(p.peer, IBV_WR_RDMA_READ, into, into->addr, 1,
			    (uintptr_t)byte, mr->rkey));
	CHECK_BYTES(byte, into->addr, 1);
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR,
		     do_rdma(p.peer, IBV_WR_RDMA_READ, into, into->addr, 2,
			     (uintptr_t)byte, mr->rkey));
}

/* Twice the same memory: each region takes and gives back its own. */
static void twice(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, LENGTH);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	long long before = pins_now();
	struct ibv_mr *one, *two;

	one = mr_reg(pd, m.p, LENGTH, GIFT_READ);
	two = mr_reg(pd, m.p, LENGTH, MR_ALL);
	CHECK_EQ(2 * LENGTH / PAGE, pins_now() - before);
	CHECK_EQ(2 * LENGTH, pinned_vm(0));
	MUST_ERR(0, ibv_dereg_mr(two));
	CHECK_EQ(LENGTH / PAGE, pins_now() - before);
	MUST_ERR(0, ibv_dereg_mr(one));
	CHECK_EQ(0, pins_now() - before);
}

/* A reference that is not given back keeps a page whose last user is gone. */
static void references_back(const struct test_case *c)
{
	enum { ROUNDS = 4 };
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	long long lost = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct mem m = mem_make(c->arg, LENGTH);
		struct ibv_mr *mr = mr_reg(pd, m.p, m.length, GIFT_READ);

		MUST_ERR(0, ibv_dereg_mr(mr));
		mem_drop(&m);
		if (!i)
			lost = mem_lost();
	}
	/* A leak of one page in 24 would be more. */
	CHECK_BETWEEN(-1024LL * MIB, mem_lost() - lost, LENGTH / 8);
}

#define COPIED(id, text, how)						\
	{ "a plain registration of " text " memory allocates all of it",	\
	  plain_cost, &mem_##id },					\
	{ "GIFT of " text " memory allocates nothing and holds " how,	\
	  gift_cost, &mem_##id },					\
	{ "a gift region of " text " memory reads right, goes stale, is fresh registered again", \
	  peer_sees, &mem_##id }

#define OWNED(id, text)							\
	{ "a plain registration of " text " memory costs what the kind costs", \
	  plain_cost, &mem_##id },					\
	{ "GIFT of " text " memory pins every page as a plain registration does", \
	  gift_cost, &mem_##id },					\
	{ "a gift region of " text " memory reads right and stays coherent", \
	  peer_sees, &mem_##id }

static const struct test_case cases[] = {
	COPIED(untouched, "untouched", "the zero page"),
	COPIED(read, "only read", "the zero page"),
	OWNED(written, "written"),
	COPIED(ksm, "KSM-merged", "the merged pages"),
	COPIED(forked_parent, "fork-shared (region in the parent)", "the shared pages"),
	COPIED(forked_child, "fork-shared (region in the child)", "the shared pages"),
	COPIED(private_file, "private file", "the page cache"),
	COPIED(file_hole, "private file with a hole", "the page cache"),
	OWNED(shared_file, "shared file"),
	OWNED(memfd, "untouched memfd"),
	COPIED(readonly_untouched, "PROT_READ untouched", "the zero page"),
	OWNED(readonly_written, "PROT_READ written"),
	COPIED(thp_untouched, "untouched THP", "the huge zero page"),
	OWNED(thp_written, "written THP"),
	COPIED(thp_forked, "fork-shared THP", "the shared pages"),
	OWNED(hugetlb_private, "private hugetlb"),
	OWNED(hugetlb_shared, "shared hugetlb"),
	{ "GIFT of an unaligned mixture holds what is untouched and pins what is owned",
	  mixed_unaligned },
	{ "GIFT of one byte covers one page and one byte", one_byte },
	{ "two regions on the same memory take and give back their own pages", twice },
	{ "every reference on fork-shared pages is given back", references_back,
	  &mem_forked_parent },
	{ "every reference on KSM-merged pages is given back", references_back,
	  &mem_ksm },
	{ "every reference on a private file's pages is given back", references_back,
	  &mem_private_file },
	{ "every reference on fork-shared THPs is given back", references_back,
	  &mem_thp_forked },
	{ "every pin on written pages is given back", references_back, &mem_written },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
