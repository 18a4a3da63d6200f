// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// ibv_cq_ex: the iterator, the fields that were asked for, the lock it holds.
#include "fixture.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

namespace shca_test
{
namespace
{

constexpr std::uint64_t kSupported = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
				     IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP |
				     IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
				     IBV_WC_EX_WITH_DLID_PATH_BITS;

shca_cqe cqe(std::uint64_t wr_id)
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

int start(TestCq &cq)
{
	ibv_poll_cq_attr attr{};
	return ibv_start_poll(cq.ex(), &attr);
}

TEST(CqEx, AnEmptyQueueHoldsNoLock)
{
	TestCq cq;
	shca_core_set_poll_ops(cq.ex(), kSupported);
	EXPECT_EQ(start(cq), ENOENT);
	EXPECT_EQ(start(cq), ENOENT) << "hangs if the lock was kept";
	ibv_wc wc;
	EXPECT_EQ(cq.poll(1, &wc), 0);
}

TEST(CqEx, AnUnknownAttributeIsRefusedAndHoldsNoLock)
{
	TestCq cq;
	shca_core_set_poll_ops(cq.ex(), kSupported);
	ibv_poll_cq_attr attr{.comp_mask = 1};
	EXPECT_EQ(ibv_start_poll(cq.ex(), &attr), EINVAL);
	EXPECT_EQ(start(cq), ENOENT);
}

TEST(CqEx, ShowsEveryField)
{
	TestCq cq;
	shca_core_set_poll_ops(cq.ex(), kSupported);
	shca_cqe entry = cqe(7);
	entry.flags = SHCA_WC_WITH_INV;
	entry.invalidated_rkey = 0x01020304;
	cq.complete(entry);
	ASSERT_EQ(start(cq), 0);
	EXPECT_EQ(cq.ex()->wr_id, 7U);
	EXPECT_EQ(cq.ex()->status, IBV_WC_SUCCESS);
	EXPECT_EQ(ibv_wc_read_opcode(cq.ex()), IBV_WC_RECV);
	EXPECT_EQ(ibv_wc_read_vendor_err(cq.ex()), 0x19U);
	EXPECT_EQ(ibv_wc_read_byte_len(cq.ex()), 0x1000U);
	EXPECT_EQ(ibv_wc_read_qp_num(cq.ex()), 0x17U);
	EXPECT_EQ(ibv_wc_read_src_qp(cq.ex()), 0x18U);
	EXPECT_EQ(ibv_wc_read_wc_flags(cq.ex()), unsigned{IBV_WC_WITH_INV});
	EXPECT_EQ(ibv_wc_read_invalidated_rkey(cq.ex()), 0x01020304U);
	EXPECT_EQ(ibv_wc_read_slid(cq.ex()), 0U);
	EXPECT_EQ(ibv_wc_read_sl(cq.ex()), 0U);
	EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq.ex()), 0U);
	ibv_end_poll(cq.ex());
}

TEST(CqEx, ShowsImmediateDataAsItCame)
{
	TestCq cq;
	shca_core_set_poll_ops(cq.ex(), kSupported);
	shca_cqe entry = cqe(7);
	entry.flags = SHCA_WC_WITH_IMM;
	entry.imm_data = 0xa1b2c3d4;
	cq.complete(entry);
	ASSERT_EQ(start(cq), 0);
	EXPECT_EQ(ibv_wc_read_imm_data(cq.ex()), 0xa1b2c3d4U);
	EXPECT_EQ(ibv_wc_read_wc_flags(cq.ex()), unsigned{IBV_WC_WITH_IMM});
	ibv_end_poll(cq.ex());
}

TEST(CqEx, ShowsAnErrorByStatusAndWrId)
{
	TestCq cq;
	shca_core_set_poll_ops(cq.ex(), kSupported);
	shca_cqe entry = cqe(8);
	entry.status = SHCA_WC_WR_FLUSH_ERR;
	cq.complete(entry);
	entry.status = 99;
	cq.complete(entry);
	ASSERT_EQ(start(cq), 0);
	EXPECT_EQ(cq.ex()->status, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(cq.ex()->wr_id, 8U);
	ASSERT_EQ(ibv_next_poll(cq.ex()), 0);
	EXPECT_EQ(cq.ex()->status, IBV_WC_GENERAL_ERR);
	ibv_end_poll(cq.ex());
}

TEST(CqEx, SlotsGoBackToTheDriverAtTheEndAndOnlyThoseThatWereShown)
{
	TestCq cq(4, 0xffffffff);
	shca_core_set_poll_ops(cq.ex(), 0);
	for (std::uint64_t id = 1; id <= 3; ++id) {
		cq.complete(cqe(id));
	}
	ASSERT_EQ(start(cq), 0);
	EXPECT_EQ(cq.ex()->wr_id, 1U);
	ASSERT_EQ(ibv_next_poll(cq.ex()), 0);
	EXPECT_EQ(cq.ex()->wr_id, 2U);
	EXPECT_EQ(cq.ring.header().consumer, 0xffffffffU);
	ibv_end_poll(cq.ex());
	EXPECT_EQ(cq.ring.header().consumer, 1U);
	ASSERT_EQ(start(cq), 0);
	EXPECT_EQ(cq.ex()->wr_id, 3U);
	ibv_end_poll(cq.ex());
	EXPECT_EQ(cq.ring.header().consumer, 2U);
	EXPECT_EQ(start(cq), ENOENT);
}

TEST(CqEx, TheEndOfABatchKeepsTheLastCompletionAndSeesLaterOnes)
{
	TestCq cq(4);
	shca_core_set_poll_ops(cq.ex(), kSupported);
	cq.complete(cqe(1));
	ASSERT_EQ(start(cq), 0);
	EXPECT_EQ(ibv_next_poll(cq.ex()), ENOENT);
	EXPECT_EQ(ibv_next_poll(cq.ex()), ENOENT);
	EXPECT_EQ(cq.ex()->wr_id, 1U);
	EXPECT_EQ(ibv_wc_read_byte_len(cq.ex()), 0x1000U);
	cq.complete(cqe(2));
	ASSERT_EQ(ibv_next_poll(cq.ex()), 0);
	EXPECT_EQ(cq.ex()->wr_id, 2U);
	EXPECT_EQ(ibv_next_poll(cq.ex()), ENOENT);
	ibv_end_poll(cq.ex());
	EXPECT_EQ(cq.ring.header().consumer, 2U);
	ibv_wc wc;
	EXPECT_EQ(cq.poll(1, &wc), 0) << "shown once, not again by ibv_poll_cq()";
}

TEST(CqEx, AnIndexThatCannotBeTrueIsAnError)
{
	TestCq cq(4);
	shca_core_set_poll_ops(cq.ex(), kSupported);
	cq.ring.header().producer = 100;
	EXPECT_EQ(start(cq), EIO);
	EXPECT_EQ(start(cq), EIO) << "hangs if the lock was kept";
	EXPECT_EQ(cq.ring.header().consumer, 0U);
}

TEST(CqEx, TheIteratorKeepsOtherThreadsOutUntilItEnds)
{
	TestCq cq(4);
	shca_core_set_poll_ops(cq.ex(), kSupported);
	cq.complete(cqe(1));
	cq.complete(cqe(2));
	ASSERT_EQ(start(cq), 0);
	std::atomic<bool> ended = false;
	std::atomic<bool> early = false;
	std::thread other([&] {
		ibv_wc wc;
		EXPECT_EQ(cq.poll(1, &wc), 1);
		early = !ended;
		EXPECT_EQ(wc.wr_id, 2U);
	});
	std::this_thread::sleep_for(std::chrono::milliseconds(50));
	ended = true;
	ibv_end_poll(cq.ex());
	other.join();
	EXPECT_FALSE(early);
}

TEST(CqEx, ASingleThreadedQueueIsNotLocked)
{
	TestCq cq(4, 0, true);
	shca_core_set_poll_ops(cq.ex(), kSupported);
	cq.complete(cqe(1));
	ASSERT_EQ(start(cq), 0);
	ibv_wc wc;
	EXPECT_EQ(cq.poll(1, &wc), 1); // hangs if there is a lock
	ibv_end_poll(cq.ex());
	EXPECT_EQ(cq.ring.header().consumer, 1U);
}

TEST(CqEx, ExactlyTheFieldsThatAreThereCanBeAskedFor)
{
	for (unsigned bit = 0; bit < 64; ++bit) {
		const std::uint64_t flag = std::uint64_t{1} << bit;
		EXPECT_EQ(shca_core_check_wc_flags(flag), (kSupported & flag) != 0 ? 0 : EOPNOTSUPP)
			<< bit;
	}
	EXPECT_EQ(shca_core_check_wc_flags(IBV_WC_STANDARD_FLAGS), 0);
	EXPECT_EQ(shca_core_check_wc_flags(0), 0);
	EXPECT_EQ(shca_core_check_wc_flags(kSupported | IBV_WC_EX_WITH_CVLAN), EOPNOTSUPP);
}

TEST(CqEx, OnlyFieldsThatWereAskedForAreInstalled)
{
	TestCq cq;
	shca_core_set_poll_ops(cq.ex(), IBV_WC_EX_WITH_BYTE_LEN);
	EXPECT_NE(cq.ex()->read_byte_len, nullptr);
	EXPECT_NE(cq.ex()->read_opcode, nullptr);
	EXPECT_NE(cq.ex()->read_vendor_err, nullptr);
	EXPECT_NE(cq.ex()->read_wc_flags, nullptr);
	EXPECT_EQ(cq.ex()->read_imm_data, nullptr);
	EXPECT_EQ(cq.ex()->read_qp_num, nullptr);
	EXPECT_EQ(cq.ex()->read_src_qp, nullptr);
	EXPECT_EQ(cq.ex()->read_slid, nullptr);
	EXPECT_EQ(cq.ex()->read_completion_ts, nullptr);
}

} // namespace
} // namespace shca_test
