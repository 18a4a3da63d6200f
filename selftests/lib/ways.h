/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The ways to post a send with invalidate, behind one function: what is posted is
 * said once, as a list of struct ibv_send_wr, and goes in by the way that a test
 * is about. Checks nothing of what comes of it.
 */
#ifndef SELFTESTS_WAYS_H
#define SELFTESTS_WAYS_H

#include "rc.h"

enum way {
	BY_OPCODE,	/* ibv_post_send, IBV_WR_SEND_WITH_INV */
	BY_FLAG,	/* ibv_post_send, IBV_WR_SEND with IBV_SEND_INVALIDATE */
	BY_QP_EX,	/* ibv_wr_send_inv */
	BY_COMMAND,	/* work requests in the uverbs command POST_SEND */
	WAYS,
};

extern const char *const way_names[WAYS];

/* What a queue pair needs that posts this way, added to @param. */
struct qp_param way_param(enum way by, struct qp_param param);

/*
 * Posts a list in which IBV_WR_SEND_WITH_INV stands for all ways; the other
 * opcodes may be sends and RDMA. Returns what the way returns. *bad is the
 * offender, or NULL where the way names none (BY_QP_EX).
 *
 * The provider does not see what goes in BY_COMMAND: it must not post to the
 * same send queue afterwards.
 */
int way_post(struct rc *rc, enum way by, struct ibv_send_wr *wr,
	     struct ibv_send_wr **bad);
/* The same for one signaled request, which must be accepted. */
void way_send(struct rc *rc, enum way by, struct ibv_send_wr *wr);

/* BY_COMMAND with opcodes and flags exactly as they are. */
int post_by_command(struct rc *rc, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad);

#endif /* SELFTESTS_WAYS_H */
