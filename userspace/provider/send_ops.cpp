// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The opcode table and what each row puts into a send work queue entry.
#include "send_ops.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <infiniband/gift.h>

namespace shca
{
namespace
{

struct Translation {
	unsigned verbs;
	std::uint32_t device;
};

// IBV_SEND_INLINE is not here: the way the data comes in decides it.
constexpr Translation kSendFlags[] = {
	{IBV_SEND_SIGNALED, SHCA_SEND_SIGNALED},
	{IBV_SEND_SOLICITED, SHCA_SEND_SOLICITED},
	{IBV_SEND_FENCE, SHCA_SEND_FENCE},
};

// A window gives remote access only. Programs pass IBV_ACCESS_LOCAL_WRITE all
// the same; it says nothing here.
constexpr Translation kBindAccess[] = {
	{IBV_ACCESS_REMOTE_WRITE, SHCA_BIND_REMOTE_WRITE},
	{IBV_ACCESS_REMOTE_READ, SHCA_BIND_REMOTE_READ},
	{IBV_ACCESS_REMOTE_ATOMIC, SHCA_BIND_REMOTE_ATOMIC},
	{IBV_ACCESS_ZERO_BASED, SHCA_BIND_ZERO_BASED},
	{IBV_ACCESS_LOCAL_WRITE, 0},
};

// Moves the bits that the table knows from verbs to the result and leaves the
// others in verbs.
template <std::size_t n>
constexpr std::uint32_t translate(const Translation (&table)[n], unsigned &verbs)
{
	std::uint32_t device = 0;
	for (const auto &[from, to] : table) {
		if ((verbs & from) != 0) {
			device |= to;
			verbs &= ~from;
		}
	}
	return device;
}

int fill_send(wire::SendWqe & /*wqe*/, const SendRequest & /*request*/)
{
	return 0;
}

// With immediate data or a key to invalidate.
int fill_ex(wire::SendWqe &wqe, const SendRequest &request)
{
	wqe.ex = request.ex;
	return 0;
}

int fill_rdma(wire::SendWqe &wqe, const SendRequest &request)
{
	wqe.rdma.remote_addr = request.remote_addr;
	wqe.rdma.rkey = request.rkey;
	return 0;
}

int fill_rdma_with_imm(wire::SendWqe &wqe, const SendRequest &request)
{
	wqe.ex = request.ex;
	return fill_rdma(wqe, request);
}

int fill_bind(wire::SendWqe &wqe, const SendRequest &request)
{
	const ibv_mw *mw = request.mw;
	const ibv_mw_bind_info &bind = *request.bind;

	if (mw == nullptr || mw->type != request.mw_type) {
		return EINVAL;
	}
	if (bind.mr == nullptr && (bind.addr != 0 || bind.length != 0)) {
		return EINVAL;
	}
	if (bind.mr != nullptr && bind.mr->pd != mw->pd) {
		return EPERM; // as ibv_bind_mw() answers in verbs.h
	}
	unsigned access = bind.mw_access_flags;
	if (mw->type == IBV_MW_TYPE_1 && (access & IBV_ACCESS_ZERO_BASED) != 0) {
		return EINVAL;
	}
	wqe.bind.access = translate(kBindAccess, access);
	if (access != 0) {
		return EINVAL;
	}
	wqe.bind.addr = bind.addr;
	wqe.bind.length = bind.length;
	wqe.bind.mr_lkey = bind.mr != nullptr ? bind.mr->lkey : 0;
	wqe.bind.mw_rkey = mw->rkey;
	wqe.bind.new_rkey = request.new_rkey;
	return 0;
}

constexpr unsigned kAnyOp = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
constexpr unsigned kWrite = kAnyOp | IBV_SEND_INLINE;
constexpr unsigned kSend = kWrite | IBV_SEND_SOLICITED;

// The device has no other queue pairs.
constexpr unsigned kRc = 1U << IBV_QPT_RC;

constexpr auto kSendOps = [] {
	std::array<SendOp, IBV_WR_SEND_WITH_INV + 1> ops{};
	using enum wire::WrOpcode;

	ops[IBV_WR_SEND] = {send, kRc, kSend | IBV_SEND_INVALIDATE, 0, true, fill_send};
	ops[IBV_WR_SEND_WITH_IMM] = {send_with_imm, kRc, kSend, 0, true, fill_ex};
	ops[IBV_WR_SEND_WITH_INV] = {send_with_inv, kRc, kSend, SHCA_CAP_SEND_W_INV, true, fill_ex};
	ops[IBV_WR_RDMA_WRITE] = {rdma_write, kRc, kWrite, 0, true, fill_rdma};
	ops[IBV_WR_RDMA_WRITE_WITH_IMM] = {rdma_write_with_imm, kRc, kSend, 0, true,
					   fill_rdma_with_imm};
	ops[IBV_WR_RDMA_READ] = {rdma_read, kRc, kAnyOp, 0, true, fill_rdma};
	ops[IBV_WR_BIND_MW] = {bind_mw, kRc, kAnyOp, 0, false, fill_bind};
	ops[IBV_WR_LOCAL_INV] = {local_inv, kRc, kAnyOp, 0, false, fill_ex};
	return ops;
}();

} // namespace

const SendOp *find_send_op(std::uint32_t opcode, ibv_qp_type type)
{
	const auto bit = static_cast<unsigned>(type);

	if (opcode >= kSendOps.size() || bit >= 32 ||
	    (kSendOps[opcode].qp_types & 1U << bit) == 0) {
		return nullptr;
	}
	return &kSendOps[opcode];
}

int build_wqe(std::uint32_t opcode, const SendRequest &request, ibv_qp_type type,
	      std::uint64_t device_caps, const SendOp *&op, wire::SendWqe &wqe)
{
	unsigned flags = request.flags;

	op = find_send_op(opcode, type);
	if (op == nullptr || (flags & ~op->flags) != 0) {
		return EINVAL;
	}
	if ((flags & IBV_SEND_INVALIDATE) != 0) {
		op = find_send_op(IBV_WR_SEND_WITH_INV, type);
		flags &= ~unsigned{IBV_SEND_INVALIDATE};
	}
	if (op == nullptr) {
		return EINVAL;
	}
	if ((op->device_cap & ~device_caps) != 0) {
		return EOPNOTSUPP;
	}
	wqe = {};
	wqe.wr_id = request.wr_id;
	wqe.opcode = op->opcode;
	wqe.flags = translate(kSendFlags, flags);
	return op->fill(wqe, request);
}

} // namespace shca
