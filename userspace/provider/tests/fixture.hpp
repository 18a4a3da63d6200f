// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Stands in for the shim and the driver: verbs objects laid out as the shim lays
// them out, rings in ordinary memory with a page behind them that nobody may
// touch, doorbells that are counted. Never includes a part of the core but its
// C interface: what the tests look at is what the driver would see.
#ifndef SHCA_TESTS_FIXTURE_HPP
#define SHCA_TESTS_FIXTURE_HPP

#include "core.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <infiniband/gift.h>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace shca_test
{

// What a slot holds before anything is written to it.
constexpr std::uint8_t kGarbage = 0xa5;

class RingMemory
{
public:
	// The ring ends where a page begins that faults.
	RingMemory(std::uint32_t entries, std::uint32_t stride, std::uint32_t first_index = 0)
		: entries_(entries), stride_(stride)
	{
		const std::size_t page = sysconf(_SC_PAGESIZE);
		length_ = SHCA_RING_ENTRIES_OFFSET + std::size_t{entries} * stride;
		mapped_ = (length_ + page - 1) / page * page + page;
		void *base = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (base == MAP_FAILED) {
			abort();
		}
		base_ = static_cast<std::uint8_t *>(base);
		if (mprotect(base_ + mapped_ - page, page, PROT_NONE) != 0) {
			abort();
		}
		start_ = base_ + mapped_ - page - length_;
		std::memset(start_, 0, SHCA_RING_ENTRIES_OFFSET);
		std::memset(slot(0), kGarbage, length_ - SHCA_RING_ENTRIES_OFFSET);
		header().producer = first_index;
		header().consumer = first_index;
	}
	~RingMemory() { munmap(base_, mapped_); }
	RingMemory(const RingMemory &) = delete;
	RingMemory &operator=(const RingMemory &) = delete;

	shca_ring_hdr &header() { return *reinterpret_cast<shca_ring_hdr *>(start_); }
	std::uint8_t *slot(std::uint32_t number)
	{
		return start_ + SHCA_RING_ENTRIES_OFFSET + std::size_t{number} * stride_;
	}
	// The slot of an index that runs freely.
	std::uint8_t *entry(std::uint32_t index) { return slot(index % entries_); }
	template <typename T>
	T read(std::uint32_t index, std::size_t offset = 0)
	{
		T value;
		std::memcpy(&value, entry(index) + offset, sizeof(value));
		return value;
	}
	shca_ring_map map() const
	{
		return {start_, static_cast<std::uint32_t>(length_), entries_, stride_};
	}
	std::vector<std::uint8_t> snapshot() const { return {start_, start_ + length_}; }

private:
	std::uint32_t entries_;
	std::uint32_t stride_;
	std::size_t length_ = 0;
	std::size_t mapped_ = 0;
	std::uint8_t *base_ = nullptr;
	std::uint8_t *start_ = nullptr;
};

struct QpOptions {
	std::uint32_t entries = 8;
	std::uint32_t max_send_sge = 4;
	std::uint32_t max_recv_sge = 3;
	std::uint32_t max_inline = 64;
	std::uint32_t first_index = 0;
	std::uint64_t device_caps = SHCA_CAP_SEND_W_INV;
	std::uint64_t send_ops = 0;
	bool sq_sig_all = false;
	ibv_qp_type type = IBV_QPT_RC;
	ibv_qp_state state = IBV_QPS_RTS;
};

// A queue pair and the driver's end of its rings.
class TestQp
{
public:
	explicit TestQp(const QpOptions &options = {})
		: sq(options.entries, SHCA_SEND_WQE_SIZE + 64, options.first_index),
		  rq(options.entries, SHCA_RECV_WQE_SIZE + 48, options.first_index)
	{
		static const shca_doorbells doorbells = {send_doorbell, recv_doorbell};
		shca_qp_config config{};
		config.qp = qp();
		config.doorbells = &doorbells;
		config.sq = sq.map();
		config.rq = rq.map();
		config.cap.max_send_wr = options.entries;
		config.cap.max_recv_wr = options.entries;
		config.cap.max_send_sge = options.max_send_sge;
		config.cap.max_recv_sge = options.max_recv_sge;
		config.cap.max_inline_data = options.max_inline;
		config.device_caps = options.device_caps;
		config.sq_sig_all = options.sq_sig_all;
		object_.self = this;
		object_.link.core = shca_core_qp_create(&config);
		if (object_.link.core == nullptr) {
			abort();
		}
		qp()->state = options.state;
		qp()->qp_type = options.type;
		if (options.send_ops != 0) {
			shca_core_set_send_ops(ex(), options.send_ops);
		}
	}
	~TestQp() { shca_core_qp_destroy(object_.link.core); }
	TestQp(const TestQp &) = delete;
	TestQp &operator=(const TestQp &) = delete;

	ibv_qp *qp() { return &object_.ex.qp_base; }
	ibv_qp_ex *ex() { return &object_.ex; }

	int send(ibv_send_wr *wr)
	{
		bad_send = nullptr;
		return shca_core_post_send(qp(), wr, &bad_send);
	}
	int send(ibv_send_wr wr) { return send(&wr); }
	int recv(ibv_recv_wr *wr)
	{
		bad_recv = nullptr;
		return shca_core_post_recv(qp(), wr, &bad_recv);
	}

	// What the driver does with send entries: take all that are there.
	void consume_sends() { sq.header().consumer = sq.header().producer; }

	RingMemory sq;
	RingMemory rq;
	ibv_send_wr *bad_send = nullptr;
	ibv_recv_wr *bad_recv = nullptr;
	std::atomic<int> send_doorbells = 0; // posters may be threads
	std::atomic<int> recv_doorbells = 0;
	int doorbell_error = 0;
	std::function<void()> on_doorbell = [] {};

private:
	struct Object {
		TestQp *self;
		shca_qp_link link;
		ibv_qp_ex ex;
		std::array<std::uint8_t, SHCA_QP_EX_TAIL> tail;
	};
	static_assert(offsetof(Object, ex) == offsetof(Object, link) + sizeof(shca_qp_link));

	static TestQp &from(ibv_qp *qp)
	{
		auto *bytes = reinterpret_cast<std::uint8_t *>(qp) - offsetof(Object, ex);
		return *reinterpret_cast<Object *>(bytes)->self;
	}
	static int ring(ibv_qp *qp, std::atomic<int> TestQp::*counter)
	{
		TestQp &test = from(qp);
		++(test.*counter);
		test.on_doorbell();
		return test.doorbell_error;
	}
	static int send_doorbell(ibv_qp *qp) { return ring(qp, &TestQp::send_doorbells); }
	static int recv_doorbell(ibv_qp *qp) { return ring(qp, &TestQp::recv_doorbells); }

	Object object_{};
};

// A completion queue and the driver's end of its ring.
class TestCq
{
public:
	explicit TestCq(std::uint32_t entries = 4, std::uint32_t first_index = 0,
			bool single_threaded = false)
		: ring(entries, SHCA_CQE_SIZE, first_index)
	{
		shca_ring_map map = ring.map();
		object_.link.core = shca_core_cq_create(&map, single_threaded);
		if (object_.link.core == nullptr) {
			abort();
		}
	}
	~TestCq() { shca_core_cq_destroy(object_.link.core); }
	TestCq(const TestCq &) = delete;
	TestCq &operator=(const TestCq &) = delete;

	ibv_cq *cq() { return ibv_cq_ex_to_cq(&object_.ex); }
	ibv_cq_ex *ex() { return &object_.ex; }

	// What the driver does: entry first, index after it.
	void complete(const shca_cqe &cqe)
	{
		std::memcpy(ring.entry(ring.header().producer), &cqe, sizeof(cqe));
		++ring.header().producer;
	}
	int poll(int count, ibv_wc *wc) { return shca_core_poll_cq(cq(), count, wc); }

	RingMemory ring;

private:
	struct Object {
		shca_cq_link link;
		ibv_cq_ex ex;
	};
	Object object_{};
};

// The opcode may be one that the verbs do not name, as a C program can pass.
inline ibv_send_wr send_wr(std::uint32_t opcode, std::uint64_t wr_id = 1)
{
	ibv_send_wr wr{};
	static_assert(sizeof(wr.opcode) == sizeof(opcode));
	std::memcpy(&wr.opcode, &opcode, sizeof(opcode));
	wr.wr_id = wr_id;
	return wr;
}

} // namespace shca_test

#endif // SHCA_TESTS_FIXTURE_HPP
