// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "registry.hpp"

namespace giftrun
{

void RwLock::init()
{
	pthread_rwlockattr_t attributes;

	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&lock_, &attributes);
	pthread_rwlockattr_destroy(&attributes);
}

void Registry::hook(ibv_context *context, const ContextOps &ours)
{
	{
		const std::shared_lock lock(lock_);

		if (contexts_.contains(context)) {
			return;
		}
	}
	const std::lock_guard lock(lock_);
	const auto [at, added] = contexts_.try_emplace(context);

	if (added) {
		at->second = {context->ops.post_send, context->ops.poll_cq};
		context->ops.post_send = ours.post_send;
		context->ops.poll_cq = ours.poll_cq;
	}
}

void Registry::unhook(ibv_context *context, std::vector<std::shared_ptr<Region>> *regions,
		      std::vector<std::shared_ptr<SendQueue>> *queues)
{
	const std::lock_guard lock(lock_);
	const auto known = contexts_.find(context);

	refusals_.erase(context);
	if (known != contexts_.end()) {
		context->ops.post_send = known->second.post_send;
		context->ops.poll_cq = known->second.poll_cq;
		contexts_.erase(known);
	}
	std::erase_if(by_mr_, [&](const auto &item) {
		if (item.second->context != context) {
			return false;
		}
		by_lkey_.erase({context->device, item.second->lkey});
		regions->push_back(item.second);
		return true;
	});
	regions_ = by_mr_.size();
	std::erase_if(by_qp_num_, [&](const auto &item) { return item.first.first == context; });
	std::erase_if(qps_, [&](const auto &item) {
		if (item.first->context != context) {
			return false;
		}
		queues->push_back(item.second.queue);
		return true;
	});
}

ContextOps Registry::ops(const ibv_context *context)
{
	const std::shared_lock lock(lock_);
	const auto at = contexts_.find(context);

	return at == contexts_.end() ? ContextOps{} : at->second;
}

std::string Registry::refusal(const ibv_context *context, std::string (*ask)(const char *device))
{
	const std::lock_guard lock(lock_);
	const auto [at, added] = refusals_.try_emplace(context);

	if (added) {
		at->second.why = ask(ibv_get_device_name(context->device));
	}
	return at->second.why;
}

bool Registry::first_refusal(const ibv_context *context)
{
	const std::lock_guard lock(lock_);
	Refusal &refusal = refusals_[context];

	return !std::exchange(refusal.told, true);
}

void Registry::add(const std::shared_ptr<Region> &region)
{
	const std::lock_guard lock(lock_);

	by_mr_[region->mr] = region;
	by_lkey_[{region->context->device, region->lkey}] = region;
	regions_ = by_mr_.size();
}

std::shared_ptr<Region> Registry::region(const ibv_mr *mr)
{
	const std::shared_lock lock(lock_);
	const auto at = by_mr_.find(mr);

	return at == by_mr_.end() ? nullptr : at->second;
}

std::shared_ptr<Region> Registry::region(const ibv_context *context, uint32_t lkey)
{
	const std::shared_lock lock(lock_);
	const auto at = by_lkey_.find({context->device, lkey});

	return at == by_lkey_.end() ? nullptr : at->second;
}

std::shared_ptr<Region> Registry::remove(const ibv_mr *mr)
{
	const std::lock_guard lock(lock_);
	const auto at = by_mr_.find(mr);

	if (at == by_mr_.end()) {
		return nullptr;
	}
	std::shared_ptr<Region> region = at->second;
	by_mr_.erase(at);
	by_lkey_.erase({region->context->device, region->lkey});
	regions_ = by_mr_.size();
	return region;
}

void Registry::add(const ibv_qp *qp, QpState state)
{
	const std::lock_guard lock(lock_);

	by_qp_num_[{qp->context, qp->qp_num}] = state.queue;
	qps_[qp] = std::move(state);
}

QpState Registry::qp(const ibv_qp *qp)
{
	const std::shared_lock lock(lock_);
	const auto at = qps_.find(qp);

	return at == qps_.end() ? QpState{} : at->second;
}

QpState Registry::remove(const ibv_qp *qp)
{
	const std::lock_guard lock(lock_);
	const auto at = qps_.find(qp);

	if (at == qps_.end()) {
		return {};
	}
	QpState state = std::move(at->second);
	qps_.erase(at);
	by_qp_num_.erase({qp->context, qp->qp_num});
	return state;
}

std::shared_ptr<QpEx> Registry::ex(const ibv_qp_ex *qp)
{
	return this->qp(&qp->qp_base).ex;
}

std::shared_ptr<SendQueue> Registry::queue(const ibv_context *context, uint32_t qp_num)
{
	const std::shared_lock lock(lock_);
	const auto at = by_qp_num_.find({context, qp_num});

	return at == by_qp_num_.end() ? nullptr : at->second;
}

/*
 * The regions are of the parent's memory. A queue may have been locked by a thread
 * that is not here, so each gets a new one, of which nothing is known.
 */
void Registry::after_fork_in_child()
{
	by_mr_.clear();
	by_lkey_.clear();
	regions_ = 0;
	for (auto &[qp, state] : qps_) {
		state.queue = std::make_shared<SendQueue>(SendQueue::Seen::nothing);
		if (state.ex) {
			state.ex->queue = state.queue;
		}
		by_qp_num_[{qp->context, qp->qp_num}] = state.queue;
	}
	lock_.init();
}

} // namespace giftrun
