// SPDX-License-Identifier: GPL-2.0
/*
 * ib_gift_umem_get() and ib_gift_umem_release(): a gift region from the
 * arguments of a registration to a DMA-mapped struct ib_umem, and back. Owns
 * the order in which things are done and undone. What a page is, how it is
 * taken, and what may be charged is decided elsewhere.
 */
#include <linux/dma-mapping.h>
#include <linux/export.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "gift.h"
#include "trace.h"

/* Pages given back between two offers of the CPU. */
#define RELEASE_CHUNK	16384UL

/*
 * Gives back every page in the scatterlist. The list has the pages in order
 * and merges neighbours, the runs have the kinds in the same order.
 */
static void give_back_all(struct gift_umem *gift)
{
	unsigned int run = 0, run_left = 0, i;
	unsigned long since_resched = 0;
	struct scatterlist *sg;

	for_each_sgtable_sg(&gift->umem.sgt_append.sgt, sg, i) {
		unsigned long sg_left = DIV_ROUND_UP(sg->length, PAGE_SIZE);
		struct page *page = sg_page(sg);

		while (sg_left) {
			unsigned long nr;

			if (!run_left)
				run_left = gift_run_pages(&gift->runs, run++);
			nr = min3(sg_left, (unsigned long)run_left,
				  RELEASE_CHUNK);
			gift_give_back(page, nr,
				       gift_run_kind(&gift->runs, run - 1));
			page = nth_page(page, nr);
			sg_left -= nr;
			run_left -= nr;

			since_resched += nr;
			if (since_resched >= RELEASE_CHUNK) {
				since_resched = 0;
				cond_resched();
			}
		}
	}
}

static void gift_free(struct kref *ref)
{
	struct gift_umem *gift = container_of(ref, struct gift_umem, ref);

	gift_index_free(gift);
	gift_runs_free(&gift->runs);
	sg_free_append_table(&gift->umem.sgt_append);
	kfree(gift);
}

/**
 * gift_put() - no longer look at a region
 * @gift: a region that this caller has a reference of
 *
 * Context: any process.
 */
void gift_put(struct gift_umem *gift)
{
	kref_put(&gift->ref, gift_free);
}

/**
 * gift_alloc() - a region that has no page yet
 * @device: device that is to read it
 * @addr: user address of the first byte, in current->mm
 * @size: number of bytes
 * @npages: number of pages that those touch
 *
 * Return: the region, for gift_drop(), or NULL.
 */
struct gift_umem *gift_alloc(struct ib_device *device, unsigned long addr,
			     size_t size, unsigned long npages)
{
	struct gift_umem *gift;

	gift = kzalloc(sizeof(*gift), GFP_KERNEL_ACCOUNT);
	if (!gift)
		return NULL;
	gift->umem.ibdev = device;
	gift->umem.address = addr;
	gift->umem.iova = addr;
	gift->umem.length = size;
	gift->umem.owning_mm = current->mm;
	gift->npages = npages;
	gift->tgid = task_tgid_nr(current);
	get_task_comm(gift->comm, current->group_leader);
	kref_init(&gift->ref);
	mmgrab(gift->umem.owning_mm);
	return gift;
}

/**
 * gift_drop() - undo gift_alloc()
 * @gift: region whose pages are given back
 *
 * Context: any process.
 */
void gift_drop(struct gift_umem *gift)
{
	mmdrop(gift->umem.owning_mm);
	gift_put(gift);
}

/**
 * gift_append() - put taken pages behind those that a region has
 * @gift: region
 * @batch: the pages, which are the region's after success
 * @nr: number of pages
 * @left: number of pages that are still to come
 *
 * Context: may sleep.
 * Return: 0 or a negative errno, and then the region is as before.
 */
int gift_append(struct gift_umem *gift, struct gift_batch *batch,
		unsigned int nr, unsigned long left)
{
	unsigned int i, end, nr_runs = 0;
	int ret;

	for (i = 0; i < nr; i++)
		nr_runs += !i || batch->kinds[i] != batch->kinds[i - 1];
	ret = gift_runs_reserve(&gift->runs, nr_runs);
	if (ret)
		return ret;
	/* On failure the table is as before, so nothing is given back twice. */
	ret = sg_alloc_append_table_from_pages(&gift->umem.sgt_append,
					       batch->pages, nr, 0,
					       (unsigned long)nr << PAGE_SHIFT,
					       ib_dma_max_seg_size(gift->umem.ibdev),
					       left, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;

	for (i = 0; i < nr; i = end) {
		for (end = i + 1; end < nr; end++)
			if (batch->kinds[end] != batch->kinds[i])
				break;
		gift_runs_add(&gift->runs, batch->kinds[i], end - i);
		gift->counts.pages[batch->kinds[i]] += end - i;
	}
	return 0;
}

/* Takes all pages of the region; after an error give_back_all() is due. */
static int take_all_pages(struct gift_umem *gift)
{
	unsigned long addr = gift->umem.address & PAGE_MASK;
	unsigned long left = gift->npages;
	struct gift_batch *batch;
	int ret = 0;

	batch = kzalloc(sizeof(*batch), GFP_KERNEL);
	if (!batch)
		return -ENOMEM;
	while (left) {
		unsigned int nr;
		int got;

		cond_resched();
		/* Pages that are all present are taken without a look at it. */
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		nr = GIFT_BATCH - (addr >> PAGE_SHIFT) % GIFT_BATCH;
		nr = min_t(unsigned long, nr, left);
		got = gift_take(batch, gift->umem.owning_mm, addr, nr);
		if (got < 0) {
			ret = got;
			break;
		}
		ret = gift_append(gift, batch, got, left - got);
		if (ret) {
			gift_untake(batch, got);
			break;
		}
		addr += got * PAGE_SIZE;
		left -= got;
	}
	kfree(batch);
	return ret;
}

static void dma_unmap(struct gift_umem *gift)
{
	ib_dma_unmap_sgtable_attrs(gift->umem.ibdev,
				   &gift->umem.sgt_append.sgt,
				   DMA_TO_DEVICE, 0);
}

/**
 * gift_finish() - make a region that has all its pages ready for use
 * @gift: region
 *
 * Context: may sleep.
 * Return: 0 or a negative errno, and then it is as before.
 */
int gift_finish(struct gift_umem *gift)
{
	int ret;

	ret = gift_index_build(gift);
	if (ret)
		return ret;
	ret = ib_dma_map_sgtable_attrs(gift->umem.ibdev,
				       &gift->umem.sgt_append.sgt,
				       DMA_TO_DEVICE, gift->dma_attrs);
	if (ret)
		goto err_index;
	ret = gift_region_add(gift);
	if (ret)
		goto err_unmap;
	return 0;

err_unmap:
	dma_unmap(gift);
err_index:
	gift_index_free(gift);
	return ret;
}

/* The number of pages that a range touches, or 0 for no sensible range. */
static unsigned long range_pages(unsigned long addr, size_t size)
{
	unsigned long end = addr + size, npages;

	if (!size || end < addr || PAGE_ALIGN(end) < end)
		return 0;
	npages = (PAGE_ALIGN(end) - (addr & PAGE_MASK)) >> PAGE_SHIFT;
	return npages > UINT_MAX ? 0 : npages;
}

static struct gift_umem *gift_get(struct ib_device *device, unsigned long addr,
				  size_t size, int access)
{
	u64 start = ktime_get_ns();
	struct gift_umem *gift;
	unsigned long npages;
	int ret;

	ret = ib_gift_check_access(access);
	if (ret) {
		ibdev_dbg(device, "gift: access %#x: not for reading only\n",
			  access);
		return ERR_PTR(ret);
	}
	npages = range_pages(addr, size);
	if (!npages) {
		ibdev_dbg(device, "gift: address %#lx size %#zx: no range\n",
			  addr, size);
		return ERR_PTR(-EINVAL);
	}

	gift = gift_alloc(device, addr, size, npages);
	if (!gift)
		return ERR_PTR(-ENOMEM);
	if (access & IB_ACCESS_RELAXED_ORDERING)
		gift->dma_attrs = DMA_ATTR_WEAK_ORDERING;

	ret = gift_charge(gift->umem.owning_mm, npages);
	if (ret) {
		ibdev_dbg(device, "gift: size %#zx: over RLIMIT_MEMLOCK\n",
			  size);
		goto err_free;
	}
	ret = take_all_pages(gift);
	if (ret) {
		ibdev_dbg(device, "gift: address %#lx size %#zx: error %d\n",
			  addr, size, ret);
		goto err_release;
	}
	ret = gift_finish(gift);
	if (ret)
		goto err_release;
	trace_umem_get(gift, &gift->counts, ktime_get_ns() - start);
	return gift;

err_release:
	give_back_all(gift);
	gift_uncharge(gift->umem.owning_mm, npages);
err_free:
	gift_drop(gift);
	return ERR_PTR(ret);
}

/**
 * ib_gift_umem_get() - register user memory, without breaking copy-on-write
 * @device: device that is to read it
 * @addr: user address of the first byte, in current->mm
 * @size: number of bytes
 * @access: IB_ACCESS_xxx flags
 *
 * With IB_ACCESS_GIFT in @access, pages on which a copy-on-write is pending are
 * held as they are, and the device goes on reading them after the process has
 * written to its copy; all others are pinned as ib_umem_get() pins them. All
 * are charged to RLIMIT_MEMLOCK. Without the flag this is ib_umem_get().
 *
 * Context: the process that registers; may sleep; mmap lock not held.
 * Return: the umem, for ib_gift_umem_release(); or as an error pointer:
 * -EINVAL for an illegal combination of flags, an empty range or one that wraps
 * around; -EPERM, -ENOMEM when RLIMIT_MEMLOCK forbids it; -EFAULT for memory
 * that is not mapped or not readable; -EINTR after a fatal signal; -ENOMEM; and
 * what else pinning says.
 */
struct ib_umem *ib_gift_umem_get(struct ib_device *device, unsigned long addr,
				 size_t size, int access)
{
	struct gift_umem *gift;

	if (!(access & IB_ACCESS_GIFT))
		return ib_umem_get(device, addr, size, access);
	gift = gift_get(device, addr, size, access);
	return IS_ERR(gift) ? ERR_CAST(gift) : &gift->umem;
}
EXPORT_SYMBOL_GPL(ib_gift_umem_get);

/**
 * ib_gift_umem_release() - undo ib_gift_umem_get() or ib_gift_umem_refresh()
 * @umem: what one of them returned, or any other umem, or NULL
 *
 * The device must no longer read the memory by this umem. Of the two umems that
 * a refresh is about, the first to be released gives back only the pages that
 * the other does not have.
 *
 * Context: may sleep; any process: the one that registered may be gone.
 */
void ib_gift_umem_release(struct ib_umem *umem)
{
	u64 start = ktime_get_ns();
	struct gift_umem *gift;
	bool hooked;

	gift = gift_region_remove(umem);
	if (!gift) {
		ib_umem_release(umem);
		return;
	}
	dma_unmap(gift);
	if (!gift_part(gift)) {
		give_back_all(gift);
		gift_uncharge(gift->umem.owning_mm, gift->npages);
	}
	trace_umem_release(gift, &gift->counts, ktime_get_ns() - start);
	hooked = gift->hooked;
	gift_drop(gift);
	if (hooked)
		gift_every_put();
}
EXPORT_SYMBOL_GPL(ib_gift_umem_release);
