// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Rings under real concurrency: a thread plays the driver with the memory order
// that the ABI gives it. Worth most under ThreadSanitizer, which sees a missing
// acquire or release that this processor forgives.
#include "fixture.hpp"

#include <atomic>
#include <cerrno>
#include <thread>

namespace shca_test
{
namespace
{

std::uint32_t acquire(std::uint32_t &shared)
{
	return std::atomic_ref(shared).load(std::memory_order_acquire);
}

void release(std::uint32_t &shared, std::uint32_t value)
{
	std::atomic_ref(shared).store(value, std::memory_order_release);
}

TEST(Threads, TwoPostersLoseNoRequestAndTheDriverSeesOnlyWholeEntries)
{
	constexpr std::uint64_t kEach = 20000;
	TestQp qp({.entries = 16, .first_index = 0xffffff00});
	auto post = [&](std::uint64_t poster) {
		for (std::uint64_t i = 1; i <= kEach; ++i) {
			ibv_sge sge{poster << 32 | i, static_cast<std::uint32_t>(i), 7};
			ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, poster << 32 | i);
			wr.sg_list = &sge;
			wr.num_sge = 1;
			wr.wr.rdma.remote_addr = i;
			ibv_send_wr *bad = nullptr;
			int error = 0;
			while ((error = shca_core_post_send(qp.qp(), &wr, &bad)) == ENOMEM) {
				std::this_thread::yield();
			}
			ASSERT_EQ(error, 0);
		}
	};
	std::uint64_t last[2] = {0, 0};
	bool whole = true;
	std::thread driver([&] {
		std::uint32_t index = 0xffffff00;
		while (last[0] < kEach || last[1] < kEach) {
			std::uint32_t producer = acquire(qp.sq.header().producer);
			if (index == producer) {
				std::this_thread::yield();
				continue;
			}
			auto id = qp.sq.read<std::uint64_t>(index);
			std::uint64_t poster = id >> 32;
			std::uint64_t number = id & 0xffffffff;
			whole = whole && poster < 2 && number == last[poster] + 1 &&
				qp.sq.read<std::uint64_t>(index, 32) == number &&
				qp.sq.read<std::uint64_t>(index, 64) == id &&
				qp.sq.read<std::uint32_t>(index, 72) == number;
			if (poster >= 2) {
				return;
			}
			last[poster] = number;
			release(qp.sq.header().consumer, ++index);
		}
	});
	std::thread one(post, 0);
	std::thread two(post, 1);
	one.join();
	two.join();
	driver.join();
	EXPECT_TRUE(whole) << "an entry was seen half-written, twice, or out of order";
	EXPECT_EQ(last[0], kEach);
	EXPECT_EQ(last[1], kEach);
}

TEST(Threads, TwoPollersShareOutEveryCompletionOnce)
{
	constexpr std::uint64_t kAll = 40000;
	TestCq cq(16, 0xffffff00);
	std::atomic<std::uint64_t> found = 0;
	std::atomic<std::uint64_t> sum = 0;
	std::atomic<bool> whole = true;
	auto poll = [&] {
		std::uint64_t last = 0;
		while (found < kAll) {
			ibv_wc wc[3];
			int count = cq.poll(3, wc);
			ASSERT_GE(count, 0);
			if (count == 0) {
				std::this_thread::yield();
			}
			for (int i = 0; i < count; ++i) {
				whole = whole && wc[i].wr_id > last &&
					wc[i].byte_len == static_cast<std::uint32_t>(wc[i].wr_id);
				last = wc[i].wr_id;
				sum += wc[i].wr_id;
			}
			found += static_cast<std::uint64_t>(count);
		}
	};
	std::thread driver([&] {
		std::uint32_t index = 0xffffff00;
		for (std::uint64_t id = 1; id <= kAll; ++id) {
			while (index - acquire(cq.ring.header().consumer) >= 16) {
				std::this_thread::yield();
			}
			shca_cqe entry{};
			entry.wr_id = id;
			entry.byte_len = static_cast<std::uint32_t>(id);
			std::memcpy(cq.ring.entry(index), &entry, sizeof(entry));
			release(cq.ring.header().producer, ++index);
		}
	});
	std::thread one(poll);
	std::thread two(poll);
	driver.join();
	one.join();
	two.join();
	EXPECT_EQ(found, kAll);
	EXPECT_EQ(sum, kAll * (kAll + 1) / 2);
	EXPECT_TRUE(whole) << "a completion was torn or came out of order";
}

// Waits for the other thread's turn to end. Gives the processor away when that
// takes long: there may be only one.
void wait_for(const std::atomic<int> &turn, int value)
{
	for (int spins = 0; turn.load() < value; ++spins) {
		if (spins > 2000) {
			std::this_thread::yield();
		}
	}
}

void delay(int steps)
{
	while (steps-- > 0) {
		std::atomic_signal_fence(std::memory_order_seq_cst);
	}
}

// The driver leaves the states in which it looks by itself: it sets the flag,
// then reads the index. The poster moves the index, then reads the flag. What is
// posted is seen by one of the two in every run. The delay sweeps the two across
// each other, because the window in which both can miss is a few nanoseconds.
TEST(Threads, AReceivePostedWhileTheFlagIsSetIsSeenByOneSide)
{
	constexpr int kRuns = 60000;
	TestQp qp({.entries = 4});
	std::atomic<int> turn = 0;
	std::atomic<bool> driver_saw = false;
	std::thread driver([&] {
		for (int run = 1; run <= kRuns; ++run) {
			wait_for(turn, 2 * run - 1);
			std::uint32_t consumer = acquire(qp.rq.header().consumer);
			std::atomic_ref(qp.rq.header().flags)
				.store(SHCA_RING_DOORBELL, std::memory_order_relaxed);
			std::atomic_thread_fence(std::memory_order_seq_cst);
			driver_saw = acquire(qp.rq.header().producer) != consumer;
			turn.store(2 * run);
		}
	});
	int missed = 0;
	int both = 0;
	for (int run = 1; run <= kRuns; ++run) {
		std::atomic_ref(qp.rq.header().flags).store(0);
		qp.recv_doorbells = 0;
		turn.store(2 * run - 1);
		delay(run % 1024);
		ibv_recv_wr wr{};
		ASSERT_EQ(qp.recv(&wr), 0);
		wait_for(turn, 2 * run);
		missed += qp.recv_doorbells == 0 && !driver_saw ? 1 : 0;
		both += qp.recv_doorbells != 0 && driver_saw ? 1 : 0;
		release(qp.rq.header().consumer, acquire(qp.rq.header().producer));
	}
	driver.join();
	EXPECT_EQ(missed, 0) << "of " << kRuns << " receives";
	RecordProperty("seen_by_both", both);
}

} // namespace
} // namespace shca_test
