// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What --report prints at exit: one line for each gift region there was, and their
 * sum. Owns no region.
 */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "region.hpp"

namespace giftrun
{

class Report
{
public:
	void add(std::shared_ptr<Record> record);
	/* A registration that was left as it was. */
	void left_alone() { left_alone_++; }
	/* A region that the kernel did not take with GIFT, and then without. */
	void refused() { refused_++; }

	/* True if this process registered anything. */
	[[nodiscard]] bool any();
	[[nodiscard]] std::string text();
	/* In the child of a fork, with the mutex held. */
	void forget();

	std::mutex mutex;

private:
	/* Beyond these, regions count in the sum only. */
	static constexpr size_t lines = 2000;

	std::vector<std::shared_ptr<Record>> records_;
	std::atomic<uint64_t> left_alone_{0};
	std::atomic<uint64_t> refused_{0};
};

/* Where --report says, or on standard error. */
void write_report(const std::string &text, const std::string &file);

} // namespace giftrun
