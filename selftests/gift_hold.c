// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * gift_hold DEVICE: registers untouched memory with GIFT, prints how many gift
 * regions and held zero pages this process has then, and keeps the region until
 * its standard input ends. For shell tests; checks nothing itself.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_gift.h>

#define LENGTH	(64 * 4096UL)

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ib_gift_stats stats = {};
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	char byte;
	void *p;
	int fd;

	ctx = argc > 1 ? open_device(argv[1]) : NULL;
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!pd || p == MAP_FAILED)
		return 2;
	madvise(p, LENGTH, MADV_NOHUGEPAGE);
	mr = ibv_reg_mr(pd, p, LENGTH,
			(unsigned int)IB_UVERBS_ACCESS_GIFT | IBV_ACCESS_REMOTE_READ);
	if (!mr) {
		printf("not registered: %m\n");
		return 1;
	}
	fd = open("/dev/ib_gift", O_RDWR);
	if (fd < 0 || ioctl(fd, IB_GIFT_IOC_STATS, &stats))
		return 2;
	close(fd);
	printf("%llu regions, %llu zero pages\n",
	       (unsigned long long)stats.regions,
	       (unsigned long long)stats.pages[IB_GIFT_PAGE_ZERO]);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return ibv_dereg_mr(mr) ? 1 : 0;
}
