// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs, as verbs objects: their creation, attributes and states. What
 * they do with a work request is the engine's.
 */
#include <linux/log2.h>
#include <rdma/ib_cache.h>

#include "driver.h"

static struct ib_qp *shca_to_ibqp(struct shca_qp *hw)
{
	return &container_of(hw, struct shca_ibqp, hw)->ibqp;
}

static void shca_qp_event(struct shca_qp *hw, enum ib_event_type type)
{
	struct ib_qp *ibqp = shca_to_ibqp(hw);
	struct ib_event event = {
		.device = ibqp->device,
		.element.qp = ibqp,
		.event = type,
	};

	if (ibqp->event_handler)
		ibqp->event_handler(&event, ibqp->qp_context);
}

static int shca_qp_check_init(struct ib_qp *ibqp,
			      const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (init->qp_type != IB_QPT_RC || init->create_flags || init->srq ||
	    init->rwq_ind_tbl) {
		ibdev_dbg(ibqp->device,
			  "create QP: type %d, flags %#x, srq %d: not offered\n",
			  init->qp_type, init->create_flags, !!init->srq);
		return -EOPNOTSUPP;
	}
	if (cap->max_send_wr > SHCA_MAX_QP_WR ||
	    cap->max_recv_wr > SHCA_MAX_QP_WR ||
	    cap->max_send_sge > SHCA_MAX_SGE ||
	    cap->max_recv_sge > SHCA_MAX_SGE ||
	    cap->max_inline_data > SHCA_MAX_INLINE) {
		ibdev_dbg(ibqp->device, "create QP: capability out of range\n");
		return -EINVAL;
	}
	return 0;
}

static u32 shca_qp_stride(u32 header, u32 body, u32 align)
{
	return ALIGN(header + body, align);
}

/*
 * Rings as large as asked for and then as the geometry allows; @cap tells what
 * became of it.
 */
static int shca_qp_alloc_rings(struct shca_ibqp *qp,
			       struct ib_ucontext *ibucontext,
			       struct ib_qp_cap *cap)
{
	u32 body;

	body = max_t(u32, cap->max_inline_data,
		     max(cap->max_send_sge, 1U) * sizeof(struct shca_sge));
	qp->sq_mem = shca_ring_mem_create(ibucontext,
					  roundup_pow_of_two(max(cap->max_send_wr, 1U)),
					  shca_qp_stride(SHCA_SEND_WQE_SIZE,
							 body, 64));
	if (IS_ERR(qp->sq_mem))
		return PTR_ERR(qp->sq_mem);
	cap->max_send_wr = qp->sq_mem->ring.entries;
	cap->max_inline_data = min_t(u32, SHCA_MAX_INLINE,
				     qp->sq_mem->ring.stride -
				     SHCA_SEND_WQE_SIZE);

	if (!cap->max_recv_wr) {
		cap->max_recv_sge = 0;
		return 0;
	}
	body = max(cap->max_recv_sge, 1U) * sizeof(struct shca_sge);
	qp->rq_mem = shca_ring_mem_create(ibucontext,
					  roundup_pow_of_two(cap->max_recv_wr),
					  shca_qp_stride(SHCA_RECV_WQE_SIZE,
							 body, 16));
	if (IS_ERR(qp->rq_mem)) {
		shca_ring_mem_destroy(qp->sq_mem);
		return PTR_ERR(qp->rq_mem);
	}
	cap->max_recv_wr = qp->rq_mem->ring.entries;
	return 0;
}

static void shca_qp_free_rings(struct shca_ibqp *qp)
{
	shca_ring_mem_destroy(qp->sq_mem);
	shca_ring_mem_destroy(qp->rq_mem);
}

static void shca_qp_fill_hw(struct shca_ibqp *qp, const struct ib_qp *ibqp,
			    const struct ib_qp_init_attr *init)
{
	struct shca_qp *hw = &qp->hw;

	hw->hca = &to_shca_dev(ibqp->device)->hca;
	hw->pd = ibqp->pd;
	hw->type = init->qp_type;
	hw->event = shca_qp_event;

	hw->sq.queue.ring = qp->sq_mem->ring;
	hw->sq.cq = &to_shca_ibcq(init->send_cq)->hw;
	hw->sq.max_sge = init->cap.max_send_sge;
	hw->sq.max_inline = init->cap.max_inline_data;
	hw->sq.signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;

	if (qp->rq_mem)
		hw->rq.queue.ring = qp->rq_mem->ring;
	hw->rq.cq = &to_shca_ibcq(init->recv_cq)->hw;
	hw->rq.max_sge = init->cap.max_recv_sge;
}

/**
 * shca_create_qp() - create a queue pair
 * @ibqp: the QP; qp_num is filled in
 * @init: what it is to be; its capabilities become what it is
 * @udata: shca_create_qp_req and _resp
 *
 * Return: 0, -EINVAL for capabilities out of range, -EOPNOTSUPP for a type or
 * an option that is not offered, -ENOMEM.
 */
int shca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		   struct ib_udata *udata)
{
	struct shca_dev *dev = to_shca_dev(ibqp->device);
	struct shca_ibqp *qp = to_shca_ibqp(ibqp);
	struct shca_create_qp_resp resp = {};
	struct shca_create_qp_req req;
	int ret;

	ret = shca_udata_request(udata, &req, sizeof(req));
	if (ret)
		return ret;
	ret = shca_qp_check_init(ibqp, init);
	if (ret)
		return ret;
	ret = shca_count(&dev->nr_qp, SHCA_MAX_QP);
	if (ret)
		return ret;
	ret = shca_qp_alloc_rings(qp, shca_udata_context(udata), &init->cap);
	if (ret)
		goto err_count;
	shca_ring_mem_info(qp->sq_mem, &resp.sq);
	shca_ring_mem_info(qp->rq_mem, &resp.rq);
	ret = shca_udata_response(udata, &resp, sizeof(resp));
	if (ret)
		goto err_rings;

	qp->init = *init;
	shca_qp_fill_hw(qp, ibqp, init);
	ret = shca_qp_add(&qp->hw);
	if (ret)
		goto err_rings;
	ibqp->qp_num = qp->hw.qpn;
	return 0;

err_rings:
	shca_qp_free_rings(qp);
err_count:
	atomic_dec(&dev->nr_qp);
	return ret;
}

static bool shca_qp_attr_in_range(const struct ib_qp_attr *attr, int mask)
{
	const struct {
		int bit;
		u32 value;
		u32 first;
		u32 last;
	} rules[] = {
		{ IB_QP_PORT, attr->port_num, SHCA_PORT_NUM, SHCA_PORT_NUM },
		{ IB_QP_PKEY_INDEX, attr->pkey_index, 0, 0 },
		{ IB_QP_PATH_MTU, attr->path_mtu, IB_MTU_256, IB_MTU_4096 },
		{ IB_QP_TIMEOUT, attr->timeout, 0, 31 },
		{ IB_QP_RETRY_CNT, attr->retry_cnt, 0, 7 },
		{ IB_QP_RNR_RETRY, attr->rnr_retry, 0, 7 },
		{ IB_QP_MIN_RNR_TIMER, attr->min_rnr_timer, 0, 31 },
		{ IB_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic, 0,
		  SHCA_MAX_RD_ATOMIC },
		{ IB_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic, 0,
		  SHCA_MAX_RD_ATOMIC },
		{ IB_QP_DEST_QPN, attr->dest_qp_num, 0, 0xffffff },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(rules); i++)
		if (mask & rules[i].bit && (rules[i].value < rules[i].first ||
					    rules[i].value > rules[i].last))
			return false;
	if (mask & IB_QP_AV &&
	    !(rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH))
		return false;
	return true;
}

/* Take the attributes over; the QP is locked. */
static void shca_qp_apply(struct shca_ibqp *qp, const struct ib_qp_attr *attr,
			  int mask)
{
	struct shca_qp_attrs *hw = &qp->hw.attrs;
	const struct ib_global_route *grh;

	if (mask & IB_QP_PORT)
		qp->attr.port_num = attr->port_num;
	if (mask & IB_QP_PKEY_INDEX)
		qp->attr.pkey_index = attr->pkey_index;
	if (mask & IB_QP_ACCESS_FLAGS)
		hw->access = attr->qp_access_flags;
	if (mask & IB_QP_AV) {
		grh = rdma_ah_read_grh(&attr->ah_attr);
		hw->sgid = grh->sgid_attr->gid;
		hw->dgid = grh->dgid;
		qp->attr.ah_attr = attr->ah_attr;
		/* The core holds the GID entry for as long as it needs it. */
		qp->attr.ah_attr.grh.sgid_attr = NULL;
	}
	if (mask & IB_QP_PATH_MTU)
		qp->attr.path_mtu = attr->path_mtu;
	if (mask & IB_QP_DEST_QPN)
		hw->dest_qpn = attr->dest_qp_num;
	if (mask & IB_QP_RQ_PSN)
		qp->attr.rq_psn = attr->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		qp->attr.sq_psn = attr->sq_psn;
	if (mask & IB_QP_TIMEOUT)
		hw->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		hw->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		hw->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		hw->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		hw->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		hw->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_SQD)
		hw->sqd_event = mask & IB_QP_EN_SQD_ASYNC_NOTIFY &&
				attr->en_sqd_async_notify;
}

/**
 * shca_modify_qp() - change attributes and state
 * @ibqp: the QP
 * @attr: new values
 * @mask: enum ib_qp_attr_mask
 * @udata: unused
 *
 * Which transitions there are and what each needs is the specification's
 * table, which ib_core has (InfiniBand Architecture 11.2.5.2). The state is
 * read under the same lock as it is written: the engine may go to the error
 * state at any time.
 * Context: process, sleeps.
 * Return: 0, -EINVAL, or -EOPNOTSUPP for attributes that verbs do not have.
 */
int shca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata)
{
	struct shca_ibqp *qp = to_shca_ibqp(ibqp);
	enum ib_qp_state cur, new;
	int ret = -EINVAL;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if (!shca_qp_attr_in_range(attr, mask)) {
		ibdev_dbg(ibqp->device, "modify QP %u: attribute out of range\n",
			  ibqp->qp_num);
		return -EINVAL;
	}

	shca_qp_lock(&qp->hw);
	cur = qp->hw.state;
	new = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != cur)
		goto out;
	if (!ib_modify_qp_is_ok(cur, new, ibqp->qp_type, mask)) {
		ibdev_dbg(ibqp->device, "modify QP %u: %d to %d, mask %#x\n",
			  ibqp->qp_num, cur, new, mask);
		goto out;
	}
	shca_qp_apply(qp, attr, mask);
	if (mask & IB_QP_STATE)
		shca_qp_set_state(&qp->hw, new);
	if (new == IB_QPS_RESET)
		memset(&qp->attr, 0, sizeof(qp->attr));
	ret = 0;
out:
	shca_qp_unlock(&qp->hw);
	return ret;
}

/**
 * shca_query_qp() - tell attributes and state
 * @ibqp: the QP
 * @attr: filled in, whatever @mask asks for
 * @mask: unused
 * @init: filled in
 *
 * Context: process, sleeps.
 * Return: 0.
 */
int shca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init)
{
	struct shca_ibqp *qp = to_shca_ibqp(ibqp);
	const struct shca_qp_attrs *hw = &qp->hw.attrs;

	shca_qp_lock(&qp->hw);
	*attr = qp->attr;
	attr->qp_state = qp->hw.state;
	attr->cur_qp_state = qp->hw.state;
	attr->sq_draining = qp->hw.state == IB_QPS_SQD && qp->hw.sq.started;
	attr->qp_access_flags = hw->access;
	attr->dest_qp_num = hw->dest_qpn;
	attr->timeout = hw->timeout;
	attr->retry_cnt = hw->retry_cnt;
	attr->rnr_retry = hw->rnr_retry;
	attr->min_rnr_timer = hw->min_rnr_timer;
	attr->max_rd_atomic = hw->max_rd_atomic;
	attr->max_dest_rd_atomic = hw->max_dest_rd_atomic;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->cap = qp->init.cap;
	shca_qp_unlock(&qp->hw);
	*init = qp->init;
	return 0;
}

/**
 * shca_destroy_qp() - destroy a queue pair
 * @ibqp: the QP
 * @udata: unused
 *
 * Context: process, sleeps until peers have finished with it.
 * Return: 0.
 */
int shca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct shca_ibqp *qp = to_shca_ibqp(ibqp);

	shca_qp_remove(&qp->hw);
	shca_qp_free_rings(qp);
	atomic_dec(&to_shca_dev(ibqp->device)->nr_qp);
	return 0;
}
