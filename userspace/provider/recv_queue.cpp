// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Posting to a receive queue.
#include "recv_queue.hpp"

#include "posting.hpp"

#include <cerrno>
#include <cstring>
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
	write_sges(to + sizeof(wqe), sges);
	return 0;
}

int RecvQueue::post(ibv_recv_wr *wr, ibv_recv_wr **bad_wr)
{
	return post_list(
		lock_, ring_, wr, bad_wr,
		[&](std::uint32_t index, const ibv_recv_wr &one) { return post_one(index, one); },
		[&] { return ring_.wants_doorbell() ? doorbells_->recv(qp_) : 0; });
}

} // namespace shca
