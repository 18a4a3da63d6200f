// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A completion queue: the ring's consumer end, its lock, ibv_poll_cq() and the
// functions behind ibv_cq_ex.
//
// Locking: the lock covers the ring and the current completion. ibv_cq_ex holds
// it from a successful start_poll() to end_poll(). A queue that its owner
// declared single-threaded is not locked.
#include "completion.hpp"
#include "core.h"
#include "ring.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

struct shca_cq {
	shca_cq(const shca_ring_map &map, bool single_threaded)
		: ring(map), single_threaded(single_threaded)
	{
	}

	// A BasicLockable, like the lock that it may leave out.
	void lock()
	{
		if (!single_threaded) {
			spin.lock();
		}
	}
	void unlock()
	{
		if (!single_threaded) {
			spin.unlock();
		}
	}

	// Copies entry index out of the ring and into wc. 0, ENOENT when it is not
	// there yet, EIO when the ring's indexes cannot be true.
	int read(std::uint32_t index, ibv_wc &wc)
	{
		switch (ring.at(index)) {
		case shca::ConsumerRing::Fill::none:
			return ENOENT;
		case shca::ConsumerRing::Fill::corrupt:
			return EIO;
		case shca::ConsumerRing::Fill::some:
			break;
		}
		shca::wire::Cqe cqe;
		std::memcpy(&cqe, ring.slot(index), sizeof(cqe));
		wc = shca::translate(cqe);
		return 0;
	}

	// Moves what is kept up to the newer end, then gives up the slots before it.
	// Those between the two indexes are the consumer's to write.
	void forget(std::uint32_t qp_num)
	{
		const std::uint32_t first = ring.next();
		std::uint32_t end = first;
		while (ring.at(end) == shca::ConsumerRing::Fill::some) {
			++end;
		}
		std::uint32_t kept = end;
		for (std::uint32_t index = end; index != first;) {
			--index;
			shca::wire::Cqe cqe;
			std::memcpy(&cqe, ring.slot(index), sizeof(cqe));
			if (cqe.qp_num != qp_num) {
				--kept;
				std::memcpy(ring.slot(kept), &cqe, sizeof(cqe));
			}
		}
		if (kept != first) {
			ring.retire(kept);
		}
	}

	shca::ConsumerRing ring;
	shca::SpinLock spin;
	const bool single_threaded;

	// ibv_cq_ex: the completion that the iterator stands on, and its index.
	ibv_wc current{};
	std::uint32_t cursor = 0;
};

namespace shca
{
namespace
{

shca_cq &core_of(ibv_cq *cq)
{
	return *(reinterpret_cast<shca_cq_link *>(cq) - 1)->core;
}

// The extended object begins as the plain one does.
shca_cq &core_of(ibv_cq_ex *cq)
{
	return core_of(ibv_cq_ex_to_cq(cq));
}

const ibv_wc &current(ibv_cq_ex *cq)
{
	return core_of(cq).current;
}

int show(ibv_cq_ex &cq, shca_cq &core)
{
	int error = core.read(core.cursor, core.current);
	if (error == 0) {
		cq.wr_id = core.current.wr_id;
		cq.status = core.current.status;
	}
	return error;
}

int start_poll(ibv_cq_ex *cq, ibv_poll_cq_attr *attr)
{
	if (attr->comp_mask != 0) {
		return EINVAL;
	}
	shca_cq &core = core_of(cq);
	core.lock();
	core.cursor = core.ring.next();
	int error = show(*cq, core);
	if (error != 0) {
		core.unlock();
	}
	return error;
}

// Leaves the iterator where it is when there is nothing further: the completion
// that was shown last is still retired by end_poll().
int next_poll(ibv_cq_ex *cq)
{
	shca_cq &core = core_of(cq);
	++core.cursor;
	int error = show(*cq, core);
	if (error != 0) {
		--core.cursor;
	}
	return error;
}

void end_poll(ibv_cq_ex *cq)
{
	shca_cq &core = core_of(cq);
	core.ring.retire(core.cursor + 1);
	core.unlock();
}

struct Field {
	std::uint64_t flag; // enum ibv_create_cq_wc_flags
	void (*install)(ibv_cq_ex &cq);
};

// The last three say nothing on Ethernet and read 0, as ibv_poll_cq() gives them;
// they are here because IBV_WC_STANDARD_FLAGS asks for them.
constexpr Field kFields[] = {
	{IBV_WC_EX_WITH_BYTE_LEN,
	 [](ibv_cq_ex &cq) {
		 cq.read_byte_len = [](ibv_cq_ex *self) { return current(self).byte_len; };
	 }},
	{IBV_WC_EX_WITH_IMM,
	 [](ibv_cq_ex &cq) {
		 cq.read_imm_data = [](ibv_cq_ex *self) { return current(self).imm_data; };
	 }},
	{IBV_WC_EX_WITH_QP_NUM,
	 [](ibv_cq_ex &cq) {
		 cq.read_qp_num = [](ibv_cq_ex *self) { return current(self).qp_num; };
	 }},
	{IBV_WC_EX_WITH_SRC_QP,
	 [](ibv_cq_ex &cq) {
		 cq.read_src_qp = [](ibv_cq_ex *self) { return current(self).src_qp; };
	 }},
	{IBV_WC_EX_WITH_SLID,
	 [](ibv_cq_ex &cq) {
		 cq.read_slid = [](ibv_cq_ex *self) -> uint32_t { return current(self).slid; };
	 }},
	{IBV_WC_EX_WITH_SL,
	 [](ibv_cq_ex &cq) { cq.read_sl = [](ibv_cq_ex *self) { return current(self).sl; }; }},
	{IBV_WC_EX_WITH_DLID_PATH_BITS,
	 [](ibv_cq_ex &cq) {
		 cq.read_dlid_path_bits = [](ibv_cq_ex *self) {
			 return current(self).dlid_path_bits;
		 };
	 }},
};

} // namespace
} // namespace shca

shca_cq *shca_core_cq_create(const shca_ring_map *map, bool single_threaded)
{
	if (map->entries == 0 || !shca_ring_is_sound(map, sizeof(shca::wire::Cqe), 0)) {
		errno = EPROTO;
		return nullptr;
	}
	void *memory = std::malloc(sizeof(shca_cq));
	return memory != nullptr ? new (memory) shca_cq(*map, single_threaded) : nullptr;
}

void shca_core_cq_destroy(shca_cq *cq)
{
	cq->~shca_cq();
	std::free(cq);
}

int shca_core_poll_cq(ibv_cq *cq, int num_entries, ibv_wc *wc)
{
	shca_cq &core = shca::core_of(cq);
	std::lock_guard guard(core);
	std::uint32_t index = core.ring.next();
	int found = 0;
	int error = 0;

	for (; found < num_entries; ++found, ++index) {
		error = core.read(index, wc[found]);
		if (error != 0) {
			break;
		}
	}
	if (found != 0) {
		core.ring.retire(index);
		return found;
	}
	return error == EIO ? -EIO : 0;
}

void shca_core_cq_forget(ibv_cq *cq, uint32_t qp_num)
{
	shca_cq &core = shca::core_of(cq);
	std::lock_guard guard(core);
	core.forget(qp_num);
}

int shca_core_check_wc_flags(uint64_t wc_flags)
{
	for (const auto &field : shca::kFields) {
		wc_flags &= ~field.flag;
	}
	return wc_flags == 0 ? 0 : EOPNOTSUPP;
}

void shca_core_set_poll_ops(ibv_cq_ex *cq, uint64_t wc_flags)
{
	cq->start_poll = shca::start_poll;
	cq->next_poll = shca::next_poll;
	cq->end_poll = shca::end_poll;
	cq->read_opcode = [](ibv_cq_ex *self) { return shca::current(self).opcode; };
	cq->read_vendor_err = [](ibv_cq_ex *self) { return shca::current(self).vendor_err; };
	cq->read_wc_flags = [](ibv_cq_ex *self) { return shca::current(self).wc_flags; };
	for (const auto &field : shca::kFields) {
		if ((wc_flags & field.flag) != 0) {
			field.install(*cq);
		}
	}
}
