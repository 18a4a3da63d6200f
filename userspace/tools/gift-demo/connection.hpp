// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Verbs objects that free themselves, and one end of a reliable connection.
 * Owns how a queue pair is brought up and a completion is waited for; never
 * what is sent.
 */
#pragma once

#include <infiniband/gift.h>

#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

namespace demo
{

/* An errno that a call left, with what was tried. */
[[noreturn]] inline void fail(int error, const std::string &what)
{
	throw std::system_error(error, std::generic_category(), what);
}

template <auto Free>
struct FreeWith {
	template <typename T>
	void operator()(T *object) const
	{
		Free(object);
	}
};

using Context = std::unique_ptr<ibv_context, FreeWith<ibv_close_device>>;
using Pd = std::unique_ptr<ibv_pd, FreeWith<ibv_dealloc_pd>>;
using Cq = std::unique_ptr<ibv_cq, FreeWith<ibv_destroy_cq>>;
using Qp = std::unique_ptr<ibv_qp, FreeWith<ibv_destroy_qp>>;
using Mr = std::unique_ptr<ibv_mr, FreeWith<ibv_dereg_mr>>;
using Mw = std::unique_ptr<ibv_mw, FreeWith<ibv_dealloc_mw>>;

/* The first device that honours IBV_ACCESS_GIFT, as /dev/ib_gift says. */
Context open_gift_device();

Mr register_memory(ibv_pd *pd, void *address, size_t length, int access);

/* Where an end of a connection is reached. */
struct Address {
	ibv_gid gid;
	uint32_t qp_num;
};

class Connection
{
public:
	explicit Connection(ibv_context *context);

	[[nodiscard]] Address address() const { return {gid_, qp_->qp_num}; }
	[[nodiscard]] ibv_pd *pd() const { return pd_.get(); }
	[[nodiscard]] ibv_qp *qp() const { return qp_.get(); }
	void connect(const Address &peer);

	void post(ibv_send_wr work);
	void post_receive(ibv_mr *memory);
	/* The next completion, of either queue. */
	ibv_wc wait();
	/* Posts a work request and waits for it. */
	ibv_wc run(const ibv_send_wr &work);

private:
	Pd pd_;
	Cq cq_;
	Qp qp_;
	ibv_gid gid_{};
	uint8_t gid_index_{};
};

} // namespace demo
