// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which pages /dev/ib_gift calls stale: for every kind of memory after every kind
 * of change, compared with what is expected and with what a peer really reads.
 * How the question is asked, and who may ask, is in gift_dev.c.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/pair.h"
#include "lib/proc.h"
#include "lib/stale.h"

#ifndef PAGE
#define PAGE	4096UL
#endif
#define HUGE	(2 * MIB)
/* The change is to the second quarter of small regions, the second half of huge. */
#define SMALL	(32 * PAGE)
#define LARGE	(2 * HUGE)

/* What of a kind decides about staleness. */
enum trait {
	HELD		= 1 << 0,	/* a write goes to a copy */
	ZERO		= 1 << 1,	/* and what is held are zeros */
	SHARED		= 1 << 2,	/* a write goes to what is registered */
	FILE_BACKED	= 1 << 3,	/* its pages are those of a file */
	HUGETLB		= 1 << 4,
	LARGE_PAGES	= 1 << 5,
	READ_ONLY	= 1 << 6,
	MERGED		= 1 << 7,
	ANY_TRAIT	= 0,
};

struct kind {
	const struct mem_kind *mem;
	unsigned int traits;
};

/* What is done to a part of the region. */
struct part {
	struct mem *m;
	unsigned char *p;
	size_t length;
	/* What the change reaches, if it is more. */
	unsigned char *changed;
	size_t changed_length;
	void *elsewhere;
	pid_t child;
	struct pair *pair;
};

/* Stale afterwards: all, none, or only for kinds with one of the traits. */
#define ALL	(~0U)
#define NONE	0U

struct change {
	const char *name;
	void (*make)(struct part *part);
	/* Kinds that it is not possible on; and those that it is for alone. */
	unsigned int not_on, only_on;
	/* With one of these traits every page is stale; else none. */
	unsigned int stale;
	/* Kinds with one of these are fresh whatever stale says. */
	unsigned int fresh;
};

static void touch(struct part *part)
{
	for (size_t at = 0; at < part->length; at += PAGE)
		(void)*(volatile unsigned char *)(part->p + at);
}

static void nothing(struct part *part)
{
}

static void write_new(struct part *part)
{
	memset(part->p, 0x5a, part->length);
}

/* Byte by byte what was there: it is the page that changes. */
static void write_same(struct part *part)
{
	for (size_t at = 0; at < part->length; at += PAGE) {
		volatile unsigned char *p = part->p + at;

		*p = *p;
	}
}

static void advise(struct part *part, int advice)
{
	MUST(!madvise(part->p, part->length, advice));
}

static void dontneed(struct part *part)
{
	advise(part, MADV_DONTNEED);
}

static void dontneed_read(struct part *part)
{
	dontneed(part);
	touch(part);
}

static void dontneed_write(struct part *part)
{
	dontneed(part);
	write_new(part);
}

static void lazily_free(struct part *part)
{
	advise(part, MADV_FREE);
}

static void unmap(struct part *part)
{
	MUST(!munmap(part->p, part->length));
}

static void move_away(struct part *part)
{
	void *to = mem_map(part->length, HUGE, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

	part->elsewhere = mremap(part->p, part->length, part->length,
				 MREMAP_MAYMOVE | MREMAP_FIXED, to);
	MUST(part->elsewhere == to);
}

static void move_and_back(struct part *part)
{
	move_away(part);
	MUST(mremap(part->elsewhere, part->length, part->length,
		    MREMAP_MAYMOVE | MREMAP_FIXED, part->p) == part->p);
	part->elsewhere = NULL;
}

static void map_over(struct part *part)
{
	MUST(mmap(part->p, part->length, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == part->p);
}

static void map_over_read(struct part *part)
{
	map_over(part);
	touch(part);
}

static void map_over_write(struct part *part)
{
	map_over(part);
	write_new(part);
}

static void protect_none(struct part *part)
{
	MUST(!mprotect(part->p, part->length, PROT_NONE));
}

static void protect_read(struct part *part)
{
	MUST(!mprotect(part->p, part->length, PROT_READ));
}

/* A child that has the memory too, and lives until the cell ends. */
static void fork_child(struct part *part, bool writes)
{
	int fd[2];
	char c = 0;
	pid_t pid;

	MUST(!pipe(fd));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		if (writes)
			memset(part->p, 0xc3, part->length);
		if (write(fd[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	part->child = pid;
	MUST(read(fd[0], &c, 1) == 1);
	close(fd[0]);
	close(fd[1]);
}

static void fork_alone(struct part *part)
{
	fork_child(part, false);
}

static void fork_then_write(struct part *part)
{
	fork_child(part, false);
	write_new(part);
}

static void child_writes(struct part *part)
{
	fork_child(part, true);
}

static void write_file(struct part *part)
{
	size_t offset = part->p - part->m->p;

	for (size_t at = 0; at < part->length; at += PAGE)
		MUST(pwrite(part->m->fd, "written", 7, offset + at) == 7);
}

/* The file is cut off where the part begins, and made as long as before. */
static void truncate_file(struct part *part)
{
	size_t offset = part->p - part->m->p;

	MUST(!ftruncate(part->m->fd, offset));
	MUST(!ftruncate(part->m->fd, part->m->length));
	part->changed_length = part->m->length - offset;
}

static void truncate_file_read(struct part *part)
{
	truncate_file(part);
	touch(part);
}

static const struct change changes[] = {
	{ "nothing", nothing, .stale = NONE },
	{ "reading", touch, .stale = NONE },
	{ "writing", write_new, .not_on = READ_ONLY, .stale = HELD },
	{ "writing what was there", write_same, .not_on = READ_ONLY, .stale = HELD },
	{ "MADV_DONTNEED", dontneed, .stale = ALL },
	{ "MADV_DONTNEED and reading", dontneed_read, .stale = ALL,
	  .fresh = ZERO | SHARED | FILE_BACKED },
	{ "MADV_DONTNEED and writing", dontneed_write, .not_on = READ_ONLY,
	  .stale = ALL, .fresh = SHARED },
	{ "MADV_FREE", lazily_free, .not_on = SHARED | FILE_BACKED | HUGETLB,
	  .stale = NONE },
	{ "munmap", unmap, .stale = ALL },
	{ "mremap to elsewhere", move_away, .stale = ALL },
	/* Moving memory unmerges it. */
	{ "mremap to elsewhere and back", move_and_back, .stale = MERGED },
	{ "another mapping in its place", map_over, .stale = ALL },
	{ "another mapping in its place and reading", map_over_read, .stale = ALL,
	  .fresh = ZERO },
	{ "another mapping in its place and writing", map_over_write,
	  .stale = ALL },
	/* What is protected is still there; of hugetlb nobody can be asked. */
	{ "PROT_NONE", protect_none, .stale = HUGETLB },
	{ "PROT_READ", protect_read, .stale = NONE },
	{ "fork", fork_alone, .stale = NONE },
	{ "fork and writing", fork_then_write, .not_on = READ_ONLY, .stale = HELD },
	{ "fork and writing by the child", child_writes, .not_on = READ_ONLY,
	  .stale = NONE },
	{ "writing to the file", write_file, .only_on = FILE_BACKED, .stale = NONE },
	{ "truncating the file", truncate_file, .only_on = FILE_BACKED,
	  .stale = ALL },
	{ "truncating the file and reading", truncate_file_read,
	  .only_on = FILE_BACKED, .stale = ALL },
};

/* One page as the owner would read it; false when it could not. */
static bool own_page(const unsigned char *p, unsigned char *to)
{
	struct iovec local = { to, PAGE };
	struct iovec remote = { (void *)p, PAGE };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == PAGE;
}

/* What asking could change of the caller, besides faults. */
struct asked {
	long rss, swap, pins;
};

static struct asked asked_now(void)
{
	return (struct asked){
		.rss = proc_field("/proc/self/smaps_rollup", "Rss"),
		.swap = proc_field("/proc/self/smaps_rollup", "Swap"),
		.pins = pins_taken(),
	};
}

static long faults(void)
{
	struct rusage usage;

	MUST(!getrusage(RUSAGE_SELF, &usage));
	return usage.ru_minflt + usage.ru_majflt;
}

static void ask(const struct mem *m, uint64_t *bitmap, uint64_t *stale)
{
	struct ib_gift_stale query = {
		.addr = (uintptr_t)m->p,
		.length = m->length,
		.bitmap = (uintptr_t)bitmap,
	};
	int fd = open("/dev/ib_gift", O_RDWR | O_CLOEXEC), ret;
	struct asked before, after;
	long first, last;

	MUST(fd >= 0);
	/* Each is called for nothing first, so that its own pages are there. */
	asked_now();
	before = asked_now();
	faults();
	first = faults();
	ret = ioctl(fd, IB_GIFT_IOC_STALE, &query);
	last = faults();
	after = asked_now();
	MUST(!ret);
	close(fd);
	CHECK_EQ(first, last);
	CHECK_EQ(before.rss, after.rss);
	CHECK_EQ(before.swap, after.swap);
	CHECK_EQ(before.pins, after.pins);
	CHECK_EQ(m->length / PAGE, query.registered);
	*stale = query.stale;
}

static void check_cell(struct part *part, struct ibv_mr *mr, bool expect_stale)
{
	const struct mem *m = part->m;
	const size_t pages = m->length / PAGE;
	uint64_t bitmap[LARGE / PAGE / 64 + 1] = {}, stale;
	size_t first = (part->changed - m->p) / PAGE;
	size_t end = first + part->changed_length / PAGE;
	unsigned long missing = 0, too_many = 0, lies = 0, set = 0;
	unsigned char own[PAGE];
	const unsigned char *peer;

	ask(m, bitmap, &stale);
	/* The peer first: the owner's own look faults pages in. */
	peer = pair_read(part->pair, mr);
	for (size_t i = 0; i < pages; i++) {
		bool expected = expect_stale && i >= first && i < end;
		bool got = stale_bit(bitmap, i);

		set += got;
		missing += expected && !got;
		too_many += got && !expected;
		if (got)
			continue;
		/* Only protection may be in the way of looking at a fresh page. */
		if (!own_page(m->p + i * PAGE, own)) {
			MUST(!mprotect(m->p + i * PAGE, PAGE, PROT_READ));
			MUST(own_page(m->p + i * PAGE, own));
		}
		lies += !!memcmp(own, peer + i * PAGE, PAGE);
	}
	/* Pages that are called fresh and that the peer reads differently. */
	CHECK_EQ(0, lies);
	CHECK_EQ(0, missing);
	CHECK_EQ(0, too_many);
	CHECK_EQ(stale, set);
}

static void cell(const struct kind *kind, const struct change *change)
{
	const bool large = kind->traits & LARGE_PAGES;
	struct mem m = mem_make(kind->mem, large ? LARGE : SMALL);
	/* After the fork of a kind that is shared by one. */
	struct pair pair = pair_new(NULL);
	struct part part = {
		.m = &m,
		.pair = &pair,
		.p = m.p + (large ? HUGE : SMALL / 4),
		.length = large ? HUGE : SMALL / 4,
	};
	bool stale = false;
	struct ibv_mr *mr;

	part.changed = part.p;
	part.changed_length = part.length;
	test_context("%s", change->name);
	mr = mr_reg(pair.owner->pd, m.p, m.length, GIFT_READ);
	change->make(&part);
	if (change->stale == ALL || kind->traits & change->stale)
		stale = !(kind->traits & change->fresh);
	check_cell(&part, mr, stale);
	MUST_ERR(0, ibv_dereg_mr(mr));
	if (part.child) {
		MUST(!kill(part.child, SIGKILL));
		MUST(waitpid(part.child, NULL, 0) == part.child);
	}
	if (part.elsewhere)
		munmap(part.elsewhere, part.length);
	mem_drop(&m);
	MUST_ERR(0, ibv_dereg_mr(pair.into));
	rc_destroy(pair.peer);
	rc_destroy(pair.owner);
}

static void all_changes(const struct test_case *c)
{
	const struct kind *kind = c->arg;

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		const struct change *change = &changes[i];

		if (kind->traits & change->not_on)
			continue;
		if (change->only_on && !(kind->traits & change->only_on))
			continue;
		cell(kind, change);
	}
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

static const struct kind
	untouched = { &mem_untouched, HELD | ZERO },
	only_read = { &mem_read, HELD | ZERO },
	written = { &mem_written, ANY_TRAIT },
	ksm = { &mem_ksm, HELD | MERGED },
	forked_parent = { &mem_forked_parent, HELD },
	forked_child = { &mem_forked_child, HELD },
	private_file = { &mem_private_file, HELD | FILE_BACKED },
	file_hole = { &mem_file_hole, HELD | FILE_BACKED },
	shared_file = { &mem_shared_file, SHARED | FILE_BACKED },
	memfd = { &mem_memfd, SHARED | FILE_BACKED },
	readonly_untouched = { &mem_readonly_untouched, HELD | ZERO | READ_ONLY },
	readonly_written = { &mem_readonly_written, READ_ONLY },
	thp_untouched = { &mem_thp_untouched, HELD | ZERO | LARGE_PAGES },
	thp_written = { &mem_thp_written, LARGE_PAGES },
	thp_forked = { &mem_thp_forked, HELD | LARGE_PAGES },
	hugetlb_private = { &mem_hugetlb_private, HUGETLB | LARGE_PAGES },
	hugetlb_shared = { &mem_hugetlb_shared, HUGETLB | SHARED | LARGE_PAGES };

#define KIND(id, text)							\
	{ "of " text " memory the changed pages are called stale, and only they", \
	  all_changes, &(id), .timeout = 200 }

static const struct test_case cases[] = {
	KIND(untouched, "untouched"),
	KIND(only_read, "only read"),
	KIND(written, "written"),
	KIND(ksm, "KSM-merged"),
	KIND(forked_parent, "fork-shared (region in the parent)"),
	KIND(forked_child, "fork-shared (region in the child)"),
	KIND(private_file, "private file"),
	KIND(file_hole, "private file with a hole"),
	KIND(shared_file, "shared file"),
	KIND(memfd, "memfd"),
	KIND(readonly_untouched, "PROT_READ untouched"),
	KIND(readonly_written, "PROT_READ written"),
	KIND(thp_untouched, "untouched THP"),
	KIND(thp_written, "written THP"),
	KIND(thp_forked, "fork-shared THP"),
	KIND(hugetlb_private, "private hugetlb"),
	KIND(hugetlb_shared, "shared hugetlb"),
	{ "held memory that is swapped out is called stale until it is back",
	  swapped_out },
	{ "memory that was swapped out before is taken in, and is fresh",
	  swapped_before },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
