// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns the making of every kind of memory; see mem.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "mem.h"
#include "proc.h"
#include "rc.h"
#include "test.h"

#define PAGE		4096UL
#define THP		(2 * MIB)
#define THP_DIR		"/sys/kernel/mm/transparent_hugepage/"
#define KSM_DIR		"/sys/kernel/mm/ksm/"
#define HUGE_NR		"/proc/sys/vm/nr_hugepages"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

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

static void map_anon(struct mem *m, size_t unit, int advice)
{
	m->p = mem_map(m->length, unit, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1);
	MUST(!madvise(m->p, m->length, advice));
}

static void read_every_page(struct mem *m)
{
	for (size_t i = 0; i < m->length; i += PAGE)
		(void)*(volatile unsigned char *)(m->p + i);
}

static void make_untouched(struct mem *m)
{
	map_anon(m, PAGE, MADV_NOHUGEPAGE);
}

static void make_read(struct mem *m)
{
	make_untouched(m);
	read_every_page(m);
}

static void make_written(struct mem *m)
{
	make_untouched(m);
	test_fill(m->p, m->length, 1);
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

/* Groups of pages that are alike. Merged is merged when Pss is one of a group. */
#define KSM_ALIKE 8

static void make_ksm(struct mem *m)
{
	const long long merged = m->length / KSM_ALIKE + m->length / 64;
	double end;

	if (!proc_write(KSM_DIR "pages_to_scan", "20000") ||
	    !proc_write(KSM_DIR "sleep_millisecs", "1") ||
	    !proc_write(KSM_DIR "run", "1"))
		test_skip("cannot switch on " KSM_DIR);
	make_untouched(m);
	for (size_t i = 0; i < m->length; i += PAGE)
		test_fill(m->p + i, PAGE, 7 + i / (KSM_ALIKE * PAGE));
	MUST(!madvise(m->p, m->length, MADV_MERGEABLE));
	end = test_now() + 40;
	while (mem_range(m->p, m->length, "Pss") > merged) {
		if (test_now() > end) {
			test_fail(__FILE__, __LINE__,
				  "KSM: expected the pages to be merged within 40 s, Pss is %lld of %zu",
				  mem_range(m->p, m->length, "Pss"), m->length);
			test_exit();
		}
		test_sleep_ms(100);
	}
	/* What follows measures registration, not a scan that goes on. */
	proc_write(KSM_DIR "run", "0");
}

static void serve(struct mem *m, int sock)
{
	unsigned char order[2];

	while (recv(sock, order, 2, MSG_WAITALL) == 2) {
		switch (order[0]) {
		case MEM_WRITE:
			memset(m->p, order[1], m->length);
			break;
		case MEM_UNMAP:
			munmap(m->p, m->length);
			break;
		case MEM_EXIT:
			_exit(0);
		}
		if (send(sock, order, 1, MSG_NOSIGNAL) != 1)
			break;
	}
	_exit(0);
}

void mem_other(struct mem *m, enum mem_order order, unsigned char byte)
{
	unsigned char record[2] = { order, byte };

	sock_put(m->sock, record, 2);
	if (order != MEM_EXIT)
		sock_get(m->sock, record, 1);
	else if (m->other > 0)
		MUST(waitpid(m->other, NULL, 0) == m->other);
}

static void share(struct mem *m, bool region_in_child)
{
	int sock[2];
	pid_t pid;

	fflush(stdout);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = fork();
	MUST(pid >= 0);
	if (!!pid != region_in_child) {
		/* This side owns the region, the other one obeys. */
		m->sock = sock[0];
		m->other = pid;
		close(sock[1]);
		return;
	}
	close(sock[0]);
	if (!pid)
		serve(m, sock[1]);
	/* The case's process is the one that shares: it ends as its child does. */
	pid_t server = fork();

	MUST(server >= 0);
	if (!server)
		serve(m, sock[1]);
	/* Its own copy of the mapping would be a third one. */
	munmap(m->p, m->length);
	close(sock[1]);
	test_join(pid);
	test_exit();
}

static void make_forked_parent(struct mem *m)
{
	make_written(m);
	share(m, false);
}

static void make_forked_child(struct mem *m)
{
	make_written(m);
	share(m, true);
}

/* A file of its own, gone from its directory, for the kinds that need one. */
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
	m->p = mem_map(m->length, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, m->fd);
}

static void make_file_hole(struct mem *m)
{
	m->fd = new_file();
	MUST(!ftruncate(m->fd, m->length));
	m->p = mem_map(m->length, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, m->fd);
}

static void make_shared_file(struct mem *m)
{
	m->fd = new_file();
	write_file(m->fd, m->length);
	m->p = mem_map(m->length, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd);
}

static void make_memfd(struct mem *m)
{
	m->fd = memfd_create("selftest", MFD_CLOEXEC);
	MUST(m->fd >= 0);
	MUST(!ftruncate(m->fd, m->length));
	m->p = mem_map(m->length, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd);
}

static void need_thp(void)
{
	char mode[64] = "";
	int fd = open(THP_DIR "enabled", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, mode, sizeof(mode) - 1) <= 0)
		test_skip("no transparent huge pages in this kernel");
	close(fd);
	if (strstr(mode, "[never]"))
		test_skip("transparent huge pages are switched off");
}

static void make_thp_untouched(struct mem *m)
{
	need_thp();
	if (proc_number(THP_DIR "use_zero_page") != 1)
		test_skip("the huge zero page is switched off");
	map_anon(m, THP, MADV_HUGEPAGE);
}

static void make_thp_written(struct mem *m)
{
	need_thp();
	map_anon(m, THP, MADV_HUGEPAGE);
	test_fill(m->p, m->length, 5);
	if (mem_range(m->p, m->length, "AnonHugePages") != (long long)m->length)
		test_skip("memory too fragmented for huge pages");
}

static void make_thp_forked(struct mem *m)
{
	make_thp_written(m);
	share(m, false);
}

static void map_hugetlb(struct mem *m, int flags)
{
	long long size = proc_field("/proc/meminfo", "Hugepagesize") * 1024;
	char count[32];

	if (size != (long long)THP)
		test_skip("no huge pages of 2 MiB");
	snprintf(count, sizeof(count), "%zu", 2 * m->length / THP);
	if (!proc_write(HUGE_NR, count) ||
	    mem_huge_free() < 2 * (long long)m->length)
		test_skip("no %s huge pages to be had", count);
	m->p = mem_map(m->length, THP, PROT_READ | PROT_WRITE,
		       flags | MAP_ANONYMOUS | MAP_HUGETLB, -1);
}

static void make_hugetlb_private(struct mem *m)
{
	map_hugetlb(m, MAP_PRIVATE);
	test_fill(m->p, m->length, 6);
}

static void make_hugetlb_shared(struct mem *m)
{
	map_hugetlb(m, MAP_SHARED);
	test_fill(m->p, m->length, 6);
}

const struct mem_kind mem_untouched = {
	.name = "untouched",
	.make = make_untouched,
	.taken = IB_GIFT_PAGE_ZERO,
	.plain_copies = true,
};

const struct mem_kind mem_read = {
	.name = "only read so far",
	.make = make_read,
	.taken = IB_GIFT_PAGE_ZERO,
	.plain_copies = true,
};

const struct mem_kind mem_written = {
	.name = "written",
	.make = make_written,
	.taken = IB_GIFT_PAGE_PINNED,
};

const struct mem_kind mem_ksm = {
	.name = "KSM-merged",
	.make = make_ksm,
	.taken = IB_GIFT_PAGE_KSM,
	.plain_copies = true,
};

const struct mem_kind mem_forked_parent = {
	.name = "shared by fork, region in the parent",
	.make = make_forked_parent,
	.taken = IB_GIFT_PAGE_SHARED,
	.plain_copies = true,
};

const struct mem_kind mem_forked_child = {
	.name = "shared by fork, region in the child",
	.make = make_forked_child,
	.taken = IB_GIFT_PAGE_SHARED,
	.plain_copies = true,
};

const struct mem_kind mem_private_file = {
	.name = "private file",
	.make = make_private_file,
	.taken = IB_GIFT_PAGE_FILE,
	.plain_copies = true,
};

const struct mem_kind mem_file_hole = {
	.name = "private file with a hole",
	.make = make_file_hole,
	.taken = IB_GIFT_PAGE_FILE,
	.plain_copies = true,
	.fills_cache = true,
};

const struct mem_kind mem_shared_file = {
	.name = "shared file",
	.make = make_shared_file,
	.taken = IB_GIFT_PAGE_PINNED,
};

const struct mem_kind mem_memfd = {
	.name = "untouched memfd",
	.make = make_memfd,
	.taken = IB_GIFT_PAGE_PINNED,
	.fills_cache = true,
};

const struct mem_kind mem_readonly_untouched = {
	.name = "untouched PROT_READ",
	.make = make_readonly_untouched,
	.taken = IB_GIFT_PAGE_ZERO,
	.plain_copies = true,
	.read_only = true,
};

const struct mem_kind mem_readonly_written = {
	.name = "written PROT_READ",
	.make = make_readonly_written,
	.taken = IB_GIFT_PAGE_PINNED,
	.read_only = true,
};

const struct mem_kind mem_thp_untouched = {
	.name = "untouched THP",
	.make = make_thp_untouched,
	.taken = IB_GIFT_PAGE_HUGE_ZERO,
	.plain_copies = true,
	.unit = THP,
};

const struct mem_kind mem_thp_written = {
	.name = "written THP",
	.make = make_thp_written,
	.taken = IB_GIFT_PAGE_PINNED,
	.unit = THP,
};

const struct mem_kind mem_thp_forked = {
	.name = "THP shared by fork",
	.make = make_thp_forked,
	.taken = IB_GIFT_PAGE_SHARED,
	.plain_copies = true,
	.unit = THP,
};

const struct mem_kind mem_hugetlb_private = {
	.name = "written private hugetlb",
	.make = make_hugetlb_private,
	.taken = IB_GIFT_PAGE_PINNED,
	.unit = THP,
};

const struct mem_kind mem_hugetlb_shared = {
	.name = "written shared hugetlb",
	.make = make_hugetlb_shared,
	.taken = IB_GIFT_PAGE_PINNED,
	.unit = THP,
};

bool mem_coherent(const struct mem_kind *kind)
{
	return kind->taken == IB_GIFT_PAGE_PINNED;
}

struct mem mem_make(const struct mem_kind *kind, size_t length)
{
	struct mem m = { .kind = kind, .length = length, .fd = -1, .sock = -1 };

	kind->make(&m);
	return m;
}

void mem_drop(struct mem *m)
{
	if (m->sock >= 0) {
		mem_other(m, MEM_EXIT, 0);
		close(m->sock);
	}
	MUST(!munmap(m->p, m->length));
	if (m->fd >= 0)
		close(m->fd);
	if (m->kind == &mem_hugetlb_private || m->kind == &mem_hugetlb_shared)
		proc_write(HUGE_NR, "0");
	m->p = NULL;
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
