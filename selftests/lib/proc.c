// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Owns the parsing of /proc and /sys, the process's own limits, and the running of
 * commands; see proc.h.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#include "mm.h"
#include "proc.h"
#include "test.h"

long long proc_field(const char *path, const char *key)
{
	size_t length = strlen(key);
	long long value = -1;
	char line[512];
	FILE *f;

	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, length) ||
		    (line[length] != ':' && line[length] != ' ' &&
		     line[length] != '\t'))
			continue;
		if (sscanf(line + length, "%*[: \t]%lld", &value) != 1)
			value = -1;
		break;
	}
	fclose(f);
	return value;
}

long long proc_number(const char *path)
{
	long long value = -1;
	FILE *f;

	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fscanf(f, "%lld", &value) != 1)
		value = -1;
	fclose(f);
	return value;
}

bool proc_write(const char *path, const char *text)
{
	ssize_t length = strlen(text);
	bool ok;
	int fd;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = write(fd, text, length) == length;
	close(fd);
	return ok;
}

/* Counters are kept by CPU and lag behind by some dozen pages each. */
static void fold_counters(void)
{
	proc_write("/proc/sys/vm/stat_refresh", "1");
}

static long long mem_field(const char *key)
{
	long long kib;

	fold_counters();
	kib = proc_field("/proc/meminfo", key);
	MUST(kib >= 0);
	return kib * 1024;
}

long long mem_anon(void)
{
	return mem_field("AnonPages");
}

long long mem_cached(void)
{
	return mem_field("Cached");
}

/* Free pages on the CPUs' own lists, which MemFree leaves out. */
static long long mem_free_by_cpu(void)
{
	long long pages, sum = 0;
	char line[256];
	FILE *f;

	f = fopen("/proc/zoneinfo", "r");
	MUST(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %lld", &pages) == 1)
			sum += pages;
	fclose(f);
	return sum * sysconf(_SC_PAGESIZE);
}

/* What is swapped out to compressed memory is not the processes' any more. */
static long long mem_swap_device(void)
{
	long long original, compressed, used = 0;
	FILE *f;

	f = fopen("/sys/block/zram0/mm_stat", "r");
	if (!f)
		return 0;
	MUST(fscanf(f, "%lld %lld %lld", &original, &compressed, &used) == 3);
	fclose(f);
	return used;
}

long long mem_used(void)
{
	return mem_field("MemTotal") - mem_field("MemFree") - mem_free_by_cpu() -
	       mem_swap_device();
}

static long long mem_accounted_not(void)
{
	static const char *const accounts[] = {
		"MemFree:", "Buffers:", "Cached:", "SwapCached:", "AnonPages:",
		"Slab:", "PageTables:", "KernelStack:", "Percpu:",
	};
	char key[64], line[128];
	long long lost = 0, kib;
	FILE *f;

	f = fopen("/proc/meminfo", "r");
	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %lld", key, &kib) != 2)
			continue;
		if (!strcmp(key, "MemTotal:"))
			lost += kib * 1024;
		for (size_t i = 0; i < ARRAY_LEN(accounts); i++)
			if (!strcmp(key, accounts[i]))
				lost -= kib * 1024;
	}
	fclose(f);
	return lost;
}

/*
 * Two files for one moment. To fold the counters empties the CPUs' own lists, of tens
 * of MiB on 6.12, so that comes first, and the kernel does it every second itself.
 */
static long long mem_lost_now(void)
{
	const long long still = 16 * PAGE;
	long long before, after, lost;
	int tries = 50;

	fold_counters();
	after = mem_free_by_cpu();
	do {
		before = after;
		lost = mem_accounted_not() - before;
		after = mem_free_by_cpu();
	} while ((after - before > still || before - after > still) && --tries);
	return lost;
}

long long mem_lost(void)
{
	const long long still = 128 * KIB;
	long long now, last;

	/* Which comes and goes, and is in no account either. */
	mm_keep_huge_zero_page();
	now = mem_lost_now();
	for (int i = 0; i < 100; i++) {
		test_sleep_ms(20);
		last = now;
		now = mem_lost_now();
		if (now - last < still && last - now < still)
			break;
	}
	return now;
}

long long mem_lost_since(long long before, long long most)
{
	long long lost = mem_lost() - before;

	for (int i = 0; lost > most && i < 20; i++) {
		test_sleep_ms(100);
		/* Has huge pages split of which a part is mapped. */
		proc_write("/proc/sys/vm/drop_caches", "2");
		lost = mem_lost() - before;
	}
	return lost;
}

long long mem_huge_free(void)
{
	return (proc_field("/proc/meminfo", "HugePages_Free") -
		proc_field("/proc/meminfo", "HugePages_Rsvd")) *
	       proc_field("/proc/meminfo", "Hugepagesize") * 1024;
}

long long mem_range_of(pid_t pid, const void *addr, size_t length, const char *field)
{
	uintptr_t first = (uintptr_t)addr, end = first + length;
	size_t key = strlen(field);
	bool inside = false, seen = false;
	long long sum = 0;
	char line[512], path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	f = fopen(path, "r");
	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;
		long long kib;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			inside = from >= first && to <= end;
			seen |= inside;
		} else if (inside && !strncmp(line, field, key) &&
			   line[key] == ':' &&
			   sscanf(line + key + 1, "%lld", &kib) == 1) {
			sum += kib * 1024;
		}
	}
	fclose(f);
	/* A range that shares its mapping with others cannot be told apart. */
	MUST(seen);
	return sum;
}

long long mem_range(const void *addr, size_t length, const char *field)
{
	return mem_range_of(getpid(), addr, length, field);
}

long long pins_taken(void)
{
	long long n;

	fold_counters();
	n = proc_field("/proc/vmstat", "nr_foll_pin_acquired");
	MUST(n >= 0);
	return n;
}

long long pins_now(void)
{
	long long taken = pins_taken();
	long long released = proc_field("/proc/vmstat", "nr_foll_pin_released");

	MUST(released >= 0);
	return taken - released;
}

long long pinned_vm(pid_t pid)
{
	char path[64];
	long long kib;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/status", pid);
	else
		snprintf(path, sizeof(path), "/proc/self/status");
	kib = proc_field(path, "VmPin");
	MUST(kib >= 0);
	return kib * 1024;
}

void drop_ipc_lock(void)
{
	struct __user_cap_header_struct hdr = { _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {};

	MUST(!syscall(SYS_capget, &hdr, data));
	data[CAP_IPC_LOCK / 32].effective &= ~(1U << CAP_IPC_LOCK % 32);
	data[CAP_IPC_LOCK / 32].permitted &= ~(1U << CAP_IPC_LOCK % 32);
	MUST(!syscall(SYS_capset, &hdr, data));
}

void limit_memlock(rlim_t bytes)
{
	struct rlimit l = { bytes, RLIM_INFINITY };

	MUST(!setrlimit(RLIMIT_MEMLOCK, &l));
}

int module_refs(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s/refcnt", name);
	return proc_number(path);
}

int run_output(char *out, size_t size, const char *const argv[])
{
	int pipefd[2], status;
	size_t length = 0;
	char junk[256];
	pid_t pid;

	fflush(stdout);
	MUST(!pipe2(pipefd, O_CLOEXEC));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		dup2(pipefd[1], STDOUT_FILENO);
		dup2(pipefd[1], STDERR_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(pipefd[1]);
	for (;;) {
		bool keep = out && length + 1 < size;
		ssize_t n = read(pipefd[0], keep ? out + length : junk,
				 keep ? size - 1 - length : sizeof(junk));

		if (n <= 0)
			break;
		if (keep)
			length += n;
	}
	if (out)
		out[length] = '\0';
	close(pipefd[0]);
	MUST(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run(const char *const argv[])
{
	return run_output(NULL, 0, argv);
}
