// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns the knobs of memory management; see mm.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mm.h"
#include "proc.h"
#include "test.h"

#define THP_DIR		"/sys/kernel/mm/transparent_hugepage/"
#define KSM_DIR		"/sys/kernel/mm/ksm/"
#define HUGE_NR		"/proc/sys/vm/nr_hugepages"
#define CGROUP		"/sys/fs/cgroup/"
#define CGROUP_OWN	CGROUP "gift-selftest/"

#ifndef MPOL_MF_MOVE_ALL
#define MPOL_MF_MOVE_ALL 4
#endif

void mm_keep_huge_zero_page(void)
{
	static volatile unsigned char *kept;
	uintptr_t start;
	void *p;

	if (kept)
		return;
	p = mmap(NULL, 2 * THP_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(p != MAP_FAILED);
	start = ((uintptr_t)p + THP_SIZE - 1) & ~(THP_SIZE - 1);
	/* A kernel without huge pages has none of zeros either. */
	MUST(!madvise((void *)start, THP_SIZE, MADV_HUGEPAGE) || errno == EINVAL);
	kept = (void *)start;
	(void)*kept;
}

void mm_thp_ready(void)
{
	char mode[64] = "";
	int fd = open(THP_DIR "enabled", O_RDONLY | O_CLOEXEC);

	MUST(fd >= 0);
	MUST(read(fd, mode, sizeof(mode) - 1) > 0);
	close(fd);
	/* transparent_hugepage/enabled must be "always" or "madvise". */
	MUST(!strstr(mode, "[never]"));
	MUST(proc_number(THP_DIR "use_zero_page") == 1);
	if (proc_number(THP_DIR "khugepaged/scan_sleep_millisecs") != 3600000)
		MUST(proc_write(THP_DIR "khugepaged/scan_sleep_millisecs", "3600000"));
	mm_keep_huge_zero_page();
}

bool mm_hugetlb_empty(void)
{
	long long total = proc_field("/proc/meminfo", "HugePages_Total");
	char count[32];

	/* A page that becomes free while the pool shrinks can stay in it, as a surplus. */
	if (proc_field("/proc/meminfo", "HugePages_Free") < total)
		return false;
	snprintf(count, sizeof(count), "%lld", total);
	MUST(proc_write(HUGE_NR, count));
	MUST(proc_write(HUGE_NR, "0"));
	return proc_field("/proc/meminfo", "HugePages_Total") == 0;
}

void mm_hugetlb_reserve(size_t length)
{
	long long total = proc_field("/proc/meminfo", "HugePages_Total");
	long long free = proc_field("/proc/meminfo", "HugePages_Free") -
			 proc_field("/proc/meminfo", "HugePages_Rsvd");
	long long want = total - free + length / THP_SIZE;
	char count[32];

	MUST(proc_field("/proc/meminfo", "Hugepagesize") * 1024 == (long long)THP_SIZE);
	if (total >= want)
		return;
	snprintf(count, sizeof(count), "%lld", want);
	for (int i = 0; i < 3; i++) {
		MUST(proc_write(HUGE_NR, count));
		if (mem_huge_free() >= (long long)length)
			return;
		/* The cache of earlier tests' files may be in the way. */
		proc_write("/proc/sys/vm/drop_caches", "1");
		proc_write("/proc/sys/vm/compact_memory", "1");
	}
	MUST(mem_huge_free() >= (long long)length);
}

void mm_ksm_start(void)
{
	/* Off: it leaves out pages that did not merge the last time (6.7). */
	proc_write(KSM_DIR "smart_scan", "0");
	MUST(proc_write(KSM_DIR "pages_to_scan", "20000"));
	MUST(proc_write(KSM_DIR "sleep_millisecs", "1"));
	MUST(proc_write(KSM_DIR "run", "1"));
}

void mm_ksm_stop(void)
{
	MUST(proc_write(KSM_DIR "run", "0"));
}

void mm_ksm_scan(void)
{
	long long until = proc_number(KSM_DIR "full_scans") + 3;

	mm_ksm_start();
	/* A page is merged when it is met unchanged the second time. */
	while (proc_number(KSM_DIR "full_scans") < until)
		test_sleep_ms(5);
	mm_ksm_stop();
}

void mm_cgroup_enter(void)
{
	char pid[32];

	proc_write(CGROUP "cgroup.subtree_control", "+memory");
	MUST(!mkdir(CGROUP_OWN, 0755) || errno == EEXIST);
	snprintf(pid, sizeof(pid), "%d", getpid());
	MUST(proc_write(CGROUP_OWN "cgroup.procs", pid));
}

void mm_cgroup_reclaim(void)
{
	/* It says EAGAIN when there was less to be had. */
	MUST(!access(CGROUP_OWN "memory.reclaim", W_OK));
	for (int i = 0; i < 4; i++)
		proc_write(CGROUP_OWN "memory.reclaim", "256M");
}

long long mm_pageout(void *p, size_t length)
{
	long long swapped = -1, now = 0;

	MUST(proc_field("/proc/meminfo", "SwapFree") > 0);
	for (int i = 0; i < 5 && now != swapped; i++) {
		swapped = now;
		MUST(!madvise(p, length, MADV_PAGEOUT));
		now = mem_range(p, length, "Swap");
	}
	return now;
}

static long do_move(size_t n, void **pages, const int *nodes, int *status)
{
	return syscall(SYS_move_pages, 0, n, pages, nodes, status, MPOL_MF_MOVE_ALL);
}

struct mm_moved mm_move(void *p, size_t length)
{
	uintptr_t first = (uintptr_t)p & ~(PAGE - 1);
	size_t n = ((uintptr_t)p + length - first + PAGE - 1) / PAGE, present = 0;
	struct mm_moved result = {};
	void **pages = calloc(n, sizeof(*pages));
	int *nodes = calloc(n, sizeof(*nodes)), *status = calloc(n, sizeof(*status));

	MUST(pages && nodes && status);
	/* Boot with numa=fake=2 where there is one node only. */
	MUST(!access("/sys/devices/system/node/node1", F_OK));
	for (size_t i = 0; i < n; i++)
		pages[i] = (void *)(first + i * PAGE);
	MUST(!do_move(n, pages, NULL, status));
	for (size_t i = 0; i < n; i++) {
		if (status[i] < 0)
			continue;
		pages[present] = pages[i];
		nodes[present++] = !status[i];
	}
	result.present = present;
	if (present) {
		MUST(do_move(present, pages, nodes, status) >= 0);
		MUST(!do_move(present, pages, NULL, status));
		for (size_t i = 0; i < present; i++)
			result.moved += status[i] == nodes[i];
	}
	free(pages);
	free(nodes);
	free(status);
	return result;
}
