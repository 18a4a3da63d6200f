// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Posting to a send queue. What an operation is stands in send_ops.cpp.
#include "send_queue.hpp"

#include "posting.hpp"

#include <cerrno>
#include <cstring>
#include <infiniband/gift.h>
#include <mutex>

namespace shca
{
namespace
{

struct Bytes {
	const void *data;
	std::size_t length;
};

Bytes bytes_of(const ibv_data_buf &buffer)
{
	return {buffer.addr, buffer.length};
}

// An inline request's scatter/gather list names the caller's own memory.
Bytes bytes_of(const ibv_sge &sge)
{
	return {reinterpret_cast<const void *>(static_cast<std::uintptr_t>(sge.addr)), sge.length};
}

// Whatever the program put there, not only values of the enumeration.
std::uint32_t opcode_of(const ibv_send_wr &wr)
{
	std::uint32_t opcode = 0;
	static_assert(sizeof(opcode) == sizeof(wr.opcode));
	std::memcpy(&opcode, &wr.opcode, sizeof(opcode));
	return opcode;
}

SendRequest request_of(const ibv_send_wr &wr)
{
	SendRequest request{.wr_id = wr.wr_id, .flags = wr.send_flags, .ex = wr.invalidate_rkey};

	if (opcode_of(wr) == IBV_WR_BIND_MW) {
		request.mw = wr.bind_mw.mw;
		request.new_rkey = wr.bind_mw.rkey;
		request.bind = &wr.bind_mw.bind_info;
	} else {
		request.remote_addr = wr.wr.rdma.remote_addr;
		request.rkey = wr.wr.rdma.rkey;
	}
	return request;
}

} // namespace

SendQueue::SendQueue(const shca_qp_config &config)
	: qp_(config.qp), doorbells_(config.doorbells), ring_(config.sq),
	  device_caps_(config.device_caps), max_sge_(config.cap.max_send_sge),
	  max_inline_(config.cap.max_inline_data),
	  always_flags_(config.sq_sig_all ? SHCA_SEND_SIGNALED : 0)
{
}

// Checks a request and builds its entry for slot index, without storing it.
int SendQueue::build(std::uint32_t index, std::uint32_t opcode, const SendRequest &request,
		     const SendOp *&op, wire::SendWqe &wqe)
{
	if (qp_->state < IBV_QPS_RTS) {
		return EINVAL;
	}
	int error = build_wqe(opcode, request, qp_->qp_type, device_caps_, op, wqe);
	if (error != 0) {
		return error;
	}
	wqe.flags |= always_flags_;
	return ring_.full(index) ? ENOMEM : 0;
}

void SendQueue::store(std::uint32_t index, const wire::SendWqe &wqe)
{
	std::memcpy(ring_.slot(index), &wqe, sizeof(wqe));
}

int SendQueue::put_sges(std::uint32_t index, wire::SendWqe &wqe, std::span<const ibv_sge> sges)
{
	if (sges.size() > max_sge_) {
		return EINVAL;
	}
	write_sges(ring_.slot(index) + sizeof(wqe), sges);
	wqe.num_sge = static_cast<std::uint32_t>(sges.size());
	return 0;
}

template <typename Buffer>
int SendQueue::put_inline(std::uint32_t index, wire::SendWqe &wqe, std::span<const Buffer> buffers)
{
	std::byte *start = ring_.slot(index) + sizeof(wqe);
	std::size_t used = 0;

	for (const auto &buffer : buffers) {
		Bytes bytes = bytes_of(buffer);
		if (bytes.length > max_inline_ - used) {
			return EINVAL;
		}
		if (bytes.length != 0) {
			std::memcpy(start + used, bytes.data, bytes.length);
		}
		used += bytes.length;
	}
	wqe.flags |= SHCA_SEND_INLINE;
	wqe.inline_length = static_cast<std::uint32_t>(used);
	return 0;
}

int SendQueue::post_one(std::uint32_t index, const ibv_send_wr &wr)
{
	// A negative number becomes one above every limit.
	if (static_cast<std::uint32_t>(wr.num_sge) > max_sge_) {
		return EINVAL;
	}
	SendRequest request = request_of(wr);
	const SendOp *op = nullptr;
	wire::SendWqe wqe;
	int error = build(index, opcode_of(wr), request, op, wqe);
	if (error != 0) {
		return error;
	}
	std::span<const ibv_sge> sges(wr.sg_list, static_cast<std::size_t>(wr.num_sge));
	if (!op->has_data && !sges.empty()) {
		return EINVAL;
	}
	error = (wr.send_flags & IBV_SEND_INLINE) != 0 ? put_inline(index, wqe, sges)
						       : put_sges(index, wqe, sges);
	if (error != 0) {
		return error;
	}
	if (request.bind != nullptr) {
		request.mw->rkey = request.new_rkey;
	}
	store(index, wqe);
	return 0;
}

int SendQueue::post(ibv_send_wr *wr, ibv_send_wr **bad_wr)
{
	return post_list(
		lock_, ring_, wr, bad_wr,
		[&](std::uint32_t index, const ibv_send_wr &one) { return post_one(index, one); },
		[&] { return doorbells_->send(qp_); });
}

int SendQueue::bind(ibv_mw *mw, const ibv_mw_bind &bind)
{
	SendRequest request{.wr_id = bind.wr_id,
			    .flags = bind.send_flags,
			    .mw = mw,
			    .new_rkey = ibv_inc_rkey(mw->rkey),
			    .mw_type = IBV_MW_TYPE_1,
			    .bind = &bind.bind_info};
	{
		std::lock_guard guard(lock_);
		const SendOp *op = nullptr;
		wire::SendWqe wqe;
		std::uint32_t index = ring_.next();
		int error = build(index, IBV_WR_BIND_MW, request, op, wqe);
		if (error != 0) {
			return error;
		}
		store(index, wqe);
		mw->rkey = request.new_rkey;
		ring_.publish(index + 1);
	}
	return doorbells_->send(qp_);
}

void SendQueue::start()
{
	lock_.lock();
	batch_ = {};
	batch_.end = ring_.next();
}

// Keeps a window's key for abort(). The room for it is made when the first
// window is bound this way: most queue pairs never need it.
int SendQueue::remember(ibv_mw *mw)
{
	if (!renamed_) {
		auto *room = std::calloc(ring_.entries(), sizeof(RenamedWindow));
		if (room == nullptr) {
			return ENOMEM;
		}
		renamed_.reset(static_cast<RenamedWindow *>(room));
	}
	renamed_[batch_.renamed++] = {.mw = mw, .old_rkey = mw->rkey};
	return 0;
}

void SendQueue::add(std::uint32_t opcode, const SendRequest &request)
{
	if (batch_.error != 0) {
		return;
	}
	// IBV_SEND_INVALIDATE takes its key from a struct ibv_send_wr; here is none.
	if ((request.flags & IBV_SEND_INVALIDATE) != 0) {
		batch_.error = EINVAL;
		return;
	}
	const SendOp *op = nullptr;
	batch_.error = build(batch_.end, opcode, request, op, batch_.wqe);
	if (batch_.error == 0 && request.bind != nullptr) {
		batch_.error = remember(request.mw);
	}
	if (batch_.error != 0) {
		return;
	}
	if (request.bind != nullptr) {
		request.mw->rkey = request.new_rkey;
	}
	batch_.wants_data = op->has_data;
	batch_.flags = op->flags;
	store(batch_.end, batch_.wqe);
	++batch_.end;
}

// Adds data to the last entry, once, and only where it has a meaning.
template <typename Put>
void SendQueue::set_data(unsigned needed_flag, Put put)
{
	if (batch_.error != 0) {
		return;
	}
	if (!batch_.wants_data || (needed_flag & ~batch_.flags) != 0) {
		batch_.error = EINVAL;
		return;
	}
	std::uint32_t index = batch_.end - 1;
	batch_.error = put(index, batch_.wqe);
	batch_.wants_data = false;
	store(index, batch_.wqe);
}

void SendQueue::set_sges(std::span<const ibv_sge> sges)
{
	set_data(0, [&](std::uint32_t index, wire::SendWqe &wqe) {
		return put_sges(index, wqe, sges);
	});
}

void SendQueue::set_inline(std::span<const ibv_data_buf> buffers)
{
	set_data(IBV_SEND_INLINE, [&](std::uint32_t index, wire::SendWqe &wqe) {
		return put_inline(index, wqe, buffers);
	});
}

// Gives windows their keys back, the last one first.
void SendQueue::forget_batch()
{
	while (batch_.renamed != 0) {
		const RenamedWindow &window = renamed_[--batch_.renamed];
		window.mw->rkey = window.old_rkey;
	}
}

int SendQueue::complete()
{
	int error = batch_.error;
	bool posted = error == 0 && batch_.end != ring_.next();

	if (error != 0) {
		forget_batch();
	} else if (posted) {
		ring_.publish(batch_.end);
	}
	lock_.unlock();
	return posted ? doorbells_->send(qp_) : error;
}

void SendQueue::abort()
{
	forget_batch();
	lock_.unlock();
}

} // namespace shca
