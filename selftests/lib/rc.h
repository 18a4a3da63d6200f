/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Verbs for tests: finds the device, makes and connects RC queue pairs within a
 * process and between processes, posts and polls. Failures of the set-up end
 * the process; what a test is about is left to the test to check.
 */
#ifndef SELFTESTS_RC_H
#define SELFTESTS_RC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#include "test.h"

/* Environment variable that names the device to test, whatever its type. */
#define DEV_ENV		"SHCA_DEV"

struct dev {
	struct ibv_context *ctx;
	struct ibv_device_attr attr;
	union ibv_gid gid;
	int gid_index;
	enum ibv_mtu mtu;
};

/* For test_main(): why there is no device to test, or NULL. */
const char *dev_ready(void);
/* The same, for a program whose cases choose what libibverbs loads. */
const char *dev_present(void);
/* The name of the device to test. */
const char *dev_name(void);
/* True if it is a sample HCA, and not one given by name for comparison. */
bool dev_is_sample(void);
bool dev_exists(const char *name);
/* Opens the device to test, or one by name. */
struct dev *dev_open(void);
struct dev *dev_open_name(const char *name);

/* Zero means the default, which is what the comment says. */
struct qp_param {
	uint32_t send_wr, recv_wr;	/* 64 */
	uint32_t sge;			/* 4, each way */
	uint32_t inline_data;		/* none */
	uint32_t cqe;			/* room for both queues */
	unsigned int access;		/* QP_REMOTE_ALL */
	uint64_t send_ops;		/* IBV_QP_EX_WITH_*; none: ibv_create_qp */
	struct ibv_pd *pd;		/* a new one */
	bool sig_all;
	bool channel;			/* completion channel for both CQs */
	/* As in struct ibv_qp_attr. A negative value means 0. */
	int timeout;			/* 14: 67 ms; 19: 2 s where there are packets */
	int retry_cnt;			/* 7 */
	int rnr_retry;			/* 7: for ever */
	int min_rnr_timer;		/* 12: 0.64 ms */
};

#define QP_REMOTE_ALL	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
#define MR_ALL		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND)

/* One side of a connection. */
struct rc {
	struct dev *dev;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;		/* with send_ops */
	struct ibv_qp_cap cap;		/* as granted */
	struct qp_param param;
};

/* What a side tells the other, through memory or a socket. */
struct rc_addr {
	union ibv_gid gid;
	uint32_t qpn, psn;
};

/* @param may be NULL for all defaults. */
struct rc *rc_create(struct dev *dev, const struct qp_param *param);
void rc_destroy(struct rc *rc);
struct rc_addr rc_addr(const struct rc *rc);

/* The attributes and the mask that bring a QP to a state, by its parameters. */
int rc_attr(const struct rc *rc, enum ibv_qp_state to,
	    const struct rc_addr *peer, struct ibv_qp_attr *attr);
/* ibv_modify_qp() with rc_attr(); returns what that returns. */
int rc_modify(struct rc *rc, enum ibv_qp_state to, const struct rc_addr *peer);
/* From RESET to RTS. */
void rc_connect(struct rc *rc, const struct rc_addr *peer);
/* Two sides within this process. */
void rc_pair(struct rc *a, struct rc *b);
/* Swaps addresses and more over a socket and connects. */
void rc_connect_socket(struct rc *rc, int sock);
enum ibv_qp_state rc_state(struct rc *rc);

/* Sends and receives whole records on a socket pair; a dead peer is a failure. */
void sock_put(int sock, const void *record, size_t length);
void sock_get(int sock, void *record, size_t length);
/* Each side stops until the other has come as far. */
void sock_meet(int sock);

struct ibv_mr *mr_reg(struct ibv_pd *pd, void *addr, size_t length,
		      unsigned int access);
/* ibv_rereg_mr(): 0 or the error number, whatever the library makes of it. */
int mr_rereg(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
	     unsigned int access);
/* Page-aligned anonymous memory of its own mapping, registered MR_ALL. */
struct ibv_mr *mr_new(struct ibv_pd *pd, size_t length);

/* Waits @ms for a completion; false when none came. */
bool cq_wait(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms);
/* The next completion, which must come soon. */
struct ibv_wc cq_next(struct ibv_cq *cq);
/* True if nothing completes for @ms. */
bool cq_quiet(struct ibv_cq *cq, unsigned int ms);

bool test_wc(const char *file, int line, struct ibv_wc wc, uint64_t wr_id,
	     enum ibv_wc_status status);
#define CHECK_WC(wc, wr_id, status) \
	test_wc(__FILE__, __LINE__, wc, wr_id, status)
#define MUST_WC(wc, wr_id, status) do {					\
	if (!CHECK_WC(wc, wr_id, status))				\
		test_exit();						\
} while (0)

bool test_status(const char *file, int line, const char *what,
		 enum ibv_wc_status expected, enum ibv_wc_status got);
#define CHECK_STATUS(expected, got) \
	test_status(__FILE__, __LINE__, #got, expected, got)
#define MUST_STATUS(expected, got) do {					\
	if (!CHECK_STATUS(expected, got))				\
		test_exit();						\
} while (0)

#define SGE(mr_, addr_, length_) ((struct ibv_sge){			\
	.addr = (uintptr_t)(addr_), .length = (length_), .lkey = (mr_)->lkey })

/* Posts one receive of at most one SGE; mr may be NULL for none. */
void post_recv(struct rc *rc, uint64_t wr_id, struct ibv_mr *mr, void *addr,
	       uint32_t length);
/* Posts one signaled request, which must be accepted. */
void post_send(struct rc *rc, struct ibv_send_wr *wr);
/* A request with one SGE, or none when @length is 0. Signaled. */
void post_simple(struct rc *rc, enum ibv_wr_opcode opcode, uint64_t wr_id,
		 struct ibv_mr *mr, void *addr, uint32_t length,
		 uint64_t remote_addr, uint32_t rkey);
/* The same, and the status of its completion. */
enum ibv_wc_status do_rdma(struct rc *rc, enum ibv_wr_opcode opcode,
			   struct ibv_mr *mr, void *addr, uint32_t length,
			   uint64_t remote_addr, uint32_t rkey);

/* A type 2 window; its present key is in rkey, not in mw->rkey. */
struct window {
	struct ibv_mw *mw;
	uint32_t rkey;
};

struct window mw_new(struct ibv_pd *pd);
/* Posts the bind under the key after the present one; returns what that returns. */
int mw_post_bind(struct rc *rc, struct window *w, struct ibv_mr *mr, void *addr,
		 uint64_t length, unsigned int access);
/* Binds and returns the status of the completion. */
enum ibv_wc_status mw_bind(struct rc *rc, struct window *w, struct ibv_mr *mr,
			   void *addr, uint64_t length, unsigned int access);
/* LOCAL_INV by the window's key; the status of its completion. */
enum ibv_wc_status mw_local_inv(struct rc *rc, uint32_t rkey);

/* Waits for an asynchronous event, acknowledges it; -1 when none came. */
int async_wait(struct ibv_context *ctx, unsigned int ms);

#endif /* SELFTESTS_RC_H */
