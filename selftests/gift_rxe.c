// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Gift regions of a stock rxe, for which ib_gift stands in while every_driver is on:
 * what is honoured then and what is refused, what a peer on another device can do,
 * what is said of them. Switching is in every.c; which kinds of memory are taken how
 * is in gift_matrix.c, which on_rxe.sh runs on rxe.
 *
 * Both devices are in one network namespace, since rxe has its sockets in the
 * initial one only; between link-local addresses the frames cross the veth pair.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "lib/every.h"

#define PAGE	4096UL
#define LENGTH	EVERY_LENGTH

#define HONOURED IB_GIFT_CAP_HONOURED
#define EVERY IB_GIFT_CAP_EVERY_DRIVER

static void query(const struct test_case *c)
{
	CHECK_EQ(EVERY, every_caps(""));
	CHECK_EQ(HONOURED | EVERY, every_caps(RXE_A));
	CHECK_EQ(-ENODEV, every_caps("nosuchdevice"));
	if (dev_exists("shca0"))
		CHECK_EQ(HONOURED, every_caps("shca0"));
	MUST_ERR(0, every_switch(false));
	CHECK_EQ(0, every_caps(""));
	CHECK_EQ(0, every_caps(RXE_A));
	if (dev_exists("shca0"))
		CHECK_EQ(HONOURED, every_caps("shca0"));
	MUST_ERR(0, every_switch(true));
	CHECK_EQ(HONOURED | EVERY, every_caps(RXE_A));
}

static void dropped_when_off(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct ibv_pd *pd = every_pd();
	struct ibv_mr *mr;

	MUST_ERR(0, every_switch(false));
	mr = mr_reg(pd, m.p, LENGTH, GIFT_READ);
	CHECK_EQ(0, gift_stats().regions);
	CHECK_EQ(LENGTH, mem_range(m.p, LENGTH, "Anonymous"));
	/* What a stock call made is stock's to release, hooked or not. */
	MUST_ERR(0, every_switch(true));
	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_EQ(0, pinned_vm(0));
	mr = mr_reg(pd, m.p, LENGTH, IBV_ACCESS_REMOTE_READ);
	MUST_ERR(0, every_switch(false));
	MUST_ERR(0, ibv_dereg_mr(mr));
	MUST_ERR(0, every_switch(true));
	CHECK_EQ(0, pinned_vm(0));
}

static void writable_refused(const struct test_case *c)
{
	static const int flags[] = {
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct mem m = mem_make(&mem_untouched, LENGTH);
	int refs = module_refs("ib_gift");
	struct ibv_pd *pd = every_pd();

	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		test_context("access %#x", flags[i]);
		CHECK_NULL_ERRNO(EINVAL, ibv_reg_mr(pd, m.p, LENGTH,
						    GIFT_READ | flags[i]));
	}
	CHECK_NULL_ERRNO(EFAULT, ibv_reg_mr(pd, (void *)PAGE, LENGTH, GIFT_READ));
	CHECK_EQ(0, mem_range(m.p, LENGTH, "Anonymous"));
	CHECK_EQ(0, pinned_vm(0));
	/* A call that fails leaves no reference behind, so it can be switched. */
	CHECK_EQ(refs, module_refs("ib_gift"));
	MUST_ERR(0, every_switch(false));
	MUST_ERR(0, every_switch(true));
}

static void read_across(const struct test_case *c)
{
	struct pair p = every_pair();
	struct ib_gift_stats s;
	struct ibv_mr *mr;
	struct mem m;

	mr = every_region(p.owner->pd, &m);
	s = gift_stats();
	CHECK_EQ(1, s.regions);
	CHECK_EQ(LENGTH / 4 / PAGE, s.pages[IB_GIFT_PAGE_PINNED]);
	CHECK_EQ(LENGTH * 3 / 4 / PAGE, s.pages[IB_GIFT_PAGE_ZERO]);
	CHECK_EQ(LENGTH / 4, mem_range(m.p, LENGTH, "Anonymous"));
	pair_check(&p, mr, copy_of(m.p, LENGTH));
}

static void send_across(const struct test_case *c)
{
	struct pair p = every_pair();
	struct ibv_mr *mr, *into = mr_new(p.peer->pd, LENGTH);
	struct mem m;

	mr = every_region(p.owner->pd, &m);
	post_recv(p.peer, 1, into, into->addr, LENGTH);
	MUST_STATUS(IBV_WC_SUCCESS,
		    do_rdma(p.owner, IBV_WR_SEND, mr, m.p, LENGTH, 0, 0));
	MUST_STATUS(IBV_WC_SUCCESS, cq_next(p.peer->rcq).status);
	CHECK_BYTES(m.p, into->addr, LENGTH);
	CHECK_EQ(LENGTH / 4, mem_range(m.p, LENGTH, "Anonymous"));
}

static void write_across(const struct test_case *c)
{
	struct pair p = every_pair();
	struct ibv_mr *mr, *from = mr_new(p.peer->pd, PAGE);
	unsigned char *before;
	struct mem m;

	mr = every_region(p.owner->pd, &m);
	before = copy_of(m.p, LENGTH);
	memset(from->addr, 0xee, PAGE);
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR,
		     do_rdma(p.peer, IBV_WR_RDMA_WRITE, from, from->addr, PAGE,
			     (uintptr_t)mr->addr, mr->rkey));
	CHECK_BYTES(before, m.p, LENGTH);
}

/* Changes the access in place; the provider of rxe has no such call. */
static int rereg_access(struct ibv_mr *mr, unsigned int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr body;
	} cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_REREG_MR,
			.in_words = sizeof(cmd) / 4,
			.out_words = sizeof(resp) / 4,
		},
		.body = {
			.response = (uintptr_t)&resp,
			.mr_handle = mr->handle,
			.flags = IBV_REREG_MR_CHANGE_ACCESS,
			.pd_handle = mr->pd->handle,
			.access_flags = access,
		},
	};

	return write(mr->context->cmd_fd, &cmd, sizeof(cmd)) == sizeof(cmd) ?
	       0 : errno;
}

static void stays_read_only(const struct test_case *c)
{
	const unsigned int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_READ;
	struct pair p = every_pair();
	struct ibv_mr *mr, *from = mr_new(p.peer->pd, PAGE);
	bool possible;
	struct mem m;

	mr = every_region(p.owner->pd, &m);
	possible = !rereg_access(mr, IBV_ACCESS_REMOTE_READ);
	test_note("rxe %s re-register here", possible ? "can" : "cannot");
	CHECK_ERR(possible ? EACCES : EOPNOTSUPP, rereg_access(mr, all));
	CHECK_ERR(possible ? EACCES : EOPNOTSUPP,
		  rereg_access(mr, all | IB_UVERBS_ACCESS_GIFT));
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR,
		     do_rdma(p.peer, IBV_WR_RDMA_WRITE, from, from->addr, PAGE,
			     (uintptr_t)mr->addr, mr->rkey));
}

static void stale(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct ibv_mr *mr = mr_reg(every_pd(), m.p, LENGTH, GIFT_READ);
	struct ib_gift_stale q = {
		.addr = (uintptr_t)m.p,
		.length = LENGTH,
	};

	m.p[5 * PAGE] = 1;
	m.p[9 * PAGE] = 1;
	MUST_ERR(0, gift_ioctl(IB_GIFT_IOC_STALE, &q));
	CHECK_EQ(LENGTH / PAGE, q.registered);
	CHECK_EQ(2, q.stale);
	MUST_ERR(0, ibv_dereg_mr(mr));
	MUST_ERR(0, gift_ioctl(IB_GIFT_IOC_STALE, &q));
	CHECK_EQ(0, q.registered);
}

/* Lines of the list in debugfs that name a device and this process. */
static int listed(const char *device)
{
	char line[512], name[64];
	int pid, n = 0;
	FILE *f;

	f = fopen("/sys/kernel/debug/ib_gift/regions", "r");
	MUST(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %d", name, &pid) == 2 &&
		    !strcmp(name, device) && pid == getpid())
			n++;
	fclose(f);
	return n;
}

static void both_listed(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct ibv_mr *hooked = mr_reg(every_pd(), m.p, LENGTH, GIFT_READ), *direct;
	struct ibv_pd *pd;

	if (access("/sys/kernel/debug/ib_gift", F_OK))
		test_skip("debugfs is not mounted");
	CHECK_EQ(1, listed(RXE_A));
	if (!dev_exists("shca0"))
		test_skip("no shca0 beside it");
	pd = ibv_alloc_pd(dev_open_name("shca0")->ctx);
	direct = mr_reg(pd, m.p, LENGTH, GIFT_READ);
	CHECK_EQ(2, gift_stats().regions);
	CHECK_EQ(1, listed(RXE_A));
	CHECK_EQ(1, listed("shca0"));
	/* Only the hooked one stands in the way. */
	CHECK_ERR(EBUSY, every_switch(false));
	MUST_ERR(0, ibv_dereg_mr(hooked));
	MUST_ERR(0, every_switch(false));
	CHECK_EQ(1, gift_stats().regions);
	MUST_ERR(0, ibv_dereg_mr(direct));
	CHECK_EQ(0, gift_stats().regions);
}

static const struct test_case cases[] = {
	EVERY_CASE("QUERY says that rxe honours GIFT exactly while every_driver is on",
		   query),
	EVERY_CASE("while it is off GIFT is dropped, and that region is released either way",
		   dropped_when_off),
	EVERY_CASE("GIFT with a writable access is refused on rxe and leaves nothing behind",
		   writable_refused),
	EVERY_CASE("a peer on another device reads a gift region of rxe", read_across),
	EVERY_CASE("a send from a gift region of rxe reaches another device", send_across),
	EVERY_CASE("a peer on another device cannot write to a gift region of rxe",
		   write_across),
	EVERY_CASE("a gift region of rxe cannot be made writable", stays_read_only),
	EVERY_CASE("what is stale is known for a region of rxe as well", stale),
	EVERY_CASE("regions of rxe and of the sample HCA are counted and listed together",
		   both_listed),
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), every_ready);
}
