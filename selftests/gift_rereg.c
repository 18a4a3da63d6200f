// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Registering a gift region again: the three things that may change, alone and
 * together; the keys stay, a peer sees the old region or the new one, and a
 * failure leaves the old one with all that it had. Refreshing is in
 * refresh.c.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/pair.h"
#include "lib/proc.h"
#include "lib/stale.h"

#ifndef PAGE
#define PAGE	4096UL
#endif
#define LENGTH	(2 * MIB)
#define PAGES	(LENGTH / PAGE)

#define TRANS	IBV_REREG_MR_CHANGE_TRANSLATION
#define PD	IBV_REREG_MR_CHANGE_PD
#define ACCESS	IBV_REREG_MR_CHANGE_ACCESS
#define READ	((unsigned int)IBV_ACCESS_REMOTE_READ)

struct state {
	long long pins, pinned_vm;
	struct ib_gift_stats stats;
};

static struct state state_now(void)
{
	return (struct state){ pins_now(), pinned_vm(0), gift_stats() };
}

static void check_same(struct state before)
{
	struct state now = state_now();

	CHECK_EQ(before.pins, now.pins);
	CHECK_EQ(before.pinned_vm, now.pinned_vm);
	CHECK_EQ(before.stats.regions, now.stats.regions);
	for (int i = 0; i < IB_GIFT_PAGE_KINDS; i++)
		CHECK_EQ(before.stats.pages[i], now.stats.pages[i]);
}

/* Another pair on the same context, with protection domains of its own. */
static struct pair pair_beside(const struct pair *one)
{
	struct pair two = {
		.dev = one->dev,
		.peer = rc_create(one->dev, NULL),
		.owner = rc_create(one->dev, NULL),
	};

	rc_pair(two.peer, two.owner);
	return two;
}

/*
 * Memory that the peer reads into, for what is counted afterwards: it is charged
 * to the same process.
 */
static struct pair pair_ready(void)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);

	pair_read(&p, mr);
	MUST_ERR(0, ibv_dereg_mr(mr));
	return p;
}

/* One byte of a region by a peer of the pair. */
static enum ibv_wc_status peek_at(struct pair *p, struct ibv_mr *mr, uint64_t addr)
{
	struct ibv_mr *into = mr_new(p->peer->pd, PAGE);
	enum ibv_wc_status status;

	status = do_rdma(p->peer, IBV_WR_RDMA_READ, into, into->addr, 1, addr, mr->rkey);
	MUST_ERR(0, ibv_dereg_mr(into));
	return status;
}

static enum ibv_wc_status peek(struct pair *p, struct ibv_mr *mr)
{
	return peek_at(p, mr, (uintptr_t)mr->addr);
}

static void same_memory(const struct test_case *c)
{
	const struct mem_kind *kind = c->arg;
	struct mem m = mem_make(kind, LENGTH);
	struct pair p = pair_ready();
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);
	const uint32_t lkey = mr->lkey, rkey = mr->rkey;
	struct state before = state_now(), after;

	memset(m.p, 0x5a, LENGTH / 2);
	MUST_ERR(0, mr_rereg(mr, TRANS, NULL, m.p, LENGTH, 0));
	CHECK_EQ(lkey, mr->lkey);
	CHECK_EQ(rkey, mr->rkey);
	pair_check(&p, mr, m.p);
	CHECK_EQ(0, stale_pages(m.p, LENGTH));
	after = state_now();
	CHECK_EQ(PAGES / 2, after.pins - before.pins);
	CHECK_EQ(before.pinned_vm, after.pinned_vm);
	CHECK_EQ(1, after.stats.regions);
	CHECK_EQ(PAGES / 2, after.stats.pages[IB_GIFT_PAGE_PINNED]);
	CHECK_EQ(PAGES / 2, after.stats.pages[kind->taken]);
	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_EQ(before.pins, pins_now());
	CHECK_EQ(before.pinned_vm - LENGTH, pinned_vm(0));
	mem_drop(&m);
}

/* Longer, shorter, elsewhere, and of another kind. */
static void other_memory(const struct test_case *c)
{
	struct mem small = mem_make(&mem_untouched, 4 * PAGE);
	struct mem large = mem_make(&mem_written, LENGTH);
	struct pair p = pair_ready();
	struct ibv_mr *mr = mr_reg(p.owner->pd, small.p, small.length, GIFT_READ);
	const uint32_t rkey = mr->rkey;
	struct state before = state_now();

	MUST_ERR(0, mr_rereg(mr, TRANS, NULL, large.p + 5, LENGTH - 10, 0));
	CHECK_EQ(rkey, mr->rkey);
	CHECK(mr->addr == large.p + 5 && mr->length == LENGTH - 10);
	CHECK_EQ(before.pinned_vm - small.length + LENGTH, pinned_vm(0));
	CHECK_EQ(PAGES, pins_now() - before.pins);
	pair_check(&p, mr, large.p + 5);
	/* What it was is no longer within its bounds. */
	MUST_STATUS(IBV_WC_REM_ACCESS_ERR,
		    do_rdma(p.peer, IBV_WR_RDMA_READ, p.into, p.into->addr, 1,
			    (uintptr_t)small.p, rkey));
	MUST_ERR(0, mr_rereg(mr, TRANS, NULL, small.p, small.length, 0));
	check_same(before);
}

static void other_pd(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct pair one = pair_new(NULL), two = pair_beside(&one);
	struct ibv_pd *third = ibv_alloc_pd(one.dev->ctx);
	struct ibv_mr *mr = mr_reg(one.owner->pd, m.p, LENGTH, GIFT_READ);
	const uint32_t rkey = mr->rkey;
	struct state before = state_now();

	CHECK_STATUS(IBV_WC_SUCCESS, peek(&one, mr));
	MUST_ERR(0, mr_rereg(mr, PD, two.owner->pd, NULL, 0, 0));
	CHECK_EQ(rkey, mr->rkey);
	check_same(before);
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR, peek(&one, mr));
	CHECK_STATUS(IBV_WC_SUCCESS, peek(&two, mr));

	/* The domain that it is in cannot go, the one that it has left can. */
	MUST_ERR(0, mr_rereg(mr, PD, third, NULL, 0, 0));
	CHECK_ERR(EBUSY, ibv_dealloc_pd(third));
	MUST_ERR(0, mr_rereg(mr, PD, two.owner->pd, NULL, 0, 0));
	CHECK_ERR(0, ibv_dealloc_pd(third));
	check_same(before);
}

/* Rights come and go, and the pages stay. */
static void other_access(const struct test_case *c)
{
	const unsigned int to = c->n, from = to ^ READ;
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, LENGTH, from);
	struct state before = state_now();

	MUST_ERR(0, mr_rereg(mr, ACCESS, NULL, NULL, 0, to));
	check_same(before);
	CHECK_STATUS(to & READ ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR, peek(&p, mr));
}

/* By which addresses it is named is one of the rights. */
static void zero_based(const struct test_case *c)
{
	const unsigned int from_zero = GIFT_READ | IBV_ACCESS_ZERO_BASED;
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct pair one = pair_new(NULL), two = pair_beside(&one);
	struct ibv_mr *mr = mr_reg(one.owner->pd, m.p, LENGTH, GIFT_READ);
	struct state before = state_now();

	MUST_ERR(0, mr_rereg(mr, ACCESS, NULL, NULL, 0, from_zero));
	check_same(before);
	CHECK_STATUS(IBV_WC_SUCCESS, peek_at(&one, mr, 0));
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR, peek_at(&one, mr, (uintptr_t)m.p));
	MUST_ERR(0, mr_rereg(mr, ACCESS | PD, two.owner->pd, NULL, 0, GIFT_READ));
	check_same(before);
	CHECK_STATUS(IBV_WC_SUCCESS, peek_at(&two, mr, (uintptr_t)m.p));
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR, peek_at(&two, mr, 0));
}

static void plain_to_gift_and_back(const struct test_case *c)
{
	struct mem m = mem_make(&mem_shared_file, LENGTH);
	struct pair p = pair_ready();
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, LENGTH, READ);
	const long long pinned = pinned_vm(0);
	const uint32_t rkey = mr->rkey;

	CHECK_EQ(0, gift_stats().regions);
	MUST_ERR(0, mr_rereg(mr, ACCESS, NULL, NULL, 0, GIFT_READ));
	CHECK_EQ(1, gift_stats().regions);
	CHECK_EQ(PAGES, gift_stats().pages[IB_GIFT_PAGE_PINNED]);
	CHECK_EQ(pinned, pinned_vm(0));
	pair_check(&p, mr, m.p);
	MUST_ERR(0, mr_rereg(mr, ACCESS, NULL, NULL, 0, READ));
	CHECK_EQ(0, gift_stats().regions);
	CHECK_EQ(pinned, pinned_vm(0));
	CHECK_EQ(rkey, mr->rkey);
	pair_check(&p, mr, m.p);
}

struct child {
	struct mem *m;
	struct ibv_mr *mr;
};

static void rereg_by_child(void *arg)
{
	struct child *child = arg;

	memset(child->m->p, 0xc3, LENGTH);
	CHECK_ERR(EINVAL, mr_rereg(child->mr, ACCESS, NULL, NULL, 0, GIFT_READ));
}

/* What a child has at the region's addresses is not what the region has. */
static void by_child(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, LENGTH);
	struct pair p = pair_ready();
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, LENGTH, READ);
	struct child child = { &m, mr };
	struct state before = state_now();

	test_join(test_fork(rereg_by_child, &child));
	check_same(before);
	pair_check(&p, mr, m.p);
}

static void all_three(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct mem n = mem_make(&mem_private_file, LENGTH);
	struct pair one = pair_new(NULL), two = pair_beside(&one);
	struct ibv_mr *mr = mr_reg(one.owner->pd, m.p, LENGTH, IB_UVERBS_ACCESS_GIFT);
	const uint32_t rkey = mr->rkey;

	MUST_ERR(0, mr_rereg(mr, TRANS | PD | ACCESS, two.owner->pd, n.p, LENGTH,
			     GIFT_READ));
	CHECK_EQ(rkey, mr->rkey);
	CHECK_EQ(PAGES, gift_stats().pages[IB_GIFT_PAGE_FILE]);
	CHECK_EQ(LENGTH, pinned_vm(0));
	pair_check(&two, mr, n.p);
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR, peek(&one, mr));
}

/* The region as it was: keys, bounds, bytes, counts. */
static void refused(struct pair *p, struct ibv_mr *mr, const void *old, int err,
		    int flags, struct ibv_pd *pd, void *addr, size_t length,
		    unsigned int access)
{
	const struct ibv_mr was = *mr;
	struct state before = state_now();

	CHECK_ERR(err, mr_rereg(mr, flags, pd, addr, length, access));
	check_same(before);
	CHECK_EQ(was.rkey, mr->rkey);
	CHECK_EQ(was.lkey, mr->lkey);
	/* The library may have put down what it asked for. */
	mr->addr = was.addr;
	mr->length = was.length;
	pair_check(p, mr, old);
}

static void never_writable(const struct test_case *c)
{
	static const unsigned int bad[] = {
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		IBV_ACCESS_MW_BIND,
		(unsigned int)IB_UVERBS_ACCESS_GIFT | IBV_ACCESS_LOCAL_WRITE,
		(unsigned int)IB_UVERBS_ACCESS_GIFT | IBV_ACCESS_MW_BIND,
	};
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct mem n = mem_make(&mem_written, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);
	unsigned char *old = copy_of(pair_read(&p, mr), LENGTH);

	memset(m.p, 0x5a, LENGTH);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		test_context("access %#x", bad[i]);
		refused(&p, mr, old, EINVAL, ACCESS, NULL, NULL, 0, bad[i]);
		refused(&p, mr, old, EINVAL, ACCESS | TRANS, NULL, n.p, LENGTH,
			bad[i]);
	}
	/* A plain region does not become a gift region that is writable. */
	MUST_ERR(0, mr_rereg(mr, ACCESS | TRANS, NULL, n.p, LENGTH, READ));
	test_context("a plain region");
	refused(&p, mr, n.p, EINVAL, ACCESS, NULL, NULL, 0,
		(unsigned int)IB_UVERBS_ACCESS_GIFT | IBV_ACCESS_LOCAL_WRITE);
}

static void failing(const struct test_case *c)
{
	struct mem m = mem_make(c->arg, LENGTH);
	struct mem hole = mem_make(&mem_written, LENGTH);
	struct mem n = mem_make(&mem_written, LENGTH);
	struct ibv_pd no_pd;
	unsigned char *old;
	long long pinned;
	struct ibv_mr *mr;
	struct pair p;

	/* First: a command is refused to who is not what opened the device. */
	drop_ipc_lock();
	limit_memlock(RLIM_INFINITY);
	p = pair_new(NULL);
	mr = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);
	old = copy_of(pair_read(&p, mr), LENGTH);
	pinned = pinned_vm(0);
	no_pd = *p.owner->pd;
	no_pd.handle = 0x12345;

	MUST(!munmap(hole.p + LENGTH - PAGE, PAGE));
	memset(m.p, 0x5a, LENGTH);
	test_context("a hole");
	refused(&p, mr, old, EFAULT, TRANS, NULL, hole.p, LENGTH, 0);
	/* Of two changes that are asked for neither is made. */
	refused(&p, mr, old, EFAULT, TRANS | PD, p.peer->pd, hole.p, LENGTH, 0);
	CHECK_STATUS(IBV_WC_SUCCESS, peek(&p, mr));
	refused(&p, mr, old, EFAULT, TRANS | ACCESS, NULL, hole.p, LENGTH,
		IB_UVERBS_ACCESS_GIFT);
	CHECK_STATUS(IBV_WC_SUCCESS, peek(&p, mr));
	test_context("no length");
	refused(&p, mr, old, EINVAL, TRANS, NULL, n.p, 0, 0);
	test_context("around the end");
	refused(&p, mr, old, EINVAL, TRANS, NULL, n.p, SIZE_MAX, 0);
	test_context("no flag");
	refused(&p, mr, old, EINVAL, 0, NULL, n.p, LENGTH, 0);
	test_context("no protection domain");
	refused(&p, mr, old, ENOENT, PD, &no_pd, NULL, 0, 0);
	refused(&p, mr, old, ENOENT, PD | TRANS, &no_pd, n.p, LENGTH, 0);
	test_context("an unknown flag");
	refused(&p, mr, old, EINVAL, 1 << 5, NULL, n.p, LENGTH, 0);
	test_context("RLIMIT_MEMLOCK");
	limit_memlock(pinned + LENGTH - PAGE);
	refused(&p, mr, old, ENOMEM, TRANS, NULL, n.p, LENGTH, 0);
	/* A plain region of the same memory has other pages, to be charged as well. */
	refused(&p, mr, old, ENOMEM, ACCESS, NULL, NULL, 0, READ);
	/* While both are there both are charged, as of any region. */
	limit_memlock(pinned + LENGTH);
	test_context("%s", "");
	MUST_ERR(0, mr_rereg(mr, TRANS, NULL, n.p, LENGTH, 0));
	CHECK_EQ(pinned, pinned_vm(0));
	pair_check(&p, mr, n.p);
}

/* From one memory to the other and back: all of one, or all of the other. */
static void atomic_for_readers(const struct test_case *c)
{
	enum { ROUNDS = 40 };
	const size_t length = 64 * PAGE;
	struct mem m = mem_make(&mem_written, length);
	struct mem n = mem_make(c->arg, length);
	struct pair p = pair_new(NULL);
	struct reader r;
	struct ibv_mr *mr;

	memset(m.p, 1, length);
	/* Its address, by which the peer reads, does not change. */
	mr = mr_reg(p.owner->pd, m.p, length, GIFT_READ | IBV_ACCESS_ZERO_BASED);
	reader_start(&r, &p, mr, 0, false);
	for (int i = 0; i < ROUNDS; i++) {
		MUST_ERR(0, mr_rereg(mr, TRANS, NULL, i & 1 ? m.p : n.p, length, 0));
		reader_wait(&r);
	}
	reader_stop(&r, 0, 1);
}

/*
 * The peer may read the region and finds one memory; or it may not, and then the region
 * is of other memory too, where that changes. So the other memory is never seen: not
 * while it is there already and the rights or the protection domain are still the old.
 */
static void atomic_with_rights(const struct test_case *c)
{
	enum { ROUNDS = 40 };
	const size_t length = 64 * PAGE;
	const unsigned int none = (unsigned int)IB_UVERBS_ACCESS_GIFT | IBV_ACCESS_ZERO_BASED;
	/* libibverbs wants rights only where they change. */
	const unsigned int some = c->n & ACCESS ? none | READ : 0;
	struct mem open = mem_make(&mem_untouched, length);
	struct mem shut = mem_make(&mem_written, length);
	struct pair p = pair_new(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(p.dev->ctx);
	struct reader r;
	struct ibv_mr *mr;

	MUST(pd);
	memset(shut.p, 1, length);
	mr = mr_reg(p.owner->pd, open.p, length, none | READ);
	reader_start(&r, &p, mr, 0, true);
	for (int i = 0; i < ROUNDS; i++) {
		if (i & 1)
			MUST_ERR(0, mr_rereg(mr, c->n, p.owner->pd, open.p, length, some));
		else
			MUST_ERR(0, mr_rereg(mr, c->n, pd, shut.p, length, some & ~READ));
		reader_wait(&r);
	}
	reader_stop_refused(&r, 0);
}

#define AGAIN(id, text)							\
	{ text " memory that is registered again has the owner's pages and the same keys", \
	  same_memory, &mem_##id }
#define FAILS(id, text)							\
	{ "a failing re-registration leaves a region of " text " memory as it was", \
	  failing, &mem_##id }

static const struct test_case cases[] = {
	AGAIN(untouched, "untouched"),
	AGAIN(forked_parent, "fork-shared"),
	AGAIN(thp_forked, "fork-shared THP"),
	AGAIN(ksm, "KSM-merged"),
	AGAIN(private_file, "private file"),
	{ "a region registered again may be of other memory and length", other_memory },
	{ "a region registered again may be in another protection domain", other_pd },
	{ "a right that is taken from a gift region is gone", other_access, NULL,
	  (unsigned int)IB_UVERBS_ACCESS_GIFT },
	{ "a right that is given to a gift region is there", other_access, NULL,
	  GIFT_READ },
	{ "a region may be named from 0 on, and by its addresses again", zero_based },
	{ "a plain region becomes a gift region and a plain one again",
	  plain_to_gift_and_back },
	{ "a child cannot have its parent's region taken from its own memory", by_child },
	{ "memory, protection domain and rights change together", all_three },
	{ "a gift region never becomes writable", never_writable },
	FAILS(untouched, "untouched"),
	FAILS(forked_parent, "fork-shared"),
	FAILS(private_file, "private file"),
	{ "a peer that reads meanwhile sees one memory or the other (untouched)",
	  atomic_for_readers, &mem_untouched },
	{ "a peer that reads meanwhile sees one memory or the other (file hole)",
	  atomic_for_readers, &mem_file_hole },
	{ "a peer that reads meanwhile has its right or is refused",
	  atomic_with_rights, NULL, ACCESS },
	{ "a peer that reads meanwhile has its protection domain or is refused",
	  atomic_with_rights, NULL, PD },
	{ "a peer that loses its right with a change of memory never sees the other memory",
	  atomic_with_rights, NULL, TRANS | ACCESS },
	{ "a peer that loses its domain with a change of memory never sees the other memory",
	  atomic_with_rights, NULL, TRANS | PD },
	{ "a peer that loses all at once never sees the other memory",
	  atomic_with_rights, NULL, TRANS | PD | ACCESS },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
