// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Owns the making of every kind of memory, and the table that says what is expected
 * of each; see mem.h.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "mem.h"
#include "mm.h"
#include "proc.h"
#include "rc.h"
#include "test.h"

#define HUGE_NR		"/proc/sys/vm/nr_hugepages"

#define RW		(PROT_READ | PROT_WRITE)

void *mem_map(size_t length, size_t unit, int prot, int flags, int fd)
{
	uintptr_t start;
	char *area;
	void *p;

	/* The gaps keep the mapping from growing together with its neighbours. */
	area = mmap(NULL, length + 2 * unit + 2 * PAGE, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(area != MAP_FAILED);
	start = ((uintptr_t)area + PAGE + unit - 1) & ~(unit - 1);
	p = mmap((void *)start, length, prot, flags | MAP_FIXED, fd, 0);
	MUST(p != MAP_FAILED);
	return p;
}

/* Maps it where it has to lie, or anywhere with the alignment of a huge page. */
static void map(struct mem *m, int prot, int flags)
{
	if (m->place) {
		m->p = mmap(m->place, m->length, prot, flags | MAP_FIXED, m->fd, 0);
		MUST(m->p == m->place);
	} else {
		m->p = mem_map(m->length, THP_SIZE, prot, flags, m->fd);
	}
	m->map = m->p;
	m->map_length = m->length;
}

static void map_anon(struct mem *m, int advice)
{
	map(m, RW, MAP_PRIVATE | MAP_ANONYMOUS);
	MUST(!madvise(m->p, m->length, advice));
}

static void read_every_page(struct mem *m)
{
	for (size_t i = 0; i < m->length; i += PAGE)
		(void)*(volatile unsigned char *)(m->p + i);
}

static void fill(struct mem *m, unsigned int seed)
{
	for (size_t i = 0; i < m->length; i += PAGE)
		test_fill(m->p + i, m->length - i < PAGE ? m->length - i : PAGE,
			  seed * 100000 + i / (MEM_ALIKE * PAGE));
}

/* 4 KiB pages */

static void make_untouched(struct mem *m)
{
	map_anon(m, MADV_NOHUGEPAGE);
}

static void make_read(struct mem *m)
{
	make_untouched(m);
	read_every_page(m);
}

static void make_written(struct mem *m)
{
	make_untouched(m);
	fill(m, 1);
}

static void make_readonly_untouched(struct mem *m)
{
	make_untouched(m);
	MUST(!mprotect(m->p, m->length, PROT_READ));
}

static void make_readonly_written(struct mem *m)
{
	make_written(m);
	MUST(!mprotect(m->p, m->length, PROT_READ));
}

static void make_ksm(struct mem *m)
{
	/* One of a group is left. */
	const long long merged = m->length / MEM_ALIKE + m->length / 64;
	double end;

	make_untouched(m);
	fill(m, 2);
	mm_ksm_start();
	MUST(!madvise(m->p, m->length, MADV_MERGEABLE));
	end = test_now() + 60 * test_slowness();
	while (mem_range(m->p, m->length, "Pss") > merged) {
		if (test_now() > end) {
			test_fail(__FILE__, __LINE__,
				  "KSM: expected the pages to be merged within 60 s, Pss is %lld of %zu",
				  mem_range(m->p, m->length, "Pss"), m->length);
			test_exit();
		}
		test_sleep_ms(20);
	}
	/* What follows measures registration, not a scan that goes on. */
	mm_ksm_stop();
}

static void make_forked_parent(struct mem *m)
{
	make_written(m);
	mem_share(m, false);
}

static void make_forked_child(struct mem *m)
{
	make_written(m);
	mem_share(m, true);
}

static void make_swapped(struct mem *m)
{
	/* Reclaim of the cgroup leaves none of it in the swap cache. */
	mm_cgroup_enter();
	make_written(m);
	mm_cgroup_reclaim();
	MUST(mem_range(m->p, m->length, "Swap") == (long long)m->length);
}

static void make_forked_swapped(struct mem *m)
{
	mm_cgroup_enter();
	make_written(m);
	mem_share(m, false);
	mm_cgroup_reclaim();
	MUST(mem_range(m->p, m->length, "Swap") == (long long)m->length);
}

/* Files */

/* One that is gone from its directory. */
static int new_file(void)
{
	static const char *const dirs[] = { "/var/tmp", "/tmp" };
	char path[64];
	int fd = -1;

	for (size_t i = 0; i < ARRAY_LEN(dirs) && fd < 0; i++) {
		snprintf(path, sizeof(path), "%s/selftest-XXXXXX", dirs[i]);
		fd = mkostemp(path, O_CLOEXEC);
	}
	MUST(fd >= 0);
	unlink(path);
	return fd;
}

static void write_file(int fd, size_t length)
{
	unsigned char *buf = malloc(length);

	MUST(buf);
	test_fill(buf, length, 3);
	MUST(pwrite(fd, buf, length, 0) == (ssize_t)length);
	free(buf);
}

static void make_private_file(struct mem *m)
{
	m->fd = new_file();
	write_file(m->fd, m->length);
	map(m, RW, MAP_PRIVATE);
}

static void make_file_read(struct mem *m)
{
	make_private_file(m);
	read_every_page(m);
}

static void make_file_hole(struct mem *m)
{
	m->fd = new_file();
	MUST(!ftruncate(m->fd, m->length));
	map(m, RW, MAP_PRIVATE);
}

static void make_file_written(struct mem *m)
{
	make_private_file(m);
	fill(m, 4);
}

static void make_shared_file(struct mem *m)
{
	m->fd = new_file();
	write_file(m->fd, m->length);
	map(m, RW, MAP_SHARED);
}

static void make_memfd(struct mem *m)
{
	m->fd = memfd_create("selftest", MFD_CLOEXEC);
	MUST(m->fd >= 0);
	MUST(!ftruncate(m->fd, m->length));
	map(m, RW, MAP_SHARED);
}

/* Huge pages */

static void make_thp_untouched(struct mem *m)
{
	mm_thp_ready();
	map_anon(m, MADV_HUGEPAGE);
}

static void make_thp_read(struct mem *m)
{
	make_thp_untouched(m);
	read_every_page(m);
}

static void make_thp_written(struct mem *m)
{
	make_thp_untouched(m);
	fill(m, 5);
	if (mem_range(m->p, m->length, "AnonHugePages") != (long long)m->length)
		madvise(m->p, m->length, MADV_COLLAPSE);
	MUST(mem_range(m->p, m->length, "AnonHugePages") == (long long)m->length);
}

/* The range of a huge page, of which every other page was written. */
static void make_thp_half(struct mem *m)
{
	mm_thp_ready();
	map_anon(m, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < m->length / PAGE; i++) {
		if (i % 2)
			test_fill(m->p + i * PAGE, PAGE, i);
		m->taken[i] = i % 2 ? IB_GIFT_PAGE_PINNED : IB_GIFT_PAGE_ZERO;
	}
	MUST(!madvise(m->p, m->length, MADV_HUGEPAGE));
}

/* Huge pages of which the process gave back the second half. */
static void make_thp_halved(struct mem *m)
{
	make_thp_written(m);
	for (size_t i = 0; i < m->length; i += THP_SIZE) {
		MUST(!madvise(m->p + i + THP_SIZE / 2, THP_SIZE / 2, MADV_DONTNEED));
		memset(m->taken + i / PAGE, IB_GIFT_PAGE_PINNED, THP_SIZE / 2 / PAGE);
		memset(m->taken + (i + THP_SIZE / 2) / PAGE, IB_GIFT_PAGE_ZERO,
		       THP_SIZE / 2 / PAGE);
	}
}

static void make_thp_forked(struct mem *m)
{
	make_thp_written(m);
	mem_share(m, false);
}

static void make_thp_forked_child(struct mem *m)
{
	make_thp_written(m);
	mem_share(m, true);
}

/* Enough for the copies that forks make, of other parts of a mixture as well. */
static void map_hugetlb(struct mem *m, int flags)
{
	mm_hugetlb_reserve(6 * m->length);
	map(m, RW, flags | MAP_ANONYMOUS | MAP_HUGETLB);
}

static void make_hugetlb_untouched(struct mem *m)
{
	map_hugetlb(m, MAP_PRIVATE);
}

static void make_hugetlb_private(struct mem *m)
{
	map_hugetlb(m, MAP_PRIVATE);
	fill(m, 6);
}

static void make_hugetlb_shared(struct mem *m)
{
	map_hugetlb(m, MAP_SHARED);
	fill(m, 6);
}

static void make_hugetlb_forked(struct mem *m)
{
	make_hugetlb_private(m);
	mem_share(m, false);
}

static void make_hugetlb_forked_child(struct mem *m)
{
	make_hugetlb_private(m);
	mem_share(m, true);
}

/* Ranges */

/* Runs of untouched and of written pages, beginning and ending within a page. */
static void make_unaligned(struct mem *m)
{
	make_untouched(m);
	for (size_t i = 0; i < m->length / PAGE; i++) {
		bool written = i / 16 % 2;

		if (written)
			test_fill(m->p + i * PAGE, PAGE, i);
		m->taken[i] = written ? IB_GIFT_PAGE_PINNED : IB_GIFT_PAGE_ZERO;
	}
	m->p += 100;
	m->length -= PAGE + 300;
}

static void make_one_byte(struct mem *m)
{
	m->length = 2 * PAGE;
	make_written(m);
	m->p += PAGE - 1;
	m->length = 1;
}

/* Next to nothing of it was written. */
static void make_sparse(struct mem *m)
{
	make_untouched(m);
	m->windows = 16;
	m->window = 4 * PAGE;
	m->distance = m->length / m->windows;
	memset(m->taken, IB_GIFT_PAGE_ZERO, m->length / PAGE);
	for (size_t i = 0; i < m->windows; i++) {
		for (size_t j = 0; j < 4; j += 2) {
			test_fill(m->p + i * m->distance + j * PAGE, PAGE, i + j);
			m->taken[i * m->distance / PAGE + j] = IB_GIFT_PAGE_PINNED;
		}
	}
}

/*
 * Every kind in one range: 4 KiB pages in the first huge page's worth, a huge page
 * of each kind that is made of those behind it. Neighbours differ so much that the
 * kernel does not make one mapping of two. Memory that is shared by fork is made
 * first, since the process that shares it shares all that was there before.
 */
static const struct mixed_part {
	const struct mem_kind *kind;
	unsigned int slot;
} mixed_parts[] = {
	{ &mem_forked_parent, 0 },
	{ &mem_thp_forked, 16 },
	{ &mem_hugetlb_forked, 17 },
	{ &mem_private_file, 1 },
	{ &mem_untouched, 2 },
	{ &mem_file_hole, 3 },
	{ &mem_written, 4 },
	{ &mem_shared_file, 5 },
	{ &mem_read, 6 },
	{ &mem_memfd, 7 },
	{ &mem_swapped, 8 },
	{ &mem_file_written, 9 },
	{ &mem_readonly_untouched, 10 },
	{ &mem_ksm, 11 },
	{ &mem_readonly_written, 12 },
	{ &mem_file_read, 13 },
	{ &mem_written, 14 },
	{ &mem_untouched, 15 },
	{ &mem_thp_written, 18 },
	{ &mem_hugetlb_shared, 19 },
	{ &mem_thp_halved, 20 },
	{ &mem_hugetlb_untouched, 21 },
	{ &mem_thp_untouched, 22 },
	{ &mem_thp_read, 23 },
	{ &mem_hugetlb_private, 24 },
	{ &mem_thp_half, 25 },
};

#define SLOTS_OF_PAGES	16
#define SLOTS		26

static size_t slot_start(unsigned int slot)
{
	return slot < SLOTS_OF_PAGES ? slot * (THP_SIZE / SLOTS_OF_PAGES) :
				       (slot - SLOTS_OF_PAGES + 1) * THP_SIZE;
}

static void make_mixed(struct mem *m)
{
	m->length = slot_start(SLOTS);
	map(m, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	m->nr_parts = ARRAY_LEN(mixed_parts);
	m->parts = calloc(m->nr_parts, sizeof(*m->parts));
	MUST(m->parts);
	for (size_t i = 0; i < m->nr_parts; i++) {
		const struct mixed_part *mp = &mixed_parts[i];
		size_t start = slot_start(mp->slot);
		struct mem *part = &m->parts[i];

		*part = (struct mem){
			.kind = mp->kind, .place = m->map + start,
			.length = slot_start(mp->slot + 1) - start,
			.taken = m->taken + start / PAGE, .fd = -1, .sock = -1,
		};
		memset(part->taken, part->kind->taken, part->length / PAGE);
		part->kind->make(part);
	}
}

/*
 * The table. scripts/lint compares it with the one in Documentation/gift.rst:
 * id, name, sort of mapping, how GIFT takes it, what any registration fills.
 */
#define MEM_KIND(id, text, sort_, how, fill, ...)					\
	const struct mem_kind mem_##id = {					\
		.name = text, .make = make_##id, .sort = SORT_##sort_,		\
		.taken = IB_GIFT_PAGE_##how, .fills = FILLS_##fill,		\
		__VA_ARGS__							\
	}

#define IB_GIFT_PAGE_BOTH	IB_GIFT_PAGE_KINDS

MEM_KIND(untouched, "untouched memory", ANON, ZERO, NOTHING);
MEM_KIND(read, "memory that was only read", ANON, ZERO, NOTHING);
MEM_KIND(written, "written memory", ANON, PINNED, NOTHING);
MEM_KIND(ksm, "memory merged by KSM", ANON, KSM, NOTHING);
MEM_KIND(forked_parent, "memory shared by fork, region in the parent", ANON, SHARED, NOTHING);
MEM_KIND(forked_child, "memory shared by fork, region in the child", ANON, SHARED, NOTHING);
MEM_KIND(swapped, "written memory, swapped out", ANON, PINNED, ANON);
MEM_KIND(forked_swapped, "memory shared by fork, swapped out", ANON, PINNED, ANON,
	 .unshares = true);
MEM_KIND(readonly_untouched, "untouched PROT_READ memory", ANON, ZERO, NOTHING,
	 .read_only = true);
MEM_KIND(readonly_written, "PROT_READ memory, written before", ANON, PINNED, NOTHING,
	 .read_only = true);
MEM_KIND(thp_untouched, "untouched THP", ANON, HUGE_ZERO, NOTHING,
	 .huge = true);
MEM_KIND(thp_read, "THP that was only read", ANON, HUGE_ZERO, NOTHING,
	 .huge = true);
MEM_KIND(thp_written, "written THP", ANON, PINNED, NOTHING,
	 .huge = true);
MEM_KIND(thp_half, "half-written THP", ANON, BOTH, NOTHING,
	 .huge = true);
MEM_KIND(thp_halved, "written THP, half given back", ANON, BOTH, NOTHING,
	 .huge = true);
MEM_KIND(thp_forked, "THP shared by fork, region in the parent", ANON, SHARED, NOTHING,
	 .huge = true);
MEM_KIND(thp_forked_child, "THP shared by fork, region in the child", ANON, SHARED, NOTHING,
	 .huge = true);
MEM_KIND(private_file, "private file, in the cache", PRIVATE_FILE, FILE, NOTHING,
	 .unmapped = true);
MEM_KIND(file_read, "private file, read through the mapping", PRIVATE_FILE, FILE, NOTHING);
MEM_KIND(file_hole, "private file, hole", PRIVATE_FILE, FILE, CACHE);
MEM_KIND(file_written, "private file, written", PRIVATE_FILE, PINNED, NOTHING);
MEM_KIND(shared_file, "shared file", SHARED, PINNED, NOTHING, .unmapped = true);
MEM_KIND(memfd, "memfd, untouched", SHARED, PINNED, CACHE);
MEM_KIND(hugetlb_untouched, "private hugetlb, untouched", HUGETLB_PRIVATE, PINNED, HUGE,
	 .huge = true);
MEM_KIND(hugetlb_private, "private hugetlb, written", HUGETLB_PRIVATE, PINNED, NOTHING,
	 .huge = true);
MEM_KIND(hugetlb_shared, "shared hugetlb, written", HUGETLB_SHARED, PINNED, NOTHING,
	 .huge = true);
MEM_KIND(hugetlb_forked, "private hugetlb shared by fork, region in the parent",
	 HUGETLB_PRIVATE, PINNED, HUGE,
	 .huge = true);
MEM_KIND(hugetlb_forked_child, "private hugetlb shared by fork, region in the child",
	 HUGETLB_PRIVATE, PINNED, HUGE,
	 .huge = true);
MEM_KIND(unaligned, "an unaligned range", ANON, BOTH, NOTHING);
MEM_KIND(one_byte, "one byte", ANON, PINNED, NOTHING, .length = 1);
MEM_KIND(sparse, "1 GiB with a few pages written", ANON, BOTH, NOTHING,
	 .length = 1024 * MIB);
MEM_KIND(mixed, "all of these in one range", MIXED, BOTH, NOTHING, .length = 22 * MIB);

const struct mem_kind *const mem_kinds[] = {
	&mem_untouched, &mem_read, &mem_written, &mem_ksm, &mem_forked_parent,
	&mem_forked_child, &mem_swapped, &mem_forked_swapped,
	&mem_readonly_untouched, &mem_readonly_written, &mem_thp_untouched,
	&mem_thp_read, &mem_thp_written, &mem_thp_half, &mem_thp_halved,
	&mem_thp_forked, &mem_thp_forked_child, &mem_private_file, &mem_file_read, &mem_file_hole,
	&mem_file_written, &mem_shared_file, &mem_memfd, &mem_hugetlb_untouched,
	&mem_hugetlb_private, &mem_hugetlb_shared, &mem_hugetlb_forked,
	&mem_hugetlb_forked_child, &mem_unaligned, &mem_one_byte,
	&mem_sparse, &mem_mixed,
};

const size_t mem_nr_kinds = ARRAY_LEN(mem_kinds);

bool mem_is_hugetlb(const struct mem_kind *kind)
{
	return kind->sort == SORT_HUGETLB_PRIVATE || kind->sort == SORT_HUGETLB_SHARED;
}

bool mem_coherent(const struct mem_kind *kind)
{
	return kind->taken == IB_GIFT_PAGE_PINNED;
}

struct mem mem_make(const struct mem_kind *kind, size_t length)
{
	struct mem m = { .kind = kind, .fd = -1, .sock = -1 };
	size_t pages;

	m.length = kind->length ? kind->length : length;
	pages = m.length / PAGE + 2;
	m.taken = malloc(pages);
	MUST(m.taken);
	memset(m.taken, kind->taken, pages);
	kind->make(&m);
	if (!m.windows) {
		m.windows = 1;
		m.window = m.length;
	}
	return m;
}

static void drop_sharer(struct mem *m)
{
	if (m->sock >= 0)
		mem_other(m, MEM_EXIT, 0);
	if (m->fd >= 0)
		close(m->fd);
}

void mem_drop(struct mem *m)
{
	mem_each(m, drop_sharer);
	MUST(!munmap(m->map, m->map_length));
	if (m->kind->sort >= SORT_HUGETLB_PRIVATE)
		proc_write(HUGE_NR, "0");
	free(m->taken);
	free(m->parts);
	m->p = NULL;
}

void mem_each(struct mem *m, void (*fn)(struct mem *part))
{
	if (!m->nr_parts)
		fn(m);
	for (size_t i = 0; i < m->nr_parts; i++)
		fn(&m->parts[i]);
}

const struct mem *mem_at(const struct mem *m, size_t page)
{
	for (size_t i = 0; i < m->nr_parts; i++) {
		size_t first = (m->parts[i].map - m->map) / PAGE;

		if (page >= first && page < first + m->parts[i].length / PAGE)
			return &m->parts[i];
	}
	return m;
}

size_t mem_pages(const struct mem *m)
{
	return ((uintptr_t)m->p % PAGE + m->length + PAGE - 1) / PAGE;
}

size_t mem_taken(const struct mem *m, enum ib_gift_page_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < mem_pages(m); i++)
		n += m->taken[i] == kind;
	return n;
}

void mem_write(struct mem *m, unsigned char byte)
{
	for (size_t i = 0; i < m->nr_parts; i++)
		if (!m->parts[i].kind->read_only)
			memset(m->parts[i].p, byte, m->parts[i].length);
	if (m->nr_parts || m->kind->read_only)
		return;
	for (size_t i = 0; i < m->windows; i++)
		memset(m->p + i * m->distance, byte, m->window);
}

size_t mem_seen(const struct mem *m)
{
	return m->windows * m->window;
}

unsigned char *mem_look(const struct mem *m)
{
	unsigned char *copy = malloc(mem_seen(m));

	MUST(copy);
	for (size_t i = 0; i < m->windows; i++)
		memcpy(copy + i * m->window, m->p + i * m->distance, m->window);
	return copy;
}

struct ib_gift_stats gift_stats(void)
{
	struct ib_gift_stats stats = {};
	int fd;

	fd = open("/dev/ib_gift", O_RDWR | O_CLOEXEC);
	/* Another driver, tested for comparison, may be without the module. */
	if (fd < 0 && errno == ENOENT && !dev_is_sample())
		return stats;
	MUST(fd >= 0);
	MUST_ERR(0, ioctl(fd, IB_GIFT_IOC_STATS, &stats) ? errno : 0);
	close(fd);
	return stats;
}
