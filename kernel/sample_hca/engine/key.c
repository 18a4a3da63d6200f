// SPDX-License-Identifier: GPL-2.0
/*
 * Memory keys: who may access which bytes, and how that right is taken away.
 * Owns the key table and the rules of binding and invalidation; never touches
 * the bytes themselves.
 *
 * An access holds a use of its key from the check to the last byte. A key that
 * is taken away first stops being valid, then waits for its uses to end: when
 * that is over, no access by it runs and none can begin. An access never waits
 * for a key, so whoever waits here is waited for by nobody.
 */
#include "engine.h"

#define SHCA_KEY_INDEX_SHIFT	8
#define SHCA_KEY_LIMIT		XA_LIMIT(1, (1U << 24) - 1)
/* What a window's access may contain. */
#define SHCA_WINDOW_ACCESS						\
	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_ATOMIC | IB_ZERO_BASED)

static u32 shca_key_index(u32 key)
{
	return key >> SHCA_KEY_INDEX_SHIFT;
}

static bool shca_key_is_window(const struct shca_key *key)
{
	return key->kind == SHCA_KEY_WINDOW_1 || key->kind == SHCA_KEY_WINDOW_2;
}

/**
 * shca_key_table_init() - make an empty table
 * @table: the table
 */
void shca_key_table_init(struct shca_key_table *table)
{
	xa_init_flags(&table->keys, XA_FLAGS_ALLOC1);
	init_waitqueue_head(&table->drained);
	table->next = 1;
}

/**
 * shca_key_table_destroy() - end a table whose keys are all removed
 * @table: the table
 */
void shca_key_table_destroy(struct shca_key_table *table)
{
	unsigned long index = 0;

	/* Nodes may be left, by an insertion that ran out of memory half-way. */
	WARN_ON(xa_find(&table->keys, &index, ULONG_MAX, XA_PRESENT));
	xa_destroy(&table->keys);
}

/**
 * shca_key_add() - give a region or window its key and make it findable
 * @table: the adapter's table
 * @key: filled in except for @table, @key, @users and @on_qp
 *
 * Context: process, may sleep. The first key of an index gets its low 8 bits
 * from the index's upper bits, so that they are not alike for all.
 * Return: 0, -ENOMEM, or -EBUSY when all keys are taken.
 */
int shca_key_add(struct shca_key_table *table, struct shca_key *key)
{
	u32 index;
	int ret;

	key->table = table;
	key->users = 0;
	INIT_LIST_HEAD(&key->on_qp);

	xa_lock(&table->keys);
	ret = __xa_alloc_cyclic(&table->keys, &index, key, SHCA_KEY_LIMIT,
				&table->next, GFP_KERNEL);
	if (ret >= 0)
		key->key = index << SHCA_KEY_INDEX_SHIFT |
			   ((index * 0x9du) & 0xff);
	xa_unlock(&table->keys);
	return ret < 0 ? ret : 0;
}

static struct shca_key *shca_key_find(struct shca_key_table *table, u32 key)
{
	lockdep_assert_held(&table->keys.xa_lock);
	return xa_load(&table->keys, shca_key_index(key));
}

/*
 * The last step of taking a right away. The region of a window stays busy until
 * here, since accesses by the window used its pages.
 */
static void shca_key_settle(struct shca_key *key)
{
	lockdep_assert_held(&key->table->keys.xa_lock);
	if (shca_key_is_window(key)) {
		key->region->windows--;
		key->region = NULL;
		key->qp = NULL;
		list_del_init(&key->on_qp);
	}
	key->state = SHCA_KEY_FREE;
	wake_up_all(&key->table->drained);
}

static bool shca_key_idle(struct shca_key *key)
{
	bool idle;

	xa_lock(&key->table->keys);
	idle = !key->users;
	xa_unlock(&key->table->keys);
	return idle;
}

static bool shca_key_settled(struct shca_key *key)
{
	bool settled;

	xa_lock(&key->table->keys);
	settled = key->state == SHCA_KEY_FREE;
	xa_unlock(&key->table->keys);
	return settled;
}

/*
 * Take the right away from a valid key: called with the table's lock held,
 * returns with it held, and drops it between. The caller sees to it that @key
 * is not freed meanwhile.
 */
static void shca_key_revoke(struct shca_key *key)
	__must_hold(&key->table->keys.xa_lock)
{
	struct shca_key_table *table = key->table;

	lockdep_assert_held(&table->keys.xa_lock);
	key->state = SHCA_KEY_DRAINING;
	while (key->users) {
		xa_unlock(&table->keys);
		wait_event(table->drained, shca_key_idle(key));
		xa_lock(&table->keys);
	}
	shca_key_settle(key);
}

/**
 * shca_key_remove() - take a key out of the table before its object is freed
 * @key: key of a region or window
 *
 * Waits for accesses under way, and for an invalidation of the same key that
 * another QP has begun.
 * Context: process, sleeps.
 * Return: 0, or -EBUSY for a region on which a window is bound (verbs:
 * deregister memory region, "windows still bound").
 */
int shca_key_remove(struct shca_key *key)
{
	struct shca_key_table *table = key->table;

	xa_lock(&table->keys);
	if (!shca_key_is_window(key) && key->region->windows) {
		xa_unlock(&table->keys);
		return -EBUSY;
	}
	__xa_erase(&table->keys, shca_key_index(key->key));
	if (key->state == SHCA_KEY_VALID)
		shca_key_revoke(key);
	xa_unlock(&table->keys);

	/* Nobody touches the key after the lock under which it settled. */
	wait_event(table->drained, shca_key_settled(key));
	return 0;
}

static bool shca_pages_idle(struct shca_key_table *table,
			    const struct shca_pages *pages)
{
	bool idle;

	xa_lock(&table->keys);
	idle = !pages->users;
	xa_unlock(&table->keys);
	return idle;
}

/**
 * shca_region_replace() - change a region under the key that it has
 * @region: the region
 * @change: everything that it is to be
 *
 * An access sees the old region or the new one, never a mix. Waits until none
 * is left that began by the old right, whatever has changed: @change->pages is
 * always another structure, and the old one is the caller's afterwards.
 * Context: process, sleeps. The caller serialises calls for one region.
 * Return: 0, or -EBUSY while windows are bound on it.
 */
int shca_region_replace(struct shca_region *region,
			const struct shca_region_change *change)
{
	struct shca_key_table *table = region->key.table;
	struct shca_pages *old;

	xa_lock(&table->keys);
	if (region->windows) {
		xa_unlock(&table->keys);
		return -EBUSY;
	}
	old = region->pages;
	region->pages = change->pages;
	region->key.base = change->base;
	region->key.length = change->length;
	region->key.access = change->access;
	region->key.pd = change->pd;
	xa_unlock(&table->keys);

	wait_event(table->drained, shca_pages_idle(table, old));
	return 0;
}

static bool shca_key_covers(const struct shca_key *key, u64 addr, u64 length)
{
	return addr >= key->base && length <= key->length &&
	       addr - key->base <= key->length - length;
}

/**
 * shca_key_permits() - is this access allowed
 * @key: what the key in @want leads to by its index
 * @want: the access
 *
 * A pure function. An lkey is a region's; a type 2 window serves only the QP
 * that it is bound to (InfiniBand Architecture 10.6.7.2.2, type 2B).
 * Return: true when it is.
 */
bool shca_key_permits(const struct shca_key *key, const struct shca_want *want)
{
	if (key->state != SHCA_KEY_VALID || key->key != want->key ||
	    key->pd != want->pd)
		return false;
	if (!want->remote && shca_key_is_window(key))
		return false;
	if (key->kind == SHCA_KEY_WINDOW_2 && key->qp != want->qp)
		return false;
	if (want->access & ~key->access)
		return false;
	return shca_key_covers(key, want->addr, want->length);
}

/**
 * shca_key_get() - begin an access
 * @table: the adapter's table
 * @want: the access
 * @span: filled in; shca_key_put() it when the last byte has moved
 *
 * Context: any; takes the table's lock.
 * Return: 0 or -EACCES.
 */
int shca_key_get(struct shca_key_table *table, const struct shca_want *want,
		 struct shca_span *span)
{
	struct shca_key *key;
	int ret = -EACCES;

	xa_lock(&table->keys);
	key = shca_key_find(table, want->key);
	if (key && shca_key_permits(key, want)) {
		key->users++;
		span->key = key;
		span->buffer = NULL;
		span->pages = key->region->pages;
		span->pages->users++;
		span->offset = span->pages->first + key->offset +
			       (want->addr - key->base);
		span->length = want->length;
		ret = 0;
	}
	xa_unlock(&table->keys);
	return ret;
}

/**
 * shca_key_put() - end an access
 * @span: from shca_key_get()
 */
void shca_key_put(const struct shca_span *span)
{
	struct shca_key_table *table = span->key->table;
	bool drained;

	xa_lock(&table->keys);
	drained = !--span->pages->users;
	drained |= !--span->key->users;
	if (drained)
		wake_up_all(&table->drained);
	xa_unlock(&table->keys);
}

/**
 * shca_key_may_bind() - may this window be bound in this way
 * @window: what @bind->mw_rkey leads to by its index
 * @region: what @bind->mr_lkey leads to by its index
 * @bind: the request
 *
 * A pure function of the rules in InfiniBand Architecture 10.6.7 and
 * 11.2.8.12: same PD everywhere; the region allows binding and, for a window
 * that writes, local write; a type 2 window is bound only when it is free and
 * covers at least one byte; the key keeps its index. Which window is meant
 * is the index's matter alone: verbs name it by a handle, and programs differ in
 * when they store a new key in it.
 * Return: true when it may.
 */
bool shca_key_may_bind(const struct shca_key *window,
		       const struct shca_key *region,
		       const struct shca_bind *bind)
{
	if (!shca_key_is_window(window) || window->pd != bind->pd ||
	    window->state == SHCA_KEY_DRAINING ||
	    shca_key_index(bind->new_rkey) != shca_key_index(window->key))
		return false;
	if (window->kind == SHCA_KEY_WINDOW_2 &&
	    (window->state != SHCA_KEY_FREE || !bind->length))
		return false;
	if (bind->access & ~SHCA_WINDOW_ACCESS)
		return false;
	if (window->kind == SHCA_KEY_WINDOW_1 && !bind->length)
		return true;

	if (shca_key_is_window(region) || region->state != SHCA_KEY_VALID ||
	    region->key != bind->mr_lkey || region->pd != bind->pd ||
	    !(region->access & IB_ACCESS_MW_BIND))
		return false;
	if ((bind->access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)) &&
	    !(region->access & IB_ACCESS_LOCAL_WRITE))
		return false;
	return shca_key_covers(region, bind->addr, bind->length);
}

/**
 * shca_key_bind() - bind a window, or unbind a type 1 window (length 0)
 * @table: the adapter's table
 * @bind: the request
 *
 * A type 1 window that is bound already is taken away first, which waits for
 * accesses under way.
 * Context: process, may sleep.
 * Return: 0 or -EACCES.
 */
int shca_key_bind(struct shca_key_table *table, const struct shca_bind *bind)
{
	/* Stands in for the region where unbinding needs none. */
	static const struct shca_key none = { .state = SHCA_KEY_FREE };
	struct shca_key *window, *region;
	int ret = -EACCES;

	xa_lock(&table->keys);
again:
	window = shca_key_find(table, bind->mw_rkey);
	region = shca_key_find(table, bind->mr_lkey);
	if (!window || !shca_key_may_bind(window, region ?: &none, bind))
		goto out;
	if (window->state == SHCA_KEY_VALID) {
		/*
		 * The lock is dropped meanwhile; removing the window waits for
		 * us through its state, but everything must be looked up anew.
		 */
		shca_key_revoke(window);
		goto again;
	}
	window->key = bind->new_rkey;
	ret = 0;
	if (!bind->length)
		goto out;

	window->access = bind->access;
	window->base = bind->access & IB_ZERO_BASED ? 0 : bind->addr;
	window->length = bind->length;
	window->region = region->region;
	window->offset = region->offset + (bind->addr - region->base);
	window->region->windows++;
	if (window->kind == SHCA_KEY_WINDOW_2) {
		window->qp = bind->qp;
		list_add(&window->on_qp, &bind->qp->windows);
	}
	window->state = SHCA_KEY_VALID;
out:
	xa_unlock(&table->keys);
	return ret;
}

/**
 * shca_key_may_invalidate() - may this key be invalidated by this QP
 * @key: what @rkey leads to by its index
 * @rkey: the key in the send or the local invalidate
 * @pd: protection domain of the QP
 * @qp: the QP: the responder of a send with invalidate, the poster of a local
 *      invalidate
 *
 * A pure function: the table in Documentation/send-with-invalidate.rst.
 * Return: true when it may.
 */
bool shca_key_may_invalidate(const struct shca_key *key, u32 rkey,
			     const void *pd, const struct shca_qp *qp)
{
	if (key->state != SHCA_KEY_VALID || key->key != rkey || key->pd != pd)
		return false;
	switch (key->kind) {
	case SHCA_KEY_WINDOW_2:
		return key->qp == qp;
	case SHCA_KEY_FAST:
		return !key->region->windows;
	default:
		return false;
	}
}

/**
 * shca_key_invalidate() - invalidate a key, once
 * @table: the adapter's table
 * @rkey: the key
 * @pd: protection domain of @qp
 * @qp: who asks
 *
 * When this returns 0 no access by @rkey runs and none can begin.
 * Context: process, sleeps until the accesses under way have ended.
 * Return: 0, or -EACCES with nothing invalidated.
 */
int shca_key_invalidate(struct shca_key_table *table, u32 rkey, const void *pd,
			struct shca_qp *qp)
{
	struct shca_key *key;
	int ret = -EACCES;

	xa_lock(&table->keys);
	key = shca_key_find(table, rkey);
	if (key && shca_key_may_invalidate(key, rkey, pd, qp)) {
		shca_key_revoke(key);
		ret = 0;
	}
	xa_unlock(&table->keys);
	return ret;
}

static bool shca_key_left_qp(struct shca_key_table *table,
			     struct shca_qp *qp, const struct shca_key *key)
{
	bool left;

	xa_lock(&table->keys);
	left = list_first_entry_or_null(&qp->windows, struct shca_key,
					on_qp) != key;
	xa_unlock(&table->keys);
	return left;
}

/**
 * shca_key_unbind_qp() - invalidate every window that is bound to a QP
 * @table: the adapter's table
 * @qp: a QP on which nothing can be bound any more, or whose locks are held
 *
 * Context: process, sleeps until the accesses under way have ended.
 */
void shca_key_unbind_qp(struct shca_key_table *table, struct shca_qp *qp)
{
	struct shca_key *key;

	xa_lock(&table->keys);
	while (!list_empty(&qp->windows)) {
		key = list_first_entry(&qp->windows, struct shca_key, on_qp);
		if (key->state == SHCA_KEY_VALID) {
			shca_key_revoke(key);
			continue;
		}
		/* Who is at it may free it as soon as it is off the list. */
		xa_unlock(&table->keys);
		wait_event(table->drained, shca_key_left_qp(table, qp, key));
		xa_lock(&table->keys);
	}
	xa_unlock(&table->keys);
}
