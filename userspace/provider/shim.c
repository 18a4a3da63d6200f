// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The C layer of the provider: the only file that includes rdma-core's private
 * driver.h. Owns device matching, the commands that go to the kernel, the life
 * of the verbs objects and the mapping of rings. Never reads or writes a ring:
 * that is the core's.
 *
 * Functions return what the verbs return: an errno value, or NULL with errno set.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>
#include <infiniband/driver.h>
#include <infiniband/sample_hca.h>
#include <infiniband/verbs.h>
#include <rdma/sample_hca-abi.h>

#include "core.h"

/* A command and its response are the verbs' part, then the driver's. */
#define DRIVER_PART(type, verbs_part, driver_part)                                      \
	static_assert(offsetof(type, driver_part) == sizeof(((type *)0)->verbs_part) && \
			      sizeof(type) == sizeof(((type *)0)->verbs_part) +         \
						      sizeof(((type *)0)->driver_part), \
		      "padding between the parts of " #type)

struct get_context_cmd {
	struct ibv_get_context verbs;
	struct shca_alloc_ucontext_req driver;
};

struct get_context_resp {
	struct ib_uverbs_get_context_resp verbs;
	struct shca_alloc_ucontext_resp driver;
};

struct create_cq_cmd {
	struct ibv_create_cq verbs;
	struct shca_create_cq_req driver;
};

struct create_cq_resp {
	struct ib_uverbs_create_cq_resp verbs;
	struct shca_create_cq_resp driver;
};

struct create_cq_ex_cmd {
	struct ibv_create_cq_ex verbs;
	struct shca_create_cq_req driver;
};

struct create_cq_ex_resp {
	struct ib_uverbs_ex_create_cq_resp verbs;
	struct shca_create_cq_resp driver;
};

struct create_qp_cmd {
	struct ibv_create_qp verbs;
	struct shca_create_qp_req driver;
};

struct create_qp_resp {
	struct ib_uverbs_create_qp_resp verbs;
	struct shca_create_qp_resp driver;
};

DRIVER_PART(struct get_context_cmd, verbs, driver);
DRIVER_PART(struct get_context_resp, verbs, driver);
DRIVER_PART(struct create_cq_cmd, verbs, driver);
DRIVER_PART(struct create_cq_resp, verbs, driver);
DRIVER_PART(struct create_cq_ex_cmd, verbs, driver);
DRIVER_PART(struct create_cq_ex_resp, verbs, driver);
DRIVER_PART(struct create_qp_cmd, verbs, driver);
DRIVER_PART(struct create_qp_resp, verbs, driver);

struct context {
	struct verbs_context verbs;
	uint64_t caps; /* enum shca_caps */
};

struct cq {
	struct shca_ring_map ring;
	struct shca_cq_link link; /* directly before verbs */
	struct verbs_cq verbs;
};

struct qp {
	struct shca_ring_map sq;
	struct shca_ring_map rq;
	struct shca_qp_link link; /* directly before verbs */
	union {
		struct verbs_qp verbs;
		unsigned char ex[sizeof(struct ibv_qp_ex) + SHCA_QP_EX_TAIL];
	};
};

static_assert(offsetof(struct cq, verbs) == offsetof(struct cq, link) + sizeof(struct shca_cq_link),
	      "the core finds its part directly before struct ibv_cq");
static_assert(offsetof(struct qp, verbs) == offsetof(struct qp, link) + sizeof(struct shca_qp_link),
	      "the core finds its part directly before struct ibv_qp");

static struct context *to_context(struct ibv_context *ibctx)
{
	return container_of(ibctx, struct context, verbs.context);
}

static struct cq *to_cq(struct ibv_cq *ibcq)
{
	return container_of(ibcq, struct cq, verbs.cq);
}

static struct qp *to_qp(struct ibv_qp *ibqp)
{
	return container_of(ibqp, struct qp, verbs.qp);
}

/* Rings */

static int map_ring(struct ibv_context *ibctx, const struct shca_ring_info *info,
		    struct shca_ring_map *map)
{
	void *base;

	*map = (struct shca_ring_map){
		.length = info->mmap_length,
		.entries = info->entries,
		.stride = info->stride,
	};
	if (!info->entries)
		return 0;
	base = mmap(NULL, info->mmap_length, PROT_READ | PROT_WRITE, MAP_SHARED, ibctx->cmd_fd,
		    (off_t)info->mmap_offset);
	if (base == MAP_FAILED)
		return errno;
	map->base = base;
	return 0;
}

static void unmap_ring(struct shca_ring_map *map)
{
	if (map->base)
		munmap(map->base, map->length);
	map->base = NULL;
}

/*
 * A doorbell is a post with no work request in it: the kernel calls the driver's
 * post function, and that looks at the ring.
 */
static int ring_doorbell(struct ibv_qp *ibqp, uint32_t command, uint32_t wqe_size)
{
	struct ib_uverbs_post_send_resp resp;
	struct ibv_post_send cmd = {
		.hdr =
			{
				.command = command,
				.in_words = sizeof(cmd) / 4,
				.out_words = sizeof(resp) / 4,
			},
		.core_payload =
			{
				.response = (uintptr_t)&resp,
				.qp_handle = ibqp->handle,
				.wqe_size = wqe_size,
			},
	};

	static_assert(sizeof(struct ibv_post_recv) == sizeof(struct ibv_post_send),
		      "both posts have one layout");
	if (write(ibqp->context->cmd_fd, &cmd, sizeof(cmd)) != sizeof(cmd))
		return errno;
	return 0;
}

static int ring_send_doorbell(struct ibv_qp *ibqp)
{
	return ring_doorbell(ibqp, IB_USER_VERBS_CMD_POST_SEND, sizeof(struct ib_uverbs_send_wr));
}

static int ring_recv_doorbell(struct ibv_qp *ibqp)
{
	return ring_doorbell(ibqp, IB_USER_VERBS_CMD_POST_RECV, sizeof(struct ib_uverbs_recv_wr));
}

static const struct shca_doorbells doorbells = {
	.send = ring_send_doorbell,
	.recv = ring_recv_doorbell,
};

/* Device and port */

/* What the provider does of what the device can do: enum shca_caps. */
#ifdef SHCA_OLD_PROVIDER
static const uint64_t provider_caps = SHCA_CAP_GIFT;
#else
static const uint64_t provider_caps = SHCA_CAP_GIFT | SHCA_CAP_SEND_W_INV;
#endif

/* What an application reads for "a send with invalidate works". */
static const unsigned int send_w_inv = IBV_DEVICE_MEM_MGT_EXTENSIONS;

/*
 * Where a patched libibverbs puts that bit as the kernel set it, for the provider
 * to give back when it does its half. No kernel sets this one.
 */
static const unsigned int kernel_send_w_inv = 1 << 16;

static void set_capabilities(const struct context *ctx, struct ibv_device_attr_ex *attr,
			     size_t attr_size)
{
	bool extended = attr_size >= offsetof(struct ibv_device_attr_ex, device_cap_flags_ex) +
					     sizeof(attr->device_cap_flags_ex);

	if (ctx->caps & SHCA_CAP_SEND_W_INV) {
		if (attr->orig_attr.device_cap_flags & kernel_send_w_inv)
			attr->orig_attr.device_cap_flags |= send_w_inv;
		if (extended && (attr->device_cap_flags_ex & kernel_send_w_inv))
			attr->device_cap_flags_ex |= send_w_inv;
	}
#ifdef IBV_DEVICE_GIFT
	if (extended && (ctx->caps & SHCA_CAP_GIFT))
		attr->device_cap_flags_ex |= IBV_DEVICE_GIFT;
#endif
}

static int query_device(struct ibv_context *ibctx, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t version;
	int ret;

	ret = ibv_cmd_query_device_any(ibctx, input, attr, attr_size, &resp, &resp_size);
	if (ret)
		return ret;
	version = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u.%u",
		 (unsigned int)(version >> 32) & 0xffff, (unsigned int)(version >> 16) & 0xffff,
		 (unsigned int)version & 0xffff);
	set_capabilities(to_context(ibctx), attr, attr_size);
	return 0;
}

static int query_port(struct ibv_context *ibctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd = {};

	return ibv_cmd_query_port(ibctx, port, attr, &cmd, sizeof(cmd));
}

/* Protection domains, memory regions, memory windows */

static struct ibv_pd *alloc_pd(struct ibv_context *ibctx)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd = {};
	struct ibv_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	ret = ibv_cmd_alloc_pd(ibctx, pd, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	int ret = ibv_cmd_dealloc_pd(pd);

	if (!ret)
		free(pd);
	return ret;
}

/* Access flags pass as they are: what a device does not know, the kernel refuses. */
static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va,
			     int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd = {};
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	ret = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, vmr, &cmd, sizeof(cmd), &resp,
			     sizeof(resp));
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	return &vmr->ibv_mr;
}

static int rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		    int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd = {};

	return ibv_cmd_rereg_mr(vmr, (uint32_t)flags, addr, length, (uintptr_t)addr, access, pd,
				&cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int dereg_mr(struct verbs_mr *vmr)
{
	int ret = ibv_cmd_dereg_mr(vmr);

	if (!ret)
		free(vmr);
	return ret;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd = {};
	struct ibv_mw *mw;
	int ret;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	ret = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(mw);
		errno = ret;
		return NULL;
	}
	return mw;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	int ret = ibv_cmd_dealloc_mw(mw);

	if (!ret)
		free(mw);
	return ret;
}

/* Completion queues */

/* Maps the ring of a queue that the kernel has made; undoes that on failure. */
static int finish_cq(struct ibv_context *ibctx, struct cq *cq, const struct shca_ring_info *info,
		     bool single_threaded)
{
	int ret;

	ret = map_ring(ibctx, info, &cq->ring);
	if (!ret) {
		cq->link.core = shca_core_cq_create(&cq->ring, single_threaded);
		if (cq->link.core)
			return 0;
		ret = errno;
		unmap_ring(&cq->ring);
	}
	/* The commands below wait for events by means of what this sets up. */
	verbs_init_cq(&cq->verbs.cq, ibctx, NULL, NULL);
	ibv_cmd_destroy_cq(&cq->verbs.cq);
	return ret;
}

static struct ibv_cq *create_cq(struct ibv_context *ibctx, int cqe,
				struct ibv_comp_channel *channel, int comp_vector)
{
	struct create_cq_resp resp = {};
	struct create_cq_cmd cmd = {};
	struct cq *cq;
	int ret;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	ret = ibv_cmd_create_cq(ibctx, cqe, channel, comp_vector, &cq->verbs.cq, &cmd.verbs,
				sizeof(cmd), &resp.verbs, sizeof(resp));
	if (!ret)
		ret = finish_cq(ibctx, cq, &resp.driver.cq, false);
	if (ret) {
		free(cq);
		errno = ret;
		return NULL;
	}
	return &cq->verbs.cq;
}

static int check_cq_attr(const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return EOPNOTSUPP;
	return shca_core_check_wc_flags(attr->wc_flags);
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *ibctx, struct ibv_cq_init_attr_ex *attr)
{
	bool single_threaded = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
			       (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	struct create_cq_ex_resp resp = {};
	struct create_cq_ex_cmd cmd = {};
	struct cq *cq;
	int ret;

	ret = check_cq_attr(attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	ret = ibv_cmd_create_cq_ex(ibctx, attr, &cq->verbs, &cmd.verbs, sizeof(cmd), &resp.verbs,
				   sizeof(resp), 0);
	if (!ret)
		ret = finish_cq(ibctx, cq, &resp.driver.cq, single_threaded);
	if (ret) {
		free(cq);
		errno = ret;
		return NULL;
	}
	shca_core_set_poll_ops(&cq->verbs.cq_ex, attr->wc_flags);
	return &cq->verbs.cq_ex;
}

static int destroy_cq(struct ibv_cq *ibcq)
{
	struct cq *cq = to_cq(ibcq);
	int ret;

	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;
	shca_core_cq_destroy(cq->link.core);
	unmap_ring(&cq->ring);
	free(cq);
	return 0;
}

/* Queue pairs */

/* Maps the rings of a queue pair that the kernel has made. */
static int finish_qp(struct qp *qp, const struct ibv_qp_init_attr_ex *attr,
		     const struct shca_create_qp_resp *resp)
{
	struct ibv_context *ibctx = attr->pd->context;
	struct shca_qp_config config = {
		.qp = &qp->verbs.qp,
		.doorbells = &doorbells,
		.cap = attr->cap,
		.device_caps = to_context(ibctx)->caps,
		.sq_sig_all = attr->sq_sig_all,
	};
	int ret;

	ret = map_ring(ibctx, &resp->sq, &qp->sq);
	if (!ret)
		ret = map_ring(ibctx, &resp->rq, &qp->rq);
	if (!ret) {
		config.sq = qp->sq;
		config.rq = qp->rq;
		qp->link.core = shca_core_qp_create(&config);
		if (qp->link.core)
			return 0;
		ret = errno;
	}
	unmap_ring(&qp->sq);
	unmap_ring(&qp->rq);
	return ret;
}

static int check_qp_attr(const struct ibv_qp_init_attr_ex *attr, uint64_t caps)
{
	static const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	if (attr->comp_mask & ~known)
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		return EINVAL;
	if (attr->qp_type != IBV_QPT_RC || attr->srq)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		return shca_core_check_send_ops(attr->send_ops_flags, attr->qp_type, caps);
	return 0;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr)
{
	struct create_qp_resp resp = {};
	struct create_qp_cmd cmd = {};
	struct qp *qp;
	int ret;

	ret = check_qp_attr(attr, to_context(ibctx)->caps);
	if (ret) {
		errno = ret;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	ret = ibv_cmd_create_qp_ex(ibctx, &qp->verbs, attr, &cmd.verbs, sizeof(cmd), &resp.verbs,
				   sizeof(resp));
	if (ret)
		goto err_free;
	ret = finish_qp(qp, attr, &resp.driver);
	if (ret)
		goto err_destroy;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		shca_core_set_send_ops(&qp->verbs.qp_ex, attr->send_ops_flags);
	return &qp->verbs.qp;

err_destroy:
	ibv_cmd_destroy_qp(&qp->verbs.qp);
err_free:
	free(qp);
	errno = ret;
	return NULL;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp;

	qp = create_qp_ex(pd->context, &attr_ex);
	if (qp)
		attr->cap = attr_ex.cap;
	return qp;
}

static int query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		    struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd = {};

	return ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd, sizeof(cmd));
}

/* The kernel completes nothing more for this queue pair. */
static void forget_completions(struct ibv_qp *ibqp)
{
	shca_core_cq_forget(ibqp->send_cq, ibqp->qp_num);
	if (ibqp->recv_cq != ibqp->send_cq)
		shca_core_cq_forget(ibqp->recv_cq, ibqp->qp_num);
}

static int modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct ibv_modify_qp cmd = {};
	int ret;

	ret = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd, sizeof(cmd));
	if (!ret && (attr_mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		forget_completions(ibqp);
	return ret;
}

static int destroy_qp(struct ibv_qp *ibqp)
{
	struct qp *qp = to_qp(ibqp);
	int ret;

	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret)
		return ret;
	forget_completions(ibqp);
	shca_core_qp_destroy(qp->link.core);
	unmap_ring(&qp->sq);
	unmap_ring(&qp->rq);
	free(qp);
	return 0;
}

/* Contexts and devices */

static void free_context(struct ibv_context *ibctx)
{
	struct context *ctx = to_context(ibctx);

	verbs_uninit_context(&ctx->verbs);
	free(ctx);
}

static const struct verbs_context_ops context_ops = {
	.alloc_mw = alloc_mw,
	.alloc_pd = alloc_pd,
	.bind_mw = shca_core_bind_mw,
	.create_cq = create_cq,
	.create_cq_ex = create_cq_ex,
	.create_qp = create_qp,
	.create_qp_ex = create_qp_ex,
	.dealloc_mw = dealloc_mw,
	.dealloc_pd = dealloc_pd,
	.dereg_mr = dereg_mr,
	.destroy_cq = destroy_cq,
	.destroy_qp = destroy_qp,
	.free_context = free_context,
	.modify_qp = modify_qp,
	.poll_cq = shca_core_poll_cq,
	.post_recv = shca_core_post_recv,
	.post_send = shca_core_post_send,
	.query_device_ex = query_device,
	.query_port = query_port,
	.query_qp = query_qp,
	.reg_mr = reg_mr,
	.req_notify_cq = ibv_cmd_req_notify_cq,
	.rereg_mr = rereg_mr,
};

static struct verbs_context *alloc_context(struct ibv_device *ibdev, int cmd_fd, void *private_data)
{
	struct get_context_resp resp = {};
	struct get_context_cmd cmd = {};
	struct context *ctx;

	(void)private_data;
	/* An out-of-tree driver has no id of its own in the kernel's list. */
	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, verbs, RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	if (ibv_cmd_get_context(&ctx->verbs, &cmd.verbs, sizeof(cmd), &resp.verbs, sizeof(resp))) {
		verbs_uninit_context(&ctx->verbs);
		free(ctx);
		return NULL;
	}
	ctx->caps = resp.driver.caps & provider_caps;
	verbs_set_ops(&ctx->verbs, &context_ops);
	return &ctx->verbs;
}

/*
 * Whatever its name and whatever driver id it reports, a device is ours by what
 * its driver says that it is.
 */
static bool match_device(struct verbs_sysfs_dev *sysfs_dev)
{
	char type[64];

	return ibv_read_ibdev_sysfs_file(type, sizeof(type), sysfs_dev, "hca_type") > 0 &&
	       !strcmp(type, SHCA_HCA_TYPE);
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	(void)sysfs_dev;
	return calloc(1, sizeof(struct verbs_device));
}

static void uninit_device(struct verbs_device *device)
{
	free(device);
}

/*
 * Empty and yet there: libibverbs walks the table of every provider when a device
 * of a driver that it knows is around.
 */
static const struct verbs_match_ent match_table[] = {
	{},
};

static const struct verbs_device_ops device_ops = {
	.name = "sample_hca",
	.match_min_abi_version = SHCA_ABI_VERSION,
	.match_max_abi_version = SHCA_ABI_VERSION,
	.match_table = match_table,
	.match_device = match_device,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
	.alloc_context = alloc_context,
};
PROVIDER_DRIVER(sample_hca, device_ops);

int shca_query_caps(struct ibv_context *ibctx, uint64_t *caps)
{
	if (!caps)
		return EINVAL;
	*caps = 0;
	if (!ibctx)
		return EINVAL;
	if (verbs_get_device(ibctx->device)->ops != &device_ops)
		return EOPNOTSUPP;
	*caps = to_context(ibctx)->caps;
	return 0;
}

int shca_query_stale(const void *addr, size_t length, uint64_t *bitmap, uint64_t *registered,
		     uint64_t *stale)
{
	static const struct shca_gift_calls calls = {
		.open = open,
		.ioctl = ioctl,
		.close = close,
	};

	return shca_core_query_stale(&calls, addr, length, bitmap, registered, stale);
}

int shca_refresh_mr(struct ibv_mr *mr, void *addr, size_t length, uint64_t *retaken)
{
	uint64_t pages = 0;
	int ret;

	if (!mr)
		return EINVAL;
	if (verbs_get_device(mr->context->device)->ops != &device_ops)
		return EOPNOTSUPP;

	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_MR, SHCA_METHOD_MR_REFRESH, 4);
	fill_attr_in_obj(cmd, SHCA_ATTR_MR_REFRESH_HANDLE, mr->handle);
	fill_attr_in_uint64(cmd, SHCA_ATTR_MR_REFRESH_ADDR, (uintptr_t)addr);
	fill_attr_in_uint64(cmd, SHCA_ATTR_MR_REFRESH_LENGTH, length);
	fill_attr_out_ptr(cmd, SHCA_ATTR_MR_REFRESH_RETAKEN, &pages);
	ret = execute_ioctl(mr->context, cmd);
	/* A method that the driver does not have. */
	if (ret == EPROTONOSUPPORT || ret == ENOTTY)
		return EOPNOTSUPP;
	if (!ret && retaken)
		*retaken = pages;
	return ret;
}
