// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// ibv_qp_ex: the functions behind ibv_wr_*(), and which of them a queue pair is
// given. Each only passes on; what is done is in send_queue.cpp and send_ops.cpp.
#include "queue_pair.hpp"

#include <cerrno>
#include <cstring>

namespace shca
{
namespace
{

SendQueue &sq_of(ibv_qp_ex *qp)
{
	return core_of(qp).sq;
}

// What every builder takes from the object. IBV_SEND_INLINE says nothing here:
// the setter that follows decides.
SendRequest request_of(const ibv_qp_ex *qp)
{
	return {.wr_id = qp->wr_id, .flags = qp->wr_flags & ~unsigned{IBV_SEND_INLINE}};
}

void wr_send(ibv_qp_ex *qp)
{
	sq_of(qp).add(IBV_WR_SEND, request_of(qp));
}

void wr_send_imm(ibv_qp_ex *qp, __be32 imm_data)
{
	SendRequest request = request_of(qp);
	request.ex = imm_data;
	sq_of(qp).add(IBV_WR_SEND_WITH_IMM, request);
}

void wr_send_inv(ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	SendRequest request = request_of(qp);
	request.ex = invalidate_rkey;
	sq_of(qp).add(IBV_WR_SEND_WITH_INV, request);
}

void wr_local_inv(ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	SendRequest request = request_of(qp);
	request.ex = invalidate_rkey;
	sq_of(qp).add(IBV_WR_LOCAL_INV, request);
}

void add_rdma(ibv_qp_ex *qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr,
	      uint32_t imm_data = 0)
{
	SendRequest request = request_of(qp);
	request.ex = imm_data;
	request.remote_addr = remote_addr;
	request.rkey = rkey;
	sq_of(qp).add(opcode, request);
}

void wr_rdma_write(ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	add_rdma(qp, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

void wr_rdma_write_imm(ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	add_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm_data);
}

void wr_rdma_read(ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	add_rdma(qp, IBV_WR_RDMA_READ, rkey, remote_addr);
}

void wr_bind_mw(ibv_qp_ex *qp, ibv_mw *mw, uint32_t rkey, const ibv_mw_bind_info *bind_info)
{
	SendRequest request = request_of(qp);
	request.mw = mw;
	request.new_rkey = rkey;
	request.bind = bind_info;
	sq_of(qp).add(IBV_WR_BIND_MW, request);
}

void wr_set_sge(ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	ibv_sge sge{.addr = addr, .length = length, .lkey = lkey};
	sq_of(qp).set_sges({&sge, 1});
}

void wr_set_sge_list(ibv_qp_ex *qp, size_t num_sge, const ibv_sge *sg_list)
{
	sq_of(qp).set_sges({sg_list, num_sge});
}

void wr_set_inline_data(ibv_qp_ex *qp, void *addr, size_t length)
{
	ibv_data_buf buffer{.addr = addr, .length = length};
	sq_of(qp).set_inline({&buffer, 1});
}

void wr_set_inline_data_list(ibv_qp_ex *qp, size_t num_buf, const ibv_data_buf *buf_list)
{
	sq_of(qp).set_inline({buf_list, num_buf});
}

void wr_start(ibv_qp_ex *qp)
{
	sq_of(qp).start();
}

int wr_complete(ibv_qp_ex *qp)
{
	return sq_of(qp).complete();
}

void wr_abort(ibv_qp_ex *qp)
{
	sq_of(qp).abort();
}

struct Grant {
	std::uint64_t flag; // enum ibv_qp_create_send_ops_flags
	ibv_wr_opcode opcode;
	void (*install)(ibv_qp_ex &qp);
};

constexpr Grant kGrants[] = {
	{IBV_QP_EX_WITH_SEND, IBV_WR_SEND, [](ibv_qp_ex &qp) { qp.wr_send = wr_send; }},
	{IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM,
	 [](ibv_qp_ex &qp) { qp.wr_send_imm = wr_send_imm; }},
	{IBV_QP_EX_WITH_SEND_WITH_INV, IBV_WR_SEND_WITH_INV,
	 [](ibv_qp_ex &qp) { qp.wr_send_inv = wr_send_inv; }},
	{IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE,
	 [](ibv_qp_ex &qp) { qp.wr_rdma_write = wr_rdma_write; }},
	{IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM,
	 [](ibv_qp_ex &qp) { qp.wr_rdma_write_imm = wr_rdma_write_imm; }},
	{IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ,
	 [](ibv_qp_ex &qp) { qp.wr_rdma_read = wr_rdma_read; }},
	{IBV_QP_EX_WITH_BIND_MW, IBV_WR_BIND_MW, [](ibv_qp_ex &qp) { qp.wr_bind_mw = wr_bind_mw; }},
	{IBV_QP_EX_WITH_LOCAL_INV, IBV_WR_LOCAL_INV,
	 [](ibv_qp_ex &qp) { qp.wr_local_inv = wr_local_inv; }},
};

// ibv_qp_to_qp_ex() accepts an object by a bit (VERBS_QP_EX) in a word that
// follows struct ibv_qp_ex. That struct got one more operation between
// libibverbs 44 and 56 while the private ABI stayed 34, so the word is in one of
// two places, one pointer apart, and which one depends on the libibverbs that
// runs. Both are marked. For the other libibverbs, each is a pointer that nobody
// follows: an operation that was not granted, an XRC domain that is not there.
void mark_as_qp_ex(ibv_qp_ex &qp)
{
	constexpr std::uint32_t verbs_qp_ex = 1 << 1;
	constexpr std::size_t in_44 =
		offsetof(ibv_qp_ex, wr_atomic_write) + sizeof(ibv_qp_ex::wr_atomic_write);
	constexpr std::size_t in_56 = in_44 + sizeof(ibv_qp_ex::wr_atomic_write);
	static_assert(in_56 + sizeof(verbs_qp_ex) <= sizeof(ibv_qp_ex) + SHCA_QP_EX_TAIL);

	auto *bytes = reinterpret_cast<std::byte *>(&qp);
	for (std::size_t place : {in_44, in_56}) {
		std::uint32_t word = 0;
		std::memcpy(&word, bytes + place, sizeof(word));
		word |= verbs_qp_ex;
		std::memcpy(bytes + place, &word, sizeof(word));
	}
}

} // namespace
} // namespace shca

int shca_core_check_send_ops(uint64_t send_ops_flags, ibv_qp_type type, uint64_t device_caps)
{
	for (const auto &grant : shca::kGrants) {
		const shca::SendOp *op = shca::find_send_op(grant.opcode, type);
		if (op != nullptr && (op->device_cap & ~device_caps) == 0) {
			send_ops_flags &= ~grant.flag;
		}
	}
	return send_ops_flags == 0 ? 0 : EOPNOTSUPP;
}

void shca_core_set_send_ops(ibv_qp_ex *qp, uint64_t send_ops_flags)
{
	for (const auto &grant : shca::kGrants) {
		if ((send_ops_flags & grant.flag) != 0) {
			grant.install(*qp);
		}
	}
	qp->wr_set_sge = shca::wr_set_sge;
	qp->wr_set_sge_list = shca::wr_set_sge_list;
	qp->wr_set_inline_data = shca::wr_set_inline_data;
	qp->wr_set_inline_data_list = shca::wr_set_inline_data_list;
	qp->wr_start = shca::wr_start;
	qp->wr_complete = shca::wr_complete;
	qp->wr_abort = shca::wr_abort;
	shca::mark_as_qp_ex(*qp);
}
