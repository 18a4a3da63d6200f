// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Files on storage that is mapped as memory (fsdax): none of their pages is ever
 * registered, as ib_umem_get() does not, since truncating such a file waits for whoever
 * has one. What the owner has written to a private mapping is memory like any other.
 *
 * SELFTEST_PMEM names a device for that, as /dev/pmem0. What is on it is lost.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/mm.h"
#include "lib/pair.h"
#include "lib/proc.h"
#include "lib/stale.h"

#define PMEM_ENV	"SELFTEST_PMEM"
#define DIR		"/run/gift-dax"
#define LENGTH		(2 * THP_SIZE)

static const char *pmem_ready(void)
{
	const char *device = getenv(PMEM_ENV);
	struct stat st;

	if (!device)
		return PMEM_ENV " names no device";
	/* Modules of kernels that find the memory by themselves. */
	RUN("modprobe", "-q", "nd_e820");
	RUN("modprobe", "-q", "nd_pmem");
	RUN("modprobe", "-q", "ext4");
	for (int i = 0; i < 100 && stat(device, &st); i++)
		test_sleep_ms(10);
	if (stat(device, &st) || !S_ISBLK(st.st_mode))
		return PMEM_ENV " is no block device";
	if (RUN("mkfs.ext4", "-qF", "-b", "4096", device))
		return "no ext4 can be made";
	return dev_ready();
}

/* A file of the file system that is mounted for this process alone. */
static int new_file(void)
{
	int fd;

	MUST(!unshare(CLONE_NEWNS));
	MUST(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	mkdir(DIR, 0755);
	MUST(!mount(getenv(PMEM_ENV), DIR, "ext4", 0, "dax=always"));
	fd = open(DIR "/file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0);
	MUST(!ftruncate(fd, LENGTH));
	return fd;
}

static void write_file(int fd)
{
	unsigned char *bytes = malloc(LENGTH);

	MUST(bytes);
	test_fill(bytes, LENGTH, 1);
	MUST(pwrite(fd, bytes, LENGTH, 0) == LENGTH);
	free(bytes);
}

static void read_pages(unsigned char *p)
{
	for (size_t at = 0; at < LENGTH; at += PAGE)
		(void)*(volatile unsigned char *)(p + at);
}

/* It is no file system that only says that its files are memory. */
static void check_dax(int fd)
{
	struct statx st;

	MUST(!statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st));
	MUST(st.stx_attributes & STATX_ATTR_DAX);
}

static void check_refused(struct ibv_pd *pd, void *p, size_t length, long long pins)
{
	CHECK_NULL_ERRNO(EOPNOTSUPP, ibv_reg_mr(pd, p, length, GIFT_READ));
	CHECK_EQ(pins, pins_now());
	CHECK_EQ(0, pinned_vm(0));
	CHECK_EQ(0, gift_stats().regions);
}

struct what {
	int flags;
	bool hole, read;
};

/* Afterwards nobody has a page of it: truncating it comes to its end. */
static void refused(const struct test_case *c)
{
	const struct what *w = c->arg;
	long long pins = pins_now();
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	int fd = new_file();
	unsigned char *p;

	MUST(pd);
	check_dax(fd);
	if (!w->hole)
		write_file(fd);
	p = mem_map(LENGTH, THP_SIZE, PROT_READ | PROT_WRITE, w->flags, fd);
	if (w->read)
		read_pages(p);
	check_refused(pd, p, LENGTH, pins);
	check_refused(pd, p + PAGE, 1, pins);
	MUST(!ftruncate(fd, 0));
}

/* Memory that is the owner's, and the file behind it is free to go. */
static void written(const struct test_case *c)
{
	int fd = new_file();
	unsigned char *p, *old;
	struct ibv_mr *mr;
	struct pair pair;

	check_dax(fd);
	write_file(fd);
	p = mem_map(LENGTH, THP_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	for (size_t at = 0; at < LENGTH; at += PAGE)
		p[at] ^= 0xff;
	old = copy_of(p, LENGTH);
	pair = pair_new(NULL);
	mr = mr_reg(pair.owner->pd, p, LENGTH, GIFT_READ);
	CHECK_EQ(LENGTH / PAGE, gift_stats().pages[IB_GIFT_PAGE_PINNED]);
	pair_check(&pair, mr, old);
	memset(p, 0x5a, LENGTH);
	CHECK_EQ(0, stale_pages(p, LENGTH));
	pair_check(&pair, mr, p);
	MUST_ERR(0, ibv_dereg_mr(mr));
	MUST(!ftruncate(fd, 0));
}

/* A range that ends in such a file: what was taken before it is given back. */
static void ends_in_file(const struct test_case *c)
{
	long long pins = pins_now();
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	int fd = new_file();
	unsigned char *p;

	MUST(pd);
	write_file(fd);
	p = mem_map(2 * LENGTH, THP_SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1);
	memset(p, 1, LENGTH);
	MUST(mmap(p + LENGTH, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
		  0) == p + LENGTH);
	check_refused(pd, p, LENGTH + PAGE, pins);
	MUST(!munmap(p, LENGTH));
	MUST(!ftruncate(fd, 0));
}

#define REFUSED(text, ...)						\
	{ text " is refused with EOPNOTSUPP", refused, &(const struct what) { __VA_ARGS__ } }

static const struct test_case cases[] = {
	REFUSED("a private mapping of an fsdax file", MAP_PRIVATE),
	REFUSED("a private mapping of an fsdax file that was read", MAP_PRIVATE, .read = true),
	REFUSED("a private mapping of a hole in an fsdax file", MAP_PRIVATE, .hole = true),
	REFUSED("a private mapping of a hole in an fsdax file that was read", MAP_PRIVATE,
		.hole = true, .read = true),
	REFUSED("a shared mapping of an fsdax file", MAP_SHARED),
	REFUSED("a shared mapping of an fsdax file that was read", MAP_SHARED, .read = true),
	REFUSED("a shared mapping of a hole in an fsdax file", MAP_SHARED, .hole = true),
	REFUSED("a shared mapping of a hole in an fsdax file that was read", MAP_SHARED,
		.hole = true, .read = true),
	{ "what was written to a private mapping of an fsdax file is taken as the owner's",
	  written },
	{ "a range that ends in an fsdax file leaves nothing taken", ends_in_file },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), pmem_ready);
}
