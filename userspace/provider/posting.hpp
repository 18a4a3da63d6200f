// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What posting to a send queue and to a receive queue have in common: how a list
// goes into a ring, and scatter/gather elements behind an entry. Knows no entry.
#ifndef SHCA_POSTING_HPP
#define SHCA_POSTING_HPP

#include "ring.hpp"

#include <cstring>
#include <mutex>
#include <span>

namespace shca
{

// Posts what comes before the first request that is refused, and names that one in
// bad_wr. post_one(index, request) writes the entry; doorbell() is called outside the
// lock, because the driver may work in the caller's context. Both return an errno.
template <typename Wr, typename PostOne, typename Doorbell>
int post_list(SpinLock &lock, ProducerRing &ring, Wr *wr, Wr **bad_wr, PostOne post_one,
	      Doorbell doorbell)
{
	Wr *first = wr;
	int error = 0;
	bool posted = false;
	{
		std::lock_guard guard(lock);
		std::uint32_t index = ring.next();

		for (; wr != nullptr; wr = wr->next) {
			error = post_one(index, *wr);
			if (error != 0) {
				break;
			}
			++index;
		}
		posted = index != ring.next();
		if (posted) {
			ring.publish(index);
		}
	}
	if (error != 0) {
		*bad_wr = wr;
	}
	// A doorbell that fails is a device that is gone: none of the list runs.
	int gone = posted ? doorbell() : 0;
	if (gone != 0) {
		*bad_wr = first;
		return gone;
	}
	return error;
}

inline void write_sges(std::byte *to, std::span<const ibv_sge> sges)
{
	for (const auto &sge : sges) {
		wire::Sge entry{.addr = sge.addr, .length = sge.length, .lkey = sge.lkey};
		std::memcpy(to, &entry, sizeof(entry));
		to += sizeof(entry);
	}
}

} // namespace shca

#endif // SHCA_POSTING_HPP
