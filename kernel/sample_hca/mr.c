// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions of processes. All of a region's pages are taken when it is
 * registered, through ib_gift, and given back when it is deregistered.
 */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "../ib_gift/ib_gift.h"
#include "driver.h"

static int shca_mr_pages(struct shca_mr *mr)
{
	size_t nr = ib_umem_num_pages(mr->umem);
	struct sg_page_iter it;
	size_t i = 0;

	mr->region.pages = kvmalloc_array(nr, sizeof(*mr->region.pages),
					  GFP_KERNEL_ACCOUNT);
	if (!mr->region.pages)
		return -ENOMEM;
	for_each_sgtable_page(&mr->umem->sgt_append.sgt, &it, 0) {
		if (WARN_ON(i == nr))
			return -EINVAL;
		mr->region.pages[i++] = sg_page_iter_page(&it);
	}
	return WARN_ON(i != nr) ? -EINVAL : 0;
}

/**
 * shca_reg_user_mr() - register memory
 * @ibpd: protection domain
 * @start: first byte in the calling process
 * @length: bytes
 * @virt_addr: address of the first byte as work requests will name it
 * @access: enum ib_access_flags; with IB_ACCESS_GIFT, copy-on-write is left
 *          alone and nothing is ever written through the region
 * @udata: unused
 *
 * Context: process, in the mm that is registered.
 * Return: the region; ERR_PTR(): what ib_gift_umem_get() returns, or -ENOMEM.
 */
struct ib_mr *shca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 virt_addr, int access,
			       struct ib_udata *udata)
{
	struct shca_dev *dev = to_shca_dev(ibpd->device);
	struct shca_key *key;
	struct shca_mr *mr;
	int ret;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	ret = shca_count(&dev->nr_mr, SHCA_MAX_MR);
	if (ret)
		goto err_free;

	mr->umem = ib_gift_umem_get(ibpd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		ret = PTR_ERR(mr->umem);
		goto err_count;
	}
	ret = shca_mr_pages(mr);
	if (ret)
		goto err_umem;

	key = &mr->region.key;
	key->kind = SHCA_KEY_REGION;
	key->state = SHCA_KEY_VALID;
	key->access = access;
	key->pd = ibpd;
	key->base = access & IB_ZERO_BASED ? 0 : virt_addr;
	key->length = length;
	key->region = &mr->region;
	key->offset = ib_umem_offset(mr->umem);
	ret = shca_key_add(&dev->hca.keys, key);
	if (ret)
		goto err_umem;

	mr->ibmr.lkey = key->key;
	mr->ibmr.rkey = key->key;
	return &mr->ibmr;

err_umem:
	kvfree(mr->region.pages);
	ib_gift_umem_release(mr->umem);
err_count:
	atomic_dec(&dev->nr_mr);
err_free:
	kfree(mr);
	return ERR_PTR(ret);
}

/**
 * shca_dereg_mr() - deregister memory
 * @ibmr: the region
 * @udata: unused
 *
 * Waits until no access to the region is under way.
 * Context: process, sleeps; any mm.
 * Return: 0, or -EBUSY while windows are bound on it.
 */
int shca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct shca_dev *dev = to_shca_dev(ibmr->device);
	struct shca_mr *mr = to_shca_mr(ibmr);
	int ret;

	ret = shca_key_remove(&mr->region.key);
	if (ret)
		return ret;
	kvfree(mr->region.pages);
	ib_gift_umem_release(mr->umem);
	atomic_dec(&dev->nr_mr);
	kfree(mr);
	return 0;
}
