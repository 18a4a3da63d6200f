// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Processes that end with everything open: nothing of theirs stays behind, and
 * those they were connected to learn of it.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/link.h"
#include "lib/mem.h"
#include "lib/pair.h"
#include "lib/proc.h"

#define PAGE	4096UL
#define LENGTH	(4 * MIB)
/* One region that is lost is eight times as much. */
#define SLACK	(LENGTH / 8)

/* What a process may leave behind, seen from outside. */
struct state {
	char resources[256];
	long long pins, anon, lost;
	int refs;
};

static struct state state_now(void)
{
	struct state s = { .pins = pins_now(), .anon = mem_anon() };

	s.refs = module_refs("sample_hca");
	rdma_resources(dev_name(), s.resources, sizeof(s.resources));
	return s;
}

static struct state state_before(void)
{
	struct state s = state_now();

	s.lost = mem_lost();
	return s;
}

/* The file of a killed process is released by the last of its threads. */
static void check_back(const struct state *before)
{
	struct state now;

	for (int i = 0; i < 100; i++) {
		now = state_now();
		if (now.pins == before->pins && now.refs == before->refs &&
		    !strcmp(now.resources, before->resources))
			break;
		test_sleep_ms(20);
	}
	CHECK_EQ(before->pins, now.pins);
	CHECK_EQ(before->refs, now.refs);
	if (strcmp(before->resources, now.resources))
		test_fail(__FILE__, __LINE__, "resources: expected %s got %s",
			  before->resources, now.resources);
	CHECK_BETWEEN(-1024LL * MIB, now.anon - before->anon, SLACK);
	CHECK_BETWEEN(-1024LL * MIB, mem_lost_since(before->lost, SLACK), SLACK);
}

static void *wait_for_event(void *arg)
{
	struct rc *rc = arg;
	struct ibv_cq *cq;
	void *context;

	ibv_get_cq_event(rc->channel, &cq, &context);
	return NULL;
}

/* Two of each, in every state of use; @sock is told when all is there. */
static void everything(struct dev *dev, struct rc *to_peer, int sock)
{
	struct rc *a = rc_create(dev, &(struct qp_param){ .channel = true });
	struct rc *b = rc_create(dev, NULL);
	struct ibv_mr *mr = mr_new(b->pd, LENGTH);
	struct mem untouched = mem_make(&mem_untouched, LENGTH);
	struct mem written = mem_make(&mem_written, LENGTH);
	struct mem file = mem_make(&mem_private_file, LENGTH);
	struct window bound = mw_new(b->pd), never = mw_new(b->pd);
	pthread_t thread;

	(void)never;
	rc_pair(a, b);
	mr_reg(b->pd, untouched.p, LENGTH, GIFT_READ);
	mr_reg(b->pd, written.p, LENGTH, GIFT_READ);
	mr_reg(b->pd, file.p, LENGTH, GIFT_READ);
	mr_reg(b->pd, written.p, LENGTH, MR_ALL);
	MUST_STATUS(IBV_WC_SUCCESS, mw_bind(b, &bound, mr, mr->addr, PAGE,
					    IBV_ACCESS_REMOTE_WRITE));
	for (int i = 0; i < 20; i++)
		post_recv(a, i, NULL, NULL, 0);
	/* b does not receive: these wait for it, and it has requests behind. */
	for (int i = 0; i < 20; i++)
		post_simple(a, IBV_WR_SEND, i, NULL, NULL, 0, 0, 0);
	MUST_ERR(0, ibv_req_notify_cq(a->scq, 0));
	MUST_ERR(0, pthread_create(&thread, NULL, wait_for_event, a));
	if (to_peer)
		for (int i = 0; i < 20; i++)
			post_simple(to_peer, IBV_WR_SEND, i, NULL, NULL, 0, 0, 0);
	sock_meet(sock);
}

static void victim(void *arg)
{
	int sock = *(int *)arg;
	struct dev *dev = dev_open();
	struct rc *to_peer = rc_create(dev, NULL);

	rc_connect_socket(to_peer, sock);
	for (int i = 0; i < 10; i++)
		post_recv(to_peer, i, NULL, NULL, 0);
	everything(dev, to_peer, sock);
	pause();
}

/* How a process ends. */
enum death { KILLED, EXITS, FAULTS };

static void dying(void *arg)
{
	const int *args = arg;
	int sock = args[0];

	everything(dev_open(), NULL, sock);
	if (args[1] == EXITS)
		_exit(0);
	if (args[1] == FAULTS) {
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	pause();
}

static void one_death(enum death death)
{
	int sock[2], args[2], status;
	pid_t pid;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	args[0] = sock[1];
	args[1] = death;
	pid = test_fork(dying, args);
	sock_meet(sock[0]);
	if (death == KILLED)
		MUST(!kill(pid, SIGKILL));
	MUST(waitpid(pid, &status, 0) == pid);
	if (death != EXITS)
		CHECK_EQ(death == KILLED ? SIGKILL : SIGSEGV, WTERMSIG(status));
	close(sock[0]);
	close(sock[1]);
}

static void all_given_back(const struct test_case *c)
{
	struct state before;

	link_need();
	/* Once for what the kernel keeps for itself and never again. */
	one_death(c->n);
	before = state_before();
	for (int i = 0; i < 6; i++) {
		test_context("death %d", i);
		one_death(c->n);
		check_back(&before);
	}
}

/* In the middle of whatever a busy process does. */
static void busy(void *arg)
{
	int sock = *(int *)arg;
	struct pair p = pair_new(&(struct qp_param){ .sig_all = true });
	struct ibv_mr *mr = mr_new(p.peer->pd, MIB), *there = mr_new(p.owner->pd, MIB);
	struct mem m = mem_make(&mem_written, MIB);
	struct ibv_wc wc[8];

	sock_meet(sock);
	for (uint64_t i = 0;; i++) {
		struct ibv_mr *gift = mr_reg(p.owner->pd, m.p, MIB, GIFT_READ);
		struct ibv_sge sge = SGE(mr, mr->addr, i % 2 ? 64 : MIB);
		struct ibv_send_wr wr = {
			.opcode = i % 3 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
			.sg_list = &sge, .num_sge = 1,
			.wr.rdma = { (uintptr_t)there->addr, there->rkey },
		}, *bad;

		ibv_post_send(p.peer->qp, &wr, &bad);
		ibv_poll_cq(p.peer->scq, 8, wc);
		ibv_dereg_mr(gift);
	}
}

static void killed_busy(const struct test_case *c)
{
	uint64_t random = 1;
	struct state before;

	link_need();
	one_death(KILLED);
	before = state_before();
	for (int i = 0; i < 15; i++) {
		int sock[2];
		pid_t pid;

		test_context("death %d", i);
		MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
		pid = test_fork(busy, &sock[1]);
		sock_meet(sock[0]);
		usleep(test_random(&random) % 40000);
		MUST(!kill(pid, SIGKILL));
		MUST(waitpid(pid, NULL, 0) == pid);
		close(sock[0]);
		close(sock[1]);
	}
	check_back(&before);
}

static void peer_learns(const struct test_case *c)
{
	struct rc *rc, *fresh;
	struct state before;
	struct ibv_mr *mr;
	int sock[2];
	pid_t pid;

	link_need();
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	before = state_before();
	pid = test_fork(victim, &sock[1]);
	rc = rc_create(dev_open(), &(struct qp_param){ .timeout = 8, .retry_cnt = 2 });
	mr = mr_new(rc->pd, PAGE);
	rc_connect_socket(rc, sock[0]);
	sock_meet(sock[0]);
	MUST_STATUS(IBV_WC_SUCCESS, do_rdma(rc, IBV_WR_SEND, NULL, NULL, 0, 0, 0));
	MUST(!kill(pid, SIGKILL));
	MUST(waitpid(pid, NULL, 0) == pid);

	/* A receive waits; what is sent is not answered any more. */
	post_recv(rc, 1, mr, mr->addr, PAGE);
	post_simple(rc, IBV_WR_SEND, 2, mr, mr->addr, 64, 0, 0);
	post_simple(rc, IBV_WR_SEND, 3, mr, mr->addr, 64, 0, 0);
	MUST_WC(cq_next(rc->scq), 2, IBV_WC_RETRY_EXC_ERR);
	MUST_WC(cq_next(rc->scq), 3, IBV_WC_WR_FLUSH_ERR);
	MUST_WC(cq_next(rc->rcq), 1, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(IBV_QPS_ERR, rc_state(rc));

	/* And its process goes on. */
	fresh = rc_create(rc->dev, NULL);
	rc_pair(fresh, rc_create(rc->dev, NULL));
	CHECK_STATUS(IBV_WC_SUCCESS,
		     do_rdma(fresh, IBV_WR_RDMA_READ, NULL, NULL, 0, 0, 0));
	CHECK_EQ(before.pins + 1, pins_now());
}

/* A child that ends has its descriptors and mappings, and no more. */
static void child_ends(const struct test_case *c)
{
	struct pair p = pair_new(NULL);
	struct mem m = mem_make(&mem_written, LENGTH);
	struct ibv_mr *mr = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);
	long long pins = pins_now();

	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		MUST(pid >= 0);
		if (!pid)
			_exit(0);
		MUST(waitpid(pid, NULL, 0) == pid);
	}
	CHECK_EQ(pins, pins_now());
	CHECK_EQ(LENGTH, pinned_vm(0));
	CHECK_EQ(1, gift_stats().regions);
	pair_check(&p, mr, m.p);
}

/* The parent ends first: what a child inherits keeps nothing alive but itself. */
static void orphan(void *arg)
{
	int sock = *(int *)arg;
	pid_t pid;

	everything(dev_open(), NULL, sock);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		sock_meet(sock);
		_exit(0);
	}
	_exit(0);
}

static void parent_ends_first(const struct test_case *c)
{
	struct state before;
	int sock[2];
	pid_t pid;

	link_need();
	one_death(EXITS);
	before = state_before();
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = test_fork(orphan, &sock[1]);
	sock_meet(sock[0]);
	MUST(waitpid(pid, NULL, 0) == pid);
	sock_meet(sock[0]);
	check_back(&before);
}

/* In no order: a region outlives its queue pair, a queue pair its peer. */
static void close_with_all(const struct test_case *c)
{
	struct state before;
	struct dev *dev;
	struct ibv_mr *mr;

	link_need();
	one_death(EXITS);
	before = state_before();
	dev = dev_open();
	mr = mr_new(ibv_alloc_pd(dev->ctx), LENGTH);
	MUST(ibv_alloc_mw(ibv_alloc_pd(dev->ctx), IBV_MW_TYPE_2));
	MUST(ibv_create_comp_channel(dev->ctx));
	MUST(!munmap(mr->addr, LENGTH));
	MUST_ERR(0, ibv_close_device(dev->ctx));
	check_back(&before);
	CHECK_EQ(0, pinned_vm(0));
}

static const struct test_case cases[] = {
	{ "a killed process gives back everything it had open", all_given_back, NULL,
	  KILLED },
	{ "a process that exits gives back everything it had open", all_given_back,
	  NULL, EXITS },
	{ "a process that crashes gives back everything it had open", all_given_back,
	  NULL, FAULTS },
	{ "a process killed in the middle of its work gives back everything",
	  killed_busy },
	{ "the peer of a killed process has its errors and goes on", peer_learns },
	{ "a child that ends takes nothing from its parent", child_ends },
	{ "a parent that ends before its child gives back everything",
	  parent_ends_first },
	{ "a device closed with regions and windows gives them back",
	  close_with_all },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
