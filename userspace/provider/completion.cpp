// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The tables of statuses, opcodes and flags, and their use.
#include "completion.hpp"

#include <array>
#include <cstddef>

namespace shca
{
namespace
{

constexpr auto kStatus = [] {
	std::array<ibv_wc_status, SHCA_WC_GENERAL_ERR + 1> status{};

	status[SHCA_WC_SUCCESS] = IBV_WC_SUCCESS;
	status[SHCA_WC_LOC_LEN_ERR] = IBV_WC_LOC_LEN_ERR;
	status[SHCA_WC_LOC_QP_OP_ERR] = IBV_WC_LOC_QP_OP_ERR;
	status[SHCA_WC_LOC_PROT_ERR] = IBV_WC_LOC_PROT_ERR;
	status[SHCA_WC_WR_FLUSH_ERR] = IBV_WC_WR_FLUSH_ERR;
	status[SHCA_WC_MW_BIND_ERR] = IBV_WC_MW_BIND_ERR;
	status[SHCA_WC_LOC_ACCESS_ERR] = IBV_WC_LOC_ACCESS_ERR;
	status[SHCA_WC_REM_INV_REQ_ERR] = IBV_WC_REM_INV_REQ_ERR;
	status[SHCA_WC_REM_ACCESS_ERR] = IBV_WC_REM_ACCESS_ERR;
	status[SHCA_WC_REM_OP_ERR] = IBV_WC_REM_OP_ERR;
	status[SHCA_WC_RETRY_EXC_ERR] = IBV_WC_RETRY_EXC_ERR;
	status[SHCA_WC_RNR_RETRY_EXC_ERR] = IBV_WC_RNR_RETRY_EXC_ERR;
	status[SHCA_WC_FATAL_ERR] = IBV_WC_FATAL_ERR;
	status[SHCA_WC_GENERAL_ERR] = IBV_WC_GENERAL_ERR;
	return status;
}();

constexpr auto kOpcode = [] {
	std::array<ibv_wc_opcode, SHCA_WC_RECV_RDMA_WITH_IMM + 1> opcode{};

	opcode[SHCA_WC_SEND] = IBV_WC_SEND;
	opcode[SHCA_WC_RDMA_WRITE] = IBV_WC_RDMA_WRITE;
	opcode[SHCA_WC_RDMA_READ] = IBV_WC_RDMA_READ;
	opcode[SHCA_WC_BIND_MW] = IBV_WC_BIND_MW;
	opcode[SHCA_WC_LOCAL_INV] = IBV_WC_LOCAL_INV;
	opcode[SHCA_WC_RECV] = IBV_WC_RECV;
	opcode[SHCA_WC_RECV_RDMA_WITH_IMM] = IBV_WC_RECV_RDMA_WITH_IMM;
	return opcode;
}();

} // namespace

ibv_wc translate(const wire::Cqe &cqe)
{
	ibv_wc wc{};

	wc.wr_id = cqe.wr_id;
	wc.qp_num = cqe.qp_num;
	wc.vendor_err = cqe.vendor_err;
	wc.status = cqe.status < kStatus.size() ? kStatus[cqe.status] : IBV_WC_GENERAL_ERR;
	if (wc.status != IBV_WC_SUCCESS) {
		return wc;
	}
	// A receive says at most one of the two: they share a field.
	constexpr std::uint32_t both = SHCA_WC_WITH_IMM | SHCA_WC_WITH_INV;
	if (cqe.opcode >= kOpcode.size() || (cqe.flags & both) == both) {
		wc.status = IBV_WC_GENERAL_ERR;
		return wc;
	}
	wc.opcode = kOpcode[cqe.opcode];
	wc.byte_len = cqe.byte_len;
	wc.src_qp = cqe.src_qp;
	if ((cqe.flags & SHCA_WC_WITH_IMM) != 0) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = cqe.ex;
	} else if ((cqe.flags & SHCA_WC_WITH_INV) != 0) {
		wc.wc_flags = IBV_WC_WITH_INV;
		wc.invalidated_rkey = cqe.ex;
	}
	return wc;
}

} // namespace shca
