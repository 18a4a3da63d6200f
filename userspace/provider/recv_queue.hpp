// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A receive queue: the ring's producer end and its lock. Rings the doorbell only
// when the driver has asked for it.
#ifndef SHCA_RECV_QUEUE_HPP
#define SHCA_RECV_QUEUE_HPP

#include "ring.hpp"

#include <cstdint>

namespace shca
{

class RecvQueue
{
public:
	explicit RecvQueue(const shca_qp_config &config);

	// Posts what comes before the first request that is refused, and names that
	// one in bad_wr.
	int post(ibv_recv_wr *wr, ibv_recv_wr **bad_wr);

private:
	int post_one(std::uint32_t index, const ibv_recv_wr &wr);

	ibv_qp *qp_;
	const shca_doorbells *doorbells_;
	ProducerRing ring_;
	SpinLock lock_;
	std::uint32_t max_sge_;
};

} // namespace shca

#endif // SHCA_RECV_QUEUE_HPP
