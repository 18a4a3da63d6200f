/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only place that knows kernel versions: gives every module the same names
 * on each supported kernel, in the newest one's terms. Holds no logic of a
 * module's own.
 */
#ifndef _COMPAT_H
#define _COMPAT_H

#include <linux/ftrace.h>
#include <linux/mm.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <rdma/uverbs_ioctl.h>

/*
 * What ib_umem_get() passes to pin_user_pages_fast() for a region that is not
 * writable. Up to 6.2 it writes to read-only mappings by force, so that
 * copy-on-write is broken early; since then FOLL_LONGTERM alone does that.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define COMPAT_UMEM_READ_PIN	(FOLL_WRITE | FOLL_FORCE | FOLL_LONGTERM)
#else
#define COMPAT_UMEM_READ_PIN	FOLL_LONGTERM
#endif

/*
 * How many page tables map this one page, as part of its folio or by itself.
 * For a page that the caller has a reference to; a snapshot.
 */
static inline int compat_page_mapcount(struct page *page)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	return page_mapcount(page);
#else
	struct folio *folio = page_folio(page);
	int count = atomic_read(&page->_mapcount) + 1;

	return folio_test_large(folio) ?
	       count + folio_entire_mapcount(folio) : count;
#endif
}

/* The address without the bits that hardware ignores; mmap lock of mm held. */
static inline unsigned long compat_untagged_addr(struct mm_struct *mm,
						 unsigned long addr)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	return untagged_addr(addr);
#else
	return untagged_addr_remote(mm, addr);
#endif
}

/* get_user_pages() without the list of mappings; mmap lock held. */
static inline long compat_get_user_pages(unsigned long addr, unsigned long nr,
					 unsigned int flags,
					 struct page **pages)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return get_user_pages(addr, nr, flags, pages, NULL);
#else
	return get_user_pages(addr, nr, flags, pages);
#endif
}

/*
 * The last argument of ib_device_ops.create_cq is struct compat_create_cq_arg;
 * a kernel consumer gives none.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define compat_create_cq_arg ib_udata
static inline struct ib_udata *
compat_create_cq_udata(struct compat_create_cq_arg *arg)
{
	return arg;
}
#else
#define compat_create_cq_arg uverbs_attr_bundle
static inline struct ib_udata *
compat_create_cq_udata(struct compat_create_cq_arg *arg)
{
	return arg ? &arg->driver_udata : NULL;
}
#endif

/* Can a call of a function be redirected, with its arguments looked at? */
#ifdef CONFIG_DYNAMIC_FTRACE_WITH_REGS
#define COMPAT_CAN_REDIRECT	1
#else
#define COMPAT_CAN_REDIRECT	0
#endif

/* Argument n of the call that an ftrace callback is in; with SAVE_REGS. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define compat_ftrace_arg(fregs, n) \
	regs_get_kernel_argument(ftrace_get_regs(fregs), n)
#define compat_ftrace_redirect(fregs, to) \
	ftrace_instruction_pointer_set(fregs, (unsigned long)(to))
#else
#define compat_ftrace_arg(fregs, n)	ftrace_regs_get_argument(fregs, n)
#define compat_ftrace_redirect(fregs, to) \
	ftrace_regs_set_instruction_pointer(fregs, (unsigned long)(to))
#endif

/*
 * Does every driver that re-registers memory refuse to make a read-only region
 * writable without taking its pages anew? Kbuild looks for the function that
 * came with this check.
 */
#ifdef COMPAT_HAVE_UMEM_CHECK_REREG
#define COMPAT_REREG_IS_CHECKED	true
#else
#define COMPAT_REREG_IS_CHECKED	false
#endif

/* siw pinned pages by itself once. */
#define COMPAT_SIW_USES_UMEM	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0))

#endif /* _COMPAT_H */
