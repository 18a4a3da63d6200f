// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace giftrun
{

namespace
{

constexpr const char *path = "/dev/ib_gift";
/* Above what programs count on getting, or close by number. */
constexpr int high_fd = 200;

} // namespace

/* 0 or an errno. The old one is not closed: it is no longer ours. */
int GiftDevice::open_again(int old)
{
	const std::lock_guard lock(mutex_);

	if (fd_.load() != old) {
		return 0;
	}
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		return errno;
	}
	const int high = fcntl(fd, F_DUPFD_CLOEXEC, high_fd);
	if (high >= 0) {
		close(fd);
	}
	fd_.store(high >= 0 ? high : fd);
	return 0;
}

int GiftDevice::call(unsigned long request, void *arg)
{
	for (int turn = 0;; turn++) {
		const int fd = fd_.load();

		if (fd >= 0 && ioctl(fd, request, arg) == 0) {
			return 0;
		}
		/* Closed by the program, or another file by now. */
		const bool gone = fd < 0 || errno == EBADF || errno == ENOTTY;
		if (!gone || turn == 2) {
			return errno;
		}
		const int error = open_again(fd);
		if (error) {
			return error;
		}
	}
}

std::string GiftDevice::refusal(const char *name)
{
	ib_gift_query query{};

	if (strlen(name) >= sizeof(query.device)) {
		return "its name is too long";
	}
	memcpy(query.device, name, strlen(name));
	const int error = call(IB_GIFT_IOC_QUERY, &query);
	if (error == ENOENT || error == ENXIO || error == ENODEV) {
		return access(path, F_OK) == 0 ? "the module ib_gift does not know the device"
					       : "the module ib_gift is not loaded";
	}
	if (error) {
		return std::string(path) + ": " + strerror(error); // NOLINT(concurrency-mt-unsafe)
	}
	if (query.caps & IB_GIFT_CAP_HONOURED) {
		return "";
	}
	return "its driver does not, and ib_gift's parameter every_driver is off";
}

int GiftDevice::stale(PageSet *set, uint64_t *count)
{
	ib_gift_stale query{};

	query.addr = set->range().first << page_shift;
	query.length = set->range().count << page_shift;
	query.bitmap = reinterpret_cast<uintptr_t>(set->words());
	const int error = call(IB_GIFT_IOC_STALE, &query);
	*count = query.stale;
	return error;
}

int GiftDevice::stats(ib_gift_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	return call(IB_GIFT_IOC_STATS, stats);
}

} // namespace giftrun
