// SPDX-License-Identifier: GPL-2.0
/*
 * Says of each page whether a copy-on-write is pending on it, and of which
 * sort. Owns that rule; takes and gives back no page.
 *
 * Everything here is a snapshot. Between it and the use that is made of it,
 * fork, KSM, reclaim and the program's other threads go on, and no lock that
 * could stop all of them may be held while pages are faulted in. None is
 * needed: a page called shared that has just become the owner's alone is held,
 * and goes stale when the owner writes; a page called the owner's that has just
 * become shared is unshared by the pin, at the cost of one copy. What is taken
 * is in either case given back the way it was taken.
 */
#include <linux/fs.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/page-flags.h>

#include "../compat.h"
#include "gift.h"

/**
 * gift_kind() - how a page is to be taken
 * @facts: what is known of the page
 *
 * The map count decides on anonymous memory, and not PageAnonExclusive, which
 * is only on a huge page's head, is cleared while reclaim tries to unmap, and
 * stays clear after the other owner is gone.
 *
 * hugetlb is never held: its write fault decides by map count alone whether to
 * reuse a page, and so could write into one that another process registered.
 * Device memory is never held: truncating a file on it waits for plain
 * references.
 *
 * Context: any; a pure function.
 * Return: %IB_GIFT_PAGE_PINNED, or the reason to hold it.
 */
enum ib_gift_page_kind gift_kind(const struct gift_page_facts *facts)
{
	if (facts->hugetlb || facts->device)
		return IB_GIFT_PAGE_PINNED;
	if (facts->ksm)
		return IB_GIFT_PAGE_KSM;
	if (facts->anon)
		return facts->mapcount > 1 ? IB_GIFT_PAGE_SHARED :
					     IB_GIFT_PAGE_PINNED;

	switch (facts->mapping) {
	case GIFT_MAPPING_PRIVATE_ANON:
		/* Nothing else is found in such a mapping. */
		return facts->zero ? IB_GIFT_PAGE_ZERO : IB_GIFT_PAGE_HUGE_ZERO;
	case GIFT_MAPPING_PRIVATE_FILE:
		return facts->zero ? IB_GIFT_PAGE_ZERO : IB_GIFT_PAGE_FILE;
	case GIFT_MAPPING_UNKNOWN:
	case GIFT_MAPPING_SHARED:
		break;
	}
	return IB_GIFT_PAGE_PINNED;
}

static void page_facts(struct page *page, struct gift_page_facts *facts)
{
	struct folio *folio = page_folio(page);

	*facts = (struct gift_page_facts) {
		.hugetlb = folio_test_hugetlb(folio),
		.device = is_zone_device_page(page),
		.anon = folio_test_anon(folio),
		.ksm = folio_test_ksm(folio),
		.zero = is_zero_pfn(page_to_pfn(page)),
	};
	if (facts->anon && !facts->ksm)
		facts->mapcount = compat_page_mapcount(page);
}

static enum gift_mapping mapping_of(struct vm_area_struct *vma)
{
	if (!is_cow_mapping(vma->vm_flags))
		return GIFT_MAPPING_SHARED;
	return vma_is_anonymous(vma) ? GIFT_MAPPING_PRIVATE_ANON :
				       GIFT_MAPPING_PRIVATE_FILE;
}

/*
 * The second look, at pages that only their mapping tells about.
 *
 * What a file on device memory has is refused by the pin, but for its holes: they are
 * mapped as zero pages, in shared mappings too, which the fast pin takes when they are
 * huge. A region of such a page never shows what is written there.
 */
static int classify_by_mapping(struct gift_batch *batch, struct mm_struct *mm,
			       unsigned long addr, unsigned int nr,
			       unsigned int first)
{
	struct vm_area_struct *vma = NULL;
	struct gift_page_facts facts;
	unsigned long at;
	unsigned int i;
	int ret = 0;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	for (i = first; i < nr; i++) {
		page_facts(batch->pages[i], &facts);
		if (facts.anon)
			continue;
		at = compat_untagged_addr(mm, addr) + i * PAGE_SIZE;
		if (!vma || at < vma->vm_start || at >= vma->vm_end)
			vma = find_vma(mm, at);
		if (vma && at >= vma->vm_start) {
			if (vma_is_fsdax(vma)) {
				ret = -EOPNOTSUPP;
				break;
			}
			facts.mapping = mapping_of(vma);
		}
		batch->kinds[i] = gift_kind(&facts);
		if (facts.hugetlb && facts.mapping == GIFT_MAPPING_PRIVATE_FILE)
			batch->pin_flags = COMPAT_UMEM_READ_PIN;
	}
	mmap_read_unlock(mm);
	return ret;
}

/**
 * gift_classify() - how pages are to be taken
 * @batch: its @pages, in order of address, each with a reference of the
 *	caller's; @kinds and @pin_flags are filled in
 * @mm: the memory that they are mapped in
 * @addr: user address of the first, a multiple of PAGE_SIZE
 * @nr: number of pages
 *
 * FOLL_LONGTERM suffices to pin, except for what is in the page cache of a
 * hugetlb file and mapped privately: a pin that breaks the copy-on-write, as
 * ib_umem_get()'s does, must be asked for where it does not do so by itself.
 *
 * Context: may sleep; takes the mmap lock of @mm for reading, and only when
 * some page is not anonymous.
 * Return: 0, -EINTR after a fatal signal, or -EOPNOTSUPP for a file on device memory.
 */
int gift_classify(struct gift_batch *batch, struct mm_struct *mm,
		  unsigned long addr, unsigned int nr)
{
	unsigned int first = nr;
	struct gift_page_facts facts;
	unsigned int i;

	batch->pin_flags = FOLL_LONGTERM;
	for (i = 0; i < nr; i++) {
		page_facts(batch->pages[i], &facts);
		batch->kinds[i] = gift_kind(&facts);
		if (!facts.anon && !facts.device)
			first = min(first, i);
	}
	if (first == nr)
		return 0;
	return classify_by_mapping(batch, mm, addr, nr, first);
}
