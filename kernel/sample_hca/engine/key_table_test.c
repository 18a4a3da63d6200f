// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: keys in a real table: what an access gets to see, that a right which is
 * taken away is gone, and that nobody who takes it away returns before the last
 * access has ended. Copies no byte; what the rules say is in key_test.c.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>

#include "engine.h"

#define BASE		0x100000ULL
#define LENGTH		0x4000ULL
#define FIRST		0x123		/* of the first byte in its page */
#define FULL		(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |	\
			 IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC |	\
			 IB_ACCESS_MW_BIND)
#define RR		IB_ACCESS_REMOTE_READ
#define RW		IB_ACCESS_REMOTE_WRITE

/* A wait that must end, on a busy machine; and one that must not. */
#define LONG		(60 * HZ)
#define SHORT_MS	60

/**
 * struct fixture - one adapter's keys
 * @table: the table
 * @pages: the region's memory
 * @more_pages: other memory for it
 * @region: one region
 * @fast: a fast-register region on the same memory, registered
 * @window: type 2 windows, free
 * @old_window: a type 1 window, free
 * @qp: a QP of the same PD
 * @other: another
 * @pd: compared by address
 */
struct fixture {
	struct shca_key_table table;
	struct shca_pages pages;
	struct shca_pages more_pages;
	struct shca_region region;
	struct shca_region fast;
	struct shca_key window[3];
	struct shca_key old_window;
	struct shca_qp qp;
	struct shca_qp other;
	char pd;
};

static void add_window(struct kunit *test, struct shca_key *key,
		       enum shca_key_kind kind)
{
	struct fixture *f = test->priv;

	key->kind = kind;
	key->state = SHCA_KEY_FREE;
	key->pd = &f->pd;
	KUNIT_ASSERT_EQ(test, shca_key_add(&f->table, key), 0);
}

static void add_region(struct kunit *test, struct shca_region *region,
		       enum shca_key_kind kind)
{
	struct fixture *f = test->priv;
	struct shca_key *key = &region->key;

	region->pages = &f->pages;
	key->kind = kind;
	key->state = SHCA_KEY_VALID;
	key->access = FULL;
	key->pd = &f->pd;
	key->base = BASE;
	key->length = LENGTH;
	key->region = region;
	KUNIT_ASSERT_EQ(test, shca_key_add(&f->table, key), 0);
}

static int table_init(struct kunit *test)
{
	struct fixture *f;
	int i;

	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	if (!f)
		return -ENOMEM;
	test->priv = f;
	shca_key_table_init(&f->table);
	INIT_LIST_HEAD(&f->qp.windows);
	INIT_LIST_HEAD(&f->other.windows);

	f->pages.first = FIRST;
	add_region(test, &f->region, SHCA_KEY_REGION);
	add_region(test, &f->fast, SHCA_KEY_FAST);
	for (i = 0; i < ARRAY_SIZE(f->window); i++)
		add_window(test, &f->window[i], SHCA_KEY_WINDOW_2);
	add_window(test, &f->old_window, SHCA_KEY_WINDOW_1);
	return 0;
}

static void table_exit(struct kunit *test)
{
	struct fixture *f = test->priv;
	int i;

	if (!f)
		return;
	for (i = 0; i < ARRAY_SIZE(f->window); i++)
		KUNIT_EXPECT_EQ(test, shca_key_remove(&f->window[i]), 0);
	KUNIT_EXPECT_EQ(test, shca_key_remove(&f->old_window), 0);
	KUNIT_EXPECT_EQ(test, f->region.windows, 0);
	KUNIT_EXPECT_EQ(test, shca_key_remove(&f->region.key), 0);
	KUNIT_EXPECT_EQ(test, f->fast.windows, 0);
	KUNIT_EXPECT_EQ(test, shca_key_remove(&f->fast.key), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&f->qp.windows));
	KUNIT_EXPECT_TRUE(test, list_empty(&f->other.windows));
	KUNIT_EXPECT_EQ(test, f->pages.users, 0);
	KUNIT_EXPECT_EQ(test, f->more_pages.users, 0);
	KUNIT_EXPECT_TRUE(test, xa_empty(&f->table.keys));
	shca_key_table_destroy(&f->table);
}

/* A remote read of @length bytes at @addr by @key, on behalf of @qp. */
static int get(struct fixture *f, u32 key, const struct shca_qp *qp, u64 addr,
	       u64 length, struct shca_span *span)
{
	const struct shca_want want = {
		.key = key,
		.access = RR,
		.remote = true,
		.pd = &f->pd,
		.qp = qp,
		.addr = addr,
		.length = length,
	};

	return shca_key_get(&f->table, &want, span);
}

/* Whether @key lets @qp read a byte at @addr; leaves no access behind. */
static bool readable(struct fixture *f, u32 key, const struct shca_qp *qp,
		     u64 addr)
{
	struct shca_span span;

	if (get(f, key, qp, addr, 1, &span))
		return false;
	shca_key_put(&span);
	return true;
}

static int bind_on(struct fixture *f, struct shca_region *region,
		   struct shca_key *window, struct shca_qp *qp, u32 access,
		   u64 addr, u64 length)
{
	const struct shca_bind bind = {
		.pd = &f->pd,
		.qp = qp,
		.mw_rkey = window->key,
		/* As ibv_inc_rkey() does it. */
		.new_rkey = (window->key & ~0xffU) | ((window->key + 1) & 0xff),
		.mr_lkey = region->key.key,
		.access = access,
		.addr = addr,
		.length = length,
	};

	return shca_key_bind(&f->table, &bind);
}

static int bind(struct fixture *f, struct shca_key *window, struct shca_qp *qp,
		u32 access, u64 addr, u64 length)
{
	return bind_on(f, &f->region, window, qp, access, addr, length);
}

/* ---- keys come and go ---- */

static void keys_are_distinct(struct kunit *test)
{
	struct fixture *f = test->priv;
	const struct shca_key *keys[] = {
		&f->region.key, &f->window[0], &f->window[1], &f->window[2],
		&f->old_window,
	};
	int i, j;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		KUNIT_EXPECT_NE(test, keys[i]->key >> 8, 0);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, keys[i]->key >> 8,
					keys[j]->key >> 8);
	}
	/* A key is no bare index: one that is guessed is seldom right. */
	KUNIT_EXPECT_NE(test, f->window[0].key & 0xff, f->window[1].key & 0xff);
}

static void index_is_not_used_again_at_once(struct kunit *test)
{
	struct fixture *f = test->priv;
	u32 old = f->window[0].key;

	KUNIT_ASSERT_EQ(test, shca_key_remove(&f->window[0]), 0);
	add_window(test, &f->window[0], SHCA_KEY_WINDOW_2);
	KUNIT_EXPECT_NE(test, f->window[0].key >> 8, old >> 8);
}

static void removed_key_is_not_found(struct kunit *test)
{
	struct fixture *f = test->priv;
	u32 old;

	KUNIT_ASSERT_EQ(test, bind(f, &f->window[0], &f->qp, RR, BASE, 16), 0);
	old = f->window[0].key;
	KUNIT_EXPECT_TRUE(test, readable(f, old, &f->qp, BASE));
	KUNIT_ASSERT_EQ(test, shca_key_remove(&f->window[0]), 0);
	KUNIT_EXPECT_FALSE(test, readable(f, old, &f->qp, BASE));
	KUNIT_EXPECT_EQ(test, f->region.windows, 0);
	add_window(test, &f->window[0], SHCA_KEY_WINDOW_2);
}

static void no_such_key(struct kunit *test)
{
	static const u32 keys[] = { 0, 1, 0xff, 0x00ffff00, 0x7fffffff, U32_MAX };
	struct fixture *f = test->priv;
	int i;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		KUNIT_EXPECT_FALSE(test, readable(f, keys[i], &f->qp, BASE));
		KUNIT_EXPECT_EQ(test, shca_key_invalidate(&f->table, keys[i],
							  &f->pd, &f->qp),
				-EACCES);
	}
}

/* ---- what an access gets to see ---- */

struct span_row {
	const char *name;
	bool by_window;
	u32 access;
	u64 window_at;		/* from the region's start */
	u64 window_length;
	u64 addr;
	u64 length;
	u64 offset;		/* expected, from the start of the first page */
	int expected;
};

static const struct span_row span_rows[] = {
	{ "region, its first byte", .addr = BASE, .length = 1,
	  .offset = FIRST },
	{ "region, all of it", .addr = BASE, .length = LENGTH,
	  .offset = FIRST },
	{ "region, its last byte", .addr = BASE + LENGTH - 1, .length = 1,
	  .offset = FIRST + LENGTH - 1 },
	{ "window on all of it", true, RR, 0, LENGTH, BASE, LENGTH, FIRST },
	{ "window on a part, its first byte", true, RR, 0x1010, 0x20,
	  BASE + 0x1010, 1, FIRST + 0x1010 },
	{ "window on a part, its last byte", true, RR, 0x1010, 0x20,
	  BASE + 0x102f, 1, FIRST + 0x102f },
	{ "window on a part, the byte before, which is the region's", true, RR,
	  0x1010, 0x20, BASE + 0x100f, 1, .expected = -EACCES },
	{ "window on a part, the byte after, which is the region's", true, RR,
	  0x1010, 0x20, BASE + 0x1030, 1, .expected = -EACCES },
	{ "zero-based window, address 0", true, RR | IB_ZERO_BASED, 0x1010, 0x20,
	  0, 0x20, FIRST + 0x1010 },
	{ "zero-based window, its last byte", true, RR | IB_ZERO_BASED, 0x1010,
	  0x20, 0x1f, 1, FIRST + 0x102f },
	{ "zero-based window, one byte too far", true, RR | IB_ZERO_BASED,
	  0x1010, 0x20, 0x20, 1, .expected = -EACCES },
	{ "zero-based window, the region's address", true, RR | IB_ZERO_BASED,
	  0x1010, 0x20, BASE + 0x1010, 1, .expected = -EACCES },
	{ "window that gives another right", true, RW, 0, LENGTH, BASE, 1,
	  .expected = -EACCES },
};

static void span_desc(const struct span_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(span, span_rows, span_desc);

static void span_of_an_access(struct kunit *test)
{
	const struct span_row *row = test->param_value;
	struct fixture *f = test->priv;
	struct shca_key *key = &f->region.key;
	struct shca_span span;

	if (row->by_window) {
		key = &f->window[0];
		KUNIT_ASSERT_EQ(test, bind(f, key, &f->qp, row->access,
					   BASE + row->window_at,
					   row->window_length), 0);
	}
	KUNIT_ASSERT_EQ(test, get(f, key->key, &f->qp, row->addr, row->length,
				  &span), row->expected);
	if (row->expected) {
		KUNIT_EXPECT_EQ(test, key->users, 0);
		return;
	}
	KUNIT_EXPECT_PTR_EQ(test, span.key, key);
	KUNIT_EXPECT_PTR_EQ(test, span.pages, &f->pages);
	KUNIT_EXPECT_PTR_EQ(test, span.buffer, NULL);
	KUNIT_EXPECT_EQ(test, span.offset, row->offset);
	KUNIT_EXPECT_EQ(test, span.length, row->length);
	KUNIT_EXPECT_EQ(test, key->users, 1);
	shca_key_put(&span);
	KUNIT_EXPECT_EQ(test, key->users, 0);
}

/* ---- binding and invalidating ---- */

static void window_is_bound_once(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct shca_key *w = &f->window[0];
	u32 before = w->key;

	KUNIT_EXPECT_FALSE(test, readable(f, before, &f->qp, BASE));
	KUNIT_ASSERT_EQ(test, bind(f, w, &f->qp, RR, BASE, 16), 0);
	KUNIT_EXPECT_NE(test, w->key, before);
	KUNIT_EXPECT_EQ(test, f->region.windows, 1);
	KUNIT_EXPECT_FALSE(test, readable(f, before, &f->qp, BASE));
	KUNIT_EXPECT_TRUE(test, readable(f, w->key, &f->qp, BASE));
	KUNIT_EXPECT_FALSE(test, readable(f, w->key, &f->other, BASE));

	KUNIT_EXPECT_EQ(test, bind(f, w, &f->qp, RR, BASE, 16), -EACCES);
	KUNIT_EXPECT_EQ(test, f->region.windows, 1);
	KUNIT_EXPECT_TRUE(test, readable(f, w->key, &f->qp, BASE));
}

static void window_is_invalidated_once(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct shca_key *w = &f->window[0];
	u32 key;

	KUNIT_ASSERT_EQ(test, bind(f, w, &f->qp, RR, BASE, 16), 0);
	key = w->key;
	KUNIT_EXPECT_EQ(test, shca_key_invalidate(&f->table, key, &f->pd,
						  &f->qp), 0);
	KUNIT_EXPECT_FALSE(test, readable(f, key, &f->qp, BASE));
	KUNIT_EXPECT_EQ(test, f->region.windows, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&f->qp.windows));
	KUNIT_EXPECT_EQ(test, shca_key_invalidate(&f->table, key, &f->pd,
						  &f->qp), -EACCES);

	/* And is as good as new. */
	KUNIT_EXPECT_EQ(test, bind(f, w, &f->other, RR, BASE, 16), 0);
	KUNIT_EXPECT_TRUE(test, readable(f, w->key, &f->other, BASE));
	KUNIT_EXPECT_FALSE(test, readable(f, key, &f->qp, BASE));
}

static void refused_invalidation_changes_nothing(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct shca_key *w = &f->window[0];
	char other_pd;

	KUNIT_ASSERT_EQ(test, bind(f, w, &f->qp, RR, BASE, 16), 0);
	KUNIT_EXPECT_EQ(test, shca_key_invalidate(&f->table, w->key, &f->pd,
						  &f->other), -EACCES);
	KUNIT_EXPECT_EQ(test, shca_key_invalidate(&f->table, w->key, &other_pd,
						  &f->qp), -EACCES);
	KUNIT_EXPECT_EQ(test, shca_key_invalidate(&f->table, w->key ^ 1, &f->pd,
						  &f->qp), -EACCES);
	KUNIT_EXPECT_EQ(test, shca_key_invalidate(&f->table, f->region.key.key,
						  &f->pd, &f->qp), -EACCES);
	KUNIT_EXPECT_TRUE(test, readable(f, w->key, &f->qp, BASE));
	KUNIT_EXPECT_TRUE(test, readable(f, f->region.key.key, &f->qp, BASE));
	KUNIT_EXPECT_EQ(test, f->region.windows, 1);
}

static int invalidate(struct fixture *f, u32 key)
{
	return shca_key_invalidate(&f->table, key, &f->pd, &f->qp);
}

static void fast_region_is_invalidated_once(struct kunit *test)
{
	struct fixture *f = test->priv;
	u32 key = f->fast.key.key;

	KUNIT_EXPECT_TRUE(test, readable(f, key, &f->qp, BASE));
	KUNIT_EXPECT_EQ(test, invalidate(f, key), 0);
	KUNIT_EXPECT_FALSE(test, readable(f, key, &f->qp, BASE));
	KUNIT_EXPECT_EQ(test, bind_on(f, &f->fast, &f->window[0], &f->qp, RR,
				      BASE, 16), -EACCES);
	KUNIT_EXPECT_EQ(test, invalidate(f, key), -EACCES);
	/* Its memory, and a region of a process on the same, stay. */
	KUNIT_EXPECT_PTR_EQ(test, f->fast.pages, &f->pages);
	KUNIT_EXPECT_TRUE(test, readable(f, f->region.key.key, &f->qp, BASE));
}

static void fast_region_with_a_window_stays(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct shca_key *w = &f->window[0];

	KUNIT_ASSERT_EQ(test, bind_on(f, &f->fast, w, &f->qp, RR, BASE, 16), 0);
	KUNIT_EXPECT_EQ(test, f->fast.windows, 1);
	KUNIT_EXPECT_EQ(test, invalidate(f, f->fast.key.key), -EACCES);
	KUNIT_EXPECT_TRUE(test, readable(f, f->fast.key.key, &f->qp, BASE));
	KUNIT_EXPECT_TRUE(test, readable(f, w->key, &f->qp, BASE));
	KUNIT_EXPECT_EQ(test, invalidate(f, w->key), 0);
	KUNIT_EXPECT_EQ(test, invalidate(f, f->fast.key.key), 0);
}

static void dma_region_is_not_invalidated(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct shca_region *dma = kunit_kzalloc(test, sizeof(*dma), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dma);
	add_region(test, dma, SHCA_KEY_DMA);
	KUNIT_EXPECT_EQ(test, invalidate(f, dma->key.key), -EACCES);
	KUNIT_EXPECT_TRUE(test, readable(f, dma->key.key, &f->qp, BASE));
	KUNIT_EXPECT_EQ(test, shca_key_remove(&dma->key), 0);
}

#define KEY_TURNS	260

/* The low 8 bits come round: no key of the last 255 turns works. */
static void old_keys_stay_dead(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct shca_key *w = &f->window[0];
	u32 *keys = kunit_kcalloc(test, KEY_TURNS, sizeof(*keys), GFP_KERNEL);
	int turn, back, alive = 0;

	KUNIT_ASSERT_NOT_NULL(test, keys);
	for (turn = 0; turn < KEY_TURNS; turn++) {
		KUNIT_ASSERT_EQ(test, bind(f, w, &f->qp, RR, BASE, 16), 0);
		keys[turn] = w->key;
		for (back = 1; back < 256 && back <= turn; back++)
			alive += readable(f, keys[turn - back], &f->qp, BASE);
		KUNIT_ASSERT_TRUE(test, readable(f, w->key, &f->qp, BASE));
		KUNIT_ASSERT_EQ(test, shca_key_invalidate(&f->table, w->key,
							  &f->pd, &f->qp), 0);
	}
	KUNIT_EXPECT_EQ(test, alive, 0);
	KUNIT_EXPECT_EQ(test, keys[0], keys[256]);
}

static void type_1_window_is_bound_anew(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct shca_key *w = &f->old_window;
	u32 first;

	KUNIT_ASSERT_EQ(test, bind(f, w, &f->qp, RR, BASE, 16), 0);
	first = w->key;
	KUNIT_EXPECT_TRUE(test, readable(f, first, &f->other, BASE));
	KUNIT_ASSERT_EQ(test, bind(f, w, &f->qp, RR, BASE + 16, 16), 0);
	KUNIT_EXPECT_EQ(test, f->region.windows, 1);
	KUNIT_EXPECT_FALSE(test, readable(f, first, &f->qp, BASE));
	KUNIT_EXPECT_FALSE(test, readable(f, w->key, &f->qp, BASE));
	KUNIT_EXPECT_TRUE(test, readable(f, w->key, &f->qp, BASE + 16));
	/* It belongs to no QP, so no QP takes it along. */
	KUNIT_EXPECT_TRUE(test, list_empty(&f->qp.windows));
}

static void type_1_window_is_unbound_by_no_length(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct shca_key *w = &f->old_window;
	u32 key;

	KUNIT_ASSERT_EQ(test, bind(f, w, &f->qp, RR, BASE, 16), 0);
	key = w->key;
	KUNIT_ASSERT_EQ(test, bind(f, w, &f->qp, 0, 0, 0), 0);
	KUNIT_EXPECT_FALSE(test, readable(f, key, &f->qp, BASE));
	KUNIT_EXPECT_FALSE(test, readable(f, w->key, &f->qp, BASE));
	KUNIT_EXPECT_EQ(test, f->region.windows, 0);
	/* Unbinding what is not bound does nothing. */
	KUNIT_EXPECT_EQ(test, bind(f, w, &f->qp, 0, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, f->region.windows, 0);
}

static void region_with_a_window_stays(struct kunit *test)
{
	struct fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, bind(f, &f->window[0], &f->qp, RR, BASE, 16), 0);
	KUNIT_EXPECT_EQ(test, shca_key_remove(&f->region.key), -EBUSY);
	KUNIT_EXPECT_TRUE(test, readable(f, f->region.key.key, &f->qp, BASE));
	KUNIT_EXPECT_TRUE(test, readable(f, f->window[0].key, &f->qp, BASE));
}

static void qp_takes_its_windows_along(struct kunit *test)
{
	struct fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, bind(f, &f->window[0], &f->qp, RR, BASE, 16), 0);
	KUNIT_ASSERT_EQ(test, bind(f, &f->window[1], &f->other, RR, BASE, 16), 0);
	KUNIT_ASSERT_EQ(test, bind(f, &f->window[2], &f->qp, RR, BASE, 16), 0);
	KUNIT_ASSERT_EQ(test, bind(f, &f->old_window, &f->qp, RR, BASE, 16), 0);

	shca_key_unbind_qp(&f->table, &f->qp);
	KUNIT_EXPECT_TRUE(test, list_empty(&f->qp.windows));
	KUNIT_EXPECT_FALSE(test, readable(f, f->window[0].key, &f->qp, BASE));
	KUNIT_EXPECT_FALSE(test, readable(f, f->window[2].key, &f->qp, BASE));
	KUNIT_EXPECT_TRUE(test, readable(f, f->window[1].key, &f->other, BASE));
	KUNIT_EXPECT_TRUE(test, readable(f, f->old_window.key, &f->qp, BASE));
	KUNIT_EXPECT_EQ(test, f->region.windows, 2);

	/* A QP without windows has nothing to lose. */
	shca_key_unbind_qp(&f->table, &f->qp);
	KUNIT_EXPECT_EQ(test, f->region.windows, 2);
}

/* ---- taking a right away waits for the accesses under way ---- */

enum taker { INVALIDATE, REMOVE, UNBIND_QP, BIND_ANEW, REPLACE };

struct waiter {
	struct fixture *f;
	enum taker how;
	struct shca_key *key;
	struct completion done;
	int ret;
};

static int take_away(void *arg)
{
	struct waiter *w = arg;
	struct fixture *f = w->f;
	const struct shca_region_change change = {
		.pages = &f->more_pages,
		.base = BASE,
		.length = LENGTH,
		.access = FULL,
		.pd = &f->pd,
	};

	switch (w->how) {
	case INVALIDATE:
		w->ret = shca_key_invalidate(&f->table, w->key->key, &f->pd,
					     &f->qp);
		break;
	case REMOVE:
		w->ret = shca_key_remove(w->key);
		break;
	case UNBIND_QP:
		shca_key_unbind_qp(&f->table, &f->qp);
		w->ret = 0;
		break;
	case BIND_ANEW:
		w->ret = bind(f, w->key, &f->qp, RR, BASE + 16, 16);
		break;
	case REPLACE:
		w->ret = shca_region_replace(&f->region, &change);
		break;
	}
	complete(&w->done);
	return 0;
}

struct wait_row {
	const char *name;
	enum taker how;
	enum shca_key_kind kind;
	bool old_stays_readable;	/* the key lives on with other memory */
};

static const struct wait_row wait_rows[] = {
	{ "invalidating a window", INVALIDATE, SHCA_KEY_WINDOW_2 },
	{ "invalidating a fast-register region", INVALIDATE, SHCA_KEY_FAST },
	{ "deallocating a type 2 window", REMOVE, SHCA_KEY_WINDOW_2 },
	{ "deallocating a type 1 window", REMOVE, SHCA_KEY_WINDOW_1 },
	{ "resetting the QP that a window is bound to", UNBIND_QP,
	  SHCA_KEY_WINDOW_2 },
	{ "binding a type 1 window anew", BIND_ANEW, SHCA_KEY_WINDOW_1 },
	{ "deregistering a region", REMOVE, SHCA_KEY_REGION },
	{ "replacing a region's memory", REPLACE, SHCA_KEY_REGION, true },
};

static void wait_desc(const struct wait_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wait, wait_rows, wait_desc);

static struct shca_key *key_of_kind(struct fixture *f, enum shca_key_kind kind)
{
	switch (kind) {
	case SHCA_KEY_REGION:
		return &f->region.key;
	case SHCA_KEY_FAST:
		return &f->fast.key;
	case SHCA_KEY_WINDOW_1:
		return &f->old_window;
	default:
		return &f->window[0];
	}
}

static void waits_for_accesses(struct kunit *test)
{
	const struct wait_row *row = test->param_value;
	struct fixture *f = test->priv;
	struct waiter *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct shca_span first, second;
	struct task_struct *thread;
	unsigned long deadline;
	struct shca_key *key;
	u32 old;

	KUNIT_ASSERT_NOT_NULL(test, w);
	key = key_of_kind(f, row->kind);
	if (key->state == SHCA_KEY_FREE)
		KUNIT_ASSERT_EQ(test, bind(f, key, &f->qp, RR, BASE, 16), 0);
	old = key->key;
	KUNIT_ASSERT_EQ(test, get(f, old, &f->qp, BASE, 16, &first), 0);
	KUNIT_ASSERT_EQ(test, get(f, old, &f->qp, BASE, 16, &second), 0);

	w->f = f;
	w->how = row->how;
	w->key = key;
	init_completion(&w->done);
	thread = kthread_run(take_away, w, "kunit-take-away");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));

	/* It begins when it gets to run, so no new access does, and does not end. */
	deadline = jiffies + LONG;
	do {
		msleep(SHORT_MS);
	} while (readable(f, old, &f->qp, BASE) && !row->old_stays_readable &&
		 time_before(jiffies, deadline));
	KUNIT_EXPECT_EQ(test, readable(f, old, &f->qp, BASE),
			row->old_stays_readable);
	KUNIT_EXPECT_FALSE(test, completion_done(&w->done));
	shca_key_put(&first);
	msleep(SHORT_MS);
	KUNIT_EXPECT_FALSE(test, completion_done(&w->done));
	shca_key_put(&second);
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&w->done, LONG), 0);
	KUNIT_EXPECT_EQ(test, w->ret, 0);
	KUNIT_EXPECT_EQ(test, readable(f, old, &f->qp, BASE),
			row->old_stays_readable);
	KUNIT_EXPECT_EQ(test, f->pages.users, 0);

	if (row->how != REMOVE)
		return;
	/* Put it back for table_exit(). */
	if (row->kind == SHCA_KEY_REGION)
		KUNIT_EXPECT_EQ(test, shca_key_add(&f->table, key), 0);
	else
		add_window(test, key, row->kind);
}

/* ---- a region under a key that stays ---- */

static void replaced_region_has_new_memory(struct kunit *test)
{
	struct fixture *f = test->priv;
	const struct shca_region_change change = {
		.pages = &f->more_pages,
		.base = BASE + LENGTH,
		.length = 16,
		.access = IB_ACCESS_REMOTE_READ,
		.pd = &f->pd,
	};
	u32 key = f->region.key.key;
	struct shca_span span;

	f->more_pages.first = 7;
	KUNIT_ASSERT_EQ(test, shca_region_replace(&f->region, &change), 0);
	KUNIT_EXPECT_EQ(test, f->region.key.key, key);
	KUNIT_EXPECT_FALSE(test, readable(f, key, &f->qp, BASE));
	KUNIT_ASSERT_EQ(test, get(f, key, &f->qp, BASE + LENGTH, 16, &span), 0);
	KUNIT_EXPECT_PTR_EQ(test, span.pages, &f->more_pages);
	KUNIT_EXPECT_EQ(test, span.offset, 7);
	KUNIT_EXPECT_EQ(test, f->more_pages.users, 1);
	shca_key_put(&span);
}

static void region_with_a_window_is_not_replaced(struct kunit *test)
{
	struct fixture *f = test->priv;
	const struct shca_region_change change = {
		.pages = &f->more_pages,
		.base = BASE,
		.length = LENGTH,
		.access = FULL,
		.pd = &f->pd,
	};

	KUNIT_ASSERT_EQ(test, bind(f, &f->window[0], &f->qp, RR, BASE, 16), 0);
	KUNIT_EXPECT_EQ(test, shca_region_replace(&f->region, &change), -EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, f->region.pages, &f->pages);
}

static struct kunit_case table_cases[] = {
	KUNIT_CASE(keys_are_distinct),
	KUNIT_CASE(index_is_not_used_again_at_once),
	KUNIT_CASE(removed_key_is_not_found),
	KUNIT_CASE(no_such_key),
	KUNIT_CASE_PARAM(span_of_an_access, span_gen_params),
	KUNIT_CASE(window_is_bound_once),
	KUNIT_CASE(window_is_invalidated_once),
	KUNIT_CASE(refused_invalidation_changes_nothing),
	KUNIT_CASE(fast_region_is_invalidated_once),
	KUNIT_CASE(fast_region_with_a_window_stays),
	KUNIT_CASE(dma_region_is_not_invalidated),
	KUNIT_CASE(old_keys_stay_dead),
	KUNIT_CASE(type_1_window_is_bound_anew),
	KUNIT_CASE(type_1_window_is_unbound_by_no_length),
	KUNIT_CASE(region_with_a_window_stays),
	KUNIT_CASE(qp_takes_its_windows_along),
	KUNIT_CASE_PARAM(waits_for_accesses, wait_gen_params),
	KUNIT_CASE(replaced_region_has_new_memory),
	KUNIT_CASE(region_with_a_window_is_not_replaced),
	{}
};

static struct kunit_suite table_suite = {
	.name = "sample_hca_key_table",
	.init = table_init,
	.exit = table_exit,
	.test_cases = table_cases,
};

kunit_test_suite(table_suite);
