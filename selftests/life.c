// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Links and modules: made, refused, removed while in use, several at once. How
 * processes end is in kill.c; unloading and loading again in reload.sh.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/link.h"
#include "lib/mem.h"
#include "lib/pair.h"
#include "lib/proc.h"

#define PAGE	4096UL

static void missing_netdev(const struct test_case *c)
{
	char out[256];

	link_need();
	CHECK_BETWEEN(1, rdma_link_add("shcanone", "nosuchnetdev", out, sizeof(out)),
		      126);
	CHECK(strlen(out) > 0);
	CHECK(!dev_exists("shcanone"));
}

static void existing_name(const struct test_case *c)
{
	struct link link;
	char out[256];
	struct dev *dev;

	link_need();
	link = link_new(0);
	CHECK_BETWEEN(1, rdma_link_add(link.name, link.netdev, out, sizeof(out)), 126);
	CHECK(strlen(out) > 0);
	dev = dev_open_name(link.name);
	rc_pair(rc_create(dev, NULL), rc_create(dev, NULL));
	link_drop(&link);
	CHECK(!dev_exists(link.name));
}

static void bad_name(const struct test_case *c)
{
	char name[128], out[256];
	struct link link;

	link_need();
	link = link_new(0);
	memset(name, 'x', 100);
	name[100] = '\0';
	CHECK_BETWEEN(1, rdma_link_add(name, link.netdev, out, sizeof(out)), 126);
	CHECK(!dev_exists(name));
	link_drop(&link);
}

static void any_name(const struct test_case *c)
{
	static const char *const names[] = { "eth", "mlx5_0", "a", "Any.Name-1" };
	struct link link;
	char out[256];

	link_need();
	link = link_new(0);
	MUST_EQ(0, rdma_link_delete(link.name));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		test_context("%s", names[i]);
		MUST_EQ(0, rdma_link_add(names[i], link.netdev, out, sizeof(out)));
		/* The provider knows its device by what it is, not by its name. */
		free(dev_open_name(names[i]));
		MUST_EQ(0, rdma_link_delete(names[i]));
		CHECK(!dev_exists(names[i]));
	}
	link_drop(&link);
}

static void delete_missing(const struct test_case *c)
{
	link_need();
	CHECK(rdma_link_delete("shcanone") != 0);
}

static void add_and_delete(const struct test_case *c)
{
	struct mem m = mem_make(&mem_written, PAGE);
	struct link link;
	/* A region's pages and list, or a ring, left each of 20 times is more. */
	const long long most = 20LL * 16 * KIB;
	long long before;
	char out[256];

	link_need();
	link = link_new(0);
	before = mem_lost();
	for (int i = 0; i < 20; i++) {
		struct dev *dev = dev_open_name(link.name);
		struct rc *rc = rc_create(dev, NULL);
		struct ibv_mr *mr = mr_reg(rc->pd, m.p, PAGE, MR_ALL);

		MUST_ERR(0, ibv_dereg_mr(mr));
		rc_destroy(rc);
		MUST_ERR(0, ibv_close_device(dev->ctx));
		MUST_EQ(0, rdma_link_delete(link.name));
		CHECK(!dev_exists(link.name));
		MUST_EQ(0, rdma_link_add(link.name, link.netdev, out, sizeof(out)));
	}
	CHECK_BETWEEN(-1024LL * MIB, mem_lost_since(before, most), most);
	link_drop(&link);
}

/* Both directions between two devices, and a third beside them. */
static void between_devices(const struct test_case *c)
{
	struct link links[3];
	struct dev *dev[3];
	struct rc *rc[3][3];

	link_need();
	for (int i = 0; i < 3; i++) {
		links[i] = link_new(i);
		dev[i] = dev_open_name(links[i].name);
	}
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			rc[i][j] = rc_create(dev[i], NULL);
	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 3; j++) {
			struct rc *from = rc[i][j], *to = rc[j][i];
			struct ibv_mr *here = mr_new(from->pd, PAGE);
			struct ibv_mr *there = mr_new(to->pd, PAGE);

			if (i == j)
				continue;
			test_context("%s to %s", links[i].name, links[j].name);
			if (i < j)
				rc_pair(from, to);
			test_fill(here->addr, PAGE, i * 3 + j);
			MUST_STATUS(IBV_WC_SUCCESS,
				    do_rdma(from, IBV_WR_RDMA_WRITE, here, here->addr,
					    PAGE, (uintptr_t)there->addr, there->rkey));
			CHECK_BYTES(here->addr, there->addr, PAGE);
			post_recv(to, 4, there, there->addr, PAGE);
			test_fill(here->addr, PAGE, 50 + i * 3 + j);
			MUST_STATUS(IBV_WC_SUCCESS, do_rdma(from, IBV_WR_SEND, here,
							    here->addr, PAGE, 0, 0));
			MUST_WC(cq_next(to->rcq), 4, IBV_WC_SUCCESS);
			CHECK_BYTES(here->addr, there->addr, PAGE);
		}
	}
	for (int i = 0; i < 3; i++) {
		MUST_ERR(0, ibv_close_device(dev[i]->ctx));
		link_drop(&links[i]);
	}
}

/* A key of one device opens nothing on another one. */
static void keys_apart(const struct test_case *c)
{
	struct link link;
	struct dev *one, *two;
	struct rc *a, *b;
	struct ibv_mr *here, *there, *foreign;

	link_need();
	link = link_new(0);
	one = dev_open();
	two = dev_open_name(link.name);
	a = rc_create(one, NULL);
	b = rc_create(one, NULL);
	rc_pair(a, b);
	here = mr_new(a->pd, PAGE);
	there = mr_new(b->pd, PAGE);
	foreign = mr_new(ibv_alloc_pd(two->ctx), PAGE);
	if (foreign->rkey != there->rkey && foreign->rkey != here->rkey)
		CHECK_STATUS(IBV_WC_REM_ACCESS_ERR,
			     do_rdma(a, IBV_WR_RDMA_WRITE, here, here->addr, 64,
				     (uintptr_t)foreign->addr, foreign->rkey));
	else
		CHECK_STATUS(IBV_WC_REM_ACCESS_ERR,
			     do_rdma(a, IBV_WR_RDMA_WRITE, here, here->addr, 64,
				     (uintptr_t)foreign->addr, there->rkey));
	CHECK_EQ(0, *(char *)foreign->addr);
	MUST_ERR(0, ibv_close_device(two->ctx));
	link_drop(&link);
}

/* How the device goes: by command or together with its netdev. */
enum end { LINK_DELETE, NETDEV_DELETE };

static int end_device(const struct link *link, enum end how)
{
	return how == LINK_DELETE ? rdma_link_delete(link->name) :
	       RUN("ip", "link", "delete", link->netdev);
}

/* Everything that a process can have is in use when the device goes. */
static void goes_while_open(const struct test_case *c)
{
	struct link link;
	struct dev *dev;
	struct rc *a, *b;
	struct ibv_mr *mr, *gift;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct mem m;
	struct window w;
	struct ibv_wc wc;
	double start;
	int event;

	link_need();
	link = link_new(0);
	dev = dev_open_name(link.name);
	a = rc_create(dev, NULL);
	b = rc_create(dev, NULL);
	rc_pair(a, b);
	mr = mr_new(a->pd, MIB);
	m = mem_make(&mem_written, MIB);
	gift = mr_reg(a->pd, m.p, m.length, GIFT_READ);
	w = mw_new(a->pd);
	MUST_STATUS(IBV_WC_SUCCESS, mw_bind(a, &w, mr, mr->addr, PAGE,
					    IBV_ACCESS_REMOTE_READ));
	post_recv(a, 1, mr, mr->addr, PAGE);
	post_simple(a, IBV_WR_SEND, 2, NULL, NULL, 0, 0, 0);

	start = test_now();
	CHECK_EQ(0, end_device(&link, c->n));
	CHECK_BETWEEN(0, test_now() - start, 20);
	CHECK(!dev_exists(link.name));
	do {
		event = async_wait(dev->ctx, 10000);
		/* A netdev goes down, and loses its addresses, before it goes. */
	} while (event == IBV_EVENT_PORT_ERR || event == IBV_EVENT_GID_CHANGE);
	CHECK_EQ(IBV_EVENT_DEVICE_FATAL, event);

	/* New objects are refused; the old ones are no trap. */
	CHECK(!ibv_alloc_pd(dev->ctx));
	CHECK(!ibv_reg_mr(a->pd, m.p, PAGE, IBV_ACCESS_LOCAL_WRITE));
	ibv_post_send(a->qp, &wr, &bad);
	for (int i = 0; i < 10; i++)
		ibv_poll_cq(a->scq, 1, &wc);
	MUST_ERR(0, ibv_dereg_mr(gift));
	MUST_ERR(0, ibv_destroy_qp(b->qp));
	MUST_ERR(0, ibv_close_device(dev->ctx));
	CHECK_EQ(0, pinned_vm(0));
	link_drop(&link);
}

/* A peer on another device sees its connection end. */
static void peer_of_gone(const struct test_case *c)
{
	static const struct qp_param impatient = { .timeout = 8, .retry_cnt = 2 };
	struct link link;
	struct dev *here, *gone;
	struct rc *a, *b;
	struct ibv_mr *mr;

	link_need();
	link = link_new(0);
	here = dev_open();
	gone = dev_open_name(link.name);
	a = rc_create(here, &impatient);
	b = rc_create(gone, NULL);
	rc_pair(a, b);
	mr = mr_new(a->pd, PAGE);
	post_recv(b, 1, NULL, NULL, 0);
	MUST_STATUS(IBV_WC_SUCCESS, do_rdma(a, IBV_WR_SEND, NULL, NULL, 0, 0, 0));
	MUST_EQ(0, rdma_link_delete(link.name));
	CHECK_STATUS(IBV_WC_RETRY_EXC_ERR,
		     do_rdma(a, IBV_WR_SEND, mr, mr->addr, 64, 0, 0));
	CHECK_EQ(IBV_QPS_ERR, rc_state(a));
	link_drop(&link);
}

struct sleep {
	struct link link;
	int sock;
};

static void sleeper(void *arg)
{
	struct ibv_async_event event;
	const struct sleep *s = arg;
	struct dev *dev = dev_open_name(s->link.name);
	int flags = fcntl(dev->ctx->async_fd, F_GETFL);

	MUST(!fcntl(dev->ctx->async_fd, F_SETFL, flags & ~O_NONBLOCK));
	MUST(mr_new(ibv_alloc_pd(dev->ctx), PAGE));
	sock_meet(s->sock);
	/* Asleep until there is an event, or for ever. */
	MUST_ERR(0, ibv_get_async_event(dev->ctx, &event));
	CHECK_EQ(IBV_EVENT_DEVICE_FATAL, event.event_type);
	ibv_ack_async_event(&event);
}

static void wakes_sleeper(const struct test_case *c)
{
	struct sleep s;
	int sock[2];
	pid_t pid;

	link_need();
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	s = (struct sleep){ link_new(0), sock[1] };
	pid = test_fork(sleeper, &s);
	sock_meet(sock[0]);
	test_sleep_ms(200);
	CHECK_EQ(0, waitpid(pid, NULL, WNOHANG));
	CHECK_EQ(0, rdma_link_delete(s.link.name));
	test_join(pid);
	link_drop(&s.link);
}

static void port_follows_netdev(const struct test_case *c)
{
	struct ibv_port_attr port;
	struct link link;
	struct dev *dev;

	link_need();
	link = link_new(0);
	dev = dev_open_name(link.name);
	MUST_ERR(0, ibv_query_port(dev->ctx, 1, &port));
	CHECK_EQ(IBV_PORT_ACTIVE, port.state);
	MUST_EQ(0, RUN("ip", "link", "set", link.netdev, "down"));
	CHECK_EQ(IBV_EVENT_PORT_ERR, async_wait(dev->ctx, 10000));
	MUST_ERR(0, ibv_query_port(dev->ctx, 1, &port));
	CHECK_EQ(IBV_PORT_DOWN, port.state);
	MUST_EQ(0, RUN("ip", "link", "set", link.netdev, "up"));
	for (int i = 0; i < 10; i++) {
		int event = async_wait(dev->ctx, 10000);

		/* The addresses go and come with the interface. */
		if (event == IBV_EVENT_GID_CHANGE)
			continue;
		CHECK_EQ(IBV_EVENT_PORT_ACTIVE, event);
		break;
	}
	MUST_ERR(0, ibv_query_port(dev->ctx, 1, &port));
	CHECK_EQ(IBV_PORT_ACTIVE, port.state);
	MUST_ERR(0, ibv_close_device(dev->ctx));
	link_drop(&link);
}

/* Asked as rmmod asks: at once or not at all. */
static int unload(const char *module)
{
	return syscall(SYS_delete_module, module, O_NONBLOCK) ? errno : 0;
}

static void rmmod_in_use(const struct test_case *c)
{
	struct rc *a, *b;
	struct dev *dev;
	int refs;

	link_need();
	if (module_refs("sample_hca") < 0)
		test_skip("sample_hca is built into the kernel");
	refs = module_refs("sample_hca");
	dev = dev_open();
	CHECK_BETWEEN(refs + 1, module_refs("sample_hca"), refs + 10);
	CHECK_ERR(EAGAIN, unload("sample_hca"));
	CHECK_ERR(EAGAIN, unload("ib_gift"));
	CHECK(dev_exists(dev_name()));
	a = rc_create(dev, NULL);
	b = rc_create(dev, NULL);
	rc_pair(a, b);
	/* Rings that are mapped keep the context's file: they go first. */
	rc_destroy(a);
	rc_destroy(b);
	MUST_ERR(0, ibv_close_device(dev->ctx));
	CHECK_EQ(refs, module_refs("sample_hca"));
}

static const struct test_case cases[] = {
	{ "a link on a missing netdev is refused with a message", missing_netdev },
	{ "a link of an existing name is refused and the existing one works",
	  existing_name },
	{ "a link with too long a name is refused", bad_name },
	{ "a link may have any name", any_name },
	{ "the deletion of a missing link is refused", delete_missing },
	{ "links are made, used and removed many times without loss",
	  add_and_delete },
	{ "three devices reach each other", between_devices },
	{ "a region's key opens nothing on another device", keys_apart },
	{ "rdma link delete ends a device in use, and the application is told",
	  goes_while_open, NULL, LINK_DELETE },
	{ "the removal of the netdev ends a device in use, and the application is told",
	  goes_while_open, NULL, NETDEV_DELETE },
	{ "the peer of a removed device exceeds its retries", peer_of_gone },
	{ "a process asleep in ibv_get_async_event learns of the removal",
	  wakes_sleeper },
	{ "the port goes down and up with its netdev", port_follows_netdev },
	{ "modules with a context open are not unloaded", rmmod_in_use },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
