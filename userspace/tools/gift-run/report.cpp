// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "report.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

#include "real.hpp"

namespace giftrun
{

namespace
{

struct Sum {
	uint64_t length = 0;
	uint64_t held = 0;
	uint64_t pinned = 0;
	uint64_t refreshed = 0;
	uint64_t fresh_regions = 0;
	uint64_t from_fresh = 0;
	bool counted = true;
};

std::string number(bool known, uint64_t value)
{
	return known ? std::to_string(value) : "?";
}

void line(std::string *out, const char *name, const Sum &sum)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "gift-run: %-34s %10" PRIu64 " %9s %9s %9" PRIu64 " %9" PRIu64 " %9" PRIu64
		 " %12s\n",
		 name, sum.length >> 10, number(sum.counted, sum.held).c_str(),
		 number(sum.counted, sum.pinned).c_str(), sum.refreshed, sum.fresh_regions,
		 sum.from_fresh, number(sum.counted, sum.held * (page_size >> 10)).c_str());
	*out += text;
}

} // namespace

uint64_t Record::held() const
{
	uint64_t held = 0;

	for (size_t kind = IB_GIFT_PAGE_PINNED + 1; kind < pages.size(); kind++) {
		held += pages[kind];
	}
	return held;
}

void Report::add(std::shared_ptr<Record> record)
{
	const std::lock_guard lock(mutex);

	records_.push_back(std::move(record));
}

bool Report::any()
{
	const std::lock_guard lock(mutex);

	return !records_.empty() || left_alone_ != 0 || refused_ != 0;
}

std::string Report::text()
{
	const std::lock_guard lock(mutex);
	std::string out;
	Sum all;

	char head[256];
	snprintf(head, sizeof(head), "gift-run: process %d, %zu gift regions\n", getpid(),
		 records_.size());
	out += head;
	snprintf(head, sizeof(head), "gift-run: %-34s %10s %9s %9s %9s %9s %9s %12s\n", "region",
		 "KiB", "held", "pinned", "refreshed", "fresh", "sent", "saved KiB");
	if (!records_.empty()) {
		out += head;
	}
	for (size_t i = 0; i < records_.size(); i++) {
		const Record &record = *records_[i];
		const Sum one{record.length,    record.held(),        record.pinned(),
			      record.refreshed, record.fresh_regions, record.from_fresh,
			      record.counted};
		char name[64];

		snprintf(name, sizeof(name), "%.16s %#" PRIx64, record.device.c_str(),
			 record.address);
		if (i < lines) {
			line(&out, name, one);
		}
		all.length += one.length;
		all.held += one.held;
		all.pinned += one.pinned;
		all.refreshed += one.refreshed;
		all.fresh_regions += one.fresh_regions;
		all.from_fresh += one.from_fresh;
		all.counted &= one.counted;
	}
	if (!records_.empty()) {
		line(&out, "all", all);
	}
	snprintf(head, sizeof(head),
		 "gift-run: %" PRIu64 " registrations left as they were, %" PRIu64
		 " refused with GIFT and taken without\n",
		 left_alone_.load(), refused_.load());
	return out + head;
}

void Report::forget()
{
	records_.clear();
	left_alone_ = 0;
	refused_ = 0;
}

void write_report(const std::string &text, const std::string &file)
{
	int fd = STDERR_FILENO;

	if (!file.empty()) {
		fd = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
		if (fd < 0) {
			say(file + ": " + strerror(errno)); // NOLINT(concurrency-mt-unsafe)
			return;
		}
	}
	/* In one piece, beside what other processes append. */
	for (size_t at = 0; at < text.size();) {
		const ssize_t n = write(fd, text.data() + at, text.size() - at);

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			break;
		}
		at += static_cast<size_t>(n);
	}
	if (fd != STDERR_FILENO) {
		close(fd);
	}
}

} // namespace giftrun
