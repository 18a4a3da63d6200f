// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Binding memory windows: type 1 by ibv_bind_mw(), type 2 by IBV_WR_BIND_MW and by
// ibv_wr_bind_mw(); what is refused; whose key changes when.
#include "fixture.hpp"

#include <cerrno>

namespace shca_test
{
namespace
{

// A window, a region and what binds the one to the other.
struct Window {
	explicit Window(ibv_mw_type type)
	{
		mr.pd = &pd;
		mr.lkey = 0x00abcd01;
		mw.pd = &pd;
		mw.type = type;
		mw.rkey = 0x00123405;
		info = {&mr, 0x1000200030004000, 0x50, IBV_ACCESS_REMOTE_WRITE};
	}
	ibv_send_wr wr(std::uint32_t new_rkey)
	{
		ibv_send_wr wr = send_wr(IBV_WR_BIND_MW, 42);
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.bind_mw.mw = &mw;
		wr.bind_mw.rkey = new_rkey;
		wr.bind_mw.bind_info = info;
		return wr;
	}
	ibv_mw_bind request() { return {42, IBV_SEND_SIGNALED, info}; }

	ibv_pd pd{};
	ibv_pd other_pd{};
	ibv_mr mr{};
	ibv_mw mw{};
	ibv_mw_bind_info info{};
};

std::array<std::uint8_t, 64> bound(std::uint32_t old_rkey, std::uint32_t new_rkey)
{
	std::array<std::uint8_t, 64> bytes{};
	auto put = [&](std::size_t offset, auto value) {
		std::memcpy(&bytes[offset], &value, sizeof(value));
	};
	put(0, std::uint64_t{42});
	put(8, std::uint32_t{SHCA_WR_BIND_MW});
	put(12, std::uint32_t{SHCA_SEND_SIGNALED});
	put(32, std::uint64_t{0x1000200030004000});
	put(40, std::uint64_t{0x50});
	put(48, std::uint32_t{0x00abcd01});
	put(52, old_rkey);
	put(56, new_rkey);
	put(60, std::uint32_t{SHCA_BIND_REMOTE_WRITE});
	return bytes;
}

std::array<std::uint8_t, 64> head(TestQp &qp, std::uint32_t index)
{
	return qp.sq.read<std::array<std::uint8_t, 64>>(index);
}

TEST(BindMw, Type1GetsTheNextKeyOfItsWindow)
{
	TestQp qp;
	Window window(IBV_MW_TYPE_1);
	window.mw.rkey = 0x001234ff;
	ibv_mw_bind request = window.request();
	ASSERT_EQ(shca_core_bind_mw(qp.qp(), &window.mw, &request), 0);
	EXPECT_EQ(head(qp, 0), bound(0x001234ff, 0x00123400)) << "only the low byte turns";
	EXPECT_EQ(window.mw.rkey, 0x00123400U);
	EXPECT_EQ(qp.send_doorbells, 1);
}

TEST(BindMw, Type1IsUnboundWithoutARegion)
{
	TestQp qp;
	Window window(IBV_MW_TYPE_1);
	ibv_mw_bind request{};
	ASSERT_EQ(shca_core_bind_mw(qp.qp(), &window.mw, &request), 0);
	EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 48), 0U) << "lkey";
	EXPECT_EQ(qp.sq.read<std::uint64_t>(0, 40), 0U) << "length";
}

TEST(BindMw, Type2GetsTheKeyThatTheRequestNames)
{
	TestQp qp;
	Window window(IBV_MW_TYPE_2);
	ibv_send_wr wr = window.wr(0x001234aa);
	ASSERT_EQ(qp.send(&wr), 0);
	EXPECT_EQ(head(qp, 0), bound(0x00123405, 0x001234aa));
	EXPECT_EQ(window.mw.rkey, 0x001234aaU);
}

TEST(BindMw, TwoBindsOfOneListFollowEachOther)
{
	TestQp qp;
	Window window(IBV_MW_TYPE_2);
	ibv_send_wr second = window.wr(0x00123407);
	ibv_send_wr first = window.wr(0x00123406);
	first.next = &second;
	ASSERT_EQ(qp.send(&first), 0);
	EXPECT_EQ(head(qp, 0), bound(0x00123405, 0x00123406));
	EXPECT_EQ(head(qp, 1), bound(0x00123406, 0x00123407));
}

TEST(BindMw, QpExBuildsTheSameEntry)
{
	TestQp qp({.send_ops = IBV_QP_EX_WITH_BIND_MW});
	Window window(IBV_MW_TYPE_2);
	ibv_wr_start(qp.ex());
	qp.ex()->wr_id = 42;
	qp.ex()->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(qp.ex(), &window.mw, 0x00123406, &window.info);
	ibv_wr_bind_mw(qp.ex(), &window.mw, 0x00123407, &window.info);
	ASSERT_EQ(ibv_wr_complete(qp.ex()), 0);
	EXPECT_EQ(head(qp, 0), bound(0x00123405, 0x00123406));
	EXPECT_EQ(head(qp, 1), bound(0x00123406, 0x00123407));
	EXPECT_EQ(window.mw.rkey, 0x00123407U);
}

TEST(BindMw, EveryAccessFlagIsTheDevicesOwn)
{
	const std::pair<unsigned, std::uint32_t> flags[] = {
		{0, 0},
		{IBV_ACCESS_REMOTE_WRITE, 1},
		{IBV_ACCESS_REMOTE_READ, 2},
		{IBV_ACCESS_REMOTE_ATOMIC, 4},
		{IBV_ACCESS_ZERO_BASED, 8},
		{IBV_ACCESS_LOCAL_WRITE, 0}, // of no meaning, yet passed by programs
		{IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED, 11},
	};
	for (const auto &[verbs, device] : flags) {
		TestQp qp;
		Window window(IBV_MW_TYPE_2);
		window.info.mw_access_flags = verbs;
		ibv_send_wr wr = window.wr(0x00123406);
		ASSERT_EQ(qp.send(&wr), 0) << verbs;
		EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 60), device) << verbs;
	}
}

struct BadBind {
	const char *why;
	ibv_mw_type type; // that the way in is for
	int error;
	void (*spoil)(Window &window);
};

const BadBind kBadBinds[] = {
	{"type 2 by ibv_bind_mw()", IBV_MW_TYPE_1, EINVAL,
	 [](Window &window) { window.mw.type = IBV_MW_TYPE_2; }},
	{"type 1 by a work request", IBV_MW_TYPE_2, EINVAL,
	 [](Window &window) { window.mw.type = IBV_MW_TYPE_1; }},
	{"a zero-based type 1 window", IBV_MW_TYPE_1, EINVAL,
	 [](Window &window) { window.info.mw_access_flags = IBV_ACCESS_ZERO_BASED; }},
	{"an access flag that a window cannot have", IBV_MW_TYPE_2, EINVAL,
	 [](Window &window) { window.info.mw_access_flags = IBV_ACCESS_MW_BIND; }},
	{"the GIFT flag", IBV_MW_TYPE_2, EINVAL,
	 [](Window &window) { window.info.mw_access_flags = IBV_ACCESS_GIFT; }},
	{"a length but no region", IBV_MW_TYPE_2, EINVAL,
	 [](Window &window) {
		 window.info.mr = nullptr;
		 window.info.addr = 0;
	 }},
	{"an address but no region", IBV_MW_TYPE_2, EINVAL,
	 [](Window &window) {
		 window.info.mr = nullptr;
		 window.info.length = 0;
	 }},
	{"a region of another protection domain", IBV_MW_TYPE_2, EPERM,
	 [](Window &window) { window.mr.pd = &window.other_pd; }},
};

TEST(BindMw, ARefusedBindLeavesRingAndKeyAlone)
{
	for (const auto &[why, type, error, spoil] : kBadBinds) {
		TestQp qp({.send_ops = IBV_QP_EX_WITH_BIND_MW});
		Window window(type);
		spoil(window);
		if (type == IBV_MW_TYPE_1) {
			ibv_mw_bind request = window.request();
			EXPECT_EQ(shca_core_bind_mw(qp.qp(), &window.mw, &request), error) << why;
		} else {
			ibv_send_wr wr = window.wr(0x00123406);
			EXPECT_EQ(qp.send(&wr), error) << why;
			EXPECT_EQ(qp.bad_send, &wr) << why;
			ibv_wr_start(qp.ex());
			ibv_wr_bind_mw(qp.ex(), &window.mw, 0x00123406, &window.info);
			EXPECT_EQ(ibv_wr_complete(qp.ex()), error) << why;
		}
		EXPECT_EQ(window.mw.rkey, 0x00123405U) << why;
		EXPECT_EQ(qp.sq.header().producer, 0U) << why;
		EXPECT_EQ(qp.send_doorbells, 0) << why;
	}
}

TEST(BindMw, WithoutAWindowOrWithDataIsRefused)
{
	TestQp qp;
	Window window(IBV_MW_TYPE_2);
	ibv_send_wr wr = window.wr(0x00123406);
	ibv_sge sge{};
	wr.sg_list = &sge;
	wr.num_sge = 1;
	EXPECT_EQ(qp.send(&wr), EINVAL);
	EXPECT_EQ(window.mw.rkey, 0x00123405U);
	wr = window.wr(0x00123406);
	wr.bind_mw.mw = nullptr;
	EXPECT_EQ(qp.send(&wr), EINVAL);
}

TEST(BindMw, AFullRingOrAWrongStateLeavesTheKeyAlone)
{
	TestQp full({.entries = 1});
	Window window(IBV_MW_TYPE_1);
	ibv_mw_bind request = window.request();
	ASSERT_EQ(shca_core_bind_mw(full.qp(), &window.mw, &request), 0);
	EXPECT_EQ(shca_core_bind_mw(full.qp(), &window.mw, &request), ENOMEM);
	EXPECT_EQ(window.mw.rkey, 0x00123406U);

	TestQp early({.state = IBV_QPS_RTR});
	EXPECT_EQ(shca_core_bind_mw(early.qp(), &window.mw, &request), EINVAL);
	EXPECT_EQ(window.mw.rkey, 0x00123406U);
}

TEST(BindMw, ABatchThatComesToNothingGivesKeysBack)
{
	for (bool by_abort : {true, false}) {
		TestQp qp({.send_ops = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND});
		Window one(IBV_MW_TYPE_2);
		Window two(IBV_MW_TYPE_2);
		ibv_wr_start(qp.ex());
		ibv_wr_bind_mw(qp.ex(), &one.mw, 0x00123406, &one.info);
		ibv_wr_bind_mw(qp.ex(), &two.mw, 0x00123410, &two.info);
		ibv_wr_bind_mw(qp.ex(), &one.mw, 0x00123407, &one.info);
		if (by_abort) {
			ibv_wr_abort(qp.ex());
		} else {
			ibv_wr_send(qp.ex());
			ibv_wr_set_inline_data(qp.ex(), nullptr, 1000);
			EXPECT_EQ(ibv_wr_complete(qp.ex()), EINVAL);
		}
		EXPECT_EQ(one.mw.rkey, 0x00123405U) << by_abort;
		EXPECT_EQ(two.mw.rkey, 0x00123405U) << by_abort;
		EXPECT_EQ(qp.sq.header().producer, 0U) << by_abort;
	}
}

} // namespace
} // namespace shca_test
