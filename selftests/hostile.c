// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Rings are memory that a process may fill with anything. Here it does: entries
 * and indexes that no provider writes, wild mappings. What changes while the engine
 * reads is in storm.c.
 * The kernel must answer with an error of that queue pair alone. The verdict on
 * the kernel log is the runner's.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/raw.h"

#define PAGE	4096UL
#define MAGIC	0x5ea7c4ed0ddba11ULL

static void check_untouched(struct stage *s)
{
	unsigned char expected[4 * PAGE];

	memset(expected, STAGE_THERE, sizeof(expected));
	CHECK_BYTES(expected, s->there->addr, sizeof(expected));
	memset(expected, STAGE_HERE, sizeof(expected));
	CHECK_BYTES(expected, s->here->addr, sizeof(expected));
}

/* One thing that is wrong with an entry that is right otherwise. */
struct corruption {
	const char *name;
	enum ibv_wr_opcode opcode;
	size_t offset;
	size_t size;
	uint64_t value;
	enum ibv_wc_status status;
};

#define WQE(field)	offsetof(struct shca_send_wqe, field),			\
			sizeof(((struct shca_send_wqe *)0)->field)
#define SGE_AT(field)	SHCA_SEND_WQE_SIZE + offsetof(struct shca_sge, field),	\
			sizeof(((struct shca_sge *)0)->field)
#define QP_OP		IBV_WC_LOC_QP_OP_ERR
#define PROT		IBV_WC_LOC_PROT_ERR
#define WRITE		IBV_WR_RDMA_WRITE

static const struct corruption send_corruptions[] = {
	{ "opcode one too high", WRITE, WQE(opcode), SHCA_WR_LOCAL_INV + 1, QP_OP },
	{ "opcode of all ones", WRITE, WQE(opcode), ~0U, QP_OP },
	{ "opcode negative", WRITE, WQE(opcode), 0x80000000, QP_OP },
	{ "unknown flag", WRITE, WQE(flags), SHCA_SEND_SIGNALED | 1 << 4, QP_OP },
	{ "flags of all ones", WRITE, WQE(flags), ~0U, QP_OP },
	{ "num_sge of all ones", WRITE, WQE(num_sge), ~0U, QP_OP },
	{ "num_sge 0x10000001", WRITE, WQE(num_sge), 0x10000001, QP_OP },
	{ "num_sge 1000", WRITE, WQE(num_sge), 1000, QP_OP },
	{ "reserved word not 0", WRITE, WQE(reserved), 1, QP_OP },
	{ "SGE address of all ones", WRITE, SGE_AT(addr), ~0ULL, PROT },
	{ "SGE address in the kernel", WRITE, SGE_AT(addr), 0xffffffff81000000, PROT },
	{ "SGE length of all ones", WRITE, SGE_AT(length), ~0U, PROT },
	{ "SGE length 2 GiB", WRITE, SGE_AT(length), 0x80000000, PROT },
	{ "lkey of all ones", WRITE, SGE_AT(lkey), ~0U, PROT },
	{ "lkey 0", WRITE, SGE_AT(lkey), 0, PROT },
	{ "rkey of all ones", WRITE, WQE(rdma.rkey), ~0U, IBV_WC_REM_ACCESS_ERR },
	{ "remote address of all ones", WRITE, WQE(rdma.remote_addr), ~0ULL,
	  IBV_WC_REM_ACCESS_ERR },
	{ "remote address in the kernel", WRITE, WQE(rdma.remote_addr),
	  0xffffffff81000000, IBV_WC_REM_ACCESS_ERR },
	{ "RDMA READ made inline", IBV_WR_RDMA_READ, WQE(flags),
	  SHCA_SEND_SIGNALED | SHCA_SEND_INLINE, QP_OP },
	{ "RDMA READ of num_sge 1000", IBV_WR_RDMA_READ, WQE(num_sge), 1000, QP_OP },
	{ "RDMA READ into an lkey of all ones", IBV_WR_RDMA_READ, SGE_AT(lkey), ~0U,
	  PROT },
};

static void poke(void *entry, const struct corruption *k)
{
	memcpy((char *)entry + k->offset, &k->value, k->size);
}

static void bad_send_entries(const struct test_case *c)
{
	struct stage s = stage_new();

	for (size_t i = 0; i < ARRAY_LEN(send_corruptions); i++) {
		const struct corruption *k = &send_corruptions[i];
		struct ibv_sge sge = SGE(s.here, s.here->addr, 64);
		struct ibv_send_wr wr = {
			.wr_id = MAGIC + i, .opcode = k->opcode, .sg_list = &sge,
			.num_sge = 1,
			.wr.rdma = { (uintptr_t)s.there->addr, s.there->rkey },
		};
		struct ibv_wc wc;

		test_context("%s", k->name);
		post_in_sqd(&s, &wr);
		poke(find_entry(MAGIC + i), k);
		let_go(&s);
		wc = cq_next(s.p.peer->scq);
		CHECK_WC(wc, MAGIC + i, k->status);
		CHECK_EQ(IBV_QPS_ERR, rc_state(s.p.peer));
		check_untouched(&s);
		check_bystander(&s, i);
		stage_again(&s);
	}
}

static void bad_inline(const struct test_case *c)
{
	static const uint32_t lengths[] = { 65536, 0x7fffffff, 0x80000000, ~0U };
	struct stage s = stage_new();
	char data[64] = "inline";

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct ibv_sge sge = { (uintptr_t)data, sizeof(data), 0 };
		struct ibv_send_wr wr = {
			.wr_id = MAGIC + i, .opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge, .num_sge = 1,
			.send_flags = IBV_SEND_INLINE,
			.wr.rdma = { (uintptr_t)s.there->addr, s.there->rkey },
		};
		const struct corruption k = { "", WRITE, WQE(inline_length),
					      lengths[i], QP_OP };

		test_context("inline length %u", lengths[i]);
		post_in_sqd(&s, &wr);
		poke(find_entry(MAGIC + i), &k);
		let_go(&s);
		CHECK_WC(cq_next(s.p.peer->scq), MAGIC + i, QP_OP);
		check_untouched(&s);
		check_bystander(&s, i);
		stage_again(&s);
	}
}

static void bad_recv_entries(const struct test_case *c)
{
	static const struct corruption bad[] = {
		{ "num_sge of all ones", 0, offsetof(struct shca_recv_wqe, num_sge), 4,
		  ~0U, QP_OP },
		{ "num_sge 1000", 0, offsetof(struct shca_recv_wqe, num_sge), 4, 1000,
		  QP_OP },
		{ "reserved word not 0", 0, offsetof(struct shca_recv_wqe, reserved), 4,
		  1, QP_OP },
		{ "SGE address in the kernel", 0,
		  SHCA_RECV_WQE_SIZE + offsetof(struct shca_sge, addr), 8,
		  0xffffffff81000000, PROT },
		{ "lkey of all ones", 0,
		  SHCA_RECV_WQE_SIZE + offsetof(struct shca_sge, lkey), 4, ~0U, PROT },
		{ "SGE length of all ones", 0,
		  SHCA_RECV_WQE_SIZE + offsetof(struct shca_sge, length), 4, ~0U, PROT },
	};
	struct stage s = stage_new();

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		test_context("%s", bad[i].name);
		post_recv(s.p.owner, MAGIC + i, s.there, s.there->addr, PAGE);
		poke(find_entry(MAGIC + i), &bad[i]);
		/* Long enough to use all of what the entry says there is. */
		post_simple(s.p.peer, IBV_WR_SEND, 1, s.here, s.here->addr, 4 * PAGE,
			    0, 0);
		CHECK_WC(cq_next(s.p.owner->rcq), MAGIC + i, bad[i].status);
		CHECK_WC(cq_next(s.p.peer->scq), 1, IBV_WC_REM_OP_ERR);
		check_untouched(&s);
		check_bystander(&s, i);
		stage_again(&s);
	}
}

static void bad_binds(const struct test_case *c)
{
	static const struct corruption bad[] = {
		{ "unknown access", 0, WQE(bind.access), ~0U, QP_OP },
		{ "region's key of all ones", 0, WQE(bind.mr_lkey), ~0U,
		  IBV_WC_MW_BIND_ERR },
		{ "window's key of all ones", 0, WQE(bind.mw_rkey), ~0U,
		  IBV_WC_MW_BIND_ERR },
		{ "new key of another window", 0, WQE(bind.new_rkey), 0x00abcd01,
		  IBV_WC_MW_BIND_ERR },
		{ "address of all ones", 0, WQE(bind.addr), ~0ULL,
		  IBV_WC_MW_BIND_ERR },
		{ "length of all ones", 0, WQE(bind.length), ~0ULL,
		  IBV_WC_MW_BIND_ERR },
	};
	struct stage s = stage_new();

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct window w = mw_new(s.p.peer->pd);
		struct ibv_send_wr wr = {
			.wr_id = MAGIC + i, .opcode = IBV_WR_BIND_MW,
			.bind_mw = { w.mw, ibv_inc_rkey(w.rkey), { s.here,
				(uintptr_t)s.here->addr, PAGE,
				IBV_ACCESS_REMOTE_READ } },
		};
		struct ibv_wc wc;

		test_context("%s", bad[i].name);
		post_in_sqd(&s, &wr);
		poke(find_entry(MAGIC + i), &bad[i]);
		let_go(&s);
		wc = cq_next(s.p.peer->scq);
		CHECK_EQ(MAGIC + i, wc.wr_id);
		/* An access that no window has may be seen by either check. */
		CHECK(wc.status == bad[i].status || (bad[i].status == QP_OP &&
						     wc.status == IBV_WC_MW_BIND_ERR));
		MUST_ERR(0, ibv_dealloc_mw(w.mw));
		check_bystander(&s, i);
		stage_again(&s);
	}
}

/* Indexes that cannot be: more ahead than the ring is long. */
static void producer_ahead(const struct test_case *c)
{
	static const uint32_t jumps[] = { 4097, 0x10000, 0x7fffffff, 0x80000000,
					  0xfffffff0 };
	struct stage s = stage_new();

	for (size_t i = 0; i < ARRAY_LEN(jumps); i++) {
		struct ibv_send_wr wr = { .wr_id = MAGIC + i, .opcode = IBV_WR_SEND };
		struct shca_ring_hdr *hdr;

		test_context("%u ahead", jumps[i]);
		post_in_sqd(&s, &wr);
		hdr = ring_of(find_entry(MAGIC + i));
		hdr->producer += jumps[i];
		let_go(&s);
		doorbell(s.p.peer);
		CHECK_EQ(IBV_EVENT_QP_FATAL, async_wait(s.p.dev->ctx, 20000));
		for (int j = 0; j < 1000 && rc_state(s.p.peer) != IBV_QPS_ERR; j++)
			test_sleep_ms(2);
		CHECK_EQ(IBV_QPS_ERR, rc_state(s.p.peer));
		check_bystander(&s, i);
		/* A provider whose index the kernel disowned is not used again. */
		MUST_ERR(0, ibv_destroy_qp(s.p.peer->qp));
		MUST_ERR(0, ibv_destroy_qp(s.p.owner->qp));
		s.p = pair_new(&s.p.peer->param);
		s.here = mr_new(s.p.peer->pd, 4 * PAGE);
		s.there = mr_new(s.p.owner->pd, 4 * PAGE);
	}
}

/* The driver's own index is the driver's: what is written there is not believed. */
static void consumer_overwritten(const struct test_case *c)
{
	struct stage s = stage_new();

	for (uint32_t i = 0; i < 50; i++) {
		struct ibv_sge sge = SGE(s.here, s.here->addr, 64);
		struct ibv_send_wr wr = {
			.wr_id = MAGIC + i, .opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge, .num_sge = 1,
			.wr.rdma = { (uintptr_t)s.there->addr, s.there->rkey },
		};

		test_context("%u", i);
		post_in_sqd(&s, &wr);
		ring_of(find_entry(MAGIC + i))->consumer = i * 0x9e3779b9;
		let_go(&s);
		MUST_WC(cq_next(s.p.peer->scq), MAGIC + i, IBV_WC_SUCCESS);
	}
	check_bystander(&s, 1);
}

/* Offsets that name no ring, or more or otherwise than it is. */
static void wild_mmaps(const struct test_case *c)
{
	struct stage s = stage_new();
	int fd = s.p.dev->ctx->cmd_fd;
	uint64_t random = 4;

	for (int i = 0; i < 2000; i++) {
		off_t offset = (off_t)(nasty(&random) & 0xfffff) * PAGE;
		size_t length = (1 + nasty(&random) % 64) * PAGE;
		int prot = test_random(&random) & 7;
		int flags = test_random(&random) & 1 ? MAP_SHARED : MAP_PRIVATE;
		void *p = mmap(NULL, length, prot, flags, fd, offset);

		/* What can be mapped is this process's own ring, and no trap. */
		if (p != MAP_FAILED)
			munmap(p, length);
	}
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 1L << 40) == MAP_FAILED);
	CHECK(mmap(NULL, 1UL << 30, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	check_bystander(&s, 3);
	MUST_STATUS(IBV_WC_SUCCESS,
		    do_rdma(s.p.peer, IBV_WR_RDMA_WRITE, s.here, s.here->addr, 64,
			    (uintptr_t)s.there->addr, s.there->rkey));
}

/* The rings of a destroyed queue pair are memory as long as they are mapped. */
static void outlived_rings(const struct test_case *c)
{
	struct stage s = stage_new();
	struct ring all[MAX_RINGS], copy[MAX_RINGS];
	int n = rings(all), fd = s.p.dev->ctx->cmd_fd, mapped = 0;

	/* A second mapping of the same, which the provider knows nothing of. */
	for (int i = 0; i < n; i++) {
		copy[i] = all[i];
		copy[i].start = mmap(NULL, all[i].length, PROT_READ | PROT_WRITE,
				     MAP_SHARED, fd, all[i].offset);
		mapped += copy[i].start != MAP_FAILED;
	}
	CHECK_BETWEEN(1, mapped, n);
	MUST_ERR(0, ibv_destroy_qp(s.p.peer->qp));
	MUST_ERR(0, ibv_destroy_qp(s.p.owner->qp));
	for (int i = 0; i < n; i++) {
		if (copy[i].start == MAP_FAILED)
			continue;
		memset(copy[i].start, 0xff, SHCA_RING_ENTRIES_OFFSET);
		munmap(copy[i].start, copy[i].length);
	}
	s.bystander = pair_new(NULL);
	s.calm = mr_new(s.bystander.peer->pd, PAGE);
	s.calm_there = mr_new(s.bystander.owner->pd, PAGE);
	check_bystander(&s, 4);
}

static const struct test_case cases[] = {
	{ "a send entry that says nonsense fails alone and touches nothing",
	  bad_send_entries },
	{ "inline data longer than its entry is refused", bad_inline },
	{ "a receive entry that says nonsense fails alone and touches nothing",
	  bad_recv_entries },
	{ "a bind entry that says nonsense binds nothing", bad_binds },
	{ "a producer index out of range is fatal to its queue pair only",
	  producer_ahead },
	{ "the driver does not believe what is written to its own index",
	  consumer_overwritten },
	{ "mmap of what is no ring is refused", wild_mmaps },
	{ "the rings of a destroyed queue pair may stay mapped", outlived_rings },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
