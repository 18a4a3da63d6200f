// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// ibv_poll_cq(): every status, opcode and flag of the ABI, entries that are not
// of the ABI, batches, wrap, and rings that lie.
#include "fixture.hpp"

#include <cerrno>

namespace shca_test
{
namespace
{

shca_cqe cqe(std::uint64_t wr_id = 1)
{
	shca_cqe entry{};
	entry.wr_id = wr_id;
	entry.opcode = SHCA_WC_RECV;
	entry.qp_num = 0x17;
	entry.byte_len = 0x1000;
	entry.src_qp = 0x18;
	entry.vendor_err = 0x19;
	return entry;
}

ibv_wc garbage_wc()
{
	ibv_wc wc;
	std::memset(&wc, kGarbage, sizeof(wc));
	return wc;
}

ibv_wc poll_one(const shca_cqe &entry)
{
	TestCq cq;
	cq.complete(entry);
	ibv_wc wc = garbage_wc();
	EXPECT_EQ(cq.poll(1, &wc), 1);
	EXPECT_EQ(cq.ring.header().consumer, 1U);
	return wc;
}

TEST(PollCq, AReceiveHasAllItsFields)
{
	ibv_wc wc = poll_one(cqe(0x1122334455667788));
	EXPECT_EQ(wc.wr_id, 0x1122334455667788U);
	EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV);
	EXPECT_EQ(wc.vendor_err, 0x19U);
	EXPECT_EQ(wc.byte_len, 0x1000U);
	EXPECT_EQ(wc.qp_num, 0x17U);
	EXPECT_EQ(wc.src_qp, 0x18U);
	EXPECT_EQ(wc.wc_flags, 0U);
	EXPECT_EQ(wc.imm_data, 0U);
	EXPECT_EQ(wc.pkey_index, 0U);
	EXPECT_EQ(wc.slid, 0U);
	EXPECT_EQ(wc.sl, 0U);
	EXPECT_EQ(wc.dlid_path_bits, 0U);
}

TEST(PollCq, EveryStatusOfTheAbiIsTheVerbsOwn)
{
	const ibv_wc_status expected[] = {
		IBV_WC_SUCCESS,        IBV_WC_LOC_LEN_ERR,     IBV_WC_LOC_QP_OP_ERR,
		IBV_WC_LOC_PROT_ERR,   IBV_WC_WR_FLUSH_ERR,    IBV_WC_MW_BIND_ERR,
		IBV_WC_LOC_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR,
		IBV_WC_REM_OP_ERR,     IBV_WC_RETRY_EXC_ERR,   IBV_WC_RNR_RETRY_EXC_ERR,
		IBV_WC_FATAL_ERR,      IBV_WC_GENERAL_ERR,
	};
	for (std::uint32_t status = 0; status < std::size(expected); ++status) {
		shca_cqe entry = cqe();
		entry.status = status;
		EXPECT_EQ(poll_one(entry).status, expected[status]) << status;
	}
}

TEST(PollCq, EveryOpcodeOfTheAbiIsTheVerbsOwn)
{
	const ibv_wc_opcode expected[] = {
		IBV_WC_SEND,      IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,          IBV_WC_BIND_MW,
		IBV_WC_LOCAL_INV, IBV_WC_RECV,       IBV_WC_RECV_RDMA_WITH_IMM,
	};
	for (std::uint32_t opcode = 0; opcode < std::size(expected); ++opcode) {
		shca_cqe entry = cqe();
		entry.opcode = opcode;
		EXPECT_EQ(poll_one(entry).opcode, expected[opcode]) << opcode;
		EXPECT_EQ(poll_one(entry).status, IBV_WC_SUCCESS) << opcode;
	}
}

TEST(PollCq, TheInvalidatedKeyComesWithTheVerbsFlag)
{
	shca_cqe entry = cqe();
	entry.flags = SHCA_WC_WITH_INV;
	entry.invalidated_rkey = 0x01020304;
	ibv_wc wc = poll_one(entry);
	EXPECT_EQ(wc.wc_flags, unsigned{IBV_WC_WITH_INV});
	EXPECT_EQ(wc.invalidated_rkey, 0x01020304U);
}

TEST(PollCq, ImmediateDataComesWithTheVerbsFlagAndInWireOrder)
{
	for (std::uint32_t opcode : {SHCA_WC_RECV, SHCA_WC_RECV_RDMA_WITH_IMM}) {
		shca_cqe entry = cqe();
		entry.opcode = opcode;
		entry.flags = SHCA_WC_WITH_IMM;
		const std::uint8_t wire[4] = {1, 2, 3, 4};
		std::memcpy(&entry.imm_data, wire, sizeof(wire));
		ibv_wc wc = poll_one(entry);
		EXPECT_EQ(wc.wc_flags, unsigned{IBV_WC_WITH_IMM});
		EXPECT_EQ(std::memcmp(&wc.imm_data, wire, sizeof(wire)), 0);
	}
}

TEST(PollCq, AnErrorKeepsOnlyWhatTheVerbsPromise)
{
	shca_cqe entry = cqe(77);
	entry.status = SHCA_WC_REM_INV_REQ_ERR;
	entry.flags = SHCA_WC_WITH_INV;
	entry.invalidated_rkey = 0x01020304;
	ibv_wc wc = poll_one(entry);
	EXPECT_EQ(wc.wr_id, 77U);
	EXPECT_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
	EXPECT_EQ(wc.qp_num, 0x17U);
	EXPECT_EQ(wc.vendor_err, 0x19U);
	EXPECT_EQ(wc.wc_flags, 0U) << "nothing was invalidated";
	EXPECT_EQ(wc.invalidated_rkey, 0U);
	EXPECT_EQ(wc.byte_len, 0U);
}

TEST(PollCq, AStatusOutsideTheAbiIsAGeneralError)
{
	for (std::uint32_t status : {14U, 15U, 255U, 0x80000000U, 0xffffffffU}) {
		shca_cqe entry = cqe(5);
		entry.status = status;
		ibv_wc wc = poll_one(entry);
		EXPECT_EQ(wc.status, IBV_WC_GENERAL_ERR) << status;
		EXPECT_EQ(wc.wr_id, 5U) << status;
	}
}

TEST(PollCq, AnOpcodeOutsideTheAbiIsAGeneralError)
{
	for (std::uint32_t opcode : {7U, 8U, 128U, 0x80000000U, 0xffffffffU}) {
		shca_cqe entry = cqe(5);
		entry.opcode = opcode;
		ibv_wc wc = poll_one(entry);
		EXPECT_EQ(wc.status, IBV_WC_GENERAL_ERR) << opcode;
		EXPECT_EQ(wc.wr_id, 5U) << opcode;
	}
}

TEST(PollCq, FlagsOutsideTheAbiSayNothingAndBothAtOnceIsAnError)
{
	for (unsigned bit = 2; bit < 32; ++bit) {
		shca_cqe entry = cqe();
		entry.flags = 1U << bit;
		ibv_wc wc = poll_one(entry);
		EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << bit;
		EXPECT_EQ(wc.wc_flags, 0U) << bit;
	}
	shca_cqe entry = cqe();
	entry.flags = SHCA_WC_WITH_IMM | SHCA_WC_WITH_INV;
	EXPECT_EQ(poll_one(entry).status, IBV_WC_GENERAL_ERR);
}

TEST(PollCq, AnEmptyQueueGivesNothing)
{
	TestCq cq;
	ibv_wc wc = garbage_wc();
	EXPECT_EQ(cq.poll(1, &wc), 0);
	EXPECT_EQ(cq.ring.header().consumer, 0U);
	EXPECT_EQ(wc.wr_id, garbage_wc().wr_id);
}

TEST(PollCq, GivesNoMoreThanAskedForAndNoMoreThanThereAre)
{
	TestCq cq(4);
	for (std::uint64_t id = 1; id <= 4; ++id) {
		cq.complete(cqe(id));
	}
	ibv_wc wc[4];
	EXPECT_EQ(cq.poll(0, wc), 0);
	EXPECT_EQ(cq.poll(-1, wc), 0);
	ASSERT_EQ(cq.poll(3, wc), 3);
	EXPECT_EQ(wc[0].wr_id, 1U);
	EXPECT_EQ(wc[2].wr_id, 3U);
	EXPECT_EQ(cq.ring.header().consumer, 3U);
	ASSERT_EQ(cq.poll(4, wc), 1);
	EXPECT_EQ(wc[0].wr_id, 4U);
	EXPECT_EQ(cq.ring.header().consumer, 4U);
}

TEST(PollCq, WorksAcrossTheOverflowOfTheIndex)
{
	TestCq cq(4, 0xfffffffd);
	ibv_wc wc[4];
	std::uint64_t next = 1;
	for (int round = 0; round < 6; ++round) {
		std::uint64_t first = next;
		for (int i = 0; i < 3; ++i) {
			cq.complete(cqe(next++));
		}
		ASSERT_EQ(cq.poll(4, wc), 3) << round;
		for (int i = 0; i < 3; ++i) {
			EXPECT_EQ(wc[i].wr_id, first + i) << round;
		}
	}
	EXPECT_EQ(cq.ring.header().consumer, 0xfffffffdU + 18);
}

TEST(PollCq, AnIndexThatCannotBeTrueIsAnErrorAndLeavesTheRingAlone)
{
	for (std::uint32_t lie : {5U, 0x80000000U, 0xffffffffU}) {
		TestCq cq(4);
		cq.ring.header().producer = lie;
		ibv_wc wc[8];
		EXPECT_EQ(cq.poll(8, wc), -EIO) << lie;
		EXPECT_EQ(cq.ring.header().consumer, 0U) << lie;
	}
}

TEST(PollCq, TheProvidersOwnIndexDoesNotFollowTheRingHeader)
{
	TestCq cq(4);
	cq.complete(cqe(1));
	cq.complete(cqe(2));
	cq.ring.header().consumer = 2;
	ibv_wc wc[4];
	EXPECT_EQ(cq.poll(4, wc), 2);
	EXPECT_EQ(wc[0].wr_id, 1U);
}

shca_cqe cqe_of(std::uint32_t qp_num, std::uint64_t wr_id)
{
	shca_cqe entry = cqe(wr_id);
	entry.qp_num = qp_num;
	return entry;
}

TEST(CqForget, TakesOutOneQueuePairsCompletionsAndKeepsTheOrderOfTheOthers)
{
	// Every pattern of ours and theirs in a full ring, across the overflow.
	for (unsigned pattern = 0; pattern < 256; ++pattern) {
		TestCq cq(8, 0xfffffffc);
		std::vector<std::uint64_t> expected;
		for (unsigned i = 0; i < 8; ++i) {
			const bool theirs = (pattern >> i & 1) != 0;
			cq.complete(cqe_of(theirs ? 2 : 1, i));
			if (theirs) {
				expected.push_back(i);
			}
		}
		shca_core_cq_forget(cq.cq(), 1);
		EXPECT_EQ(cq.ring.header().consumer,
			  4U - static_cast<std::uint32_t>(expected.size()))
			<< pattern;
		ibv_wc wc[9];
		ASSERT_EQ(cq.poll(9, wc), static_cast<int>(expected.size())) << pattern;
		for (std::size_t i = 0; i < expected.size(); ++i) {
			EXPECT_EQ(wc[i].wr_id, expected[i]) << pattern;
			EXPECT_EQ(wc[i].qp_num, 2U) << pattern;
		}
	}
}

TEST(CqForget, TheQueueGoesOnAfterwards)
{
	TestCq cq(4);
	cq.complete(cqe_of(1, 1));
	cq.complete(cqe_of(2, 2));
	ibv_wc wc[4];
	ASSERT_EQ(cq.poll(1, wc), 1);
	cq.complete(cqe_of(1, 3));
	shca_core_cq_forget(cq.cq(), 1);
	cq.complete(cqe_of(1, 4));
	ASSERT_EQ(cq.poll(4, wc), 2);
	EXPECT_EQ(wc[0].wr_id, 2U);
	EXPECT_EQ(wc[1].wr_id, 4U) << "of a new queue pair with the same number";
}

TEST(CqForget, AnEmptyOrLyingRingIsLeftAlone)
{
	TestCq cq(4);
	shca_core_cq_forget(cq.cq(), 1);
	EXPECT_EQ(cq.ring.header().consumer, 0U);
	cq.ring.header().producer = 5;
	shca_core_cq_forget(cq.cq(), 1);
	EXPECT_EQ(cq.ring.header().consumer, 0U);
	EXPECT_EQ(cq.ring.slot(0)[0], kGarbage);
}

} // namespace
} // namespace shca_test
