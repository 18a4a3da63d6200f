// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What is asked of /dev/ib_gift, which answers for every driver. Owns the file
 * descriptor for the time of one question. Never talks to a device.
 */
#include <cerrno>
#include <fcntl.h>
#include <rdma/ib_gift.h>

#include "core.h"

namespace
{

constexpr const char *gift_device = "/dev/ib_gift";

/* No module, no node, or an older module: nobody here answers the question. */
int no_answer(int error)
{
	switch (error) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case ENOTTY:
		return EOPNOTSUPP;
	default:
		return error;
	}
}

} // namespace

int shca_core_query_stale(const shca_gift_calls *calls, const void *addr, size_t length,
			  uint64_t *bitmap, uint64_t *registered, uint64_t *stale)
{
	ib_gift_stale query{};
	int fd = calls->open(gift_device, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return no_answer(errno);
	query.addr = reinterpret_cast<uintptr_t>(addr);
	query.length = length;
	query.bitmap = reinterpret_cast<uintptr_t>(bitmap);
	int ret = calls->ioctl(fd, IB_GIFT_IOC_STALE, &query) ? no_answer(errno) : 0;
	calls->close(fd);
	if (ret)
		return ret;
	if (registered)
		*registered = query.registered;
	if (stale)
		*stale = query.stale;
	return 0;
}
