// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * /dev/ib_gift as an interface: who may ask, what about, and every way to ask
 * wrongly. Which pages are stale after what is in gift_stale.c.
 */
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/pair.h"
#include "lib/proc.h"
#include "lib/stale.h"

#ifndef PAGE
#define PAGE	4096UL
#endif
#define LENGTH	(64 * PAGE)
/* The end of user memory with 5 levels of page tables, and with 4. */
#define USER_END	((1UL << 56) - PAGE)
#define USER_END_4	((1UL << 47) - PAGE)

/* Larger than any structure that the module may know. */
union any {
	struct ib_gift_query query;
	struct ib_gift_stats stats;
	struct ib_gift_stale stale;
	unsigned char bytes[4096];
};

struct call {
	const char *name;
	unsigned long request;
	size_t size;
};

static const struct call calls[] = {
	{ "QUERY", IB_GIFT_IOC_QUERY, sizeof(struct ib_gift_query) },
	{ "STATS", IB_GIFT_IOC_STATS, sizeof(struct ib_gift_stats) },
	{ "STALE", IB_GIFT_IOC_STALE, sizeof(struct ib_gift_stale) },
};

static unsigned char somewhere[PAGE];

/* A request that is answered. */
static union any good(const struct call *call)
{
	union any arg = {};

	if (call->request == IB_GIFT_IOC_QUERY)
		strcpy(arg.query.device, dev_name());
	if (call->request == IB_GIFT_IOC_STALE) {
		arg.stale.addr = (uintptr_t)somewhere;
		arg.stale.length = sizeof(somewhere);
	}
	return arg;
}

static unsigned long with_size(unsigned long request, size_t size)
{
	return (request & ~((unsigned long)_IOC_SIZEMASK << _IOC_SIZESHIFT)) |
	       size << _IOC_SIZESHIFT;
}

static void answers(const struct test_case *c)
{
	union any arg = good(&calls[0]);

	MUST_ERR(0, gift_call(calls[0].request, &arg));
	CHECK_EQ(IB_GIFT_ABI_VERSION, arg.query.abi_version);
	CHECK(arg.query.caps & IB_GIFT_CAP_HONOURED);
	CHECK_EQ(0, arg.query.comp_mask);
	arg = (union any){};
	MUST_ERR(0, gift_call(calls[0].request, &arg));
	CHECK(!(arg.query.caps & IB_GIFT_CAP_HONOURED));
	CHECK_EQ(IB_GIFT_ABI_VERSION, arg.query.abi_version);
}

static void bad_sizes(const struct test_case *c)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		const struct call *call = &calls[i];
		union any arg = good(call);

		test_context("%s", call->name);
		CHECK_ERR(0, gift_call(call->request, &arg));
		arg = good(call);
		CHECK_ERR(EINVAL, gift_call(with_size(call->request, call->size - 8),
					    &arg));
		CHECK_ERR(EINVAL, gift_call(with_size(call->request, 0), &arg));
		/* A newer program that asks for nothing new. */
		CHECK_ERR(0, gift_call(with_size(call->request, call->size + 8), &arg));
		CHECK_ERR(0, gift_call(with_size(call->request, sizeof(arg)), &arg));
		arg = good(call);
		arg.bytes[call->size] = 1;
		CHECK_ERR(0, gift_call(call->request, &arg));
		arg = good(call);
		arg.bytes[call->size] = 1;
		CHECK_ERR(E2BIG, gift_call(with_size(call->request, call->size + 1),
					   &arg));
		arg = good(call);
		arg.bytes[sizeof(arg) - 1] = 1;
		CHECK_ERR(E2BIG, gift_call(with_size(call->request, sizeof(arg)),
					   &arg));
	}
}

static void bad_requests(const struct test_case *c)
{
	union any arg = {};

	CHECK_ERR(ENOTTY, gift_call(_IOWR(IB_GIFT_IOC_MAGIC, 3, struct ib_gift_stale),
				    &arg));
	CHECK_ERR(ENOTTY, gift_call(_IOWR(IB_GIFT_IOC_MAGIC, 255,
					  struct ib_gift_stale), &arg));
	CHECK_ERR(ENOTTY, gift_call(_IOWR(0xbf, 2, struct ib_gift_stale), &arg));
	CHECK_ERR(ENOTTY, gift_call(_IOR(IB_GIFT_IOC_MAGIC, 2, struct ib_gift_stale),
				    &arg));
	CHECK_ERR(ENOTTY, gift_call(_IOW(IB_GIFT_IOC_MAGIC, 2, struct ib_gift_stale),
				    &arg));
	CHECK_ERR(ENOTTY, gift_call(_IO(IB_GIFT_IOC_MAGIC, 2), &arg));
	CHECK_ERR(ENOTTY, gift_call(TCGETS, &arg));
	CHECK_ERR(ENOTTY, gift_call(0, &arg));
}

static void unknown_fields(const struct test_case *c)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		for (unsigned int bit = 0; bit < 64; bit += 21) {
			union any arg = good(&calls[i]);

			test_context("%s bit %u", calls[i].name, bit);
			/* comp_mask is the first field of each. */
			arg.query.comp_mask = 1ULL << bit;
			CHECK_ERR(EOPNOTSUPP, gift_call(calls[i].request, &arg));
		}
	}
}

static void bad_pointers(const struct test_case *c)
{
	unsigned char *p = mem_map(2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1);

	MUST(!munmap(p + PAGE, PAGE));
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		const struct call *call = &calls[i];
		union any arg = good(call);

		test_context("%s", call->name);
		CHECK_ERR(EFAULT, gift_call(call->request, NULL));
		CHECK_ERR(EFAULT, gift_call(call->request, (void *)-PAGE));
		/* The last byte is not there. */
		memcpy(p + PAGE - call->size + 1, &arg, call->size - 1);
		CHECK_ERR(EFAULT, gift_call(call->request, p + PAGE - call->size + 1));
		memcpy(p + PAGE - call->size, &arg, call->size);
		CHECK_ERR(0, gift_call(call->request, p + PAGE - call->size));
		/* What was not there to be read beyond it. */
		CHECK_ERR(EFAULT, gift_call(with_size(call->request, call->size + 8),
					    p + PAGE - call->size));
		/* An answer cannot be stored. */
		memcpy(p, &arg, call->size);
		MUST(!mprotect(p, PAGE, PROT_READ));
		CHECK_ERR(EFAULT, gift_call(call->request, p));
		MUST(!mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	}
}

static void bad_names(const struct test_case *c)
{
	static const char *const absent[] = {
		"absent", "..", "/dev/infiniband/uverbs0", "%n%s", "\n", "shca",
	};
	union any arg;

	for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
		test_context("name %zu", i);
		arg = (union any){};
		strcpy(arg.query.device, absent[i]);
		CHECK_ERR(ENODEV, gift_call(IB_GIFT_IOC_QUERY, &arg));
	}
	test_context("%s", "");
	arg = (union any){};
	memset(arg.query.device, 'x', sizeof(arg.query.device));
	CHECK_ERR(EINVAL, gift_call(IB_GIFT_IOC_QUERY, &arg));
	arg.query.device[sizeof(arg.query.device) - 1] = 0;
	CHECK_ERR(ENODEV, gift_call(IB_GIFT_IOC_QUERY, &arg));
	arg = good(&calls[0]);
	arg.query.reserved = 1;
	CHECK_ERR(EINVAL, gift_call(IB_GIFT_IOC_QUERY, &arg));
}

static void bad_ranges(const struct test_case *c)
{
	static const struct { uint64_t addr, length; int err; } ranges[] = {
		{ 0x10000, 0, EINVAL },
		{ 0, 0, EINVAL },
		{ 0x10000, UINT64_MAX, EINVAL },
		{ UINT64_MAX, 1, EINVAL },
		{ UINT64_MAX, 2, EINVAL },
		{ 1, UINT64_MAX, EINVAL },
		{ USER_END, 1, EINVAL },
		{ USER_END_4, 2 * USER_END, EINVAL },
		{ 0xffff888000000000, 4096, EINVAL },
		{ 0, 1, 0 },
		{ USER_END_4 - 1, 1, 0 },
		{ USER_END_4 / 2, 1, 0 },
	};
	struct ib_gift_stale answer;

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		test_context("range %zu", i);
		CHECK_ERR(ranges[i].err, gift_stale((void *)ranges[i].addr,
						    ranges[i].length, &answer));
	}
}

struct owned {
	struct mem m;
	struct pair p;
	struct ibv_mr *mr;
};

/* A region of zeros of which pages 3 and 40 are stale. */
static struct owned owned_new(void)
{
	struct owned o = { .m = mem_make(&mem_untouched, LENGTH), .p = pair_new(NULL) };

	o.mr = mr_reg(o.p.owner->pd, o.m.p, LENGTH, GIFT_READ);
	o.m.p[3 * PAGE] = 1;
	o.m.p[40 * PAGE] = 1;
	return o;
}

static void bitmap_bits(const struct test_case *c)
{
	struct owned o = owned_new();
	/* Before the region, at its start, within it, within a page. */
	static const long starts[] = { -(long)(70 * PAGE), -1, 0, 1, 3 * PAGE,
				       3 * PAGE + 4095, 4 * PAGE };
	uint64_t bitmap[8];

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		unsigned char *start = o.m.p + starts[i];
		size_t length = o.m.p + LENGTH + 10 - start;
		const long first = (uintptr_t)start / PAGE - (uintptr_t)o.m.p / PAGE;
		unsigned long stale = 0, pages = LENGTH / PAGE + 1 - first;
		uint64_t registered, count;

		test_context("start %ld", starts[i]);
		memset(bitmap, 0xff, sizeof(bitmap));
		MUST_ERR(0, provider_query_stale(start, length, bitmap, &registered,
						 &count));
		for (unsigned long page = 0; page < pages; page++) {
			long at = first + page;

			CHECK_EQ(at == 3 || at == 40, stale_bit(bitmap, page));
			stale += at == 3 || at == 40;
		}
		CHECK_EQ(stale, count);
		CHECK_EQ(LENGTH / PAGE - (first > 0 ? first : 0), registered);
		/* The rest of the last word is 0, the next is not touched. */
		for (unsigned long page = pages; page % 64; page++)
			CHECK_EQ(0, stale_bit(bitmap, page));
		CHECK(bitmap[(pages + 63) / 64] == UINT64_MAX);
	}
}

/* Of the first page and the last a byte is enough. */
static void by_whole_pages(const struct test_case *c)
{
	struct owned o = owned_new();
	static const struct { size_t offset, length, pages, stale; } ranges[] = {
		{ 3 * PAGE, 1, 1, 1 },
		{ 3 * PAGE, PAGE, 1, 1 },
		{ 3 * PAGE - 1, 1, 1, 0 },
		{ 3 * PAGE - 1, 2, 2, 1 },
		{ 4 * PAGE - 1, 1, 1, 1 },
		{ 4 * PAGE - 1, 2, 2, 1 },
		{ 2 * PAGE, PAGE, 1, 0 },
		{ 2 * PAGE, PAGE + 1, 2, 1 },
		{ 2 * PAGE + 1, PAGE, 2, 1 },
		{ 3 * PAGE - 1, 37 * PAGE + 2, 39, 2 },
	};

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		struct ib_gift_stale answer;

		test_context("range %zu", i);
		MUST_ERR(0, gift_stale(o.m.p + ranges[i].offset, ranges[i].length,
				       &answer));
		CHECK_EQ(ranges[i].pages, answer.registered);
		CHECK_EQ(ranges[i].stale, answer.stale);
	}
}

static void bad_bitmaps(const struct test_case *c)
{
	struct owned o = owned_new();
	unsigned char *p = mem_map(2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct ib_gift_stale query = {
		.addr = (uintptr_t)o.m.p, .length = 64 * PAGE,
	};
	static const uint64_t wild[] = { 1, 4096, USER_END, 0xffff888000000000,
					 UINT64_MAX - 7 };

	for (size_t i = 0; i < ARRAY_LEN(wild); i++) {
		query.bitmap = wild[i];
		CHECK_ERR(EFAULT, gift_call(IB_GIFT_IOC_STALE, &query));
	}
	MUST(!munmap(p + PAGE, PAGE));
	query.bitmap = (uintptr_t)p + PAGE - 8;
	CHECK_ERR(0, gift_call(IB_GIFT_IOC_STALE, &query));
	query.length = 64 * PAGE + 1;
	CHECK_ERR(EFAULT, gift_call(IB_GIFT_IOC_STALE, &query));
	query.length = 1;
	query.bitmap = (uintptr_t)p + PAGE - 7;
	CHECK_ERR(EFAULT, gift_call(IB_GIFT_IOC_STALE, &query));
	MUST(!mprotect(p, PAGE, PROT_READ));
	query.bitmap = (uintptr_t)p;
	CHECK_ERR(EFAULT, gift_call(IB_GIFT_IOC_STALE, &query));
	CHECK_ERR(EFAULT, provider_query_stale(o.m.p, PAGE, (uint64_t *)p, NULL, NULL));
	CHECK_ERR(EINVAL, provider_query_stale(o.m.p, 0, NULL, NULL, NULL));
	CHECK_ERR(0, provider_query_stale(o.m.p, 1, NULL, NULL, NULL));
}

/* Answers come in parts of 128 MiB. */
static void long_ranges(const struct test_case *c)
{
	const size_t length = 260 * MIB, part = 128 * MIB / PAGE;
	const size_t pages = length / PAGE;
	const size_t written[] = { 0, part - 2, part - 1, part, part + 1,
				   2 * part - 1, 2 * part, pages - 1 };
	struct mem m = mem_make(&mem_thp_untouched, length);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	uint64_t *bitmap = calloc(pages / 64 + 2, 8);

	MUST(bitmap);
	mr_reg(pd, m.p, length, GIFT_READ);
	for (size_t i = 0; i < ARRAY_LEN(written); i++)
		m.p[written[i] * PAGE] = 1;
	for (int before = 0; before < 3; before++) {
		uint64_t registered, stale;
		unsigned long set = 0;

		test_context("%d pages before it", before);
		MUST_ERR(0, provider_query_stale(m.p - before * PAGE,
						 length + before * PAGE, bitmap,
						 &registered, &stale));
		CHECK_EQ(pages, registered);
		CHECK_EQ(ARRAY_LEN(written), stale);
		for (size_t i = 0; i < pages + before; i++)
			set += stale_bit(bitmap, i);
		CHECK_EQ(ARRAY_LEN(written), set);
		for (size_t i = 0; i < ARRAY_LEN(written); i++)
			CHECK(stale_bit(bitmap, written[i] + before));
	}
	/* All that a process can have: most of it in no region. */
	test_context("everything");
	struct ib_gift_stale all;

	MUST_ERR(0, gift_stale(m.p - 64 * MIB, length + 128 * MIB, &all));
	CHECK_EQ(pages, all.registered);
	CHECK_EQ(ARRAY_LEN(written), all.stale);
}

/*
 * The least of many short tries: what else runs on the machine can only add to one, and
 * hardly adds to each.
 */
static double cost_of_asking(const struct mem *m, size_t length)
{
	double least = 1e9;

	for (int i = 0; i < 30; i++) {
		struct ib_gift_stale answer;
		double start = test_now(), took;

		MUST_ERR(0, gift_stale(m->p, length, &answer));
		took = test_now() - start;
		CHECK_EQ(length / PAGE, answer.registered);
		CHECK_EQ(0, answer.stale);
		least = took < least ? took : least;
	}
	return least;
}

static double cost_of_registering(struct ibv_pd *pd, const struct mem *m)
{
	double least = 1e9;

	for (int i = 0; i < 30; i++) {
		double start = test_now(), took;
		struct ibv_mr *mr = mr_reg(pd, m->p, m->length, GIFT_READ);

		took = test_now() - start;
		MUST_ERR(0, ibv_dereg_mr(mr));
		least = took < least ? took : least;
	}
	return least;
}

/*
 * By the page, and about what it costs to take the pages, all of which are mapped: to pin
 * one's own is the cheapest that the kernel has. The bounds leave room for a busy machine.
 */
static void cheap(const struct test_case *c)
{
	const size_t length = 8 * MIB;
	struct mem m = mem_make(c->arg, length);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	double reg = cost_of_registering(pd, &m), whole, quarter;

	mr_reg(pd, m.p, length, GIFT_READ);
	whole = cost_of_asking(&m, length);
	quarter = cost_of_asking(&m, length / 4);
	test_note("%.2f of a registration, %.2f times a quarter", whole / reg, whole / quarter);
	CHECK(whole < 5 * reg);
	/* In proportion 4, by the square 16. */
	CHECK(whole < 8 * quarter);
}

/* Each page is another one, so that one taken for its neighbour is seen. */
static void begins_anywhere(const struct test_case *c)
{
	const size_t length = 16 * MIB;
	struct mem m = mem_make(&mem_written, length);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	struct ib_gift_stale answer;

	mr_reg(pd, m.p, length, GIFT_READ);
	for (size_t at = 256 * PAGE; at < length; at += 256 * PAGE) {
		for (int page = -1; page <= 1; page++) {
			unsigned char *start = m.p + at + page * (long)PAGE;

			test_context("page %zu", (start - m.p) / PAGE);
			MUST_ERR(0, gift_stale(start, m.p + length - start, &answer));
			CHECK_EQ((m.p + length - start) / PAGE, answer.registered);
			CHECK_EQ(0, answer.stale);
		}
	}
}

static void in_two_regions(const struct test_case *c)
{
	struct owned o = owned_new();
	struct ibv_mr *second = mr_reg(o.p.owner->pd, o.m.p, LENGTH / 2, GIFT_READ);
	struct ib_gift_stale answer;

	MUST_ERR(0, gift_stale(o.m.p, LENGTH, &answer));
	/* A page counts once, and is stale for the sake of the first. */
	CHECK_EQ(LENGTH / PAGE, answer.registered);
	CHECK_EQ(2, answer.stale);
	/* Each is stale where the other is not, whichever is looked at first. */
	memset(o.m.p + 5 * PAGE, 1, 2 * PAGE);
	MUST_ERR(0, provider_refresh(o.mr, o.m.p + 5 * PAGE, 1, NULL));
	MUST_ERR(0, provider_refresh(second, o.m.p + 6 * PAGE, 1, NULL));
	CHECK_EQ(4, stale_pages(o.m.p, LENGTH));
	MUST_ERR(0, ibv_dereg_mr(o.mr));
	MUST_ERR(0, gift_stale(o.m.p, LENGTH, &answer));
	CHECK_EQ(LENGTH / PAGE / 2, answer.registered);
	CHECK_EQ(1, answer.stale);
	MUST_ERR(0, ibv_dereg_mr(second));
	MUST_ERR(0, gift_stale(o.m.p, LENGTH, &answer));
	CHECK_EQ(0, answer.registered);
	CHECK_EQ(0, answer.stale);
}

/* What is registered without GIFT is none of the module's business. */
static void plain_regions(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, LENGTH);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	struct ib_gift_stale answer;

	mr_reg(pd, m.p, LENGTH, MR_ALL);
	MUST(!madvise(m.p, LENGTH, MADV_DONTNEED));
	MUST_ERR(0, gift_stale(m.p, LENGTH, &answer));
	CHECK_EQ(0, answer.registered);
	CHECK_EQ(0, answer.stale);
	CHECK_EQ(0, gift_stats().regions);
}

static void unprivileged(const struct test_case *c)
{
	struct owned o;
	struct stat st;
	struct ib_gift_stale answer;
	union any arg = good(&calls[0]);

	MUST(!stat("/dev/ib_gift", &st));
	CHECK_EQ(0666, st.st_mode & 0777);
	o = owned_new();
	MUST(!setgroups(0, NULL));
	MUST(!setresgid(65534, 65534, 65534));
	MUST(!setresuid(65534, 65534, 65534));
	MUST(geteuid() == 65534);
	CHECK_ERR(0, gift_call(IB_GIFT_IOC_QUERY, &arg));
	CHECK_EQ(1, gift_stats().regions);
	CHECK_ERR(0, gift_stale(o.m.p, LENGTH, &answer));
	CHECK_EQ(2, answer.stale);
	CHECK_EQ(2, refresh(o.mr));
	CHECK_EQ(0, stale_pages(o.m.p, LENGTH));
}

struct borrowed {
	struct owned *o;
	int fd;
	int wait[2];
};

/* A child has the parent's addresses, descriptor and contents: not its regions. */
static void ask_about_parent(void *arg)
{
	struct borrowed *b = arg;
	struct ib_gift_stale query = {
		.addr = (uintptr_t)b->o->m.p, .length = LENGTH,
	};
	struct ib_gift_stats stats = {};
	char byte;

	CHECK_ERR(0, ioctl(b->fd, IB_GIFT_IOC_STALE, &query) ? errno : 0);
	CHECK_EQ(0, query.registered);
	CHECK_EQ(0, query.stale);
	CHECK_ERR(0, ioctl(b->fd, IB_GIFT_IOC_STATS, &stats) ? errno : 0);
	CHECK_EQ(0, stats.regions);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(0, stats.pages[i]);
	close(b->wait[1]);
	MUST(read(b->wait[0], &byte, 1) == 0);
}

/* So many at once that some are looked for where the parent's regions are kept. */
static void other_processes(const struct test_case *c)
{
	struct owned o = owned_new();
	struct borrowed b = { &o, open("/dev/ib_gift", O_RDWR | O_CLOEXEC) };
	pid_t pids[256];

	MUST(b.fd >= 0 && !pipe(b.wait));
	for (size_t i = 0; i < ARRAY_LEN(pids); i++)
		pids[i] = test_fork(ask_about_parent, &b);
	close(b.wait[1]);
	for (size_t i = 0; i < ARRAY_LEN(pids); i++)
		test_join(pids[i]);
	/* And it changes nothing for the parent. */
	CHECK_EQ(2, stale_pages(o.m.p, LENGTH));
	CHECK_EQ(1, gift_stats().regions);
}

/* The way of 32-bit programs into the kernel, taken by this one. */
static int call_32(int fd, unsigned long request, void *arg)
{
	long ret;

	asm volatile("int $0x80" : "=a" (ret)
		     : "a" (54), "b" (fd), "c" (request), "d" (arg)
		     : "memory", "r8", "r9", "r10", "r11");
	return -(int)ret;
}

static void from_32_bits(const struct test_case *c)
{
	struct owned o = owned_new();
	int fd = open("/dev/ib_gift", O_RDWR | O_CLOEXEC);
	union any *arg = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	struct ibv_mr *low;
	uint64_t *bitmap;

	MUST(fd >= 0 && arg != MAP_FAILED);
	if (proc_number("/proc/sys/abi/vsyscall32") < 0)
		test_skip("this kernel runs no 32-bit programs");
	*arg = good(&calls[0]);
	MUST_ERR(0, call_32(fd, IB_GIFT_IOC_QUERY, arg));
	CHECK(arg->query.caps & IB_GIFT_CAP_HONOURED);

	*arg = (union any){};
	MUST_ERR(0, call_32(fd, IB_GIFT_IOC_STATS, arg));
	CHECK_EQ(1, arg->stats.regions);

	*arg = (union any){};
	bitmap = (uint64_t *)(arg + 1);
	arg->stale.addr = (uintptr_t)o.m.p;
	arg->stale.length = LENGTH;
	arg->stale.bitmap = (uintptr_t)bitmap;
	MUST_ERR(0, call_32(fd, IB_GIFT_IOC_STALE, arg));
	CHECK_EQ(2, arg->stale.stale);
	CHECK_EQ(1ULL << 3 | 1ULL << 40, *bitmap);
	low = mr_reg(o.p.owner->pd, arg, PAGE, GIFT_READ);
	MUST_ERR(0, ibv_dereg_mr(low));
}

/* With regions to look for in each part: much work even for the fastest. */
static void ask_about_everything(void *arg)
{
	int *ready = arg;
	struct mem m = mem_make(&mem_untouched, PAGE);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	struct ib_gift_stale answer;

	for (int i = 0; i < 64; i++)
		mr_reg(pd, m.p, PAGE, GIFT_READ);
	MUST(write(ready[1], "", 1) == 1);
	gift_stale(NULL, USER_END_4, &answer);
	test_fail(__FILE__, __LINE__, "everything is answered");
}

static void killed(const struct test_case *c)
{
	int ready[2], status;
	double start;
	char byte;
	pid_t pid;

	MUST(!pipe(ready));
	pid = test_fork(ask_about_everything, ready);
	MUST(read(ready[0], &byte, 1) == 1);
	test_sleep_ms(200);
	MUST(waitpid(pid, &status, WNOHANG) == 0);
	start = test_now();
	MUST(!kill(pid, SIGKILL));
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK_BETWEEN(0, (long long)(test_now() - start), 3);
}

struct changer {
	struct owned *o;
	volatile bool stop;
	volatile unsigned long turns;
};

/* Page 0 is left alone; the rest is written, thrown away, unmapped, mapped. */
static void *change_memory(void *arg)
{
	struct changer *ch = arg;
	unsigned char *p = ch->o->m.p + PAGE;
	const size_t length = LENGTH - PAGE;

	while (!ch->stop) {
		memset(p, ch->turns, length / 2);
		MUST(!madvise(p, length, MADV_DONTNEED));
		(void)*(volatile unsigned char *)p;
		MUST(!munmap(p + 8 * PAGE, 8 * PAGE));
		MUST(mmap(p + 8 * PAGE, 8 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		     p + 8 * PAGE);
		MUST(!mprotect(p, length, PROT_NONE));
		MUST(!mprotect(p, length, PROT_READ | PROT_WRITE));
		ch->turns++;
	}
	memset(p, 1, length);
	return NULL;
}

static void while_changed(const struct test_case *c)
{
	struct owned o = owned_new();
	struct changer ch = { &o };
	unsigned long asked = 0;
	pthread_t thread;
	uint64_t bitmap;

	MUST(!pthread_create(&thread, NULL, change_memory, &ch));
	while (ch.turns < 100 || asked < 300) {
		struct ib_gift_stale query = {
			.addr = (uintptr_t)o.m.p, .length = LENGTH,
			.bitmap = (uintptr_t)&bitmap,
		};

		MUST_ERR(0, gift_call(IB_GIFT_IOC_STALE, &query));
		MUST_EQ(LENGTH / PAGE, query.registered);
		MUST_EQ(__builtin_popcountll(bitmap), query.stale);
		MUST_EQ(0, bitmap & 1);
		asked++;
	}
	ch.stop = true;
	MUST(!pthread_join(thread, NULL));
	CHECK_EQ(LENGTH / PAGE - 1, stale_pages(o.m.p, LENGTH));
}

/* Regions come and go under a question. */
static void *change_regions(void *arg)
{
	struct changer *ch = arg;

	while (!ch->stop) {
		MUST_ERR(0, ibv_dereg_mr(mr_reg(ch->o->p.owner->pd, ch->o->m.p,
						LENGTH, GIFT_READ)));
		ch->turns++;
	}
	return NULL;
}

static void while_registered(const struct test_case *c)
{
	struct owned o = owned_new();
	struct changer ch = { &o };
	unsigned long asked = 0;
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, change_regions, &ch));
	while (ch.turns < 200 || asked < 300) {
		/* The first region is there all the time. */
		MUST_EQ(2, stale_pages(o.m.p, LENGTH));
		asked++;
	}
	ch.stop = true;
	MUST(!pthread_join(thread, NULL));
	CHECK_EQ(1, gift_stats().regions);
}

static const struct test_case cases[] = {
	{ "QUERY says what is honoured, on a device and on all", answers },
	{ "a structure too short is EINVAL, one with unknown contents is E2BIG",
	  bad_sizes },
	{ "a request that is none is ENOTTY", bad_requests },
	{ "an unknown comp_mask bit is EOPNOTSUPP", unknown_fields },
	{ "a structure that cannot be read or written is EFAULT", bad_pointers },
	{ "QUERY of a name that is none is ENODEV or EINVAL", bad_names },
	{ "STALE of a range that is not in user memory is EINVAL", bad_ranges },
	{ "bits of the bitmap count from the first page of the range", bitmap_bits },
	{ "a page is asked about however little of it the range has", by_whole_pages },
	{ "a bitmap that cannot be written is EFAULT", bad_bitmaps },
	{ "a range longer than what is answered at once is answered whole",
	  long_ranges },
	{ "asking costs by the page, about as much as a registration (zeros)", cheap,
	  &mem_read },
	{ "asking costs by the page, about as much as a registration (written)", cheap,
	  &mem_written },
	{ "a question may begin at any page of a region", begins_anywhere },
	{ "a page in two regions counts once and is stale if it is in one",
	  in_two_regions },
	{ "a plain region is not asked about", plain_regions },
	{ "asking and refreshing need no privilege", unprivileged },
	{ "a process learns nothing of another's memory, by whatever descriptor",
	  other_processes },
	{ "a 32-bit program gets the same answers", from_32_bits },
	{ "a process that is killed while it asks ends at once", killed },
	{ "memory may change while it is asked about", while_changed },
	{ "regions may come and go while they are asked about", while_registered },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
