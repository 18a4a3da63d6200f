// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: moving bytes between scatter/gather lists of every shape, against a
 * byte by byte model. The lists are made here; no key is involved.
 */
#include <kunit/test.h>

#include "engine.h"

#define NR_PAGES	4
#define BYTES		(NR_PAGES * PAGE_SIZE)
#define MAX_PIECES	6
#define UNTOUCHED	0xee

struct piece {
	u32 at;		/* from the start of the memory */
	u32 length;
};

struct copy_row {
	const char *name;
	struct piece to[MAX_PIECES];
	struct piece from[MAX_PIECES];
	u64 length;
	bool inline_data;	/* from is the engine's own memory */
};

#define P	4096

static const struct copy_row copy_rows[] = {
	{ "nothing", { { 0, 8 } }, { { 0, 8 } }, 0 },
	{ "one byte", { { 5, 1 } }, { { 9, 1 } }, 1 },
	{ "one page", { { 0, P } }, { { 0, P } }, P },
	{ "one page to where it crosses a boundary", { { 100, P } },
	  { { 0, P } }, P },
	{ "one page from where it crosses a boundary", { { P, P } },
	  { { P - 1, P } }, P },
	{ "both cross, at different bytes", { { P - 3, 100 } },
	  { { 2 * P - 50, 100 } }, 100 },
	{ "everything", { { 0, 4 * P } }, { { 0, 4 * P } }, 4 * P },
	{ "everything but the edges", { { 1, 4 * P - 2 } },
	  { { 2, 4 * P - 2 } }, 4 * P - 2 },
	{ "last byte of the last page", { { 4 * P - 1, 1 } },
	  { { 4 * P - 1, 1 } }, 1 },
	{ "gather pieces", { { 10, 60 } },
	  { { 0, 10 }, { 100, 20 }, { P - 5, 10 }, { 2 * P, 20 } }, 60 },
	{ "scatter pieces", { { 0, 10 }, { 100, 20 }, { P - 5, 10 }, { 2 * P, 20 } },
	  { { 10, 60 } }, 60 },
	{ "pieces that end in different places",
	  { { 0, 7 }, { 50, 13 }, { 200, 5 } },
	  { { 0, 1 }, { 10, 11 }, { 300, 13 } }, 25 },
	{ "pieces of one byte",
	  { { 9, 1 }, { 7, 1 }, { 5, 1 }, { 3, 1 } },
	  { { 1, 1 }, { 2, 1 }, { 3, 1 }, { 4, 1 } }, 4 },
	{ "pieces that follow each other in memory",
	  { { 0, P }, { P, P } }, { { 2 * P, P / 2 }, { 2 * P + P / 2, P + P / 2 } },
	  2 * P },
	{ "less than the receiver has room for", { { 0, 100 }, { 200, 100 } },
	  { { 0, 30 } }, 30 },
	{ "exactly the receiver's first piece", { { 0, 30 }, { 200, 100 } },
	  { { 0, 30 } }, 30 },
	{ "one byte more than the receiver's first piece",
	  { { 0, 30 }, { 200, 100 } }, { { 0, 31 } }, 31 },
	{ "inline data", { { P - 5, 20 } }, { { 3, 20 } }, 20, true },
	{ "inline data to pieces", { { 0, 3 }, { P - 1, 2 }, { 2 * P, 15 } },
	  { { 0, 20 } }, 20, true },
	{ "the most inline data", { { P - 200, SHCA_MAX_INLINE } },
	  { { 0, SHCA_MAX_INLINE } }, SHCA_MAX_INLINE, true },
};

static void copy_desc(const struct copy_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(copy, copy_rows, copy_desc);

/**
 * struct memory - a region's memory that both the engine and the test can see
 * @hw: for the engine
 * @page: its pages, not in a row in memory
 */
struct memory {
	struct shca_pages hw;
	struct page *page[NR_PAGES];
};

struct mem_fixture {
	struct memory to;
	struct memory from;
	struct shca_sgl to_sgl;
	struct shca_sgl from_sgl;
	u8 expected[BYTES];
};

static u8 *byte_at(struct memory *m, u32 at)
{
	return (u8 *)page_address(m->page[at / PAGE_SIZE]) + at % PAGE_SIZE;
}

static int memory_alloc(struct memory *m)
{
	int i;

	for (i = 0; i < NR_PAGES; i++) {
		m->page[i] = alloc_page(GFP_KERNEL);
		if (!m->page[i])
			return -ENOMEM;
	}
	m->hw.page = m->page;
	m->hw.nr = NR_PAGES;
	return 0;
}

static void memory_free(struct memory *m)
{
	int i;

	for (i = 0; i < NR_PAGES; i++)
		if (m->page[i])
			__free_page(m->page[i]);
}

static int lists_init(struct kunit *test)
{
	struct mem_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i;

	if (!f)
		return -ENOMEM;
	test->priv = f;
	if (memory_alloc(&f->to) || memory_alloc(&f->from))
		return -ENOMEM;
	for (i = 0; i < BYTES; i++) {
		*byte_at(&f->from, i) = i * 7 + i / 251;
		*byte_at(&f->to, i) = UNTOUCHED;
	}
	memset(f->expected, UNTOUCHED, sizeof(f->expected));
	return 0;
}

static void lists_exit(struct kunit *test)
{
	struct mem_fixture *f = test->priv;

	if (!f)
		return;
	memory_free(&f->to);
	memory_free(&f->from);
}

static void make_list(struct shca_sgl *sgl, struct memory *m,
		      const struct piece *pieces, bool inline_data)
{
	int i;

	if (inline_data) {
		shca_sgl_buffer(sgl, byte_at(m, pieces[0].at), pieces[0].length);
		return;
	}
	for (i = 0; i < MAX_PIECES && pieces[i].length; i++) {
		sgl->span[i] = (struct shca_span){
			.pages = &m->hw,
			.offset = pieces[i].at,
			.length = pieces[i].length,
		};
		sgl->length += pieces[i].length;
		sgl->nr++;
	}
}

/* The address of byte number @n of a list. */
static u32 where(const struct piece *pieces, u64 n)
{
	while (n >= pieces->length)
		n -= (pieces++)->length;
	return pieces->at + n;
}

static void copy_between_lists(struct kunit *test)
{
	const struct copy_row *row = test->param_value;
	struct mem_fixture *f = test->priv;
	u32 wrong = 0;
	u64 n;

	make_list(&f->to_sgl, &f->to, row->to, false);
	make_list(&f->from_sgl, &f->from, row->from, row->inline_data);
	KUNIT_ASSERT_LE(test, row->length, f->to_sgl.length);
	KUNIT_ASSERT_LE(test, row->length, f->from_sgl.length);
	for (n = 0; n < row->length; n++)
		f->expected[where(row->to, n)] =
			*byte_at(&f->from, where(row->from, n));

	shca_sgl_copy(&f->to_sgl, &f->from_sgl, row->length);
	for (n = 0; n < BYTES; n++)
		wrong += f->expected[n] != *byte_at(&f->to, n);
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

/* One process may name the same bytes on both sides. */
static void copy_onto_itself(struct kunit *test)
{
	static const struct piece to[MAX_PIECES] = { { 8, 64 } };
	static const struct piece from[MAX_PIECES] = { { 0, 64 } };
	struct mem_fixture *f = test->priv;
	u32 wrong = 0, i;

	for (i = 0; i < 72; i++)
		f->expected[i] = *byte_at(&f->from, i < 8 ? i : i - 8);
	make_list(&f->to_sgl, &f->from, to, false);
	make_list(&f->from_sgl, &f->from, from, false);
	shca_sgl_copy(&f->to_sgl, &f->from_sgl, 64);
	for (i = 0; i < 72; i++)
		wrong += f->expected[i] != *byte_at(&f->from, i);
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

static void inline_list(struct kunit *test)
{
	struct mem_fixture *f = test->priv;
	u8 buffer[4];

	shca_sgl_buffer(&f->from_sgl, buffer, 0);
	KUNIT_EXPECT_EQ(test, f->from_sgl.nr, 0);
	KUNIT_EXPECT_EQ(test, f->from_sgl.length, 0);
	shca_sgl_buffer(&f->from_sgl, buffer, sizeof(buffer));
	KUNIT_EXPECT_EQ(test, f->from_sgl.nr, 1);
	KUNIT_EXPECT_EQ(test, f->from_sgl.length, sizeof(buffer));
	/* It has no key to give back. */
	shca_sgl_put(&f->from_sgl);
	KUNIT_EXPECT_EQ(test, f->from_sgl.nr, 0);
}

static struct kunit_case mem_cases[] = {
	KUNIT_CASE_PARAM(copy_between_lists, copy_gen_params),
	KUNIT_CASE(copy_onto_itself),
	KUNIT_CASE(inline_list),
	{}
};

static struct kunit_suite mem_suite = {
	.name = "sample_hca_mem",
	.init = lists_init,
	.exit = lists_exit,
	.test_cases = mem_cases,
};

kunit_test_suite(mem_suite);
