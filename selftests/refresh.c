// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Refreshing a gift region: only the stale pages are taken again, the keys stay, a
 * peer sees the old region or the new one, and a failure leaves the old one.
 * What is stale is in gift_stale.c; registering again is in gift_rereg.c.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/pair.h"
#include "lib/proc.h"
#include "lib/stale.h"

#ifndef PAGE
#define PAGE	4096UL
#endif
#define LENGTH	(4 * MIB)
#define PAGES	(LENGTH / PAGE)
#define MISC	"/sys/class/misc/ib_gift/"

/* All that a refresh may change and must not leave changed. */
struct state {
	long long pins, pinned_vm, refreshes, retaken;
	struct ib_gift_stats stats;
};

static struct state state_now(void)
{
	return (struct state){
		.pins = pins_now(),
		.pinned_vm = pinned_vm(0),
		.refreshes = proc_number(MISC "refreshes"),
		.retaken = proc_number(MISC "pages_retaken"),
		.stats = gift_stats(),
	};
}

#define CHECK_SAME_STATE(before) do {					\
	struct state _now = state_now();				\
									\
	CHECK_EQ((before).pins, _now.pins);				\
	CHECK_EQ((before).pinned_vm, _now.pinned_vm);			\
	CHECK_EQ((before).refreshes, _now.refreshes);			\
	CHECK_EQ((before).retaken, _now.retaken);			\
	CHECK_EQ((before).stats.regions, _now.stats.regions);		\
	for (int _i = 0; _i < IB_GIFT_PAGE_KINDS; _i++)			\
		CHECK_EQ((before).stats.pages[_i], _now.stats.pages[_i]); \
} while (0)

/* Pages that are written after the registration: the ends, the middle, a run. */
static const size_t some_pages[] = { 0, 1, 300, 511, 512, 513, 514, PAGES - 1 };

#define NR_SOME	ARRAY_LEN(some_pages)

static void write_some(struct mem *m, unsigned char byte)
{
	for (size_t i = 0; i < NR_SOME; i++)
		memset(m->p + some_pages[i] * PAGE, byte, PAGE);
}

static void only_stale(const struct test_case *c)
{
	const struct mem_kind *kind = c->arg;
	struct mem m = mem_make(kind, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, m.length, GIFT_READ);
	const uint32_t lkey = mr->lkey, rkey = mr->rkey;
	unsigned char *old = copy_of(pair_read(&p, mr), LENGTH), *both;
	struct state before = state_now(), after;

	write_some(&m, 0x5a);
	MUST_EQ(NR_SOME, stale_pages(m.p, LENGTH));
	pair_check(&p, mr, old);
	MUST_EQ(NR_SOME, refresh(mr));
	CHECK_EQ(lkey, mr->lkey);
	CHECK_EQ(rkey, mr->rkey);
	CHECK_EQ(0, stale_pages(m.p, LENGTH));
	pair_check(&p, mr, m.p);

	/* What was written is this process's own: pinned. The rest is held as before. */
	after = state_now();
	CHECK_EQ(NR_SOME, after.pins - before.pins);
	CHECK_EQ(before.pinned_vm, after.pinned_vm);
	CHECK_EQ(1, after.refreshes - before.refreshes);
	CHECK_EQ(NR_SOME, after.retaken - before.retaken);
	CHECK_EQ(1, after.stats.regions);
	CHECK_EQ(NR_SOME, after.stats.pages[IB_GIFT_PAGE_PINNED]);
	CHECK_EQ(PAGES - NR_SOME, after.stats.pages[kind->taken]);

	test_context("written again");
	both = copy_of(m.p, LENGTH);
	memset(m.p, 0xa5, LENGTH);
	for (size_t i = 0; i < NR_SOME; i++)
		memset(both + some_pages[i] * PAGE, 0xa5, PAGE);
	CHECK_EQ(PAGES - NR_SOME, stale_pages(m.p, LENGTH));
	pair_check(&p, mr, both);
	CHECK_EQ(PAGES - NR_SOME, refresh(mr));
	CHECK_EQ(PAGES, gift_stats().pages[IB_GIFT_PAGE_PINNED]);
	pair_check(&p, mr, m.p);

	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_EQ(before.pins, pins_now());
	CHECK_EQ(before.pinned_vm - LENGTH, pinned_vm(0));
	CHECK_EQ(0, gift_stats().regions);
	mem_drop(&m);
}

static void nothing_stale(const struct test_case *c)
{
	struct mem m = mem_make(c->arg, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, m.length, GIFT_READ);
	struct state before = state_now();
	long long pins = pins_taken();

	CHECK_EQ(0, refresh(mr));
	CHECK_EQ(pins, pins_taken());
	CHECK_SAME_STATE(before);
	pair_check(&p, mr, m.p);
}

/* What is replaced is given back, and what is not stays, until the end. */
static void references_back(const struct test_case *c)
{
	enum { ROUNDS = 4 };
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	long long lost = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct mem m = mem_make(c->arg, LENGTH);
		struct ibv_mr *mr = mr_reg(pd, m.p, m.length, GIFT_READ);

		for (size_t at = 0; at < LENGTH; at += 2 * PAGE)
			m.p[at] = 1;
		MUST_EQ(PAGES / 2, refresh(mr));
		MUST(!madvise(m.p, LENGTH / 2, MADV_DONTNEED));
		MUST_EQ(PAGES / 2, refresh(mr));
		MUST_ERR(0, ibv_dereg_mr(mr));
		mem_drop(&m);
		if (!i)
			lost = mem_lost();
	}
	CHECK_BETWEEN(-1024LL * MIB, mem_lost_since(lost, LENGTH / 8), LENGTH / 8);
}

static void only_the_range(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p + 100, LENGTH - 200, GIFT_READ);
	unsigned char *expected = calloc(1, LENGTH);
	uint64_t retaken;

	memset(m.p, 0x5a, LENGTH);
	/* One byte of each of two pages. */
	MUST_ERR(0, provider_refresh(mr, m.p + 11 * PAGE - 1, 2, &retaken));
	CHECK_EQ(2, retaken);
	memset(expected + 10 * PAGE, 0x5a, 2 * PAGE);
	pair_check(&p, mr, expected + 100);
	CHECK_EQ(PAGES - 2, stale_pages(m.p, LENGTH));

	MUST_ERR(0, provider_refresh(mr, m.p + 100, 1, NULL));
	memset(expected, 0x5a, PAGE);
	MUST_ERR(0, provider_refresh(mr, m.p + LENGTH - 101, 1, NULL));
	memset(expected + LENGTH - PAGE, 0x5a, PAGE);
	pair_check(&p, mr, expected + 100);
	CHECK_EQ(PAGES - 4, refresh(mr));
	pair_check(&p, mr, m.p + 100);
}

/* What lies between two stale pages is passed over, however much it is. */
static void far_apart(const struct test_case *c)
{
	const size_t length = 272 * MIB, last = length - PAGE;
	struct mem m = mem_make(&mem_thp_untouched, length);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	struct ibv_mr *mr = mr_reg(pd, m.p, length, GIFT_READ);
	const long long pins = pins_now();

	m.p[0] = 1;
	m.p[last] = 1;
	MUST_EQ(2, refresh(mr));
	CHECK_EQ(pins + 2, pins_now());
	CHECK_EQ(0, stale_pages(m.p, length));
	/* Those that were pinned are given back, and none beside them. */
	MUST(!madvise(m.p, PAGE, MADV_DONTNEED));
	MUST(!madvise(m.p + last, PAGE, MADV_DONTNEED));
	MUST_EQ(2, refresh(mr));
	CHECK_EQ(pins, pins_now());
	CHECK_EQ(2, gift_stats().pages[IB_GIFT_PAGE_ZERO]);
	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_EQ(pins, pins_now());
}

/* A stale page that cannot be taken: those before it are given back. */
static void fails_half_way(const struct test_case *c)
{
	struct mem m = mem_make(c->arg, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, m.length, GIFT_READ);
	unsigned char *old = copy_of(pair_read(&p, mr), LENGTH);
	/* What is thrown away and looked at is what was registered, or else zeros. */
	const unsigned long back = c->arg != &mem_forked_parent;
	size_t hole = PAGES - 3;
	struct state before;
	uint64_t retaken = 77;

	/* Pages are taken by 512 of the address space: not at the start of those. */
	if (((uintptr_t)m.p / PAGE + hole) % 512 == 0)
		hole -= 2;
	write_some(&m, 0x5a);
	m.p[(hole - 1) * PAGE] = 0x5a;
	/* One that is held when it is taken again, before those that are pinned. */
	MUST(!madvise(m.p + 512 * PAGE, PAGE, MADV_DONTNEED));
	MUST(!munmap(m.p + hole * PAGE, PAGE));
	before = state_now();
	CHECK_ERR(EFAULT, provider_refresh(mr, mr->addr, mr->length, &retaken));
	CHECK_EQ(77, retaken);
	CHECK_SAME_STATE(before);
	pair_check(&p, mr, old);
	CHECK_EQ(NR_SOME + 2 - back, stale_pages(m.p, LENGTH));

	test_context("without what cannot be taken");
	MUST_ERR(0, provider_refresh(mr, m.p, hole * PAGE, &retaken));
	CHECK_EQ(NR_SOME - back, retaken);
	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_EQ(before.pins, pins_now());
	CHECK_EQ(before.pinned_vm - LENGTH, pinned_vm(0));
}

static void within_memlock(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	unsigned char *old = calloc(1, LENGTH);
	struct state before;
	struct ibv_mr *mr;
	struct pair p;

	/* First: a command is refused to who is not what opened the device. */
	drop_ipc_lock();
	limit_memlock(RLIM_INFINITY);
	p = pair_new(NULL);
	mr = mr_reg(p.owner->pd, m.p, m.length, GIFT_READ);
	/* The peer's own memory is charged to the same process. */
	pair_check(&p, mr, old);
	write_some(&m, 0x5a);
	before = state_now();
	limit_memlock(before.pinned_vm + (NR_SOME - 1) * PAGE);
	CHECK_ERR(ENOMEM, provider_refresh(mr, mr->addr, mr->length, NULL));
	CHECK_SAME_STATE(before);
	limit_memlock(0);
	CHECK_ERR(EPERM, provider_refresh(mr, mr->addr, mr->length, NULL));
	CHECK_SAME_STATE(before);
	pair_check(&p, mr, old);

	limit_memlock(before.pinned_vm + NR_SOME * PAGE);
	CHECK_EQ(NR_SOME, refresh(mr));
	CHECK_EQ(before.pinned_vm, pinned_vm(0));
	pair_check(&p, mr, m.p);
	/* With nothing to take there is nothing to charge. */
	limit_memlock(0);
	CHECK_EQ(0, refresh(mr));
	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_EQ(before.pinned_vm - LENGTH, pinned_vm(0));
}

static void bad_ranges(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct pair p = pair_new(NULL);
	unsigned char *start = m.p + PAGE + 8;
	const size_t length = LENGTH - 3 * PAGE;
	struct ibv_mr *mr = mr_reg(p.owner->pd, start, length, GIFT_READ);
	const struct { unsigned char *addr; size_t length; } bad[] = {
		{ start, 0 },
		{ start, length + 1 },
		{ start - 1, 1 },
		{ start - 1, length },
		{ start + length, 1 },
		{ start + length - 1, 2 },
		{ start, SIZE_MAX },
		{ start + 1, SIZE_MAX },
		{ NULL, 1 },
		{ (unsigned char *)UINTPTR_MAX, 1 },
		{ (unsigned char *)UINTPTR_MAX, SIZE_MAX },
	};
	struct state before;

	write_some(&m, 0x5a);
	before = state_now();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		test_context("range %zu", i);
		CHECK_ERR(EINVAL, provider_refresh(mr, bad[i].addr, bad[i].length,
						   NULL));
		CHECK_SAME_STATE(before);
	}
}

static void bad_regions(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *plain = mr_reg(p.owner->pd, m.p, LENGTH, IBV_ACCESS_REMOTE_READ);
	struct ibv_mr *gift = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);
	struct ibv_context *ctx = p.dev->ctx;
	const uint32_t handle = gift->handle;
	struct state before = state_now();
	uint64_t retaken;

	CHECK_ERR(EINVAL, provider_refresh(NULL, m.p, LENGTH, NULL));
	CHECK_ERR(EINVAL, provider_refresh(plain, m.p, LENGTH, NULL));
	CHECK_ERR(ENOENT, raw_refresh(ctx, 0x12345, (uintptr_t)m.p, LENGTH, &retaken));
	/* A protection domain's handle is no region's. */
	CHECK(raw_refresh(ctx, p.owner->pd->handle, (uintptr_t)m.p, LENGTH, &retaken));
	CHECK_ERR(0, raw_refresh(ctx, handle, (uintptr_t)m.p, LENGTH, &retaken));
	CHECK_SAME_STATE(before);
	MUST_ERR(0, ibv_dereg_mr(gift));
	CHECK_ERR(ENOENT, raw_refresh(ctx, handle, (uintptr_t)m.p, LENGTH, &retaken));
}

/* The answer has no place to go to; the region is whole all the same. */
static void bad_answer(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);

	write_some(&m, 0x5a);
	CHECK_ERR(EFAULT, raw_refresh(p.dev->ctx, mr->handle, (uintptr_t)m.p, LENGTH,
				      (uint64_t *)8));
	CHECK_EQ(0, stale_pages(m.p, LENGTH));
	pair_check(&p, mr, m.p);
}

struct child {
	struct mem *m;
	struct ibv_mr *mr;
};

static void by_child(void *arg)
{
	struct child *child = arg;

	memset(child->m->p, 0xc3, LENGTH);
	CHECK_ERR(EINVAL, provider_refresh(child->mr, child->m->p, LENGTH, NULL));
}

/* Who has the device from its parent does not have the parent's memory. */
static void other_memory(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);
	struct child child = { &m, mr };
	struct state before;

	write_some(&m, 0x5a);
	before = state_now();
	test_join(test_fork(by_child, &child));
	CHECK_SAME_STATE(before);
	CHECK_EQ(NR_SOME, refresh(mr));
	pair_check(&p, mr, m.p);
}

/*
 * The region goes from all zeros to all ones and back. What is written while it
 * is stale must not show before the refresh, and then in all pages at once.
 */
static void atomic_for_readers(const struct test_case *c)
{
	enum { ROUNDS = 8 };
	const size_t length = 32 * PAGE;
	struct mem m = mem_make(&mem_read, length);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, length, GIFT_READ);
	struct reader r;

	reader_start(&r, &p, mr, (uintptr_t)mr->addr, false);
	for (int i = 0; i < ROUNDS; i++) {
		memset(m.p, 1, length);
		reader_wait(&r);
		MUST_EQ(length / PAGE, refresh(mr));
		reader_wait(&r);
		/* Pinned pages go; what comes is held zeros again. */
		MUST(!madvise(m.p, length, MADV_DONTNEED));
		MUST_EQ(length / PAGE, refresh(mr));
	}
	reader_stop(&r, 0, 1);
}

struct racer {
	struct pair *p;
	struct mem *m;
	struct ibv_mr *mr;
	uint32_t handle;		/* of mr, which may be gone */
	bool may_vanish;
	volatile bool stop;
	int (*act)(struct racer *r);
	unsigned long done;
};

static int act_refresh(struct racer *r)
{
	return provider_refresh(r->mr, r->m->p, r->m->length, NULL);
}

/* By the handle, as a hostile program would: libibverbs is not asked. */
static int act_raw_refresh(struct racer *r)
{
	uint64_t retaken;

	return raw_refresh(r->p->dev->ctx, r->handle, (uintptr_t)r->m->p,
			   r->m->length, &retaken);
}

static int act_rereg(struct racer *r)
{
	errno = 0;
	return ibv_rereg_mr(r->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, r->m->p,
			    r->m->length, 0) ? errno : 0;
}

static int act_plain(struct racer *r)
{
	struct ibv_mr *mr = mr_reg(r->p->owner->pd, r->m->p, r->m->length, GIFT_READ);

	return ibv_dereg_mr(mr);
}

static void *race(void *arg)
{
	struct racer *r = arg;

	while (!r->stop) {
		int ret = r->act(r);

		r->done += !ret;
		if (ret && ret != EBUSY && !(ret == ENOENT && r->may_vanish))
			test_fail(__FILE__, __LINE__, "a racing thread got error %d", ret);
	}
	return NULL;
}

static void refresh_against(const struct test_case *c)
{
	enum { ROUNDS = 12 };
	const size_t length = 16 * PAGE;
	struct mem m = mem_make(&mem_read, length);
	struct pair p = pair_new(NULL);
	struct racer r = { .p = &p, .m = &m, .act = c->arg };
	unsigned long done = 0;
	long long pins;
	pthread_t thread;

	pins = pins_now();
	r.mr = mr_reg(p.owner->pd, m.p, length, GIFT_READ);
	MUST(!pthread_create(&thread, NULL, race, &r));
	for (int i = 0; i < ROUNDS || !r.done || !done; i++) {
		int ret;

		memset(m.p, i + 1, length / 2);
		ret = provider_refresh(r.mr, m.p, length, NULL);
		done += !ret;
		if (ret && ret != EBUSY)
			CHECK_ERR(0, ret);
		MUST(!madvise(m.p, length / 2, MADV_DONTNEED));
	}
	r.stop = true;
	MUST(!pthread_join(thread, NULL));
	CHECK(done > 0);
	CHECK(r.done > 0);
	CHECK_EQ(length, pinned_vm(0));
	memset(m.p, 0x77, length);
	refresh(r.mr);
	CHECK_EQ(length, pinned_vm(0));
	pair_check(&p, r.mr, m.p);
	MUST_ERR(0, ibv_dereg_mr(r.mr));
	MUST_ERR(0, ibv_dereg_mr(p.into));
	CHECK_EQ(pins, pins_now());
	CHECK_EQ(0, pinned_vm(0));
}

/* A region that goes while it is refreshed: each of the two ends as it should. */
static void refresh_against_dereg(const struct test_case *c)
{
	enum { ROUNDS = 16 };
	const size_t length = 16 * PAGE;
	struct mem m = mem_make(&mem_read, length);
	struct pair p = pair_new(NULL);
	long long pins = pins_now();

	for (int i = 0; i < ROUNDS; i++) {
		struct racer r = {
			.p = &p, .m = &m, .may_vanish = true,
			.act = act_raw_refresh,
		};
		pthread_t thread;
		int ret;

		r.mr = mr_reg(p.owner->pd, m.p, length, GIFT_READ);
		r.handle = r.mr->handle;
		memset(m.p, i + 1, length);
		MUST(!pthread_create(&thread, NULL, race, &r));
		usleep(i * 120);
		do {
			ret = ibv_dereg_mr(r.mr);
		} while (ret == EBUSY);
		CHECK_ERR(0, ret);
		r.stop = true;
		MUST(!pthread_join(thread, NULL));
		MUST(!madvise(m.p, length, MADV_DONTNEED));
	}
	CHECK_EQ(pins, pins_now());
	CHECK_EQ(0, pinned_vm(0));
	CHECK_EQ(0, gift_stats().regions);
}

static void refresh_until_killed(void *arg)
{
	int *ready = arg;
	struct mem m = mem_make(&mem_read, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);

	for (int i = 0;; i++) {
		memset(m.p, i | 1, LENGTH);
		refresh(mr);
		if (!i)
			MUST(write(ready[1], "", 1) == 1);
		MUST(!madvise(m.p, LENGTH, MADV_DONTNEED));
		refresh(mr);
	}
}

static void killed(const struct test_case *c)
{
	enum { ROUNDS = 8 };
	long long pins = pins_now(), regions = proc_number(MISC "regions");
	int ready[2];

	MUST(!pipe(ready));
	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = test_fork(refresh_until_killed, ready);
		char byte;

		MUST(read(ready[0], &byte, 1) == 1);
		usleep(i * 1700);
		MUST(!kill(pid, SIGKILL));
		MUST(waitpid(pid, NULL, 0) == pid);
	}
	/* The last reference of a device file may go a moment after its process. */
	for (int i = 0; i < 100 && pins_now() != pins; i++)
		test_sleep_ms(20);
	CHECK_EQ(pins, pins_now());
	CHECK_EQ(regions, proc_number(MISC "regions"));
}

/* Two writes in two regions, of which one is refreshed. */
static void other_regions_stay(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *one = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);
	struct ibv_mr *two = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);
	unsigned char *old = calloc(1, LENGTH);

	write_some(&m, 0x5a);
	CHECK_EQ(NR_SOME, refresh(one));
	pair_check(&p, one, m.p);
	pair_check(&p, two, old);
	/* Stale in one of them. */
	CHECK_EQ(NR_SOME, stale_pages(m.p, LENGTH));
	CHECK_EQ(0, refresh(one));
	CHECK_EQ(NR_SOME, refresh(two));
	CHECK_EQ(0, stale_pages(m.p, LENGTH));
	pair_check(&p, two, m.p);
	MUST_ERR(0, ibv_dereg_mr(one));
	pair_check(&p, two, m.p);
}

#define TAKES(id, text)							\
	{ "a refresh of " text " memory takes the stale pages, keeps the rest and the keys", \
	  only_stale, &mem_##id }
#define FRESH(id, text)							\
	{ "a refresh of " text " memory that is fresh does nothing",	\
	  nothing_stale, &mem_##id }
#define BACK(id, text)							\
	{ "a refresh of " text " memory gives back every reference",	\
	  references_back, &mem_##id }
#define HALF_WAY(id, text)						\
	{ "a refresh of " text " memory that fails half-way leaves the region as it was", \
	  fails_half_way, &mem_##id }

static const struct test_case cases[] = {
	TAKES(untouched, "untouched"),
	TAKES(ksm, "KSM-merged"),
	TAKES(forked_parent, "fork-shared"),
	TAKES(private_file, "private file"),
	FRESH(untouched, "untouched"),
	FRESH(written, "written"),
	FRESH(forked_parent, "fork-shared"),
	FRESH(hugetlb_private, "private hugetlb"),
	BACK(untouched, "untouched"),
	BACK(forked_parent, "fork-shared"),
	BACK(private_file, "private file"),
	{ "only the range that is named is refreshed, by whole pages", only_the_range },
	{ "stale pages far apart are taken again, and given back, by themselves", far_apart },
	HALF_WAY(untouched, "untouched"),
	HALF_WAY(forked_parent, "fork-shared"),
	HALF_WAY(private_file, "private file"),
	{ "a refresh is charged for the pages that it takes, while it takes them",
	  within_memlock },
	{ "a range that is not within the region is EINVAL", bad_ranges },
	{ "what is no gift region is refused", bad_regions },
	{ "an answer that cannot be stored is EFAULT and the region refreshed",
	  bad_answer },
	{ "a region of another process's memory is EINVAL", other_memory },
	{ "a refresh of one region leaves another on the same memory stale",
	  other_regions_stay },
	{ "a peer that reads meanwhile sees the old region or the new one",
	  atomic_for_readers },
	{ "two threads refresh one region", refresh_against, act_refresh },
	{ "a refresh and a registration again of one region", refresh_against,
	  act_rereg },
	{ "a refresh and other registrations of the same memory", refresh_against,
	  act_plain },
	{ "a refresh and the deregistration of one region", refresh_against_dereg },
	{ "a process killed while it refreshes gives everything back", killed },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
