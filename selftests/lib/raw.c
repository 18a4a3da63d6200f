// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns the way to the rings past the provider; see raw.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "raw.h"

#define PAGE	4096UL

int rings(struct ring *out)
{
	char line[512];
	int n = 0;
	FILE *f;

	f = fopen("/proc/self/maps", "r");
	MUST(f);
	while (fgets(line, sizeof(line), f) && n < MAX_RINGS) {
		unsigned long from, to, offset;

		if (strstr(line, "uverbs") &&
		    sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) == 3)
			out[n++] = (struct ring){ (void *)from, to - from, offset };
	}
	fclose(f);
	return n;
}

void *find_entry(uint64_t wr_id)
{
	struct ring all[MAX_RINGS];
	int n = rings(all);

	for (int i = 0; i < n; i++)
		for (size_t at = SHCA_RING_ENTRIES_OFFSET;
		     at + SHCA_RECV_WQE_SIZE <= all[i].length; at += 16)
			if (!memcmp(all[i].start + at, &wr_id, sizeof(wr_id)))
				return all[i].start + at;
	test_fail(__FILE__, __LINE__, "no entry with wr_id 0x%llx in any ring",
		  (unsigned long long)wr_id);
	test_exit();
}

struct shca_ring_hdr *ring_of(void *entry)
{
	struct ring all[MAX_RINGS];
	int n = rings(all);

	for (int i = 0; i < n; i++)
		if ((unsigned char *)entry >= all[i].start &&
		    (unsigned char *)entry < all[i].start + all[i].length)
			return (struct shca_ring_hdr *)all[i].start;
	MUST(false);
	return NULL;
}

void doorbell(struct rc *rc)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send post;
	} cmd = {
		.hdr = { IB_USER_VERBS_CMD_POST_SEND, sizeof(cmd) / 4,
			 sizeof(struct ib_uverbs_post_send_resp) / 4 },
		.post = { .qp_handle = rc->qp->handle,
			  .wqe_size = sizeof(struct ib_uverbs_send_wr) },
	};
	struct ib_uverbs_post_send_resp resp;

	cmd.post.response = (uintptr_t)&resp;
	if (write(rc->qp->context->cmd_fd, &cmd, sizeof(cmd)) < 0)
		return;
}

struct stage stage_new(void)
{
	static const struct qp_param param = { .timeout = 10, .retry_cnt = 2,
					       .inline_data = 64 };
	struct stage s;

	if (!dev_is_sample())
		test_skip("%s is not a sample HCA: its rings are its own",
			  dev_name());
	s.p = pair_new(&param);
	s.bystander = pair_new(NULL);
	s.here = mr_new(s.p.peer->pd, 4 * PAGE);
	s.there = mr_new(s.p.owner->pd, 4 * PAGE);
	s.calm = mr_new(s.bystander.peer->pd, PAGE);
	s.calm_there = mr_new(s.bystander.owner->pd, PAGE);
	memset(s.here->addr, STAGE_HERE, 4 * PAGE);
	memset(s.there->addr, STAGE_THERE, 4 * PAGE);
	return s;
}

void check_bystander(struct stage *s, unsigned int seed)
{
	test_fill(s->calm->addr, PAGE, seed);
	MUST_STATUS(IBV_WC_SUCCESS,
		    do_rdma(s->bystander.peer, IBV_WR_RDMA_WRITE, s->calm,
			    s->calm->addr, PAGE, (uintptr_t)s->calm_there->addr,
			    s->calm_there->rkey));
	CHECK_BYTES(s->calm->addr, s->calm_there->addr, PAGE);
}

void post_in_sqd(struct stage *s, struct ibv_send_wr *wr)
{
	MUST_ERR(0, rc_modify(s->p.peer, IBV_QPS_SQD, NULL));
	post_send(s->p.peer, wr);
}

void let_go(struct stage *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	MUST_ERR(0, ibv_modify_qp(s->p.peer->qp, &attr, IBV_QP_STATE));
}

void stage_again(struct stage *s)
{
	MUST_ERR(0, rc_modify(s->p.peer, IBV_QPS_RESET, NULL));
	MUST_ERR(0, rc_modify(s->p.owner, IBV_QPS_RESET, NULL));
	while (async_wait(s->p.dev->ctx, 0) >= 0)
		;
	rc_pair(s->p.peer, s->p.owner);
}

uint32_t nasty(uint64_t *random)
{
	static const uint32_t favourites[] = {
		0, 1, 2, 3, 7, 8, 63, 64, 65, 0xffff, 0x10000, 0x7fffffff, 0x80000000,
		0xfffffffe, 0xffffffff, PAGE, MIB,
	};
	uint32_t r = test_random(random);

	return r & 1 ? favourites[(r >> 8) % ARRAY_LEN(favourites)] :
	       test_random(random);
}
