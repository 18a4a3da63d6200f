// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ib_gift's every_driver on a stock rxe: that switching it is never unsafe, whatever
 * is registered or being registered, and that a plain registration runs nothing of
 * ib_gift but a look into a table. What a gift region of rxe is good for is in
 * gift_rxe.c; loading and unloading of modules is in load.sh.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "lib/every.h"

#define PAGE	4096UL
#define LENGTH	EVERY_LENGTH

static void busy(const struct test_case *c)
{
	struct pair p = every_pair();
	int refs = module_refs("ib_gift");
	struct ibv_mr *mr, *second;
	struct mem m;

	mr = every_region(p.owner->pd, &m);
	CHECK_EQ(refs + 1, module_refs("ib_gift"));
	second = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);
	CHECK_EQ(refs + 2, module_refs("ib_gift"));
	for (int i = 0; i < 3; i++)
		CHECK_ERR(EBUSY, every_switch(false));
	CHECK(every_is_on());
	MUST_ERR(0, ibv_dereg_mr(second));
	CHECK_ERR(EBUSY, every_switch(false));
	CHECK_EQ(IB_GIFT_CAP_EVERY_DRIVER, every_caps(""));
	pair_check(&p, mr, copy_of(m.p, LENGTH));
	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_EQ(refs, module_refs("ib_gift"));
	MUST_ERR(0, every_switch(false));
	CHECK(!every_is_on());
}

static void bad_values(const struct test_case *c)
{
	static const char *const bad[] = { "maybe", "2", "-1", "\n", " 1" };

	for (int on = 1; on >= 0; on--) {
		MUST_ERR(0, every_switch(on));
		for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
			test_context("'%s' while it is %s", bad[i], on ? "on" : "off");
			CHECK_ERR(EINVAL, proc_write(EVERY_PARAM, bad[i]) ? 0 : errno);
			CHECK_EQ(on, every_is_on());
		}
		/* What it is already is no change. */
		test_context("what it is already, %s", on ? "on" : "off");
		MUST_ERR(0, every_switch(on));
		CHECK_EQ(on, every_is_on());
	}
}

static void ftrace_stays(const struct test_case *c)
{
	static const char sysctl[] = "/proc/sys/kernel/ftrace_enabled";

	CHECK_ERR(EBUSY, proc_write(sysctl, "0") ? 0 : errno);
	MUST_ERR(0, every_switch(false));
	MUST(proc_write(sysctl, "0"));
	CHECK_ERR(EBUSY, every_switch(true));
	CHECK(!every_is_on());
	CHECK_EQ(0, every_caps(RXE_A));
	MUST(proc_write(sysctl, "1"));
	MUST_ERR(0, every_switch(true));
}

/* A process with two regions on a device. */
struct holder {
	const char *device;
	int sock[2];
	pid_t pid;
};

static void hold(void *arg)
{
	struct holder *h = arg;
	struct ibv_mr *mr;
	struct mem m;

	mr = every_region(ibv_alloc_pd(dev_open_name(h->device)->ctx), &m);
	MUST(mr_reg(mr->pd, m.p, LENGTH, GIFT_READ));
	sock_meet(h->sock[1]);
	pause();
}

static void holder_start(struct holder *h, const char *device)
{
	h->device = device;
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, h->sock));
	h->pid = test_fork(hold, h);
	sock_meet(h->sock[0]);
}

static void holder_kill(struct holder *h)
{
	kill(h->pid, SIGKILL);
	MUST(waitpid(h->pid, NULL, 0) == h->pid);
}

static void killed(const struct test_case *c)
{
	int refs = module_refs("ib_gift");
	long long pins = pins_now();
	struct holder h;

	holder_start(&h, RXE_A);
	CHECK_EQ(refs + 2, module_refs("ib_gift"));
	CHECK_ERR(EBUSY, every_switch(false));
	holder_kill(&h);
	CHECK_EQ(refs, module_refs("ib_gift"));
	CHECK_EQ(0, pins_now() - pins);
	MUST_ERR(0, every_switch(false));
}

/* A registration that waits in the middle: its memory's pages come from here. */
struct stuck {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct mem m;
	int uffd;
	pthread_t thread;
};

static void *register_stuck(void *arg)
{
	struct stuck *s = arg;

	s->mr = ibv_reg_mr(s->pd, s->m.p, s->m.length, GIFT_READ);
	return NULL;
}

static int userfaultfd_or_skip(void)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		test_skip("no userfaultfd: %s", strerror(errno));
	return fd;
}

static void stuck_start(struct stuck *s)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffd_msg msg;

	s->m = mem_make(&mem_untouched, LENGTH);
	s->pd = every_pd();
	s->mr = NULL;
	s->uffd = userfaultfd_or_skip();
	MUST(!ioctl(s->uffd, UFFDIO_API, &api));
	reg.range.start = (uintptr_t)s->m.p;
	reg.range.len = LENGTH;
	MUST(!ioctl(s->uffd, UFFDIO_REGISTER, &reg));
	MUST(!pthread_create(&s->thread, NULL, register_stuck, s));
	/* It has come to its first page once that is asked for. */
	MUST(read(s->uffd, &msg, sizeof(msg)) == sizeof(msg));
	MUST_EQ(UFFD_EVENT_PAGEFAULT, msg.event);
}

static void under_way(const struct test_case *c)
{
	int refs = module_refs("ib_gift");
	struct uffdio_range range;
	struct stuck s;

	stuck_start(&s);
	/* No region yet, and yet it counts. */
	CHECK_EQ(0, gift_stats().regions);
	CHECK_EQ(refs + 1, module_refs("ib_gift"));
	CHECK_ERR(EBUSY, every_switch(false));
	CHECK(every_is_on());

	range.start = (uintptr_t)s.m.p;
	range.len = LENGTH;
	MUST(!ioctl(s.uffd, UFFDIO_UNREGISTER, &range));
	MUST(!pthread_join(s.thread, NULL));
	MUST(s.mr);
	CHECK_EQ(1, gift_stats().regions);
	CHECK_ERR(EBUSY, every_switch(false));
	MUST_ERR(0, ibv_dereg_mr(s.mr));
	CHECK_EQ(refs, module_refs("ib_gift"));
	MUST_ERR(0, every_switch(false));
}

static void be_stuck(void *arg)
{
	struct stuck s;

	stuck_start(&s);
	sock_meet(*(int *)arg);
	pause();
}

static void killed_under_way(const struct test_case *c)
{
	int refs = module_refs("ib_gift"), sock[2];
	pid_t pid;

	close(userfaultfd_or_skip());
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = test_fork(be_stuck, &sock[1]);
	sock_meet(sock[0]);
	CHECK_EQ(refs + 1, module_refs("ib_gift"));
	kill(pid, SIGKILL);
	MUST(waitpid(pid, NULL, 0) == pid);
	CHECK_EQ(refs, module_refs("ib_gift"));
	MUST_ERR(0, every_switch(false));
}

static void delete_link(void *unused)
{
	CHECK_EQ(0, SHELL("rdma link delete " RXE_C));
}

/* rxe lets a link go only when the last process has closed it. */
static void link_deleted(const struct test_case *c)
{
	int refs = module_refs("ib_gift");
	long long pins = pins_now();
	struct holder h;
	pid_t deletes;

	MUST_EQ(0, SHELL("rdma link add " RXE_C " type rxe netdev giftdummy"));
	holder_start(&h, RXE_C);
	CHECK_EQ(refs + 2, module_refs("ib_gift"));
	deletes = test_fork(delete_link, NULL);
	/* While it goes, or waits to. */
	test_sleep_ms(300);
	CHECK_ERR(EBUSY, every_switch(false));
	holder_kill(&h);
	test_join(deletes);
	CHECK(!dev_exists(RXE_C));
	CHECK_EQ(refs, module_refs("ib_gift"));
	CHECK_EQ(0, pins_now() - pins);
	MUST_ERR(0, every_switch(false));
}

struct load {
	unsigned int access;
	bool *stop;
	unsigned long *gifts, *stocks;
};

static void registrations(void *arg)
{
	struct mem m = mem_make(&mem_untouched, 16 * PAGE);
	struct ibv_pd *pd = every_pd();
	struct load *load = arg;
	uint64_t seed = getpid();

	while (!__atomic_load_n(load->stop, __ATOMIC_RELAXED)) {
		struct ibv_mr *mr = mr_reg(pd, m.p, m.length, load->access);
		bool gift = gift_stats().regions;

		__atomic_fetch_add(gift ? load->gifts : load->stocks, 1,
				   __ATOMIC_RELAXED);
		MUST_ERR(0, ibv_dereg_mr(mr));
		MUST_EQ(0, gift_stats().regions);
		MUST_EQ(0, pinned_vm(0));
		/* As if new, so that a stock registration has what to allocate. */
		MUST(!madvise(m.p, m.length, MADV_DONTNEED));
		/* Moments without a region, in which it can be switched off. */
		usleep(test_random(&seed) % 3000);
	}
}

static void switched_under_load(const struct test_case *c)
{
	unsigned long turns = test_long() ? 1000 : 25, refused = 0;
	struct {
		bool stop;
		unsigned long gifts, stocks, plain;
	} *shared;
	int refs = module_refs("ib_gift");
	long long pins = pins_now();
	struct load gift, plain;
	uint64_t seed = 1;
	pid_t pid[3];

	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared != MAP_FAILED);
	gift = (struct load){ GIFT_READ, &shared->stop, &shared->gifts,
			      &shared->stocks };
	plain = (struct load){ IBV_ACCESS_REMOTE_READ, &shared->stop,
			       &shared->gifts, &shared->plain };
	pid[0] = test_fork(registrations, &gift);
	pid[1] = test_fork(registrations, &gift);
	pid[2] = test_fork(registrations, &plain);

	for (unsigned long i = 0; i < turns; i++) {
		int err;

		MUST_ERR(0, every_switch(true));
		usleep(test_random(&seed) % 4000);
		while ((err = every_switch(false)) == EBUSY)
			refused++;
		MUST_ERR(0, err);
	}
	shared->stop = true;
	for (size_t i = 0; i < ARRAY_LEN(pid); i++)
		test_join(pid[i]);
	test_note("%lu times on and off, %lu times refused; %lu gift, %lu stock, %lu plain",
		  turns, refused, shared->gifts, shared->stocks, shared->plain);
	/* Else it was not under load. */
	CHECK(shared->gifts > 0);
	CHECK(shared->stocks > 0);
	CHECK(shared->plain > 0);
	CHECK_EQ(refs, module_refs("ib_gift"));
	CHECK_EQ(0, pins_now() - pins);
}

/* What of ib_gift this process runs, by the function tracer. */
#define TRACING		"/sys/kernel/tracing"
#define TRACE		TRACING "/instances/gift_every"

static void trace_drop(void)
{
	proc_write(TRACE "/current_tracer", "nop");
	rmdir(TRACE);
}

static void trace_start(void)
{
	if (access(TRACING "/instances", F_OK))
		RUN("mount", "-t", "tracefs", "none", TRACING);
	if (access(TRACING "/instances", F_OK))
		test_skip("no tracefs");
	trace_drop();
	MUST(!mkdir(TRACE, 0700));
	MUST(proc_write(TRACE "/set_ftrace_filter", ":mod:ib_gift"));
	if (!proc_write(TRACE "/current_tracer", "function"))
		test_skip("no function tracer");
}

/*
 * How often this process ran a function, or with NULL all of them. A tracer that were
 * told the process would patch the scheduler to follow it.
 */
static unsigned long traced(const char *function)
{
	char line[512], name[64], me[16];
	unsigned long n = 0;
	FILE *f = fopen(TRACE "/trace", "r");
	const char *at;

	MUST(f);
	snprintf(me, sizeof(me), "-%d ", getpid());
	while (fgets(line, sizeof(line), f)) {
		at = strstr(line, ": ");
		if (!strstr(line, me) || !at || sscanf(at, ": %63s <-", name) != 1)
			continue;
		n += !function || !strcmp(name, function);
	}
	fclose(f);
	return n;
}

static void plain_passes_by(const struct test_case *c)
{
	enum { ROUNDS = 20 };
	struct mem m = mem_make(&mem_untouched, PAGE);
	struct ibv_pd *pd = every_pd();

	for (int on = 0; on < 2; on++) {
		MUST_ERR(0, every_switch(on));
		trace_start();
		for (int i = 0; i < ROUNDS; i++)
			MUST_ERR(0, ibv_dereg_mr(mr_reg(pd, m.p, PAGE, MR_ALL)));
		MUST(proc_write(TRACE "/tracing_on", "0"));
		test_context("every_driver %s", on ? "on" : "off");
		CHECK_EQ(on ? ROUNDS : 0, traced("gift_is_region"));
		CHECK_EQ(on ? ROUNDS : 0, traced(NULL));
	}
	test_context("with GIFT");
	trace_start();
	MUST_ERR(0, ibv_dereg_mr(mr_reg(pd, m.p, PAGE, GIFT_READ)));
	MUST(proc_write(TRACE "/tracing_on", "0"));
	CHECK_EQ(1, traced("ib_gift_umem_get"));
	CHECK_EQ(1, traced("ib_gift_umem_release"));
	trace_drop();
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void plain_costs_the_same(const struct test_case *c)
{
	enum { TURNS = 8, ROUNDS = 50, ALL = TURNS * ROUNDS };
	static double ns[2][ALL];
	struct mem m = mem_make(&mem_written, PAGE);
	struct ibv_pd *pd = every_pd();
	int refs = module_refs("ib_gift");

	/* In turns, so that what else the machine does is in both. */
	for (int turn = 0; turn < 2 * TURNS; turn++) {
		bool on = turn & 1;
		long long pins = pins_taken();

		MUST_ERR(0, every_switch(on));
		for (int i = 0; i < ROUNDS; i++) {
			double start = test_now();

			MUST_ERR(0, ibv_dereg_mr(mr_reg(pd, m.p, PAGE, MR_ALL)));
			ns[on][turn / 2 * ROUNDS + i] = (test_now() - start) * 1e9;
		}
		test_context("every_driver %s", on ? "on" : "off");
		CHECK_EQ(ROUNDS, pins_taken() - pins);
		CHECK_EQ(refs, module_refs("ib_gift"));
		CHECK_EQ(0, gift_stats().regions);
	}
	for (int on = 0; on < 2; on++)
		qsort(ns[on], ALL, sizeof(ns[on][0]), by_size);
	test_note("a plain registration and release, median: off %.0f ns, on %.0f ns",
		  ns[0][ALL / 2], ns[1][ALL / 2]);
	/* A call of ib_gift's own would be more than the rest of it. */
	CHECK(ns[1][ALL / 2] < 2 * ns[0][ALL / 2]);
}

static const struct test_case cases[] = {
	EVERY_CASE("it is not switched off while a region lives, and each holds the module",
		   busy),
	EVERY_CASE("what is no truth value is refused, and what it is already changes nothing",
		   bad_values),
	EVERY_CASE("ftrace cannot be switched off under it, nor it on without ftrace",
		   ftrace_stays),
	EVERY_CASE("a process that is killed gives its regions back", killed),
	EVERY_CASE("it is not switched off while a registration is under way", under_way),
	EVERY_CASE("a process that is killed while it registers leaves nothing behind",
		   killed_under_way),
	EVERY_CASE("a link that is deleted while regions live gives them back",
		   link_deleted),
	EVERY_CASE_WITHIN("it is switched on and off while others register",
			  switched_under_load, 1800),
	EVERY_CASE("a plain registration runs nothing of ib_gift but a look into a table",
		   plain_passes_by),
	EVERY_CASE("plain registrations are neither counted nor held, and cost the same",
		   plain_costs_the_same),
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), every_ready);
}
