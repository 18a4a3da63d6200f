// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A gift region of this library's making, and what is told of it at exit.
 */
#pragma once

#include <infiniband/verbs.h>
#include <rdma/ib_gift.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "pages.hpp"

namespace giftrun
{

/* What the report says of a region, which may be gone by then. */
struct Record {
	std::string device;
	uint64_t address = 0;
	uint64_t length = 0;
	/* By enum ib_gift_page_kind; meaningless unless counted. */
	std::array<uint64_t, IB_GIFT_PAGE_KINDS> pages{};
	bool counted = false;
	std::atomic<uint64_t> refreshed{0};     /* pages that were stale at a post */
	std::atomic<uint64_t> fresh_regions{0}; /* registered for that */
	std::atomic<uint64_t> from_fresh{0};    /* SGEs that were sent from one */

	[[nodiscard]] uint64_t held() const;
	[[nodiscard]] uint64_t pinned() const { return pages[IB_GIFT_PAGE_PINNED]; }
};

/* Changes only in ibv_rereg_mr(), which makes a new one. */
struct Region {
	ibv_mr *mr = nullptr;
	ibv_pd *pd = nullptr;
	const ibv_context *context = nullptr;
	uint32_t lkey = 0;
	uint64_t address = 0;
	uint64_t length = 0;
	uint64_t iova = 0;      /* what SGEs call the first byte */
	unsigned int asked = 0; /* the access that the program asked for */
	std::shared_ptr<Record> record;

	/* Pages that the report has counted as refreshed. */
	std::mutex mutex;
	PageSet refreshed;

	/* The memory of an SGE: false unless it is all in the region. */
	[[nodiscard]] bool memory_of(uint64_t sge_address, uint64_t sge_length, uint64_t *at) const
	{
		const uint64_t offset = sge_address - iova;

		*at = address + offset;
		return offset < length && sge_length <= length - offset;
	}
	/* Pinned pages follow what the program writes: nothing in it goes stale. */
	[[nodiscard]] bool may_go_stale() const { return !record->counted || record->held() != 0; }
};

} // namespace giftrun
