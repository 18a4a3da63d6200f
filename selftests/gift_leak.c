// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Gift regions and other processes: whatever the other one does, and whatever the
 * kernel does to the pages in between, a region never shows what another process
 * wrote to its memory after the registration. Everything that can happen to a
 * process's own memory is in gift_matrix.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/mm.h"
#include "lib/pair.h"
#include "lib/proc.h"

#define LENGTH		((test_long() ? 8 : 2) * MIB)

#define OTHERS		0xbb
#define OTHERS_AGAIN	0xdd
#define OWNERS		0x77

/*
 * Who shares what with whom. The other process is a child that is forked after the
 * registration, or the process on the other side of an earlier fork, or both.
 */
struct sharing {
	const char *text;
	const struct mem_kind *pages, *huge, *hugetlb;
	bool forks;			/* after the registration */
};

static const struct sharing sharings[] = {
	{ "registered, then forked, region in the parent",
	  &mem_written, &mem_thp_written, &mem_hugetlb_private, true },
	{ "forked, registered by the child, forked again",
	  &mem_forked_child, &mem_thp_forked_child, &mem_hugetlb_forked_child, true },
	{ "forked, then registered by the parent",
	  &mem_forked_parent, &mem_thp_forked, &mem_hugetlb_forked, false },
	{ "forked, then registered by the child",
	  &mem_forked_child, &mem_thp_forked_child, &mem_hugetlb_forked_child, false },
};

static const struct size {
	const char *text;
	size_t offset;			/* of the kind in struct sharing */
} sizes[] = {
	{ "4 KiB pages", offsetof(struct sharing, pages) },
	{ "THP", offsetof(struct sharing, huge) },
	{ "hugetlb", offsetof(struct sharing, hugetlb) },
};

static const struct deed {
	const char *text;
	enum mem_order order;
} deeds[] = {
	{ "writes", MEM_WRITE },
	{ "unmaps", MEM_UNMAP },
	{ "exits", MEM_EXIT },
	{ "runs another program", MEM_EXEC },
};

struct scene {
	struct mem m;
	struct mem child;		/* its sock is to the child forked later */
	const struct sharing *sharing;
	const struct mem_kind *kind;
};

/* What the kernel does to both sides' pages before the other one acts. */
static void advise_all(struct scene *s, enum mem_order order)
{
	mem_do(&s->m, order, 0);
	if (s->sharing->forks)
		mem_other(&s->child, order, 0);
	mem_other(&s->m, order, 0);
}

static void nothing(struct scene *s)
{
}

static void swap(struct scene *s)
{
	bool swappable = s->kind == &mem_forked_parent || s->kind == &mem_forked_child;

	mm_cgroup_reclaim();
	/* A held page leaves the page tables; a pinned or a huge one does not. */
	CHECK_EQ(swappable ? LENGTH : 0, mem_range(s->m.map, LENGTH, "Swap"));
}

static void scan(struct scene *s)
{
	advise_all(s, MEM_MERGE);
	mem_scan();
}

static long long huge_mapped(const struct scene *s)
{
	return mem_range(s->m.map, LENGTH, "AnonHugePages");
}

static void split(struct scene *s)
{
	/* Fork splits what is pinned, to copy it page by page. */
	bool whole = s->kind->huge && !(s->sharing->forks && mem_coherent(s->kind));

	CHECK_EQ(whole ? LENGTH : 0, huge_mapped(s));
	advise_all(s, MEM_SPLIT);
	CHECK_EQ(0, huge_mapped(s));
}

/*
 * A page of the region is not copied into a huge one, and stays as it is. The child
 * has copies of what is pinned, which are, or it has the huge page itself.
 */
static void collapse(struct scene *s)
{
	bool copies = mem_coherent(s->kind) || (s->kind->huge && huge_mapped(s));
	long long before = huge_mapped(s);

	advise_all(s, MEM_COLLAPSE);
	CHECK_EQ(before, huge_mapped(s));
	if (s->sharing->forks)
		CHECK_EQ(copies ? LENGTH : 0,
			 mem_range_of(s->child.other, s->m.map, LENGTH, "AnonHugePages"));
}

static void split_and_collapse(struct scene *s)
{
	split(s);
	collapse(s);
}

static void swap_and_scan(struct scene *s)
{
	swap(s);
	scan(s);
}

static void split_and_swap(struct scene *s)
{
	split(s);
	swap(s);
}

static const struct between {
	const char *text;
	void (*run)(struct scene *s);
	bool hugetlb, only_long;
} betweens[] = {
	{ "", nothing, true },
	{ " after swapping", swap, true },
	{ " after a KSM scan", scan },
	{ " after a THP split", split },
	{ " after MADV_COLLAPSE", collapse },
	{ " after a split and MADV_COLLAPSE", split_and_collapse, .only_long = true },
	{ " after swapping and a KSM scan", swap_and_scan, .only_long = true },
	{ " after a split and swapping", split_and_swap, .only_long = true },
};

#define NR_CASES (ARRAY_LEN(sizes) * ARRAY_LEN(sharings) * ARRAY_LEN(deeds) *	\
		  ARRAY_LEN(betweens))

static void all_others(struct scene *s, enum mem_order order, unsigned char byte)
{
	if (s->sharing->forks)
		mem_other(&s->child, order, byte);
	mem_other(&s->m, order, byte);
}

/* n counts through the four tables, the last one fastest. */
static void leak(const struct test_case *c)
{
	const struct between *b = &betweens[c->n % ARRAY_LEN(betweens)];
	const struct deed *d = &deeds[c->n / ARRAY_LEN(betweens) % ARRAY_LEN(deeds)];
	struct scene s = { .sharing = c->arg };
	unsigned char *before, *own;
	struct ib_gift_stats stats;
	struct ibv_mr *mr;
	bool coherent;
	struct pair p;

	s.kind = *(const struct mem_kind *const *)
		((const char *)c->arg +
		 sizes[c->n / (ARRAY_LEN(betweens) * ARRAY_LEN(deeds))].offset);
	mm_cgroup_enter();
	s.m = mem_make(s.kind, LENGTH);
	p = pair_new(NULL);
	before = copy_of(s.m.p, LENGTH);
	mr = mr_reg(p.owner->pd, s.m.p, LENGTH, GIFT_READ);
	stats = gift_stats();
	CHECK_EQ(LENGTH / PAGE, stats.pages[s.kind->taken]);
	coherent = s.kind->taken == IB_GIFT_PAGE_PINNED;
	if (s.sharing->forks) {
		s.child = s.m;
		mem_share(&s.child, false);
	}

	b->run(&s);
	test_context("before the other one acts");
	pair_check(&p, mr, before);
	all_others(&s, d->order, OTHERS);
	test_context("the other one %s", d->text);
	pair_check(&p, mr, before);
	CHECK_BYTES(before, s.m.p, LENGTH);
	pair_check(&p, mr, before);

	/* A page that the owner had alone shows it, one that was shared does not. */
	memset(s.m.p, OWNERS, LENGTH);
	own = copy_of(s.m.p, LENGTH);
	test_context("then the owner writes");
	pair_check(&p, mr, coherent ? own : before);
	if (d->order == MEM_WRITE) {
		all_others(&s, MEM_WRITE, OTHERS_AGAIN);
		test_context("then the other one writes again");
		CHECK_BYTES(own, s.m.p, LENGTH);
		pair_check(&p, mr, coherent ? own : before);
	}
	MUST_ERR(0, ibv_dereg_mr(mr));
	test_context("registered again");
	mr = mr_reg(p.owner->pd, s.m.p, LENGTH, GIFT_READ);
	pair_check(&p, mr, own);
	MUST_ERR(0, ibv_dereg_mr(mr));
}

/* A peer in another process, on an address and key that it was told. */
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

/*
 * A region that its child inherits with the device's file: who registered it registers,
 * forks, and does something or ends; the child has the region from then on, and writes.
 * The case's own process reads. The memory stays that of who registered it.
 */
static const struct inheritance {
	const char *text;
	const struct mem_kind *kind;
} inheritances[] = {
	{ "4 KiB pages", &mem_written },
	{ "4 KiB pages shared by fork", &mem_forked_parent },
	{ "THP", &mem_thp_written },
	{ "THP shared by fork", &mem_thp_forked },
	{ "hugetlb", &mem_hugetlb_private },
};

struct bequest {
	const struct mem_kind *kind;
	int registrar, heir;		/* sockets on which they are told what to do */
};

static void bequeath(void *arg)
{
	struct bequest *b = arg;
	struct mem m = mem_make(b->kind, LENGTH);
	struct rc *rc = rc_create(dev_open(), NULL);
	struct ibv_mr *mr;
	uint64_t addr;
	pid_t heir;

	rc_connect_socket(rc, b->registrar);
	mr = mr_reg(rc->pd, m.p, LENGTH, GIFT_READ);
	heir = fork();
	MUST(heir >= 0);
	if (!heir) {
		close(b->registrar);
		mem_serve(&m, b->heir);
	}
	close(b->heir);
	/* Who else has shared the memory until now has the sockets too. */
	mem_other(&m, MEM_EXIT, 0);
	addr = (uintptr_t)m.p;
	sock_put(b->registrar, &addr, sizeof(addr));
	sock_put(b->registrar, &mr->rkey, sizeof(mr->rkey));
	sock_put(b->registrar, m.p, LENGTH);
	mem_serve(&m, b->registrar);
}

/*
 * A page of the file's own cache, which no process has alone: to register it is to have
 * a copy, as the owner's first write would make one.
 */
static void hugetlb_file(const struct test_case *c)
{
	int fd = memfd_create("selftest", MFD_CLOEXEC | MFD_HUGETLB);
	unsigned char *file, *own, *before;
	struct pair p = pair_new(NULL);
	struct ibv_mr *mr;

	MUST(fd >= 0);
	mm_hugetlb_reserve(4 * THP_SIZE);
	MUST(!ftruncate(fd, THP_SIZE));
	file = mem_map(THP_SIZE, THP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	test_fill(file, THP_SIZE, 1);
	before = copy_of(file, THP_SIZE);
	own = mem_map(THP_SIZE, THP_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	if (c->n)
		CHECK_BYTES(before, own, THP_SIZE);
	mr = mr_reg(p.owner->pd, own, THP_SIZE, GIFT_READ);
	CHECK_EQ(THP_SIZE / PAGE, gift_stats().pages[IB_GIFT_PAGE_PINNED]);
	pair_check(&p, mr, before);
	memset(file, OTHERS, THP_SIZE);
	test_context("the file is written");
	pair_check(&p, mr, before);
	CHECK_BYTES(before, own, THP_SIZE);
	memset(own, OWNERS, THP_SIZE);
	test_context("the owner writes");
	pair_check(&p, mr, own);
	MUST_ERR(0, ibv_dereg_mr(mr));
}

/* Of all processes. */
static long long gift_regions(void)
{
	return proc_number("/sys/class/misc/ib_gift/regions");
}

struct inherited {
	struct rc *rc;
	struct ibv_mr *into;
	uint64_t addr;
	uint32_t rkey;
};

static void check_inherited(struct inherited *r, const unsigned char *expected)
{
	unsigned char *to = r->into->addr;

	memset(to, 0xee, LENGTH);
	for (size_t at = 0; at < LENGTH; at += MIB)
		MUST_STATUS(IBV_WC_SUCCESS,
			    do_rdma(r->rc, IBV_WR_RDMA_READ, r->into, to + at, MIB,
				    r->addr + at, r->rkey));
	CHECK_BYTES(expected, to, LENGTH);
}

/* The socket is closed on exec, as the device's file is. */
static int order_socket(int *other)
{
	int sock[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	*other = sock[1];
	return sock[0];
}

static void inherited(const struct test_case *c)
{
	static const enum mem_order kernel_does[] = {
		MEM_SPLIT, MEM_COLLAPSE, MEM_PAGEOUT,
	};
	const struct deed *d = c->arg;
	const struct mem_kind *kind = inheritances[c->n].kind;
	struct bequest b = { .kind = kind };
	unsigned char *expected = malloc(LENGTH);
	const long long pins = pins_now();
	struct mem registrar = { 0 }, heir = { 0 };
	struct inherited r = { .rc = rc_create(dev_open(), NULL) };

	MUST(expected);
	r.into = mr_new(r.rc->pd, LENGTH);
	registrar.sock = order_socket(&b.registrar);
	heir.sock = order_socket(&b.heir);
	registrar.other = test_fork(bequeath, &b);
	close(b.registrar);
	close(b.heir);
	rc_connect_socket(r.rc, registrar.sock);
	sock_get(registrar.sock, &r.addr, sizeof(r.addr));
	sock_get(registrar.sock, &r.rkey, sizeof(r.rkey));
	sock_get(registrar.sock, expected, LENGTH);

	check_inherited(&r, expected);
	mem_other(&heir, MEM_WRITE, OTHERS);
	test_context("the child writes");
	check_inherited(&r, expected);
	if (!mem_is_hugetlb(kind)) {
		for (size_t i = 0; i < ARRAY_LEN(kernel_does); i++) {
			mem_other(&registrar, kernel_does[i], 0);
			mem_other(&heir, kernel_does[i], 0);
		}
		test_context("the kernel has split, collapsed and paged out");
		check_inherited(&r, expected);
	}
	mem_other(&registrar, d->order, OWNERS);
	/* Its own pages, and its own write, where it had them alone. */
	if (d->order == MEM_WRITE && mem_coherent(kind))
		memset(expected, OWNERS, LENGTH);
	test_context("who registered it %s", d->text);
	check_inherited(&r, expected);
	mem_other(&heir, MEM_WRITE, OTHERS_AGAIN);
	test_context("the child writes again");
	check_inherited(&r, expected);

	/* Who is the last to have the file takes the region along. */
	if (d->order == MEM_WRITE || d->order == MEM_UNMAP)
		mem_other(&registrar, MEM_EXIT, 0);
	check_inherited(&r, expected);
	MUST(gift_regions() == 1);
	mem_other(&heir, MEM_EXIT, 0);
	test_context("both are gone");
	for (int i = 0; i < 500 && gift_regions(); i++)
		test_sleep_ms(10);
	CHECK_EQ(0, gift_regions());
	MUST_ERR(0, ibv_dereg_mr(r.into));
	for (int i = 0; i < 500 && pins_now() > pins; i++)
		test_sleep_ms(10);
	CHECK_EQ(pins, pins_now());
}

static struct test_case cases[NR_CASES + ARRAY_LEN(inheritances) * ARRAY_LEN(deeds) + 3];
static size_t nr_cases;

static bool is_there(const struct mem_kind *kind, const struct between *b)
{
	return (!mem_is_hugetlb(kind) || b->hugetlb) && (!b->only_long || test_long());
}

static void add(const struct size *size, const struct sharing *sharing,
		const struct deed *deed, const struct between *b)
{
	const struct mem_kind *kind =
		*(const struct mem_kind *const *)((const char *)sharing + size->offset);
	struct test_case *c = &cases[nr_cases];
	char *name;

	if (!is_there(kind, b))
		return;
	if (asprintf(&name, "%s, %s: the other process %s%s, and is never seen",
		     size->text, sharing->text, deed->text, b->text) < 0)
		abort();
	*c = (struct test_case){
		.name = name, .run = leak, .arg = sharing,
		.n = ((size - sizes) * ARRAY_LEN(deeds) + (deed - deeds)) *
		     ARRAY_LEN(betweens) + (b - betweens),
	};
	nr_cases++;
}

static void add_inherited(size_t kind, const struct deed *deed)
{
	char *name;

	if (asprintf(&name,
		     "%s, left to a child: who registered it %s, and the child is never seen",
		     inheritances[kind].text, deed->text) < 0)
		abort();
	cases[nr_cases++] = (struct test_case){
		.name = name, .run = inherited, .arg = deed, .n = kind,
	};
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (size_t j = 0; j < ARRAY_LEN(sharings); j++)
			for (size_t k = 0; k < ARRAY_LEN(deeds); k++)
				for (size_t l = 0; l < ARRAY_LEN(betweens); l++)
					add(&sizes[i], &sharings[j], &deeds[k],
					    &betweens[l]);
	for (size_t i = 0; i < ARRAY_LEN(inheritances); i++)
		for (size_t j = 0; j < ARRAY_LEN(deeds); j++)
			add_inherited(i, &deeds[j]);
	cases[nr_cases++] = (struct test_case){
		.name = "a private mapping of a hugetlb file never shows what others write",
		.run = hugetlb_file,
	};
	cases[nr_cases++] = (struct test_case){
		.name = "a private mapping of a hugetlb file that was read does not either",
		.run = hugetlb_file, .n = 1,
	};
	cases[nr_cases++] = (struct test_case){
		.name = "another process reads a gift region right",
		.run = between_processes,
	};
	return test_main(argc, argv, cases, nr_cases, dev_ready);
}
