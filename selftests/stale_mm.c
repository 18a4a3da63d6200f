// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which pages /dev/ib_gift calls stale when the kernel collapses memory or swaps it out,
 * and what a refresh makes of them. What processes do to memory is in gift_stale.c.
 */
#include <string.h>
#include <sys/mman.h>

#include "lib/mem.h"
#include "lib/mm.h"
#include "lib/pair.h"
#include "lib/proc.h"
#include "lib/stale.h"

#define SMALL	(32 * PAGE)

static long long huge_mapped(const struct mem *m)
{
	return mem_range(m->map, m->map_length, "AnonHugePages");
}

/* Zeros beside written memory that is not registered: they become a page of it. */
static void collapsed(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, THP_SIZE);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr;

	mm_thp_ready();
	memset(m.p + SMALL, 0x11, THP_SIZE - SMALL);
	mr = mr_reg(p.owner->pd, m.p, SMALL, GIFT_READ);
	CHECK_EQ(SMALL / PAGE, gift_stats().pages[IB_GIFT_PAGE_ZERO]);
	mem_do(&m, MEM_COLLAPSE, 0);
	MUST_EQ(THP_SIZE, huge_mapped(&m));
	CHECK_EQ(SMALL / PAGE, stale_pages(m.p, SMALL));
	pair_check(&p, mr, m.p);
	MUST_EQ(SMALL / PAGE, refresh(mr));
	CHECK_EQ(SMALL / PAGE, gift_stats().pages[IB_GIFT_PAGE_PINNED]);
	CHECK_EQ(0, stale_pages(m.p, SMALL));
	/* They stay fresh when that page is split, and are the owner's. */
	mem_do(&m, MEM_SPLIT, 0);
	MUST_EQ(0, huge_mapped(&m));
	memset(m.p, 0x5a, SMALL);
	CHECK_EQ(0, stale_pages(m.p, SMALL));
	pair_check(&p, mr, m.p);
}

/* Somewhere to swap to, if there is nothing yet: compressed memory. */
static void need_swap(void)
{
	if (proc_field("/proc/meminfo", "SwapTotal") > 0)
		return;
	if (RUN("modprobe", "zram") ||
	    !proc_write("/sys/block/zram0/disksize", "64M") ||
	    RUN("mkswap", "/dev/zram0") || RUN("swapon", "/dev/zram0"))
		test_skip("nowhere to swap to");
}

/* Bytes that are swapped out when no more will be. */
static long long page_out(const struct mem *m)
{
	long long swapped = 0;

	for (int i = 0; i < 50 && swapped < (long long)m->length; i++) {
		/* Empties the lists on which pages new to a processor wait for others. */
		if (i % 5 == 4)
			MUST(proc_write("/proc/sys/vm/compact_memory", "1"));
		MUST(!madvise(m->p, m->length, MADV_PAGEOUT));
		swapped = mem_range(m->p, m->length, "Swap");
		test_sleep_ms(10);
	}
	return swapped;
}

/* Held pages can leave the page tables; that they are still the same is not known. */
static void swapped_out(const struct test_case *c)
{
	struct mem m = mem_make(&mem_forked_parent, SMALL);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr;

	need_swap();
	mr = mr_reg(p.owner->pd, m.p, SMALL, GIFT_READ);
	CHECK_EQ(SMALL / PAGE, gift_stats().pages[IB_GIFT_PAGE_SHARED]);
	/* Reclaim by hand is for memory that nobody shares. */
	mem_other(&m, MEM_EXIT, 0);
	MUST_EQ(SMALL, page_out(&m));
	CHECK_EQ(SMALL / PAGE, stale_pages(m.p, SMALL));
	CHECK_EQ(SMALL, mem_range(m.p, SMALL, "Swap"));
	/* Looking brings back what the region has. */
	pair_check(&p, mr, m.p);
	CHECK_EQ(0, stale_pages(m.p, SMALL));
	/* A refresh takes what it cannot tell, and now pins it. */
	MUST_EQ(SMALL, page_out(&m));
	MUST_EQ(SMALL / PAGE, refresh(mr));
	CHECK_EQ(SMALL / PAGE, gift_stats().pages[IB_GIFT_PAGE_PINNED]);
	memset(m.p, 0x5a, SMALL);
	CHECK_EQ(0, stale_pages(m.p, SMALL));
	pair_check(&p, mr, m.p);
	CHECK_EQ(0, page_out(&m));
}

static void swapped_before(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, SMALL);
	struct pair p = pair_new(NULL);
	unsigned char *old = copy_of(m.p, SMALL);
	struct ibv_mr *mr;

	need_swap();
	MUST_EQ(SMALL, page_out(&m));
	mr = mr_reg(p.owner->pd, m.p, SMALL, GIFT_READ);
	CHECK_EQ(SMALL / PAGE, gift_stats().pages[IB_GIFT_PAGE_PINNED]);
	CHECK_EQ(0, stale_pages(m.p, SMALL));
	pair_check(&p, mr, old);
	memset(m.p, 0x5a, SMALL);
	CHECK_EQ(0, stale_pages(m.p, SMALL));
	pair_check(&p, mr, m.p);
}

static const struct test_case cases[] = {
	{ "zeros that are collapsed into a huge page are called stale", collapsed },
	{ "held memory that is swapped out is called stale until it is back", swapped_out },
	{ "memory that was swapped out before is taken in, and is fresh", swapped_before },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
