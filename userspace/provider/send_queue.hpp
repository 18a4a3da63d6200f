// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A send queue: the ring's producer end, its lock, and the two ways of posting,
// a list at once (ibv_post_send) or a batch step by step (ibv_qp_ex).
//
// Locking: lock_ covers the ring and the batch. ibv_qp_ex holds it from start()
// to complete() or abort(). The doorbell is rung after it is released, because
// the driver may work in the caller's context.
#ifndef SHCA_SEND_QUEUE_HPP
#define SHCA_SEND_QUEUE_HPP

#include "ring.hpp"
#include "send_ops.hpp"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

namespace shca
{

class SendQueue
{
public:
	explicit SendQueue(const shca_qp_config &config);

	// Posts what comes before the first request that is refused, and names that
	// one in bad_wr.
	int post(ibv_send_wr *wr, ibv_send_wr **bad_wr);
	int bind(ibv_mw *mw, const ibv_mw_bind &request);

	// ibv_qp_ex. The first error of a batch sticks until complete() returns it.
	void start();
	void add(std::uint32_t opcode, const SendRequest &request);
	void set_sges(std::span<const ibv_sge> sges);
	void set_inline(std::span<const ibv_data_buf> buffers);
	int complete();
	void abort();

private:
	// What wr_bind_mw() changed in a window, for a batch that comes to nothing.
	struct RenamedWindow {
		ibv_mw *mw;
		std::uint32_t old_rkey;
	};
	struct Free {
		void operator()(void *memory) const { std::free(memory); }
	};
	struct Batch {
		std::uint32_t end; // index behind the last entry
		wire::SendWqe wqe; // the last entry, as long as data may be added
		bool wants_data;
		unsigned flags;        // that its operation may carry
		std::uint32_t renamed; // used part of renamed_
		int error;
	};

	int build(std::uint32_t index, std::uint32_t opcode, const SendRequest &request,
		  const SendOp *&op, wire::SendWqe &wqe);
	int post_one(std::uint32_t index, const ibv_send_wr &wr);
	int put_sges(std::uint32_t index, wire::SendWqe &wqe, std::span<const ibv_sge> sges);
	template <typename Buffer>
	int put_inline(std::uint32_t index, wire::SendWqe &wqe, std::span<const Buffer> buffers);
	void store(std::uint32_t index, const wire::SendWqe &wqe);
	int remember(ibv_mw *mw);
	template <typename Put>
	void set_data(unsigned needed_flag, Put put);
	void forget_batch();

	ibv_qp *qp_;
	const shca_doorbells *doorbells_;
	ProducerRing ring_;
	SpinLock lock_;
	std::uint64_t device_caps_;
	std::uint32_t max_sge_;
	std::uint32_t max_inline_;
	std::uint32_t always_flags_; // enum shca_send_flags
	Batch batch_{};
	std::unique_ptr<RenamedWindow[], Free> renamed_;
};

} // namespace shca

#endif // SHCA_SEND_QUEUE_HPP
