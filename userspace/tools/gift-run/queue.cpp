// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "queue.hpp"

namespace giftrun
{

uint64_t SendQueue::posted(bool signaled)
{
	if (signaled || all_signaled_) {
		return ++posted_;
	}
	return posted_.load() + 1;
}

/* More than were posted: something posts past this library. */
void SendQueue::completed()
{
	if (++completed_ > posted_.load()) {
		lose();
	}
}

} // namespace giftrun
