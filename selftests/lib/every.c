// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns how every_driver and the rxe devices are set up and put back; see every.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "every.h"

#define DISABLE_DAD(netdev) \
	"sysctl -qw net.ipv6.conf." netdev ".accept_dad=0"

static const char *const up[] = {
	"modprobe rdma_rxe",
	"ip link add giftveth0 type veth peer name giftveth1",
	"ip link add " RXE_C_NETDEV " type dummy",
	DISABLE_DAD("giftveth0"),
	DISABLE_DAD("giftveth1"),
	DISABLE_DAD(RXE_C_NETDEV),
	"ip link set giftveth0 mtu 9000 up",
	"ip link set giftveth1 mtu 9000 up",
	"ip link set " RXE_C_NETDEV " up",
	"rdma link add " RXE_A " type rxe netdev giftveth0",
	"rdma link add " RXE_B " type rxe netdev giftveth1",
};

static const char *const down[] = {
	"rdma link delete " RXE_C,
	"rdma link delete " RXE_B,
	"rdma link delete " RXE_A,
	"ip link delete " RXE_C_NETDEV,
	"ip link delete giftveth0",
};

/* What the program found, and who is to put it back. */
static bool was_on;
static void (*drop_devices)(void);
static pid_t keeper;

bool every_is_on(void)
{
	char c = '?';
	int fd = open(EVERY_PARAM, O_RDONLY | O_CLOEXEC);

	MUST(fd >= 0);
	MUST(read(fd, &c, 1) == 1);
	close(fd);
	return c == 'Y';
}

int every_switch(bool on)
{
	return proc_write(EVERY_PARAM, on ? "1" : "0") ? 0 : errno;
}

static void put_back(void)
{
	int err, tries = 1000;

	if (getpid() != keeper)
		return;
	if (drop_devices)
		drop_devices();
	/* What a case that was killed had is given back in its own time. */
	while ((err = every_switch(was_on)) == EBUSY && tries--)
		test_sleep_ms(10);
	if (!err)
		return;
	test_note("every_driver cannot be put back: %s", test_strerror(err));
	fflush(stdout);
	_exit(1);
}

void every_keep(void (*drop)(void))
{
	was_on = every_is_on();
	drop_devices = drop;
	keeper = getpid();
	MUST(!atexit(put_back));
}

static void tear_down(void)
{
	for (size_t i = 0; i < ARRAY_LEN(down); i++)
		SHELL(down[i]);
}

const char *every_ready(void)
{
	static char reason[160];

	if (geteuid())
		return "needs root, to switch every_driver";
	if (access(EVERY_PARAM, F_OK))
		return "no ib_gift with every_driver";
	if (SHELL("modinfo rdma_rxe"))
		return "this kernel has no rxe";
	every_keep(tear_down);
	tear_down();
	for (size_t i = 0; i < ARRAY_LEN(up); i++) {
		if (SHELL(up[i])) {
			snprintf(reason, sizeof(reason), "failed: %s", up[i]);
			return reason;
		}
	}
	setenv(DEV_ENV, RXE_A, 1);
	if (every_switch(true))
		return "every_driver cannot be switched on";
	return dev_ready();
}

void every_case(const struct test_case *c)
{
	const struct test_case *inner = c->arg;

	MUST_ERR(0, every_switch(true));
	inner->run(inner);
}

int gift_ioctl(unsigned long cmd, void *arg)
{
	int fd = open("/dev/ib_gift", O_RDWR | O_CLOEXEC), err;

	MUST(fd >= 0);
	err = ioctl(fd, cmd, arg) ? errno : 0;
	close(fd);
	return err;
}

long long every_caps(const char *device)
{
	struct ib_gift_query q = {};
	int err;

	snprintf(q.device, sizeof(q.device), "%s", device);
	err = gift_ioctl(IB_GIFT_IOC_QUERY, &q);
	return err ? -err : (long long)q.caps;
}

struct pair every_pair(void)
{
	struct pair p = { .dev = dev_open() };

	p.owner = rc_create(p.dev, NULL);
	p.peer = rc_create(dev_open_name(RXE_B), NULL);
	rc_pair(p.peer, p.owner);
	return p;
}

struct ibv_pd *every_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev_open()->ctx);

	MUST(pd);
	return pd;
}

struct ibv_mr *every_region(struct ibv_pd *pd, struct mem *m)
{
	*m = mem_make(&mem_untouched, EVERY_LENGTH);
	test_fill(m->p + EVERY_LENGTH / 4, EVERY_LENGTH / 4, 3);
	return mr_reg(pd, m->p, EVERY_LENGTH, GIFT_READ);
}
