// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which pages /dev/ib_gift calls stale: for every kind of memory after every kind
 * of change, compared with what is expected and with what a peer really reads.
 * What the kernel does by itself is in stale_mm.c; how the question is asked, and who
 * may ask, is in gift_dev.c.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/kcore.h"
#include "lib/mem.h"
#include "lib/mm.h"
#include "lib/pair.h"
#include "lib/proc.h"
#include "lib/stale.h"

#define SMALL	(32 * PAGE)
#define LARGE	(2 * THP_SIZE)

/* What of a page decides about its staleness, as the table of kinds has it. */
enum trait {
	HELD		= 1 << 0,	/* a write goes to a copy */
	ZERO		= 1 << 1,	/* and what is held are zeros */
	SHARED		= 1 << 2,	/* a write goes to what is registered */
	FILE_PAGE	= 1 << 3,	/* what is registered is the file's */
	HAS_FILE	= 1 << 4,
	HUGETLB		= 1 << 5,
	READ_ONLY	= 1 << 6,
	MERGED		= 1 << 7,
	NOT_ANON	= 1 << 8,
};

static unsigned char *first_page(const struct mem *m)
{
	return (unsigned char *)((uintptr_t)m->p & ~(PAGE - 1));
}

static unsigned int traits_of(const struct mem *m, size_t page)
{
	const struct mem_kind *kind = mem_at(m, page)->kind;
	const enum ib_gift_page_kind taken = m->taken[page];
	const bool file = kind->sort == SORT_SHARED;
	const struct {
		enum trait trait;
		bool has;
	} traits[] = {
		{ HELD, taken != IB_GIFT_PAGE_PINNED },
		{ ZERO, taken == IB_GIFT_PAGE_ZERO || taken == IB_GIFT_PAGE_HUGE_ZERO },
		{ SHARED, file || kind->sort == SORT_HUGETLB_SHARED },
		{ FILE_PAGE, file || taken == IB_GIFT_PAGE_FILE },
		{ HAS_FILE, file || kind->sort == SORT_PRIVATE_FILE },
		{ HUGETLB, mem_is_hugetlb(kind) },
		{ READ_ONLY, kind->read_only },
		{ MERGED, taken == IB_GIFT_PAGE_KSM },
		{ NOT_ANON, kind->sort != SORT_ANON },
	};
	unsigned int sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(traits); i++)
		sum |= traits[i].has ? traits[i].trait : 0;
	return sum;
}

struct part;
struct cell;

/* Stale afterwards: all, none, or only pages with one of the traits. */
#define ALL	(~0U)
#define NONE	0U

struct change {
	const char *name;
	void (*make)(struct part *part);
	/* What a child does first, that is forked for it and stays. */
	void (*child)(struct part *part);
	/* When it has been made to all parts of a region. */
	void (*after)(struct cell *cell);
	/* Kinds that it is not possible on; and those that it is for alone. */
	unsigned int not_on, only_on;
	/* Pages with one of these traits are stale. */
	unsigned int stale;
	/* Pages with one of these are fresh whatever stale says. */
	unsigned int fresh;
	bool thp;		/* for ranges of huge pages, made of those or not */
};

/* What a change is made to: whole pages of one mapping, which the region has. */
struct part {
	struct mem *m;
	const struct change *change;
	unsigned char *p;
	size_t length;
	size_t reach;		/* how far from p on it changes pages */
	unsigned char *elsewhere;	/* a place of its length to move it to */
	unsigned long missing, too_many;
};

#define MAX_PARTS	32

struct cell {
	struct mem m;
	struct pair pair;
	struct part parts[MAX_PARTS];
	size_t nr_parts;
	pid_t children[MAX_PARTS];
	size_t nr_children;
	long long huge;			/* mapped as such before a change for those */
};

static void touch(struct part *part)
{
	for (size_t at = 0; at < part->length; at += PAGE)
		(void)*(volatile unsigned char *)(part->p + at);
}

static void nothing(struct part *part)
{
}

static void write_new(struct part *part)
{
	memset(part->p, 0x5a, part->length);
}

/* Byte by byte what was there: it is the page that changes. */
static void write_same(struct part *part)
{
	for (size_t at = 0; at < part->length; at += PAGE) {
		volatile unsigned char *p = part->p + at;

		*p = *p;
	}
}

static void advise(struct part *part, int advice)
{
	MUST(!madvise(part->p, part->length, advice));
}

/* Which the kernel refuses on kinds of memory. */
static void advise_unless(struct part *part, int advice, unsigned int refused_on)
{
	bool refused = traits_of(part->m, 0) & refused_on;

	MUST_ERR(refused ? EINVAL : 0,
		 madvise(part->p, part->length, advice) ? errno : 0);
}

static void dontneed(struct part *part)
{
	advise(part, MADV_DONTNEED);
}

static void dontneed_read(struct part *part)
{
	dontneed(part);
	touch(part);
}

static void dontneed_write(struct part *part)
{
	dontneed(part);
	write_new(part);
}

static void lazily_free(struct part *part)
{
	advise_unless(part, MADV_FREE, NOT_ANON);
}

static void merge_not(struct part *part)
{
	advise(part, MADV_UNMERGEABLE);
}

static void unmap(struct part *part)
{
	MUST(!munmap(part->p, part->length));
}

static void move_away(struct part *part)
{
	MUST(mremap(part->p, part->length, part->length, MREMAP_MAYMOVE | MREMAP_FIXED,
		    part->elsewhere) == part->elsewhere);
}

static void move_and_back(struct part *part)
{
	move_away(part);
	MUST(mremap(part->elsewhere, part->length, part->length,
		    MREMAP_MAYMOVE | MREMAP_FIXED, part->p) == part->p);
}

static void map_over(struct part *part)
{
	MUST(mmap(part->p, part->length, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == part->p);
}

static void map_over_read(struct part *part)
{
	map_over(part);
	touch(part);
}

static void map_over_write(struct part *part)
{
	map_over(part);
	write_new(part);
}

/* Pages that are no one's own, as zeros are, and are none. */
static void map_file_over_read(struct part *part)
{
	int fd = memfd_create("selftest", MFD_CLOEXEC);

	MUST(fd >= 0);
	for (size_t at = 0; at < part->length; at += PAGE)
		MUST(pwrite(fd, "written", 7, at) == 7);
	MUST(mmap(part->p, part->length, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == part->p);
	close(fd);
	touch(part);
}

static void protect_none(struct part *part)
{
	MUST(!mprotect(part->p, part->length, PROT_NONE));
}

static void protect_read(struct part *part)
{
	MUST(!mprotect(part->p, part->length, PROT_READ));
}

static void write_file(struct part *part)
{
	size_t offset = part->p - part->m->p;

	for (size_t at = 0; at < part->length; at += PAGE)
		MUST(pwrite(part->m->fd, "written", 7, offset + at) == 7);
}

/* The file is cut off where the part begins, and made as long as before. */
static void truncate_file(struct part *part)
{
	size_t offset = part->p - part->m->p;

	MUST(!ftruncate(part->m->fd, offset));
	MUST(!ftruncate(part->m->fd, part->m->length));
	part->reach = part->m->length - offset;
}

static void truncate_file_read(struct part *part)
{
	truncate_file(part);
	touch(part);
}

/* Which leaves the owner what it has written. */
static void punch_file(struct part *part)
{
	MUST(!fallocate(part->m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			part->p - part->m->p, part->length));
}

static void punch_file_read(struct part *part)
{
	punch_file(part);
	touch(part);
}

/* How many pages of the part the page tables have. */
static size_t mapped(const struct part *part)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t n = part->length / PAGE, sum = 0;
	uint64_t entries[LARGE / PAGE];

	MUST(fd >= 0);
	MUST(n <= ARRAY_LEN(entries));
	MUST(pread(fd, entries, n * 8, (uintptr_t)part->p / PAGE * 8) == (ssize_t)n * 8);
	close(fd);
	for (size_t i = 0; i < n; i++)
		sum += entries[i] >> 63;
	return sum;
}

/* A file's pages leave the page tables, though not memory; pinned ones stay in both. */
static void page_out_part(struct part *part)
{
	size_t page = (part->p - first_page(part->m)) / PAGE;
	bool leaves = traits_of(part->m, page) & FILE_PAGE;
	size_t before = mapped(part);

	for (int i = 0; i < (leaves ? 200 : 3) && (!leaves || mapped(part)); i++) {
		if (i)
			test_sleep_ms(10);
		advise_unless(part, MADV_PAGEOUT, HUGETLB);
	}
	CHECK_EQ(leaves ? 0 : before, mapped(part));
}

static long long huge_mapped(const struct mem *m)
{
	return mem_range(m->map, m->map_length, "AnonHugePages") +
	       mem_range(m->map, m->map_length, "ShmemPmdMapped") +
	       mem_range(m->map, m->map_length, "FilePmdMapped");
}

static void split(struct part *part)
{
	mem_do(part->m, MEM_SPLIT, 0);
}

/* Of the page tables: the pages are the same, and those of zeros zero. */
static void all_are_split(struct cell *cell)
{
	CHECK_EQ(0, huge_mapped(&cell->m));
}

static void collapse(struct part *part)
{
	mem_do(part->m, MEM_COLLAPSE, 0);
}

/* What is registered cannot be copied into another page, nor are all zeros. */
static void none_is_collapsed(struct cell *cell)
{
	CHECK_EQ(cell->huge, huge_mapped(&cell->m));
}

static void migrate(struct part *part)
{
	CHECK_EQ(0, mm_move(part->p, part->length).moved);
}

static void merge(struct part *part)
{
	advise(part, MADV_MERGEABLE);
}

static void scan(struct cell *cell)
{
	mem_scan();
}

static const struct change changes[] = {
	{ "nothing", nothing, .stale = NONE },
	{ "reading", touch, .stale = NONE },
	{ "writing", write_new, .not_on = READ_ONLY, .stale = HELD },
	{ "writing what was there", write_same, .not_on = READ_ONLY, .stale = HELD },
	{ "MADV_DONTNEED", dontneed, .stale = ALL },
	{ "MADV_DONTNEED and reading", dontneed_read, .stale = ALL,
	  .fresh = ZERO | SHARED | FILE_PAGE },
	{ "MADV_DONTNEED and writing", dontneed_write, .not_on = READ_ONLY,
	  .stale = ALL, .fresh = SHARED },
	{ "MADV_FREE", lazily_free, .stale = NONE },
	{ "MADV_PAGEOUT", page_out_part, .stale = FILE_PAGE },
	{ "munmap", unmap, .stale = ALL },
	{ "mremap to elsewhere", move_away, .stale = ALL },
	/* Moving memory unmerges it. */
	{ "mremap to elsewhere and back", move_and_back, .stale = MERGED },
	{ "another mapping in its place", map_over, .stale = ALL },
	{ "another mapping in its place and reading", map_over_read, .stale = ALL,
	  .fresh = ZERO },
	{ "another mapping in its place and writing", map_over_write,
	  .stale = ALL },
	{ "a file in its place and reading", map_file_over_read, .stale = ALL },
	/* What is protected is still there; of hugetlb nobody can be asked. */
	{ "PROT_NONE", protect_none, .stale = HUGETLB },
	{ "PROT_READ", protect_read, .stale = NONE },
	{ "fork", nothing, .child = nothing, .stale = NONE },
	{ "fork and writing", write_new, .child = nothing, .not_on = READ_ONLY,
	  .stale = HELD },
	{ "fork and writing by the child", nothing, .child = write_new,
	  .not_on = READ_ONLY, .stale = NONE },
	{ "writing to the file", write_file, .only_on = HAS_FILE, .stale = NONE },
	{ "truncating the file", truncate_file, .only_on = HAS_FILE, .stale = ALL },
	{ "truncating the file and reading", truncate_file_read,
	  .only_on = HAS_FILE, .stale = ALL },
	{ "punching a hole into the file", punch_file, .only_on = HAS_FILE,
	  .stale = FILE_PAGE },
	{ "punching a hole into the file and reading", punch_file_read,
	  .only_on = HAS_FILE, .stale = FILE_PAGE },
	/* Those of hugetlb are always whole. */
	{ "splitting huge pages", split, .after = all_are_split, .not_on = HUGETLB,
	  .stale = NONE, .thp = true },
	{ "MADV_COLLAPSE", collapse, .after = none_is_collapsed, .not_on = HUGETLB,
	  .stale = NONE, .thp = true },
	{ "move_pages", migrate, .stale = NONE },
	{ "a KSM scan", merge, .after = scan, .stale = NONE },
	{ "MADV_UNMERGEABLE", merge_not, .stale = MERGED },
};

/* Bytes as the owner would read them; false when it could not. */
static bool own_bytes(int memory, const unsigned char *p, unsigned char *to, size_t n)
{
	return pread(memory, to, n, (uintptr_t)p) == (ssize_t)n;
}

/* Bytes of pages called fresh, where a test looks, that the peer has differently. */
static unsigned long lies(const struct mem *m, const uint64_t *bitmap,
			  const unsigned char *peer)
{
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	unsigned char own[PAGE];
	unsigned long sum = 0;
	size_t n;

	MUST(memory >= 0);
	for (size_t at = 0; at < mem_seen(m); at += n) {
		size_t from = at % m->window;
		unsigned char *p = m->p + at / m->window * m->distance + from;

		n = PAGE - (uintptr_t)p % PAGE;
		if (n > m->window - from)
			n = m->window - from;
		if (stale_bit(bitmap, (p - first_page(m)) / PAGE))
			continue;
		/* Only protection may be in the way of looking at a fresh page. */
		if (!own_bytes(memory, p, own, n)) {
			MUST(!mprotect(p - (uintptr_t)p % PAGE, PAGE, PROT_READ));
			MUST(own_bytes(memory, p, own, n));
		}
		sum += !!memcmp(own, peer + at, n);
	}
	close(memory);
	return sum;
}

static struct part *part_at(struct cell *cell, const unsigned char *p)
{
	for (size_t i = 0; i < cell->nr_parts; i++) {
		struct part *part = &cell->parts[i];

		if (p >= part->p && p < part->p + part->reach)
			return part;
	}
	return NULL;
}

static bool is_stale(const struct change *change, unsigned int traits)
{
	return !(traits & change->fresh) &&
	       (change->stale == ALL || traits & change->stale);
}

static void check_cell(struct cell *cell, struct ibv_mr *mr)
{
	const struct mem *m = &cell->m;
	const size_t pages = mem_pages(m);
	uint64_t *bitmap = calloc(pages / 64 + 1, sizeof(*bitmap)), stale;
	unsigned long elsewhere = 0, set = 0;
	unsigned char *peer;

	MUST(bitmap);
	/* In memory before it is written to by the kernel. */
	for (size_t i = 0; i <= pages / 64; i++)
		((volatile uint64_t *)bitmap)[i] = 0;
	stale = stale_ask(m, bitmap);
	/* The peer first: the owner's own look faults pages in. */
	peer = pair_look(&cell->pair, mr, m);
	for (size_t i = 0; i < pages; i++) {
		struct part *part = part_at(cell, first_page(m) + i * PAGE);
		bool got = stale_bit(bitmap, i), expected;

		set += got;
		if (!part) {
			elsewhere += got;
			continue;
		}
		expected = is_stale(part->change, traits_of(m, i));
		part->missing += expected && !got;
		part->too_many += got && !expected;
	}
	CHECK_EQ(0, lies(m, bitmap, peer));
	CHECK_EQ(0, elsewhere);
	CHECK_EQ(stale, set);
	for (size_t i = 0; i < cell->nr_parts; i++) {
		const struct part *part = &cell->parts[i];

		test_context("%s of %s", part->change->name, part->m->kind->name);
		CHECK_EQ(0, part->missing);
		CHECK_EQ(0, part->too_many);
	}
	free(peer);
	free(bitmap);
}

/* Of what is large a peer reads a part of every 128 KiB; of all the bits are compared. */
static void set_windows(struct mem *m)
{
	if (m->windows > 1 || m->length <= SMALL)
		return;
	m->distance = 32 * PAGE;
	m->window = 4 * PAGE;
	m->windows = m->length / m->distance;
}

/*
 * Reasons why not: nothing can be written, there is no file, it is too small, or the
 * device cannot read regions of whole huge pages (see MATRIX_SMALL in gift_matrix.c).
 */
static bool applies(const struct mem_kind *kind, const struct change *change)
{
	/* The pages' traits are no matter here. */
	unsigned char taken = kind->taken;
	const struct mem like = { .kind = kind, .taken = &taken };
	const unsigned int traits = traits_of(&like, 0);

	if (kind->sort == SORT_MIXED)
		return true;
	if (change->thp && (kind == &mem_one_byte || getenv("MATRIX_SMALL")))
		return false;
	return !(traits & change->not_on) &&
	       (!change->only_on || traits & change->only_on);
}

static void add_part(struct cell *cell, struct mem *m, const struct change *change,
		     unsigned char *p, size_t length)
{
	MUST(cell->nr_parts < MAX_PARTS);
	cell->parts[cell->nr_parts++] = (struct part){
		.m = m, .change = change, .p = p, .length = length, .reach = length,
		/* Now, or it could come to lie where a part was. */
		.elsewhere = mem_map(length, THP_SIZE, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1),
	};
}

/*
 * hugetlb_split() of 6.1.192 asserts a lock that its caller takes afterwards, for any
 * split of such a mapping. Where that is reported the mapping stays in one piece.
 */
static bool can_be_split(const struct mem_kind *kind)
{
	return !mem_is_hugetlb(kind) || !kernel_has("lockdep_init_map_type");
}

/*
 * Of a mixture all mappings that it applies to; of sparse memory where it is written
 * to, each change somewhere else; otherwise the second huge page, or the middle half.
 */
static void choose_parts(struct cell *cell, const struct change *const *list, size_t n)
{
	struct mem *m = &cell->m;
	unsigned char *first = first_page(m);
	size_t pages = mem_pages(m);

	for (size_t i = 0; i < m->nr_parts; i++) {
		struct mem *of = &m->parts[i];

		if (applies(of->kind, *list) && (!(*list)->thp || of->kind->huge))
			add_part(cell, of, *list, of->p, of->length);
	}
	for (size_t i = 0; m->windows > 1 && i < n; i++)
		add_part(cell, m, list[i], first + (i + 1) * m->distance, m->window);
	if (m->nr_parts || m->windows > 1)
		return;
	if (!can_be_split(m->kind))
		add_part(cell, m, *list, first, m->length);
	else if (m->length == LARGE)
		add_part(cell, m, *list, first + THP_SIZE, THP_SIZE);
	else if (pages < 4)
		add_part(cell, m, *list, first, pages * PAGE);
	else
		add_part(cell, m, *list, first + pages / 4 * PAGE, pages / 2 * PAGE);
}

/* A child that has the memory too, and lives until the cell ends. */
static void fork_child(struct cell *cell, size_t from, size_t to)
{
	int fd[2];
	char c = 0;
	pid_t pid;

	MUST(!pipe(fd));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		for (size_t i = from; i < to; i++)
			cell->parts[i].change->child(&cell->parts[i]);
		if (write(fd[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	cell->children[cell->nr_children++] = pid;
	MUST(read(fd[0], &c, 1) == 1);
	close(fd[0]);
	close(fd[1]);
}

/* Each change at once to all parts that it is made to. */
static void make_changes(struct cell *cell)
{
	size_t from, to;

	for (from = 0; from < cell->nr_parts; from = to) {
		const struct change *change = cell->parts[from].change;

		for (to = from; to < cell->nr_parts && cell->parts[to].change == change; to++)
			;
		test_context("%s", change->name);
		if (change->thp)
			cell->huge = huge_mapped(&cell->m);
		if (change->child)
			fork_child(cell, from, to);
		for (size_t i = from; i < to; i++)
			change->make(&cell->parts[i]);
		if (change->after)
			change->after(cell);
	}
	test_context("%s", "");
}

static void end_cell(struct cell *cell)
{
	for (size_t i = 0; i < cell->nr_children; i++) {
		MUST(!kill(cell->children[i], SIGKILL));
		MUST(waitpid(cell->children[i], NULL, 0) == cell->children[i]);
	}
	for (size_t i = 0; i < cell->nr_parts; i++)
		munmap(cell->parts[i].elsewhere, cell->parts[i].length);
	mem_drop(&cell->m);
	MUST_ERR(0, ibv_dereg_mr(cell->pair.into));
	rc_destroy(cell->pair.peer);
	rc_destroy(cell->pair.owner);
}

struct job {
	const struct mem_kind *kind;
	const struct change *list[MAX_PARTS];
	size_t n;			/* 1, unless it is sparse memory */
};

static void do_job(void *arg)
{
	const struct job *job = arg;
	bool large = job->kind->huge || job->list[0]->thp;
	struct cell cell = { .m = mem_make(job->kind, large ? LARGE : SMALL) };
	struct ibv_mr *mr;

	/* After the fork of a kind that is shared by one. */
	cell.pair = pair_new(NULL);
	choose_parts(&cell, job->list, job->n);
	MUST(cell.nr_parts > 0);
	set_windows(&cell.m);
	/* Now, or it could come to lie where the change leaves a gap. */
	cell.pair.into = mr_new(cell.pair.peer->pd, cell.m.window);
	mr = mr_reg(cell.pair.owner->pd, cell.m.p, cell.m.length, GIFT_READ);
	make_changes(&cell);
	check_cell(&cell, mr);
	MUST_ERR(0, ibv_dereg_mr(mr));
	end_cell(&cell);
}

/* To make a mixture is to enter a cgroup for good, hence a process for each. */
static void all_changes(const struct test_case *c)
{
	struct job job = { .kind = c->arg };
	const size_t most = job.kind == &mem_sparse ? 15 : 1;

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		if (applies(job.kind, &changes[i]))
			job.list[job.n++] = &changes[i];
		if (!job.n || (job.n < most && i + 1 < ARRAY_LEN(changes)))
			continue;
		if (job.kind->sort == SORT_MIXED)
			test_join(test_fork(do_job, &job));
		else
			do_job(&job);
		job.n = 0;
	}
}

static struct test_case *cases;
static size_t nr_cases;

int main(int argc, char **argv)
{
	cases = calloc(mem_nr_kinds, sizeof(*cases));
	if (!cases)
		abort();
	for (size_t i = 0; i < mem_nr_kinds; i++) {
		struct test_case *c = &cases[nr_cases++];
		char *name;

		if (asprintf(&name, "%s: the changed pages are called stale, and only they",
			     mem_kinds[i]->name) < 0)
			abort();
		*c = (struct test_case){
			.name = name, .run = all_changes, .arg = mem_kinds[i], .timeout = 200,
		};
	}
	return test_main(argc, argv, cases, nr_cases, dev_ready);
}
