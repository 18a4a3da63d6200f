// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* When a work request is over. */
#include "queue.hpp"

#include <gtest/gtest.h>

namespace giftrun
{

namespace
{

TEST(SendQueue, ASignaledRequestIsOverWithItsCompletion)
{
	SendQueue queue(SendQueue::Seen::all);
	const uint64_t first = queue.posted(true);
	const uint64_t second = queue.posted(true);

	EXPECT_FALSE(queue.over(first));
	queue.completed();
	EXPECT_TRUE(queue.over(first));
	EXPECT_FALSE(queue.over(second));
	queue.completed();
	EXPECT_TRUE(queue.over(second));
}

TEST(SendQueue, AnUnsignaledRequestIsOverWithTheNextThatIsSignaled)
{
	SendQueue queue(SendQueue::Seen::all);

	queue.posted(true);
	const uint64_t quiet = queue.posted(false);
	queue.completed();
	EXPECT_FALSE(queue.over(quiet));
	queue.posted(true);
	EXPECT_FALSE(queue.over(quiet));
	queue.completed();
	EXPECT_TRUE(queue.over(quiet));
}

TEST(SendQueue, EveryRequestCompletesWhereAllAreSignaled)
{
	SendQueue queue(SendQueue::Seen::all, true);
	const uint64_t first = queue.posted(false);
	const uint64_t second = queue.posted(false);

	queue.completed();
	EXPECT_TRUE(queue.over(first));
	EXPECT_FALSE(queue.over(second));
}

TEST(SendQueue, AfterAnErrorOnlyTheEndOfTheQueueEndsARequest)
{
	SendQueue queue(SendQueue::Seen::all);
	const uint64_t request = queue.posted(true);

	queue.lose();
	queue.completed();
	EXPECT_FALSE(queue.over(request));
	queue.close();
	EXPECT_TRUE(queue.over(request));
}

TEST(SendQueue, MoreCompletionsThanPostsAreAnError)
{
	SendQueue queue(SendQueue::Seen::all);

	queue.completed();
	EXPECT_FALSE(queue.seen());
	const uint64_t request = queue.posted(true);
	queue.completed();
	EXPECT_FALSE(queue.over(request));
}

TEST(SendQueue, OfAQueueThatIsNotSeenNothingIsOverBeforeItsEnd)
{
	SendQueue queue(SendQueue::Seen::nothing);
	const uint64_t request = queue.posted(true);

	queue.completed();
	EXPECT_FALSE(queue.over(request));
	queue.close();
	EXPECT_TRUE(queue.over(UINT64_MAX));
}

} // namespace

} // namespace giftrun
