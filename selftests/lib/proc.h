/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Reads what the kernel says about memory, pins, modules and links, limits what the
 * process may lock, and runs the rdma and ip tools. Owns no state and never touches a
 * device.
 */
#ifndef SELFTESTS_PROC_H
#define SELFTESTS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* A "key value" line of a file below /proc or /sys; -1 when there is none. */
long long proc_field(const char *path, const char *key);
/* The number that a file holds; -1 when there is none. */
long long proc_number(const char *path);
bool proc_write(const char *path, const char *text);

/* System-wide memory, in bytes, with the per-CPU counters folded in. */
long long mem_anon(void);		/* AnonPages */
long long mem_cached(void);		/* Cached, which has Shmem in it */
long long mem_used(void);		/* neither free nor a swap device's */
/*
 * Memory that is in no account: neither free nor of a process, a file or the
 * slab, as is the huge zero page, which is there from the first call on. A page
 * that is kept by a reference alone adds to it. Waits until it keeps still, since
 * what a process had may be freed after its end.
 */
long long mem_lost(void);
/*
 * What was lost since @before, in bytes. While that is more than @most it is looked at
 * again for some seconds, after the kernel has been asked for memory: what its own
 * threads hold comes back, and the rest of a huge page of which a part is still mapped;
 * what is lost does not.
 */
long long mem_lost_since(long long before, long long most);
long long mem_huge_free(void);		/* huge pages free and not promised, in bytes */

/* A field of /proc/self/smaps for the mappings within a range, in bytes. */
long long mem_range(const void *addr, size_t length, const char *field);
/* The same of another process. */
long long mem_range_of(pid_t pid, const void *addr, size_t length, const char *field);

/* Pages that FOLL_PIN took minus those it gave back, system-wide. */
long long pins_now(void);
long long pins_taken(void);
/* VmPin of a process, which is pinned_vm, in bytes; 0 is this process. */
long long pinned_vm(pid_t pid);

/*
 * Takes CAP_IPC_LOCK away from this process; the user stays what he was, so that he
 * can go on reading counters.
 */
void drop_ipc_lock(void);
/* RLIMIT_MEMLOCK from now on; it can be raised again. */
void limit_memlock(rlim_t bytes);

/* Reference count of a module; -1 when it is not loaded. */
int module_refs(const char *name);

/* Runs a command silently; its exit status, 128 + signal, or 127. */
int run(const char *const argv[]);
#define RUN(...)	run((const char *const[]){ __VA_ARGS__, NULL })
/* As run(), keeping the first @size - 1 bytes of what it prints on both outputs. */
int run_output(char *out, size_t size, const char *const argv[]);

#endif /* SELFTESTS_PROC_H */
