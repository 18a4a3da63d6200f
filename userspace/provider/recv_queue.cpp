// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Posting to a receive queue.
#include "recv_queue.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>

namespace shca
{

RecvQueue::RecvQueue(const shca_qp_config &config)
	: qp_(config.qp), doorbells_(config.doorbells), ring_(config.rq),
	  max_sge_(config.cap.max_recv_sge)
{
}

int RecvQueue::post_one(std::uint32_t index, const ibv_recv_wr &wr)
{
	if (qp_->state == IBV_QPS_RESET) {
		return EINVAL;
	}
	// A negative number becomes one above every limit.
	if (static_cast<std::uint32_t>(wr.num_sge) > max_sge_) {
		return EINVAL;
	}
	if (ring_.full(index)) {
		return ENOMEM;
	}
	std::span<const ibv_sge> sges(wr.sg_list, static_cast<std::size_t>(wr.num_sge));
	wire::RecvWqe wqe{.wr_id = wr.wr_id,
			  .num_sge = static_cast<std::uint32_t>(sges.size()),
			  .reserved = 0};
	std::byte *to = ring_.slot(index);
	std::memcpy(to, &wqe, sizeof(wqe));
	to += sizeof(wqe);
	for (const auto &sge : sges) {
		wire::Sge entry{.addr = sge.addr, .length = sge.length, .lkey = sge.lkey};
		std::memcpy(to, &entry, sizeof(entry));
		to += sizeof(entry);
	}
	return 0;
}

int RecvQueue::post(ibv_recv_wr *wr, ibv_recv_wr **bad_wr)
{
	ibv_recv_wr *first = wr;
	int error = 0;
	bool ring_it = false;
	{
		std::lock_guard guard(lock_);
		std::uint32_t index = ring_.next();

		for (; wr != nullptr; wr = wr->next) {
			error = post_one(index, *wr);
			if (error != 0) {
				break;
			}
			++index;
		}
		if (index != ring_.next()) {
			ring_.publish(index);
			ring_it = ring_.wants_doorbell();
		}
	}
	if (error != 0) {
		*bad_wr = wr;
	}
	// A doorbell that fails is a device that is gone: none of the list runs.
	int gone = ring_it ? doorbells_->recv(qp_) : 0;
	if (gone != 0) {
		*bad_wr = first;
		return gone;
	}
	return error;
}

} // namespace shca
