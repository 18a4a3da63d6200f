// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// ibv_post_recv(): layout, refusals with *bad_wr, a full ring, and the doorbell
// that is rung only on request.
#include "fixture.hpp"

#include <cerrno>

namespace shca_test
{
namespace
{

class RecvList
{
public:
	explicit RecvList(std::size_t count) : wrs_(count)
	{
		for (std::size_t i = 0; i < count; ++i) {
			wrs_[i].wr_id = i + 1;
			wrs_[i].next = i + 1 < count ? &wrs_[i + 1] : nullptr;
		}
	}
	ibv_recv_wr *first() { return wrs_.data(); }
	ibv_recv_wr &operator[](std::size_t i) { return wrs_[i]; }

private:
	std::vector<ibv_recv_wr> wrs_;
};

TEST(PostRecv, IsLaidOutAsTheAbiSays)
{
	TestQp qp;
	ibv_sge sges[2] = {{0x1000200030004000, 0x11, 0xa1}, {0x5000600070008000, 0x22, 0xb2}};
	ibv_recv_wr wr{};
	wr.wr_id = 0x1122334455667788;
	wr.sg_list = sges;
	wr.num_sge = 2;
	ASSERT_EQ(qp.recv(&wr), 0);
	EXPECT_EQ(qp.rq.header().producer, 1U);
	EXPECT_EQ(qp.rq.read<std::uint64_t>(0, 0), wr.wr_id);
	EXPECT_EQ(qp.rq.read<std::uint32_t>(0, 8), 2U);
	EXPECT_EQ(qp.rq.read<std::uint32_t>(0, 12), 0U) << "reserved";
	for (std::size_t i = 0; i < 2; ++i) {
		EXPECT_EQ(qp.rq.read<std::uint64_t>(0, 16 + 16 * i), sges[i].addr);
		EXPECT_EQ(qp.rq.read<std::uint32_t>(0, 24 + 16 * i), sges[i].length);
		EXPECT_EQ(qp.rq.read<std::uint32_t>(0, 28 + 16 * i), sges[i].lkey);
	}
	EXPECT_EQ(qp.rq.entry(0)[48], kGarbage) << "writes more than its list";
}

TEST(PostRecv, RingsNothingAsLongAsTheDriverLooksByItself)
{
	TestQp qp;
	RecvList list(3);
	ASSERT_EQ(qp.recv(list.first()), 0);
	EXPECT_EQ(qp.rq.header().producer, 3U);
	EXPECT_EQ(qp.recv_doorbells, 0);
	EXPECT_EQ(qp.send_doorbells, 0);
}

TEST(PostRecv, RingsOnceAfterTheIndexWhenTheDriverAskedForIt)
{
	TestQp qp;
	qp.rq.header().flags = SHCA_RING_DOORBELL;
	std::uint32_t seen = 0;
	qp.on_doorbell = [&] { seen = qp.rq.header().producer; };
	RecvList list(3);
	ASSERT_EQ(qp.recv(list.first()), 0);
	EXPECT_EQ(qp.recv_doorbells, 1);
	EXPECT_EQ(seen, 3U) << "the index when the doorbell rang";
}

TEST(PostRecv, OtherFlagsAndTheSendRingsFlagAskForNothing)
{
	TestQp qp;
	qp.rq.header().flags = ~std::uint32_t{SHCA_RING_DOORBELL};
	qp.sq.header().flags = SHCA_RING_DOORBELL;
	RecvList list(1);
	ASSERT_EQ(qp.recv(list.first()), 0);
	EXPECT_EQ(qp.recv_doorbells, 0);
}

TEST(PostRecv, WhatWasPostedBeforeABadRequestIsRung)
{
	TestQp qp({.max_recv_sge = 3});
	qp.rq.header().flags = SHCA_RING_DOORBELL;
	RecvList list(3);
	list[1].num_sge = 4;
	EXPECT_EQ(qp.recv(list.first()), EINVAL);
	EXPECT_EQ(qp.bad_recv, &list[1]);
	EXPECT_EQ(qp.rq.header().producer, 1U);
	EXPECT_EQ(qp.recv_doorbells, 1);
	list[0].num_sge = -1;
	EXPECT_EQ(qp.recv(list.first()), EINVAL);
	EXPECT_EQ(qp.bad_recv, list.first());
	EXPECT_EQ(qp.recv_doorbells, 1) << "nothing posted, nothing to ring for";
}

TEST(PostRecv, ADoorbellThatFailsIsReportedWithTheWholeList)
{
	TestQp qp;
	qp.rq.header().flags = SHCA_RING_DOORBELL;
	qp.doorbell_error = EIO;
	RecvList list(2);
	EXPECT_EQ(qp.recv(list.first()), EIO);
	EXPECT_EQ(qp.bad_recv, list.first());
}

TEST(PostRecv, AFullRingTakesWhatFitsAndNamesTheFirstThatDoesNot)
{
	TestQp qp({.entries = 4, .first_index = 0xfffffffe});
	RecvList list(5);
	EXPECT_EQ(qp.recv(list.first()), ENOMEM);
	EXPECT_EQ(qp.bad_recv, &list[4]);
	EXPECT_EQ(qp.rq.header().producer, 2U) << "across the overflow of the index";
	for (std::uint32_t i = 0; i < 4; ++i) {
		EXPECT_EQ(qp.rq.read<std::uint64_t>(0xfffffffe + i), i + 1);
	}
	qp.rq.header().consumer = 0xffffffff;
	EXPECT_EQ(qp.recv(&list[4]), 0);
	EXPECT_EQ(qp.rq.read<std::uint64_t>(2), 5U);
}

TEST(PostRecv, OnlyResetIsRefused)
{
	for (int state = IBV_QPS_RESET; state <= IBV_QPS_ERR; ++state) {
		TestQp qp({.state = static_cast<ibv_qp_state>(state)});
		RecvList list(1);
		EXPECT_EQ(qp.recv(list.first()), state == IBV_QPS_RESET ? EINVAL : 0) << state;
		EXPECT_EQ(qp.rq.header().producer, state == IBV_QPS_RESET ? 0U : 1U) << state;
	}
}

TEST(PostRecv, AQueuePairWithoutReceiveQueueIsAlwaysFull)
{
	RingMemory sq(4, SHCA_SEND_WQE_SIZE);
	shca_qp_config config{};
	struct {
		shca_qp_link link;
		ibv_qp qp;
	} object{};
	config.qp = &object.qp;
	config.sq = sq.map();
	object.qp.state = IBV_QPS_RTS;
	object.link.core = shca_core_qp_create(&config);
	ASSERT_NE(object.link.core, nullptr);
	ibv_recv_wr wr{};
	ibv_recv_wr *bad = nullptr;
	EXPECT_EQ(shca_core_post_recv(&object.qp, &wr, &bad), ENOMEM);
	EXPECT_EQ(bad, &wr);
	shca_core_qp_destroy(object.link.core);
}

} // namespace
} // namespace shca_test
