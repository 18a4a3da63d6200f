// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbells, and work requests that a process hands over in a command instead
 * of writing them to its ring. Owns the translation from verbs to the ABI; the
 * engine treats what comes this way like everything else in the ring.
 */
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "driver.h"

/* What ib_uverbs lets through; binding and local invalidation it does not. */
static const struct {
	enum shca_wr_opcode opcode;
	bool rdma;
	bool known;
} shca_post_ops[] = {
	[IB_WR_RDMA_WRITE] = { SHCA_WR_RDMA_WRITE, true, true },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { SHCA_WR_RDMA_WRITE_WITH_IMM, true, true },
	[IB_WR_SEND] = { SHCA_WR_SEND, false, true },
	[IB_WR_SEND_WITH_IMM] = { SHCA_WR_SEND_WITH_IMM, false, true },
	[IB_WR_RDMA_READ] = { SHCA_WR_RDMA_READ, true, true },
	[IB_WR_SEND_WITH_INV] = { SHCA_WR_SEND_WITH_INV, false, true },
};

static bool shca_post_flags(u32 send_flags, u32 *flags)
{
	static const struct {
		u32 ib;
		u32 abi;
	} map[] = {
		{ IB_SEND_SIGNALED, SHCA_SEND_SIGNALED },
		{ IB_SEND_SOLICITED, SHCA_SEND_SOLICITED },
		{ IB_SEND_FENCE, SHCA_SEND_FENCE },
		{ IB_SEND_INLINE, SHCA_SEND_INLINE },
	};
	int i;

	*flags = 0;
	for (i = 0; i < ARRAY_SIZE(map); i++) {
		if (send_flags & map[i].ib)
			*flags |= map[i].abi;
		send_flags &= ~map[i].ib;
	}
	return !send_flags;
}

/* Append the scatter/gather list; returns the bytes that it takes or -errno. */
static int shca_post_sges(void *to, const struct ib_sge *sg_list, int nr,
			  u32 max)
{
	struct shca_sge *sge = to;
	int i;

	if (nr < 0 || nr > max)
		return -EINVAL;
	for (i = 0; i < nr; i++)
		sge[i] = (struct shca_sge){
			.addr = sg_list[i].addr,
			.length = sg_list[i].length,
			.lkey = sg_list[i].lkey,
		};
	return nr * sizeof(*sge);
}

/* Append inline data from the calling process's memory. */
static int shca_post_inline(void *to, const struct ib_sge *sg_list, int nr,
			    u32 max)
{
	u32 used = 0;
	int i;

	for (i = 0; i < nr; i++) {
		if (sg_list[i].length > max - used)
			return -EINVAL;
		if (copy_from_user(to + used, u64_to_user_ptr(sg_list[i].addr),
				   sg_list[i].length))
			return -EFAULT;
		used += sg_list[i].length;
	}
	return used;
}

static int shca_post_one_send(struct shca_qp *hw, const struct ib_send_wr *wr,
			      void *raw)
{
	struct shca_send_wqe *wqe = raw;
	void *body = raw + SHCA_SEND_WQE_SIZE;
	const struct shca_op *op;
	u32 opcode = wr->opcode;
	int ret;

	if (opcode >= ARRAY_SIZE(shca_post_ops))
		return -EINVAL;
	opcode = array_index_nospec(opcode, ARRAY_SIZE(shca_post_ops));
	if (!shca_post_ops[opcode].known)
		return -EINVAL;

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr->wr_id;
	wqe->opcode = shca_post_ops[opcode].opcode;
	op = shca_qp_op(hw, wqe->opcode);
	if (!op || !shca_post_flags(wr->send_flags, &wqe->flags) ||
	    wqe->flags & ~op->send_flags)
		return -EINVAL;
	if (opcode == IB_WR_SEND_WITH_INV)
		wqe->invalidate_rkey = wr->ex.invalidate_rkey;
	else if (op->recv_flags & SHCA_WC_WITH_IMM)
		wqe->imm_data = wr->ex.imm_data;
	if (shca_post_ops[opcode].rdma) {
		wqe->rdma.remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rdma.rkey = rdma_wr(wr)->rkey;
	}

	if (wqe->flags & SHCA_SEND_INLINE) {
		ret = shca_post_inline(body, wr->sg_list, wr->num_sge,
				       hw->sq.max_inline);
		wqe->inline_length = ret;
	} else {
		ret = shca_post_sges(body, wr->sg_list, wr->num_sge,
				     hw->sq.max_sge);
		wqe->num_sge = wr->num_sge;
	}
	if (ret < 0)
		return ret;
	return shca_sq_post(hw, raw, SHCA_SEND_WQE_SIZE + ret);
}

/**
 * shca_post_send() - post work requests, or ring the send queue's doorbell
 * @ibqp: the QP of a process
 * @wr: NULL when what is posted is in the ring already
 * @bad_wr: set to the first work request that was not posted
 *
 * Context: process, in the mm that posts; sleeps.
 * Return: 0, -EINVAL for a work request that no provider would post, -EFAULT
 * for inline data that cannot be read, -ENOMEM when the queue is full. What
 * stands before the offender is posted.
 */
int shca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr)
{
	struct shca_qp *hw = &to_shca_ibqp(ibqp)->hw;
	void *raw = NULL;
	int ret = 0;

	if (wr) {
		raw = kmalloc(SHCA_MAX_SEND_WQE, GFP_KERNEL);
		if (!raw) {
			*bad_wr = wr;
			return -ENOMEM;
		}
	}
	for (; wr; wr = wr->next) {
		ret = shca_post_one_send(hw, wr, raw);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	kfree(raw);
	shca_sq_doorbell(hw);
	return ret;
}

static int shca_post_one_recv(struct shca_qp *hw, const struct ib_recv_wr *wr,
			      void *raw)
{
	struct shca_recv_wqe *wqe = raw;
	int ret;

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	ret = shca_post_sges(raw + SHCA_RECV_WQE_SIZE, wr->sg_list,
			     wr->num_sge, hw->rq.max_sge);
	if (ret < 0)
		return ret;
	return shca_rq_post(hw, raw, SHCA_RECV_WQE_SIZE + ret);
}

/**
 * shca_post_recv() - post receives, or ring the receive queue's doorbell
 * @ibqp: the QP of a process
 * @wr: NULL when what is posted is in the ring already; then the doorbell is
 *      needed only when the ring's header says SHCA_RING_DOORBELL
 * @bad_wr: set to the first work request that was not posted
 *
 * Context: process, sleeps.
 * Return: 0, -EINVAL for a work request that no provider would post, -ENOMEM
 * when the queue is full.
 */
int shca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr)
{
	struct shca_qp *hw = &to_shca_ibqp(ibqp)->hw;
	void *raw = NULL;
	int ret = 0;

	if (wr) {
		raw = kmalloc(SHCA_MAX_RECV_WQE, GFP_KERNEL);
		if (!raw) {
			*bad_wr = wr;
			return -ENOMEM;
		}
	}
	for (; wr; wr = wr->next) {
		ret = shca_post_one_recv(hw, wr, raw);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	kfree(raw);
	shca_rq_doorbell(hw);
	return ret;
}
