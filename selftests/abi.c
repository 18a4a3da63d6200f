// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Commands to the driver without the provider: what a provider of another time
 * may ask, what nobody may, and work requests that come as commands.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "lib/proc.h"
#include "lib/raw.h"
#include "lib/ways.h"

#define PAGE	4096UL
#define MAX	1024

/* A command as written to the device: the core's part and the driver's. */
struct command {
	uint32_t number;
	size_t core, driver;		/* bytes of each part of the request */
	size_t core_resp, driver_resp;	/* and of the room for the response */
	union {
		unsigned char in[MAX];
		uint64_t words[MAX / 8];
	};
	union {
		unsigned char out[MAX];
		uint64_t out_words[MAX / 8];
	};
};

static void *driver_part(struct command *cmd)
{
	return cmd->in + cmd->core;
}

/* Returns 0 or an error number. */
static int send_command(int fd, struct command *cmd)
{
	unsigned char buf[sizeof(struct ib_uverbs_cmd_hdr) + MAX];
	size_t length = cmd->core + cmd->driver;
	struct ib_uverbs_cmd_hdr hdr = {
		.command = cmd->number,
		.in_words = (sizeof(hdr) + length) / 4,
		.out_words = (cmd->core_resp + cmd->driver_resp) / 4,
	};
	ssize_t n;

	cmd->words[0] = (uintptr_t)cmd->out;
	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), cmd->in, length);
	n = write(fd, buf, sizeof(hdr) + length);
	return n < 0 ? errno : 0;
}

/* The device's file, fresh, without a context. */
static int open_file(void)
{
	char path[64], name[64], dev[64] = "";
	int fd = -1;

	for (int i = 0; i < 32 && fd < 0; i++) {
		FILE *f;

		snprintf(path, sizeof(path),
			 "/sys/class/infiniband_verbs/uverbs%d/ibdev", i);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fscanf(f, "%63s", dev) == 1 && !strcmp(dev, dev_name())) {
			snprintf(name, sizeof(name), "/dev/infiniband/uverbs%d", i);
			fd = open(name, O_RDWR | O_CLOEXEC);
			MUST(fd >= 0);
		}
		fclose(f);
	}
	MUST(fd >= 0);
	return fd;
}

static struct command get_context(void)
{
	return (struct command){
		.number = IB_USER_VERBS_CMD_GET_CONTEXT,
		.core = sizeof(struct ib_uverbs_get_context),
		.driver = sizeof(struct shca_alloc_ucontext_req),
		.core_resp = sizeof(struct ib_uverbs_get_context_resp),
		.driver_resp = sizeof(struct shca_alloc_ucontext_resp),
	};
}

static struct command create_cq(void)
{
	struct command cmd = {
		.number = IB_USER_VERBS_CMD_CREATE_CQ,
		.core = sizeof(struct ib_uverbs_create_cq),
		.driver = sizeof(struct shca_create_cq_req),
		.core_resp = sizeof(struct ib_uverbs_create_cq_resp),
		.driver_resp = sizeof(struct shca_create_cq_resp),
	};
	struct ib_uverbs_create_cq core = { .cqe = 16, .comp_channel = -1 };

	memcpy(cmd.in, &core, sizeof(core));
	return cmd;
}

static struct command create_qp(struct rc *rc)
{
	struct command cmd = {
		.number = IB_USER_VERBS_CMD_CREATE_QP,
		.core = sizeof(struct ib_uverbs_create_qp),
		.driver = sizeof(struct shca_create_qp_req),
		.core_resp = sizeof(struct ib_uverbs_create_qp_resp),
		.driver_resp = sizeof(struct shca_create_qp_resp),
	};
	struct ib_uverbs_create_qp core = {
		.pd_handle = rc->pd->handle, .send_cq_handle = rc->scq->handle,
		.recv_cq_handle = rc->rcq->handle, .max_send_wr = 8,
		.max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1,
		.qp_type = IBV_QPT_RC,
	};

	memcpy(cmd.in, &core, sizeof(core));
	return cmd;
}

/* What every command with a driver's part has in common. */
static void versions_of(int fd, const struct command *good, bool repeatable)
{
	struct command cmd;

	test_context("comp_mask bit 0");
	cmd = *good;
	*(uint64_t *)driver_part(&cmd) = 1;
	CHECK_ERR(EOPNOTSUPP, send_command(fd, &cmd));
	test_context("comp_mask bit 63");
	cmd = *good;
	*(uint64_t *)driver_part(&cmd) = 1ULL << 63;
	CHECK_ERR(EOPNOTSUPP, send_command(fd, &cmd));
	test_context("a longer request that asks for nothing more");
	cmd = *good;
	cmd.driver += 8;
	if (repeatable)
		CHECK_ERR(0, send_command(fd, &cmd));
	test_context("a longer request that asks for more");
	cmd = *good;
	((uint64_t *)driver_part(&cmd))[cmd.driver / 8] = 1;
	cmd.driver += 8;
	CHECK_ERR(EOPNOTSUPP, send_command(fd, &cmd));
	test_context("no driver's part");
	cmd = *good;
	cmd.driver = 0;
	CHECK_ERR(EINVAL, send_command(fd, &cmd));
	test_context("no room for the driver's response");
	cmd = *good;
	cmd.driver_resp = 0;
	CHECK_ERR(EINVAL, send_command(fd, &cmd));
	test_context("as it should be");
	cmd = *good;
	CHECK_ERR(0, send_command(fd, &cmd));
}

static void need_sample(void)
{
	if (!dev_is_sample())
		test_skip("%s is not a sample HCA", dev_name());
}

static void context_versions(const struct test_case *c)
{
	struct shca_alloc_ucontext_resp resp;
	struct command cmd = get_context();
	int fd;

	need_sample();
	fd = open_file();
	versions_of(fd, &cmd, false);
	test_context("twice");
	CHECK_ERR(EINVAL, send_command(fd, &cmd));
	close(fd);

	test_context("a fresh file");
	fd = open_file();
	CHECK_ERR(0, send_command(fd, &cmd));
	memcpy(&resp, cmd.out + cmd.core_resp, sizeof(resp));
	CHECK_EQ(0, resp.comp_mask);
	CHECK_EQ(SHCA_CAP_GIFT | SHCA_CAP_SEND_W_INV, resp.caps);
}

static void cq_versions(const struct test_case *c)
{
	struct command cmd = create_cq();
	struct dev *dev;

	need_sample();
	dev = dev_open();
	versions_of(dev->ctx->cmd_fd, &cmd, true);
}

static void qp_versions(const struct test_case *c)
{
	struct command cmd;
	struct rc *rc;

	need_sample();
	rc = rc_create(dev_open(), NULL);
	cmd = create_qp(rc);
	versions_of(rc->dev->ctx->cmd_fd, &cmd, true);
}

/* Asked past the provider, which would refuse them itself. */
static void qp_types(const struct test_case *c)
{
	struct rc *rc;

	need_sample();
	rc = rc_create(dev_open(), NULL);
	for (int type = 0; type < 256; type++) {
		struct command cmd = create_qp(rc);
		int err;

		((struct ib_uverbs_create_qp *)cmd.in)->qp_type = type;
		test_context("type %d", type);
		err = send_command(rc->dev->ctx->cmd_fd, &cmd);
		if (type == IBV_QPT_RC)
			CHECK_EQ(0, err);
		else if (type == IBV_QPT_UC || type == IBV_QPT_UD)
			CHECK_EQ(EOPNOTSUPP, err);
		else
			CHECK(err);
	}
}

static void ring_geometry(const struct test_case *c)
{
	struct shca_create_qp_resp resp;
	struct command cmd;
	struct rc *rc;

	need_sample();
	rc = rc_create(dev_open(), NULL);
	cmd = create_qp(rc);
	MUST_ERR(0, send_command(rc->dev->ctx->cmd_fd, &cmd));
	memcpy(&resp, cmd.out + cmd.core_resp, sizeof(resp));
	for (int i = 0; i < 2; i++) {
		struct shca_ring_info *r = i ? &resp.rq : &resp.sq;

		test_context(i ? "receive ring" : "send ring");
		CHECK_BETWEEN(8, r->entries, 65536);
		CHECK_EQ(0, r->entries & (r->entries - 1));
		CHECK_EQ(0, r->mmap_offset % PAGE);
		CHECK_EQ(0, r->reserved);
		CHECK(SHCA_RING_ENTRIES_OFFSET + r->entries * r->stride <= r->mmap_length);
	}
	CHECK(resp.sq.mmap_offset != resp.rq.mmap_offset);
	CHECK(resp.sq.stride >= SHCA_SEND_WQE_SIZE + sizeof(struct shca_sge));
	CHECK(resp.rq.stride >= SHCA_RECV_WQE_SIZE + sizeof(struct shca_sge));
}

static void write_by_command(const struct test_case *c)
{
	struct pair p;
	struct ibv_mr *here, *there;
	struct ibv_send_wr *bad;
	struct ibv_sge sge;

	need_sample();
	p = pair_new(NULL);
	here = mr_new(p.peer->pd, PAGE);
	there = mr_new(p.owner->pd, PAGE);
	test_fill(here->addr, PAGE, 6);
	sge = SGE(here, here->addr, PAGE);
	/* More than the ring holds, so that it wraps. */
	for (int i = 0; i < 100; i++) {
		struct ibv_send_wr wr = {
			.wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED, .sg_list = &sge,
			.wr.rdma = { (uintptr_t)there->addr, there->rkey },
		};

		test_context("turn %d", i);
		MUST_ERR(0, post_by_command(p.peer, &wr, &bad));
		MUST_WC(cq_next(p.peer->scq), i, IBV_WC_SUCCESS);
	}
	CHECK_BYTES(here->addr, there->addr, PAGE);
}

static void bad_by_command(const struct test_case *c)
{
	static const uint32_t opcodes[] = { 6, 7, 8, 10, 99, ~0U };
	struct ibv_send_wr *bad;
	struct pair p;

	need_sample();
	p = pair_new(NULL);
	for (size_t i = 0; i < ARRAY_LEN(opcodes); i++) {
		struct ibv_send_wr wr = { .opcode = (enum ibv_wr_opcode)opcodes[i] };

		test_context("opcode %u", opcodes[i]);
		CHECK_ERR(EINVAL, post_by_command(p.peer, &wr, &bad));
		/* The others do not get past the core, which names none. */
		CHECK_EQ(opcodes[i] == IBV_WR_ATOMIC_FETCH_AND_ADD, bad == &wr);
	}
	CHECK(cq_quiet(p.peer->scq, 20));
	CHECK_STATUS(IBV_WC_SUCCESS,
		     do_rdma(p.peer, IBV_WR_RDMA_WRITE, NULL, NULL, 0, 0, 0));
}

/* Numbers, handles and lengths at random: errors, and nothing worse. */
static void random_commands(const struct test_case *c)
{
	uint64_t random = c->n;
	unsigned int accepted = 0;
	struct stage s = stage_new();
	long long pins = pins_now();
	pid_t pid;

	test_note("seed %lu", c->n);
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		struct rc *rc = rc_create(dev_open(), NULL);
		int fd = rc->dev->ctx->cmd_fd;

		for (int i = 0; i < 4000; i++) {
			struct command cmd = {
				.number = test_random(&random) % 45,
				.core = (1 + test_random(&random) % 24) * 8,
				.driver = test_random(&random) % 4 * 8,
				.core_resp = test_random(&random) % 24 * 8,
			};
			size_t words = (cmd.core + cmd.driver) / 4;

			for (size_t w = 2; w < words; w++) {
				uint32_t value = test_random(&random) & 3 ?
					test_random(&random) % 16 : nasty(&random);

				memcpy(cmd.in + w * 4, &value, 4);
			}
			accepted += !send_command(fd, &cmd);
		}
		test_note("%u of 4000 were accepted", accepted);
		CHECK_BETWEEN(1, accepted, 3999);
		test_exit();
	}
	for (int i = 0; i < 20; i++)
		check_bystander(&s, i);
	test_join(pid);
	check_bystander(&s, 1);
	CHECK_EQ(pins, pins_now());
}

static const struct test_case cases[] = {
	{ "GET_CONTEXT refuses what version 1 does not know", context_versions },
	{ "CREATE_CQ refuses what version 1 does not know", cq_versions },
	{ "CREATE_QP refuses what version 1 does not know", qp_versions },
	{ "the rings of a QP are as the ABI says", ring_geometry },
	{ "queue pairs of no type but RC can be made", qp_types },
	{ "RDMA WRITEs that come as commands are carried out", write_by_command },
	{ "opcodes that cannot come as commands are EINVAL", bad_by_command },
	{ "commands at random are errors and leave nothing behind", random_commands,
	  NULL, 11 },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
