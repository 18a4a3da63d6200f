// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Registration while something else goes on with the same memory: the work is
 * bounded, it comes to an end, every byte that a peer reads is one that the owner had
 * there since the registration began, and no page is lost. It ends only when the other
 * side has had its effect, by the kernel's account. Which kind a page is taken as is the
 * race's to decide here, and checked in gift_matrix.c.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/mm.h"
#include "lib/pair.h"
#include "lib/proc.h"

#define LENGTH		(2 * MIB)
#define PAGES		(LENGTH / PAGE)
#define TURNS		(test_long() ? 400 : test_slowness() > 1 ? 10 : 24)
/* Of these so many succeed. */
#define ENOUGH		4
/* As many at most until the other side has had its effect, with pauses that grow. */
#define MORE		100
#define MANY		(test_long() ? 8 : 4)
/* Pages that a few lost registrations would leave behind are more. */
#define SLACK		(1 * MIB)

/*
 * Each word of a page says which pair of pages it belongs to, so that KSM finds pages
 * to merge, and the how-manieth writing of it that is, in one byte: nobody promises
 * that a device reads more than that at once. A page that was never written, or
 * dropped, is the 0th. FOREIGN is what other processes write.
 */
#define WORD(page, turn) ((uint64_t)((page) / 2 + 1) << 32 | ((turn) & 0xff))
#define FOREIGN		0xffffffffffffffffULL

struct race;

struct scene {
	const char *text;
	void (*prepare)(struct race *r);
	/* Done over and over until the registrations are; returns what it came to. */
	long (*disturb[4])(struct race *r);
	unsigned int registrars;
	bool drops;			/* pages may be zero again at any time */
	bool huge;
	bool moves;			/* the range is not always mapped */
};

struct race {
	const struct scene *scene;
	struct mem m;
	unsigned char *elsewhere;
	atomic_uint begun[PAGES], done[PAGES];	/* writings of each page */
	int registering;
	atomic_int ready, running;	/* of those */
	atomic_long effect[4], registered;
};

static void write_page(struct race *r, size_t page)
{
	volatile uint64_t *words = (volatile uint64_t *)(r->m.p + page * PAGE);
	unsigned int turn = atomic_fetch_add(&r->begun[page], 1) + 1;

	for (size_t i = 0; i < PAGE / 8; i++)
		words[i] = WORD(page, turn);
	atomic_store(&r->done[page], turn);
}

static void write_pages(struct race *r, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		write_page(r, i);
}

/* The first half is the owner's, the second untouched. */
static void half_written(struct race *r)
{
	write_pages(r, 0, PAGES / 2);
}

static void all_written(struct race *r)
{
	write_pages(r, 0, PAGES);
}

static void mergeable(struct race *r)
{
	all_written(r);
	MUST(!madvise(r->m.map, LENGTH, MADV_MERGEABLE));
	mm_ksm_start();
}

static void with_place(struct race *r)
{
	all_written(r);
	r->elsewhere = mem_map(LENGTH, THP_SIZE, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

/* The child has what the owner had, and writes over it. */
static long forks(struct race *r)
{
	int status;
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid) {
		uint64_t *words = (uint64_t *)r->m.p;

		for (size_t i = 0; i < LENGTH / 8; i += 4 * PAGE / 8)
			words[i] = FOREIGN;
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	/* Where the range may be unmapped, the child runs into that. */
	if (!r->scene->moves)
		CHECK_EQ(0, status);
	return 1;
}

static long writes(struct race *r)
{
	static unsigned int next;

	for (int i = 0; i < 32; i++)
		write_page(r, next++ % PAGES);
	return 32;
}

/* So seldom that KSM meets pages unchanged in between. */
static long writes_seldom(struct race *r)
{
	test_sleep_ms(20);
	return writes(r);
}

/* What is not huge, and has no reference for a moment, can be copied to a huge page. */
static long collapses(struct race *r)
{
	mem_do(&r->m, MEM_SPLIT, 0);
	return !madvise(r->m.map, LENGTH, MADV_COLLAPSE);
}

static long moves_away_and_back(struct race *r)
{
	MUST(mremap(r->m.p, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED,
		    r->elsewhere) == r->elsewhere);
	sched_yield();
	MUST(mremap(r->elsewhere, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED,
		    r->m.p) == r->m.p);
	test_sleep_ms(5);
	return 1;
}

static long unmaps_and_maps(struct race *r)
{
	size_t half = LENGTH / 2;

	MUST(!munmap(r->m.p, half));
	sched_yield();
	MUST(mmap(r->m.p, half, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == r->m.p);
	write_pages(r, 0, PAGES / 8);
	return 1;
}

static long drops(struct race *r)
{
	MUST(!madvise(r->m.p, LENGTH, MADV_DONTNEED));
	write_pages(r, 0, PAGES / 8);
	return 1;
}

static long migrates(struct race *r)
{
	return mm_move(r->m.p, LENGTH).moved;
}

static long compacts(struct race *r)
{
	long long before = proc_field("/proc/vmstat", "compact_migrate_scanned");

	MUST(proc_write("/proc/sys/vm/compact_memory", "1"));
	return proc_field("/proc/vmstat", "compact_migrate_scanned") - before;
}

static long pages_out(struct race *r)
{
	long long before = proc_field("/proc/vmstat", "pswpout");

	MUST(!madvise(r->m.p, LENGTH, MADV_PAGEOUT));
	return proc_field("/proc/vmstat", "pswpout") - before;
}

/* What was merged until now, for which KSM gets the longer the longer it was nothing. */
static long unmerges(struct race *r)
{
	static unsigned int pause = 5;
	long long merged;

	test_sleep_ms(pause);
	merged = proc_number("/proc/self/ksm_merging_pages");
	MUST(merged >= 0);
	pause = merged ? 5 : pause < 500 ? pause * 2 : pause;
	MUST(!madvise(r->m.p, LENGTH, MADV_UNMERGEABLE));
	MUST(!madvise(r->m.p, LENGTH, MADV_MERGEABLE));
	return merged;
}

static const struct scene scenes[] = {
	{ "fork", half_written, { forks }, 1 },
	{ "writes", half_written, { writes }, 1 },
	{ "fork and writes", half_written, { forks, writes }, 1 },
	{ "fork and writes, of huge pages", all_written, { forks, writes }, 1, .huge = true },
	{ "KSM", mergeable, { unmerges }, 1 },
	{ "KSM and writes", mergeable, { unmerges, writes_seldom }, 1 },
	{ "collapse and split of huge pages", all_written, { collapses }, 1, .huge = true },
	{ "collapse, split and writes", half_written, { collapses, writes }, 1, .huge = true },
	{ "mremap", with_place, { moves_away_and_back }, 1, .moves = true },
	{ "mremap of huge pages", with_place, { moves_away_and_back }, 1, .moves = true,
	  .huge = true },
	{ "munmap", half_written, { unmaps_and_maps }, 1, .moves = true, .drops = true },
	{ "MADV_DONTNEED", half_written, { drops }, 1, .drops = true },
	{ "migration to another node", all_written, { migrates }, 1 },
	{ "migration of huge pages to another node", all_written, { migrates }, 1,
	  .huge = true },
	{ "compaction", all_written, { compacts }, 1 },
	{ "swapping", all_written, { pages_out, writes }, 1 },
	{ "other registrations", half_written, {}, 4 },
	{ "other registrations, fork and writes", half_written, { forks, writes }, 4 },
	{ "KSM, swapping, fork and migration", mergeable,
	  { unmerges, pages_out, forks, migrates }, 2 },
	{ "swapping, fork and migration, of huge pages", all_written,
	  { pages_out, forks, migrates }, 2, .huge = true },
};

/* What the owner had in a page since the registration began, and nothing else. */
static void check_page(struct race *r, size_t page, const uint64_t *words,
		       unsigned int before)
{
	unsigned int now = atomic_load(&r->begun[page]);
	unsigned int first = r->scene->drops ? 0 : before;

	for (size_t i = 0; i < PAGE / 8; i++) {
		uint8_t since = words[i] - first;

		if (!words[i] && !first)
			continue;
		if (words[i] == WORD(page, words[i]) && since <= now - first)
			continue;
		test_fail(__FILE__, __LINE__,
			  "page %zu, word %zu: expected pair %zu, writing %u to %u, got 0x%llx",
			  page, i, page / 2 + 1, before, now,
			  (unsigned long long)words[i]);
		return;
	}
}

static void register_once(struct race *r, struct pair *p)
{
	static __thread unsigned int before[PAGES];
	const unsigned char *seen;
	struct ibv_mr *mr;

	for (size_t i = 0; i < PAGES; i++)
		before[i] = atomic_load(&r->done[i]);
	mr = ibv_reg_mr(p->owner->pd, r->m.p, LENGTH, GIFT_READ);
	if (!mr) {
		CHECK_ERR(EFAULT, errno);
		CHECK(r->scene->moves);
		return;
	}
	seen = pair_read(p, mr);
	for (size_t i = 0; i < PAGES; i++)
		check_page(r, i, (const uint64_t *)(seen + i * PAGE), before[i]);
	MUST_ERR(0, ibv_dereg_mr(mr));
	r->registered++;
}

/*
 * Each side has had an effect while the other one did. A range that is not always
 * mapped is refused most of the time.
 */
static bool has_raced(const struct race *r)
{
	bool raced = r->registered >= ENOUGH;

	for (size_t i = 0; i < ARRAY_LEN(r->effect) && r->scene->disturb[i]; i++)
		raced &= r->effect[i] > 0;
	return raced;
}

static void *registrar(void *arg)
{
	struct race *r = arg;
	struct pair p = pair_new(NULL);

	/* Nothing is mapped from now on: it could come to lie in the range. */
	p.into = mr_new(p.peer->pd, LENGTH);
	r->ready++;
	while (r->ready < r->registering)
		test_sleep_ms(1);
	for (int i = 0; i < TURNS || (i < TURNS + MORE && !has_raced(r)); i++) {
		if (test_failed())
			break;
		/* What is registered most of the time can hardly be moved or merged. */
		if (i >= TURNS)
			test_sleep_ms(4 * (i - TURNS));
		register_once(r, &p);
	}
	MUST_ERR(0, ibv_dereg_mr(p.into));
	/* Their rings would be memory in no account as well. */
	rc_destroy(p.peer);
	rc_destroy(p.owner);
	r->running--;
	return NULL;
}

struct disturber {
	struct race *r;
	size_t number;
};

static void *disturb(void *arg)
{
	struct disturber *d = arg;

	while (d->r->ready < d->r->registering)
		test_sleep_ms(1);
	while (d->r->running > 0)
		d->r->effect[d->number] += d->r->scene->disturb[d->number](d->r);
	return NULL;
}

/*
 * Within a huge page's worth of stack there could be a huge page, most of which is
 * in no account when the thread has ended and nobody maps it.
 */
static pthread_t new_thread(void *(*fn)(void *arg), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;

	MUST_ERR(0, pthread_attr_init(&attr));
	MUST_ERR(0, pthread_attr_setstacksize(&attr, 256 * KIB));
	MUST_ERR(0, pthread_create(&thread, &attr, fn, arg));
	pthread_attr_destroy(&attr);
	return thread;
}

static void run_threads(struct race *r)
{
	unsigned int registrars = r->scene->registrars > 1 ? MANY : 1, n = 0;
	struct disturber d[4];
	pthread_t threads[16];

	r->registering = registrars;
	r->running = registrars;
	for (size_t i = 0; i < ARRAY_LEN(d) && r->scene->disturb[i]; i++) {
		d[i] = (struct disturber){ r, i };
		threads[n++] = new_thread(disturb, &d[i]);
	}
	for (unsigned int i = 0; i < registrars; i++)
		threads[n++] = new_thread(registrar, r);
	for (unsigned int i = 0; i < n; i++)
		MUST_ERR(0, pthread_join(threads[i], NULL));
}

static void race(const struct test_case *c)
{
	static struct race r;
	long long pins = pins_now(), lost;
	struct mm_moved pages;

	r.scene = c->arg;
	r.m = mem_make(r.scene->huge ? &mem_thp_untouched : &mem_untouched, LENGTH);
	lost = mem_lost();
	r.scene->prepare(&r);
	run_threads(&r);
	mm_ksm_stop();

	for (size_t i = 0; i < ARRAY_LEN(r.effect) && r.scene->disturb[i]; i++)
		test_note("%ld registrations, effect %zu: %ld", r.registered, i, r.effect[i]);
	CHECK(has_raced(&r));
	CHECK_EQ(0, gift_stats().regions);
	CHECK_EQ(0, pinned_vm(0));
	CHECK_EQ(pins, pins_now());
	for (size_t i = 0; i < PAGES; i++)
		check_page(&r, i, (uint64_t *)(r.m.p + i * PAGE), r.done[i]);
	pages = mm_move(r.m.p, LENGTH);
	CHECK_EQ(pages.present, pages.moved);
	MUST(!munmap(r.m.p, LENGTH));
	lost = mem_lost_since(lost, SLACK);
	test_note("%lld KiB more in no account", lost / 1024);
	CHECK_BETWEEN(-1024LL * MIB, lost, SLACK);
}

static struct test_case cases[ARRAY_LEN(scenes)];

int main(int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_LEN(scenes); i++) {
		char *name;

		if (asprintf(&name, "registration against %s: right bytes, no page lost",
			     scenes[i].text) < 0)
			abort();
		cases[i] = (struct test_case){
			.name = name, .run = race, .arg = &scenes[i],
			.timeout = test_long() ? 900 : 300,
		};
	}
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
