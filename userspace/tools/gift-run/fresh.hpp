// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The fresh regions: registrations of parts of gift regions, from which is sent
 * what is stale in those. Owns when one may be deregistered: never while a request
 * that uses it can be executed. Knows nothing of verbs.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "pages.hpp"
#include "queue.hpp"

struct ibv_mr;

namespace giftrun
{

struct Fresh {
	const void *region; /* the gift region that it is a part of */
	ibv_mr *mr;
	/* What it covers, and of that the pages that cannot become stale in it. */
	PageSet coherent;

	struct Use {
		std::shared_ptr<SendQueue> queue;
		uint64_t request;
	};
	std::vector<Use> uses; /* one for each queue: the last */
	unsigned int holds = 0;
	bool orphan = false; /* to be released by the last put() */
};

class FreshCache
{
public:
	using Release = void (*)(ibv_mr *mr);

	/* Idle regions above the limit are released, the longest unused first. */
	FreshCache(size_t limit, Release release) : limit_(limit), release_(release) {}

	/*
	 * A fresh region of this region that covers the range of the set and in which
	 * no page of the set is stale; held until put(). nullptr: there is none.
	 */
	Fresh *find(const void *region, const PageSet &stale);
	/* Takes over mr, which is held until put(). */
	Fresh *add(const void *region, ibv_mr *mr, PageSet coherent);
	/* Not used after all, or by this request. */
	void put(Fresh *fresh);
	void put(Fresh *fresh, const std::shared_ptr<SendQueue> &queue, uint64_t request);

	/* The region is deregistered: no request that is executed uses it. */
	void drop(const void *region);
	/* Releases what is idle; false if nothing was. */
	bool drop_idle();
	/* Loses all without releasing it: in the child of a fork it is the parent's. */
	void forget();

	[[nodiscard]] size_t size();

	/* For fork(): held from before it to after it. */
	std::mutex mutex;

private:
	using List = std::list<Fresh>; /* last used first */

	static bool idle(const Fresh &fresh);
	List trim(size_t keep);
	void release(List &list);
	Fresh *hold(List::iterator at);
	void put_locked(Fresh *fresh, List *gone);

	const size_t limit_;
	const Release release_;
	List list_;
};

} // namespace giftrun
