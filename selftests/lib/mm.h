/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Makes the kernel do to memory, at once and completely, what it does by itself
 * some time: merge, swap, split, collapse and move pages. What the machine does not
 * have ends the process with a failure. Knows nothing of registration.
 */
#ifndef SELFTESTS_MM_H
#define SELFTESTS_MM_H

#include <stdbool.h>
#include <stddef.h>

#define PAGE		4096UL
#define THP_SIZE	(2 * MIB)

/* Numbers that the headers of an older C library do not have. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE		25
#endif

/* The machine's one huge zero page is there as long as this process is. */
void mm_keep_huge_zero_page(void);
/* Huge pages are there, and khugepaged makes and splits none by itself. */
void mm_thp_ready(void);
/* Huge pages of hugetlbfs: so many more than are in use. */
void mm_hugetlb_reserve(size_t length);
/* Gives back those that nobody has; true if there is none any more. */
bool mm_hugetlb_empty(void);
/* All that is mergeable is scanned so often that KSM has merged what it can. */
void mm_ksm_scan(void);
void mm_ksm_start(void);
void mm_ksm_stop(void);

/* Moves this process to a memory cgroup, which what it allocates is charged to. */
void mm_cgroup_enter(void);
/* Reclaims from that cgroup, in every process that maps a page of it. */
void mm_cgroup_reclaim(void);
/* MADV_PAGEOUT until it has no more effect. Returns bytes that are swapped out. */
long long mm_pageout(void *p, size_t length);

/*
 * How many pages of a range move to another node when told to, out of those
 * that are present: a page with a reference that no page table explains stays.
 * Every process that maps it goes along.
 */
struct mm_moved {
	size_t present, moved;
};

struct mm_moved mm_move(void *p, size_t length);

#endif /* SELFTESTS_MM_H */
