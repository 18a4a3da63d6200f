// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Rings that change while the engine reads them: one field of an entry to and
 * fro, and everything at random. The kernel answers with errors of that queue
 * pair alone; the verdict on its log is the runner's.
 */
#include <pthread.h>
#include <string.h>

#include "lib/raw.h"

#define PAGE	4096UL
#define MAGIC	0x5ea7c4ed0ddba11ULL

/* Up to so many turns of a loop, at random. */
static void linger(uint64_t *random, uint32_t most)
{
	for (uint32_t i = test_random(random) & most; i > 0; i--)
		__asm__ volatile("" ::: "memory");
}

/* A field of one entry goes to and fro between right and wrong. */
struct flip {
	volatile uint32_t *word;
	uint32_t right, wrong;
	volatile bool runs, stop;
};

/* Stays for a while, so that the engine may find either. */
static void *flip(void *arg)
{
	struct flip *f = arg;
	uint64_t random = (uintptr_t)f->word;

	for (bool right = false; !f->stop; right = !right) {
		*f->word = right ? f->right : f->wrong;
		f->runs = true;
		linger(&random, 0x3ff);
	}
	*f->word = f->right;
	return NULL;
}

/*
 * A write of 64 bytes whose length, or number of SGEs, changes under the
 * engine: it does what one reading of the entry says, or refuses it.
 */
static void changes_under_way(const struct test_case *c)
{
	static const struct {
		const char *name;
		size_t offset;
		uint32_t right, wrong;
	} fields[] = {
		{ "num_sge", offsetof(struct shca_send_wqe, num_sge), 1, 0x10000000 },
		{ "length", SHCA_SEND_WQE_SIZE + offsetof(struct shca_sge, length), 64,
		  0x40000000 },
		{ "opcode", offsetof(struct shca_send_wqe, opcode),
		  SHCA_WR_RDMA_WRITE, 77 },
	};
	struct stage s = stage_new();
	unsigned int succeeded = 0, failed = 0;

	for (int i = 0; i < 150; i++) {
		struct ibv_sge sge = SGE(s.here, s.here->addr, 64);
		struct ibv_send_wr wr = {
			.wr_id = MAGIC + i, .opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge, .num_sge = 1,
			.wr.rdma = { (uintptr_t)s.there->addr + PAGE, s.there->rkey },
		};
		struct flip f = { .right = fields[i % 3].right,
				  .wrong = fields[i % 3].wrong };
		unsigned char *to = s.there->addr;
		pthread_t thread;
		struct ibv_wc wc;

		test_context("turn %d, %s", i, fields[i % 3].name);
		memset(to, STAGE_THERE, 4 * PAGE);
		post_in_sqd(&s, &wr);
		f.word = (void *)((char *)find_entry(MAGIC + i) + fields[i % 3].offset);
		MUST_ERR(0, pthread_create(&thread, NULL, flip, &f));
		while (!f.runs)
			;
		let_go(&s);
		wc = cq_next(s.p.peer->scq);
		f.stop = true;
		MUST_ERR(0, pthread_join(thread, NULL));
		CHECK_EQ(MAGIC + i, wc.wr_id);
		if (wc.status == IBV_WC_SUCCESS)
			succeeded++;
		else
			failed++;
		/* All 64 bytes or none, and nothing beside them. */
		CHECK_EQ(wc.status == IBV_WC_SUCCESS ? STAGE_HERE : STAGE_THERE, to[PAGE + 63]);
		CHECK_EQ(STAGE_THERE, to[PAGE - 1]);
		CHECK_EQ(STAGE_THERE, to[PAGE + 64]);
		if (wc.status != IBV_WC_SUCCESS)
			stage_again(&s);
	}
	test_note("%u carried out, %u refused", succeeded, failed);
	/* Both happen, or it was no race. */
	CHECK_BETWEEN(1, succeeded, 149);
	check_bystander(&s, 2);
}

/* What a thread goes on changing while the engine works. */
struct storm {
	struct ring rings[MAX_RINGS];
	int n;
	uint64_t random;
	bool spare_headers;
	volatile bool stop;
};

static void *storm(void *arg)
{
	struct storm *st = arg;

	while (!st->stop) {
		struct ring *r = &st->rings[test_random(&st->random) % st->n];
		/* Half of it hits the first entries, which are in use most. */
		size_t span = test_random(&st->random) & 1 ? 1024 : r->length;
		size_t at = test_random(&st->random) % span & ~3UL;

		if (st->spare_headers)
			at += SHCA_RING_ENTRIES_OFFSET;
		if (at + 4 <= r->length)
			*(volatile uint32_t *)(r->start + at) = nasty(&st->random);
		/* Some of what was posted shall be carried out as it is. */
		linger(&st->random, 0xfff);
	}
	return NULL;
}

/* Posts through the provider, and takes completions without looking at them. */
static void post_into_storm(struct pair *p, struct ibv_mr *mr, struct storm *st)
{
	struct ibv_sge sge = SGE(mr, mr->addr, 100);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)mr->addr, mr->rkey },
	}, *bad;
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *rbad;

	for (int i = 0; i < 4; i++) {
		wr.opcode = i & 1 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
		ibv_post_recv(p->owner->qp, &recv, &rbad);
		ibv_post_send(p->peer->qp, &wr, &bad);
	}
	doorbell(p->peer);
	doorbell(p->owner);
	for (int i = 0; i < st->n; i++) {
		struct shca_ring_hdr *hdr = (void *)st->rings[i].start;

		/* Of a completion ring; of the others it is not believed anyway. */
		hdr->consumer = hdr->producer;
	}
}

static void connect_again(struct pair *p)
{
	struct rc *side[2] = { p->peer, p->owner };

	for (int i = 0; i < 2; i++) {
		struct rc_addr to = rc_addr(side[!i]);

		rc_modify(side[i], IBV_QPS_RESET, NULL);
		rc_modify(side[i], IBV_QPS_INIT, NULL);
		rc_modify(side[i], IBV_QPS_RTR, &to);
		rc_modify(side[i], IBV_QPS_RTS, NULL);
	}
}

/* All rings of one connection are rewritten at random; the other one works. */
static void random_storm(const struct test_case *c)
{
	static const struct qp_param param = { .timeout = 10, .retry_cnt = 1,
					       .min_rnr_timer = 1, .rnr_retry = 1,
					       .send_wr = 16, .recv_wr = 16 };
	struct stage s = stage_new();
	struct ring before[MAX_RINGS];
	double end = test_now() + 6;
	unsigned int rounds = 0;
	int old = rings(before);

	test_note("seed %lu", c->n);
	while (test_now() < end) {
		struct storm st = { .random = c->n + rounds,
				    .spare_headers = rounds % 4 };
		struct pair p = { .dev = dev_open() };
		struct qp_param own = param;
		struct ibv_mr *mr;
		struct ring now[MAX_RINGS];
		pthread_t thread;
		int all;

		own.pd = ibv_alloc_pd(p.dev->ctx);
		p.peer = rc_create(p.dev, &own);
		p.owner = rc_create(p.dev, &own);
		rc_pair(p.peer, p.owner);
		mr = mr_new(own.pd, PAGE);
		all = rings(now);
		/* The rings that this connection has brought. */
		for (int i = 0; i < all; i++) {
			bool known = false;

			for (int j = 0; j < old; j++)
				known |= now[i].start == before[j].start;
			if (!known)
				st.rings[st.n++] = now[i];
		}
		MUST(st.n >= 4);
		MUST_ERR(0, pthread_create(&thread, NULL, storm, &st));
		for (int i = 0; i < 40; i++) {
			post_into_storm(&p, mr, &st);
			if (i % 4 == 3)
				connect_again(&p);
			if (i % 20 == 0)
				check_bystander(&s, rounds + i);
		}
		st.stop = true;
		MUST_ERR(0, pthread_join(thread, NULL));
		check_bystander(&s, rounds);
		/* Its objects can be queried and destroyed whatever is in them. */
		rc_state(p.peer);
		MUST_ERR(0, ibv_destroy_qp(p.peer->qp));
		MUST_ERR(0, ibv_destroy_qp(p.owner->qp));
		MUST_ERR(0, ibv_destroy_cq(p.peer->scq));
		MUST_ERR(0, ibv_destroy_cq(p.peer->rcq));
		MUST_ERR(0, ibv_destroy_cq(p.owner->scq));
		MUST_ERR(0, ibv_destroy_cq(p.owner->rcq));
		MUST_ERR(0, ibv_dereg_mr(mr));
		MUST_ERR(0, ibv_close_device(p.dev->ctx));
		rounds++;
	}
	test_note("%u rounds", rounds);
	CHECK_BETWEEN(5, rounds, 100000);
}

static const struct test_case cases[] = {
	{ "an entry that changes under way is read once", changes_under_way },
	{ "rings rewritten at random, first seed", random_storm, NULL, 20240601 },
	{ "rings rewritten at random, second seed", random_storm, NULL, 7 },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
