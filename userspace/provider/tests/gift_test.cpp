// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * shca_query_stale() against a /dev/ib_gift that is made up: what it is asked,
 * what comes back, and that no descriptor is left open. Opens nothing.
 */
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/sample_hca.h>
#include <rdma/ib_gift.h>
#include <string>

#include "core.h"

namespace
{

constexpr int fake_fd = 1234;

struct FakeDevice {
	int open_errno = 0;
	int ioctl_errno = 0;
	int opened = 0;
	int closed = 0;
	std::string path;
	int flags = 0;
	unsigned long request = 0;
	ib_gift_stale query{};
} fake;

int fake_open(const char *path, int flags, ...)
{
	fake.path = path;
	fake.flags = flags;
	if (fake.open_errno) {
		errno = fake.open_errno;
		return -1;
	}
	fake.opened++;
	return fake_fd;
}

int fake_ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	va_start(args, request);
	auto *query = va_arg(args, ib_gift_stale *);
	va_end(args);

	EXPECT_EQ(fd, fake_fd);
	fake.request = request;
	fake.query = *query;
	if (fake.ioctl_errno) {
		errno = fake.ioctl_errno;
		return -1;
	}
	query->registered = 77;
	query->stale = 5;
	return 0;
}

int fake_close(int fd)
{
	EXPECT_EQ(fd, fake_fd);
	fake.closed++;
	/* A close that spoils errno changes no answer. */
	errno = EIO;
	return -1;
}

constexpr shca_gift_calls calls = {fake_open, fake_ioctl, fake_close};

class Gift : public testing::Test
{
protected:
	void SetUp() override { fake = FakeDevice(); }
	void TearDown() override { EXPECT_EQ(fake.opened, fake.closed); }
};

void *somewhere()
{
	return reinterpret_cast<void *>(0x7fff12345678);
}

TEST_F(Gift, AsksForTheRangeAndTellsTheCounts)
{
	std::array<uint64_t, 4> bitmap{};
	uint64_t registered = 0;
	uint64_t stale = 0;

	EXPECT_EQ(shca_core_query_stale(&calls, somewhere(), 0x5001, bitmap.data(), &registered,
					&stale),
		  0);
	EXPECT_EQ(registered, 77U);
	EXPECT_EQ(stale, 5U);
	EXPECT_EQ(fake.path, "/dev/ib_gift");
	EXPECT_TRUE(fake.flags & O_CLOEXEC);
	EXPECT_EQ(fake.request, IB_GIFT_IOC_STALE);
	EXPECT_EQ(fake.query.comp_mask, 0U);
	EXPECT_EQ(fake.query.addr, 0x7fff12345678U);
	EXPECT_EQ(fake.query.length, 0x5001U);
	EXPECT_EQ(fake.query.bitmap, reinterpret_cast<uintptr_t>(bitmap.data()));
}

TEST_F(Gift, EveryAnswerMayBeUnwanted)
{
	EXPECT_EQ(shca_core_query_stale(&calls, somewhere(), 1, nullptr, nullptr, nullptr), 0);
	EXPECT_EQ(fake.query.bitmap, 0U);
}

TEST_F(Gift, NobodyWhoAnswersIsNotSupported)
{
	for (int error : {ENOENT, ENODEV, ENXIO}) {
		fake.open_errno = error;
		EXPECT_EQ(shca_core_query_stale(&calls, somewhere(), 1, nullptr, nullptr, nullptr),
			  EOPNOTSUPP)
			<< error;
	}
	fake.open_errno = 0;
	fake.ioctl_errno = ENOTTY;
	EXPECT_EQ(shca_core_query_stale(&calls, somewhere(), 1, nullptr, nullptr, nullptr),
		  EOPNOTSUPP);
}

TEST_F(Gift, ErrorsPassAsTheyAreAndLeaveTheCounts)
{
	uint64_t registered = 11;
	uint64_t stale = 22;

	for (int error : {EACCES, EMFILE}) {
		fake.open_errno = error;
		EXPECT_EQ(
			shca_core_query_stale(&calls, somewhere(), 1, nullptr, &registered, &stale),
			error);
	}
	fake.open_errno = 0;
	for (int error : {EINVAL, EFAULT, ENOMEM, EINTR}) {
		fake.ioctl_errno = error;
		EXPECT_EQ(
			shca_core_query_stale(&calls, somewhere(), 1, nullptr, &registered, &stale),
			error);
	}
	EXPECT_EQ(registered, 11U);
	EXPECT_EQ(stale, 22U);
}

TEST_F(Gift, WordsCoverEveryPageThatARangeTouches)
{
	const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	auto words = [page](size_t first_page, size_t offset, size_t length) {
		return shca_stale_words(reinterpret_cast<void *>(first_page * page + offset),
					length);
	};

	EXPECT_EQ(words(100, 0, 0), 0U);
	EXPECT_EQ(words(100, 0, 1), 1U);
	EXPECT_EQ(words(100, 0, 64 * page), 1U);
	EXPECT_EQ(words(100, 0, 64 * page + 1), 2U);
	/* Bit 0 is the first page of the range, wherever that begins. */
	EXPECT_EQ(words(163, 0, 64 * page), 1U);
	EXPECT_EQ(words(100, page - 1, 63 * page + 1), 1U);
	EXPECT_EQ(words(100, page - 1, 63 * page + 2), 2U);
	EXPECT_EQ(words(0, 0, SIZE_MAX), (SIZE_MAX / page) / 64 + 1);
}

} // namespace
