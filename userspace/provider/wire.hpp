// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The C++ view of rdma/sample_hca-abi.h: the same memory with typed opcodes and
// statuses. Owns no layout of its own: each field is checked against the C one
// at compile time. Never holds code that works on a ring.
#ifndef SHCA_WIRE_HPP
#define SHCA_WIRE_HPP

#include <cstddef>
#include <cstdint>
#include <rdma/sample_hca-abi.h>
#include <type_traits>

namespace shca::wire
{

enum class WrOpcode : std::uint32_t {
	send = SHCA_WR_SEND,
	send_with_imm = SHCA_WR_SEND_WITH_IMM,
	send_with_inv = SHCA_WR_SEND_WITH_INV,
	rdma_write = SHCA_WR_RDMA_WRITE,
	rdma_write_with_imm = SHCA_WR_RDMA_WRITE_WITH_IMM,
	rdma_read = SHCA_WR_RDMA_READ,
	bind_mw = SHCA_WR_BIND_MW,
	local_inv = SHCA_WR_LOCAL_INV,
};

struct RingHeader {
	std::uint32_t producer;
	std::uint32_t reserved0[15];
	std::uint32_t consumer;
	std::uint32_t reserved1[15];
	std::uint32_t flags;
	std::uint32_t reserved2[31];
};

struct Sge {
	std::uint64_t addr;
	std::uint32_t length;
	std::uint32_t lkey;
};

struct RdmaPart {
	std::uint64_t remote_addr;
	std::uint32_t rkey;
	std::uint32_t reserved[5];
};

struct BindPart {
	std::uint64_t addr;
	std::uint64_t length;
	std::uint32_t mr_lkey;
	std::uint32_t mw_rkey;
	std::uint32_t new_rkey;
	std::uint32_t access;
};

struct SendWqe {
	std::uint64_t wr_id;
	WrOpcode opcode;
	std::uint32_t flags;
	std::uint32_t num_sge;
	std::uint32_t inline_length;
	std::uint32_t ex; // immediate data as it goes on the wire, or a key
	std::uint32_t reserved;
	union {
		RdmaPart rdma;
		BindPart bind;
	};
};

struct RecvWqe {
	std::uint64_t wr_id;
	std::uint32_t num_sge;
	std::uint32_t reserved;
};

// Status, opcode and flags stay plain integers: they come from outside and may
// be anything.
struct Cqe {
	std::uint64_t wr_id;
	std::uint32_t status;
	std::uint32_t opcode;
	std::uint32_t flags;
	std::uint32_t vendor_err;
	std::uint32_t qp_num;
	std::uint32_t byte_len;
	std::uint32_t ex; // immediate data as it came off the wire, or a key
	std::uint32_t src_qp;
	std::uint32_t reserved[6];
};

#define SHCA_SAME_SIZE(mirror, original)                      \
	static_assert(sizeof(mirror) == sizeof(original) &&   \
		      alignof(mirror) == alignof(original) && \
		      std::is_trivially_copyable_v<mirror> && std::is_standard_layout_v<mirror>)
#define SHCA_SAME_FIELD(mirror, field, original, original_field)                       \
	static_assert(offsetof(mirror, field) == offsetof(original, original_field) && \
		      sizeof(mirror::field) == sizeof(original::original_field))

SHCA_SAME_SIZE(RingHeader, shca_ring_hdr);
SHCA_SAME_FIELD(RingHeader, producer, shca_ring_hdr, producer);
SHCA_SAME_FIELD(RingHeader, consumer, shca_ring_hdr, consumer);
SHCA_SAME_FIELD(RingHeader, flags, shca_ring_hdr, flags);
static_assert(sizeof(RingHeader) == SHCA_RING_ENTRIES_OFFSET);

SHCA_SAME_SIZE(Sge, shca_sge);
SHCA_SAME_FIELD(Sge, addr, shca_sge, addr);
SHCA_SAME_FIELD(Sge, length, shca_sge, length);
SHCA_SAME_FIELD(Sge, lkey, shca_sge, lkey);

SHCA_SAME_SIZE(SendWqe, shca_send_wqe);
SHCA_SAME_FIELD(SendWqe, wr_id, shca_send_wqe, wr_id);
SHCA_SAME_FIELD(SendWqe, opcode, shca_send_wqe, opcode);
SHCA_SAME_FIELD(SendWqe, flags, shca_send_wqe, flags);
SHCA_SAME_FIELD(SendWqe, num_sge, shca_send_wqe, num_sge);
SHCA_SAME_FIELD(SendWqe, inline_length, shca_send_wqe, inline_length);
SHCA_SAME_FIELD(SendWqe, ex, shca_send_wqe, imm_data);
SHCA_SAME_FIELD(SendWqe, ex, shca_send_wqe, invalidate_rkey);
SHCA_SAME_FIELD(SendWqe, reserved, shca_send_wqe, reserved);
SHCA_SAME_FIELD(SendWqe, rdma.remote_addr, shca_send_wqe, rdma.remote_addr);
SHCA_SAME_FIELD(SendWqe, rdma.rkey, shca_send_wqe, rdma.rkey);
SHCA_SAME_FIELD(SendWqe, bind.addr, shca_send_wqe, bind.addr);
SHCA_SAME_FIELD(SendWqe, bind.length, shca_send_wqe, bind.length);
SHCA_SAME_FIELD(SendWqe, bind.mr_lkey, shca_send_wqe, bind.mr_lkey);
SHCA_SAME_FIELD(SendWqe, bind.mw_rkey, shca_send_wqe, bind.mw_rkey);
SHCA_SAME_FIELD(SendWqe, bind.new_rkey, shca_send_wqe, bind.new_rkey);
SHCA_SAME_FIELD(SendWqe, bind.access, shca_send_wqe, bind.access);
static_assert(sizeof(SendWqe) == SHCA_SEND_WQE_SIZE);

SHCA_SAME_SIZE(RecvWqe, shca_recv_wqe);
SHCA_SAME_FIELD(RecvWqe, wr_id, shca_recv_wqe, wr_id);
SHCA_SAME_FIELD(RecvWqe, num_sge, shca_recv_wqe, num_sge);
static_assert(sizeof(RecvWqe) == SHCA_RECV_WQE_SIZE);

SHCA_SAME_SIZE(Cqe, shca_cqe);
SHCA_SAME_FIELD(Cqe, wr_id, shca_cqe, wr_id);
SHCA_SAME_FIELD(Cqe, status, shca_cqe, status);
SHCA_SAME_FIELD(Cqe, opcode, shca_cqe, opcode);
SHCA_SAME_FIELD(Cqe, flags, shca_cqe, flags);
SHCA_SAME_FIELD(Cqe, vendor_err, shca_cqe, vendor_err);
SHCA_SAME_FIELD(Cqe, qp_num, shca_cqe, qp_num);
SHCA_SAME_FIELD(Cqe, byte_len, shca_cqe, byte_len);
SHCA_SAME_FIELD(Cqe, ex, shca_cqe, imm_data);
SHCA_SAME_FIELD(Cqe, ex, shca_cqe, invalidated_rkey);
SHCA_SAME_FIELD(Cqe, src_qp, shca_cqe, src_qp);
static_assert(sizeof(Cqe) == SHCA_CQE_SIZE);

// Requests and responses are used by the shim only; here their sizes are held,
// so that a change to the ABI does not pass unseen.
static_assert(sizeof(shca_alloc_ucontext_req) == 8 && sizeof(shca_alloc_ucontext_resp) == 16);
static_assert(sizeof(shca_query_device_resp) == 16);
static_assert(sizeof(shca_ring_info) == 24);
static_assert(sizeof(shca_create_cq_req) == 8 && sizeof(shca_create_cq_resp) == 32);
static_assert(sizeof(shca_create_qp_req) == 8 && sizeof(shca_create_qp_resp) == 56);

#undef SHCA_SAME_SIZE
#undef SHCA_SAME_FIELD

} // namespace shca::wire

#endif // SHCA_WIRE_HPP
