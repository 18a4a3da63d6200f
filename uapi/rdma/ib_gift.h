/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * What ib_gift.ko and programs share: the access flag for ibv_reg_mr(), the
 * kinds of pages in a gift region, and the ioctls of /dev/ib_gift.
 *
 * Every structure is the same in 32-bit and 64-bit processes. Of a request,
 * comp_mask has a bit for every optional field that the caller filled in, and
 * reserved fields are 0; anything else is EINVAL (EOPNOTSUPP for comp_mask
 * bits that the module does not know). On return comp_mask has a bit for every
 * optional field that the module filled in. Version 1 has none.
 *
 * A structure may grow at its end. The module takes a structure of any length
 * that the ioctl number carries, from the fields of version 1 on, as long as
 * what it does not know is 0 (else E2BIG).
 */
#ifndef IB_GIFT_H
#define IB_GIFT_H

#include <linux/types.h>
#include <linux/ioctl.h>

/*
 * Registers memory without breaking copy-on-write. Goes with read access only:
 * together with LOCAL_WRITE, REMOTE_WRITE, REMOTE_ATOMIC, MW_BIND or ON_DEMAND
 * it is EINVAL. Lies in the optional range, which a stack that does not know
 * the bit drops silently: IB_GIFT_IOC_QUERY says whether it is honoured.
 */
#ifndef IB_UVERBS_ACCESS_GIFT
enum ib_gift_access_flags {
	IB_UVERBS_ACCESS_GIFT	= 1 << 29,
};

#define IB_UVERBS_ACCESS_GIFT	IB_UVERBS_ACCESS_GIFT
#endif

/* How a page of a gift region was taken, and why. */
enum ib_gift_page_kind {
	/* Long-term pinned: the owner's writes are seen through the region. */
	IB_GIFT_PAGE_PINNED	= 0,
	/* Held as they are; a write by the owner goes to a copy. */
	IB_GIFT_PAGE_ZERO	= 1,	/* zero page */
	IB_GIFT_PAGE_HUGE_ZERO	= 2,	/* subpage of the huge zero page */
	IB_GIFT_PAGE_KSM	= 3,	/* merged by KSM */
	IB_GIFT_PAGE_SHARED	= 4,	/* anonymous, mapped more than once */
	IB_GIFT_PAGE_FILE	= 5,	/* page cache in a private mapping */
	IB_GIFT_PAGE_KINDS	= 6,
};

#define IB_GIFT_ABI_VERSION	1
#define IB_GIFT_DEVICE_NAME_MAX	64

enum ib_gift_caps {
	/* IB_UVERBS_ACCESS_GIFT is honoured on the device in question. */
	IB_GIFT_CAP_HONOURED	= 1 << 0,
	/* ... whatever its driver, because calls are redirected. */
	IB_GIFT_CAP_EVERY_DRIVER = 1 << 1,
};

/*
 * IB_GIFT_IOC_QUERY: what is honoured on the RDMA device of this name. With
 * an empty name caps has only what holds for every device. ENODEV if there is
 * no device of the name.
 */
struct ib_gift_query {
	__aligned_u64 comp_mask;	/* in, out */
	char device[IB_GIFT_DEVICE_NAME_MAX];	/* in, ends with NUL */
	__aligned_u64 caps;		/* out: enum ib_gift_caps */
	__u32 abi_version;		/* out: IB_GIFT_ABI_VERSION */
	__u32 reserved;
};

/* IB_GIFT_IOC_STATS: the gift regions that the caller's memory is in. */
struct ib_gift_stats {
	__aligned_u64 comp_mask;	/* in, out */
	__aligned_u64 regions;		/* out */
	__aligned_u64 pages[8];		/* out: by enum ib_gift_page_kind */
};

/*
 * IB_GIFT_IOC_STALE: which pages of the caller's gift regions in a range are
 * no longer what its page tables map at their addresses, because it wrote to a
 * held page or mapped something else. What a device reads there may be old. A
 * page in several regions is stale if it is in one of them. A page that is
 * swapped out counts as stale, since nothing is faulted in to find out.
 *
 * Bit i % 64 of word i / 64 of the bitmap stands for page i of the range, the
 * first being the one that addr lies in.
 */
struct ib_gift_stale {
	__aligned_u64 comp_mask;	/* in, out */
	__aligned_u64 addr;		/* in */
	__aligned_u64 length;		/* in: bytes, at least 1 */
	__aligned_u64 bitmap;		/* in: address of __u64 words, or 0 */
	__aligned_u64 registered;	/* out: pages in a gift region */
	__aligned_u64 stale;		/* out: of those */
};

#define IB_GIFT_IOC_MAGIC	0xbe
#define IB_GIFT_IOC_QUERY	_IOWR(IB_GIFT_IOC_MAGIC, 0, struct ib_gift_query)
#define IB_GIFT_IOC_STATS	_IOWR(IB_GIFT_IOC_MAGIC, 1, struct ib_gift_stats)
#define IB_GIFT_IOC_STALE	_IOWR(IB_GIFT_IOC_MAGIC, 2, struct ib_gift_stale)

#endif /* IB_GIFT_H */
