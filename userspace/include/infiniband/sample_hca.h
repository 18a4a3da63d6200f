/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The public interface of the sample HCA's provider, beside the verbs: what
 * an application may ask of a context before it relies on it, and how it finds
 * and refreshes what is stale in its gift regions. Link with -lsample_hca.
 */
#ifndef INFINIBAND_SAMPLE_HCA_H
#define INFINIBAND_SAMPLE_HCA_H

#include <infiniband/gift.h>
#include <infiniband/verbs.h>
#include <rdma/sample_hca-abi.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * shca_query_caps - What a device and its provider both do
 * @context: any open device
 * @caps: where to put the bits of enum shca_caps: SHCA_CAP_GIFT, when
 *	IBV_ACCESS_GIFT is honoured and not only accepted; SHCA_CAP_SEND_W_INV,
 *	when a send with invalidate is carried out
 *
 * Returns 0, EOPNOTSUPP when @context is not a sample HCA's (which promises
 * neither) or EINVAL when an argument is NULL. @caps is 0 after a failure.
 */
int shca_query_caps(struct ibv_context *context, uint64_t *caps);

/**
 * shca_stale_words - Size of the bitmap of a range
 * @addr: first byte of the range
 * @length: bytes
 *
 * Returns the number of uint64_t that shca_query_stale() stores in a bitmap:
 * one bit for each page that the range touches.
 */
static inline size_t shca_stale_words(const void *addr, size_t length)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)addr;

	return length ? ((first + (length - 1)) / page - first / page) / 64 + 1 : 0;
}

/**
 * shca_query_stale - Which pages of the gift regions in a range are stale
 * @addr: first byte of the range, anywhere in the caller's memory
 * @length: bytes, at least 1
 * @bitmap: where to put a bit for each page that the range touches, set when it
 *	is stale; shca_stale_words() words long. May be NULL
 * @registered: where to put the number of pages in a gift region. May be NULL
 * @stale: where to put how many of those are stale. May be NULL
 *
 * A page is stale when the process no longer has at its address what it
 * registered: it wrote to a page that was held, or mapped, unmapped or moved
 * something there. What an adapter reads of it may be older than what the
 * process sees; what it reads of any other page is what the process sees.
 * Bit i % 64 of word i / 64 stands for page i of the range, the first being
 * the one that @addr lies in.
 *
 * It holds for the gift regions of the caller on every device, whatever its
 * driver. It says nothing about plain regions, which never go stale by writing.
 * A page in several regions is stale when it is in one of them. A page that is
 * swapped out or not mapped counts as stale. Asking faults nothing in, copies
 * nothing, costs a look at the page tables for each registered page, and needs no
 * privilege.
 *
 * The answer is of the moment: a page that another thread writes to meanwhile
 * may count either way. A program that must not miss a write asks after the write
 * and before it tells the peer to read.
 *
 * Returns 0; EINVAL for an empty range or one that is not in user memory; EFAULT
 * when @bitmap cannot be written to; ENOMEM; EOPNOTSUPP when there is no
 * /dev/ib_gift, or one that does not know the question; EACCES, EMFILE and
 * others when it cannot be opened. After a failure what was pointed to means
 * nothing.
 *
 * See also shca_refresh_mr(), ibv_rereg_mr(3).
 */
int shca_query_stale(const void *addr, size_t length, uint64_t *bitmap, uint64_t *registered,
		     uint64_t *stale);

/**
 * shca_refresh_mr - Take the stale pages of a gift region again
 * @mr: a region of a sample HCA, registered with IBV_ACCESS_GIFT
 * @addr: first byte to look at; with @length, a range within the region
 * @length: bytes, at least 1. For the whole region: @mr->addr, @mr->length
 * @retaken: where to put the number of pages taken again. May be NULL
 *
 * Takes the pages that shca_query_stale() calls stale again, as a registration
 * would take them now, and nothing else: lkey and rkey stay, and so does every
 * page that is not stale. A page that had been held because it was shared and
 * that has since been written to is the process's own by now, is pinned, and
 * will not go stale again.
 *
 * Each RDMA READ and each send by the region's keys sees the region as it was
 * before or as it is afterwards. When the call returns, none is under way that
 * sees the old one. Only the pages taken again are charged to RLIMIT_MEMLOCK, and
 * only during the call.
 *
 * ibv_rereg_mr() with IBV_REREG_MR_CHANGE_TRANSLATION takes every page again,
 * works with every driver, and costs accordingly.
 *
 * Returns 0; EINVAL when @mr is NULL, is not a gift region or was registered by
 * another process, or when the range is not within it; EOPNOTSUPP when it is no
 * region of a sample HCA, or the driver is too old; EBUSY while another thread
 * changes the region; EFAULT when a stale page is not mapped or not readable any
 * more; EPERM or ENOMEM when RLIMIT_MEMLOCK forbids it; ENOMEM. After a failure
 * the region is what it was, and can be used.
 *
 * See also shca_query_stale(), ibv_reg_mr(3), ibv_rereg_mr(3).
 */
int shca_refresh_mr(struct ibv_mr *mr, void *addr, size_t length, uint64_t *retaken);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_SAMPLE_HCA_H */
