// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Registrations that are refused, plain and GIFT: each has the error number
 * that a stock driver gives and leaves nothing behind. Which flags do not go
 * together with GIFT is in gift_access.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/proc.h"
#include "lib/rc.h"

#define PAGE	4096UL
#define LENGTH	(4 * MIB)

/* A registration as the case asks for it: plain or GIFT. */
static unsigned int access_of(const struct test_case *c)
{
	return c->n;
}

/* What a refused registration may leave behind is seen in these. */
struct state {
	long long pins, pinned_vm, regions;
};

static struct state state_now(void)
{
	return (struct state){ pins_now(), pinned_vm(0), gift_stats().regions };
}

#define CHECK_NOTHING_LEFT(before) do {					\
	struct state _now = state_now();				\
									\
	CHECK_EQ((before).pins, _now.pins);				\
	CHECK_EQ((before).pinned_vm, _now.pinned_vm);			\
	CHECK_EQ((before).regions, _now.regions);			\
} while (0)

static struct ibv_pd *pd_new(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);

	MUST(pd);
	return pd;
}

/* Registers, expects the error, and that the good part still registers. */
static void refuse(const struct test_case *c, void *addr, size_t length, int err)
{
	struct ibv_pd *pd = pd_new();
	struct state before = state_now();
	struct mem good = mem_make(&mem_written, 2 * PAGE);

	CHECK_NULL_ERRNO(err, ibv_reg_mr(pd, addr, length, access_of(c)));
	CHECK_NOTHING_LEFT(before);
	MUST_ERR(0, ibv_dereg_mr(mr_reg(pd, good.p, good.length, access_of(c))));
	CHECK_NOTHING_LEFT(before);
	MUST_ERR(0, ibv_dealloc_pd(pd));
}

static void length_zero(const struct test_case *c)
{
	refuse(c, mem_make(&mem_written, PAGE).p, 0, EINVAL);
}

static void wraps_around(const struct test_case *c)
{
	refuse(c, (void *)-PAGE, 2 * PAGE, EINVAL);
}

static void ends_at_the_top(const struct test_case *c)
{
	refuse(c, (void *)-(2 * PAGE), 2 * PAGE - 1, EINVAL);
}

static void kernel_address(const struct test_case *c)
{
	refuse(c, (void *)0xffff888000000000UL, PAGE, EFAULT);
}

static void not_mapped(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);

	MUST(!munmap(m.p, LENGTH));
	refuse(c, m.p, LENGTH, EFAULT);
}

/* The hole comes after pages that have been taken, in the same batch or later. */
static void with_hole(const struct test_case *c)
{
	static const size_t holes[] = { PAGE, 600 * PAGE, LENGTH - PAGE };

	for (size_t i = 0; i < ARRAY_LEN(holes); i++) {
		struct mem m = mem_make(c->arg, LENGTH);

		test_context("hole at %zu", holes[i]);
		MUST(!munmap(m.p + holes[i], PAGE));
		refuse(c, m.p, LENGTH, EFAULT);
		munmap(m.p, LENGTH);
	}
}

static bool stock_forces_protection(void)
{
	unsigned int major, minor;
	struct utsname u;

	MUST(!uname(&u));
	MUST(sscanf(u.release, "%u.%u", &major, &minor) == 2);
	/* FOLL_FORCE went with 6.3. */
	return major < 6 || (major == 6 && minor < 3);
}

static void prot_none(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, LENGTH);
	struct ibv_pd *pd = pd_new();
	struct state before = state_now();
	struct ibv_mr *mr;

	MUST(!mprotect(m.p, LENGTH, PROT_NONE));
	if (c->n == IBV_ACCESS_REMOTE_READ && stock_forces_protection()) {
		mr = CHECK_NULL_ERRNO(0, ibv_reg_mr(pd, m.p, LENGTH, c->n));
		if (mr)
			MUST_ERR(0, ibv_dereg_mr(mr));
	} else {
		CHECK_NULL_ERRNO(EFAULT, ibv_reg_mr(pd, m.p, LENGTH, c->n));
	}
	CHECK_NOTHING_LEFT(before);
}

static void read_only_for_write(const struct test_case *c)
{
	int fd = memfd_create("selftest", MFD_CLOEXEC);
	void *p;

	MUST(fd >= 0 && !ftruncate(fd, LENGTH));
	p = mem_map(LENGTH, PAGE, PROT_READ, MAP_SHARED, fd);
	refuse(c, p, LENGTH, EFAULT);
}

/* Counted in pages over all regions, whatever kind of pages they are. */
static void memlock(const struct test_case *c)
{
	struct mem m = mem_make(c->arg, LENGTH);
	struct ibv_pd *pd = pd_new();
	struct ibv_mr *first;
	struct state before;

	limit_memlock(LENGTH / 2);
	drop_ipc_lock();
	before = state_now();
	CHECK_NULL_ERRNO(ENOMEM, ibv_reg_mr(pd, m.p, LENGTH, access_of(c)));
	CHECK_NOTHING_LEFT(before);
	CHECK_NULL_ERRNO(ENOMEM, ibv_reg_mr(pd, m.p, LENGTH / 2 + PAGE, access_of(c)));
	CHECK_NOTHING_LEFT(before);

	/* The exact limit is within it, and a page more is not. */
	first = CHECK_NULL_ERRNO(0, ibv_reg_mr(pd, m.p, LENGTH / 2, access_of(c)));
	MUST(first);
	CHECK_EQ(LENGTH / 2, pinned_vm(0));
	CHECK_NULL_ERRNO(ENOMEM, ibv_reg_mr(pd, m.p + LENGTH / 2, PAGE, access_of(c)));
	CHECK_EQ(LENGTH / 2, pinned_vm(0));
	MUST_ERR(0, ibv_dereg_mr(first));
	CHECK_NOTHING_LEFT(before);
	first = CHECK_NULL_ERRNO(0, ibv_reg_mr(pd, m.p, LENGTH / 2, access_of(c)));
	MUST(first);
	MUST_ERR(0, ibv_dereg_mr(first));
}

static void memlock_privileged(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, LENGTH);
	struct ibv_pd *pd = pd_new();

	if (geteuid())
		test_skip("needs root, which has CAP_IPC_LOCK");
	limit_memlock(PAGE);
	MUST_ERR(0, ibv_dereg_mr(mr_reg(pd, m.p, LENGTH, access_of(c))));
}

static void memlock_zero(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, PAGE);
	struct ibv_pd *pd = pd_new();
	struct state before = state_now();

	limit_memlock(0);
	drop_ipc_lock();
	CHECK_NULL_ERRNO(EPERM, ibv_reg_mr(pd, m.p, PAGE, access_of(c)));
	CHECK_NOTHING_LEFT(before);
}

static void bad_access(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, PAGE);
	struct ibv_pd *pd = pd_new();
	struct state before = state_now();

	CHECK_NULL_ERRNO(EINVAL, ibv_reg_mr(pd, m.p, PAGE, c->n));
	CHECK_NOTHING_LEFT(before);
}

/* Bits of the optional range that nobody knows are ignored, by rule of ib_core. */
static void optional_access(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, PAGE);
	struct ibv_pd *pd = pd_new();

	MUST_ERR(0, ibv_dereg_mr(mr_reg(pd, m.p, PAGE, MR_ALL | c->n)));
}

static void pd_in_use(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, PAGE);
	struct ibv_pd *pd = pd_new();
	struct ibv_mr *mr = mr_reg(pd, m.p, PAGE, access_of(c));

	CHECK_ERR(EBUSY, ibv_dealloc_pd(pd));
	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_ERR(0, ibv_dealloc_pd(pd));
}

#define PLAIN	IBV_ACCESS_REMOTE_READ
#define BOTH(text, fn, arg)						\
	{ "a plain registration " text, fn, arg, PLAIN },		\
	{ "a GIFT registration " text, fn, arg, GIFT_READ }

static const struct test_case cases[] = {
	BOTH("of length 0 is EINVAL", length_zero, NULL),
	BOTH("that wraps around the address space is EINVAL", wraps_around, NULL),
	BOTH("that wraps when rounded to pages is EINVAL", ends_at_the_top, NULL),
	BOTH("of a kernel address is EFAULT", kernel_address, NULL),
	BOTH("of unmapped memory is EFAULT", not_mapped, NULL),
	BOTH("of written memory with a hole is EFAULT", with_hole, &mem_written),
	BOTH("of untouched memory with a hole is EFAULT", with_hole, &mem_untouched),
	BOTH("of a private file with a hole in the mapping is EFAULT", with_hole,
	     &mem_private_file),
	{ "a plain registration of PROT_NONE is accepted or EFAULT as stock's is",
	  prot_none, NULL, PLAIN },
	{ "a GIFT registration of PROT_NONE is EFAULT", prot_none, NULL, GIFT_READ },
	{ "a registration for writing of a read-only shared mapping is EFAULT",
	  read_only_for_write, NULL, PLAIN | IBV_ACCESS_LOCAL_WRITE },
	BOTH("over RLIMIT_MEMLOCK by a page is ENOMEM (written)", memlock,
	     &mem_written),
	BOTH("over RLIMIT_MEMLOCK by a page is ENOMEM (untouched)", memlock,
	     &mem_untouched),
	BOTH("without any RLIMIT_MEMLOCK is EPERM", memlock_zero, NULL),
	BOTH("over RLIMIT_MEMLOCK is accepted with CAP_IPC_LOCK",
	     memlock_privileged, NULL),
	{ "REMOTE_WRITE without LOCAL_WRITE is EINVAL", bad_access, NULL,
	  IBV_ACCESS_REMOTE_WRITE },
	{ "REMOTE_ATOMIC without LOCAL_WRITE is EINVAL", bad_access, NULL,
	  IBV_ACCESS_REMOTE_ATOMIC },
	{ "an unknown access bit is EINVAL", bad_access, NULL, 1 << 30 },
	{ "an unknown optional access bit is ignored", optional_access, NULL,
	  1 << 28 },
	BOTH("keeps its protection domain from being deallocated", pd_in_use, NULL),
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
