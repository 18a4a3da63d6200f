/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The seam between the two layers of the provider. shim.c, in C, owns
 * everything that needs rdma-core's private driver.h: commands, object
 * life, mmap(). The core, in C++, owns what happens in the rings and sees only
 * public verbs and the uapi header. Nothing else crosses.
 */
#ifndef SHCA_CORE_H
#define SHCA_CORE_H

#include <infiniband/verbs.h>
#include <rdma/sample_hca-abi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shca_qp; /* the core's part of a queue pair */
struct shca_cq; /* the core's part of a completion queue */

/*
 * The verbs hand the provider a struct ibv_qp or ibv_cq. One of these stands
 * directly before each that the shim allocates and leads to the core's part.
 */
struct shca_qp_link {
	struct shca_qp *core;
};

struct shca_cq_link {
	struct shca_cq *core;
};

/* A mapped ring. entries is 0 for a queue that does not exist. */
struct shca_ring_map {
	void *base;
	uint32_t length;  /* bytes mapped */
	uint32_t entries; /* a power of two */
	uint32_t stride;  /* bytes from one entry to the next */
};

/*
 * Whether entries of payload_size bytes behind a header of header_size fit the
 * ring that the driver describes, and the ring its mapping.
 */
bool shca_ring_is_sound(const struct shca_ring_map *map, size_t header_size, size_t payload_size);

/* How the core tells the driver to look at a ring. Each returns an errno. */
struct shca_doorbells {
	int (*send)(struct ibv_qp *qp);
	int (*recv)(struct ibv_qp *qp);
};

struct shca_qp_config {
	struct ibv_qp *qp; /* read for its state; must outlive the core's part */
	const struct shca_doorbells *doorbells;
	struct shca_ring_map sq;
	struct shca_ring_map rq;
	struct ibv_qp_cap cap; /* as granted, not as asked for */
	uint64_t device_caps;  /* enum shca_caps */
	bool sq_sig_all;
};

/* Returns NULL and sets errno: ENOMEM, or EPROTO when a ring is not sound. */
struct shca_qp *shca_core_qp_create(const struct shca_qp_config *config);
void shca_core_qp_destroy(struct shca_qp *qp);

int shca_core_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int shca_core_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int shca_core_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/*
 * ibv_qp_ex. check_send_ops() is asked before the queue pair exists: 0 or
 * EOPNOTSUPP. set_send_ops() fills in the operations and marks the object so
 * that ibv_qp_to_qp_ex() accepts it; SHCA_QP_EX_TAIL bytes behind struct
 * ibv_qp_ex are its to write.
 */
#define SHCA_QP_EX_TAIL (2 * sizeof(void *))

int shca_core_check_send_ops(uint64_t send_ops_flags, enum ibv_qp_type type, uint64_t device_caps);
void shca_core_set_send_ops(struct ibv_qp_ex *qp, uint64_t send_ops_flags);

/* Returns NULL and sets errno, as shca_core_qp_create(). */
struct shca_cq *shca_core_cq_create(const struct shca_ring_map *map, bool single_threaded);
void shca_core_cq_destroy(struct shca_cq *cq);

int shca_core_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);

/*
 * Takes the completions of a queue pair that is no more, or starts again from
 * RESET, out of the queue: nobody expects them, and its number may come back. Not
 * between ibv_start_poll() and ibv_end_poll() of the same thread.
 */
void shca_core_cq_forget(struct ibv_cq *cq, uint32_t qp_num);

/* ibv_cq_ex. check_wc_flags() is asked before the queue exists: 0 or EOPNOTSUPP. */
int shca_core_check_wc_flags(uint64_t wc_flags);
void shca_core_set_poll_ops(struct ibv_cq_ex *cq, uint64_t wc_flags);

/* What shca_query_stale() needs of the system; each as the call of its name. */
struct shca_gift_calls {
	int (*open)(const char *path, int flags, ...);
	int (*ioctl)(int fd, unsigned long request, ...);
	int (*close)(int fd);
};

/* shca_query_stale() by other calls than the system's own. */
int shca_core_query_stale(const struct shca_gift_calls *calls, const void *addr, size_t length,
			  uint64_t *bitmap, uint64_t *registered, uint64_t *stale);

#ifdef __cplusplus
}
#endif

#endif /* SHCA_CORE_H */
