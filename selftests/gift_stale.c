// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which pages /dev/ib_gift calls stale: for every kind of memory after every kind
 * of change, compared with what is expected and with what a peer really reads.
 * How the question is asked, and who may ask, is in gift_dev.c.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/mm.h"
#include "lib/pair.h"
#include "lib/proc.h"
#include "lib/stale.h"

#define SMALL	(32 * PAGE)
#define LARGE	(2 * THP_SIZE)

/* What of a page decides about its staleness, as the table of kinds has it. */
enum trait {
	HELD		= 1 << 0,	/* a write goes to a copy */
	ZERO		= 1 << 1,	/* and what is held are zeros */
	SHARED		= 1 << 2,	/* a write goes to what is registered */
	FILE_PAGE	= 1 << 3,	/* what is registered is the file's */
	HAS_FILE	= 1 << 4,
	HUGETLB		= 1 << 5,
	READ_ONLY	= 1 << 6,
	MERGED		= 1 << 7,
	NOT_ANON	= 1 << 8,
};

static unsigned char *first_page(const struct mem *m)
{
	return (unsigned char *)((uintptr_t)m->p & ~(PAGE - 1));
}

static unsigned int traits_of(const struct mem *m, size_t page)
{
	const struct mem_kind *kind = mem_at(m, page)->kind;
	const enum ib_gift_page_kind taken = m->taken[page];
	const bool file = kind->sort == SORT_SHARED;
	const bool hugetlb = kind->sort == SORT_HUGETLB_PRIVATE ||
			     kind->sort == SORT_HUGETLB_SHARED;
	const struct {
		enum trait trait;
		bool has;
	} traits[] = {
		{ HELD, taken != IB_GIFT_PAGE_PINNED },
		{ ZERO, taken == IB_GIFT_PAGE_ZERO || taken == IB_GIFT_PAGE_HUGE_ZERO },
		{ SHARED, file || kind->sort == SORT_HUGETLB_SHARED },
		{ FILE_PAGE, file || taken == IB_GIFT_PAGE_FILE },
		{ HAS_FILE, file || kind->sort == SORT_PRIVATE_FILE },
		{ HUGETLB, hugetlb },
		{ READ_ONLY, kind->read_only },
		{ MERGED, taken == IB_GIFT_PAGE_KSM },
		{ NOT_ANON, kind->sort != SORT_ANON },
	};
	unsigned int sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(traits); i++)
		sum |= traits[i].has ? traits[i].trait : 0;
	return sum;
}

/* What is done to a part of the region, which is of whole pages. */
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

/* Stale afterwards: all, none, or only pages with one of the traits. */
#define ALL	(~0U)
#define NONE	0U

struct change {
	const char *name;
	void (*make)(struct part *part);
	/* Kinds that it is not possible on; and those that it is for alone. */
	unsigned int not_on, only_on;
	/* Pages with one of these traits are stale. */
	unsigned int stale;
	/* Pages with one of these are fresh whatever stale says. */
	unsigned int fresh;
	bool thp;		/* for ranges of huge pages, made of those or not */
	bool of_big;		/* for what is large and slow to make as well */
};

static void touch(struct part *part)
{
	for (size_t at = 0; at < part->length; at += PAGE)
		(void)*(volatile unsigned char *)(part->p + at);
}

static void nothing(struct part *part)
{
}

static void write_all(struct part *part, unsigned char byte)
{
	if (part->m->nr_parts)
		mem_write(part->m, byte);
	else
		memset(part->p, byte, part->length);
}

static void write_new(struct part *part)
{
	write_all(part, 0x5a);
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
	void *to = mem_map(part->length, THP_SIZE, PROT_NONE,
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
			write_all(part, 0xc3);
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

/* How many pages of the part the page tables have. */
static size_t mapped(const struct part *part)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t n = part->length / PAGE, sum = 0;
	uint64_t entries[LARGE / PAGE];

	MUST(fd >= 0);
	MUST(n <= ARRAY_LEN(entries));
	MUST(pread(fd, entries, n * 8, (uintptr_t)part->p / PAGE * 8) == (ssize_t)n * 8);
	close(fd);
	for (size_t i = 0; i < n; i++)
		sum += entries[i] >> 63;
	return sum;
}

/* A file's pages leave the page tables, though not memory; pinned ones stay in both. */
static void page_out_part(struct part *part)
{
	size_t page = (part->p - first_page(part->m)) / PAGE;
	bool leaves = traits_of(part->m, page) & FILE_PAGE;
	size_t before = mapped(part);

	for (int i = 0; i < (leaves ? 200 : 3) && (!leaves || mapped(part)); i++) {
		if (i)
			test_sleep_ms(10);
		advise(part, MADV_PAGEOUT);
	}
	CHECK_EQ(leaves ? 0 : before, mapped(part));
}

static long long huge_mapped(const struct mem *m)
{
	return mem_range(m->map, m->map_length, "AnonHugePages");
}

/* Of the page tables: the pages are the same, and those of zeros zero. */
static void split(struct part *part)
{
	mem_do(part->m, MEM_SPLIT, 0);
	CHECK_EQ(0, huge_mapped(part->m));
}

/* What is registered cannot be copied into another page, nor are all zeros. */
static void collapse(struct part *part)
{
	long long before = huge_mapped(part->m);

	mem_do(part->m, MEM_COLLAPSE, 0);
	CHECK_EQ(before, huge_mapped(part->m));
}

static void migrate(struct part *part)
{
	CHECK_EQ(0, mm_move(part->p, part->length).moved);
}

/* The scan has reached the region when it has merged these two, which are not of it. */
static void ksm_scan(struct part *part)
{
	struct mem like = mem_make(&mem_written, MEM_ALIKE * PAGE);

	MUST(!madvise(like.map, like.map_length, MADV_MERGEABLE));
	advise(part, MADV_MERGEABLE);
	mm_ksm_scan();
	CHECK_BETWEEN(1, mem_range(like.map, like.map_length, "Pss"), PAGE);
	mem_drop(&like);
}

static const struct change changes[] = {
	{ "nothing", nothing, .stale = NONE, .of_big = true },
	{ "reading", touch, .stale = NONE },
	{ "writing", write_new, .not_on = READ_ONLY, .stale = HELD, .of_big = true },
	{ "writing what was there", write_same, .not_on = READ_ONLY, .stale = HELD },
	{ "MADV_DONTNEED", dontneed, .stale = ALL, .of_big = true },
	{ "MADV_DONTNEED and reading", dontneed_read, .stale = ALL,
	  .fresh = ZERO | SHARED | FILE_PAGE, .of_big = true },
	{ "MADV_DONTNEED and writing", dontneed_write, .not_on = READ_ONLY,
	  .stale = ALL, .fresh = SHARED },
	{ "MADV_FREE", lazily_free, .not_on = NOT_ANON, .stale = NONE },
	{ "MADV_PAGEOUT", page_out_part, .not_on = HUGETLB, .stale = FILE_PAGE },
	{ "munmap", unmap, .stale = ALL, .of_big = true },
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
	{ "fork", fork_alone, .stale = NONE, .of_big = true },
	{ "fork and writing", fork_then_write, .not_on = READ_ONLY, .stale = HELD,
	  .of_big = true },
	{ "fork and writing by the child", child_writes, .not_on = READ_ONLY,
	  .stale = NONE },
	{ "writing to the file", write_file, .only_on = HAS_FILE, .stale = NONE },
	{ "truncating the file", truncate_file, .only_on = HAS_FILE, .stale = ALL },
	{ "truncating the file and reading", truncate_file_read,
	  .only_on = HAS_FILE, .stale = ALL },
	{ "splitting huge pages", split, .not_on = NOT_ANON, .stale = NONE, .thp = true },
	{ "MADV_COLLAPSE", collapse, .not_on = NOT_ANON, .stale = NONE, .thp = true },
	{ "move_pages", migrate, .stale = NONE },
	{ "a KSM scan", ksm_scan, .not_on = NOT_ANON, .stale = NONE },
};

/* Bytes as the owner would read them; false when it could not. */
static bool own_bytes(int memory, const unsigned char *p, unsigned char *to, size_t n)
{
	return pread(memory, to, n, (uintptr_t)p) == (ssize_t)n;
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

/* Not inline: what it writes to is then the same each time. */
static __attribute__((noinline)) long faults(void)
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
	struct ib_gift_stats stats = {};
	long first, last;

	MUST(fd >= 0);
	/* Each is called for nothing first, so that its own pages are there. */
	asked_now();
	faults();
	MUST(!ioctl(fd, IB_GIFT_IOC_STATS, &stats));
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
	CHECK_EQ(mem_pages(m), query.registered);
	*stale = query.stale;
}

/* Bytes of pages called fresh, where a test looks, that the peer has differently. */
static unsigned long lies(struct part *part, const uint64_t *bitmap,
			  const unsigned char *peer)
{
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	const struct mem *m = part->m;
	unsigned char own[PAGE];
	unsigned long sum = 0;
	size_t n;

	MUST(memory >= 0);
	for (size_t at = 0; at < mem_seen(m); at += n) {
		size_t from = at % m->window;
		unsigned char *p = m->p + at / m->window * m->distance + from;

		n = PAGE - (uintptr_t)p % PAGE;
		if (n > m->window - from)
			n = m->window - from;
		if (stale_bit(bitmap, (p - first_page(m)) / PAGE))
			continue;
		/* Only protection may be in the way of looking at a fresh page. */
		if (!own_bytes(memory, p, own, n)) {
			MUST(!mprotect(p - (uintptr_t)p % PAGE, PAGE, PROT_READ));
			MUST(own_bytes(memory, p, own, n));
		}
		sum += !!memcmp(own, peer + at, n);
	}
	close(memory);
	return sum;
}

static bool is_stale(const struct part *part, const struct change *change, size_t page)
{
	size_t first = (part->changed - first_page(part->m)) / PAGE;
	unsigned int traits = traits_of(part->m, page);

	if (page < first || page >= first + part->changed_length / PAGE)
		return false;
	/* Of a mixture those pages that it is possible on. */
	if (traits & (change->not_on | change->fresh))
		return false;
	return change->stale == ALL || traits & change->stale;
}

static void check_cell(struct part *part, struct ibv_mr *mr, const struct change *change)
{
	const struct mem *m = part->m;
	const size_t pages = mem_pages(m);
	uint64_t *bitmap = calloc(pages / 64 + 1, sizeof(*bitmap)), stale;
	unsigned long missing = 0, too_many = 0, set = 0;
	unsigned char *peer;

	MUST(bitmap);
	/* In memory before it is written to by the kernel. */
	for (size_t i = 0; i <= pages / 64; i++)
		((volatile uint64_t *)bitmap)[i] = 0;
	ask(m, bitmap, &stale);
	/* The peer first: the owner's own look faults pages in. */
	peer = pair_look(part->pair, mr, m);
	for (size_t i = 0; i < pages; i++) {
		bool expected = is_stale(part, change, i), got = stale_bit(bitmap, i);

		set += got;
		missing += expected && !got;
		too_many += got && !expected;
	}
	CHECK_EQ(0, lies(part, bitmap, peer));
	CHECK_EQ(0, missing);
	CHECK_EQ(0, too_many);
	CHECK_EQ(stale, set);
	free(peer);
	free(bitmap);
}

/* Of what is large a peer reads a part of every 128 KiB; of all the bits are compared. */
static void set_windows(struct mem *m)
{
	if (m->windows > 1 || m->length <= SMALL)
		return;
	m->distance = 32 * PAGE;
	m->window = 4 * PAGE;
	m->windows = m->length / m->distance;
}

static void set_part_windows(struct mem *part)
{
	part->windows = 1;
	part->window = part->length;
}

/* The second huge page, the middle half of small ones, or what is written sparsely. */
static void choose_part(struct part *part)
{
	const struct mem *m = part->m;
	size_t pages = mem_pages(m);

	part->p = first_page(m);
	part->length = pages * PAGE;
	if (m->windows > 1) {
		part->p += m->distance;
		part->length = m->window;
	} else if (m->length == LARGE) {
		part->p += THP_SIZE;
		part->length = THP_SIZE;
	} else if (!m->kind->length) {
		part->p += pages / 4 * PAGE;
		part->length = pages / 2 * PAGE;
	}
	part->changed = part->p;
	part->changed_length = part->length;
}

static void cell(const struct mem_kind *kind, const struct change *change)
{
	struct mem m = mem_make(kind, kind->huge || change->thp ? LARGE : SMALL);
	/* After the fork of a kind that is shared by one. */
	struct pair pair = pair_new(NULL);
	struct part part = { .m = &m, .pair = &pair };
	struct ibv_mr *mr;

	if (m.nr_parts)
		mem_each(&m, set_part_windows);
	choose_part(&part);
	set_windows(&m);
	test_context("%s", change->name);
	/* Now, or it could come to lie where the change leaves a gap. */
	pair.into = mr_new(pair.peer->pd, m.window);
	mr = mr_reg(pair.owner->pd, m.p, m.length, GIFT_READ);
	change->make(&part);
	check_cell(&part, mr, change);
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

static bool applies(const struct mem_kind *kind, const struct change *change)
{
	const bool big = kind->length > 1;
	/* The pages' traits are no matter here, of which the mixture has all. */
	unsigned char taken = kind->taken;
	const struct mem like = { .kind = kind, .taken = &taken };
	const unsigned int traits = traits_of(&like, 0);

	if (big)
		return change->of_big;
	if (change->thp && kind->length)
		return false;
	return !(traits & change->not_on) &&
	       (!change->only_on || traits & change->only_on);
}

struct of_big {
	const struct mem_kind *kind;
	const struct change *change;
};

static void cell_of_big(void *arg)
{
	struct of_big *big = arg;

	cell(big->kind, big->change);
}

/* To make a mixture is to enter a cgroup for good, hence a process for each of what is big. */
static void all_changes(const struct test_case *c)
{
	const struct mem_kind *kind = c->arg;

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		struct of_big big = { kind, &changes[i] };

		if (!applies(kind, &changes[i]))
			continue;
		if (kind->length > 1)
			test_join(test_fork(cell_of_big, &big));
		else
			cell(kind, &changes[i]);
	}
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

static struct test_case *cases;
static size_t nr_cases;

int main(int argc, char **argv)
{
	static const struct test_case others[] = {
		{ "zeros that are collapsed into a huge page are called stale", collapsed },
		{ "held memory that is swapped out is called stale until it is back",
		  swapped_out },
		{ "memory that was swapped out before is taken in, and is fresh",
		  swapped_before },
	};

	cases = calloc(mem_nr_kinds + ARRAY_LEN(others), sizeof(*cases));
	if (!cases)
		abort();
	for (size_t i = 0; i < mem_nr_kinds; i++) {
		struct test_case *c = &cases[nr_cases++];
		char *name;

		if (asprintf(&name, "%s: the changed pages are called stale, and only they",
			     mem_kinds[i]->name) < 0)
			abort();
		*c = (struct test_case){
			.name = name, .run = all_changes, .arg = mem_kinds[i], .timeout = 200,
		};
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		cases[nr_cases++] = others[i];
	return test_main(argc, argv, cases, nr_cases, dev_ready);
}
