// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How far the send queue of a queue pair has come, told from what is posted to it
 * and polled from its completion queue. Knows nothing of verbs.
 *
 * Work requests of a send queue complete in order, and each signaled one gives one
 * completion. So a request is over once as many completions have been polled as
 * signaled requests were posted up to it or, if it is not signaled itself, up to the
 * next that is.
 */
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace giftrun
{

class SendQueue
{
public:
	enum class Seen {
		all,     /* every post and whether it is signaled */
		nothing, /* what is sent completes unseen: only its end ends a request */
	};

	explicit SendQueue(Seen seen, bool all_signaled = false)
		: all_signaled_(all_signaled), lost_(seen == Seen::nothing)
	{
	}

	/* Held over a post and its posted(), so that they count in the queue's order. */
	std::mutex order;

	/* A request was posted; what to ask over() for it. */
	uint64_t posted(bool signaled);
	/* A request has completed with success. */
	void completed();
	/* An error: what completes from here on is not what was counted. */
	void lose() { lost_.store(true); }
	/* Nothing posted to it is executed any more. */
	void close() { closed_.store(true); }

	[[nodiscard]] bool seen() const { return !lost_.load(); }
	[[nodiscard]] bool over(uint64_t request) const
	{
		return closed_.load() || (seen() && completed_.load() >= request);
	}

private:
	const bool all_signaled_;
	std::atomic<uint64_t> posted_{0};
	std::atomic<uint64_t> completed_{0};
	std::atomic<bool> lost_;
	std::atomic<bool> closed_{false};
};

} // namespace giftrun
