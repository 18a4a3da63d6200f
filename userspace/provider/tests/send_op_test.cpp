// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What each operation looks like in the send ring, byte for byte, and that the
// three ways to ask for a send with invalidate are one.
#include "fixture.hpp"

#include <cerrno>
#include <functional>

namespace shca_test
{
namespace
{

constexpr std::uint64_t kWrId = 0x1122334455667788;
constexpr std::uint64_t kRemote = 0xfedcba9876543210;
constexpr std::uint32_t kRkey = 0x0badcafe;
constexpr std::uint32_t kEx = 0x01020304; // reads differently backwards

// The first 64 bytes of an entry, put together from offsets and not from the
// structures that the core uses.
class Bytes
{
public:
	Bytes &u32(std::size_t offset, std::uint32_t value) { return put(offset, value); }
	Bytes &u64(std::size_t offset, std::uint64_t value) { return put(offset, value); }
	const std::array<std::uint8_t, 64> &get() const { return bytes_; }

private:
	template <typename T>
	Bytes &put(std::size_t offset, T value)
	{
		std::memcpy(&bytes_[offset], &value, sizeof(value));
		return *this;
	}
	std::array<std::uint8_t, 64> bytes_{};
};

std::array<std::uint8_t, 64> head(TestQp &qp, std::uint32_t index = 0)
{
	return qp.sq.read<std::array<std::uint8_t, 64>>(index);
}

struct Layout {
	const char *name;
	ibv_wr_opcode opcode;
	std::uint32_t device_opcode;
	bool has_ex;
	bool has_rdma;
	bool has_data;
};

constexpr Layout kLayouts[] = {
	{"SEND", IBV_WR_SEND, 0, false, false, true},
	{"SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, 1, true, false, true},
	{"SEND_WITH_INV", IBV_WR_SEND_WITH_INV, 2, true, false, true},
	{"RDMA_WRITE", IBV_WR_RDMA_WRITE, 3, false, true, true},
	{"RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, 4, true, true, true},
	{"RDMA_READ", IBV_WR_RDMA_READ, 5, false, true, true},
	{"LOCAL_INV", IBV_WR_LOCAL_INV, 7, true, false, false},
};

class EveryOperation : public testing::TestWithParam<Layout>
{
};

ibv_send_wr full_wr(const Layout &layout, std::array<ibv_sge, 2> &sges)
{
	sges = {ibv_sge{0x1000200030004000, 0x11, 0xa1}, ibv_sge{0x5000600070008000, 0x22, 0xb2}};
	ibv_send_wr wr = send_wr(layout.opcode, kWrId);
	wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
	wr.invalidate_rkey = kEx;
	wr.wr.rdma.remote_addr = kRemote;
	wr.wr.rdma.rkey = kRkey;
	if (layout.has_data) {
		wr.sg_list = sges.data();
		wr.num_sge = static_cast<int>(sges.size());
	}
	return wr;
}

Bytes expected(const Layout &layout)
{
	Bytes bytes;
	bytes.u64(0, kWrId).u32(8, layout.device_opcode);
	bytes.u32(12, SHCA_SEND_SIGNALED | SHCA_SEND_FENCE);
	bytes.u32(16, layout.has_data ? 2 : 0);
	if (layout.has_ex) {
		bytes.u32(24, kEx);
	}
	if (layout.has_rdma) {
		bytes.u64(32, kRemote).u32(40, kRkey);
	}
	return bytes;
}

TEST_P(EveryOperation, IsLaidOutAsTheAbiSays)
{
	const Layout &layout = GetParam();
	TestQp qp;
	std::array<ibv_sge, 2> sges;
	ASSERT_EQ(qp.send(full_wr(layout, sges)), 0);
	EXPECT_EQ(qp.sq.header().producer, 1U);
	EXPECT_EQ(head(qp), expected(layout).get());
	std::size_t used = 64;
	if (layout.has_data) {
		for (const auto &sge : sges) {
			EXPECT_EQ(qp.sq.read<std::uint64_t>(0, used), sge.addr);
			EXPECT_EQ(qp.sq.read<std::uint32_t>(0, used + 8), sge.length);
			EXPECT_EQ(qp.sq.read<std::uint32_t>(0, used + 12), sge.lkey);
			used += 16;
		}
	}
	EXPECT_EQ(qp.sq.read<std::uint8_t>(0, used), kGarbage) << "writes more than its list";
}

TEST_P(EveryOperation, IsTheSameWhenItComesThroughQpEx)
{
	const Layout &layout = GetParam();
	TestQp listed;
	std::array<ibv_sge, 2> sges;
	ASSERT_EQ(listed.send(full_wr(layout, sges)), 0);

	TestQp built({.send_ops = ~std::uint64_t{0}});
	ibv_qp_ex *ex = built.ex();
	ibv_wr_start(ex);
	ex->wr_id = kWrId;
	ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
	switch (layout.opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, kEx);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(ex, kEx);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, kRkey, kRemote);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, kRkey, kRemote, kEx);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, kRkey, kRemote);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(ex, kEx);
		break;
	default:
		FAIL() << "no builder for " << layout.name;
	}
	if (layout.has_data) {
		ibv_wr_set_sge_list(ex, sges.size(), sges.data());
	}
	ASSERT_EQ(ibv_wr_complete(ex), 0);
	EXPECT_EQ(built.sq.snapshot(), listed.sq.snapshot());
}

TEST_P(EveryOperation, TakesTheFlagsThatMeanSomethingToItAndNoOthers)
{
	const Layout &layout = GetParam();
	const bool solicited = layout.opcode != IBV_WR_RDMA_WRITE &&
			       layout.opcode != IBV_WR_RDMA_READ &&
			       layout.opcode != IBV_WR_LOCAL_INV;
	const bool inlined = layout.has_data && layout.opcode != IBV_WR_RDMA_READ;
	unsigned allowed = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
	allowed |= solicited ? unsigned{IBV_SEND_SOLICITED} : 0U;
	allowed |= inlined ? unsigned{IBV_SEND_INLINE} : 0U;
	allowed |= layout.opcode == IBV_WR_SEND ? IBV_SEND_INVALIDATE : 0U;

	for (unsigned bit = 0; bit < 32; ++bit) {
		TestQp qp;
		ibv_send_wr wr = send_wr(layout.opcode);
		wr.send_flags = 1U << bit;
		int expected = (allowed & wr.send_flags) != 0 ? 0 : EINVAL;
		EXPECT_EQ(qp.send(&wr), expected) << layout.name << ", flag bit " << bit;
		EXPECT_EQ(qp.bad_send, expected != 0 ? &wr : nullptr) << bit;
	}
}

TEST_P(EveryOperation, CarriesEachFlagAsTheDevicesOwn)
{
	const Layout &layout = GetParam();
	const std::pair<unsigned, std::uint32_t> flags[] = {
		{0, 0},
		{IBV_SEND_SIGNALED, 1},
		{IBV_SEND_SOLICITED, 2},
		{IBV_SEND_FENCE, 4},
	};
	for (const auto &[verbs, device] : flags) {
		TestQp qp;
		ibv_send_wr wr = send_wr(layout.opcode);
		wr.send_flags = verbs;
		if (qp.send(&wr) == 0) {
			EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 12), device) << layout.name;
		} else {
			EXPECT_EQ(verbs, unsigned{IBV_SEND_SOLICITED}) << layout.name;
		}
	}
}

TEST_P(EveryOperation, IsSignaledOnAQueuePairThatSignalsAll)
{
	TestQp qp({.sq_sig_all = true});
	ASSERT_EQ(qp.send(send_wr(GetParam().opcode)), 0);
	EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 12), std::uint32_t{SHCA_SEND_SIGNALED});
}

INSTANTIATE_TEST_SUITE_P(Verbs, EveryOperation, testing::ValuesIn(kLayouts),
			 [](const auto &info) { return info.param.name; });

TEST(UnknownOpcode, IsRefused)
{
	for (std::uint32_t opcode :
	     {5U, 6U, 10U, 11U, 12U, 13U, 14U, 15U, 16U, 255U, 0x7fffffffU, 0xffffffffU}) {
		TestQp qp;
		ibv_send_wr wr = send_wr(opcode);
		EXPECT_EQ(qp.send(&wr), EINVAL) << opcode;
		EXPECT_EQ(qp.bad_send, &wr) << opcode;
		EXPECT_EQ(qp.sq.header().producer, 0U) << opcode;
		EXPECT_EQ(qp.send_doorbells, 0) << opcode;
	}
}

// Send with invalidate: three ways in, one meaning.

std::vector<std::uint8_t> ring_after(const std::function<void(TestQp &)> &post)
{
	TestQp qp({.send_ops = IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_SEND});
	post(qp);
	EXPECT_EQ(qp.sq.header().producer, 1U);
	EXPECT_EQ(qp.send_doorbells, 1);
	return qp.sq.snapshot();
}

TEST(SendWithInvalidate, HasThreeWaysInAndOneMeaning)
{
	const unsigned cases[] = {0, IBV_SEND_SIGNALED,
				  IBV_SEND_SIGNALED | IBV_SEND_FENCE | IBV_SEND_SOLICITED};
	for (unsigned flags : cases) {
		ibv_sge sge{0x1234, 56, 78};
		auto listed = [&](ibv_wr_opcode opcode, unsigned more) {
			return [=, &sge](TestQp &qp) {
				ibv_send_wr wr = send_wr(opcode, kWrId);
				wr.send_flags = flags | more;
				wr.invalidate_rkey = kEx;
				wr.sg_list = &sge;
				wr.num_sge = 1;
				EXPECT_EQ(qp.send(&wr), 0);
			};
		};
		auto opcode = ring_after(listed(IBV_WR_SEND_WITH_INV, 0));
		auto flag = ring_after(listed(IBV_WR_SEND, IBV_SEND_INVALIDATE));
		auto built = ring_after([&](TestQp &qp) {
			ibv_wr_start(qp.ex());
			qp.ex()->wr_id = kWrId;
			qp.ex()->wr_flags = flags;
			ibv_wr_send_inv(qp.ex(), kEx);
			ibv_wr_set_sge(qp.ex(), sge.lkey, sge.addr, sge.length);
			EXPECT_EQ(ibv_wr_complete(qp.ex()), 0);
		});
		EXPECT_EQ(opcode, flag) << flags;
		EXPECT_EQ(opcode, built) << flags;
		std::uint32_t device_opcode = 0;
		std::memcpy(&device_opcode, &opcode[SHCA_RING_ENTRIES_OFFSET + 8], 4);
		EXPECT_EQ(device_opcode, std::uint32_t{SHCA_WR_SEND_WITH_INV});
	}
}

TEST(SendWithInvalidate, TakesInlineDataThroughTheFlagToo)
{
	std::uint8_t data[5] = {1, 2, 3, 4, 5};
	ibv_sge sge{reinterpret_cast<std::uintptr_t>(data), sizeof(data), 0};
	TestQp qp;
	ibv_send_wr wr = send_wr(IBV_WR_SEND);
	wr.send_flags = IBV_SEND_INVALIDATE | IBV_SEND_INLINE;
	wr.invalidate_rkey = kEx;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	ASSERT_EQ(qp.send(&wr), 0);
	EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 8), std::uint32_t{SHCA_WR_SEND_WITH_INV});
	EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 12), std::uint32_t{SHCA_SEND_INLINE});
	EXPECT_EQ(qp.sq.read<std::uint32_t>(0, 24), kEx);
	EXPECT_EQ(std::memcmp(qp.sq.entry(0) + 64, data, sizeof(data)), 0);
}

TEST(SendWithInvalidate, IsRefusedWholeWhereTheDeviceCannotDoIt)
{
	for (unsigned way = 0; way < 3; ++way) {
		TestQp qp({.device_caps = SHCA_CAP_GIFT, .send_ops = ~std::uint64_t{0}});
		if (way == 2) {
			ibv_wr_start(qp.ex());
			ibv_wr_send_inv(qp.ex(), kEx);
			ibv_wr_set_sge(qp.ex(), 0, 0, 0);
			EXPECT_EQ(ibv_wr_complete(qp.ex()), EOPNOTSUPP);
		} else {
			ibv_send_wr wr = send_wr(way == 0 ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND);
			wr.send_flags = way == 0 ? 0U : IBV_SEND_INVALIDATE;
			EXPECT_EQ(qp.send(&wr), EOPNOTSUPP) << way;
			EXPECT_EQ(qp.bad_send, &wr) << way;
		}
		EXPECT_EQ(qp.sq.header().producer, 0U) << "posted as something else, way " << way;
		EXPECT_EQ(qp.send_doorbells, 0) << way;
	}
}

TEST(SendWithInvalidate, TheFlagDoesNotGoWithImmediateDataOrWithItself)
{
	for (ibv_wr_opcode opcode : {IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV}) {
		TestQp qp;
		ibv_send_wr wr = send_wr(opcode);
		wr.send_flags = IBV_SEND_INVALIDATE;
		EXPECT_EQ(qp.send(&wr), EINVAL) << opcode;
		EXPECT_EQ(qp.bad_send, &wr) << opcode;
	}
}

TEST(SendWithInvalidate, IsRefusedOnEveryQueuePairThatIsNotRc)
{
	for (ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND,
				 IBV_QPT_XRC_RECV, IBV_QPT_DRIVER}) {
		TestQp qp({.send_ops = IBV_QP_EX_WITH_SEND_WITH_INV, .type = type});
		for (ibv_wr_opcode opcode : {IBV_WR_SEND_WITH_INV, IBV_WR_SEND}) {
			ibv_send_wr wr = send_wr(opcode);
			wr.send_flags = opcode == IBV_WR_SEND ? IBV_SEND_INVALIDATE : 0U;
			EXPECT_EQ(qp.send(&wr), EINVAL) << type << ", " << opcode;
			EXPECT_EQ(qp.bad_send, &wr) << type << ", " << opcode;
		}
		ibv_wr_start(qp.ex());
		ibv_wr_send_inv(qp.ex(), kEx);
		EXPECT_EQ(ibv_wr_complete(qp.ex()), EINVAL) << type;
		EXPECT_EQ(qp.sq.header().producer, 0U) << type;
		EXPECT_EQ(qp.send_doorbells, 0) << type;
	}
}

} // namespace
} // namespace shca_test
