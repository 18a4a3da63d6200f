/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * What the sample HCA's driver and its libibverbs provider share: the verbs
 * commands' driver parts, the mmap()ed rings, and the entries in them.
 * It describes memory and never how either side works on it.
 *
 * Every integer is in the byte order of the CPU unless it is __be32. All
 * structures have the same layout in 32-bit and 64-bit processes. Reserved
 * fields are written as 0; the driver refuses an entry in which one is not.
 */
#ifndef SAMPLE_HCA_ABI_H
#define SAMPLE_HCA_ABI_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

/*
 * The driver reports this number as the uverbs ABI version of its devices and
 * a provider refuses any other. Additions that old providers can ignore are
 * announced by comp_mask bits instead.
 */
#define SHCA_ABI_VERSION	1

/* What <sysfs>/class/infiniband/NAME/hca_type reads, whatever NAME is. */
#define SHCA_HCA_TYPE		"sample_hca"

/* shca_alloc_ucontext_resp.caps and shca_query_device_resp.caps */
enum shca_caps {
	/* IB_UVERBS_ACCESS_GIFT is honoured, not only accepted. */
	SHCA_CAP_GIFT		= 1 << 0,
	/* A send with invalidate is carried out by the rules of the contract. */
	SHCA_CAP_SEND_W_INV	= 1 << 1,
};

/*
 * In each request, comp_mask has a bit for every optional field that the
 * provider filled in; the driver refuses bits that it does not know
 * (EOPNOTSUPP). In each response, comp_mask has a bit for every optional field
 * that the driver filled in. Version 1 has no optional fields.
 */
struct shca_alloc_ucontext_req {
	__aligned_u64 comp_mask;
};

struct shca_alloc_ucontext_resp {
	__aligned_u64 comp_mask;
	__aligned_u64 caps;
};

struct shca_query_device_resp {
	__aligned_u64 comp_mask;
	__aligned_u64 caps;
};

struct shca_create_cq_req {
	__aligned_u64 comp_mask;
};

/*
 * Methods that the driver adds to UVERBS_OBJECT_MR of the ioctl interface.
 *
 * SHCA_METHOD_MR_REFRESH takes the stale pages of a gift region again (which
 * they are is what IB_GIFT_IOC_STALE of rdma/ib_gift.h says) and leaves its
 * lkey and rkey, and every other page, as they are. A peer reads the region as it
 * was or as it is then. A failure leaves it as it was: EINVAL for a region
 * that is not a gift region or not of the caller's memory, and for a range that
 * is not within it; EBUSY while another command changes the region; else as for a
 * registration.
 */
enum shca_mr_methods {
	SHCA_METHOD_MR_REFRESH	= (1U << UVERBS_ID_NS_SHIFT),
};

enum shca_mr_refresh_attrs {
	SHCA_ATTR_MR_REFRESH_HANDLE	= (1U << UVERBS_ID_NS_SHIFT),
	SHCA_ATTR_MR_REFRESH_ADDR,	/* in: __u64, first byte to look at */
	SHCA_ATTR_MR_REFRESH_LENGTH,	/* in: __u64, bytes, at least 1 */
	SHCA_ATTR_MR_REFRESH_RETAKEN,	/* out: __u64, pages taken again */
};

/* Where a ring is: what to pass to mmap(), and the geometry of what it maps. */
struct shca_ring_info {
	__aligned_u64 mmap_offset;	/* on the command file descriptor */
	__u32 mmap_length;		/* bytes */
	__u32 entries;			/* a power of two */
	__u32 stride;			/* bytes from one entry to the next */
	__u32 reserved;
};

struct shca_create_cq_resp {
	__aligned_u64 comp_mask;
	struct shca_ring_info cq;
};

struct shca_create_qp_req {
	__aligned_u64 comp_mask;
};

struct shca_create_qp_resp {
	__aligned_u64 comp_mask;
	struct shca_ring_info sq;
	struct shca_ring_info rq;	/* entries is 0 when there is none */
};

/*
 * A ring is one shared mapping: this header, then the entries from
 * SHCA_RING_ENTRIES_OFFSET on.
 *
 * The indexes run freely over all 32 bits; entry i is in slot
 * i & (entries - 1). The ring is empty when they are equal and full when
 * producer - consumer is entries. The producer writes its entry before its
 * index (release), the consumer reads the index before the entry (acquire) and
 * moves its own index only after it is done with the entry (release).
 *
 * Send and receive rings: the provider produces, the driver consumes.
 * Completion rings: the other way round.
 *
 * The driver believes its own copy of its own index; what it writes here is
 * for the provider to read. When a queue pair goes to RESET the driver moves
 * the consumer index up to the producer's: the indexes are never set back, so
 * a provider has nothing to reset.
 */
struct shca_ring_hdr {
	__u32 producer;
	__u32 reserved0[15];
	__u32 consumer;
	__u32 reserved1[15];
	__u32 flags;			/* enum shca_ring_flags, written by the driver */
	__u32 reserved2[31];
};

#define SHCA_RING_ENTRIES_OFFSET	256

enum shca_ring_flags {
	/*
	 * The queue pair left the states in which the driver looks at this
	 * ring by itself: a poster rings the doorbell after it has moved
	 * the producer index, so that what it posted is flushed. Reading the
	 * flag takes a full barrier after the index was written.
	 */
	SHCA_RING_DOORBELL	= 1 << 0,
};

struct shca_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

enum shca_wr_opcode {
	SHCA_WR_SEND			= 0,
	SHCA_WR_SEND_WITH_IMM		= 1,
	SHCA_WR_SEND_WITH_INV		= 2,
	SHCA_WR_RDMA_WRITE		= 3,
	SHCA_WR_RDMA_WRITE_WITH_IMM	= 4,
	SHCA_WR_RDMA_READ		= 5,
	SHCA_WR_BIND_MW			= 6,
	SHCA_WR_LOCAL_INV		= 7,
};

enum shca_send_flags {
	SHCA_SEND_SIGNALED	= 1 << 0,
	SHCA_SEND_SOLICITED	= 1 << 1,
	SHCA_SEND_FENCE		= 1 << 2,
	/* inline_length bytes stand where the scatter/gather list would. */
	SHCA_SEND_INLINE	= 1 << 3,
};

/* shca_send_wqe.bind.access */
enum shca_bind_access {
	SHCA_BIND_REMOTE_WRITE	= 1 << 0,
	SHCA_BIND_REMOTE_READ	= 1 << 1,
	SHCA_BIND_REMOTE_ATOMIC	= 1 << 2,
	SHCA_BIND_ZERO_BASED	= 1 << 3,
};

/*
 * A send work queue entry: this, then either num_sge structures shca_sge or
 * inline_length bytes, at SHCA_SEND_WQE_SIZE from its start.
 */
struct shca_send_wqe {
	__aligned_u64 wr_id;
	__u32 opcode;			/* enum shca_wr_opcode */
	__u32 flags;			/* enum shca_send_flags */
	__u32 num_sge;
	__u32 inline_length;		/* bytes; with SHCA_SEND_INLINE */
	union {
		__be32 imm_data;	/* *_WITH_IMM */
		__u32 invalidate_rkey;	/* SEND_WITH_INV, LOCAL_INV */
		__u32 ex;
	};
	__u32 reserved;
	union {
		struct {		/* RDMA_* */
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 reserved[5];
		} rdma;
		struct {		/* BIND_MW */
			__aligned_u64 addr;
			__aligned_u64 length;
			__u32 mr_lkey;
			__u32 mw_rkey;	/* a key that the window has or had */
			__u32 new_rkey;	/* its key from now on */
			__u32 access;	/* enum shca_bind_access */
		} bind;
		__u32 words[8];
	};
};

#define SHCA_SEND_WQE_SIZE	64

/*
 * A receive work queue entry: this, then num_sge structures shca_sge at
 * SHCA_RECV_WQE_SIZE from its start.
 */
struct shca_recv_wqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
};

#define SHCA_RECV_WQE_SIZE	16

enum shca_wc_status {
	SHCA_WC_SUCCESS			= 0,
	SHCA_WC_LOC_LEN_ERR		= 1,
	SHCA_WC_LOC_QP_OP_ERR		= 2,
	SHCA_WC_LOC_PROT_ERR		= 3,
	SHCA_WC_WR_FLUSH_ERR		= 4,
	SHCA_WC_MW_BIND_ERR		= 5,
	SHCA_WC_LOC_ACCESS_ERR		= 6,
	SHCA_WC_REM_INV_REQ_ERR		= 7,
	SHCA_WC_REM_ACCESS_ERR		= 8,
	SHCA_WC_REM_OP_ERR		= 9,
	SHCA_WC_RETRY_EXC_ERR		= 10,
	SHCA_WC_RNR_RETRY_EXC_ERR	= 11,
	SHCA_WC_FATAL_ERR		= 12,
	SHCA_WC_GENERAL_ERR		= 13,
};

enum shca_wc_opcode {
	SHCA_WC_SEND			= 0,
	SHCA_WC_RDMA_WRITE		= 1,
	SHCA_WC_RDMA_READ		= 2,
	SHCA_WC_BIND_MW			= 3,
	SHCA_WC_LOCAL_INV		= 4,
	SHCA_WC_RECV			= 5,
	SHCA_WC_RECV_RDMA_WITH_IMM	= 6,
};

/* Own values: neither the kernel's IB_WC_* nor the user's IBV_WC_* flags. */
enum shca_wc_flags {
	SHCA_WC_WITH_IMM	= 1 << 0,
	SHCA_WC_WITH_INV	= 1 << 1,
};

/* A completion queue entry. With an error status only wr_id, status, qp_num
 * and vendor_err hold.
 */
struct shca_cqe {
	__aligned_u64 wr_id;
	__u32 status;			/* enum shca_wc_status */
	__u32 opcode;			/* enum shca_wc_opcode */
	__u32 flags;			/* enum shca_wc_flags */
	__u32 vendor_err;
	__u32 qp_num;
	__u32 byte_len;
	union {
		__be32 imm_data;
		__u32 invalidated_rkey;
		__u32 ex;
	};
	__u32 src_qp;
	__u32 reserved[6];
};

#define SHCA_CQE_SIZE		64

#endif /* SAMPLE_HCA_ABI_H */
