// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions of processes. All of a region's pages are taken when it is
 * registered, through ib_gift, and given back when it is deregistered or when
 * a re-registration has replaced them.
 */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <net/netlink.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/restrack.h>

#define UVERBS_MODULE_NAME shca
#include <rdma/uverbs_named_ioctl.h>

#include "../ib_gift/ib_gift.h"
#include "driver.h"

#define SHCA_MR_WRITABLE						\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND)
/* Pages listed between two offers of the CPU. */
#define SHCA_MR_PAGES_BATCH	65536
/* Access flags on which it depends how pages are taken. */
#define SHCA_MR_TAKING	(SHCA_MR_WRITABLE | IB_ACCESS_GIFT)

static int shca_mr_mem_pages(struct shca_mr_mem *mem)
{
	size_t nr = ib_umem_num_pages(mem->umem);
	struct sg_page_iter it;
	size_t i = 0;

	/* A process may ask for more than there is to give: no warning. */
	mem->page = kvmalloc_array(nr, sizeof(*mem->page),
				   GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!mem->page)
		return -ENOMEM;
	for_each_sgtable_page(&mem->umem->sgt_append.sgt, &it, 0) {
		if (WARN_ON(i == nr))
			return -EINVAL;
		mem->page[i++] = sg_page_iter_page(&it);
		if (!(i % SHCA_MR_PAGES_BATCH))
			cond_resched();
	}
	return WARN_ON(i != nr) ? -EINVAL : 0;
}

static void shca_mr_mem_put(struct shca_mr_mem *mem)
{
	kvfree(mem->page);
	ib_gift_umem_release(mem->umem);
	kfree(mem);
}

/* Takes over the umem, or gives it back when there is no memory for the rest. */
static struct shca_mr_mem *shca_mr_mem_new(struct ib_umem *umem)
{
	struct shca_mr_mem *mem;
	int ret;

	mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	if (!mem) {
		ib_gift_umem_release(umem);
		return ERR_PTR(-ENOMEM);
	}
	mem->umem = umem;
	ret = shca_mr_mem_pages(mem);
	if (ret) {
		shca_mr_mem_put(mem);
		return ERR_PTR(ret);
	}
	return mem;
}

static struct shca_mr_mem *shca_mr_mem_get(struct ib_device *ibdev, u64 start,
					   u64 length, int access)
{
	struct ib_umem *umem;

	/* It could not be listed: no need to take it first. What wraps is EINVAL. */
	if (length > SHCA_MAX_MR_SIZE && start + length > start)
		return ERR_PTR(-ENOMEM);
	umem = ib_gift_umem_get(ibdev, start, length, access);
	return IS_ERR(umem) ? ERR_CAST(umem) : shca_mr_mem_new(umem);
}

/* What the engine gets to see of it; freed with kfree(). */
static struct shca_pages *shca_mr_mem_view(const struct shca_mr_mem *mem)
{
	struct shca_pages *pages;

	pages = kzalloc(sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return NULL;
	pages->page = mem->page;
	pages->nr = ib_umem_num_pages(mem->umem);
	pages->first = ib_umem_offset(mem->umem);
	return pages;
}

static u64 shca_mr_base(u64 virt_addr, int access)
{
	return access & IB_ZERO_BASED ? 0 : virt_addr;
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
	mr->mem = shca_mr_mem_get(ibpd->device, start, length, access);
	if (IS_ERR(mr->mem)) {
		ret = PTR_ERR(mr->mem);
		goto err_count;
	}

	mr->region.pages = shca_mr_mem_view(mr->mem);
	if (!mr->region.pages) {
		ret = -ENOMEM;
		goto err_mem;
	}
	mutex_init(&mr->lock);
	key = &mr->region.key;
	key->kind = SHCA_KEY_REGION;
	key->state = SHCA_KEY_VALID;
	key->access = access;
	key->pd = ibpd;
	key->base = shca_mr_base(virt_addr, access);
	key->length = length;
	key->region = &mr->region;
	ret = shca_key_add(&dev->hca.keys, key);
	if (ret)
		goto err_view;

	mr->ibmr.lkey = key->key;
	mr->ibmr.rkey = key->key;
	return &mr->ibmr;

err_view:
	kfree(mr->region.pages);
err_mem:
	shca_mr_mem_put(mr->mem);
err_count:
	atomic_dec(&dev->nr_mr);
err_free:
	kfree(mr);
	return ERR_PTR(ret);
}

/*
 * The memory that a re-registration calls for: other pages, or the same range
 * taken in another way. NULL when the region's own will do.
 */
static struct shca_mr_mem *shca_mr_mem_again(const struct shca_mr *mr,
					     int flags, u64 start, u64 length,
					     int access)
{
	const struct ib_umem *umem = mr->mem->umem;

	if (!(flags & IB_MR_REREG_TRANS)) {
		if (!((access ^ mr->region.key.access) & SHCA_MR_TAKING))
			return NULL;
		/* Another process has something else at these addresses. */
		if (umem->owning_mm != current->mm)
			return ERR_PTR(-EINVAL);
		start = umem->address;
		length = umem->length;
	}
	return shca_mr_mem_get(mr->ibmr.device, start, length, access);
}

/*
 * Makes a region what is called for. @mem is its memory from then on; NULL: as
 * before. Gives back what it replaces, or @mem on failure.
 */
static int shca_mr_change(struct shca_mr *mr, struct shca_region_change *change,
			  struct shca_mr_mem *mem)
{
	struct shca_pages *old = mr->region.pages;
	int ret = -ENOMEM;

	change->pages = shca_mr_mem_view(mem ?: mr->mem);
	if (change->pages)
		ret = shca_region_replace(&mr->region, change);
	if (ret) {
		kfree(change->pages);
	} else {
		kfree(old);
		if (mem) {
			mutex_lock(&mr->lock);
			swap(mr->mem, mem);
			mutex_unlock(&mr->lock);
		}
	}
	if (mem)
		shca_mr_mem_put(mem);
	return ret;
}

/**
 * shca_rereg_user_mr() - change a region and keep its keys
 * @ibmr: the region
 * @flags: enum ib_mr_rereg_flags: what changes
 * @start: with IB_MR_REREG_TRANS, as for shca_reg_user_mr()
 * @length: the same
 * @virt_addr: the same
 * @access: with IB_MR_REREG_ACCESS, the new access
 * @ibpd: with IB_MR_REREG_PD, the new protection domain
 * @udata: unused
 *
 * A peer sees the old region or the new one. A failure leaves the old one.
 * Context: process, sleeps until no access by the old right is left.
 * Return: NULL; ERR_PTR(): as for shca_reg_user_mr(), -EINVAL also for making
 * a gift region writable, -EBUSY while windows are bound on it.
 */
struct ib_mr *shca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 virt_addr, int access,
				 struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct shca_mr *mr = to_shca_mr(ibmr);
	const struct shca_key *key = &mr->region.key;
	struct shca_region_change change = {
		.length = key->length,
		.access = key->access,
		.pd = key->pd,
	};
	struct shca_mr_mem *mem;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	if (flags & IB_MR_REREG_PD)
		change.pd = ibpd;
	if (flags & IB_MR_REREG_ACCESS) {
		if (key->access & IB_ACCESS_GIFT && access & SHCA_MR_WRITABLE)
			return ERR_PTR(-EINVAL);
		change.access = access;
	}
	mem = shca_mr_mem_again(mr, flags, start, length, change.access);
	if (IS_ERR(mem))
		return ERR_CAST(mem);
	if (flags & IB_MR_REREG_TRANS)
		change.length = length;
	else
		virt_addr = ibmr->iova;
	change.base = shca_mr_base(virt_addr, change.access);

	return ERR_PTR(shca_mr_change(mr, &change, mem));
}

/**
 * shca_mr_refresh() - take the stale pages of a gift region again
 * @mr: the region
 * @addr: first byte to look at, in the calling process
 * @length: bytes
 * @retaken: filled in, number of pages taken again
 *
 * The keys stay. A peer sees the old region or the new one; a failure leaves the
 * old one.
 * Context: process, sleeps until no access that began before is left. Nobody else
 * changes or removes the region meanwhile.
 * Return: 0, or what ib_gift_umem_refresh() returns, or -ENOMEM.
 */
static int shca_mr_refresh(struct shca_mr *mr, u64 addr, u64 length,
			   u64 *retaken)
{
	const struct shca_key *key = &mr->region.key;
	struct shca_region_change change = {
		.base = key->base,
		.length = key->length,
		.access = key->access,
		.pd = key->pd,
	};
	struct shca_mr_mem *mem;
	struct ib_umem *umem;

	umem = ib_gift_umem_refresh(mr->mem->umem, addr, length, retaken);
	if (IS_ERR_OR_NULL(umem))
		return PTR_ERR_OR_ZERO(umem);
	mem = shca_mr_mem_new(umem);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	return shca_mr_change(mr, &change, mem);
}

static int UVERBS_HANDLER(SHCA_METHOD_MR_REFRESH)(struct uverbs_attr_bundle *attrs)
{
	struct ib_mr *ibmr;
	u64 addr, length, retaken;
	int ret;

	ibmr = uverbs_attr_get_obj(attrs, SHCA_ATTR_MR_REFRESH_HANDLE);
	ret = uverbs_copy_from(&addr, attrs, SHCA_ATTR_MR_REFRESH_ADDR);
	if (!ret)
		ret = uverbs_copy_from(&length, attrs,
				       SHCA_ATTR_MR_REFRESH_LENGTH);
	if (!ret)
		ret = shca_mr_refresh(to_shca_mr(ibmr), addr, length, &retaken);
	if (ret)
		return ret;
	return uverbs_copy_to(attrs, SHCA_ATTR_MR_REFRESH_RETAKEN, &retaken,
			      sizeof(retaken));
}

/* Whoever writes to a region in this way has it to itself: no lock is needed. */
DECLARE_UVERBS_NAMED_METHOD(SHCA_METHOD_MR_REFRESH,
			    UVERBS_ATTR_IDR(SHCA_ATTR_MR_REFRESH_HANDLE,
					    UVERBS_OBJECT_MR,
					    UVERBS_ACCESS_WRITE, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(SHCA_ATTR_MR_REFRESH_ADDR,
					       UVERBS_ATTR_TYPE(u64),
					       UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(SHCA_ATTR_MR_REFRESH_LENGTH,
					       UVERBS_ATTR_TYPE(u64),
					       UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(SHCA_ATTR_MR_REFRESH_RETAKEN,
						UVERBS_ATTR_TYPE(u64),
						UA_MANDATORY));

ADD_UVERBS_METHODS(shca_mr_methods, UVERBS_OBJECT_MR,
		   &UVERBS_METHOD(SHCA_METHOD_MR_REFRESH));

const struct uapi_definition shca_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_MR, &shca_mr_methods),
	{},
};

/**
 * shca_fill_res_mr_entry() - tell "rdma resource show mr -dd" about a region
 * @msg: netlink message
 * @ibmr: the region
 *
 * Its pages by kind are told to CAP_NET_ADMIN only.
 * Context: process, the one that asks.
 * Return: 0 or -EMSGSIZE.
 */
int shca_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	static const char * const names[IB_GIFT_PAGE_KINDS] = {
		[IB_GIFT_PAGE_PINNED] = "pages_pinned",
		[IB_GIFT_PAGE_ZERO] = "pages_zero",
		[IB_GIFT_PAGE_HUGE_ZERO] = "pages_huge_zero",
		[IB_GIFT_PAGE_KSM] = "pages_ksm",
		[IB_GIFT_PAGE_SHARED] = "pages_shared",
		[IB_GIFT_PAGE_FILE] = "pages_file",
	};
	struct shca_mr *mr = to_shca_mr(ibmr);
	struct ib_gift_umem_counts counts;
	struct nlattr *table;
	bool gift, tell;
	int i;

	mutex_lock(&mr->lock);
	gift = ib_gift_umem_stats(mr->mem->umem, &counts);
	mutex_unlock(&mr->lock);

	/* Whose pages are merged or shared is not for every user to know. */
	tell = gift && capable(CAP_NET_ADMIN);
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_u32(msg, "gift", gift))
		goto err;
	for (i = 0; tell && i < IB_GIFT_PAGE_KINDS; i++)
		if (rdma_nl_put_driver_u64(msg, names[i], counts.pages[i]))
			goto err;
	nla_nest_end(msg, table);
	return 0;

err:
	nla_nest_cancel(msg, table);
	return -EMSGSIZE;
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
	kfree(mr->region.pages);
	shca_mr_mem_put(mr->mem);
	atomic_dec(&dev->nr_mr);
	kfree(mr);
	return 0;
}
