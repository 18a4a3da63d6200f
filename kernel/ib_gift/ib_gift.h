/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What ib_gift.ko offers to RDMA drivers. Owns the kernel name of the access
 * flag and the rules of what it may be combined with; holds nothing that only
 * ib_gift's own files need.
 */
#ifndef _IB_GIFT_KERNEL_H
#define _IB_GIFT_KERNEL_H

#include <linux/errno.h>
#include <linux/types.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_gift.h>

/* One more of enum ib_access_flags, which an out-of-tree module cannot extend. */
#define IB_ACCESS_GIFT	IB_UVERBS_ACCESS_GIFT

/* What a region must not ask for together with IB_ACCESS_GIFT. */
#define IB_GIFT_ACCESS_REFUSED						\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND |			\
	 IB_ACCESS_ON_DEMAND)

/**
 * ib_gift_check_access() - is this a legal set of access flags
 * @access: IB_ACCESS_xxx flags of a registration
 *
 * A device never writes through a gift region, so the flag goes with read
 * access only. Without IB_ACCESS_GIFT every set is legal as far as GIFT goes.
 * ib_gift_umem_get() makes the same check; drivers that must refuse before
 * they allocate, and re-registrations, call it themselves.
 *
 * Context: any.
 * Return: 0, or -EINVAL.
 */
static inline int ib_gift_check_access(int access)
{
	if ((access & IB_ACCESS_GIFT) && (access & IB_GIFT_ACCESS_REFUSED))
		return -EINVAL;
	return 0;
}

/**
 * struct ib_gift_umem_counts - how the pages of a gift umem were taken
 * @pages: number of pages by enum ib_gift_page_kind; their sum is the number
 *	of pages that the region touches
 */
struct ib_gift_umem_counts {
	u64 pages[IB_GIFT_PAGE_KINDS];
};

/*
 * Drop-in for ib_umem_get() and ib_umem_release(), and exactly those when
 * access does not have IB_ACCESS_GIFT. A gift umem is mapped DMA_TO_DEVICE, has
 * writable == 0, and must never reach ib_umem_release(); all other ib_umem
 * helpers accept it.
 */
struct ib_umem *ib_gift_umem_get(struct ib_device *device, unsigned long addr,
				 size_t size, int access);
void ib_gift_umem_release(struct ib_umem *umem);

/*
 * A gift umem like the one that there is, with the stale pages taken again.
 * The driver makes the device use it and releases the old one, or releases the
 * new one and goes on with the old.
 */
struct ib_umem *ib_gift_umem_refresh(struct ib_umem *umem, u64 addr,
				     u64 length, u64 *retaken);

bool ib_gift_umem_stats(struct ib_umem *umem,
			struct ib_gift_umem_counts *counts);

/*
 * A driver that registers memory through ib_gift_umem_get() says so, in its
 * enable_driver() or after ib_register_device(), and takes it back before
 * ib_unregister_device(): this is what IB_GIFT_IOC_QUERY answers from.
 */
int ib_gift_register_device(struct ib_device *device);
void ib_gift_unregister_device(struct ib_device *device);

#endif /* _IB_GIFT_KERNEL_H */
