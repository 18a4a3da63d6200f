// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The core's part of a queue pair, and the way to it from the verbs object.
#ifndef SHCA_QUEUE_PAIR_HPP
#define SHCA_QUEUE_PAIR_HPP

#include "core.h"
#include "recv_queue.hpp"
#include "send_queue.hpp"

struct shca_qp {
	explicit shca_qp(const shca_qp_config &config) : sq(config), rq(config) {}

	shca::SendQueue sq;
	shca::RecvQueue rq;
};

namespace shca
{

inline shca_qp &core_of(ibv_qp *qp)
{
	return *(reinterpret_cast<shca_qp_link *>(qp) - 1)->core;
}

inline shca_qp &core_of(ibv_qp_ex *qp)
{
	return core_of(&qp->qp_base);
}

} // namespace shca

#endif // SHCA_QUEUE_PAIR_HPP
