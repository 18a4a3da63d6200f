// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What a send queue can be asked to do: one row for each verbs opcode, used by
// ibv_post_send(), ibv_qp_ex and ibv_bind_mw() alike, so that an operation has one
// meaning whichever way it came in. Never touches a ring.
#ifndef SHCA_SEND_OPS_HPP
#define SHCA_SEND_OPS_HPP

#include "wire.hpp"

#include <cstdint>
#include <infiniband/verbs.h>

namespace shca
{

// One work request, without its data.
struct SendRequest {
	std::uint64_t wr_id = 0;
	unsigned flags = 0; // enum ibv_send_flags and IBV_SEND_INVALIDATE
	std::uint32_t ex = 0;
	std::uint64_t remote_addr = 0;
	std::uint32_t rkey = 0;
	ibv_mw *mw = nullptr;
	std::uint32_t new_rkey = 0;
	ibv_mw_type mw_type = IBV_MW_TYPE_2; // the type that this way in binds
	const ibv_mw_bind_info *bind = nullptr;
};

struct SendOp {
	wire::WrOpcode opcode{};
	unsigned qp_types = 0;        // 1 << enum ibv_qp_type: who may post it
	unsigned flags = 0;           // the verbs flags that mean something to it
	std::uint64_t device_cap = 0; // enum shca_caps that it cannot do without
	bool has_data = false;
	int (*fill)(wire::SendWqe &wqe, const SendRequest &request) = nullptr;
};

// The row of a verbs opcode, or nullptr for one that this device does not have on
// such a queue pair. Takes a number: a program may pass what is no value of the
// enumeration.
const SendOp *find_send_op(std::uint32_t opcode, ibv_qp_type type);

// Everything about a request that can be refused without looking at its data
// or the state of its queue pair. On 0, op is its row and wqe is complete but for the data.
int build_wqe(std::uint32_t opcode, const SendRequest &request, ibv_qp_type type,
	      std::uint64_t device_caps, const SendOp *&op, wire::SendWqe &wqe);

} // namespace shca

#endif // SHCA_SEND_OPS_HPP
