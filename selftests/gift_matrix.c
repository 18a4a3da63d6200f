// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Every kind of memory (lib/mem.c) by every check: what registration costs, how
 * pages are taken, what a peer reads, what of it changes when something happens to
 * the memory, and that everything is given back. What is expected follows from the
 * kind's row and the check's; no cell is left to chance. Races are in gift_race.c,
 * processes that share memory in gift_leak.c, access rights in gift_access.c.
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

/* Where memory is measured, and where it is only looked at. */
#define LENGTH		((test_long() ? 16 : 4) * MIB)
#define SMALL		small_length()
/* What else runs on the machine may take or give back this much meanwhile. */
#define SLACK		(1 * MIB)

/*
 * MATRIX_SMALL says otherwise for rxe of 6.1, which looks at the entry behind its
 * table's last one at the end of a region of a multiple of 1 MiB.
 */
static size_t small_length(void)
{
	const char *wish = getenv("MATRIX_SMALL");

	return wish ? strtoul(wish, NULL, 0) : (test_long() ? 8 : 2) * MIB;
}

/* Memory */

struct memory {
	long long anon, cached, used, huge, pss, huge_mapped;
};

static struct memory memory_now(const struct mem *m)
{
	return (struct memory){
		.anon = mem_anon(), .cached = mem_cached(), .used = mem_used(),
		.huge = -proc_field("/proc/meminfo", "HugePages_Free") * (long long)THP_SIZE,
		.pss = mem_range(m->map, m->map_length, "Pss"),
		.huge_mapped = mem_range(m->map, m->map_length, "AnonHugePages"),
	};
}

static long long bytes_of(const struct mem *m, bool (*which)(const struct mem *part))
{
	long long sum = 0;

	if (!m->nr_parts)
		return which(m) ? mem_pages(m) * PAGE : 0;
	for (size_t i = 0; i < m->nr_parts; i++)
		if (which(&m->parts[i]))
			sum += m->parts[i].length;
	return sum;
}

static bool fills_anon(const struct mem *m)
{
	return m->kind->fills == FILLS_ANON;
}

static bool fills_cache(const struct mem *m)
{
	return m->kind->fills == FILLS_CACHE;
}

static bool fills_huge(const struct mem *m)
{
	return m->kind->fills == FILLS_HUGE;
}

static bool unshares(const struct mem *m)
{
	return m->kind->unshares;
}

static bool shown_in_pss(const struct mem *m)
{
	return !mem_is_hugetlb(m->kind);
}

static bool new_in_pss(const struct mem *m)
{
	return m->kind->unmapped || fills_anon(m) || fills_cache(m);
}

#define CHECK_ABOUT(expected, got)					\
	CHECK_BETWEEN((long long)(expected) - (long long)SLACK, got,	\
		      (long long)(expected) + (long long)SLACK)

/* Copies are what a plain registration makes of everything that GIFT holds. */
static void check_growth(const struct mem *m, struct memory before, bool copies)
{
	long long held = (mem_pages(m) - mem_taken(m, IB_GIFT_PAGE_PINNED)) * PAGE;
	/* KSM's page goes when the last of those that were merged is a copy. */
	long long ksm = mem_taken(m, IB_GIFT_PAGE_KSM) * PAGE / MEM_ALIKE;
	long long anon = bytes_of(m, fills_anon) + (copies ? held - ksm : 0);
	long long cached = bytes_of(m, fills_cache);
	struct memory now = memory_now(m);

	long long used = anon + cached + bytes_of(m, unshares);

	/*
	 * What was swapped out is in the swap cache and copied from there. A page has
	 * an entry in a page table, and one in the region's scatterlist.
	 */
	CHECK_BETWEEN(used - (long long)SLACK, now.used - before.used,
		      used + (long long)(SLACK + mem_pages(m) * (8 + 40)));
	CHECK_ABOUT(anon, now.anon - before.anon);
	CHECK_ABOUT(cached, now.cached - before.cached);
	CHECK_EQ(bytes_of(m, fills_huge), now.huge - before.huge);
	if (copies)
		CHECK_ABOUT(bytes_of(m, shown_in_pss), now.pss);
	else
		CHECK_ABOUT(before.pss + bytes_of(m, new_in_pss), now.pss);
	if (!copies)
		CHECK_EQ(before.huge_mapped, now.huge_mapped);
}

static void plain_grows(const struct test_case *c)
{
	struct mem m = mem_make(c->arg, LENGTH);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	struct memory before = memory_now(&m);
	long long pins = pins_now();
	struct ibv_mr *mr = mr_reg(pd, m.p, m.length, IBV_ACCESS_REMOTE_READ);

	check_growth(&m, before, true);
	CHECK_EQ(mem_pages(&m), pins_now() - pins);
	CHECK_EQ(mem_pages(&m) * PAGE, pinned_vm(0));
	MUST_ERR(0, ibv_dereg_mr(mr));
	mem_drop(&m);
}

static void gift_grows(const struct test_case *c)
{
	struct mem m = mem_make(c->arg, LENGTH);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	struct memory before = memory_now(&m);
	struct ibv_mr *mr = mr_reg(pd, m.p, m.length, GIFT_READ);

	check_growth(&m, before, false);
	MUST_ERR(0, ibv_dereg_mr(mr));
	test_context("deregistered");
	check_growth(&m, before, false);
	mem_drop(&m);
}

/* Pages */

static void check_taken(const struct mem *m)
{
	static const char *const names[IB_GIFT_PAGE_KINDS] = {
		"pinned", "zero", "huge zero", "KSM", "shared", "file",
	};
	struct ib_gift_stats s = gift_stats();

	CHECK_EQ(1, s.regions);
	for (int i = 0; i < IB_GIFT_PAGE_KINDS; i++) {
		test_context("pages taken as %s", names[i]);
		CHECK_EQ(mem_taken(m, i), s.pages[i]);
	}
	test_context("%s", "");
}

/* The zero pages are nobody's, and have no reference that could be seen. */
static size_t own_pages(const struct mem *m)
{
	return mem_pages(m) - mem_taken(m, IB_GIFT_PAGE_ZERO) -
	       mem_taken(m, IB_GIFT_PAGE_HUGE_ZERO);
}

/* No page has a reference or a pin that no page table explains. */
static void check_free(const struct mem *m)
{
	struct mm_moved pages = mm_move(m->p, m->length);

	CHECK_EQ(pages.present, pages.moved);
}

/* Nobody has one of hugetlb's pages any more, when all who had it are gone. */
static void check_pool_empty(void)
{
	for (int i = 0; i < 200 && !mm_hugetlb_empty(); i++)
		test_sleep_ms(10);
	CHECK_EQ(0, proc_field("/proc/meminfo", "HugePages_Total"));
}

static void takes_as_it_is(const struct test_case *c)
{
	struct mem m = mem_make(c->arg, SMALL);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	long long pins = pins_now();
	long long huge = mem_range(m.map, m.map_length, "AnonHugePages"), pss;
	struct mm_moved pages;
	struct ibv_mr *mr = mr_reg(pd, m.p, m.length, GIFT_READ);

	check_taken(&m);
	CHECK_EQ(mem_taken(&m, IB_GIFT_PAGE_PINNED), pins_now() - pins);
	CHECK_EQ(mem_pages(&m) * PAGE, pinned_vm(0));
	test_context("while it is registered");
	pages = mm_move(m.p, m.length);
	CHECK_EQ(own_pages(&m), pages.present);
	CHECK_EQ(0, pages.moved);
	pss = mem_range(m.map, m.map_length, "Pss");

	MUST_ERR(0, ibv_dereg_mr(mr));
	test_context("when it is deregistered");
	CHECK_EQ(0, gift_stats().regions);
	CHECK_EQ(pins, pins_now());
	CHECK_EQ(0, pinned_vm(0));
	pages = mm_move(m.p, m.length);
	CHECK_EQ(own_pages(&m), pages.present);
	CHECK_EQ(own_pages(&m), pages.moved);
	/* Still merged, still shared, still huge. */
	CHECK_EQ(pss, mem_range(m.map, m.map_length, "Pss"));
	CHECK_EQ(huge, mem_range(m.map, m.map_length, "AnonHugePages"));
	mem_drop(&m);
	check_pool_empty();
}

/* Twice the same memory: each region takes and gives back its own. */
static void twice(const struct test_case *c)
{
	struct mem m = mem_make(c->arg, SMALL);
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);
	long long pins = pins_now();
	size_t pinned = mem_taken(&m, IB_GIFT_PAGE_PINNED);
	struct ibv_mr *one = mr_reg(pd, m.p, m.length, GIFT_READ);
	struct ibv_mr *two = mr_reg(pd, m.p, m.length, GIFT_READ);

	CHECK_EQ(2, gift_stats().regions);
	CHECK_EQ(2 * pinned, pins_now() - pins);
	CHECK_EQ(2 * mem_pages(&m) * PAGE, pinned_vm(0));
	MUST_ERR(0, ibv_dereg_mr(two));
	check_taken(&m);
	CHECK_EQ(pinned, pins_now() - pins);
	CHECK_EQ(0, mm_move(m.p, m.length).moved);
	MUST_ERR(0, ibv_dereg_mr(one));
	CHECK_EQ(pins, pins_now());
	check_free(&m);
	mem_drop(&m);
}

/* What happens to memory while it is registered */

struct fate {
	const char *text;
	void (*run)(struct mem *m);
	bool (*applies)(const struct mem_kind *kind);
	/* Whose bytes change to NEWS: of shared mappings, of files as well. */
	enum { NOBODY, SHARED, FILES } news;
	/* The process has other pages from now on, unless the mapping is shared. */
	bool drops;
	bool unmaps;
};

#define NEWS		0xcc
#define OWNERS		0x5a

static bool anywhere(const struct mem_kind *kind)
{
	return true;
}

static bool private_anon(const struct mem_kind *kind)
{
	return kind->sort == SORT_ANON || kind->sort == SORT_MIXED;
}

/* One huge page's worth of pages, which could become one. */
static bool could_collapse(const struct mem_kind *kind)
{
	return private_anon(kind) && !kind->length;
}

static bool has_file(const struct mem_kind *kind)
{
	return kind->sort == SORT_PRIVATE_FILE || kind->sort == SORT_SHARED ||
	       kind->sort == SORT_MIXED;
}

static bool writable(const struct mem_kind *kind)
{
	return !kind->read_only;
}

static void nothing(struct mem *m)
{
}

static void unmap_part(struct mem *m)
{
	MUST(!munmap(m->map, m->map_length));
}

static unsigned char *moving_from, *moving_to;

static void move_part(struct mem *m)
{
	unsigned char *to = moving_to + (m->map - moving_from);

	MUST(mremap(m->map, m->map_length, m->map_length,
		    MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	m->p = to + (m->p - m->map);
	m->map = to;
}

/* To another place, where huge pages can stay as they are. */
static void moves(struct mem *m)
{
	moving_from = m->map;
	moving_to = mem_map(m->map_length, THP_SIZE, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	mem_each(m, move_part);
	m->p += moving_to - m->map;
	m->map = moving_to;
}

static void drop_part(struct mem *m)
{
	MUST(!madvise(m->map, m->map_length, MADV_DONTNEED));
}

static void pageout_part(struct mem *m)
{
	void *start = (void *)((uintptr_t)m->p & ~(PAGE - 1));
	int expected = mem_is_hugetlb(m->kind) ? EINVAL : 0;

	for (int i = 0; i < 3; i++)
		CHECK_ERR(expected, madvise(start, mem_pages(m) * PAGE, MADV_PAGEOUT) ?
				    errno : 0);
}

static void pages_out(struct mem *m)
{
	mem_each(m, pageout_part);
	/* Pinned pages stay, and so do those that two processes map. */
	CHECK_EQ(0, mem_range(m->map, m->map_length, "Swap"));
}

static void free_part(struct mem *m)
{
	int expected = m->kind->sort == SORT_ANON ? 0 : EINVAL;

	CHECK_ERR(expected, madvise(m->map, m->map_length, MADV_FREE) ? errno : 0);
	pageout_part(m);
}

static void frees(struct mem *m)
{
	mem_each(m, free_part);
}

static void forbid_part(struct mem *m)
{
	MUST(!mprotect(m->map, m->map_length, PROT_NONE));
}

static void allow_part(struct mem *m)
{
	MUST(!mprotect(m->map, m->map_length,
		       m->kind->read_only ? PROT_READ : PROT_READ | PROT_WRITE));
}

static void forbids(struct mem *m)
{
	mem_each(m, forbid_part);
	mem_each(m, allow_part);
}

static void collapses(struct mem *m)
{
	long long huge = mem_range(m->map, m->map_length, "AnonHugePages");

	mem_do(m, MEM_COLLAPSE, 0);
	/* A page with a reference is not copied into a huge one, nor are zeros alone. */
	CHECK_EQ(huge, mem_range(m->map, m->map_length, "AnonHugePages"));
}

static void splits(struct mem *m)
{
	mem_do(m, MEM_SPLIT, 0);
	CHECK_EQ(0, mem_range(m->map, m->map_length, "AnonHugePages"));
}

static void merge_part(struct mem *m)
{
	if (m->kind->sort == SORT_ANON)
		mem_do(m, MEM_MERGE, 0);
}

static void merges(struct mem *m)
{
	long long pss = mem_range(m->map, m->map_length, "Pss");

	mem_each(m, merge_part);
	mem_scan();
	/* Nor is it merged. */
	CHECK_EQ(pss, mem_range(m->map, m->map_length, "Pss"));
}

static void write_as_child(void *arg)
{
	mem_write(arg, NEWS);
}

/* A child that is forked now, and the process that shares it, if there is one. */
static void others_write(struct mem *m)
{
	test_join(test_fork(write_as_child, m));
	mem_other(m, MEM_WRITE, NEWS);
}

static void write_file_of(struct mem *m)
{
	unsigned char *buf;

	if (m->fd < 0)
		return;
	buf = malloc(m->map_length);
	MUST(buf);
	memset(buf, NEWS, m->map_length);
	MUST(pwrite(m->fd, buf, m->map_length, 0) == (ssize_t)m->map_length);
	free(buf);
}

static void file_is_written(struct mem *m)
{
	mem_each(m, write_file_of);
}

static const struct fate fates[] = {
	{ "nothing happens to it", nothing, anywhere },
	{ "other processes write", others_write, writable, .news = SHARED },
	{ "its file is written", file_is_written, has_file, .news = FILES },
	{ "it is unmapped", unmap_part, anywhere, .unmaps = true },
	{ "it is moved by mremap", moves, anywhere },
	{ "MADV_DONTNEED", drop_part, anywhere, .drops = true },
	{ "MADV_PAGEOUT", pages_out, anywhere },
	{ "MADV_FREE", frees, anywhere },
	{ "mprotect to PROT_NONE and back", forbids, anywhere },
	{ "MADV_COLLAPSE", collapses, could_collapse },
	{ "its huge pages are split", splits, could_collapse },
	{ "KSM scans it", merges, private_anon },
};

/* Calls @decide for each page that a test looks at; where it says so, new bytes. */
static unsigned char *mix(const struct mem *m, const unsigned char *old,
			  const unsigned char *new, const struct fate *f,
			  bool (*decide)(const struct mem *part, int taken,
					 const struct fate *f))
{
	unsigned char *out = malloc(mem_seen(m));
	size_t in_page = (uintptr_t)m->p % PAGE, page, length;

	MUST(out);
	for (size_t at = 0; at < mem_seen(m); at += length) {
		size_t window = at / m->window, from = at % m->window;

		page = (in_page + window * m->distance + from) / PAGE;
		length = PAGE - (in_page + from) % PAGE;
		if (length > m->window - from)
			length = m->window - from;
		memcpy(out + at, decide(mem_at(m, page), m->taken[page], f) ? new + at :
			old + at, length);
	}
	return out;
}

static bool is_news(const struct mem *part, int taken, const struct fate *f)
{
	bool shared = part->kind->sort == SORT_SHARED ||
		      (part->kind->sort == SORT_HUGETLB_SHARED && f->news == SHARED);

	return (f->news != NOBODY && shared) ||
	       (f->news == FILES && taken == IB_GIFT_PAGE_FILE);
}

/* Coherent are pinned pages, as long as they are the owner's. */
static bool is_coherent(const struct mem *part, int taken, const struct fate *f)
{
	bool shared = part->kind->sort == SORT_SHARED ||
		      part->kind->sort == SORT_HUGETLB_SHARED;

	return taken == IB_GIFT_PAGE_PINNED && (!f->drops || shared);
}

static bool always(const struct mem *part, int taken, const struct fate *f)
{
	return true;
}

static unsigned char *bytes(const struct mem *m, int byte)
{
	unsigned char *p = malloc(mem_seen(m));

	MUST(p);
	return memset(p, byte, mem_seen(m));
}

/* Of the region before the pages were dropped, and where that was. */
static const unsigned char *dropped, *dropped_from;

/* What the owner has when it has dropped its pages: zeros, the file, what is shared. */
static void check_dropped(struct mem *m)
{
	unsigned char *now = mem_look(m), *expected = bytes(m, 0);

	if (m->fd >= 0)
		MUST(pread(m->fd, expected, m->length, 0) == (ssize_t)m->length);
	if (m->kind->sort == SORT_HUGETLB_SHARED)
		memcpy(expected, dropped + (m->p - dropped_from), m->length);
	CHECK_BYTES(expected, now, mem_seen(m));
	free(now);
	free(expected);
}

static void set_window(struct mem *part)
{
	part->windows = 1;
	part->window = part->length;
}

/* The region alone has the pages, of which nothing is left when it ends. */
static void end_unmapped(struct mem *m, struct ibv_mr *mr, long long lost)
{
	long long pins = pins_now(), pinned = pinned_vm(0);

	MUST_ERR(0, ibv_dereg_mr(mr));
	test_context("unmapped and deregistered");
	CHECK_EQ(0, gift_stats().regions);
	CHECK_EQ(mem_taken(m, IB_GIFT_PAGE_PINNED), pins - pins_now());
	CHECK_EQ(mem_pages(m) * PAGE, pinned - pinned_vm(0));
	mem_drop(m);
	check_pool_empty();
	CHECK_BETWEEN(-1024LL * MIB, mem_lost_since(lost, SLACK), SLACK);
}

static void after(const struct test_case *c)
{
	const struct fate *f = &fates[c->n];
	struct mem m = mem_make(c->arg, SMALL);
	struct pair p = pair_new(NULL);
	unsigned char *old, *expected, *now;
	size_t seen = mem_seen(&m);
	long long lost = 0;
	struct ibv_mr *mr;

	if (f->unmaps)
		lost = mem_lost();
	if (m.nr_parts)
		mem_each(&m, set_window);
	mr = mr_reg(p.owner->pd, m.p, m.length, GIFT_READ);
	/* The peer reads first: the owner's own look faults pages in. */
	old = pair_look(&p, mr, &m);
	if (!f->unmaps && !f->drops)
		CHECK_BYTES(mem_look(&m), old, seen);

	f->run(&m);
	expected = mix(&m, old, bytes(&m, NEWS), f, is_news);
	now = pair_look(&p, mr, &m);
	test_context("a peer reads");
	CHECK_BYTES(expected, now, seen);
	if (f->unmaps) {
		end_unmapped(&m, mr, lost);
		return;
	}
	test_context("the owner reads");
	dropped = old;
	dropped_from = m.p;
	if (f->drops)
		mem_each(&m, check_dropped);
	else
		CHECK_BYTES(expected, mem_look(&m), seen);

	test_context("the owner has written and a peer reads");
	mem_write(&m, OWNERS);
	old = expected;
	expected = mix(&m, old, mem_look(&m), f, is_coherent);
	CHECK_BYTES(expected, pair_look(&p, mr, &m), seen);
	MUST_ERR(0, ibv_dereg_mr(mr));
	check_free(&m);

	test_context("registered again");
	mr = mr_reg(p.owner->pd, m.p, m.length, GIFT_READ);
	CHECK_BYTES(mem_look(&m), pair_look(&p, mr, &m), seen);
	if (!m.kind->read_only) {
		test_context("registered and written again");
		mem_write(&m, 0xa5);
		expected = mix(&m, old, mem_look(&m), f, always);
		CHECK_BYTES(expected, pair_look(&p, mr, &m), seen);
	}
	MUST_ERR(0, ibv_dereg_mr(mr));
	check_free(&m);
	mem_drop(&m);
}

/* How a process ends that has memory registered */

struct owner {
	const struct mem_kind *kind;
	int sock, other_end;
	bool execs;
};

static void owner(void *arg)
{
	struct owner *o = arg;
	struct ibv_pd *pd;
	struct mem m;

	close(o->other_end);
	m = mem_make(o->kind, LENGTH);
	pd = ibv_alloc_pd(dev_open()->ctx);
	mr_reg(pd, m.p, m.length, GIFT_READ);
	check_taken(&m);
	sock_meet(o->sock);
	if (!o->execs)
		_exit(test_failed());
	dup2(o->sock, STDIN_FILENO);
	/* Lives on without the memory until the other side is closed. */
	execl("/bin/sh", "sh", "-c", "echo; read line; exit 0", NULL);
	_exit(127);
}

#define COUNTER(name)	proc_number("/sys/class/misc/ib_gift/" name)

static void ends(const struct test_case *c)
{
	long long pins = pins_now(), lost, anon;
	struct owner o = { .kind = c->arg, .execs = c->n };
	int sock[2];
	pid_t pid;

	lost = mem_lost();
	anon = mem_anon();
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	o.sock = sock[1];
	o.other_end = sock[0];
	pid = test_fork(owner, &o);
	close(sock[1]);
	sock_meet(sock[0]);
	if (!c->n)
		test_join(pid);
	/* The last file descriptor is closed when the process is gone already. */
	for (int i = 0; i < 500 && (COUNTER("regions") > 0 || pins_now() != pins ||
				    mem_anon() - anon > (long long)SLACK); i++)
		test_sleep_ms(10);
	CHECK_EQ(0, COUNTER("regions"));
	CHECK_EQ(0, COUNTER("pages_pinned"));
	CHECK_EQ(0, COUNTER("bytes_not_copied"));
	CHECK_EQ(pins, pins_now());
	CHECK_BETWEEN(-1024LL * MIB, mem_anon() - anon, SLACK);
	if (c->n) {
		char line;

		/* It was there when all was given back, and waits for its line still. */
		CHECK(recv(sock[0], &line, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
		close(sock[0]);
		test_join(pid);
	}
	check_pool_empty();
	CHECK_BETWEEN(-1024LL * MIB, mem_lost_since(lost, SLACK), SLACK);
}

/* The table of checks */

static bool not_sparse(const struct mem_kind *kind)
{
	return test_long() || kind != &mem_sparse;
}

static const struct check {
	const char *text;
	void (*run)(const struct test_case *c);
	unsigned long n;
	bool (*applies)(const struct mem_kind *kind);
} checks[] = {
	/* A GiB to allocate is for a longer run. */
	{ "a plain registration makes the process own all of it", plain_grows, 0, not_sparse },
	{ "GIFT allocates only what the memory itself asks for", gift_grows, 0, anywhere },
	{ "GIFT takes each page as it is and gives it back", takes_as_it_is, 0, anywhere },
	{ "two regions take and give back their own", twice, 0, anywhere },
	{ "nothing is left when its owner exits", ends, false, anywhere },
	{ "nothing is left when its owner runs another program", ends, true, anywhere },
};

static struct test_case *cases;
static size_t nr_cases;

static void add(const struct mem_kind *kind, const char *text,
		void (*run)(const struct test_case *c), unsigned long n)
{
	struct test_case *c = &cases[nr_cases++];
	char *name;

	if (asprintf(&name, "%s: %s", kind->name, text) < 0)
		abort();
	*c = (struct test_case){ .name = name, .run = run, .arg = kind, .n = n };
}

int main(int argc, char **argv)
{
	cases = calloc(mem_nr_kinds * (ARRAY_LEN(checks) + ARRAY_LEN(fates)), sizeof(*cases));
	if (!cases)
		abort();
	for (size_t k = 0; k < mem_nr_kinds; k++) {
		const struct mem_kind *kind = mem_kinds[k];

		for (size_t i = 0; i < ARRAY_LEN(checks); i++)
			if (checks[i].applies(kind))
				add(kind, checks[i].text, checks[i].run, checks[i].n);
		for (size_t i = 0; i < ARRAY_LEN(fates); i++)
			if (fates[i].applies(kind))
				add(kind, fates[i].text, after, i);
	}
	return test_main(argc, argv, cases, nr_cases, dev_ready);
}
