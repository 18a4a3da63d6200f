// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// ibv_qp_ex: batches that become visible whole or not at all, their errors, the
// setters, and which operations are granted.
#include "fixture.hpp"

#include <cerrno>
#include <numeric>

namespace shca_test
{
namespace
{

constexpr std::uint64_t kAll = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			       IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			       IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_LOCAL_INV |
			       IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;

QpOptions options()
{
	return {.entries = 4, .send_ops = kAll};
}

void add_send(TestQp &qp, std::uint64_t wr_id)
{
	qp.ex()->wr_id = wr_id;
	qp.ex()->wr_flags = 0;
	ibv_wr_send(qp.ex());
	ibv_wr_set_sge(qp.ex(), 1, 2, 3);
}

TEST(QpEx, NothingIsVisibleBeforeComplete)
{
	TestQp qp(options());
	ibv_wr_start(qp.ex());
	for (std::uint64_t id = 1; id <= 3; ++id) {
		add_send(qp, id);
		EXPECT_EQ(qp.sq.header().producer, 0U);
		EXPECT_EQ(qp.send_doorbells, 0);
	}
	std::uint32_t seen = 0;
	qp.on_doorbell = [&] { seen = qp.sq.header().producer; };
	EXPECT_EQ(ibv_wr_complete(qp.ex()), 0);
	EXPECT_EQ(seen, 3U) << "the index when the doorbell rang";
	EXPECT_EQ(qp.send_doorbells, 1);
	for (std::uint32_t i = 0; i < 3; ++i) {
		EXPECT_EQ(qp.sq.read<std::uint64_t>(i), i + 1);
		EXPECT_EQ(qp.sq.read<std::uint32_t>(i, 16), 1U);
	}
}

TEST(QpEx, AnAbortedBatchLeavesNoTrace)
{
	TestQp qp(options());
	ibv_wr_start(qp.ex());
	add_send(qp, 1);
	add_send(qp, 2);
	ibv_wr_abort(qp.ex());
	EXPECT_EQ(qp.sq.header().producer, 0U);
	EXPECT_EQ(qp.send_doorbells, 0);
	EXPECT_EQ(qp.send(send_wr(IBV_WR_SEND, 7)), 0) << "the lock is free again";
	EXPECT_EQ(qp.sq.read<std::uint64_t>(0), 7U);
}

TEST(QpEx, AnEmptyBatchRingsNothing)
{
	TestQp qp(options());
	ibv_wr_start(qp.ex());
	EXPECT_EQ(ibv_wr_complete(qp.ex()), 0);
	EXPECT_EQ(qp.send_doorbells, 0);
}

TEST(QpEx, TheDoorbellIsRungOutsideTheLockAndItsErrorReturned)
{
	TestQp qp(options());
	qp.doorbell_error = EIO;
	bool again = true;
	qp.on_doorbell = [&] {
		if (again) {
			again = false;
			qp.send(send_wr(IBV_WR_SEND)); // hangs if the lock is held
		}
	};
	ibv_wr_start(qp.ex());
	add_send(qp, 1);
	EXPECT_EQ(ibv_wr_complete(qp.ex()), EIO);
}

TEST(QpEx, ABatchLargerThanTheRingIsRefusedWhole)
{
	TestQp qp(options());
	ibv_wr_start(qp.ex());
	for (std::uint64_t id = 1; id <= 5; ++id) {
		add_send(qp, id);
	}
	EXPECT_EQ(ibv_wr_complete(qp.ex()), ENOMEM);
	EXPECT_EQ(qp.sq.header().producer, 0U);
	EXPECT_EQ(qp.send_doorbells, 0);
	// The next batch starts clean.
	ibv_wr_start(qp.ex());
	add_send(qp, 9);
	EXPECT_EQ(ibv_wr_complete(qp.ex()), 0);
	EXPECT_EQ(qp.sq.read<std::uint64_t>(0), 9U);
}

TEST(QpEx, WrapsWithTheRing)
{
	QpOptions wrap = options();
	wrap.first_index = 0xffffffff;
	TestQp qp(wrap);
	ibv_wr_start(qp.ex());
	add_send(qp, 1);
	add_send(qp, 2);
	ASSERT_EQ(ibv_wr_complete(qp.ex()), 0);
	EXPECT_EQ(qp.sq.header().producer, 1U);
	EXPECT_EQ(qp.sq.read<std::uint64_t>(0xffffffff), 1U);
	EXPECT_EQ(qp.sq.read<std::uint64_t>(0), 2U);
}

struct BadBatch {
	const char *why;
	int error;
	void (*build)(ibv_qp_ex *qp);
};

const BadBatch kBadBatches[] = {
	{"too many elements", EINVAL,
	 [](ibv_qp_ex *qp) {
		 static ibv_sge sges[5];
		 ibv_wr_send(qp);
		 ibv_wr_set_sge_list(qp, 5, sges);
	 }},
	{"a number of elements that overflows", EINVAL,
	 [](ibv_qp_ex *qp) {
		 ibv_wr_send(qp);
		 ibv_wr_set_sge_list(qp, SIZE_MAX, nullptr);
	 }},
	{"too much inline data", EINVAL,
	 [](ibv_qp_ex *qp) {
		 static char data[65];
		 ibv_wr_send(qp);
		 ibv_wr_set_inline_data(qp, data, sizeof(data));
	 }},
	{"inline lengths that overflow when added", EINVAL,
	 [](ibv_qp_ex *qp) {
		 static char data[8];
		 static const ibv_data_buf buffers[2] = {{data, 8}, {data, SIZE_MAX - 7}};
		 ibv_wr_send(qp);
		 ibv_wr_set_inline_data_list(qp, 2, buffers);
	 }},
	{"an RDMA read with inline data", EINVAL,
	 [](ibv_qp_ex *qp) {
		 ibv_wr_rdma_read(qp, 1, 2);
		 ibv_wr_set_inline_data(qp, nullptr, 0);
	 }},
	{"data for a local invalidate", EINVAL,
	 [](ibv_qp_ex *qp) {
		 ibv_wr_local_inv(qp, 1);
		 ibv_wr_set_sge(qp, 1, 2, 3);
	 }},
	{"data set twice", EINVAL,
	 [](ibv_qp_ex *qp) {
		 ibv_wr_send(qp);
		 ibv_wr_set_sge(qp, 1, 2, 3);
		 ibv_wr_set_sge(qp, 1, 2, 3);
	 }},
	{"data before any operation", EINVAL, [](ibv_qp_ex *qp) { ibv_wr_set_sge(qp, 1, 2, 3); }},
	{"an unknown flag", EINVAL,
	 [](ibv_qp_ex *qp) {
		 qp->wr_flags = IBV_SEND_IP_CSUM;
		 ibv_wr_send(qp);
	 }},
	{"the invalidate flag, for which there is no key", EINVAL,
	 [](ibv_qp_ex *qp) {
		 qp->wr_flags = IBV_SEND_INVALIDATE;
		 ibv_wr_send(qp);
	 }},
};

TEST(QpEx, AnErrorAnywhereIsReturnedByCompleteWithNothingPosted)
{
	for (const auto &[why, error, build] : kBadBatches) {
		TestQp qp(options());
		ibv_wr_start(qp.ex());
		if (std::strcmp(why, "data before any operation") != 0) {
			add_send(qp, 1);
		}
		qp.ex()->wr_flags = 0;
		build(qp.ex());
		add_send(qp, 3);
		EXPECT_EQ(ibv_wr_complete(qp.ex()), error) << why;
		EXPECT_EQ(qp.sq.header().producer, 0U) << why;
		EXPECT_EQ(qp.send_doorbells, 0) << why;
		ibv_wr_start(qp.ex());
		add_send(qp, 4);
		EXPECT_EQ(ibv_wr_complete(qp.ex()), 0) << "after " << why;
		EXPECT_EQ(qp.sq.read<std::uint64_t>(0), 4U) << "after " << why;
	}
}

TEST(QpEx, StatesBeforeRtsAreRefused)
{
	for (int state = IBV_QPS_RESET; state <= IBV_QPS_ERR; ++state) {
		QpOptions early = options();
		early.state = static_cast<ibv_qp_state>(state);
		TestQp qp(early);
		ibv_wr_start(qp.ex());
		add_send(qp, 1);
		EXPECT_EQ(ibv_wr_complete(qp.ex()), state < IBV_QPS_RTS ? EINVAL : 0) << state;
	}
}

TEST(QpEx, InlineDataOfEveryLengthUpToTheLimitIsCopied)
{
	std::array<std::uint8_t, 64> data;
	std::iota(data.begin(), data.end(), 1);
	for (std::size_t length = 0; length <= data.size(); ++length) {
		TestQp qp(options());
		ibv_wr_start(qp.ex());
		ibv_wr_rdma_write(qp.ex(), 1, 2);
		ibv_wr_set_inline_data(qp.ex(), data.data(), length);
		ASSERT_EQ(ibv_wr_complete(qp.ex()), 0) << length;
		EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 12), std::uint32_t{SHCA_SEND_INLINE});
		EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 20), length);
		EXPECT_EQ(std::memcmp(qp.sq.entry(0) + 64, data.data(), length), 0) << length;
	}
}

TEST(QpEx, AnInlineFlagLeftOverFromElsewhereIsLetPass)
{
	TestQp qp(options());
	ibv_wr_start(qp.ex());
	qp.ex()->wr_flags = IBV_SEND_INLINE;
	ibv_wr_rdma_read(qp.ex(), 1, 2);
	ibv_wr_set_sge(qp.ex(), 3, 4, 5);
	ibv_wr_local_inv(qp.ex(), 6);
	ASSERT_EQ(ibv_wr_complete(qp.ex()), 0);
	EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 12), 0U) << "flags of the read";
	EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 16), 1U) << "its num_sge";
	EXPECT_EQ(qp.sq.read<std::uint32_t>(1, 12), 0U) << "flags of the invalidate";
}

TEST(QpEx, AnInlineListIsPutEndToEnd)
{
	char head[] = "send with ";
	char tail[] = "invalidate";
	const ibv_data_buf buffers[3] = {{head, 10}, {nullptr, 0}, {tail, 10}};
	TestQp qp(options());
	ibv_wr_start(qp.ex());
	ibv_wr_send_inv(qp.ex(), 5);
	ibv_wr_set_inline_data_list(qp.ex(), 3, buffers);
	ASSERT_EQ(ibv_wr_complete(qp.ex()), 0);
	EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 20), 20U);
	EXPECT_EQ(std::memcmp(qp.sq.entry(0) + 64, "send with invalidate", 20), 0);
}

TEST(QpEx, AnOperationWithoutDataSetIsAMessageOfLengthZero)
{
	TestQp qp(options());
	ibv_wr_start(qp.ex());
	ibv_wr_send(qp.ex());
	ASSERT_EQ(ibv_wr_complete(qp.ex()), 0);
	EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 16), 0U);
	EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 20), 0U);
}

TEST(SendOps, ExactlyTheOnesThatWorkAreGranted)
{
	for (unsigned bit = 0; bit < 64; ++bit) {
		const std::uint64_t flag = std::uint64_t{1} << bit;
		EXPECT_EQ(shca_core_check_send_ops(flag, IBV_QPT_RC, SHCA_CAP_SEND_W_INV),
			  (kAll & flag) != 0 ? 0 : EOPNOTSUPP)
			<< bit;
		EXPECT_EQ(shca_core_check_send_ops(kAll | flag, IBV_QPT_RC, SHCA_CAP_SEND_W_INV),
			  (kAll & flag) != 0 ? 0 : EOPNOTSUPP)
			<< bit;
	}
	EXPECT_EQ(shca_core_check_send_ops(0, IBV_QPT_RC, 0), 0);
}

TEST(SendOps, SendWithInvalidateIsNotGrantedWhereTheDeviceCannotDoIt)
{
	for (std::uint64_t caps : {std::uint64_t{0}, std::uint64_t{SHCA_CAP_GIFT}}) {
		EXPECT_EQ(shca_core_check_send_ops(IBV_QP_EX_WITH_SEND_WITH_INV, IBV_QPT_RC, caps),
			  EOPNOTSUPP);
		EXPECT_EQ(shca_core_check_send_ops(
				  kAll & ~std::uint64_t{IBV_QP_EX_WITH_SEND_WITH_INV}, IBV_QPT_RC,
				  caps),
			  0);
	}
}

TEST(SendOps, NoneIsGrantedOnAnotherTypeOfQueuePair)
{
	for (ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND,
				 IBV_QPT_XRC_RECV, IBV_QPT_DRIVER}) {
		for (unsigned bit = 0; bit < 64; ++bit) {
			EXPECT_EQ(shca_core_check_send_ops(std::uint64_t{1} << bit, type,
							   SHCA_CAP_SEND_W_INV),
				  EOPNOTSUPP)
				<< "type " << type << ", bit " << bit;
		}
	}
}

TEST(SendOps, OnlyWhatWasAskedForIsInstalled)
{
	TestQp qp({.send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ});
	EXPECT_NE(qp.ex()->wr_send, nullptr);
	EXPECT_NE(qp.ex()->wr_rdma_read, nullptr);
	EXPECT_EQ(qp.ex()->wr_send_imm, nullptr);
	EXPECT_EQ(qp.ex()->wr_send_inv, nullptr);
	EXPECT_EQ(qp.ex()->wr_rdma_write, nullptr);
	EXPECT_EQ(qp.ex()->wr_rdma_write_imm, nullptr);
	EXPECT_EQ(qp.ex()->wr_bind_mw, nullptr);
	EXPECT_EQ(qp.ex()->wr_local_inv, nullptr);
	EXPECT_EQ(qp.ex()->wr_atomic_cmp_swp, nullptr);
	EXPECT_EQ(qp.ex()->wr_set_ud_addr, nullptr);
}

TEST(SendOps, LibibverbsAcceptsTheObjectAsExtended)
{
	TestQp extended(options());
	EXPECT_EQ(ibv_qp_to_qp_ex(extended.qp()), extended.ex());
	TestQp plain;
	EXPECT_EQ(ibv_qp_to_qp_ex(plain.qp()), nullptr);
}

TEST(SendOps, TheObjectIsMarkedForBothPlacesThatPrivateAbi34Knows)
{
	TestQp qp(options());
	const auto *bytes = reinterpret_cast<const std::uint8_t *>(qp.ex());
	const std::size_t first =
		offsetof(ibv_qp_ex, wr_atomic_write) + sizeof(qp.ex()->wr_atomic_write);
	for (std::size_t place : {first, first + sizeof(void *)}) {
		std::uint32_t comp_mask = 0;
		std::memcpy(&comp_mask, bytes + place, sizeof(comp_mask));
		EXPECT_EQ(comp_mask, 1U << 1) << place;
	}
}

} // namespace
} // namespace shca_test
