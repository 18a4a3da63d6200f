// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "pages.hpp"

#include <bit>

namespace giftrun
{

namespace
{

constexpr uint64_t word_bits = 64;

} // namespace

PageRange pages_of(uint64_t address, uint64_t length)
{
	const uint64_t first = address >> page_shift;

	return {first, ((address + length - 1) >> page_shift) - first + 1};
}

void PageSet::reset(const PageRange &range)
{
	range_ = range;
	words_.assign((range.count + word_bits - 1) / word_bits, 0);
}

void PageSet::add(uint64_t page)
{
	const uint64_t i = page - range_.first;

	words_[i / word_bits] |= uint64_t{1} << (i % word_bits);
}

bool PageSet::has(uint64_t page) const
{
	const uint64_t i = page - range_.first;

	return page >= range_.first && i < range_.count &&
	       words_[i / word_bits] >> (i % word_bits) & 1;
}

uint64_t PageSet::size() const
{
	uint64_t n = 0;

	for (const uint64_t word : words_) {
		n += static_cast<uint64_t>(std::popcount(word));
	}
	return n;
}

bool PageSet::within(const PageSet &other) const
{
	for (const PageRange &run : runs()) {
		for (uint64_t page = run.first; page < run.end(); page++) {
			if (!other.has(page)) {
				return false;
			}
		}
	}
	return true;
}

uint64_t PageSet::merge(const PageSet &other)
{
	uint64_t added = 0;

	for (const PageRange &run : other.runs()) {
		for (uint64_t page = run.first; page < run.end(); page++) {
			if (page >= range_.first && page < range_.end() && !has(page)) {
				add(page);
				added++;
			}
		}
	}
	return added;
}

std::vector<PageRange> PageSet::runs() const
{
	std::vector<PageRange> runs;

	for (uint64_t i = 0; i < range_.count; i++) {
		if (words_[i / word_bits] >> (i % word_bits) == 0) {
			i |= word_bits - 1; /* nothing more in this word */
			continue;
		}
		const uint64_t page = range_.first + i;
		if (!has(page)) {
			continue;
		}
		if (!runs.empty() && runs.back().end() == page) {
			runs.back().count++;
		} else {
			runs.push_back({page, 1});
		}
	}
	return runs;
}

} // namespace giftrun
