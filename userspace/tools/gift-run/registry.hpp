// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who is who in the program: its device contexts, queue pairs and gift regions, and
 * the function pointers that were in the place of this library's. Calls no verb.
 */
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "queue.hpp"
#include "region.hpp"

namespace giftrun
{

/* Writers first: a fork() is not to wait for ever behind threads that post. */
class RwLock
{
public:
	RwLock() { init(); }
	/* In the child of a fork: there its owner is another, who may not unlock it. */
	void init();
	void lock() { pthread_rwlock_wrlock(&lock_); }
	void unlock() { pthread_rwlock_unlock(&lock_); }
	void lock_shared() { pthread_rwlock_rdlock(&lock_); }
	void unlock_shared() { pthread_rwlock_unlock(&lock_); }

private:
	pthread_rwlock_t lock_;
};

using PostSend = decltype(ibv_context_ops::post_send);
using PollCq = decltype(ibv_context_ops::poll_cq);

/* What was in a context's operations before. */
struct ContextOps {
	PostSend post_send = nullptr;
	PollCq poll_cq = nullptr;
};

/* A queue pair of the ibv_wr_* calls, and what was in it before. */
struct QpEx {
	decltype(ibv_qp_ex::wr_set_sge) set_sge;
	decltype(ibv_qp_ex::wr_set_sge_list) set_sge_list;
	decltype(ibv_qp_ex::wr_complete) complete;
	decltype(ibv_qp_ex::wr_abort) abort;
	std::shared_ptr<SendQueue> queue;
	int error = 0; /* what wr_complete() has to say */
};

/* All that is known of a queue pair. */
struct QpState {
	std::shared_ptr<SendQueue> queue;
	std::shared_ptr<QpEx> ex;
};

class Registry
{
public:
	/* Puts these in the place of a context's own, once. */
	void hook(ibv_context *context, const ContextOps &ours);
	/* Puts its own back, and forgets what it has; returns its regions and queues. */
	void unhook(ibv_context *context, std::vector<std::shared_ptr<Region>> *regions,
		    std::vector<std::shared_ptr<SendQueue>> *queues);
	ContextOps ops(const ibv_context *context);

	/* Empty if the context's device honours GIFT; asked once. */
	std::string refusal(const ibv_context *context, std::string (*ask)(const char *device));
	/* True once for each context that refuses. */
	bool first_refusal(const ibv_context *context);

	void add(const std::shared_ptr<Region> &region);
	std::shared_ptr<Region> region(const ibv_mr *mr);
	std::shared_ptr<Region> region(const ibv_context *context, uint32_t lkey);
	std::shared_ptr<Region> remove(const ibv_mr *mr);
	/* False: no SGE can be in a gift region. */
	[[nodiscard]] bool any_region() const { return regions_.load(std::memory_order_relaxed); }

	void add(const ibv_qp *qp, QpState state);
	QpState qp(const ibv_qp *qp);
	QpState remove(const ibv_qp *qp);
	std::shared_ptr<QpEx> ex(const ibv_qp_ex *qp);
	std::shared_ptr<SendQueue> queue(const ibv_context *context, uint32_t qp_num);

	/* For fork(): the child has the contexts and queue pairs, and no region. */
	void before_fork() { lock_.lock(); }
	void after_fork_in_parent() { lock_.unlock(); }
	void after_fork_in_child();

private:
	/* lkeys are the device's; a device has one ibv_device for all contexts. */
	using Key = std::pair<const void *, uint32_t>;
	struct Hash {
		size_t operator()(const Key &key) const
		{
			return std::hash<const void *>()(key.first) ^
			       (size_t{key.second} * 0x9e3779b97f4a7c15);
		}
	};
	struct Refusal {
		std::string why;
		bool told = false;
	};

	RwLock lock_;
	std::atomic<size_t> regions_{0};
	std::unordered_map<const ibv_context *, ContextOps> contexts_;
	std::unordered_map<const ibv_context *, Refusal> refusals_;
	std::unordered_map<const ibv_mr *, std::shared_ptr<Region>> by_mr_;
	std::unordered_map<Key, std::shared_ptr<Region>, Hash> by_lkey_;
	std::unordered_map<const ibv_qp *, QpState> qps_;
	std::unordered_map<Key, std::shared_ptr<SendQueue>, Hash> by_qp_num_;
};

} // namespace giftrun
