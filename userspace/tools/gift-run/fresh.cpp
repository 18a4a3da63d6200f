// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "fresh.hpp"

#include <algorithm>
#include <utility>

namespace giftrun
{

bool FreshCache::idle(const Fresh &fresh)
{
	return fresh.holds == 0 &&
	       std::all_of(fresh.uses.begin(), fresh.uses.end(),
			   [](const Fresh::Use &use) { return use.queue->over(use.request); });
}

/* Takes out what is idle, from the longest unused on, until keep are left. */
FreshCache::List FreshCache::trim(size_t keep)
{
	List gone;

	for (auto at = list_.end(); list_.size() > keep && at != list_.begin();) {
		const auto fresh = --at;

		if (idle(*fresh)) {
			++at;
			gone.splice(gone.end(), list_, fresh);
		}
	}
	return gone;
}

/* Without the mutex: a deregistration is a system call. */
void FreshCache::release(List &list)
{
	for (const Fresh &fresh : list) {
		release_(fresh.mr);
	}
	list.clear();
}

Fresh *FreshCache::hold(List::iterator at)
{
	list_.splice(list_.begin(), list_, at);
	at->holds++;
	return &*at;
}

Fresh *FreshCache::find(const void *region, const PageSet &stale)
{
	const std::lock_guard lock(mutex);

	for (auto at = list_.begin(); at != list_.end(); ++at) {
		if (at->region == region && !at->orphan &&
		    at->coherent.range().covers(stale.range()) && stale.within(at->coherent)) {
			return hold(at);
		}
	}
	return nullptr;
}

Fresh *FreshCache::add(const void *region, ibv_mr *mr, PageSet coherent)
{
	Fresh *fresh;
	List gone;
	{
		const std::lock_guard lock(mutex);

		list_.push_front({region, mr, std::move(coherent), {}});
		fresh = hold(list_.begin());
		gone = trim(limit_);
	}
	release(gone);
	return fresh;
}

void FreshCache::put_locked(Fresh *fresh, List *gone)
{
	if (--fresh->holds != 0 || !fresh->orphan) {
		return;
	}
	const auto at = std::find_if(list_.begin(), list_.end(),
				     [fresh](const Fresh &other) { return &other == fresh; });
	gone->splice(gone->end(), list_, at);
}

void FreshCache::put(Fresh *fresh)
{
	List gone;
	{
		const std::lock_guard lock(mutex);

		put_locked(fresh, &gone);
	}
	release(gone);
}

void FreshCache::put(Fresh *fresh, const std::shared_ptr<SendQueue> &queue, uint64_t request)
{
	List gone;
	{
		const std::lock_guard lock(mutex);
		const auto use =
			std::find_if(fresh->uses.begin(), fresh->uses.end(),
				     [&](const Fresh::Use &other) { return other.queue == queue; });

		if (use == fresh->uses.end()) {
			fresh->uses.push_back({queue, request});
		} else {
			use->request = std::max(use->request, request);
		}
		put_locked(fresh, &gone);
	}
	release(gone);
}

void FreshCache::drop(const void *region)
{
	List gone;
	{
		const std::lock_guard lock(mutex);

		for (auto at = list_.begin(); at != list_.end();) {
			const auto fresh = at++;

			if (fresh->region != region) {
				continue;
			}
			if (fresh->holds != 0) {
				fresh->orphan = true;
			} else {
				gone.splice(gone.end(), list_, fresh);
			}
		}
	}
	release(gone);
}

bool FreshCache::drop_idle()
{
	List gone;
	{
		const std::lock_guard lock(mutex);

		gone = trim(0);
	}
	const bool some = !gone.empty();
	release(gone);
	return some;
}

void FreshCache::forget()
{
	list_.clear();
}

size_t FreshCache::size()
{
	const std::lock_guard lock(mutex);

	return list_.size();
}

} // namespace giftrun
