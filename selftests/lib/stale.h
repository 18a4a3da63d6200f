/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How a program finds out what is stale and has it refreshed: /dev/ib_gift as it
 * is, and the functions of the provider's public header. Changes no memory.
 */
#ifndef SELFTESTS_STALE_H
#define SELFTESTS_STALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/ib_gift.h>

#include "mem.h"
#include "test.h"

/* An ioctl of /dev/ib_gift: 0 or its error number. */
int gift_call(unsigned long request, void *arg);
/* IB_GIFT_IOC_STALE, without a bitmap. */
int gift_stale(const void *addr, size_t length, struct ib_gift_stale *answer);
/* How many pages of a range are stale; the question must be answered. */
unsigned long stale_pages(const void *addr, size_t length);
/*
 * Of all of the memory, by page as well; @bitmap is in memory already. Checks that
 * asking changes nothing of the caller.
 */
uint64_t stale_ask(const struct mem *m, uint64_t *bitmap);
bool stale_bit(const uint64_t *bitmap, size_t page);

/* shca_query_stale(), shca_refresh_mr() of the provider that is loaded. */
int provider_query_stale(const void *addr, size_t length, uint64_t *bitmap,
			 uint64_t *registered, uint64_t *stale);
int provider_refresh(struct ibv_mr *mr, void *addr, size_t length,
		     uint64_t *retaken);
/* The whole region, which must work; the number of pages taken again. */
uint64_t refresh(struct ibv_mr *mr);
/* SHCA_METHOD_MR_REFRESH itself: 0 or its error number. */
int raw_refresh(struct ibv_context *ctx, uint32_t handle, uint64_t addr,
		uint64_t length, uint64_t *retaken);

#endif /* SELFTESTS_STALE_H */
