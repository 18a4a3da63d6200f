/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hardware half of the sample HCA: what an adapter's silicon would do.
 * It executes work queue entries, moves bytes, guards memory with keys and
 * writes completions. It knows the InfiniBand verbs' words but nothing of
 * uverbs, processes or how an object was created; the driver half embeds these
 * structures in its own and is told of events through two callbacks.
 *
 * The engine runs in process context only. Lock order, outermost first:
 *
 *	shca_sq.lock of the sending QP		mutex
 *	shca_rq.lock of its peer, or its own	mutex
 *	xa_lock of shca_qps, xa_lock of a	spinlocks, never two at
 *	  key table, shca_cq.lock		once
 *
 * No two send locks and no two receive locks are ever held together, so any
 * web of connections, a QP connected to itself included, is free of cycles.
 */
#ifndef SHCA_ENGINE_H
#define SHCA_ENGINE_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/sample_hca-abi.h>

#include "ring.h"

#define SHCA_MAX_SGE		16
#define SHCA_MAX_INLINE		512
#define SHCA_MAX_MSG_SIZE	0x40000000U
#define SHCA_MAX_RD_ATOMIC	16
#define SHCA_PORT_NUM		1

/* Room for the largest work queue entries a queue pair can have. */
#define SHCA_MAX_SEND_WQE	(SHCA_SEND_WQE_SIZE + SHCA_MAX_INLINE)
#define SHCA_MAX_RECV_WQE						\
	(SHCA_RECV_WQE_SIZE + SHCA_MAX_SGE * sizeof(struct shca_sge))
static_assert(SHCA_MAX_SGE * sizeof(struct shca_sge) <= SHCA_MAX_INLINE);

struct page;
struct shca_qp;
struct shca_region;

/* ---- memory keys (key.c) ---- */

enum shca_key_kind {
	SHCA_KEY_REGION,	/* of a process */
	SHCA_KEY_DMA,		/* of a kernel consumer: all of memory */
	SHCA_KEY_FAST,		/* of a kernel consumer: fast-register */
	SHCA_KEY_WINDOW_1,
	SHCA_KEY_WINDOW_2,
};

enum shca_key_state {
	SHCA_KEY_FREE,		/* not bound, or not registered yet or any more */
	SHCA_KEY_VALID,
	SHCA_KEY_DRAINING,	/* no new access; the last ones still run */
};

/**
 * struct shca_key_table - the keys of one adapter
 * @keys: by index (the upper 24 bits of a key); its lock guards every field of
 *        every key in it
 * @drained: woken when a key that is no longer valid lost its last user
 * @next: where the search for a free index goes on, so that an index is not
 *        used again soon
 */
struct shca_key_table {
	struct xarray keys;
	wait_queue_head_t drained;
	u32 next;
};

/**
 * struct shca_key - what one lkey or rkey stands for
 * @table: where it is found
 * @key: the full key; the low 8 bits vary
 * @kind: region or window
 * @state: what may be done by it
 * @access: enum ib_access_flags
 * @users: accesses under way
 * @pd: protection domain, compared only
 * @base: first address that it covers
 * @length: bytes that it covers
 * @region: whose pages it leads to
 * @offset: of @base from the region's first byte
 * @qp: the QP that a type 2 window is bound to
 * @on_qp: entry in that QP's list of windows
 */
struct shca_key {
	struct shca_key_table *table;
	u32 key;
	enum shca_key_kind kind;
	enum shca_key_state state;
	u32 access;
	u32 users;
	const void *pd;
	u64 base;
	u64 length;
	struct shca_region *region;
	u64 offset;
	const struct shca_qp *qp;
	struct list_head on_qp;
};

/**
 * struct shca_pages - the memory behind a region
 * @page: its pages in order, so that any byte is found without a search
 * @nr: number of pages
 * @first: offset of the region's first byte in the first page
 * @users: accesses under way, guarded by the key table's lock
 */
struct shca_pages {
	struct page **page;
	size_t nr;
	u64 first;
	u32 users;
};

/**
 * struct shca_region - a memory region
 * @key: its key
 * @pages: its memory; accesses under way keep what they began with
 * @windows: windows bound on it, one being unbound included
 */
struct shca_region {
	struct shca_key key;
	struct shca_pages *pages;
	u32 windows;
};

/**
 * struct shca_want - an access that someone asks for
 * @key: the key that the work request or the packet carries
 * @access: IB_ACCESS_LOCAL_WRITE or 0 for an lkey, IB_ACCESS_REMOTE_* for
 *          an rkey
 * @remote: @key is an rkey
 * @pd: protection domain of the QP that accesses
 * @qp: that QP
 * @addr: first address
 * @length: bytes
 */
struct shca_want {
	u32 key;
	u32 access;
	bool remote;
	const void *pd;
	const struct shca_qp *qp;
	u64 addr;
	u64 length;
};

/**
 * struct shca_bind - a request to bind a window
 * @pd: protection domain of the QP that binds
 * @qp: that QP
 * @mw_rkey: a key that the window has or had
 * @new_rkey: its key from now on
 * @mr_lkey: region to bind it on
 * @access: enum ib_access_flags for the window
 * @addr: first address within the region
 * @length: bytes
 */
struct shca_bind {
	const void *pd;
	struct shca_qp *qp;
	u32 mw_rkey;
	u32 new_rkey;
	u32 mr_lkey;
	u32 access;
	u64 addr;
	u64 length;
};

/**
 * struct shca_region_change - what a region is to become
 * @pages: its memory
 * @base: its first address
 * @length: bytes
 * @access: enum ib_access_flags
 * @pd: protection domain
 */
struct shca_region_change {
	struct shca_pages *pages;
	u64 base;
	u64 length;
	u32 access;
	const void *pd;
};

struct shca_span;

void shca_key_table_init(struct shca_key_table *table);
void shca_key_table_destroy(struct shca_key_table *table);
int shca_key_add(struct shca_key_table *table, struct shca_key *key);
int shca_key_remove(struct shca_key *key);
int shca_region_replace(struct shca_region *region,
			const struct shca_region_change *change);
bool shca_key_permits(const struct shca_key *key, const struct shca_want *want);
int shca_key_get(struct shca_key_table *table, const struct shca_want *want,
		 struct shca_span *span);
void shca_key_put(const struct shca_span *span);
bool shca_key_may_bind(const struct shca_key *window,
		       const struct shca_key *region,
		       const struct shca_bind *bind);
int shca_key_bind(struct shca_key_table *table, const struct shca_bind *bind);
bool shca_key_may_invalidate(const struct shca_key *key, u32 rkey,
			     const void *pd, const struct shca_qp *qp);
int shca_key_invalidate(struct shca_key_table *table, u32 rkey, const void *pd,
			struct shca_qp *qp);
void shca_key_unbind_qp(struct shca_key_table *table, struct shca_qp *qp);

/* ---- moving bytes (mem.c) ---- */

/**
 * struct shca_span - consecutive bytes that an access may use
 * @key: key in use for them, NULL for @buffer
 * @buffer: bytes in the engine's own memory (inline data)
 * @pages: memory of the region otherwise
 * @offset: of the first byte from the start of @buffer or of the first page
 * @length: bytes
 */
struct shca_span {
	struct shca_key *key;
	void *buffer;
	struct shca_pages *pages;
	u64 offset;
	u64 length;
};

/**
 * struct shca_sgl - a resolved scatter/gather list
 * @nr: spans in use
 * @length: bytes of all of them
 * @span: the spans
 */
struct shca_sgl {
	unsigned int nr;
	u64 length;
	struct shca_span span[SHCA_MAX_SGE];
};

int shca_sgl_gather(struct shca_sgl *sgl, const struct shca_qp *qp,
		    const struct shca_sge *sge, unsigned int nr, u32 access);
void shca_sgl_buffer(struct shca_sgl *sgl, void *buffer, u32 length);
int shca_sgl_remote(struct shca_sgl *sgl, const struct shca_qp *qp, u32 rkey,
		    u64 addr, u64 length, u32 access);
void shca_sgl_put(struct shca_sgl *sgl);
void shca_sgl_copy(const struct shca_sgl *to, const struct shca_sgl *from,
		   u64 length);

/* ---- completion queues (cq.c) ---- */

/**
 * struct shca_cq - a completion queue
 * @lock: guards every field below
 * @ring: the shared memory
 * @producer: index of the next completion; the copy that counts
 * @armed: what the next notification waits for: 0, IB_CQ_SOLICITED or
 *         IB_CQ_NEXT_COMP
 * @overrun: a completion was lost; the queue takes no more
 * @notify: called when an armed queue got its completion
 * @event: called once for IB_EVENT_CQ_ERR
 *
 * The callbacks run without @lock, in process context.
 */
struct shca_cq {
	spinlock_t lock;	/* everything below */
	struct shca_ring ring;
	u32 producer;
	enum ib_cq_notify_flags armed;
	bool overrun;
	void (*notify)(struct shca_cq *cq);
	void (*event)(struct shca_cq *cq, enum ib_event_type type);
};

void shca_cq_init(struct shca_cq *cq, const struct shca_ring *ring);
int shca_cq_push(struct shca_cq *cq, const struct shca_cqe *cqe,
		 bool solicited);
void shca_cq_arm(struct shca_cq *cq, enum ib_cq_notify_flags flags);

/* ---- the adapter and its queue pairs (qp.c, sq.c, rq.c) ---- */

/**
 * struct shca_hca - one adapter
 * @keys: its memory keys
 * @port_up: its port can send and receive
 * @send_w_inv: it knows sends with invalidate
 */
struct shca_hca {
	struct shca_key_table keys;
	bool port_up;
	bool send_w_inv;
};

enum shca_sq_wait {
	SHCA_SQ_READY,
	SHCA_SQ_WAIT_TIMER,	/* until shca_sq.not_before */
	SHCA_SQ_WAIT_FOREVER,	/* an answer was lost and the timeout is 0 */
};

/**
 * struct shca_sq - the send side of a queue pair
 * @lock: guards the send side
 * @queue: work queue
 * @cq: where its completions go
 * @max_sge: entries of a scatter/gather list, at most
 * @max_inline: bytes of inline data, at most
 * @signal_all: every work request completes with a completion
 * @started: @wqe holds the oldest work request, which is under way
 * @wait: what it waits for
 * @not_before: jiffies
 * @unanswered: the last attempt got no answer
 * @retries: times that it may still be sent again after no answer
 * @rnr_retries: the same after "receiver not ready"
 * @sgl: its local memory while an attempt runs
 * @remote: its remote memory while an attempt runs
 * @wqe: the engine's copy of the work queue entry
 * @raw: that copy with what follows it
 */
struct shca_sq {
	struct mutex lock;	/* everything below */
	struct shca_queue queue;
	struct shca_cq *cq;
	u32 max_sge;
	u32 max_inline;
	bool signal_all;
	bool started;
	enum shca_sq_wait wait;
	unsigned long not_before;
	bool unanswered;
	u8 retries;
	u8 rnr_retries;
	struct shca_sgl sgl;
	struct shca_sgl remote;
	union {
		struct shca_send_wqe wqe;
		u8 raw[SHCA_MAX_SEND_WQE];
	};
};

/**
 * struct shca_rq - the receive side of a queue pair
 * @lock: guards the receive side
 * @queue: work queue
 * @cq: where its completions go
 * @max_sge: entries of a scatter/gather list, at most
 * @sgl: memory of the receive that is being filled
 * @wqe: the engine's copy of the work queue entry
 * @raw: that copy with what follows it
 */
struct shca_rq {
	struct mutex lock;	/* everything below */
	struct shca_queue queue;
	struct shca_cq *cq;
	u32 max_sge;
	struct shca_sgl sgl;
	union {
		struct shca_recv_wqe wqe;
		u8 raw[SHCA_MAX_RECV_WQE];
	};
};

/**
 * struct shca_qp_attrs - the attributes of a queue pair that the engine obeys
 * @access: enum ib_access_flags that a peer's request may use
 * @dest_qpn: the peer
 * @sgid: own address of the connection
 * @dgid: the peer's address
 * @timeout: local ACK timeout, 4.096 us * 2^timeout; 0 is none
 * @retry_cnt: attempts after no answer
 * @rnr_retry: attempts after "receiver not ready"; 7 has no limit
 * @min_rnr_timer: what this QP answers when it is not ready (encoded)
 * @max_rd_atomic: reads under way as a requester
 * @max_dest_rd_atomic: reads under way as a responder
 * @sqd_event: IB_EVENT_SQ_DRAINED is asked for
 */
struct shca_qp_attrs {
	u32 access;
	u32 dest_qpn;
	union ib_gid sgid;
	union ib_gid dgid;
	u8 timeout;
	u8 retry_cnt;
	u8 rnr_retry;
	u8 min_rnr_timer;
	u8 max_rd_atomic;
	u8 max_dest_rd_atomic;
	bool sqd_event;
};

/**
 * struct shca_qp - a queue pair
 * @hca: its adapter
 * @pd: protection domain, compared only
 * @type: transport
 * @qpn: number, unique among all sample HCAs
 * @refs: one for being in shca_qps, one for each peer that works with it
 * @gone: completed when @refs reached 0
 * @state: written with sq.lock or rq.lock held. Who holds only one of them
 *         writes nothing but IB_QPS_ERR; everything else needs both.
 * @attrs: written with both locks held
 * @sq: send side
 * @rq: receive side
 * @work: what a doorbell left, retries, and flushing
 * @windows: type 2 windows bound to it; guarded by the key table's lock
 * @event: called for affiliated asynchronous events, with sq.lock or rq.lock
 *         held
 */
struct shca_qp {
	struct shca_hca *hca;
	const void *pd;
	enum ib_qp_type type;
	u32 qpn;
	refcount_t refs;
	struct completion gone;
	enum ib_qp_state state;
	struct shca_qp_attrs attrs;
	struct shca_sq sq;
	struct shca_rq rq;
	struct delayed_work work;
	struct list_head windows;
	void (*event)(struct shca_qp *qp, enum ib_event_type type);
};

int shca_engine_init(void);
void shca_engine_exit(void);
int shca_qp_add(struct shca_qp *qp);
void shca_qp_remove(struct shca_qp *qp);
void shca_qp_lock(struct shca_qp *qp);
void shca_qp_unlock(struct shca_qp *qp);
void shca_qp_set_state(struct shca_qp *qp, enum ib_qp_state state);
void shca_qp_fail(struct shca_qp *qp);
void shca_qp_fatal(struct shca_qp *qp);
void shca_qp_kick(struct shca_qp *qp);
void shca_qp_wake(struct shca_qp *qp, unsigned long delay);
struct shca_qp *shca_qp_lock_peer(struct shca_qp *qp);
void shca_qp_unlock_peer(struct shca_qp *peer);

int shca_sq_post(struct shca_qp *qp, const void *wqe, size_t length);
void shca_sq_doorbell(struct shca_qp *qp);
void shca_sq_work(struct shca_qp *qp);
void shca_sq_discard(struct shca_qp *qp);
int shca_rq_post(struct shca_qp *qp, const void *wqe, size_t length);
void shca_rq_doorbell(struct shca_qp *qp);
void shca_rq_flush(struct shca_qp *qp);
void shca_rq_discard(struct shca_qp *qp);

/**
 * struct shca_op - what the engine must know of an opcode (op.c)
 * @name: for debug messages
 * @run: carries it out for @qp's shca_sq.wqe; @peer is NULL for an operation
 *       that stays on the adapter. Returns an enum shca_wc_status, -EAGAIN
 *       when the receiver is not ready, or -ETIMEDOUT when there is no answer.
 * @qp_types: bit (1 << enum ib_qp_type) for each type that may post it
 * @send_flags: enum shca_send_flags that it takes
 * @local_access: access to local memory that it needs
 * @completion: opcode of its completion
 * @local: it stays on the adapter
 * @has_data: it takes a scatter/gather list
 * @consumes_recv: it uses up a receive work request
 * @recv_flags: SHCA_WC_WITH_* of the receiver's completion
 */
struct shca_op {
	const char *name;
	int (*run)(struct shca_qp *qp, struct shca_qp *peer,
		   const struct shca_op *op);
	u32 qp_types;
	u32 send_flags;
	u32 local_access;
	enum shca_wc_opcode completion;
	bool local;
	bool has_data;
	bool consumes_recv;
	u32 recv_flags;
};

const struct shca_op *shca_op_find(u32 opcode, enum ib_qp_type type);
const struct shca_op *shca_qp_op(const struct shca_qp *qp, u32 opcode);

bool shca_rq_ready(struct shca_qp *qp);
int shca_rq_fill(struct shca_qp *qp, const struct shca_sgl *from);
int shca_rq_complete(struct shca_qp *qp, const struct shca_cqe *fields,
		     bool solicited);
void shca_rq_refuse(struct shca_qp *qp, enum shca_wc_status status);

unsigned long shca_rnr_delay(u8 encoded);
unsigned long shca_ack_delay(u8 encoded);

#endif /* SHCA_ENGINE_H */
