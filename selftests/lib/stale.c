// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns the way to /dev/ib_gift and into the provider; see stale.h. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl.h>
#include <rdma/sample_hca-abi.h>

#include "proc.h"
#include "stale.h"

int gift_call(unsigned long request, void *arg)
{
	int fd = open("/dev/ib_gift", O_RDWR | O_CLOEXEC), ret;

	if (fd < 0)
		return errno;
	ret = ioctl(fd, request, arg) ? errno : 0;
	close(fd);
	return ret;
}

int gift_stale(const void *addr, size_t length, struct ib_gift_stale *answer)
{
	*answer = (struct ib_gift_stale){
		.addr = (uintptr_t)addr,
		.length = length,
	};
	return gift_call(IB_GIFT_IOC_STALE, answer);
}

unsigned long stale_pages(const void *addr, size_t length)
{
	struct ib_gift_stale answer;

	MUST_ERR(0, gift_stale(addr, length, &answer));
	return answer.stale;
}

bool stale_bit(const uint64_t *bitmap, size_t page)
{
	return bitmap[page / 64] >> page % 64 & 1;
}

/* What asking could change of the caller, besides faults. */
struct asked {
	long rss, swap, pins;
};

static struct asked asked_now(void)
{
	return (struct asked){
		.rss = proc_field("/proc/self/smaps_rollup", "Rss"),
		.swap = proc_field("/proc/self/smaps_rollup", "Swap"),
		.pins = pins_taken(),
	};
}

/* Not inline: what it writes to is then the same each time. */
static __attribute__((noinline)) long faults(void)
{
	struct rusage usage;

	MUST(!getrusage(RUSAGE_SELF, &usage));
	return usage.ru_minflt + usage.ru_majflt;
}

uint64_t stale_ask(const struct mem *m, uint64_t *bitmap)
{
	struct ib_gift_stale query = {
		.addr = (uintptr_t)m->p,
		.length = m->length,
		.bitmap = (uintptr_t)bitmap,
	};
	int fd = open("/dev/ib_gift", O_RDWR | O_CLOEXEC), ret;
	struct asked before, after;
	struct ib_gift_stats stats = {};
	long first, last;

	MUST(fd >= 0);
	/* Each is called for nothing first, so that its own pages are there. */
	asked_now();
	faults();
	MUST(!ioctl(fd, IB_GIFT_IOC_STATS, &stats));
	before = asked_now();
	faults();
	first = faults();
	ret = ioctl(fd, IB_GIFT_IOC_STALE, &query);
	last = faults();
	after = asked_now();
	MUST(!ret);
	close(fd);
	CHECK_EQ(first, last);
	CHECK_EQ(before.rss, after.rss);
	CHECK_EQ(before.swap, after.swap);
	CHECK_EQ(before.pins, after.pins);
	CHECK_EQ(mem_pages(m), query.registered);
	return query.stale;
}

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	if (!strstr(info->dlpi_name, "/libsample_hca"))
		return 0;
	*(const char **)arg = info->dlpi_name;
	return 1;
}

/* A function of the library that libibverbs has loaded, and not of another copy. */
static void *provider_function(const char *name)
{
	const char *path = NULL;
	void *library, *function;

	dl_iterate_phdr(find_library, &path);
	MUST(path);
	library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	MUST(library);
	function = dlsym(library, name);
	MUST(function);
	return function;
}

int provider_query_stale(const void *addr, size_t length, uint64_t *bitmap,
			 uint64_t *registered, uint64_t *stale)
{
	static int (*query)(const void *addr, size_t length, uint64_t *bitmap,
			    uint64_t *registered, uint64_t *stale);

	if (!query)
		query = provider_function("shca_query_stale");
	return query(addr, length, bitmap, registered, stale);
}

int provider_refresh(struct ibv_mr *mr, void *addr, size_t length,
		     uint64_t *retaken)
{
	static int (*refresh)(struct ibv_mr *mr, void *addr, size_t length,
			      uint64_t *retaken);

	if (!refresh)
		refresh = provider_function("shca_refresh_mr");
	return refresh(mr, addr, length, retaken);
}

uint64_t refresh(struct ibv_mr *mr)
{
	uint64_t retaken = 0;

	MUST_ERR(0, provider_refresh(mr, mr->addr, mr->length, &retaken));
	return retaken;
}

int raw_refresh(struct ibv_context *ctx, uint32_t handle, uint64_t addr,
		uint64_t length, uint64_t *retaken)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[4];
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = UVERBS_OBJECT_MR,
			.method_id = SHCA_METHOD_MR_REFRESH,
			.num_attrs = 4,
			.driver_id = RDMA_DRIVER_UNKNOWN,
		},
		.attrs = {
			{ .attr_id = SHCA_ATTR_MR_REFRESH_HANDLE,
			  .flags = UVERBS_ATTR_F_MANDATORY, .data = handle },
			{ .attr_id = SHCA_ATTR_MR_REFRESH_ADDR, .len = 8,
			  .flags = UVERBS_ATTR_F_MANDATORY, .data = addr },
			{ .attr_id = SHCA_ATTR_MR_REFRESH_LENGTH, .len = 8,
			  .flags = UVERBS_ATTR_F_MANDATORY, .data = length },
			{ .attr_id = SHCA_ATTR_MR_REFRESH_RETAKEN, .len = 8,
			  .flags = UVERBS_ATTR_F_MANDATORY,
			  .data = (uintptr_t)retaken },
		},
	};

	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}
