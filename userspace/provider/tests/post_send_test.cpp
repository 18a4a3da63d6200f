// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// ibv_post_send() on lists: data, refusals with *bad_wr, a full ring, states,
// and the doorbell.
#include "fixture.hpp"

#include <cerrno>
#include <numeric>

namespace shca_test
{
namespace
{

// A list of sends with wr_ids 1, 2, ...
class SendList
{
public:
	explicit SendList(std::size_t count)
	{
		for (std::size_t i = 0; i < count; ++i) {
			wrs_.push_back(send_wr(IBV_WR_SEND, i + 1));
		}
		for (std::size_t i = 1; i < count; ++i) {
			wrs_[i - 1].next = &wrs_[i];
		}
	}
	ibv_send_wr *first() { return wrs_.data(); }
	ibv_send_wr &operator[](std::size_t i) { return wrs_[i]; }

private:
	std::vector<ibv_send_wr> wrs_;
};

TEST(PostSend, AListGoesInWithOneDoorbellAfterItsIndex)
{
	TestQp qp;
	std::uint32_t seen = 0;
	qp.on_doorbell = [&] { seen = qp.sq.header().producer; };
	SendList list(3);
	ASSERT_EQ(qp.send(list.first()), 0);
	EXPECT_EQ(qp.send_doorbells, 1);
	EXPECT_EQ(seen, 3U) << "the index when the doorbell rang";
	for (std::uint32_t i = 0; i < 3; ++i) {
		EXPECT_EQ(qp.sq.read<std::uint64_t>(i), i + 1);
	}
	EXPECT_EQ(qp.bad_send, nullptr);
	EXPECT_EQ(qp.recv_doorbells, 0);
}

TEST(PostSend, AnEmptyListRingsNothing)
{
	TestQp qp;
	EXPECT_EQ(qp.send(nullptr), 0);
	EXPECT_EQ(qp.send_doorbells, 0);
}

TEST(PostSend, TheDoorbellIsRungOutsideTheLock)
{
	TestQp qp;
	bool again = true;
	qp.on_doorbell = [&] {
		if (again) {
			again = false;
			EXPECT_EQ(qp.send(send_wr(IBV_WR_SEND, 2)), 0); // hangs if it is held
		}
	};
	EXPECT_EQ(qp.send(send_wr(IBV_WR_SEND)), 0);
	EXPECT_EQ(qp.sq.header().producer, 2U);
}

TEST(PostSend, ADoorbellThatFailsIsReportedWithTheWholeList)
{
	TestQp qp;
	qp.doorbell_error = EIO;
	SendList list(2);
	EXPECT_EQ(qp.send(list.first()), EIO);
	EXPECT_EQ(qp.bad_send, list.first());
}

TEST(PostSend, AFullRingTakesWhatFitsAndNamesTheFirstThatDoesNot)
{
	TestQp qp({.entries = 4});
	SendList list(6);
	EXPECT_EQ(qp.send(list.first()), ENOMEM);
	EXPECT_EQ(qp.bad_send, &list[4]);
	EXPECT_EQ(qp.sq.header().producer, 4U);
	EXPECT_EQ(qp.send_doorbells, 1);
	for (std::uint32_t i = 0; i < 4; ++i) {
		EXPECT_EQ(qp.sq.read<std::uint64_t>(i), i + 1);
	}
	// Nothing is posted, nothing is rung while it stays full.
	EXPECT_EQ(qp.send(&list[4]), ENOMEM);
	EXPECT_EQ(qp.send_doorbells, 1);
	qp.sq.header().consumer = 2;
	EXPECT_EQ(qp.send(&list[4]), 0);
	EXPECT_EQ(qp.sq.header().producer, 6U);
	EXPECT_EQ(qp.sq.read<std::uint64_t>(4), 5U);
}

TEST(PostSend, WorksAcrossTheOverflowOfTheIndex)
{
	TestQp qp({.entries = 4, .first_index = 0xfffffffd});
	std::uint32_t index = 0xfffffffd;
	for (std::uint64_t id = 1; id <= 12; ++id, ++index) {
		ASSERT_EQ(qp.send(send_wr(IBV_WR_SEND, id)), 0) << id;
		EXPECT_EQ(qp.sq.header().producer, index + 1);
		EXPECT_EQ(qp.sq.read<std::uint64_t>(index), id);
		qp.consume_sends();
	}
	EXPECT_EQ(index, 9U);
}

TEST(PostSend, AHostileConsumerIndexNeverLetsAnEntryOutOfTheRing)
{
	// The page behind the ring faults, the header in front is looked at.
	for (std::uint32_t lie : {1U, 100U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
		TestQp qp({.entries = 4});
		qp.sq.header().consumer = lie;
		for (std::uint64_t id = 0; id < 20; ++id) {
			qp.send(send_wr(IBV_WR_SEND, id));
		}
		EXPECT_EQ(qp.sq.header().consumer, lie);
		EXPECT_EQ(qp.sq.header().flags, 0U);
	}
}

TEST(PostSend, TheProvidersOwnIndexDoesNotFollowTheRingHeader)
{
	TestQp qp;
	ASSERT_EQ(qp.send(send_wr(IBV_WR_SEND, 1)), 0);
	qp.sq.header().producer = 77;
	ASSERT_EQ(qp.send(send_wr(IBV_WR_SEND, 2)), 0);
	EXPECT_EQ(qp.sq.header().producer, 2U);
	EXPECT_EQ(qp.sq.read<std::uint64_t>(1), 2U);
}

TEST(PostSend, StatesBeforeRtsAreRefused)
{
	const std::pair<ibv_qp_state, int> states[] = {
		{IBV_QPS_RESET, EINVAL}, {IBV_QPS_INIT, EINVAL}, {IBV_QPS_RTR, EINVAL},
		{IBV_QPS_RTS, 0},        {IBV_QPS_SQD, 0},       {IBV_QPS_SQE, 0},
		{IBV_QPS_ERR, 0},
	};
	for (const auto &[state, error] : states) {
		TestQp qp({.state = state});
		ibv_send_wr wr = send_wr(IBV_WR_SEND);
		EXPECT_EQ(qp.send(&wr), error) << state;
		EXPECT_EQ(qp.bad_send, error != 0 ? &wr : nullptr) << state;
		EXPECT_EQ(qp.send_doorbells, error != 0 ? 0 : 1) << state;
	}
}

struct BadSend {
	const char *why;
	void (*spoil)(ibv_send_wr &wr);
};

TEST(PostSend, ABadRequestIsNamedAndTheOnesBeforeItArePosted)
{
	static ibv_sge sges[5] = {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}, {5, 5, 5}};
	static ibv_sge too_long = {0, 65, 0};
	static ibv_sge wraps[2] = {{0, 0xffffffff, 0}, {0, 0xffffffff, 0}};
	const BadSend cases[] = {
		{"more elements than the queue pair takes",
		 [](ibv_send_wr &wr) {
			 wr.sg_list = sges;
			 wr.num_sge = 5;
		 }},
		{"a negative number of elements", [](ibv_send_wr &wr) { wr.num_sge = -1; }},
		{"the least number of elements",
		 [](ibv_send_wr &wr) { wr.num_sge = static_cast<int>(0x80000000U); }},
		{"more inline data than the queue pair takes",
		 [](ibv_send_wr &wr) {
			 wr.send_flags = IBV_SEND_INLINE;
			 wr.sg_list = &too_long;
			 wr.num_sge = 1;
		 }},
		{"inline lengths that overflow when added",
		 [](ibv_send_wr &wr) {
			 wr.send_flags = IBV_SEND_INLINE;
			 wr.sg_list = wraps;
			 wr.num_sge = 2;
		 }},
		{"more elements than the queue pair takes, inline",
		 [](ibv_send_wr &wr) {
			 wr.send_flags = IBV_SEND_INLINE;
			 wr.sg_list = sges;
			 wr.num_sge = 5;
		 }},
		{"an RDMA read with inline data",
		 [](ibv_send_wr &wr) {
			 wr.opcode = IBV_WR_RDMA_READ;
			 wr.send_flags = IBV_SEND_INLINE;
		 }},
		{"checksum offload", [](ibv_send_wr &wr) { wr.send_flags = IBV_SEND_IP_CSUM; }},
		{"an atomic", [](ibv_send_wr &wr) { wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD; }},
		{"a local invalidate with data",
		 [](ibv_send_wr &wr) {
			 wr.opcode = IBV_WR_LOCAL_INV;
			 wr.sg_list = sges;
			 wr.num_sge = 1;
		 }},
	};
	for (const auto &[why, spoil] : cases) {
		TestQp qp({.max_send_sge = 4, .max_inline = 64});
		SendList list(4);
		spoil(list[2]);
		EXPECT_EQ(qp.send(list.first()), EINVAL) << why;
		EXPECT_EQ(qp.bad_send, &list[2]) << why;
		EXPECT_EQ(qp.sq.header().producer, 2U) << why;
		EXPECT_EQ(qp.send_doorbells, 1) << why;
		// The queue goes on behind the ones that were posted.
		EXPECT_EQ(qp.send(send_wr(IBV_WR_SEND, 99)), 0) << why;
		EXPECT_EQ(qp.sq.read<std::uint64_t>(2), 99U) << why;
	}
}

TEST(PostSend, ABadFirstRequestPostsNothingAndRingsNothing)
{
	TestQp qp;
	SendList list(2);
	list[0].num_sge = 100;
	EXPECT_EQ(qp.send(list.first()), EINVAL);
	EXPECT_EQ(qp.bad_send, list.first());
	EXPECT_EQ(qp.sq.header().producer, 0U);
	EXPECT_EQ(qp.send_doorbells, 0);
}

TEST(PostSend, EveryNumberOfElementsUpToTheLimitIsTaken)
{
	ibv_sge sges[4] = {{1, 11, 21}, {2, 12, 22}, {3, 13, 23}, {4, 14, 24}};
	for (int count = 0; count <= 4; ++count) {
		TestQp qp({.max_send_sge = 4});
		ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE);
		wr.sg_list = sges;
		wr.num_sge = count;
		ASSERT_EQ(qp.send(&wr), 0) << count;
		EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 16), static_cast<std::uint32_t>(count));
		for (int i = 0; i < count; ++i) {
			EXPECT_EQ(qp.sq.read<std::uint64_t>(0, 64 + 16 * i), sges[i].addr);
		}
		if (count < 4) {
			EXPECT_EQ(qp.sq.entry(0)[64 + 16 * count], kGarbage) << count;
		}
	}
}

class InlineData : public testing::TestWithParam<ibv_wr_opcode>
{
};

TEST_P(InlineData, OfEveryLengthUpToTheLimitIsCopied)
{
	const std::uint32_t limit = 64;
	std::array<std::uint8_t, limit + 1> data;
	std::iota(data.begin(), data.end(), 1);
	for (std::uint32_t length = 0; length <= limit + 1; ++length) {
		TestQp qp({.max_inline = limit});
		ibv_sge sge{reinterpret_cast<std::uintptr_t>(data.data()), length, 0xdead};
		ibv_send_wr wr = send_wr(GetParam());
		wr.send_flags = IBV_SEND_INLINE;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		if (length > limit) {
			EXPECT_EQ(qp.send(&wr), EINVAL);
			EXPECT_EQ(qp.sq.header().producer, 0U);
			continue;
		}
		ASSERT_EQ(qp.send(&wr), 0) << length;
		EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 12), std::uint32_t{SHCA_SEND_INLINE});
		EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 16), 0U) << "num_sge";
		EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 20), length) << "inline_length";
		EXPECT_EQ(std::memcmp(qp.sq.entry(0) + 64, data.data(), length), 0) << length;
		if (length < limit) {
			EXPECT_EQ(qp.sq.entry(0)[64 + length], kGarbage) << length;
		}
	}
}

TEST_P(InlineData, OfSeveralElementsIsPutEndToEnd)
{
	std::array<std::uint8_t, 60> data;
	std::iota(data.begin(), data.end(), 1);
	auto address = reinterpret_cast<std::uintptr_t>(data.data());
	ibv_sge sges[4] = {{address, 7, 0}, {0, 0, 0}, {address + 7, 1, 0}, {address + 8, 52, 0}};
	TestQp qp;
	ibv_send_wr wr = send_wr(GetParam());
	wr.send_flags = IBV_SEND_INLINE;
	wr.sg_list = sges;
	wr.num_sge = 4;
	ASSERT_EQ(qp.send(&wr), 0);
	EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 20), 60U);
	EXPECT_EQ(std::memcmp(qp.sq.entry(0) + 64, data.data(), data.size()), 0);
	data.fill(0);
	EXPECT_EQ(qp.sq.entry(0)[64], 1) << "is copied at the post";
}

INSTANTIATE_TEST_SUITE_P(Verbs, InlineData,
			 testing::Values(IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV,
					 IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM));

} // namespace
} // namespace shca_test
