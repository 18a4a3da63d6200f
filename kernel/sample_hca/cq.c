// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues, as objects of a process, which polls them by itself.
 */
#include <linux/log2.h>

#include "driver.h"

static void shca_cq_notify(struct shca_cq *cq)
{
	struct ib_cq *ibcq = &container_of(cq, struct shca_ibcq, hw)->ibcq;

	if (ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

static void shca_cq_event(struct shca_cq *cq, enum ib_event_type type)
{
	struct ib_cq *ibcq = &container_of(cq, struct shca_ibcq, hw)->ibcq;
	struct ib_event event = {
		.device = ibcq->device,
		.element.cq = ibcq,
		.event = type,
	};

	if (ibcq->event_handler)
		ibcq->event_handler(&event, ibcq->cq_context);
}

/**
 * shca_create_cq() - create a completion queue
 * @ibcq: the CQ; cqe is filled in
 * @attr: how many completions it must hold
 * @arg: shca_create_cq_req and _resp
 *
 * Return: 0, -EINVAL for a size out of range, -EOPNOTSUPP for flags or a
 * kernel consumer, -ENOMEM.
 */
int shca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct compat_create_cq_arg *arg)
{
	struct ib_udata *udata = compat_create_cq_udata(arg);
	struct shca_dev *dev = to_shca_dev(ibcq->device);
	struct shca_ibcq *cq = to_shca_ibcq(ibcq);
	struct shca_create_cq_resp resp = {};
	struct ib_ucontext *ibucontext;
	struct shca_create_cq_req req;
	int ret;

	ret = shca_udata_request(udata, &req, sizeof(req));
	if (ret)
		return ret;
	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > SHCA_MAX_CQE)
		return -EINVAL;
	ret = shca_count(&dev->nr_cq, SHCA_MAX_CQ);
	if (ret)
		return ret;

	ibucontext = shca_udata_context(udata);
	cq->mem = shca_ring_mem_create(ibucontext,
				       roundup_pow_of_two(attr->cqe),
				       SHCA_CQE_SIZE);
	if (IS_ERR(cq->mem)) {
		ret = PTR_ERR(cq->mem);
		goto err_count;
	}
	shca_cq_init(&cq->hw, &cq->mem->ring);
	cq->hw.notify = shca_cq_notify;
	cq->hw.event = shca_cq_event;
	ibcq->cqe = cq->mem->ring.entries;

	shca_ring_mem_info(cq->mem, &resp.cq);
	ret = shca_udata_response(udata, &resp, sizeof(resp));
	if (ret)
		goto err_mem;
	return 0;

err_mem:
	shca_ring_mem_destroy(cq->mem);
err_count:
	atomic_dec(&dev->nr_cq);
	return ret;
}

/**
 * shca_destroy_cq() - destroy a completion queue that no QP uses
 * @ibcq: the CQ
 * @udata: unused
 *
 * Return: 0.
 */
int shca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	shca_ring_mem_destroy(to_shca_ibcq(ibcq)->mem);
	atomic_dec(&to_shca_dev(ibcq->device)->nr_cq);
	return 0;
}

/**
 * shca_req_notify_cq() - ask for one notification
 * @ibcq: the CQ
 * @flags: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP
 *
 * Return: 0.
 */
int shca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	shca_cq_arm(&to_shca_ibcq(ibcq)->hw, flags);
	return 0;
}
