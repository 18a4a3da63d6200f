// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * post-bench: what a post costs. Posts RDMA WRITEs of 64 bytes from memory of each
 * kind and prints the median time of ibv_post_send(). Run it as it is and under
 * gift-run: the difference is what the look for stale pages costs. Then prints what
 * such a look costs by itself, by how many pages it is at.
 */
#include <fcntl.h>
#include <rdma/ib_gift.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include "../gift-demo/connection.hpp"

namespace
{

using demo::Connection;
using demo::Mr;

constexpr size_t page = 4096;
constexpr size_t pages = 1024;
constexpr size_t turns = 501;

struct Kind {
	const char *name;
	size_t before; /* pages written before the registration */
	size_t after;  /* ... and after it */
};

constexpr Kind kinds[] = {
	{"owned", pages, 0},
	{"untouched", 0, 0},
	{"written after", 0, 8},
};

unsigned char *memory()
{
	void *const p = mmap(nullptr, pages * page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		demo::fail(errno, "mmap");
	}
	madvise(p, pages * page, MADV_NOHUGEPAGE);
	return static_cast<unsigned char *>(p);
}

/* The median of what a call takes, in nanoseconds. */
template <typename Call, typename After>
double median(Call call, After after)
{
	std::vector<double> times;

	for (size_t i = 0; i < turns; i++) {
		const auto start = std::chrono::steady_clock::now();
		call(i);
		const std::chrono::duration<double, std::nano> time =
			std::chrono::steady_clock::now() - start;

		times.push_back(time.count());
		after();
	}
	std::nth_element(times.begin(), times.begin() + turns / 2, times.end());
	return times[turns / 2];
}

void post(ibv_context *context, const Kind &kind)
{
	Connection from(context);
	Connection to(context);
	unsigned char *const source = memory();
	unsigned char *const target = memory();

	from.connect(to.address());
	to.connect(from.address());
	for (size_t i = 0; i < kind.before; i++) {
		source[i * page] = 1;
	}
	const Mr mr = demo::register_memory(from.pd(), source, pages * page, 0);
	const Mr into = demo::register_memory(to.pd(), target, pages * page,
					      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	for (size_t i = 0; i < kind.after; i++) {
		source[i * page] = 2;
	}
	const double time = median(
		[&](size_t i) {
			ibv_sge sge{reinterpret_cast<uintptr_t>(source + i % 8 * page), 64,
				    mr->lkey};
			ibv_send_wr work{};

			work.sg_list = &sge;
			work.num_sge = 1;
			work.opcode = IBV_WR_RDMA_WRITE;
			work.send_flags = IBV_SEND_SIGNALED;
			work.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(target);
			work.wr.rdma.rkey = into->rkey;
			from.post(work);
		},
		[&] { from.wait(); });
	printf("  post of 64 bytes, %-14s %10.0f ns\n", kind.name, time);
	munmap(source, pages * page);
	munmap(target, pages * page);
}

void look(ibv_context *context, size_t number)
{
	Connection connection(context);
	unsigned char *const source = memory();
	uint64_t bitmap[pages / 64];
	const int fd = open("/dev/ib_gift", O_RDWR | O_CLOEXEC);
	const Mr mr = demo::register_memory(connection.pd(), source, pages * page, IBV_ACCESS_GIFT);

	const double time = median(
		[&](size_t) {
			ib_gift_stale query{};

			query.addr = reinterpret_cast<uintptr_t>(source);
			query.length = number * page;
			query.bitmap = reinterpret_cast<uintptr_t>(bitmap);
			if (ioctl(fd, IB_GIFT_IOC_STALE, &query) || query.registered != number) {
				demo::fail(errno, "IB_GIFT_IOC_STALE");
			}
		},
		[] {});
	printf("  look at %4zu pages              %10.0f ns\n", number, time);
	close(fd);
	munmap(source, pages * page);
}

} // namespace

int main()
{
	try {
		const demo::Context context = demo::open_gift_device();

		for (const Kind &kind : kinds) {
			post(context.get(), kind);
		}
		for (const size_t number : {1, 16, 256, 1024}) {
			look(context.get(), number);
		}
	} catch (const std::exception &error) {
		fprintf(stderr, "post-bench: %s\n", error.what());
		return 1;
	}
	return 0;
}
