// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A fresh region covers the pages of one SGE, since a queue pair may take no more
 * SGEs than the program asked for, and these may be stale and held ones in turn. So
 * it is a gift region itself: as a plain one it would copy those that are held.
 *
 * IB_GIFT_IOC_STALE does not say in which region a page is stale, and what is stale
 * in the program's region stays so. The fresh region is therefore made so that those
 * pages cannot go stale in it: while it is registered each of them is pinned by a
 * plain registration of just that page, which a fork copies for the child and KSM
 * leaves alone, so that the fresh region finds it owned and pins it. Such a pin
 * costs no memory: the program has written to the page, so it is its own. The fresh
 * region is good for as long as no other page of it goes stale.
 */
#include "refresh.hpp"

#include <infiniband/gift.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "real.hpp"
#include "state.hpp"

namespace giftrun
{

namespace
{

/* Part of a region, by the names that its SGEs have; without remote access. */
ibv_mr *register_part(const Region &region, const PageRange &pages, int access)
{
	const uint64_t end = region.address + region.length;
	const uint64_t first = std::max(pages.first << page_shift, region.address);
	const uint64_t last = std::min(pages.end() << page_shift, end);
	const uint64_t iova = region.iova + (first - region.address);

	for (;;) {
		std::unique_lock lock(*state().one_at_a_time);
		ibv_mr *const mr =
			real().reg_mr_iova2(region.pd, reinterpret_cast<void *>(first),
					    last - first, iova, static_cast<unsigned int>(access));
		lock.unlock();

		/* Limits may be what idle ones use up. */
		if (mr || (errno != ENOMEM && errno != EAGAIN && errno != ENOSPC)) {
			return mr;
		}
		const int error = errno;
		if (!state().fresh.drop_idle()) {
			errno = error;
			return nullptr;
		}
	}
}

/* Takes the pages of the set; the mr, and which of its pages cannot go stale. */
ibv_mr *register_fresh(const Region &region, const PageSet &stale, PageSet *coherent)
{
	std::vector<ibv_mr *> pins;
	bool all = true;

	for (const PageRange &run : stale.runs()) {
		ibv_mr *const pin = register_part(region, run, 0);

		if (pin && run == stale.range()) {
			*coherent = stale;
			return pin;
		}
		all = all && pin;
		if (pin) {
			pins.push_back(pin);
		}
	}
	ibv_mr *mr = register_part(region, stale.range(), IBV_ACCESS_GIFT);
	int error = errno;

	for (ibv_mr *const pin : pins) {
		real().dereg_mr(pin);
	}
	/* Limits may leave room for it, and not for the pins beside it. */
	if (!mr && !pins.empty()) {
		all = false;
		mr = register_part(region, stale.range(), IBV_ACCESS_GIFT);
		error = errno;
	}
	/* What cannot be pinned, such as a read-only mapping, is taken each time. */
	if (all) {
		*coherent = stale;
	} else {
		coherent->reset(stale.range());
	}
	errno = error;
	return mr;
}

void count(Region &region, const PageSet &stale)
{
	const std::lock_guard lock(region.mutex);

	if (region.refreshed.range().count == 0) {
		region.refreshed.reset(pages_of(region.address, region.length));
	}
	region.record->refreshed += region.refreshed.merge(stale);
}

} // namespace

int refresh(const ibv_context *context, const ibv_sge &sge, Fresh **fresh)
{
	State &s = state();
	const std::shared_ptr<Region> region = s.registry.region(context, sge.lkey);
	thread_local PageSet stale;
	uint64_t address;
	uint64_t number;

	*fresh = nullptr;
	/* What is not in the region fails without us. */
	if (!region || sge.length == 0 || !region->may_go_stale() ||
	    !region->memory_of(sge.addr, sge.length, &address)) {
		return 0;
	}
	stale.reset(pages_of(address, sge.length));
	const int error = s.device->stale(&stale, &number);
	if (error || number == 0) {
		return error;
	}
	*fresh = s.fresh.find(region.get(), stale);
	if (!*fresh) {
		PageSet coherent;
		ibv_mr *const mr = register_fresh(*region, stale, &coherent);

		if (!mr) {
			return errno ? errno : ENOMEM;
		}
		*fresh = s.fresh.add(region.get(), mr, std::move(coherent));
		region->record->fresh_regions++;
		count(*region, stale);
	}
	region->record->from_fresh++;
	return 0;
}

} // namespace giftrun
