// SPDX-License-Identifier: GPL-2.0
/*
 * Moving bytes between memory that keys lead to. Owns scatter/gather lists
 * while they are in use; never decides who may access what (key.c does).
 */
#include <linux/highmem.h>
#include <linux/nospec.h>
#include <linux/sched.h>

#include "engine.h"

/* Pages copied between two chances for somebody else to run. */
#define SHCA_COPY_BATCH	64

static void shca_sgl_reset(struct shca_sgl *sgl)
{
	sgl->nr = 0;
	sgl->length = 0;
}

static int shca_sgl_add(struct shca_sgl *sgl, struct shca_key_table *table,
			const struct shca_want *want)
{
	int ret;

	ret = shca_key_get(table, want, &sgl->span[sgl->nr]);
	if (ret)
		return ret;
	sgl->nr++;
	sgl->length += want->length;
	return 0;
}

/**
 * shca_sgl_gather() - resolve a work request's local memory
 * @sgl: filled in; shca_sgl_put() it in any case
 * @qp: the QP whose work request it is
 * @sge: the list, in the engine's own memory
 * @nr: its length, at most SHCA_MAX_SGE
 * @access: IB_ACCESS_LOCAL_WRITE or 0
 *
 * An element of length 0 stands for no bytes and its key is not looked at.
 * Return: 0 or -EACCES.
 */
int shca_sgl_gather(struct shca_sgl *sgl, const struct shca_qp *qp,
		    const struct shca_sge *sge, unsigned int nr, u32 access)
{
	unsigned int i;
	int ret;

	shca_sgl_reset(sgl);
	for (i = 0; i < nr; i++) {
		const struct shca_want want = {
			.key = sge[i].lkey,
			.access = access,
			.pd = qp->pd,
			.qp = qp,
			.addr = sge[i].addr,
			.length = sge[i].length,
		};

		if (!want.length)
			continue;
		ret = shca_sgl_add(sgl, &qp->hca->keys, &want);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * shca_sgl_buffer() - make a list of one piece of the engine's own memory
 * @sgl: filled in
 * @buffer: the memory
 * @length: bytes
 */
void shca_sgl_buffer(struct shca_sgl *sgl, void *buffer, u32 length)
{
	shca_sgl_reset(sgl);
	if (!length)
		return;
	sgl->span[0] = (struct shca_span){ .buffer = buffer, .length = length };
	sgl->nr = 1;
	sgl->length = length;
}

/**
 * shca_sgl_remote() - resolve what an rkey leads to
 * @sgl: filled in; shca_sgl_put() it in any case
 * @qp: the responder
 * @rkey: the key in the request
 * @addr: first address
 * @length: bytes; with 0 no key is needed (InfiniBand Architecture C9-88)
 * @access: IB_ACCESS_REMOTE_*
 *
 * Return: 0 or -EACCES.
 */
int shca_sgl_remote(struct shca_sgl *sgl, const struct shca_qp *qp, u32 rkey,
		    u64 addr, u64 length, u32 access)
{
	const struct shca_want want = {
		.key = rkey,
		.access = access,
		.remote = true,
		.pd = qp->pd,
		.qp = qp,
		.addr = addr,
		.length = length,
	};

	shca_sgl_reset(sgl);
	return length ? shca_sgl_add(sgl, &qp->hca->keys, &want) : 0;
}

/**
 * shca_sgl_put() - end the accesses of a list
 * @sgl: the list, empty afterwards
 */
void shca_sgl_put(struct shca_sgl *sgl)
{
	while (sgl->nr) {
		const struct shca_span *span = &sgl->span[--sgl->nr];

		if (span->key)
			shca_key_put(span);
	}
	sgl->length = 0;
}

/* Where a copy is within a list. */
struct shca_cursor {
	const struct shca_span *span;
	u64 done;	/* bytes of that span */
};

static size_t shca_cursor_chunk(struct shca_cursor *at)
{
	u64 left;

	if (at->done == at->span->length) {
		at->span++;
		at->done = 0;
	}
	left = at->span->length - at->done;
	if (at->span->buffer)
		return left;
	return min_t(u64, left,
		     PAGE_SIZE - offset_in_page(at->span->offset + at->done));
}

static void *shca_cursor_map(const struct shca_cursor *at)
{
	u64 offset = at->span->offset + at->done;
	const struct shca_pages *pages = at->span->pages;
	size_t i;

	if (at->span->buffer)
		return at->span->buffer + offset;
	/* A process names it, and the key's check may have been guessed. */
	i = array_index_nospec(offset >> PAGE_SHIFT, pages->nr);
	return kmap_local_page(pages->page[i]) + offset_in_page(offset);
}

static void shca_cursor_unmap(const struct shca_cursor *at, void *addr)
{
	if (!at->span->buffer)
		kunmap_local(addr);
}

/**
 * shca_sgl_copy() - copy bytes, once
 * @to: destination, not the engine's own memory
 * @from: source
 * @length: bytes, at most what either list has
 *
 * Bytes are written in ascending order of address within a list element.
 * Context: process, may sleep.
 */
void shca_sgl_copy(const struct shca_sgl *to, const struct shca_sgl *from,
		   u64 length)
{
	struct shca_cursor dst = { .span = to->span };
	struct shca_cursor src = { .span = from->span };
	unsigned int batch = 0;
	void *d, *s;
	size_t n;

	while (length) {
		n = min_t(u64, length, min(shca_cursor_chunk(&dst),
					   shca_cursor_chunk(&src)));
		s = shca_cursor_map(&src);
		d = shca_cursor_map(&dst);
		/* A process may register the same bytes twice. */
		memmove(d, s, n);
		shca_cursor_unmap(&dst, d);
		shca_cursor_unmap(&src, s);
		dst.done += n;
		src.done += n;
		length -= n;
		if (!(++batch % SHCA_COPY_BATCH))
			cond_resched();
	}
}
