// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ranges of pages and sets of pages in them. Pure arithmetic.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace giftrun
{

constexpr uint64_t page_shift = 12;
constexpr uint64_t page_size = 1U << page_shift;

struct PageRange {
	uint64_t first; /* number of the page: address / page_size */
	uint64_t count;

	[[nodiscard]] uint64_t end() const { return first + count; }
	[[nodiscard]] bool covers(const PageRange &other) const
	{
		return first <= other.first && other.end() <= end();
	}
	bool operator==(const PageRange &) const = default;
};

/* The pages that length bytes, at least one, at an address are in. */
PageRange pages_of(uint64_t address, uint64_t length);

/* A set of pages of a range, as the bitmap of IB_GIFT_IOC_STALE has it. */
class PageSet
{
public:
	PageSet() = default;
	explicit PageSet(const PageRange &range) { reset(range); }

	/* No page of the range. */
	void reset(const PageRange &range);
	[[nodiscard]] const PageRange &range() const { return range_; }
	/* For the kernel to fill in. */
	uint64_t *words() { return words_.data(); }
	void add(uint64_t page);
	/* False for a page that is not in the range. */
	[[nodiscard]] bool has(uint64_t page) const;
	[[nodiscard]] uint64_t size() const;
	/* True if every page of this set is in the other, whose range may differ. */
	[[nodiscard]] bool within(const PageSet &other) const;
	/* Adds what the other has in this range; how many are new. */
	uint64_t merge(const PageSet &other);
	/* Maximal ranges of pages that are in the set, ascending. */
	[[nodiscard]] std::vector<PageRange> runs() const;

private:
	PageRange range_{};
	std::vector<uint64_t> words_;
};

} // namespace giftrun
