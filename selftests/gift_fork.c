// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Gift regions and other processes: what a fork before or after registration
 * lets a peer see, and that it is never another process's data.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/pair.h"

#define LENGTH	(4 * MIB)

enum first { CHILD_WRITES_FIRST, OWNER_WRITES_FIRST };

/* Owned before the fork: the region stays the owner's, whoever writes first. */
static void owned_across_fork(const struct test_case *c)
{
	struct mem m = mem_make(c->arg, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, m.length, GIFT_READ);
	unsigned char *before = copy_of(m.p, LENGTH);
	int sock[2];
	pid_t pid;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		sock_meet(sock[1]);
		CHECK_BYTES(before, m.p, LENGTH);
		memset(m.p, 0xcc, LENGTH);
		sock_meet(sock[1]);
		test_exit();
	}

	if (c->n == OWNER_WRITES_FIRST) {
		memset(m.p, 0x33, LENGTH);
		test_context("the owner wrote");
		pair_check(&p, mr, m.p);
	}
	sock_meet(sock[0]);
	sock_meet(sock[0]);
	test_context("the child wrote");
	CHECK_EQ(c->n == OWNER_WRITES_FIRST ? 0x33 : before[0], m.p[0]);
	pair_check(&p, mr, m.p);
	test_join(pid);
	memset(m.p, 0x44, LENGTH);
	test_context("the child is gone and the owner wrote");
	pair_check(&p, mr, m.p);
}

/* Shared when it was registered: what the other does later never shows. */
static void other_process(const struct test_case *c)
{
	struct mem m = mem_make(c->arg, LENGTH);
	struct pair p = pair_new(NULL);
	unsigned char *before = copy_of(m.p, LENGTH);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, m.length, GIFT_READ);
	const unsigned char *seen;
	size_t foreign = 0;

	mem_other(&m, c->n, 0xbb);
	if (c->n == MEM_EXIT)
		m.sock = -1;
	pair_check(&p, mr, before);
	CHECK_BYTES(before, m.p, LENGTH);

	/* The owner's own write may show or not; nothing else may. */
	memset(m.p, 0x77, LENGTH);
	seen = pair_read(&p, mr);
	for (size_t i = 0; i < LENGTH; i++)
		foreign += seen[i] != before[i] && seen[i] != 0x77;
	CHECK_EQ(0, foreign);
}

static void reader(void *arg)
{
	static const unsigned char contents[] = { 0, 0x42 };
	int sock = *(int *)arg;
	struct rc *rc = rc_create(dev_open(), NULL);
	struct ibv_mr *into = mr_new(rc->pd, MIB);
	unsigned char *expected = malloc(MIB);

	MUST(expected);
	rc_connect_socket(rc, sock);
	for (size_t i = 0; i < sizeof(contents); i++) {
		uint64_t addr;
		uint32_t rkey;

		memset(expected, contents[i], MIB);
		memset(into->addr, 0xee, MIB);
		sock_get(sock, &addr, sizeof(addr));
		sock_get(sock, &rkey, sizeof(rkey));
		MUST_STATUS(IBV_WC_SUCCESS,
			    do_rdma(rc, IBV_WR_RDMA_READ, into, into->addr, MIB,
				    addr, rkey));
		CHECK_BYTES(expected, into->addr, MIB);
		sock_meet(sock);
	}
}

static void between_processes(const struct test_case *c)
{
	struct mem m[2];
	struct rc *rc;
	int sock[2];
	pid_t pid;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = test_fork(reader, &sock[1]);
	m[0] = mem_make(&mem_untouched, MIB);
	m[1] = mem_make(&mem_written, MIB);
	rc = rc_create(dev_open(), NULL);
	rc_connect_socket(rc, sock[0]);
	memset(m[1].p, 0x42, MIB);
	for (int i = 0; i < 2; i++) {
		struct ibv_mr *mr = mr_reg(rc->pd, m[i].p, MIB, GIFT_READ);
		uint64_t addr = (uintptr_t)m[i].p;

		sock_put(sock[0], &addr, sizeof(addr));
		sock_put(sock[0], &mr->rkey, sizeof(mr->rkey));
		sock_meet(sock[0]);
	}
	test_join(pid);
}

/* The owner unmaps the memory: the region goes on showing what it took. */
static void unmapped(const struct test_case *c)
{
	struct mem m = mem_make(c->arg, LENGTH);
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, m.length, GIFT_READ);
	unsigned char *before = copy_of(pair_read(&p, mr), LENGTH);

	MUST(!munmap(m.p, m.length));
	pair_check(&p, mr, before);
	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_EQ(0, gift_stats().regions);
}

#define OTHER(id, text)							\
	{ "what the other process writes to " text " is never seen",	\
	  other_process, &mem_##id, MEM_WRITE },			\
	{ "a region on " text " outlives that the other process unmaps it", \
	  other_process, &mem_##id, MEM_UNMAP },			\
	{ "a region on " text " outlives the other process",		\
	  other_process, &mem_##id, MEM_EXIT }

#define OWNED(id, text)							\
	{ "a child's writes to owned " text " do not show, its owner's do", \
	  owned_across_fork, &mem_##id, CHILD_WRITES_FIRST },		\
	{ "the owner's writes to " text " show after a fork, then the child's do not", \
	  owned_across_fork, &mem_##id, OWNER_WRITES_FIRST }

static const struct test_case cases[] = {
	OWNED(written, "memory"),
	OWNED(thp_written, "THPs"),
	OWNED(hugetlb_private, "private hugetlb"),
	OTHER(forked_parent, "memory shared by fork (region in the parent)"),
	OTHER(forked_child, "memory shared by fork (region in the child)"),
	OTHER(thp_forked, "THPs shared by fork"),
	{ "another process reads a gift region right", between_processes },
	{ "a gift region on untouched memory outlives its unmapping", unmapped,
	  &mem_untouched },
	{ "a gift region on written memory outlives its unmapping", unmapped,
	  &mem_written },
	{ "a gift region on a private file outlives its unmapping", unmapped,
	  &mem_private_file },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
