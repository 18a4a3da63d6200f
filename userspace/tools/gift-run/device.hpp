// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What /dev/ib_gift answers. Owns its file descriptor, which the program may close
 * under it: programs that become daemons close all.
 */
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include <rdma/ib_gift.h>

#include "pages.hpp"

namespace giftrun
{

class GiftDevice
{
public:
	/* Empty if the RDMA device of this name honours GIFT, else why it does not. */
	std::string refusal(const char *name);
	/*
	 * Fills in which pages of the range that the set has been reset to are stale,
	 * and how many. 0 or an errno.
	 */
	int stale(PageSet *set, uint64_t *count);
	/* 0 or an errno. */
	int stats(ib_gift_stats *stats);

private:
	int call(unsigned long request, void *arg);
	int open_again(int old);

	std::mutex mutex_;
	std::atomic<int> fd_{-1};
};

} // namespace giftrun
