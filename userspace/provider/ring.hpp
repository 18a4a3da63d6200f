// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The two ends of a ring that is shared with the driver: indexes, slots and
// memory order. Knows nothing of what an entry means.
//
// Trust: an end believes its own copy of its own index. What it reads from the
// shared memory only ever decides between "room" and "full" or "some" and
// "none"; no value found there leads outside the mapping.
#ifndef SHCA_RING_HPP
#define SHCA_RING_HPP

#include "core.h"
#include "wire.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <pthread.h>

namespace shca
{

// A BasicLockable, for std::lock_guard.
class SpinLock
{
public:
	SpinLock() { pthread_spin_init(&lock_, PTHREAD_PROCESS_PRIVATE); }
	~SpinLock() { pthread_spin_destroy(&lock_); }
	SpinLock(const SpinLock &) = delete;
	SpinLock &operator=(const SpinLock &) = delete;
	void lock() { pthread_spin_lock(&lock_); }
	void unlock() { pthread_spin_unlock(&lock_); }

private:
	pthread_spinlock_t lock_{};
};

class Ring
{
public:
	explicit Ring(const shca_ring_map &map)
		: header_(static_cast<wire::RingHeader *>(map.base)),
		  slots_(static_cast<std::byte *>(map.base) + SHCA_RING_ENTRIES_OFFSET),
		  entries_(map.entries), stride_(map.stride)
	{
	}

	std::uint32_t entries() const { return entries_; }

	// Only for a ring that has entries.
	std::byte *slot(std::uint32_t index) const
	{
		return slots_ + std::size_t{index & (entries_ - 1)} * stride_;
	}

protected:
	static std::uint32_t acquire(std::uint32_t &shared)
	{
		return std::atomic_ref(shared).load(std::memory_order_acquire);
	}
	static void release(std::uint32_t &shared, std::uint32_t value)
	{
		std::atomic_ref(shared).store(value, std::memory_order_release);
	}

	wire::RingHeader *header_;

private:
	std::byte *slots_;
	std::uint32_t entries_;
	std::uint32_t stride_;
};

// The provider's end of a send or receive ring. Entries are written at
// next(), next() + 1, ... and become visible to the driver with publish().
class ProducerRing : public Ring
{
public:
	explicit ProducerRing(const shca_ring_map &map) : Ring(map)
	{
		if (entries() != 0) {
			next_ = acquire(header_->producer);
			consumer_ = acquire(header_->consumer);
		}
	}

	std::uint32_t next() const { return next_; }

	// Whether there is no slot for entry index, which is next() or later. The
	// driver's index is looked at only when the last known one leaves no room.
	// A distance above the ring's size cannot be true and counts as full.
	bool full(std::uint32_t index)
	{
		if (entries() == 0) {
			return true;
		}
		if (index - consumer_ < entries()) {
			return false;
		}
		consumer_ = acquire(header_->consumer);
		return index - consumer_ >= entries();
	}

	// Hands everything before index to the driver.
	void publish(std::uint32_t index)
	{
		next_ = index;
		release(header_->producer, index);
	}

	// Whether the driver wants a doorbell for what was published. The full
	// barrier keeps this read behind the index's write: the driver sets the flag
	// before it reads the index, so one of the two sees the other.
	bool wants_doorbell() const
	{
		std::atomic_thread_fence(std::memory_order_seq_cst);
		auto flags = std::atomic_ref(header_->flags).load(std::memory_order_relaxed);
		return (flags & SHCA_RING_DOORBELL) != 0;
	}

private:
	std::uint32_t next_ = 0;
	std::uint32_t consumer_ = 0;
};

// The provider's end of a completion ring.
class ConsumerRing : public Ring
{
public:
	enum class Fill { none, some, corrupt };

	explicit ConsumerRing(const shca_ring_map &map)
		: Ring(map), next_(acquire(header_->consumer)), producer_(next_)
	{
	}

	std::uint32_t next() const { return next_; }

	// Whether the driver has written entry index, which is next() or later, but
	// no further than the first one found missing.
	Fill at(std::uint32_t index)
	{
		if (index == producer_) {
			producer_ = acquire(header_->producer);
		}
		std::uint32_t written = producer_ - next_;
		std::uint32_t taken = index - next_;
		if (written > entries() || written < taken) {
			producer_ = index;
			return Fill::corrupt;
		}
		return written == taken ? Fill::none : Fill::some;
	}

	// Gives every slot before index back to the driver.
	void retire(std::uint32_t index)
	{
		next_ = index;
		release(header_->consumer, index);
	}

private:
	std::uint32_t next_;
	std::uint32_t producer_;
};

} // namespace shca

#endif // SHCA_RING_HPP
