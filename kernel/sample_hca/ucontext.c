// SPDX-License-Identifier: GPL-2.0
/*
 * A process's context, and how the driver's parts of verbs commands are read
 * and answered.
 */
#include <linux/module.h>
#include <rdma/uverbs_ioctl.h>

#include "driver.h"

/**
 * shca_udata_request() - read the driver's part of a command
 * @udata: the command, or NULL from a kernel consumer
 * @req: filled in; its first field is the 64-bit comp_mask
 * @size: its size
 *
 * Version 1 has no optional fields, so every comp_mask bit, and every byte
 * behind the structure that is not 0, asks for something unknown.
 * Return: 0, -EINVAL when it is too short, -EOPNOTSUPP, -EFAULT.
 */
int shca_udata_request(struct ib_udata *udata, void *req, size_t size)
{
	if (!udata)
		return -EOPNOTSUPP;
	if (udata->inlen < size)
		return -EINVAL;
	if (ib_copy_from_udata(req, udata, size))
		return -EFAULT;
	if (*(u64 *)req || (udata->inlen > size &&
			    !ib_is_udata_cleared(udata, size,
						 udata->inlen - size)))
		return -EOPNOTSUPP;
	return 0;
}

/**
 * shca_udata_response() - answer the driver's part of a command
 * @udata: the command
 * @resp: the answer
 * @size: its size
 *
 * Return: 0, -EINVAL when the process left too little room, -EFAULT.
 */
int shca_udata_response(struct ib_udata *udata, void *resp, size_t size)
{
	if (udata->outlen < size)
		return -EINVAL;
	return ib_copy_to_udata(udata, resp, size);
}

/**
 * shca_udata_context() - which context a command came from
 * @udata: the command of a process
 *
 * Return: the context.
 */
struct ib_ucontext *shca_udata_context(struct ib_udata *udata)
{
	struct shca_ucontext *ucontext;

	ucontext = rdma_udata_to_drv_context(udata, struct shca_ucontext,
					     ibucontext);
	return &ucontext->ibucontext;
}

/**
 * shca_alloc_ucontext() - a process opens the device
 * @ibucontext: its context
 * @udata: shca_alloc_ucontext_req and _resp
 *
 * The context holds the module: its queues are served by the engine's work.
 * Return: 0 or -errno.
 */
int shca_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata)
{
	struct shca_alloc_ucontext_resp resp = {
		.caps = shca_caps(to_shca_dev(ibucontext->device)),
	};
	struct shca_alloc_ucontext_req req;
	int ret;

	ret = shca_udata_request(udata, &req, sizeof(req));
	if (ret)
		return ret;
	ret = shca_udata_response(udata, &resp, sizeof(resp));
	if (ret)
		return ret;
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	return 0;
}

/**
 * shca_dealloc_ucontext() - a process is done with the device
 * @ibucontext: its context
 */
void shca_dealloc_ucontext(struct ib_ucontext *ibucontext)
{
	module_put(THIS_MODULE);
}

/**
 * shca_disassociate_ucontext() - the device goes away under a process
 * @ibucontext: its context
 *
 * Nothing is left to do when the objects are destroyed: mapped rings are plain
 * memory which the mappings keep. That this exists tells ib_uverbs not to wait
 * for the process.
 */
void shca_disassociate_ucontext(struct ib_ucontext *ibucontext)
{
}
