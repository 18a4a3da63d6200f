// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of rings: allocated here, mapped by the kernel and by one process.
 * Never looks at what is in a ring.
 *
 * The memory belongs to its mmap entry: a process that maps a ring while
 * another of its threads destroys the queue either gets a mapping or an error.
 * Mappings hold the pages for themselves and outlive the queue.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "driver.h"

static void shca_ring_mem_free(struct shca_ring_mem *mem)
{
	unsigned int i;

	vunmap(mem->ring.hdr);
	for (i = 0; mem->pages && i < mem->nr_pages; i++)
		if (mem->pages[i])
			__free_page(mem->pages[i]);
	kvfree(mem->pages);
	kfree(mem);
}

/* Charged to whoever creates the queue, like the rest of what it maps. */
static int shca_ring_mem_alloc(struct shca_ring_mem *mem)
{
	unsigned int i;

	mem->pages = kvcalloc(mem->nr_pages, sizeof(*mem->pages),
			      GFP_KERNEL_ACCOUNT);
	if (!mem->pages)
		return -ENOMEM;
	for (i = 0; i < mem->nr_pages; i++) {
		mem->pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!mem->pages[i])
			return -ENOMEM;
	}
	mem->ring.hdr = vmap(mem->pages, mem->nr_pages, VM_MAP, PAGE_KERNEL);
	if (!mem->ring.hdr)
		return -ENOMEM;
	mem->ring.slots = (void *)mem->ring.hdr + SHCA_RING_ENTRIES_OFFSET;
	return 0;
}

/**
 * shca_ring_mem_create() - allocate a ring and make it mappable
 * @ibucontext: the process's context
 * @entries: slots, a power of two
 * @stride: bytes of a slot
 *
 * Context: process, may sleep.
 * Return: the ring, or an ERR_PTR().
 */
struct shca_ring_mem *shca_ring_mem_create(struct ib_ucontext *ibucontext,
					   u32 entries, u32 stride)
{
	size_t size = SHCA_RING_ENTRIES_OFFSET + (size_t)entries * stride;
	struct shca_ring_mem *mem;
	int ret;

	mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	mem->nr_pages = PAGE_ALIGN(size) >> PAGE_SHIFT;
	mem->ring.entries = entries;
	mem->ring.stride = stride;
	ret = shca_ring_mem_alloc(mem);
	if (!ret)
		ret = rdma_user_mmap_entry_insert(ibucontext, &mem->entry,
						  PAGE_ALIGN(size));
	if (ret) {
		shca_ring_mem_free(mem);
		return ERR_PTR(ret);
	}
	return mem;
}

/**
 * shca_ring_mem_destroy() - make a ring unmappable and give it up
 * @mem: the ring, which the engine does not use any more, or NULL
 */
void shca_ring_mem_destroy(struct shca_ring_mem *mem)
{
	if (mem)
		rdma_user_mmap_entry_remove(&mem->entry);
}

/**
 * shca_ring_mem_info() - tell a provider where a ring is
 * @mem: the ring, or NULL for none
 * @info: filled in
 */
void shca_ring_mem_info(const struct shca_ring_mem *mem,
			struct shca_ring_info *info)
{
	if (!mem)
		return;
	info->mmap_offset = rdma_user_mmap_get_offset(&mem->entry);
	info->mmap_length = mem->nr_pages << PAGE_SHIFT;
	info->entries = mem->ring.entries;
	info->stride = mem->ring.stride;
}

/**
 * shca_mmap() - map a ring
 * @ibucontext: the process's context
 * @vma: the whole ring, shared
 *
 * Return: 0 or -errno.
 */
int shca_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct shca_ring_mem *mem;
	int ret;

	entry = rdma_user_mmap_entry_get(ibucontext, vma);
	if (!entry)
		return -EINVAL;
	mem = container_of(entry, struct shca_ring_mem, entry);
	ret = vm_map_pages_zero(vma, mem->pages, mem->nr_pages);
	rdma_user_mmap_entry_put(entry);
	return ret;
}

/**
 * shca_mmap_free() - the last reference to a ring is gone
 * @entry: its mmap entry
 */
void shca_mmap_free(struct rdma_user_mmap_entry *entry)
{
	shca_ring_mem_free(container_of(entry, struct shca_ring_mem, entry));
}
