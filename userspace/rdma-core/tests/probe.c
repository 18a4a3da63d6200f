/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * probe DEVICE WHAT [ARGUMENT]: one line about what the libibverbs and the provider
 * that are in use say and do. Judges nothing: scripts/check-rdma-core knows what
 * the answer has to be. Runs with the patched libraries and with stock ones.
 */
#define _GNU_SOURCE
#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <ccan/array_size.h>
#include <infiniband/driver.h>
#include <infiniband/verbs.h>

#define GID_INDEX 1
#define SIZE      4096

static struct ibv_context *ctx;
static unsigned int commands; /* sent to the device */

/*
 * Both stand before libc's, so that libibverbs' commands are counted. With
 * PROBE_NO_IOCTL the kernel has no ioctls for verbs, as kernels before 4.20.
 */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (_IOC_TYPE(request) == RDMA_IOCTL_MAGIC && getenv("PROBE_NO_IOCTL")) {
		errno = ENOTTY;
		return -1;
	}
	if (ctx && fd == ctx->cmd_fd)
		commands++;
	return syscall(SYS_ioctl, fd, request, arg);
}

ssize_t write(int fd, const void *buf, size_t count)
{
	if (ctx && fd == ctx->cmd_fd)
		commands++;
	return syscall(SYS_write, fd, buf, count);
}

static void die(const char *what)
{
	printf("failed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static const char *error_name(int error)
{
	return error ? strerrorname_np(error < 0 ? -error : error) : "ok";
}

/* The two bits that the gate is about. */
static const char *bits(uint64_t flags)
{
	bool kernel = flags & IBV_DEVICE_KERNEL_SEND_W_INV;
	bool device = flags & IBV_DEVICE_SEND_W_INV;

	return kernel && device ? "16+21" : kernel ? "16" : device ? "21" : "-";
}

static int caps(void)
{
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr attr;

	if (ibv_query_device(ctx, &attr) || ibv_query_device_ex(ctx, NULL, &ex))
		die("query");
	printf("%s %s %s\n", bits(attr.device_cap_flags), bits(ex.orig_attr.device_cap_flags),
	       bits(ex.device_cap_flags_ex));
	return 0;
}

static int gift(void)
{
	struct ibv_device_attr_ex ex;

	if (ibv_query_device_ex(ctx, NULL, &ex))
		die("query");
	printf("%s\n", ex.device_cap_flags_ex & IBV_DEVICE_GIFT ? "yes" : "no");
	return 0;
}

static struct ibv_pd *alloc_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	if (!pd)
		die("alloc_pd");
	return pd;
}

static void *alloc_memory(void)
{
	void *addr = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (addr == MAP_FAILED)
		die("mmap");
	return addr;
}

/* How a registration ends, and how many commands it took. */
static int reg(int access, bool iova)
{
	struct ibv_pd *pd = alloc_pd();
	void *addr = alloc_memory();
	struct ibv_mr *mr;

	commands = 0;
	errno = 0;
	mr = iova ? ibv_reg_mr_iova(pd, addr, SIZE, 0, access) : ibv_reg_mr(pd, addr, SIZE, access);
	printf("%s %u\n", mr ? "ok" : error_name(errno), commands);
	if (mr)
		ibv_dereg_mr(mr);
	return 0;
}

/* The symbol that programs have which were built before optional flags. */
static int reg_old(int access)
{
	struct ibv_mr *(*old)(struct ibv_pd * pd, void *addr, size_t length, int access);
	struct ibv_pd *pd = alloc_pd();
	void *addr = alloc_memory();
	struct ibv_mr *mr;

	old = (typeof(old))dlvsym(RTLD_DEFAULT, "ibv_reg_mr", "IBVERBS_1.1");
	if (!old)
		die("dlvsym");
	commands = 0;
	errno = 0;
	mr = old(pd, addr, SIZE, access);
	printf("%s %u\n", mr ? "ok" : error_name(errno), commands);
	return 0;
}

static int rereg(int access)
{
	struct ibv_pd *pd = alloc_pd();
	struct ibv_mr *mr = ibv_reg_mr(pd, alloc_memory(), SIZE, IBV_ACCESS_LOCAL_WRITE);
	int ret;

	if (!mr)
		die("reg_mr");
	commands = 0;
	errno = 0;
	ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, pd, NULL, 0, access);
	printf("%d %s %u\n", ret, error_name(errno), commands);
	return 0;
}

/* Memory that is no process memory: straight to the commands, for want of a device. */
static int reg_other(int access, bool dmabuf)
{
	struct ibv_pd *pd = alloc_pd();
	struct verbs_mr mr = {};
	struct verbs_dm dm = {};
	int ret;

	commands = 0;
	if (dmabuf)
		ret = ibv_cmd_reg_dmabuf_mr(pd, 0, SIZE, 0, -1, access, &mr, NULL);
	else
		ret = ibv_cmd_reg_dm_mr(pd, &dm, 0, SIZE, access | IBV_ACCESS_ZERO_BASED, &mr,
					NULL);
	printf("%s %u\n", error_name(ret), commands);
	return 0;
}

struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *cq, uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};

	if (send_ops) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = send_ops;
	}
	return ibv_create_qp_ex(ctx, &attr);
}

/* Whether the provider grants a QP with ibv_wr_send_inv(). */
static int grant(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp;

	if (!cq)
		die("create_cq");
	qp = create_qp(alloc_pd(), cq, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV);
	printf("%s\n", qp ? "granted" : error_name(errno));
	return 0;
}

static void connect(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr =
			{
				.is_global = 1,
				.port_num = 1,
				.grh = {.sgid_index = GID_INDEX, .hop_limit = 1},
			},
	};
	if (ibv_query_gid(ctx, 1, GID_INDEX, &attr.ah_attr.grh.dgid))
		die("query_gid");
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 12,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("RTS");
}

/* The next completion within so many seconds, or none. */
static bool poll_cq(struct ibv_cq *cq, struct ibv_wc *wc, int seconds)
{
	time_t end = time(NULL) + seconds;
	int ret;

	do {
		ret = ibv_poll_cq(cq, 1, wc);
		if (ret < 0)
			die("poll_cq");
		if (ret)
			return true;
		usleep(1000);
	} while (time(NULL) <= end);
	return false;
}

static const struct way {
	const char *name;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	bool through_kernel;
} ways[] = {
	{"opcode", IBV_WR_SEND_WITH_INV, 0, false},
	{"flag", IBV_WR_SEND, IBV_SEND_INVALIDATE, false},
	{"flag+imm", IBV_WR_SEND_WITH_IMM, IBV_SEND_INVALIDATE, false},
	{"kernel-opcode", IBV_WR_SEND_WITH_INV, 0, true},
	{"kernel-flag", IBV_WR_SEND, IBV_SEND_INVALIDATE, true},
	{"kernel-flag+imm", IBV_WR_SEND_WITH_IMM, IBV_SEND_INVALIDATE, true},
};

/*
 * Bind a window, send with invalidate by its key: how the post ends, how the send
 * and the receive complete, what the receiver is told.
 */
static int send_inv(const struct way *way)
{
	struct ibv_send_wr *bad_send = NULL;
	struct ibv_recv_wr *bad_recv;
	struct ibv_pd *pd = alloc_pd();
	struct end end[2] = {};
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_wc wc;
	uint32_t key;
	int ret;
	int i;

	mr = ibv_reg_mr(pd, alloc_memory(), SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	if (!mr)
		die("reg_mr");
	for (i = 0; i < 2; i++) {
		end[i].cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
		if (!end[i].cq)
			die("create_cq");
		end[i].qp = create_qp(pd, end[i].cq, 0);
		if (!end[i].qp)
			die("create_qp");
	}
	for (i = 0; i < 2; i++)
		connect(end[i].qp, end[1 - i].qp->qp_num);

	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	if (!mw)
		die("alloc_mw");
	key = ibv_inc_rkey(mw->rkey);
	struct ibv_send_wr bind = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw =
			{
				.mw = mw,
				.rkey = key,
				.bind_info =
					{
						.mr = mr,
						.addr = (uintptr_t)mr->addr,
						.length = SIZE,
						.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
					},
			},
	};
	ret = ibv_post_send(end[1].qp, &bind, &bad_send);
	if (ret || !poll_cq(end[1].cq, &wc, 5) || wc.status)
		die("bind_mw");

	struct ibv_sge sge = {.addr = (uintptr_t)mr->addr, .length = 64, .lkey = mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr send = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = way->opcode,
		.send_flags = IBV_SEND_SIGNALED | way->flags,
		.invalidate_rkey = key,
	};
	if (ibv_post_recv(end[1].qp, &recv, &bad_recv))
		die("post_recv");
	ret = way->through_kernel ? ibv_cmd_post_send(end[0].qp, &send, &bad_send)
				  : ibv_post_send(end[0].qp, &send, &bad_send);
	printf("post %s", error_name(ret));
	if (ret && bad_send != &send)
		printf(" (another request is named)");
	if (!ret)
		printf(", send %s",
		       poll_cq(end[0].cq, &wc, 10) ? ibv_wc_status_str(wc.status) : "not complete");
	if (!poll_cq(end[1].cq, &wc, ret ? 1 : 10))
		printf(", nothing received\n");
	else if (wc.status)
		printf(", receive %s\n", ibv_wc_status_str(wc.status));
	else
		printf(", received%s%s\n", wc.wc_flags & IBV_WC_WITH_INV ? " with inv" : "",
		       !(wc.wc_flags & IBV_WC_WITH_INV) ? ""
		       : wc.invalidated_rkey == key     ? " of the key"
							: " of another key");
	return 0;
}

static const struct {
	const char *name;
	unsigned int flag;
} accesses[] = {
	{"gift", IBV_ACCESS_GIFT},
	{"read", IBV_ACCESS_REMOTE_READ},
	{"local", IBV_ACCESS_LOCAL_WRITE},
	{"write", IBV_ACCESS_REMOTE_WRITE},
	{"atomic", IBV_ACCESS_REMOTE_ATOMIC},
	{"bind", IBV_ACCESS_MW_BIND},
	{"odp", IBV_ACCESS_ON_DEMAND},
	{"relaxed", IBV_ACCESS_RELAXED_ORDERING},
};

static int parse_access(char *words)
{
	unsigned int access = 0;
	char *word;
	size_t i;

	for (word = strtok(words, "+"); word; word = strtok(NULL, "+")) {
		for (i = 0; i < ARRAY_SIZE(accesses); i++)
			if (!strcmp(word, accesses[i].name))
				break;
		if (i == ARRAY_SIZE(accesses))
			die(word);
		access |= accesses[i].flag;
	}
	return access;
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	if (!list)
		die("get_device_list");
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			break;
	if (!list[i]) {
		printf("failed: no device %s\n", name);
		exit(1);
	}
	ctx = ibv_open_device(list[i]);
	if (!ctx)
		die("open_device");
	ibv_free_device_list(list);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	size_t i;

	if (argc > 2)
		open_device(argv[1]);
	if (!strcmp(what, "caps"))
		return caps();
	if (!strcmp(what, "gift"))
		return gift();
	if (!strcmp(what, "grant"))
		return grant();
	if (argc > 3 && !strcmp(what, "reg"))
		return reg(parse_access(argv[3]), false);
	if (argc > 3 && !strcmp(what, "reg-iova"))
		return reg(parse_access(argv[3]), true);
	if (argc > 3 && !strcmp(what, "reg-old"))
		return reg_old(parse_access(argv[3]));
	if (argc > 3 && (!strcmp(what, "reg-dm") || !strcmp(what, "reg-dmabuf")))
		return reg_other(parse_access(argv[3]), !strcmp(what, "reg-dmabuf"));
	if (argc > 3 && !strcmp(what, "rereg"))
		return rereg(parse_access(argv[3]));
	for (i = 0; argc > 3 && !strcmp(what, "send") && i < ARRAY_SIZE(ways); i++)
		if (!strcmp(argv[3], ways[i].name))
			return send_inv(&ways[i]);
	fprintf(stderr,
		"usage: probe DEVICE "
		"caps|gift|grant|reg|reg-iova|reg-old|reg-dm|reg-dmabuf|rereg|send [ARGUMENT]\n");
	return 2;
}
