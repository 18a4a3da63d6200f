// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which fresh region is used again, and when one is released. */
#include "fresh.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace giftrun
{

namespace
{

std::vector<ibv_mr *> released;

void release(ibv_mr *mr)
{
	released.push_back(mr);
}

/* Never looked into. */
ibv_mr *mr(uintptr_t number)
{
	return reinterpret_cast<ibv_mr *>(number);
}

PageSet set_of(const PageRange &range, const std::vector<uint64_t> &pages)
{
	PageSet set(range);

	for (const uint64_t page : pages) {
		set.add(page);
	}
	return set;
}

class Cache : public testing::Test
{
protected:
	void SetUp() override { released.clear(); }

	static std::shared_ptr<SendQueue> queue()
	{
		return std::make_shared<SendQueue>(SendQueue::Seen::all);
	}
	/* One that nothing uses. */
	static void add_idle(FreshCache *cache, uintptr_t number, uint64_t page)
	{
		cache->put(cache->add(region, mr(number), set_of({page, 1}, {page})));
	}

	static constexpr const char *region = "a region";
	static constexpr const char *other = "another";
};

TEST_F(Cache, FindsWhatCoversTheRangeAndGoesNotStale)
{
	FreshCache cache(10, release);

	cache.put(cache.add(region, mr(1), set_of({10, 10}, {12, 13})));
	const struct {
		PageSet stale;
		bool found;
	} rows[] = {
		{set_of({10, 10}, {12}), true},      {set_of({12, 2}, {12, 13}), true},
		{set_of({10, 10}, {12, 14}), false}, {set_of({9, 5}, {12}), false},
		{set_of({15, 6}, {}), false},        {set_of({15, 5}, {}), true},
	};
	for (const auto &row : rows) {
		Fresh *const fresh = cache.find(region, row.stale);

		EXPECT_EQ(fresh != nullptr, row.found);
		if (fresh) {
			cache.put(fresh);
		}
	}
	EXPECT_EQ(cache.find(other, set_of({12, 1}, {12})), nullptr);
}

TEST_F(Cache, ReleasesTheLongestUnusedAboveTheLimit)
{
	FreshCache cache(2, release);

	add_idle(&cache, 1, 1);
	add_idle(&cache, 2, 2);
	cache.put(cache.find(region, set_of({1, 1}, {1})));
	add_idle(&cache, 3, 3);
	EXPECT_EQ(released, (std::vector<ibv_mr *>{mr(2)}));
	EXPECT_EQ(cache.size(), 2U);
}

TEST_F(Cache, KeepsWhatIsHeld)
{
	FreshCache cache(0, release);
	Fresh *const held = cache.add(region, mr(1), set_of({1, 1}, {1}));

	add_idle(&cache, 2, 2);
	EXPECT_EQ(std::count(released.begin(), released.end(), mr(1)), 0);
	cache.put(held);
	EXPECT_TRUE(cache.drop_idle());
	EXPECT_EQ(std::count(released.begin(), released.end(), mr(1)), 1);
	EXPECT_FALSE(cache.drop_idle());
}

TEST_F(Cache, KeepsWhatARequestUsesUntilThatIsOver)
{
	FreshCache cache(10, release);
	const auto one = queue();
	const auto two = queue();

	cache.put(cache.add(region, mr(1), set_of({1, 1}, {1})), one, one->posted(true));
	cache.put(cache.find(region, set_of({1, 1}, {1})), two, two->posted(true));
	EXPECT_FALSE(cache.drop_idle());
	two->completed();
	EXPECT_FALSE(cache.drop_idle());
	one->completed();
	EXPECT_TRUE(cache.drop_idle());
	EXPECT_EQ(released, (std::vector<ibv_mr *>{mr(1)}));
}

TEST_F(Cache, ItIsTheLastUseThatCounts)
{
	FreshCache cache(10, release);
	const auto q = queue();
	const uint64_t first = q->posted(true);
	const uint64_t second = q->posted(true);
	Fresh *const fresh = cache.add(region, mr(1), set_of({1, 1}, {1}));

	cache.find(region, set_of({1, 1}, {1}));
	cache.put(fresh, q, second);
	cache.put(fresh, q, first);
	q->completed();
	EXPECT_FALSE(cache.drop_idle());
	q->completed();
	EXPECT_TRUE(cache.drop_idle());
}

TEST_F(Cache, AQueueThatEndsEndsItsUses)
{
	FreshCache cache(10, release);
	const auto q = queue();

	cache.put(cache.add(region, mr(1), set_of({1, 1}, {1})), q, UINT64_MAX);
	EXPECT_FALSE(cache.drop_idle());
	q->close();
	EXPECT_TRUE(cache.drop_idle());
}

TEST_F(Cache, GoesAboveTheLimitRatherThanBreakARequest)
{
	FreshCache cache(2, release);
	const auto q = queue();

	for (uintptr_t i = 1; i <= 5; i++) {
		cache.put(cache.add(region, mr(i), set_of({i, 1}, {i})), q, q->posted(true));
	}
	EXPECT_EQ(cache.size(), 5U);
	EXPECT_TRUE(released.empty());
	for (int i = 0; i < 4; i++) {
		q->completed();
	}
	add_idle(&cache, 6, 6);
	EXPECT_EQ(released.size(), 4U);
	EXPECT_EQ(std::count(released.begin(), released.end(), mr(5)), 0);
}

TEST_F(Cache, ARegionThatGoesTakesItsOwnWithIt)
{
	FreshCache cache(10, release);
	const auto q = queue();

	cache.put(cache.add(region, mr(1), set_of({1, 1}, {1})), q, q->posted(true));
	cache.put(cache.add(other, mr(2), set_of({1, 1}, {1})));
	cache.drop(region);
	EXPECT_EQ(released, (std::vector<ibv_mr *>{mr(1)}));
	EXPECT_EQ(cache.find(region, set_of({1, 1}, {1})), nullptr);
	EXPECT_NE(cache.find(other, set_of({1, 1}, {1})), nullptr);
}

TEST_F(Cache, WhatIsHeldThenIsReleasedAfterwards)
{
	FreshCache cache(10, release);
	Fresh *const fresh = cache.add(region, mr(1), set_of({1, 1}, {1}));

	cache.drop(region);
	EXPECT_TRUE(released.empty());
	/* A new region at the same place is another one. */
	EXPECT_EQ(cache.find(region, set_of({1, 1}, {1})), nullptr);
	const auto q = queue();
	cache.put(fresh, q, q->posted(true));
	EXPECT_EQ(released, (std::vector<ibv_mr *>{mr(1)}));
	EXPECT_EQ(cache.size(), 0U);
}

TEST_F(Cache, ForgetReleasesNothing)
{
	FreshCache cache(10, release);

	add_idle(&cache, 1, 1);
	cache.forget();
	EXPECT_EQ(cache.size(), 0U);
	EXPECT_TRUE(released.empty());
}

std::atomic<int> count_added;
std::atomic<int> count_released;

TEST_F(Cache, ManyThreadsReleaseEachOnce)
{
	count_added = count_released = 0;
	FreshCache cache(3, [](ibv_mr *) { count_released++; });
	std::vector<std::thread> threads;

	for (uint64_t t = 0; t < 4; t++) {
		threads.emplace_back([&cache, t] {
			const auto q = queue();

			for (uint64_t i = 0; i < 500; i++) {
				const PageSet set = set_of({i % 7, 1}, {i % 7});
				Fresh *fresh = cache.find(region, set);

				if (!fresh) {
					fresh = cache.add(region, mr(t * 1000 + i + 1), set);
					count_added++;
				}
				cache.put(fresh, q, q->posted(true));
				q->completed();
			}
		});
	}
	for (std::thread &thread : threads) {
		thread.join();
	}
	while (cache.drop_idle()) {}
	EXPECT_EQ(cache.size(), 0U);
	EXPECT_EQ(count_added, count_released);
}

} // namespace

} // namespace giftrun
