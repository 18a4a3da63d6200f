// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ib_gift's every_driver on a stock rxe: what is honoured while it is on, what is
 * not while it is off, and that switching it is never unsafe. Makes two rxe
 * devices on the ends of a veth pair and puts everything back. Which kinds of
 * memory are taken how is in gift_matrix.c, which on_rxe.sh runs on rxe; loading
 * and unloading of modules is in load.sh.
 *
 * Both devices are in one network namespace, since rxe has its sockets in the
 * initial one only; between link-local addresses the frames cross the veth pair.
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/userfaultfd.h>
#include <rdma/ib_user_verbs.h>

#include "lib/link.h"
#include "lib/mem.h"
#include "lib/pair.h"
#include "lib/proc.h"

#define PAGE	4096UL
/* Less than 256 pages: beyond those rxe of 6.1 looks beyond its own table. */
#define LENGTH	(240 * PAGE)
#define SLACK	(LENGTH / 4)

#define PARAM	"/sys/module/ib_gift/parameters/every_driver"
#define RXE_A	"giftrxe0"
#define RXE_B	"giftrxe1"
#define RXE_C	"giftrxe2"		/* made and deleted by a case */

#define DISABLE_DAD(netdev) \
	"sysctl -qw net.ipv6.conf." netdev ".accept_dad=0"

static const char *const up[] = {
	"modprobe rdma_rxe",
	"ip link add giftveth0 type veth peer name giftveth1",
	"ip link add giftdummy type dummy",
	DISABLE_DAD("giftveth0"),
	DISABLE_DAD("giftveth1"),
	DISABLE_DAD("giftdummy"),
	"ip link set giftveth0 mtu 9000 up",
	"ip link set giftveth1 mtu 9000 up",
	"ip link set giftdummy up",
	"rdma link add " RXE_A " type rxe netdev giftveth0",
	"rdma link add " RXE_B " type rxe netdev giftveth1",
};

static const char *const down[] = {
	"rdma link delete " RXE_C,
	"rdma link delete " RXE_B,
	"rdma link delete " RXE_A,
	"ip link delete giftdummy",
	"ip link delete giftveth0",
};

static bool was_on;

static int shell(const char *command)
{
	return RUN("sh", "-c", command);
}

static bool is_on(void)
{
	char c = '?';
	int fd = open(PARAM, O_RDONLY | O_CLOEXEC);

	MUST(fd >= 0);
	MUST(read(fd, &c, 1) == 1);
	close(fd);
	return c == 'Y';
}

/* 0 or an error number. */
static int switch_to(bool on)
{
	return proc_write(PARAM, on ? "1" : "0") ? 0 : errno;
}

static void tear_down(void)
{
	for (size_t i = 0; i < ARRAY_LEN(down); i++)
		shell(down[i]);
}

static const char *set_up(void)
{
	static char reason[160];
	const char *wrong;

	if (geteuid())
		return "needs root, to switch every_driver";
	if (access(PARAM, F_OK))
		return "no ib_gift with every_driver";
	if (shell("modinfo rdma_rxe"))
		return "this kernel has no rxe";
	tear_down();
	for (size_t i = 0; i < ARRAY_LEN(up); i++) {
		if (shell(up[i])) {
			snprintf(reason, sizeof(reason), "failed: %s", up[i]);
			return reason;
		}
	}
	setenv(DEV_ENV, RXE_A, 1);
	wrong = dev_ready();
	if (wrong)
		return wrong;
	was_on = is_on();
	if (switch_to(true))
		return "every_driver cannot be switched on";
	return NULL;
}

static struct pair pair_across(void)
{
	struct pair p = { .dev = dev_open() };

	p.owner = rc_create(p.dev, NULL);
	p.peer = rc_create(dev_open_name(RXE_B), NULL);
	rc_pair(p.peer, p.owner);
	return p;
}

static struct ibv_pd *new_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);

	MUST(pd);
	return pd;
}

static int gift_ioctl(unsigned long cmd, void *arg)
{
	int fd = open("/dev/ib_gift", O_RDWR | O_CLOEXEC), err;

	MUST(fd >= 0);
	err = ioctl(fd, cmd, arg) ? errno : 0;
	close(fd);
	return err;
}

static long long caps_of(const char *device)
{
	struct ib_gift_query q = {};
	int err;

	snprintf(q.device, sizeof(q.device), "%s", device);
	err = gift_ioctl(IB_GIFT_IOC_QUERY, &q);
	return err ? -err : (long long)q.caps;
}

#define HONOURED IB_GIFT_CAP_HONOURED
#define EVERY IB_GIFT_CAP_EVERY_DRIVER

static void query(const struct test_case *c)
{
	CHECK_EQ(EVERY, caps_of(""));
	CHECK_EQ(HONOURED | EVERY, caps_of(RXE_A));
	CHECK_EQ(-ENODEV, caps_of("nosuchdevice"));
	if (dev_exists("shca0"))
		CHECK_EQ(HONOURED, caps_of("shca0"));
	MUST_ERR(0, switch_to(false));
	CHECK_EQ(0, caps_of(""));
	CHECK_EQ(0, caps_of(RXE_A));
	if (dev_exists("shca0"))
		CHECK_EQ(HONOURED, caps_of("shca0"));
	MUST_ERR(0, switch_to(true));
	CHECK_EQ(HONOURED | EVERY, caps_of(RXE_A));
}

static void dropped_when_off(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct ibv_pd *pd = new_pd();
	struct ibv_mr *mr;

	MUST_ERR(0, switch_to(false));
	mr = mr_reg(pd, m.p, LENGTH, GIFT_READ);
	CHECK_EQ(0, gift_stats().regions);
	CHECK_EQ(LENGTH, mem_range(m.p, LENGTH, "Anonymous"));
	/* What a stock call made is stock's to release, hooked or not. */
	MUST_ERR(0, switch_to(true));
	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_EQ(0, pinned_vm(0));
	mr = mr_reg(pd, m.p, LENGTH, IBV_ACCESS_REMOTE_READ);
	MUST_ERR(0, switch_to(false));
	MUST_ERR(0, ibv_dereg_mr(mr));
	MUST_ERR(0, switch_to(true));
	CHECK_EQ(0, pinned_vm(0));
}

static void writable_refused(const struct test_case *c)
{
	static const int flags[] = {
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct mem m = mem_make(&mem_untouched, LENGTH);
	int refs = module_refs("ib_gift");
	struct ibv_pd *pd = new_pd();

	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		test_context("access %#x", flags[i]);
		CHECK_NULL_ERRNO(EINVAL, ibv_reg_mr(pd, m.p, LENGTH,
						    GIFT_READ | flags[i]));
	}
	CHECK_NULL_ERRNO(EFAULT, ibv_reg_mr(pd, (void *)PAGE, LENGTH, GIFT_READ));
	CHECK_EQ(0, mem_range(m.p, LENGTH, "Anonymous"));
	CHECK_EQ(0, pinned_vm(0));
	/* A call that fails leaves no reference behind, so it can be switched. */
	CHECK_EQ(refs, module_refs("ib_gift"));
	MUST_ERR(0, switch_to(false));
	MUST_ERR(0, switch_to(true));
}

/* Untouched, owned, and untouched again: one region with both kinds of page. */
static struct ibv_mr *mixed_region(struct ibv_pd *pd, struct mem *m)
{
	*m = mem_make(&mem_untouched, LENGTH);
	test_fill(m->p + LENGTH / 4, LENGTH / 4, 3);
	return mr_reg(pd, m->p, LENGTH, GIFT_READ);
}

static void read_across(const struct test_case *c)
{
	struct pair p = pair_across();
	struct ib_gift_stats s;
	struct ibv_mr *mr;
	struct mem m;

	mr = mixed_region(p.owner->pd, &m);
	s = gift_stats();
	CHECK_EQ(1, s.regions);
	CHECK_EQ(LENGTH / 4 / PAGE, s.pages[IB_GIFT_PAGE_PINNED]);
	CHECK_EQ(LENGTH * 3 / 4 / PAGE, s.pages[IB_GIFT_PAGE_ZERO]);
	CHECK_EQ(LENGTH / 4, mem_range(m.p, LENGTH, "Anonymous"));
	pair_check(&p, mr, copy_of(m.p, LENGTH));
}

static void send_across(const struct test_case *c)
{
	struct pair p = pair_across();
	struct ibv_mr *mr, *into = mr_new(p.peer->pd, LENGTH);
	struct mem m;

	mr = mixed_region(p.owner->pd, &m);
	post_recv(p.peer, 1, into, into->addr, LENGTH);
	MUST_STATUS(IBV_WC_SUCCESS,
		    do_rdma(p.owner, IBV_WR_SEND, mr, m.p, LENGTH, 0, 0));
	MUST_STATUS(IBV_WC_SUCCESS, cq_next(p.peer->rcq).status);
	CHECK_BYTES(m.p, into->addr, LENGTH);
	CHECK_EQ(LENGTH / 4, mem_range(m.p, LENGTH, "Anonymous"));
}

static void write_across(const struct test_case *c)
{
	struct pair p = pair_across();
	struct ibv_mr *mr, *from = mr_new(p.peer->pd, PAGE);
	unsigned char *before;
	struct mem m;

	mr = mixed_region(p.owner->pd, &m);
	before = copy_of(m.p, LENGTH);
	memset(from->addr, 0xee, PAGE);
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR,
		     do_rdma(p.peer, IBV_WR_RDMA_WRITE, from, from->addr, PAGE,
			     (uintptr_t)mr->addr, mr->rkey));
	CHECK_BYTES(before, m.p, LENGTH);
}

/* Changes the access in place; the provider of rxe has no such call. */
static int rereg_access(struct ibv_mr *mr, unsigned int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr body;
	} cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_REREG_MR,
			.in_words = sizeof(cmd) / 4,
			.out_words = sizeof(resp) / 4,
		},
		.body = {
			.response = (uintptr_t)&resp,
			.mr_handle = mr->handle,
			.flags = IBV_REREG_MR_CHANGE_ACCESS,
			.pd_handle = mr->pd->handle,
			.access_flags = access,
		},
	};

	return write(mr->context->cmd_fd, &cmd, sizeof(cmd)) == sizeof(cmd) ?
	       0 : errno;
}

static void stays_read_only(const struct test_case *c)
{
	const unsigned int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_READ;
	struct pair p = pair_across();
	struct ibv_mr *mr, *from = mr_new(p.peer->pd, PAGE);
	bool possible;
	struct mem m;

	mr = mixed_region(p.owner->pd, &m);
	possible = !rereg_access(mr, IBV_ACCESS_REMOTE_READ);
	test_note("rxe %s re-register here", possible ? "can" : "cannot");
	CHECK_ERR(possible ? EACCES : EOPNOTSUPP, rereg_access(mr, all));
	CHECK_ERR(possible ? EACCES : EOPNOTSUPP,
		  rereg_access(mr, all | IB_UVERBS_ACCESS_GIFT));
	CHECK_STATUS(IBV_WC_REM_ACCESS_ERR,
		     do_rdma(p.peer, IBV_WR_RDMA_WRITE, from, from->addr, PAGE,
			     (uintptr_t)mr->addr, mr->rkey));
}

static void stale(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct ibv_mr *mr = mr_reg(new_pd(), m.p, LENGTH, GIFT_READ);
	struct ib_gift_stale q = {
		.addr = (uintptr_t)m.p,
		.length = LENGTH,
	};

	m.p[5 * PAGE] = 1;
	m.p[9 * PAGE] = 1;
	MUST_ERR(0, gift_ioctl(IB_GIFT_IOC_STALE, &q));
	CHECK_EQ(LENGTH / PAGE, q.registered);
	CHECK_EQ(2, q.stale);
	MUST_ERR(0, ibv_dereg_mr(mr));
	MUST_ERR(0, gift_ioctl(IB_GIFT_IOC_STALE, &q));
	CHECK_EQ(0, q.registered);
}

/* Lines of the list in debugfs that name a device and this process. */
static int listed(const char *device)
{
	char line[512], name[64];
	int pid, n = 0;
	FILE *f;

	f = fopen("/sys/kernel/debug/ib_gift/regions", "r");
	MUST(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %d", name, &pid) == 2 &&
		    !strcmp(name, device) && pid == getpid())
			n++;
	fclose(f);
	return n;
}

static void both_listed(const struct test_case *c)
{
	struct mem m = mem_make(&mem_untouched, LENGTH);
	struct ibv_mr *hooked = mr_reg(new_pd(), m.p, LENGTH, GIFT_READ), *direct;
	struct ibv_pd *pd;

	if (access("/sys/kernel/debug/ib_gift", F_OK))
		test_skip("debugfs is not mounted");
	CHECK_EQ(1, listed(RXE_A));
	if (!dev_exists("shca0"))
		test_skip("no shca0 beside it");
	pd = ibv_alloc_pd(dev_open_name("shca0")->ctx);
	direct = mr_reg(pd, m.p, LENGTH, GIFT_READ);
	CHECK_EQ(2, gift_stats().regions);
	CHECK_EQ(1, listed(RXE_A));
	CHECK_EQ(1, listed("shca0"));
	/* Only the hooked one stands in the way. */
	CHECK_ERR(EBUSY, switch_to(false));
	MUST_ERR(0, ibv_dereg_mr(hooked));
	MUST_ERR(0, switch_to(false));
	CHECK_EQ(1, gift_stats().regions);
	MUST_ERR(0, ibv_dereg_mr(direct));
	CHECK_EQ(0, gift_stats().regions);
}

static void busy(const struct test_case *c)
{
	struct pair p = pair_across();
	int refs = module_refs("ib_gift");
	struct ibv_mr *mr, *second;
	struct mem m;

	mr = mixed_region(p.owner->pd, &m);
	CHECK_EQ(refs + 1, module_refs("ib_gift"));
	second = mr_reg(p.owner->pd, m.p, LENGTH, GIFT_READ);
	CHECK_EQ(refs + 2, module_refs("ib_gift"));
	for (int i = 0; i < 3; i++)
		CHECK_ERR(EBUSY, switch_to(false));
	CHECK(is_on());
	MUST_ERR(0, ibv_dereg_mr(second));
	CHECK_ERR(EBUSY, switch_to(false));
	CHECK_EQ(EVERY, caps_of(""));
	pair_check(&p, mr, copy_of(m.p, LENGTH));
	MUST_ERR(0, ibv_dereg_mr(mr));
	CHECK_EQ(refs, module_refs("ib_gift"));
	MUST_ERR(0, switch_to(false));
	CHECK(!is_on());
}

static void bad_values(const struct test_case *c)
{
	static const char *const bad[] = { "maybe", "2", "-1", "" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		test_context("'%s'", bad[i]);
		if (*bad[i])
			CHECK_ERR(EINVAL, proc_write(PARAM, bad[i]) ? 0 : errno);
		CHECK(is_on());
	}
	test_context("%s", "");
	/* What it is already is no change. */
	MUST_ERR(0, switch_to(true));
	CHECK(is_on());
	MUST_ERR(0, switch_to(false));
	MUST_ERR(0, switch_to(false));
	CHECK(!is_on());
}

static void ftrace_stays(const struct test_case *c)
{
	static const char sysctl[] = "/proc/sys/kernel/ftrace_enabled";

	CHECK_ERR(EBUSY, proc_write(sysctl, "0") ? 0 : errno);
	MUST_ERR(0, switch_to(false));
	MUST(proc_write(sysctl, "0"));
	CHECK_ERR(EBUSY, switch_to(true));
	CHECK(!is_on());
	CHECK_EQ(0, caps_of(RXE_A));
	MUST(proc_write(sysctl, "1"));
	MUST_ERR(0, switch_to(true));
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

	mr = mixed_region(ibv_alloc_pd(dev_open_name(h->device)->ctx), &m);
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
	CHECK_ERR(EBUSY, switch_to(false));
	holder_kill(&h);
	CHECK_EQ(refs, module_refs("ib_gift"));
	CHECK_EQ(0, pins_now() - pins);
	MUST_ERR(0, switch_to(false));
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
	s->pd = new_pd();
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
	CHECK_ERR(EBUSY, switch_to(false));
	CHECK(is_on());

	range.start = (uintptr_t)s.m.p;
	range.len = LENGTH;
	MUST(!ioctl(s.uffd, UFFDIO_UNREGISTER, &range));
	MUST(!pthread_join(s.thread, NULL));
	MUST(s.mr);
	CHECK_EQ(1, gift_stats().regions);
	CHECK_ERR(EBUSY, switch_to(false));
	MUST_ERR(0, ibv_dereg_mr(s.mr));
	CHECK_EQ(refs, module_refs("ib_gift"));
	MUST_ERR(0, switch_to(false));
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
	MUST_ERR(0, switch_to(false));
}

static void delete_link(void *unused)
{
	CHECK_EQ(0, shell("rdma link delete " RXE_C));
}

/* rxe lets a link go only when the last process has closed it. */
static void link_deleted(const struct test_case *c)
{
	int refs = module_refs("ib_gift");
	long long pins = pins_now();
	struct holder h;
	pid_t deletes;

	MUST_EQ(0, shell("rdma link add " RXE_C " type rxe netdev giftdummy"));
	holder_start(&h, RXE_C);
	CHECK_EQ(refs + 2, module_refs("ib_gift"));
	deletes = test_fork(delete_link, NULL);
	/* While it goes, or waits to. */
	test_sleep_ms(300);
	CHECK_ERR(EBUSY, switch_to(false));
	holder_kill(&h);
	test_join(deletes);
	CHECK(!dev_exists(RXE_C));
	CHECK_EQ(refs, module_refs("ib_gift"));
	CHECK_EQ(0, pins_now() - pins);
	MUST_ERR(0, switch_to(false));
}

struct load {
	unsigned int access;
	bool *stop;
	unsigned long *gifts, *stocks;
};

static void registrations(void *arg)
{
	struct mem m = mem_make(&mem_untouched, 16 * PAGE);
	struct ibv_pd *pd = new_pd();
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
	const char *wish = getenv("EVERY_SWITCHES");
	unsigned long turns = wish ? strtoul(wish, NULL, 0) : c->n, refused = 0;
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

		MUST_ERR(0, switch_to(true));
		usleep(test_random(&seed) % 4000);
		while ((err = switch_to(false)) == EBUSY)
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
	MUST_ERR(0, switch_to(true));
}

static void plain_untouched(const struct test_case *c)
{
	enum { ROUNDS = 200 };
	double us[2][2];			/* least, by on, of two */
	struct mem m = mem_make(&mem_written, PAGE);
	struct ibv_pd *pd = new_pd();
	int refs = module_refs("ib_gift");

	for (int turn = 0; turn < 4; turn++) {
		bool on = turn & 1;
		long long pins = pins_taken();
		double start;

		MUST_ERR(0, switch_to(on));
		start = test_now();
		for (int i = 0; i < ROUNDS; i++)
			MUST_ERR(0, ibv_dereg_mr(mr_reg(pd, m.p, PAGE, MR_ALL)));
		us[on][turn / 2] = (test_now() - start) * 1e6 / ROUNDS;
		test_context("every_driver %s", on ? "on" : "off");
		CHECK_EQ(ROUNDS, pins_taken() - pins);
		CHECK_EQ(refs, module_refs("ib_gift"));
		CHECK_EQ(0, gift_stats().regions);
	}
	test_note("us for a plain registration and release: off %.1f and %.1f, on %.1f and %.1f",
		  us[0][0], us[0][1], us[1][0], us[1][1]);
}

/* Every case begins with every_driver on, and may leave it off. */
static void with_every_driver(const struct test_case *c)
{
	const struct test_case *inner = c->arg;

	MUST_ERR(0, switch_to(true));
	inner->run(inner);
}

#define CASE(name, run, ...)						\
	{ name, with_every_driver,					\
	  &(const struct test_case){ NULL, run, ##__VA_ARGS__ }, 0, 180 }

static const struct test_case cases[] = {
	CASE("QUERY says that rxe honours GIFT exactly while every_driver is on", query),
	CASE("while it is off GIFT is dropped, and that region is released either way",
	     dropped_when_off),
	CASE("GIFT with a writable access is refused on rxe and leaves nothing behind",
	     writable_refused),
	CASE("a peer on another device reads a gift region of rxe", read_across),
	CASE("a send from a gift region of rxe reaches another device", send_across),
	CASE("a peer on another device cannot write to a gift region of rxe",
	     write_across),
	CASE("a gift region of rxe cannot be made writable", stays_read_only),
	CASE("what is stale is known for a region of rxe as well", stale),
	CASE("regions of rxe and of the sample HCA are counted and listed together",
	     both_listed),
	CASE("it is not switched off while a region lives, and each holds the module",
	     busy),
	CASE("what is no truth value is refused, and what it is already changes nothing",
	     bad_values),
	CASE("ftrace cannot be switched off under it, nor it on without ftrace",
	     ftrace_stays),
	CASE("a process that is killed gives its regions back", killed),
	CASE("it is not switched off while a registration is under way", under_way),
	CASE("a process that is killed while it registers leaves nothing behind",
	     killed_under_way),
	CASE("a link that is deleted while regions live gives them back", link_deleted),
	CASE("it is switched on and off while others register", switched_under_load,
	     NULL, 10),
	CASE("plain registrations are neither counted nor held", plain_untouched),
};

int main(int argc, char **argv)
{
	int ret = test_main(argc, argv, cases, ARRAY_LEN(cases), set_up);

	if (!geteuid() && !access(PARAM, F_OK)) {
		tear_down();
		switch_to(was_on);
	}
	return ret;
}
