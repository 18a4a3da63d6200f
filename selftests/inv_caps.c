// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Send with invalidate between drivers and providers of different times: each of
 * the two as it is now and as one that does not know it. What a program is told,
 * what its queue pairs are granted, and that what cannot be done is an error and
 * never a plain send. Loads the driver again; leaves it and its link as they were.
 *
 * The old driver is this one with send_with_invalidate=0. The old provider is built
 * beside this one, in the folder "old"; SHCA_OLD_PROVIDER names that elsewhere.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "lib/link.h"
#include "lib/proc.h"
#include "lib/raw.h"
#include "lib/ways.h"

#define DRIVERS		"/etc/libibverbs.d"
#define PARAMETER	"/sys/module/sample_hca/parameters/send_with_invalidate"
#define SEND_W_INV	IBV_DEVICE_MEM_MGT_EXTENSIONS
#define KERNEL_SEND_W_INV 0x10000

enum { OLD = 0, NEW_DRIVER = 1, NEW_PROVIDER = 2, BOTH = 3 };

/* The first line of a file, or of what a command prints. */
static bool first_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "r");
	bool ok = f && fgets(line, size, f);

	if (f)
		fclose(f);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

static void netdev_of(const char *name, char *netdev, size_t size)
{
	char port[80], out[512], *at;

	snprintf(port, sizeof(port), "%s/1", name);
	MUST_EQ(0, run_output(out, sizeof(out), (const char *const[]){
		"rdma", "link", "show", port, NULL }));
	at = strstr(out, " netdev ");
	MUST(at && sscanf(at, " netdev %31s", netdev) == 1 && size > 31);
}

/* The address by which the others are reached is there a moment after the link. */
static void wait_for_gid(const char *name)
{
	char path[128], gid[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gids/1", name);
	for (int i = 0; i < 500; i++) {
		if (first_line(path, gid, sizeof(gid)) && strspn(gid, "0:") != strlen(gid))
			return;
		test_sleep_ms(10);
	}
	MUST(!"a GID");
}

static void insert(bool new)
{
	const char *parameter = new ? "send_with_invalidate=1" : "send_with_invalidate=0";
	char dir[256], path[300];

	if (first_line("/run/gift-modules", dir, sizeof(dir))) {
		snprintf(path, sizeof(path), "%s/sample_hca.ko", dir);
		MUST_EQ(0, RUN("insmod", path, parameter));
	} else {
		MUST_EQ(0, RUN("modprobe", "sample_hca", parameter));
	}
}

static void need_driver(bool new)
{
	char netdev[32], value[16], out[256];

	link_need();
	MUST(first_line(PARAMETER, value, sizeof(value)));
	if ((value[0] == 'Y') == new)
		return;
	netdev_of(dev_name(), netdev, sizeof(netdev));
	MUST_EQ(0, RUN("rmmod", "sample_hca"));
	insert(new);
	MUST_EQ(0, rdma_link_add(dev_name(), netdev, out, sizeof(out)));
	wait_for_gid(dev_name());
}

static void old_provider(char *dir, size_t size)
{
	const char *named = getenv("SHCA_OLD_PROVIDER");
	char exe[256], path[512];
	ssize_t n;

	if (named) {
		snprintf(dir, size, "%s", named);
	} else {
		n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
		MUST(n > 0);
		exe[n] = '\0';
		*strrchr(exe, '/') = '\0';
		snprintf(dir, size, "%s/../userspace/old", exe);
	}
	snprintf(path, sizeof(path), "%s/libsample_hca.so.1", dir);
	if (access(path, R_OK))
		test_skip("no %s: make userspace, or set SHCA_OLD_PROVIDER", path);
}

/* In this process alone libibverbs finds the old one. */
static void need_provider(bool new)
{
	char dir[400], line[500], conf[] = "/tmp/shca-XXXXXX", file[64];
	int fd;

	if (new)
		return;
	old_provider(dir, sizeof(dir));
	MUST(!unshare(CLONE_NEWNS));
	MUST(!mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	MUST(mkdtemp(conf));
	MUST(!mount("none", conf, "tmpfs", 0, NULL));
	snprintf(file, sizeof(file), "%s/sample_hca.driver", conf);
	snprintf(line, sizeof(line), "driver %s/libsample_hca\n", dir);
	fd = open(file, O_WRONLY | O_CREAT, 0644);
	MUST(fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line));
	close(fd);
	MUST(!mount(conf, DRIVERS, NULL, MS_BIND, NULL));
	MUST(!umount(conf) && !rmdir(conf));
}

static bool mapped(const char *name)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	bool found = false;

	MUST(f);
	while (fgets(line, sizeof(line), f))
		found |= !!strstr(line, name);
	fclose(f);
	return found;
}

static struct dev *dev_of(const struct test_case *c)
{
	struct dev *dev;

	need_driver(c->n & NEW_DRIVER);
	need_provider(c->n & NEW_PROVIDER);
	dev = dev_open();
	/* What was asked for is what is here. */
	CHECK_EQ(!(c->n & NEW_PROVIDER), mapped("/old/libsample_hca"));
	return dev;
}

static uint64_t shca_caps(struct dev *dev)
{
	/* By its soname: libibverbs has loaded the provider by another. */
	void *lib = dlopen("libsample_hca.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*query_caps)(struct ibv_context *context, uint64_t *caps);
	uint64_t caps = ~0ULL;

	MUST(lib);
	query_caps = (typeof(query_caps))dlsym(lib, "shca_query_caps");
	MUST(query_caps);
	CHECK_ERR(0, query_caps(dev->ctx, &caps));
	return caps;
}

/*
 * A stock libibverbs hands on the driver's bit, whatever the provider does: there
 * shca_query_caps() and ibv_create_qp_ex() know better. One with the gate, which
 * moves that bit, gives it back only if both can.
 */
static void says(const struct test_case *c)
{
	struct dev *dev = dev_of(c);
	struct ibv_device_attr_ex ex;
	unsigned int flags = dev->attr.device_cap_flags;
	bool gate = flags & KERNEL_SEND_W_INV;

	CHECK_EQ(gate ? c->n == BOTH : !!(c->n & NEW_DRIVER), !!(flags & SEND_W_INV));
	if (gate)
		CHECK(c->n & NEW_DRIVER);
	MUST_ERR(0, ibv_query_device_ex(dev->ctx, NULL, &ex));
	CHECK_EQ(flags, ex.orig_attr.device_cap_flags);
	CHECK_EQ(flags & (SEND_W_INV | KERNEL_SEND_W_INV),
		 ex.device_cap_flags_ex & (SEND_W_INV | KERNEL_SEND_W_INV));
	CHECK_EQ(SHCA_CAP_GIFT | (c->n == BOTH ? SHCA_CAP_SEND_W_INV : 0),
		 shca_caps(dev));
}

static void grants(const struct test_case *c)
{
	struct dev *dev = dev_of(c);
	struct rc *rc = rc_create(dev, NULL);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = rc->scq, .recv_cq = rc->rcq, .qp_type = IBV_QPT_RC,
		.cap = { 8, 8, 1, 1, 0 }, .pd = rc->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV,
	};

	/* What has nothing to do with it is there in any case. */
	MUST(ibv_create_qp_ex(dev->ctx, &attr));
	attr.send_ops_flags |= IBV_QP_EX_WITH_SEND_WITH_INV;
	if (c->n == BOTH)
		MUST(ibv_create_qp_ex(dev->ctx, &attr));
	else
		CHECK_NULL_ERRNO(EOPNOTSUPP, ibv_create_qp_ex(dev->ctx, &attr));
}

/* Posted this way it works, or it is this error and nothing is sent. */
static void post_inv(struct stage *s, enum way by, int expected)
{
	struct window w = mw_new(s->p.owner->pd);
	struct ibv_sge sge = SGE(s->here, s->here->addr, 32);
	struct ibv_send_wr *bad, wr = {
		.wr_id = 4, .opcode = IBV_WR_SEND_WITH_INV, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	test_context("%s", way_names[by]);
	MUST_STATUS(IBV_WC_SUCCESS, mw_bind(s->p.owner, &w, s->there, s->there->addr,
					    64, QP_REMOTE_ALL));
	wr.invalidate_rkey = w.rkey;
	post_recv(s->p.owner, 5, s->there, (char *)s->there->addr + 4096, 64);
	CHECK_ERR(expected, way_post(s->p.peer, by, &wr, &bad));
	if (!expected) {
		MUST_WC(cq_next(s->p.peer->scq), 4, IBV_WC_SUCCESS);
		wc = cq_next(s->p.owner->rcq);
		MUST_WC(wc, 5, IBV_WC_SUCCESS);
		CHECK_EQ(IBV_WC_WITH_INV, wc.wc_flags);
		CHECK_EQ(w.rkey, wc.invalidated_rkey);
		return;
	}
	CHECK(bad == &wr);
	CHECK(cq_quiet(s->p.owner->rcq, 50));
	CHECK(cq_quiet(s->p.peer->scq, 0));
	/* Both ends work, and the window is what it was. */
	CHECK_EQ(IBV_QPS_RTS, rc_state(s->p.peer));
	CHECK_EQ(IBV_QPS_RTS, rc_state(s->p.owner));
	CHECK_STATUS(IBV_WC_SUCCESS, mw_local_inv(s->p.owner, w.rkey));
	wr.opcode = IBV_WR_SEND;
	CHECK_ERR(0, way_post(s->p.peer, by, &wr, &bad));
	MUST_WC(cq_next(s->p.peer->scq), 4, IBV_WC_SUCCESS);
	MUST_WC(cq_next(s->p.owner->rcq), 5, IBV_WC_SUCCESS);
}

static void posts(const struct test_case *c)
{
	struct stage s;

	dev_of(c);
	s = stage_new();
	post_inv(&s, BY_OPCODE, c->n == BOTH ? 0 : EOPNOTSUPP);
	post_inv(&s, BY_FLAG, c->n == BOTH ? 0 : EOPNOTSUPP);
	/* Past the provider it is the driver's matter alone. */
	post_inv(&s, BY_COMMAND, c->n & NEW_DRIVER ? 0 : EINVAL);
}

/* A provider that writes one to the ring all the same. */
static void written(const struct test_case *c)
{
	struct stage s;
	struct window w;
	struct shca_send_wqe *wqe;
	struct ibv_send_wr wr = { .wr_id = 0x5e17d, .opcode = IBV_WR_SEND };

	dev_of(c);
	s = stage_new();
	w = mw_new(s.p.owner->pd);
	MUST_STATUS(IBV_WC_SUCCESS, mw_bind(s.p.owner, &w, s.there, s.there->addr, 64,
					    QP_REMOTE_ALL));
	post_recv(s.p.owner, 5, NULL, NULL, 0);
	post_in_sqd(&s, &wr);
	wqe = find_entry(wr.wr_id);
	wqe->opcode = SHCA_WR_SEND_WITH_INV;
	wqe->invalidate_rkey = w.rkey;
	let_go(&s);
	if (c->n & NEW_DRIVER) {
		MUST_WC(cq_next(s.p.peer->scq), wr.wr_id, IBV_WC_SUCCESS);
		MUST_WC(cq_next(s.p.owner->rcq), 5, IBV_WC_SUCCESS);
		return;
	}
	MUST_WC(cq_next(s.p.peer->scq), wr.wr_id, IBV_WC_LOC_QP_OP_ERR);
	CHECK(cq_quiet(s.p.owner->rcq, 50));
	CHECK_STATUS(IBV_WC_SUCCESS, mw_local_inv(s.p.owner, w.rkey));
}

static void as_before(const struct test_case *c)
{
	struct dev *dev;

	need_driver(true);
	dev = dev_open();
	CHECK(dev->attr.device_cap_flags & SEND_W_INV);
	CHECK(shca_caps(dev) & SHCA_CAP_SEND_W_INV);
}

#define COMBINATION(names, n)						\
	{ names ": what the device says", says, NULL, n },		\
	{ names ": what ibv_create_qp_ex grants", grants, NULL, n },	\
	{ names ": what is posted is carried out or an error", posts, NULL, n }

static const struct test_case cases[] = {
	COMBINATION("new driver and new provider", BOTH),
	COMBINATION("new driver and old provider", NEW_DRIVER),
	{ "new driver: one that is written to the ring is carried out", written, NULL,
	  BOTH },
	COMBINATION("old driver and old provider", OLD),
	COMBINATION("old driver and new provider", NEW_PROVIDER),
	{ "old driver: one that is written to the ring is an error", written, NULL,
	  NEW_PROVIDER },
	{ "the driver is loaded again as it was", as_before },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_present);
}
