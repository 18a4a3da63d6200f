// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The ends of a ring: wrap, full and empty, memory that lies, and which
// descriptions of a ring are believed.
#include "fixture.hpp"
#include "ring.hpp"

#include <cerrno>

namespace shca_test
{
namespace
{

using Fill = shca::ConsumerRing::Fill;

TEST(ProducerRing, TakesAsManyEntriesAsItHasSlots)
{
	RingMemory memory(4, 64);
	shca::ProducerRing ring(memory.map());
	for (std::uint32_t i = 0; i < 4; ++i) {
		EXPECT_FALSE(ring.full(i)) << i;
	}
	EXPECT_TRUE(ring.full(4));
}

TEST(ProducerRing, HasRoomAgainWhenTheDriverMovesOn)
{
	RingMemory memory(4, 64);
	shca::ProducerRing ring(memory.map());
	ring.publish(4);
	ASSERT_TRUE(ring.full(4));
	memory.header().consumer = 1;
	EXPECT_FALSE(ring.full(4));
	EXPECT_TRUE(ring.full(5));
}

TEST(ProducerRing, SlotsFollowTheIndexAcrossItsOverflow)
{
	const std::uint32_t first = 0xfffffffe;
	RingMemory memory(4, 64, first);
	shca::ProducerRing ring(memory.map());
	EXPECT_EQ(ring.next(), first);
	for (std::uint32_t i = 0; i < 4; ++i) {
		EXPECT_FALSE(ring.full(first + i)) << i;
		EXPECT_EQ(reinterpret_cast<std::uint8_t *>(ring.slot(first + i)),
			  memory.slot((2 + i) % 4))
			<< i;
	}
	EXPECT_TRUE(ring.full(first + 4));
	ring.publish(first + 4);
	EXPECT_EQ(memory.header().producer, 2U);
	memory.header().consumer = 0;
	EXPECT_FALSE(ring.full(2));
	EXPECT_FALSE(ring.full(3));
	EXPECT_TRUE(ring.full(4));
}

TEST(ProducerRing, AConsumerIndexThatCannotBeTrueCountsAsFull)
{
	for (std::uint32_t lie : {5U, 6U, 0x80000000U, 0xfffffff0U, 0xffffffffU}) {
		RingMemory memory(4, 64);
		shca::ProducerRing ring(memory.map());
		ring.publish(4);
		memory.header().consumer = lie;
		EXPECT_TRUE(ring.full(4)) << lie;
		memory.header().consumer = 2;
		EXPECT_FALSE(ring.full(4)) << "does not recover from " << lie;
	}
}

TEST(ProducerRing, WithoutEntriesIsAlwaysFull)
{
	shca::ProducerRing ring(shca_ring_map{nullptr, 0, 0, 0});
	EXPECT_TRUE(ring.full(0));
}

TEST(ProducerRing, WantsADoorbellOnlyWhileTheFlagIsSet)
{
	RingMemory memory(4, 64);
	shca::ProducerRing ring(memory.map());
	EXPECT_FALSE(ring.wants_doorbell());
	memory.header().flags = SHCA_RING_DOORBELL;
	EXPECT_TRUE(ring.wants_doorbell());
	memory.header().flags = ~std::uint32_t{SHCA_RING_DOORBELL};
	EXPECT_FALSE(ring.wants_doorbell());
}

TEST(ConsumerRing, SeesEntriesAcrossTheOverflowOfTheIndex)
{
	const std::uint32_t first = 0xffffffff;
	RingMemory memory(4, 64, first);
	shca::ConsumerRing ring(memory.map());
	EXPECT_EQ(ring.at(first), Fill::none);
	memory.header().producer = first + 2;
	EXPECT_EQ(ring.at(first), Fill::some);
	EXPECT_EQ(ring.at(first + 1), Fill::some);
	EXPECT_EQ(ring.at(first + 2), Fill::none);
	ring.retire(first + 2);
	EXPECT_EQ(memory.header().consumer, 1U);
	EXPECT_EQ(ring.at(1), Fill::none);
}

TEST(ConsumerRing, AProducerIndexThatCannotBeTrueIsCorrupt)
{
	for (std::uint32_t lie : {5U, 0x7fffffffU, 0xffffffffU}) {
		RingMemory memory(4, 64);
		shca::ConsumerRing ring(memory.map());
		memory.header().producer = lie;
		EXPECT_EQ(ring.at(0), Fill::corrupt) << lie;
		memory.header().producer = 1;
		EXPECT_EQ(ring.at(0), Fill::some) << "does not recover from " << lie;
	}
}

TEST(ConsumerRing, AProducerIndexThatGoesBackIsCorrupt)
{
	RingMemory memory(4, 64);
	shca::ConsumerRing ring(memory.map());
	memory.header().producer = 2;
	ASSERT_EQ(ring.at(0), Fill::some);
	ASSERT_EQ(ring.at(1), Fill::some);
	memory.header().producer = 1;
	EXPECT_EQ(ring.at(2), Fill::corrupt);
}

struct Soundness {
	const char *why;
	shca_ring_map map;
	bool sound;
};

TEST(RingMap, IsBelievedOnlyWhenItFitsItsMapping)
{
	alignas(8) static char memory[8];
	const Soundness cases[] = {
		{"fits exactly", {memory, 256 + 4 * 128, 4, 128}, true},
		{"has room to spare", {memory, 8192, 4, 128}, true},
		{"does not exist", {nullptr, 0, 0, 0}, true},
		{"is not mapped", {nullptr, 8192, 4, 128}, false},
		{"is one byte short", {memory, 256 + 4 * 128 - 1, 4, 128}, false},
		{"is shorter than its header", {memory, 255, 1, 128}, false},
		{"has three entries", {memory, 8192, 3, 128}, false},
		{"has a stride too small for the payload", {memory, 8192, 4, 120}, false},
		{"has a stride smaller than the header", {memory, 8192, 4, 56}, false},
		{"has stride 0", {memory, 8192, 4, 0}, false},
		{"has a stride that is not aligned", {memory, 8192, 4, 132}, false},
		{"overflows 32 bits", {memory, 8192, 0x80000000, 128}, false},
	};
	for (const auto &[why, map, sound] : cases) {
		EXPECT_EQ(shca_ring_is_sound(&map, 64, 64), sound) << "a ring that " << why;
	}
}

shca_qp_config sound_config(RingMemory &sq, RingMemory &rq, ibv_qp &qp)
{
	shca_qp_config config{};
	config.qp = &qp;
	config.sq = sq.map();
	config.rq = rq.map();
	config.cap = {.max_send_wr = 4,
		      .max_recv_wr = 4,
		      .max_send_sge = 2,
		      .max_recv_sge = 2,
		      .max_inline_data = 32};
	return config;
}

TEST(QpCreate, RefusesRingsThatDoNotHoldWhatTheQueuePairPromises)
{
	RingMemory sq(4, SHCA_SEND_WQE_SIZE + 32);
	RingMemory rq(4, SHCA_RECV_WQE_SIZE + 32);
	ibv_qp qp{};
	auto refused = [](const shca_qp_config &config) {
		errno = 0;
		shca_qp *core = shca_core_qp_create(&config);
		if (core != nullptr) {
			shca_core_qp_destroy(core);
		}
		return core == nullptr && errno == EPROTO;
	};
	const shca_qp_config sound = sound_config(sq, rq, qp);
	EXPECT_FALSE(refused(sound));

	shca_qp_config config = sound;
	config.cap.max_send_sge = 3;
	EXPECT_TRUE(refused(config)) << "send scatter/gather list longer than a slot";
	config = sound;
	config.cap.max_inline_data = 33;
	EXPECT_TRUE(refused(config)) << "inline data longer than a slot";
	config = sound;
	config.cap.max_recv_sge = 3;
	EXPECT_TRUE(refused(config)) << "receive scatter list longer than a slot";
	config = sound;
	config.cap.max_send_sge = 0xffffffff;
	EXPECT_TRUE(refused(config)) << "a number of elements that overflows";
}

TEST(CqCreate, RefusesARingThatIsNotSound)
{
	RingMemory memory(4, SHCA_CQE_SIZE);
	shca_ring_map map = memory.map();
	for (std::uint32_t entries : {0U, 3U, 8U}) {
		shca_ring_map wrong = map;
		wrong.entries = entries;
		errno = 0;
		EXPECT_EQ(shca_core_cq_create(&wrong, false), nullptr) << entries;
		EXPECT_EQ(errno, EPROTO) << entries;
	}
	shca_ring_map wrong = map;
	wrong.stride = SHCA_CQE_SIZE - 8;
	EXPECT_EQ(shca_core_cq_create(&wrong, false), nullptr);
}

} // namespace
} // namespace shca_test
