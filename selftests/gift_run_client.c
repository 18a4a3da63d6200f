// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An ordinary verbs program for gift_run to run under gift-run, of which it knows
 * nothing: registers memory, writes to it, sends it to a peer in the same process,
 * and prints as "key=value" what arrived and what it cost. Judges nothing.
 *
 *   gift_run_client HOW [key=number]...
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/pair.h"
#include "lib/proc.h"

#define PAGE	4096UL

struct side {
	struct rc *owner, *peer;
	struct ibv_mr *into;		/* the peer's */
};

/* What the command line can change. */
static unsigned long pages = 16, access_flags, rounds = 1, touch, skew, iova,
	threads = 4, shared, merged, room = ~0UL;

static const struct {
	const char *key;
	unsigned long *value;
} keys[] = {
	{ "pages", &pages }, { "access", &access_flags }, { "rounds", &rounds },
	{ "touch", &touch }, { "skew", &skew }, { "iova", &iova },
	{ "threads", &threads }, { "shared", &shared }, { "merged", &merged },
	{ "room", &room },
};

static void say(const char *key, long long value)
{
	printf("%s=%lld\n", key, value);
}

static struct side side_new(bool ex)
{
	struct qp_param param = { .inline_data = 64 };
	struct side s;

	if (ex)
		param.send_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND;
	s.owner = rc_create(dev_open(), &param);
	s.peer = rc_create(s.owner->dev, NULL);
	rc_pair(s.owner, s.peer);
	s.into = mr_new(s.peer->pd, pages * PAGE);
	return s;
}

/*
 * Untouched but for the first @touch pages, or each page merged by KSM with the one
 * beside it; @skew bytes into its first page.
 */
static unsigned char *memory(void)
{
	unsigned char *p;

	if (merged)
		return mem_make(&mem_ksm, pages * PAGE).p + skew;
	p = mem_map(pages * PAGE, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1);

	madvise(p, pages * PAGE, MADV_NOHUGEPAGE);
	for (unsigned long i = 0; i < touch; i++)
		p[i * PAGE + PAGE / 2] = 0x40 + i;
	return p + skew;
}

static size_t length(void)
{
	return pages * PAGE - skew;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *p)
{
	struct ibv_mr *mr;
	unsigned int flags = access_flags;

	/* The function itself: the macro of that name calls ibv_reg_mr_iova2(). */
	mr = iova ? (ibv_reg_mr_iova)(pd, p, length(), iova, flags) :
		    ibv_reg_mr(pd, p, length(), flags);
	if (!mr) {
		say("reg_errno", errno);
		exit(1);
	}
	return mr;
}

/* So many pages may be registered beside those that are. */
static void leave_room(unsigned long n)
{
	struct rlimit limit = { n, RLIM_INFINITY };

	if (n != RLIM_INFINITY)
		limit.rlim_cur = pinned_vm(0) + n * PAGE;
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		say("setrlimit", errno);
}

static uint64_t name_of(const unsigned char *p, const unsigned char *at)
{
	return (iova ? iova : (uintptr_t)p) + (at - p);
}

static long long differ(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;
	long long wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += x[i] != y[i];
	return wrong;
}

static struct ibv_wc done(struct rc *rc)
{
	return cq_next(rc->scq);
}

/* Each way to send @length bytes from @p into the start of the peer's memory. */
static int by_write(struct side *s, struct ibv_mr *mr, unsigned char *p,
		    unsigned char *from, uint32_t n)
{
	struct ibv_sge sge = { name_of(p, from), n, mr->lkey }, sge_was = sge;
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)s->into->addr, s->into->rkey },
	}, was = wr, *bad;
	int ret = ibv_post_send(s->owner->qp, &wr, &bad);

	if (ret)
		return ret;
	if (memcmp(&sge, &sge_was, sizeof(sge)) || memcmp(&wr, &was, sizeof(wr)))
		say("changed", 1);
	return done(s->owner).status;
}

/* In three SGEs, the last of two work requests. */
static int by_send(struct side *s, struct ibv_mr *mr, unsigned char *p,
		   unsigned char *from, uint32_t n)
{
	uint32_t third = n / 3;
	struct ibv_sge sge[3] = {
		{ name_of(p, from), third, mr->lkey },
		{ name_of(p, from + third), third, mr->lkey },
		{ name_of(p, from + 2 * third), n - 2 * third, mr->lkey },
	};
	struct ibv_send_wr second = {
		.wr_id = 2, .sg_list = sge, .num_sge = 3, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, first = {
		.wr_id = 1, .next = &second, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)s->into->addr, s->into->rkey },
	}, *bad;
	struct ibv_wc wc;
	int ret;

	post_recv(s->peer, 7, s->into, s->into->addr, n);
	ret = ibv_post_send(s->owner->qp, &first, &bad);
	if (ret)
		return ret;
	wc = done(s->owner);
	if (wc.wr_id != 2)
		say("wr_id", wc.wr_id);
	if (wc.status == IBV_WC_SUCCESS)
		return cq_next(s->peer->rcq).status;
	return wc.status;
}

static int by_wr(struct side *s, struct ibv_mr *mr, unsigned char *p,
		 unsigned char *from, uint32_t n)
{
	struct ibv_qp_ex *qpx = s->owner->qpx;
	int ret;

	ibv_wr_start(qpx);
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qpx, s->into->rkey, (uintptr_t)s->into->addr);
	ibv_wr_set_sge(qpx, mr->lkey, name_of(p, from), n);
	ret = ibv_wr_complete(qpx);
	return ret ? ret : (int)done(s->owner).status;
}

static int by_wr_list(struct side *s, struct ibv_mr *mr, unsigned char *p,
		      unsigned char *from, uint32_t n)
{
	struct ibv_qp_ex *qpx = s->owner->qpx;
	struct ibv_sge sge[2] = {
		{ name_of(p, from), n / 2, mr->lkey },
		{ name_of(p, from + n / 2), n - n / 2, mr->lkey },
	};
	int ret;

	ibv_wr_start(qpx);
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qpx, s->into->rkey, (uintptr_t)s->into->addr);
	ibv_wr_set_sge_list(qpx, 2, sge);
	ret = ibv_wr_complete(qpx);
	return ret ? ret : (int)done(s->owner).status;
}

typedef int (*sender)(struct side *s, struct ibv_mr *mr, unsigned char *p,
		      unsigned char *from, uint32_t n);

/* Registers, then in each round writes one more page and sends all. */
static void rounds_of(sender send, bool ex)
{
	struct side s = side_new(ex);
	unsigned char *p = memory();
	long long wrong = 0, regions = 0;
	struct ibv_mr *mr;
	int status = 0;

	mr = reg(s.owner->pd, p);
	say("anon_registered", mem_range(p - skew, pages * PAGE, "Anonymous") / PAGE);
	say("pss_registered", mem_range(p - skew, pages * PAGE, "Pss") / PAGE);
	leave_room(room);
	for (unsigned long i = 0; i < rounds && !status; i++) {
		unsigned long page = (touch + i * 5) % pages;

		memset(p + page * PAGE, 0x80 + i, PAGE - skew);
		status = send(&s, mr, p, p, length());
		wrong += differ(p, s.into->addr, length());
		if ((long long)gift_stats().regions > regions)
			regions = gift_stats().regions;
	}
	say("wrong", wrong);
	say("status", status);
	say("regions", regions);
	say("anon_sent", mem_range(p - skew, pages * PAGE, "Anonymous") / PAGE);
	say("pss_sent", mem_range(p - skew, pages * PAGE, "Pss") / PAGE);
	say("dereg", ibv_dereg_mr(mr));
	say("regions_left", gift_stats().regions);
	if (s.into && !ibv_dereg_mr(s.into))
		say("pinned_left", pinned_vm(0));
}

static void how_write(void) { rounds_of(by_write, false); }
static void how_send(void) { rounds_of(by_send, false); }
static void how_wr(void) { rounds_of(by_wr, true); }
static void how_wr_list(void) { rounds_of(by_wr_list, true); }

/* What the CPU reads at the post is right whatever the region has. */
static void how_inline(void)
{
	struct side s = side_new(false);
	unsigned char *p = memory();
	struct ibv_mr *mr = reg(s.owner->pd, p);
	struct ibv_sge sge = { name_of(p, p), 64, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
		.wr.rdma = { (uintptr_t)s.into->addr, s.into->rkey },
	}, *bad;

	long long pinned = pinned_vm(0);

	memset(p, 0x5a, PAGE);
	say("post", ibv_post_send(s.owner->qp, &wr, &bad));
	say("status", done(s.owner).status);
	say("wrong", differ(p, s.into->addr, 64));
	say("pinned_more", pinned_vm(0) - pinned);
}

/* The second of three work requests is refused: the first was sent. */
static void how_bad_wr(void)
{
	struct side s = side_new(false);
	unsigned char *p = memory();
	struct ibv_mr *mr = reg(s.owner->pd, p);
	struct ibv_sge sge = { name_of(p, p), PAGE, mr->lkey };
	struct ibv_send_wr wr[3], *bad = NULL;

	memset(p, 0x5a, PAGE);
	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = i, .next = i < 2 ? &wr[i + 1] : NULL,
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)s.into->addr, s.into->rkey },
		};
	wr[1].opcode = 77;
	say("post", !!ibv_post_send(s.owner->qp, wr, &bad));
	say("bad", bad - wr);
	say("status", done(s.owner).status);
	say("quiet", cq_quiet(s.owner->scq, 20));
	say("wrong", differ(p, s.into->addr, PAGE));
}

/*
 * A list whose second request reads what was written late, without room to register
 * that anew; the same by ibv_wr_*; and both with room.
 */
static void how_limited(void)
{
	struct side s = side_new(true);
	unsigned char *p = memory(), *old = malloc(length());
	struct ibv_mr *mr = reg(s.owner->pd, p);
	struct ibv_sge sge[2] = {
		{ name_of(p, p + PAGE), PAGE, mr->lkey }, { name_of(p, p), PAGE, mr->lkey },
	};
	struct ibv_send_wr wr[2], *bad = NULL;

	memset(p, 0x5a, PAGE);
	memset(old, 0x77, length());
	memset(s.into->addr, 0x77, length());
	for (int i = 0; i < 2; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = i, .next = i ? NULL : &wr[1],
			.sg_list = &sge[i], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)s.into->addr, s.into->rkey },
		};
	leave_room(0);
	say("post", ibv_post_send(s.owner->qp, wr, &bad));
	say("bad", bad - wr);
	say("wr", by_wr(&s, mr, p, p, length()));
	say("quiet", cq_quiet(s.owner->scq, 20));
	say("sent", differ(old, s.into->addr, length()));
	leave_room(RLIM_INFINITY);
	say("post_again", ibv_post_send(s.owner->qp, wr, &bad));
	say("status", done(s.owner).status + done(s.owner).status);
	say("wrong", differ(p, s.into->addr, PAGE));
	say("wr_again", by_wr(&s, mr, p, p, length()));
	say("wrong_wr", differ(p, s.into->addr, length()));
}

/* Twice: its device is closed with all that it has. */
static void how_close(void)
{
	long long wrong = 0, fresh = 0, left = 0;

	for (int turn = 0; turn < 2; turn++) {
		struct side s = side_new(false);
		unsigned char *p = memory();
		struct ibv_mr *mr = reg(s.owner->pd, p);
		long long before = gift_stats().regions;

		memset(p, 0x11 + turn, PAGE);
		say("status", by_write(&s, mr, p, p, length()));
		wrong += differ(p, s.into->addr, length());
		fresh += gift_stats().regions - before;
		say("close", ibv_close_device(s.owner->dev->ctx));
		left += gift_stats().regions - before;
	}
	say("wrong", wrong);
	say("fresh", fresh);
	say("fresh_left", left);
}

/* Taken again where it is, then made writable, which no gift region can be. */
static void how_rereg(void)
{
	struct side s = side_new(false);
	unsigned char *p = memory();
	struct ibv_mr *mr = reg(s.owner->pd, p);
	uint32_t lkey = mr->lkey;
	long long wrong;

	memset(p, 0x11, PAGE);
	by_write(&s, mr, p, p, length());
	wrong = differ(p, s.into->addr, length());
	say("rereg", ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p,
				  length(), 0));
	memset(p + PAGE, 0x22, PAGE);
	by_write(&s, mr, p, p, length());
	wrong += differ(p, s.into->addr, length());
	say("regions", gift_stats().regions);
	say("rereg_access", ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					 IBV_ACCESS_LOCAL_WRITE));
	say("regions_writable", gift_stats().regions);
	memset(p + 2 * PAGE, 0x33, PAGE);
	by_write(&s, mr, p, p, length());
	say("wrong", wrong + differ(p, s.into->addr, length()));
	post_recv(s.owner, 1, mr, p, PAGE);
	memset(s.into->addr, 0x44, PAGE);
	post_simple(s.peer, IBV_WR_SEND, 1, s.into, s.into->addr, PAGE, 0, 0);
	say("received", cq_next(s.owner->rcq).status == IBV_WC_SUCCESS && p[7] == 0x44);
	say("same_key", mr->lkey == lkey);
	say("dereg", ibv_dereg_mr(mr));
}

/* A child that registers for itself, then the parent, whose pages it shared. */
static void how_fork(void)
{
	struct side s = side_new(false);
	unsigned char *p = memory();
	struct ibv_mr *mr = reg(s.owner->pd, p);
	int status;
	pid_t pid;

	memset(p, 0x11, PAGE);
	by_write(&s, mr, p, p, length());
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		how_write();
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	say("child", status);
	memset(p, 0x12, PAGE);
	memset(p + 3 * PAGE, 0x13, PAGE);
	by_write(&s, mr, p, p, length());
	say("parent_wrong", differ(p, s.into->addr, length()));
}

struct worker {
	pthread_t thread;
	struct side s;
	struct ibv_mr *mr;
	unsigned char *p;
	long long wrong;
};

/* Pages of its own, sent one by one on a queue pair of its own. */
static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned long i = 0; i < rounds; i++) {
		unsigned char *at = w->p + i % pages * PAGE;

		memset(at, 1 + i, PAGE);
		if (by_write(&w->s, w->mr, w->p, at, PAGE))
			w->wrong++;
		w->wrong += differ(at, w->s.into->addr, PAGE);
	}
	ibv_dereg_mr(w->mr);
	return NULL;
}

static void how_threads(void)
{
	struct worker *w = calloc(threads, sizeof(*w));
	long long wrong = 0;

	for (unsigned long i = 0; i < threads; i++) {
		w[i].s = side_new(false);
		w[i].p = memory();
		w[i].mr = reg(w[i].s.owner->pd, w[i].p);
	}
	for (unsigned long i = 0; i < threads; i++)
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	for (unsigned long i = 0; i < threads; i++) {
		pthread_join(w[i].thread, NULL);
		wrong += w[i].wrong;
	}
	say("wrong", wrong);
	say("regions_left", gift_stats().regions);
}

static const struct {
	const char *name;
	void (*run)(void);
} hows[] = {
	{ "write", how_write }, { "send", how_send }, { "wr", how_wr },
	{ "wr_list", how_wr_list }, { "inline", how_inline }, { "bad_wr", how_bad_wr },
	{ "limited", how_limited }, { "close", how_close }, { "rereg", how_rereg },
	{ "fork", how_fork }, { "threads", how_threads },
};

int main(int argc, char **argv)
{
	const char *why = dev_ready();

	if (why || argc < 2) {
		fprintf(stderr, "gift_run_client: %s\n", why ? why : "how?");
		return 2;
	}
	for (int i = 2; i < argc; i++)
		for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
			size_t n = strlen(keys[k].key);

			if (!strncmp(argv[i], keys[k].key, n) && argv[i][n] == '=')
				*keys[k].value = strtoul(argv[i] + n + 1, NULL, 0);
		}
	for (size_t i = 0; i < ARRAY_LEN(hows); i++)
		if (!strcmp(argv[1], hows[i].name)) {
			hows[i].run();
			fflush(stdout);
			return test_failed();
		}
	return 2;
}
