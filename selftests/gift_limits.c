// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How much may be registered and what it costs the kernel: RLIMIT_MEMLOCK, the
 * rdma cgroup, reference counts that must not overflow, the size of scatterlists,
 * and a long registration that is interrupted. What RLIMIT_MEMLOCK does with
 * single kinds of memory is in reg_bad.c.
 */
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/kcore.h"
#include "lib/mem.h"
#include "lib/mm.h"
#include "lib/pair.h"
#include "lib/proc.h"
#include "lib/stale.h"

#ifndef PAGE
#define PAGE	4096UL
#endif
#define GIB	(1024 * MIB)
#define PLAIN	((unsigned int)IBV_ACCESS_REMOTE_READ)
#define MISC	"/sys/class/misc/ib_gift/"

static struct ibv_pd *pd_new(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);

	MUST(pd);
	return pd;
}

/* At each length up to a few pages, aligned or not: the pages that it touches. */
static void by_the_page(const struct test_case *c)
{
	static const struct { size_t offset, length, pages; } ranges[] = {
		{ 0, 1, 1 }, { 0, PAGE, 1 }, { 0, PAGE + 1, 2 }, { 1, PAGE, 2 },
		{ PAGE - 1, 1, 1 }, { PAGE - 1, 2, 2 }, { PAGE - 1, PAGE + 2, 3 },
		{ 0, 512 * PAGE, 512 }, { PAGE, 512 * PAGE, 512 },
		{ 17, 1000 * PAGE, 1001 },
	};
	struct mem m = mem_make(&mem_untouched, 4 * MIB);
	struct ibv_pd *pd = pd_new();

	drop_ipc_lock();
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		struct ibv_mr *mr;

		test_context("%zu bytes at %zu", ranges[i].length, ranges[i].offset);
		limit_memlock(ranges[i].pages * PAGE - 1);
		CHECK_NULL_ERRNO(ENOMEM, ibv_reg_mr(pd, m.p + ranges[i].offset,
						    ranges[i].length, c->n));
		CHECK_EQ(0, pinned_vm(0));
		limit_memlock(ranges[i].pages * PAGE);
		mr = CHECK_NULL_ERRNO(0, ibv_reg_mr(pd, m.p + ranges[i].offset,
						    ranges[i].length, c->n));
		MUST(mr);
		CHECK_EQ(ranges[i].pages * PAGE, pinned_vm(0));
		/* Full to the page: not another byte. */
		CHECK_NULL_ERRNO(ENOMEM, ibv_reg_mr(pd, m.p, 1, c->n));
		CHECK_EQ(ranges[i].pages * PAGE, pinned_vm(0));
		MUST_ERR(0, ibv_dereg_mr(mr));
		CHECK_EQ(0, pinned_vm(0));
	}
}

static void unlimited(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, 4 * MIB);
	struct ibv_pd *pd = pd_new();

	drop_ipc_lock();
	limit_memlock(RLIM_INFINITY);
	MUST_ERR(0, ibv_dereg_mr(mr_reg(pd, m.p, m.length, c->n)));
	CHECK_EQ(0, pinned_vm(0));
}

/* Gift and plain regions are charged to one account. */
static void one_account(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, 4 * MIB);
	struct ibv_pd *pd = pd_new();
	struct ibv_mr *gift, *plain;

	drop_ipc_lock();
	limit_memlock(4 * MIB);
	gift = mr_reg(pd, m.p, 3 * MIB, GIFT_READ);
	CHECK_NULL_ERRNO(ENOMEM, ibv_reg_mr(pd, m.p, MIB + 1, PLAIN));
	plain = mr_reg(pd, m.p, MIB, PLAIN);
	CHECK_NULL_ERRNO(ENOMEM, ibv_reg_mr(pd, m.p, 1, GIFT_READ));
	MUST_ERR(0, ibv_dereg_mr(gift));
	CHECK_EQ(MIB, pinned_vm(0));
	gift = mr_reg(pd, m.p, 3 * MIB, GIFT_READ);
	MUST_ERR(0, ibv_dereg_mr(gift));
	MUST_ERR(0, ibv_dereg_mr(plain));
}

static int rereg(struct ibv_mr *mr, const struct mem *m)
{
	return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, m->p,
			    m->length, 0);
}

#define CGROUP "/run/gift-limits"

/* Which objects a process may have is counted by the core, gift regions too. */
static void rdma_cgroup(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, 4 * PAGE);
	struct ibv_context *ctx;
	struct ibv_mr *mr[4];
	struct ibv_pd *pd;
	char line[64];

	mkdir(CGROUP, 0755);
	if (mount("none", CGROUP, "cgroup2", 0, NULL) && errno != EBUSY)
		test_skip("no cgroup2: %s", test_strerror(errno));
	if (!proc_write(CGROUP "/cgroup.subtree_control", "+rdma"))
		test_skip("no rdma controller");
	MUST(!mkdir(CGROUP "/gift", 0755) || errno == EEXIST);
	snprintf(line, sizeof(line), "%s hca_object=4", dev_name());
	MUST(proc_write(CGROUP "/gift/rdma.max", line));
	MUST(proc_write(CGROUP "/gift/cgroup.procs", "0"));

	ctx = dev_open()->ctx;
	pd = ibv_alloc_pd(ctx);
	MUST(pd);
	for (int i = 0; i < 3; i++)
		mr[i] = mr_reg(pd, m.p, m.length, GIFT_READ);
	CHECK_NULL_ERRNO(EAGAIN, ibv_reg_mr(pd, m.p, m.length, GIFT_READ));
	CHECK_EQ(3 * m.length, pinned_vm(0));
	CHECK_EQ(3, gift_stats().regions);
	/* A refresh makes no object; the core makes one for registering again. */
	m.p[0] = 1;
	CHECK_EQ(1, refresh(mr[0]));
	CHECK(rereg(mr[0], &m) && errno == EAGAIN);
	CHECK_EQ(0, refresh(mr[0]));
	MUST_ERR(0, ibv_dereg_mr(mr[1]));
	CHECK_EQ(0, rereg(mr[0], &m));
	mr[1] = CHECK_NULL_ERRNO(0, ibv_reg_mr(pd, m.p, m.length, GIFT_READ));
	MUST_ERR(0, ibv_dereg_mr(mr[0]));
	mr[3] = CHECK_NULL_ERRNO(0, ibv_reg_mr(pd, m.p, m.length, GIFT_READ));
	for (int i = 1; i < 4; i++)
		MUST_ERR(0, ibv_dereg_mr(mr[i]));
	MUST_ERR(0, ibv_dealloc_pd(pd));
	/*
	 * A cgroup that goes with limits on a device leaves a dangling entry in the
	 * device's list, on which the kernel stumbles when the device goes.
	 */
	MUST_ERR(0, ibv_close_device(ctx));
	snprintf(line, sizeof(line), "%s hca_handle=max hca_object=max", dev_name());
	MUST(proc_write(CGROUP "/gift/rdma.max", line));
	MUST(proc_write(CGROUP "/cgroup.procs", "0"));
	CHECK(!rmdir(CGROUP "/gift"));
	umount2(CGROUP, MNT_DETACH);
}

/* Untouched memory of any length: more than there is. */
static struct mem sparse_memory(size_t length, size_t unit, int advice)
{
	struct mem m = { .length = length };

	m.p = mem_map(length, unit, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	MUST(!madvise(m.p, length, advice));
	return m;
}

/* The first that is mapped; that it is what it is meant to be is checked. */
static void zero_page_count(const struct test_case *c)
{
	const size_t length = c->n;
	struct mem m = mem_make(&mem_untouched, length);
	struct ibv_pd *pd = pd_new();
	struct ibv_mr *mr;
	long before, during;

	(void)*(volatile unsigned char *)m.p;
	MUST(page_flags(m.p) >> KPF_ZERO_PAGE & 1);
	before = page_references(m.p);
	MUST(before > 0);
	mr = mr_reg(pd, m.p, length, GIFT_READ);
	CHECK_EQ(length / PAGE, gift_stats().pages[IB_GIFT_PAGE_ZERO]);
	during = page_references(m.p);
	test_note("references on the zero page: %ld before, %ld with %zu pages of it registered",
		  before, during, length / PAGE);
	/* Who looks at it in passing has one for a moment. */
	CHECK_BETWEEN(-16, during - before, 16);
	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_BETWEEN(-16, page_references(m.p) - before, 16);
}

/* The huge zero page has one for each of its pages that is registered, and they go again. */
static void huge_zero_count(const struct test_case *c)
{
	struct mem m = mem_make(&mem_thp_read, 4 * THP_SIZE);
	struct ibv_pd *pd = pd_new();
	struct ibv_mr *one, *two;
	long before;

	MUST(page_flags(m.p) >> KPF_ZERO_PAGE & 1 && page_flags(m.p) >> KPF_THP & 1);
	before = page_references(m.p);
	one = mr_reg(pd, m.p, m.length, GIFT_READ);
	CHECK_EQ(m.length / PAGE, gift_stats().pages[IB_GIFT_PAGE_HUGE_ZERO]);
	CHECK_EQ(before + m.length / PAGE, page_references(m.p));
	two = mr_reg(pd, m.p + THP_SIZE, THP_SIZE, GIFT_READ);
	CHECK_EQ(before + 5 * THP_SIZE / PAGE, page_references(m.p));
	/* A refresh gives back those that it takes others for. */
	memset(m.p + 2 * THP_SIZE, 1, THP_SIZE);
	MUST_EQ(THP_SIZE / PAGE, refresh(one));
	CHECK_EQ(before + 4 * THP_SIZE / PAGE, page_references(m.p));
	MUST_ERR(0, ibv_dereg_mr(one));
	CHECK_EQ(before + THP_SIZE / PAGE, page_references(m.p));
	MUST_ERR(0, ibv_dereg_mr(two));
	CHECK_EQ(before, page_references(m.p));
}

/* That a reference would be seen: a page of a file is held with one a region. */
static void held_page_count(const struct test_case *c)
{
	struct mem m = mem_make(&mem_private_file, 4 * PAGE);
	struct ibv_pd *pd = pd_new();
	struct ibv_mr *one, *two;
	long before;

	(void)*(volatile unsigned char *)m.p;
	one = mr_reg(pd, m.p, m.length, GIFT_READ);
	before = page_references(m.p);
	two = mr_reg(pd, m.p, m.length, GIFT_READ);
	CHECK_EQ(before + 1, page_references(m.p));
	MUST_ERR(0, ibv_dereg_mr(two));
	CHECK_EQ(before, page_references(m.p));
	MUST_ERR(0, ibv_dereg_mr(one));
	CHECK_EQ(before - 1, page_references(m.p));
}

/* What the kernel keeps beside the pages: in no account, and what is in the slab. */
static long long kept_now(void)
{
	return mem_lost() + proc_field("/proc/meminfo", "SUnreclaim") * 1024;
}

static long long kept_for(struct ibv_pd *pd, struct mem *m, unsigned int access,
			  long long (*now)(void))
{
	long long before, after;
	struct ibv_mr *mr;

	/* Page tables are there already when it is measured. */
	MUST_ERR(0, ibv_dereg_mr(mr_reg(pd, m->p, m->length, access)));
	before = now();
	mr = mr_reg(pd, m->p, m->length, access);
	after = now();
	MUST_ERR(0, ibv_dereg_mr(mr));
	return after - before;
}

/*
 * A range of any length in which no page is the physical neighbour of the one before:
 * the pages of one of two files, which got theirs by turns, mapped again and again.
 */
static struct mem scattered_memory(size_t length)
{
	const size_t file = 16 * MIB;
	struct mem m = { .length = length };
	int fd[2];

	for (int i = 0; i < 2; i++) {
		fd[i] = memfd_create("selftest", MFD_CLOEXEC);
		MUST(fd[i] >= 0);
	}
	for (size_t at = 0; at < file; at += PAGE)
		for (int i = 0; i < 2; i++)
			MUST(pwrite(fd[i], "", 1, at + PAGE - 1) == 1);
	m.p = mem_map(length, PAGE, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	for (size_t at = 0; at < length; at += file)
		MUST(mmap(m.p + at, file, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, fd[0], 0) == m.p + at);
	close(fd[0]);
	return m;
}

/* The zero page again and again is the worst there is, as are such pages to stock. */
static void sg_memory(const struct test_case *c)
{
	const size_t length = test_long() ? 16 * GIB : c->n;
	struct mem sparse = sparse_memory(length, PAGE, MADV_NOHUGEPAGE);
	struct mem scattered = scattered_memory(length);
	struct ibv_pd *pd = pd_new();
	long long gift = kept_for(pd, &sparse, GIFT_READ, kept_now);
	long long plain = kept_for(pd, &scattered, PLAIN, kept_now);
	long long gift_scattered = kept_for(pd, &scattered, GIFT_READ, kept_now);
	const long long pages = length / PAGE, slack = MIB + plain / 50;

	test_note("kept for %lld pages of zeros: GIFT %lld KiB", pages, gift / 1024);
	test_note("of as many scattered ones of a file: plain %lld KiB, GIFT %lld KiB",
		  plain / 1024, gift_scattered / 1024);
	/* That they are scattered: an entry for each, or nearly. */
	CHECK_BETWEEN(pages * 24, plain, pages * 48);
	CHECK_BETWEEN(pages * 8, gift, plain + slack);
	CHECK_BETWEEN(plain - slack, gift_scattered, plain + slack);
}

/* Huge pages of any length for the price of one, which is mapped again and again. */
static struct mem one_huge_page(size_t length)
{
	int fd = memfd_create("selftest", MFD_CLOEXEC | MFD_HUGETLB);
	struct mem m = { .length = length };

	MUST(fd >= 0);
	mm_hugetlb_reserve(THP_SIZE);
	MUST(!ftruncate(fd, THP_SIZE));
	m.p = mem_map(length, THP_SIZE, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	for (size_t at = 0; at < length; at += THP_SIZE)
		MUST(mmap(m.p + at, THP_SIZE, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, fd, 0) == m.p + at);
	close(fd);
	return m;
}

static void sg_memory_huge(const struct test_case *c)
{
	const size_t length = test_slowness() > 1 ? c->n / 4 : c->n;
	struct mem sparse = sparse_memory(length, THP_SIZE, MADV_HUGEPAGE);
	struct mem huge = one_huge_page(length);
	struct ibv_pd *pd = pd_new();
	/* What is as large as this is not in the slab, where other things come and go. */
	long long gift = kept_for(pd, &sparse, GIFT_READ, mem_lost);
	long long plain = kept_for(pd, &huge, PLAIN, mem_lost);
	const long long pages = length / PAGE, slack = 2 * MIB;
	/* KASAN has a byte for each 8 of what vmalloc gives. */
	const long long shadow = kernel_has("kasan_report") ? pages : 0;

	test_note("kept for %lld pages: GIFT of zeros %lld KiB, plain of huge pages %lld KiB",
		  pages, gift / 1024, plain / 1024);
	/* Stock at best: an entry for each huge page, and the device's 8 bytes a page. */
	CHECK_BETWEEN(pages * 8, plain, pages * 8 + shadow + pages / 512 * 32 + slack);
	CHECK_BETWEEN(pages * 8, gift, plain + slack);
}

/* Forks a process, and returns when it writes to what @ready is then. */
static pid_t fork_until_ready(void (*run)(void *arg), void *arg, int *ready)
{
	int fd[2];
	char byte;
	pid_t pid;

	MUST(!pipe(fd));
	*ready = fd[1];
	pid = test_fork(run, arg);
	close(fd[1]);
	MUST(read(fd[0], &byte, 1) == 1);
	close(fd[0]);
	return pid;
}

struct long_one {
	size_t length;
	int ready;
};

static void register_long(void *arg)
{
	struct long_one *l = arg;
	struct mem m = sparse_memory(l->length, PAGE, MADV_NOHUGEPAGE);
	struct ibv_pd *pd = pd_new();

	MUST(write(l->ready, "", 1) == 1);
	mr_reg(pd, m.p, l->length, GIFT_READ);
	test_fail(__FILE__, __LINE__, "the registration came to its end");
}

static long minor_faults(pid_t pid)
{
	char path[64];
	long faults = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %ld", &faults) != 1)
		faults = -1;
	if (f)
		fclose(f);
	return faults;
}

/*
 * A registration that faults in a page of zeros for each of its pages is killed
 * among the first of them. How far it came is told by how many it faulted in.
 */
static void killed_half_way(const struct test_case *c)
{
	long long regions = proc_number(MISC "regions"), pins = pins_now();
	long long zero = proc_number(MISC "pages_held_zero"), lost = mem_lost();
	const size_t pages = c->n / PAGE;
	struct long_one l = { c->n };
	struct rusage usage;
	long faults, seen;
	int status;
	pid_t pid;

	pid = fork_until_ready(register_long, &l, &l.ready);
	seen = minor_faults(pid);
	for (faults = seen; faults - seen < 2000; faults = minor_faults(pid)) {
		MUST(faults >= 0);
		usleep(1000);
	}
	MUST(!kill(pid, SIGKILL));
	MUST(wait4(pid, &status, 0, &usage) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	test_note("killed after %ld of %zu pages, ended after %ld", faults - seen,
		  pages, usage.ru_minflt - seen);
	CHECK_BETWEEN(0, usage.ru_minflt - seen, pages / 2);

	CHECK_EQ(regions, proc_number(MISC "regions"));
	CHECK_EQ(zero, proc_number(MISC "pages_held_zero"));
	CHECK_EQ(pins, pins_now());
	CHECK_BETWEEN(-1024LL * MIB, mem_lost_since(lost, 2 * MIB), 2 * MIB);
}

static void register_present(void *arg)
{
	struct long_one *l = arg;
	struct mem m = scattered_memory(l->length);
	struct ibv_pd *pd = pd_new();

	/* All of it is in the page tables, so that no fault stops it. */
	MUST(!madvise(m.p, m.length, MADV_POPULATE_READ));
	MUST(write(l->ready, "", 1) == 1);
	mr_reg(pd, m.p, l->length, GIFT_READ);
	test_fail(__FILE__, __LINE__, "the registration came to its end");
}

/* How far a registration of memory that is there has come is told by its pins. */
static void killed_present(const struct test_case *c)
{
	long long regions = proc_number(MISC "regions"), pins = pins_now(), taken, seen;
	struct long_one l = { GIB };
	const long long pages = l.length / PAGE;
	int status;
	pid_t pid;

	pid = fork_until_ready(register_present, &l, &l.ready);
	taken = pins_taken();
	do
		seen = pins_taken() - taken;
	while (seen < pages / 64);
	MUST(!kill(pid, c->n));
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == (int)c->n);
	test_note("killed after %lld of %lld pages, ended after %lld", seen, pages,
		  pins_taken() - taken);
	CHECK_BETWEEN(pages / 64, pins_taken() - taken, pages / 2);
	CHECK_EQ(regions, proc_number(MISC "regions"));
	CHECK_EQ(pins, pins_now());
}

/* What a thread of the registering process watches: that it has come to a page. */
struct watch {
	int uffd, ready;
};

static void *tell_fault(void *arg)
{
	const struct watch *w = arg;
	struct uffd_msg msg;

	MUST(read(w->uffd, &msg, sizeof(msg)) == sizeof(msg));
	MUST(msg.event == UFFD_EVENT_PAGEFAULT);
	MUST(write(w->ready, "", 1) == 1);
	pause();
	return NULL;
}

struct stopped_one {
	const struct mem_kind *kind;
	int ready;
};

#define STOPS_AT	(8 * MIB)	/* of twice as much */

/* The second half is where nobody brings a page in: there it waits for one. */
static void register_and_wait(void *arg)
{
	const struct stopped_one *s = arg;
	struct mem m = mem_make(s->kind, 2 * STOPS_AT);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)m.p + STOPS_AT, STOPS_AT },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct ibv_pd *pd = pd_new();
	struct watch w = { .ready = s->ready };
	pthread_t thread;

	MUST(!madvise(m.p + STOPS_AT, STOPS_AT, MADV_DONTNEED));
	w.uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	MUST(w.uffd >= 0);
	MUST(!ioctl(w.uffd, UFFDIO_API, &api));
	MUST(!ioctl(w.uffd, UFFDIO_REGISTER, &range));
	MUST_ERR(0, pthread_create(&thread, NULL, tell_fault, &w));
	mr_reg(pd, m.p, m.length, GIFT_READ);
	test_fail(__FILE__, __LINE__, "the registration came to its end");
}

/* Killed where it is known how far it has come: it takes no page more. */
static void killed_waiting(const struct test_case *c)
{
	long long regions = proc_number(MISC "regions"), pins = pins_now(), taken;
	long long held = proc_number(MISC "pages_held_zero"), lost = mem_lost();
	struct stopped_one s = { .kind = c->arg };
	int status;
	long faults;
	struct rusage usage;
	pid_t pid;

	pid = fork_until_ready(register_and_wait, &s, &s.ready);
	/* It has what comes before, as it must to give it back. */
	taken = pins_now() - pins;
	CHECK_BETWEEN(s.kind->taken == IB_GIFT_PAGE_PINNED ? STOPS_AT / PAGE - 1024 : 0, taken,
		      s.kind->taken == IB_GIFT_PAGE_PINNED ? STOPS_AT / PAGE : 0);
	faults = minor_faults(pid);
	MUST(!kill(pid, SIGKILL));
	MUST(wait4(pid, &status, 0, &usage) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK_BETWEEN(0, usage.ru_minflt - faults, 16);

	CHECK_EQ(regions, proc_number(MISC "regions"));
	CHECK_EQ(held, proc_number(MISC "pages_held_zero"));
	CHECK_EQ(pins, pins_now());
	CHECK_BETWEEN(-1024LL * MIB, mem_lost_since(lost, 2 * MIB), 2 * MIB);
}

/* More than the device can list: refused before a page of it is taken. */
static void one_tebibyte(const struct test_case *c)
{
	const size_t tebibyte = 1024 * GIB;
	struct ibv_pd *pd = pd_new();
	long faults;
	void *p;

	CHECK(dev_open()->attr.max_mr_size < tebibyte);
	p = mmap(NULL, tebibyte, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(p != MAP_FAILED);
	faults = minor_faults(getpid());
	CHECK_NULL_ERRNO(ENOMEM, ibv_reg_mr(pd, p, tebibyte, c->n));
	CHECK_BETWEEN(0, minor_faults(getpid()) - faults, 1000);
	CHECK_EQ(0, pinned_vm(0));
	CHECK_EQ(0, gift_stats().regions);
}

#define BOTH(text, fn, arg)						\
	{ "a plain registration " text, fn, arg, PLAIN },		\
	{ "a GIFT registration " text, fn, arg, GIFT_READ }

static const struct test_case cases[] = {
	BOTH("is within RLIMIT_MEMLOCK to the page, and not a page over it",
	     by_the_page, NULL),
	BOTH("without a limit needs no CAP_IPC_LOCK", unlimited, NULL),
	{ "gift and plain regions are charged to one account", one_account },
	{ "the rdma cgroup counts gift regions as any, and no refresh", rdma_cgroup },
	{ "a held page has one reference more", held_page_count },
	{ "1 GiB of zero pages leaves the zero page's references as they are",
	  zero_page_count, NULL, GIB },
	{ "a region of huge zero pages has a reference for each, and gives them back",
	  huge_zero_count },
	{ "a sparse region costs the kernel no more than stock's of scattered pages",
	  sg_memory, NULL, GIB, 400 },
	{ "huge zero pages cost the kernel no more than stock's of huge pages",
	  sg_memory_huge, NULL, 16 * GIB },
	{ "a registration killed half-way ends and leaves nothing", killed_half_way,
	  NULL, 4 * GIB },
	{ "a registration of memory that is there ends by SIGKILL half-way and leaves nothing",
	  killed_present, NULL, SIGKILL },
	{ "a registration of memory that is there ends by SIGTERM half-way and leaves nothing",
	  killed_present, NULL, SIGTERM },
	{ "a registration of written memory killed at a page takes no other and leaves nothing",
	  killed_waiting, &mem_written },
	{ "a registration of untouched memory killed at a page takes no other and leaves nothing",
	  killed_waiting, &mem_untouched },
	{ "a registration of shared memory killed at a page takes no other and leaves nothing",
	  killed_waiting, &mem_forked_parent },
	BOTH("of 1 TiB is ENOMEM before any of it is taken", one_tebibyte, NULL),
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
