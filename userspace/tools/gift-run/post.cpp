// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Stands in front of ibv_post_send() and ibv_poll_cq(), which are inline calls
 * through the context's operations. A work request that reads stale memory is posted
 * as a copy with other lkeys; the program's own is never changed.
 */
#include <cerrno>
#include <vector>

#include "hooks.hpp"
#include "real.hpp"
#include "refresh.hpp"
#include "state.hpp"

namespace giftrun
{

namespace
{

/* Reads what its SGEs name. What has been copied by the CPU at the post does not. */
bool reads_memory(const ibv_send_wr &wr)
{
	if (wr.send_flags & IBV_SEND_INLINE) {
		return false;
	}
	switch (wr.opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_TSO:
		return true;
	default:
		return false;
	}
}

/* A list of work requests, and a copy of it if it needs one. */
class Posting
{
public:
	explicit Posting(ibv_send_wr *first) : first_(first) {}
	~Posting() { put_from(0); }
	Posting(const Posting &) = delete;
	Posting &operator=(const Posting &) = delete;

	/* 0, or an errno: then nothing must be posted. */
	int look(const ibv_context *context);
	[[nodiscard]] ibv_send_wr *list();
	/* The program's work request that one of list() is a copy of. */
	[[nodiscard]] ibv_send_wr *original(const ibv_send_wr *wr) const;
	/* What is before bad, or all, was posted to the queue. */
	void posted(const std::shared_ptr<SendQueue> &queue, const ibv_send_wr *bad);

private:
	struct Change {
		size_t wr;
		int sge;
		Fresh *fresh;
	};

	void copy();
	void put_from(size_t change);

	ibv_send_wr *const first_;
	std::vector<Change> changes_;
	std::vector<ibv_send_wr> wrs_;
	std::vector<ibv_sge> sges_;
};

int Posting::look(const ibv_context *context)
{
	size_t number = 0;

	for (const ibv_send_wr *wr = first_; wr; wr = wr->next, number++) {
		for (int i = 0; reads_memory(*wr) && i < wr->num_sge; i++) {
			Fresh *fresh;
			const int error = refresh(context, wr->sg_list[i], &fresh);

			if (error) {
				return error;
			}
			if (fresh) {
				changes_.push_back({number, i, fresh});
			}
		}
	}
	return 0;
}

void Posting::copy()
{
	size_t sges = 0;
	size_t at = 0;

	for (const ibv_send_wr *wr = first_; wr; wr = wr->next) {
		wrs_.push_back(*wr);
	}
	for (const Change &change : changes_) {
		sges += static_cast<size_t>(wrs_[change.wr].num_sge);
	}
	/* May be too many; must not move. */
	sges_.reserve(sges);
	for (size_t i = 0; i < wrs_.size(); i++) {
		ibv_send_wr &wr = wrs_[i];

		wr.next = i + 1 < wrs_.size() ? &wrs_[i + 1] : nullptr;
		if (at == changes_.size() || changes_[at].wr != i) {
			continue;
		}
		ibv_sge *const list = sges_.data() + sges_.size();
		sges_.insert(sges_.end(), wr.sg_list, wr.sg_list + wr.num_sge);
		for (; at < changes_.size() && changes_[at].wr == i; at++) {
			list[changes_[at].sge].lkey = changes_[at].fresh->mr->lkey;
		}
		wr.sg_list = list;
	}
}

ibv_send_wr *Posting::list()
{
	if (changes_.empty()) {
		return first_;
	}
	copy();
	return wrs_.data();
}

ibv_send_wr *Posting::original(const ibv_send_wr *wr) const
{
	if (wrs_.empty() || wr < wrs_.data() || wr >= wrs_.data() + wrs_.size()) {
		return const_cast<ibv_send_wr *>(wr);
	}
	ibv_send_wr *at = first_;
	for (auto n = wr - wrs_.data(); n > 0; n--) {
		at = at->next;
	}
	return at;
}

void Posting::posted(const std::shared_ptr<SendQueue> &queue, const ibv_send_wr *bad)
{
	size_t number = 0;
	size_t at = 0;

	for (const ibv_send_wr *wr = first_; wr && wr != bad; wr = wr->next, number++) {
		const uint64_t request = queue->posted(wr->send_flags & IBV_SEND_SIGNALED);

		for (; at < changes_.size() && changes_[at].wr == number; at++) {
			state().fresh.put(changes_[at].fresh, queue, request);
		}
	}
	put_from(at);
	changes_.clear();
}

void Posting::put_from(size_t change)
{
	for (; change < changes_.size(); change++) {
		state().fresh.put(changes_[change].fresh);
	}
}

int post_send(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad)
{
	State &s = state();
	const PostSend real_post = s.registry.ops(qp->context).post_send;
	Posting posting(wr);

	if (!real_post) {
		*bad = wr;
		return EINVAL;
	}
	if (s.registry.any_region()) {
		const int error = posting.look(qp->context);

		/* Rather no message than an old one. */
		if (error) {
			*bad = wr;
			return error;
		}
	}
	ibv_send_wr *const list = posting.list();
	const std::shared_ptr<SendQueue> queue = queue_of(qp);
	const std::lock_guard lock(queue->order);
	const int error = real_post(qp, list, bad);

	if (error) {
		*bad = posting.original(*bad);
	}
	posting.posted(queue, error ? *bad : nullptr);
	return error;
}

int poll_cq(ibv_cq *cq, int number, ibv_wc *wc)
{
	State &s = state();
	const PollCq real_poll = s.registry.ops(cq->context).poll_cq;

	if (!real_poll) {
		return -1;
	}
	const int got = real_poll(cq, number, wc);

	for (int i = 0; i < got; i++) {
		/* The opcode of an error says nothing. */
		const bool good = wc[i].status == IBV_WC_SUCCESS;

		if (good && wc[i].opcode & IBV_WC_RECV) {
			continue;
		}
		const std::shared_ptr<SendQueue> queue =
			s.registry.queue(cq->context, wc[i].qp_num);
		if (!queue) {
			continue;
		}
		if (good) {
			queue->completed();
		} else {
			queue->lose();
		}
	}
	return got;
}

} // namespace

std::string refusal(const ibv_context *context)
{
	return state().registry.refusal(
		context, [](const char *device) { return state().device->refusal(device); });
}

bool hook(ibv_context *context)
{
	State &s = state();

	if (!s.enabled || !s.options.refresh || !refusal(context).empty()) {
		return false;
	}
	s.registry.hook(context, {post_send, poll_cq});
	return true;
}

std::shared_ptr<SendQueue> queue_of(const ibv_qp *qp)
{
	State &s = state();
	QpState known = s.registry.qp(qp);

	/* Made in a way that was not seen. */
	if (!known.queue) {
		known.queue = std::make_shared<SendQueue>(SendQueue::Seen::nothing);
		s.registry.add(qp, known);
	}
	return known.queue;
}

} // namespace giftrun
