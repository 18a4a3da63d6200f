// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How the memory of an SGE splits into pages and runs of pages. */
#include "pages.hpp"

#include <gtest/gtest.h>

namespace giftrun
{

namespace
{

struct Row {
	uint64_t address;
	uint64_t length;
	PageRange pages;
};

class PagesOf : public testing::TestWithParam<Row>
{
};

TEST_P(PagesOf, AnSge)
{
	const Row &row = GetParam();

	EXPECT_EQ(pages_of(row.address, row.length), row.pages);
}

INSTANTIATE_TEST_SUITE_P(, PagesOf,
			 testing::Values(Row{0x1000, 1, {1, 1}}, Row{0x1000, 0x1000, {1, 1}},
					 Row{0x1000, 0x1001, {1, 2}}, Row{0x1fff, 1, {1, 1}},
					 Row{0x1fff, 2, {1, 2}}, Row{0x1800, 0x2000, {1, 3}},
					 Row{0, 0x100000, {0, 256}},
					 Row{0xfffffffffffff000, 0x1000, {0xfffffffffffff, 1}}));

TEST(PageRange, CoversWhatIsWithin)
{
	const PageRange range{10, 5};

	EXPECT_TRUE(range.covers({10, 5}));
	EXPECT_TRUE(range.covers({12, 1}));
	EXPECT_FALSE(range.covers({9, 2}));
	EXPECT_FALSE(range.covers({14, 2}));
	EXPECT_FALSE(range.covers({15, 1}));
}

PageSet set_of(const PageRange &range, const std::vector<uint64_t> &pages)
{
	PageSet set(range);

	for (const uint64_t page : pages) {
		set.add(page);
	}
	return set;
}

TEST(PageSet, StartsEmptyAndIsSoAgainAfterReset)
{
	PageSet set = set_of({100, 200}, {100, 299});

	EXPECT_EQ(set.size(), 2U);
	set.reset({5, 70});
	EXPECT_EQ(set.size(), 0U);
	EXPECT_TRUE(set.runs().empty());
	EXPECT_EQ(set.range(), (PageRange{5, 70}));
}

TEST(PageSet, HasNothingOutsideItsRange)
{
	const PageSet set = set_of({100, 3}, {100, 102});

	EXPECT_TRUE(set.has(100));
	EXPECT_FALSE(set.has(101));
	EXPECT_TRUE(set.has(102));
	EXPECT_FALSE(set.has(99));
	EXPECT_FALSE(set.has(103));
	EXPECT_FALSE(set.has(164));
}

/* The kernel's layout: bit i % 64 of word i / 64 is page i of the range. */
TEST(PageSet, HasTheKernelsLayout)
{
	PageSet set({1000, 130});

	set.words()[0] = 1;
	set.words()[1] = uint64_t{1} << 63;
	set.words()[2] = 2;
	EXPECT_TRUE(set.has(1000));
	EXPECT_TRUE(set.has(1127));
	EXPECT_TRUE(set.has(1129));
	EXPECT_EQ(set.size(), 3U);
}

TEST(PageSet, RunsAreMaximalAndAscending)
{
	const PageSet set = set_of({10, 200}, {10, 11, 13, 72, 73, 74, 75, 138, 209});

	EXPECT_EQ(set.runs(),
		  (std::vector<PageRange>{{10, 2}, {13, 1}, {72, 4}, {138, 1}, {209, 1}}));
}

TEST(PageSet, AFullSetIsOneRun)
{
	PageSet set({64, 192});

	for (uint64_t page = 64; page < 256; page++) {
		set.add(page);
	}
	EXPECT_EQ(set.runs(), (std::vector<PageRange>{{64, 192}}));
}

TEST(PageSet, RunsOfAnySetAreItsPages)
{
	for (uint64_t bits = 0; bits < 1 << 10; bits++) {
		PageSet set({60, 10});
		uint64_t seen = 0;

		set.words()[0] = bits;
		for (const PageRange &run : set.runs()) {
			for (uint64_t page = run.first; page < run.end(); page++) {
				seen |= uint64_t{1} << (page - 60);
			}
		}
		ASSERT_EQ(seen, bits);
	}
}

TEST(PageSet, IsWithinAnotherByAddressNotByPosition)
{
	const PageSet inner = set_of({12, 4}, {12, 14});

	EXPECT_TRUE(inner.within(set_of({10, 10}, {12, 14, 19})));
	EXPECT_FALSE(inner.within(set_of({10, 10}, {12, 13})));
	EXPECT_FALSE(inner.within(set_of({13, 10}, {14})));
	EXPECT_TRUE(PageSet({5, 3}).within(PageSet({100, 1})));
}

TEST(PageSet, MergeCountsWhatIsNew)
{
	PageSet set = set_of({10, 10}, {12});

	EXPECT_EQ(set.merge(set_of({5, 20}, {6, 12, 13, 19, 22})), 2U);
	EXPECT_EQ(set.size(), 3U);
	EXPECT_EQ(set.merge(set_of({5, 20}, {6, 12, 13, 19, 22})), 0U);
}

} // namespace

} // namespace giftrun
