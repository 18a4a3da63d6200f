// SPDX-License-Identifier: GPL-2.0
/*
 * RLIMIT_MEMLOCK against the pages that RDMA holds in a process, as
 * ib_umem_get() does it: a held page is charged like a pinned one, since no
 * more than the limit may be kept from being reclaimed. Knows only page
 * numbers.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "gift.h"

/**
 * gift_charge() - charge pages to the caller
 * @mm: the caller's memory
 * @npages: number of pages
 *
 * Context: the process that registers.
 * Return: 0; -EPERM when the process may lock nothing at all; -ENOMEM when it
 * would exceed its limit.
 */
int gift_charge(struct mm_struct *mm, unsigned long npages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if (!can_do_mlock())
		return -EPERM;
	/* Added first, so that two threads cannot both pass below the limit. */
	if (atomic64_add_return(npages, &mm->pinned_vm) > limit &&
	    !capable(CAP_IPC_LOCK)) {
		gift_uncharge(mm, npages);
		return -ENOMEM;
	}
	return 0;
}

/**
 * gift_uncharge() - take back a charge
 * @mm: what was charged; need not be the caller's
 * @npages: number of pages
 */
void gift_uncharge(struct mm_struct *mm, unsigned long npages)
{
	atomic64_sub(npages, &mm->pinned_vm);
}
