/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The driver half of the sample HCA: verbs objects around the engine's. Owns
 * what a process holds and how it gets there; never moves a byte of data and
 * never decides about a key (engine/ does).
 */
#ifndef SHCA_DRIVER_H
#define SHCA_DRIVER_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>
#include <rdma/sample_hca-abi.h>

#include "../compat.h"
#include "engine/engine.h"

#define SHCA_MAX_PD		4096
/* The largest array of page pointers that kvmalloc() gives, in bytes of memory. */
#define SHCA_MAX_MR_SIZE	((u64)INT_MAX / sizeof(struct page *) * PAGE_SIZE)
#define SHCA_MAX_MR		65536
#define SHCA_MAX_MW		65536
#define SHCA_MAX_CQ		8192
#define SHCA_MAX_CQE		65536
#define SHCA_MAX_QP		4096
#define SHCA_MAX_QP_WR		4096
#define SHCA_GID_TABLE_LEN	128

/**
 * struct shca_dev - one sample HCA
 * @ibdev: first, as ib_alloc_device() wants it
 * @hca: what the engine knows of it
 * @netdev: its port; held
 * @link: entry in the list of all devices (main.c)
 * @nr_pd: protection domains in use, against SHCA_MAX_PD
 * @nr_mr: memory regions in use, against SHCA_MAX_MR
 * @nr_mw: memory windows in use, against SHCA_MAX_MW
 * @nr_cq: completion queues in use, against SHCA_MAX_CQ
 * @nr_qp: queue pairs in use, against SHCA_MAX_QP
 */
struct shca_dev {
	struct ib_device ibdev;
	struct shca_hca hca;
	struct net_device *netdev;
	struct list_head link;
	atomic_t nr_pd;
	atomic_t nr_mr;
	atomic_t nr_mw;
	atomic_t nr_cq;
	atomic_t nr_qp;
};

struct shca_ucontext {
	struct ib_ucontext ibucontext;
};

struct shca_pd {
	struct ib_pd ibpd;
};

/**
 * struct shca_mr_mem - memory that was taken for a region
 * @page: its pages in order
 * @umem: how it was taken
 */
struct shca_mr_mem {
	struct page **page;
	struct ib_umem *umem;
};

/**
 * struct shca_mr - a memory region as verbs see it
 * @ibmr: verbs object
 * @region: the engine's
 * @lock: guards @mem against a query; ib_uverbs serialises the rest
 * @mem: its memory
 */
struct shca_mr {
	struct ib_mr ibmr;
	struct shca_region region;
	struct mutex lock;	/* mem */
	struct shca_mr_mem *mem;
};

struct shca_mw {
	struct ib_mw ibmw;
	struct shca_key key;
};

/**
 * struct shca_ring_mem - memory of a ring
 * @entry: how a process maps it; the memory lives until its last reference
 * @ring: what the engine gets to see
 * @pages: the memory
 * @nr_pages: how many
 */
struct shca_ring_mem {
	struct rdma_user_mmap_entry entry;
	struct shca_ring ring;
	struct page **pages;
	unsigned int nr_pages;
};

struct shca_ibcq {
	struct ib_cq ibcq;
	struct shca_cq hw;
	struct shca_ring_mem *mem;
};

/**
 * struct shca_ibqp - a queue pair as verbs see it
 * @ibqp: verbs object
 * @hw: the engine's
 * @sq_mem: send ring
 * @rq_mem: receive ring, or NULL
 * @init: what it was made with, for queries
 * @attr: attributes that only queries need; the engine's are in @hw
 */
struct shca_ibqp {
	struct ib_qp ibqp;
	struct shca_qp hw;
	struct shca_ring_mem *sq_mem;
	struct shca_ring_mem *rq_mem;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
};

static inline struct shca_dev *to_shca_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct shca_dev, ibdev);
}

static inline struct shca_mw *to_shca_mw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct shca_mw, ibmw);
}

static inline struct shca_mr *to_shca_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct shca_mr, ibmr);
}

static inline struct shca_ibcq *to_shca_ibcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct shca_ibcq, ibcq);
}

static inline struct shca_ibqp *to_shca_ibqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct shca_ibqp, ibqp);
}

/* Count an object against its limit; undone by atomic_dec(). */
static inline int shca_count(atomic_t *nr, int limit)
{
	return atomic_add_unless(nr, 1, limit) ? 0 : -ENOMEM;
}

/* device.c */
extern const struct ib_device_ops shca_device_ops;
u64 shca_caps(const struct shca_dev *dev);
bool shca_port_is_up(const struct shca_dev *dev);

/* main.c */
int shca_enable_driver(struct ib_device *ibdev);
void shca_dealloc_driver(struct ib_device *ibdev);

/* ucontext.c */
int shca_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata);
void shca_dealloc_ucontext(struct ib_ucontext *ibucontext);
void shca_disassociate_ucontext(struct ib_ucontext *ibucontext);
struct ib_ucontext *shca_udata_context(struct ib_udata *udata);
int shca_udata_request(struct ib_udata *udata, void *req, size_t size);
int shca_udata_response(struct ib_udata *udata, void *resp, size_t size);

/* pd.c */
int shca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int shca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* mr.c */
struct ib_mr *shca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 virt_addr, int access,
			       struct ib_udata *udata);
struct ib_mr *shca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 virt_addr, int access,
				 struct ib_pd *ibpd, struct ib_udata *udata);
extern const struct uapi_definition shca_uapi_defs[];
int shca_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
int shca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* mw.c */
int shca_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int shca_dealloc_mw(struct ib_mw *ibmw);

/* cq.c */
int shca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct compat_create_cq_arg *arg);
int shca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int shca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

/* qp.c */
int shca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		   struct ib_udata *udata);
int shca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata);
int shca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init);
int shca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* post.c */
int shca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr);
int shca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr);

/* ring_mem.c */
struct shca_ring_mem *shca_ring_mem_create(struct ib_ucontext *ibucontext,
					   u32 entries, u32 stride);
void shca_ring_mem_destroy(struct shca_ring_mem *mem);
void shca_ring_mem_info(const struct shca_ring_mem *mem,
			struct shca_ring_info *info);
int shca_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma);
void shca_mmap_free(struct rdma_user_mmap_entry *entry);

#endif /* SHCA_DRIVER_H */
