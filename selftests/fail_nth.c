// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Every allocation and every copy from or to the process that an operation needs
 * in the kernel fails once: the operation then fails with an error of its own
 * or does without, leaves nothing behind, and works the next time. For a kernel
 * with fault injection, which is the debug kernel.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/mem.h"
#include "lib/proc.h"
#include "lib/rc.h"
#include "lib/stale.h"

#define NTH		"/proc/thread-self/fail-nth"
#define DEBUG		"/sys/kernel/debug/"

/* More points of failure than any operation here has. */
#define MAX_POINTS	600

/* More than one batch. */
#define LENGTH		(4 * MIB + 5 * 4096)

struct failing;

/* An operation, on what was set up when nothing failed. */
struct operation {
	const char *name;
	void (*prepare)(struct failing *f);
	/*
	 * Calls stop() as soon as the operation is done. 0 or an errno; undo() is
	 * called after 0 only.
	 */
	int (*run)(struct failing *f);
	void (*undo)(struct failing *f);
	unsigned int access;
	unsigned int min_points;	/* fewer: nothing was tested */
	int error;			/* one more that it may give */
};

struct failing {
	const struct operation *op;
	struct dev *dev;
	struct ibv_pd *pd;
	struct rc *rc;
	struct mem mem;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mw *mw;
	struct ibv_context *ctx;
	int nth;			/* file descriptor */
	bool reached;			/* the point, before stop() */
};

/* Every kind of fault, for every allocation, and none of them shown. */
static const char *const settings[][2] = {
	{ DEBUG "failslab/verbose", "0" },
	{ DEBUG "failslab/ignore-gfp-wait", "N" },
	{ DEBUG "fail_page_alloc/verbose", "0" },
	{ DEBUG "fail_page_alloc/ignore-gfp-wait", "N" },
	{ DEBUG "fail_page_alloc/ignore-gfp-highmem", "N" },
	{ DEBUG "fail_page_alloc/min-order", "0" },
	{ DEBUG "fail_usercopy/verbose", "0" },
};

static const char *ready(void)
{
	if (access(NTH, W_OK))
		return "no fault injection in this kernel";
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (!proc_write(settings[i][0], settings[i][1]))
			return settings[i][0];
	return dev_ready();
}

/* To write to the file is a copy as well, which may be the one that fails. */
static void set_nth(struct failing *f, unsigned int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(f->nth, text, length, 0) != length)
		MUST(errno == EFAULT && pwrite(f->nth, text, length, 0) == length);
}

/* Nothing fails from here on. */
static void stop(struct failing *f)
{
	char text[16] = "";
	ssize_t n = pread(f->nth, text, sizeof(text) - 1, 0);

	/* If the read failed, it was the point. */
	MUST(n > 0 || errno == EFAULT);
	f->reached = n > 0 && atoi(text) == 0;
	set_nth(f, 0);
}

/* The errno of what returned a pointer; nothing fails any more. */
static int ended(struct failing *f, const void *p)
{
	int error = errno;

	stop(f);
	return p ? 0 : error;
}

static int reg(struct failing *f)
{
	f->mr = ibv_reg_mr(f->pd, f->mem.p, f->mem.length, f->op->access);
	return ended(f, f->mr);
}

static void dereg(struct failing *f)
{
	MUST_ERR(0, ibv_dereg_mr(f->mr));
}

static void prepare_untouched(struct failing *f)
{
	f->mem = mem_make(&mem_untouched, LENGTH);
}

static void prepare_written(struct failing *f)
{
	f->mem = mem_make(&mem_written, LENGTH);
}

/* Every other page written: as many runs as there can be. */
static void prepare_mixed(struct failing *f)
{
	f->mem = mem_make(&mem_untouched, LENGTH);
	for (size_t at = 0; at < LENGTH; at += 2 * 4096)
		f->mem.p[at] = 1;
}

static void prepare_forked(struct failing *f)
{
	f->mem = mem_make(&mem_forked_parent, LENGTH);
}

static void prepare_file(struct failing *f)
{
	f->mem = mem_make(&mem_private_file, LENGTH);
}

/* The region keeps its keys and its memory when nothing could be taken anew. */
static void prepare_rereg(struct failing *f)
{
	prepare_mixed(f);
	MUST_ERR(0, reg(f));
}

static int rereg(struct failing *f)
{
	uint32_t lkey = f->mr->lkey, rkey = f->mr->rkey;
	int rc, error;

	errno = 0;
	rc = ibv_rereg_mr(f->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			  f->mem.p, f->mem.length, 0);
	error = errno;
	stop(f);
	CHECK_EQ(lkey, f->mr->lkey);
	CHECK_EQ(rkey, f->mr->rkey);
	CHECK_EQ(1, gift_stats().regions);
	if (!rc)
		return 0;
	return error ? error : EIO;
}

static void nothing(struct failing *f)
{
}

static int stale(struct failing *f)
{
	uint64_t bitmap[(LENGTH / 4096 + 63) / 64];
	struct ib_gift_stale query = {
		.addr = (uintptr_t)f->mem.p,
		.length = f->mem.length,
		.bitmap = (uintptr_t)bitmap,
	};
	int fd = open("/dev/ib_gift", O_RDWR | O_CLOEXEC), rc;

	if (fd < 0) {
		rc = errno;
		stop(f);
		return rc;
	}
	rc = ioctl(fd, IB_GIFT_IOC_STALE, &query) ? errno : 0;
	stop(f);
	close(fd);
	if (!rc) {
		CHECK_EQ(f->mem.length / 4096, query.registered);
		CHECK_EQ(0, query.stale);
	}
	return rc;
}

/* Every other page of zeros is registered as such and written to afterwards. */
static void make_stale(struct failing *f)
{
	for (size_t at = 4096; at < LENGTH; at += 2 * 4096) {
		MUST(!madvise(f->mem.p + at, 4096, MADV_DONTNEED));
		(void)*(volatile unsigned char *)(f->mem.p + at);
	}
	refresh(f->mr);
	for (size_t at = 4096; at < LENGTH; at += 2 * 4096)
		f->mem.p[at] = 1;
}

static void prepare_refresh(struct failing *f)
{
	prepare_rereg(f);
	make_stale(f);
}

static int refresh_stale(struct failing *f)
{
	uint64_t retaken = 0;
	int error = provider_refresh(f->mr, f->mem.p, f->mem.length, &retaken);

	stop(f);
	if (!error)
		CHECK_EQ(LENGTH / 4096 / 2, retaken);
	/* All that failed was to say how many. */
	else if (!stale_pages(f->mem.p, f->mem.length))
		make_stale(f);
	return error;
}

static int create_cq(struct failing *f)
{
	f->cq = ibv_create_cq(f->dev->ctx, 100, NULL, NULL, 0);
	return ended(f, f->cq);
}

static void destroy_cq(struct failing *f)
{
	MUST_ERR(0, ibv_destroy_cq(f->cq));
}

static void prepare_qp(struct failing *f)
{
	MUST_ERR(0, create_cq(f));
}

static int create_qp(struct failing *f)
{
	struct ibv_qp_init_attr init = {
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.cap = { .max_send_wr = 100, .max_recv_wr = 100,
			 .max_send_sge = 4, .max_recv_sge = 4 },
		.qp_type = IBV_QPT_RC,
	};

	f->qp = ibv_create_qp(f->pd, &init);
	return ended(f, f->qp);
}

static void destroy_qp(struct failing *f)
{
	MUST_ERR(0, ibv_destroy_qp(f->qp));
}

/* A connection to itself, which takes the address's way through the core. */
static void prepare_connect(struct failing *f)
{
	f->rc = rc_create(f->dev, NULL);
}

static int connect_rc(struct failing *f)
{
	static const enum ibv_qp_state way[] = {
		IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS
	};
	struct rc_addr self = rc_addr(f->rc);

	for (size_t i = 0; i < ARRAY_LEN(way); i++) {
		int rc = rc_modify(f->rc, way[i], &self);

		if (rc) {
			stop(f);
			/* Back to where it began. */
			MUST_ERR(0, rc_modify(f->rc, IBV_QPS_RESET, NULL));
			return rc;
		}
	}
	stop(f);
	return 0;
}

static void reset_rc(struct failing *f)
{
	MUST_ERR(0, rc_modify(f->rc, IBV_QPS_RESET, NULL));
}

static int alloc_mw(struct failing *f)
{
	f->mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_2);
	return ended(f, f->mw);
}

static void dealloc_mw(struct failing *f)
{
	MUST_ERR(0, ibv_dealloc_mw(f->mw));
}

static int alloc_pd(struct failing *f)
{
	struct ibv_pd *pd = ibv_alloc_pd(f->dev->ctx);
	int error = ended(f, pd);

	if (!error)
		MUST_ERR(0, ibv_dealloc_pd(pd));
	return error;
}

static int open_device(struct failing *f)
{
	f->ctx = ibv_open_device(f->dev->ctx->device);
	return ended(f, f->ctx);
}

static void close_device(struct failing *f)
{
	MUST_ERR(0, ibv_close_device(f->ctx));
}

#define GIFT(what, how)							\
	{ "a gift region of " what, how, reg, dereg, GIFT_READ, 8 }

static const struct operation operations[] = {
	GIFT("untouched memory", prepare_untouched),
	GIFT("written memory", prepare_written),
	GIFT("memory of which every other page is written", prepare_mixed),
	GIFT("memory shared by fork", prepare_forked),
	GIFT("a private file", prepare_file),
	{ "a plain region", prepare_written, reg, dereg, MR_ALL, 8 },
	{ "a gift region registered again", prepare_rereg, rereg, nothing,
	  GIFT_READ, 8 },
	{ "a gift region refreshed", prepare_refresh, refresh_stale, make_stale,
	  GIFT_READ, 8 },
	{ "asking what is stale", prepare_rereg, stale, nothing, GIFT_READ, 3 },
	{ "a completion queue", nothing, create_cq, destroy_cq, 0, 8 },
	{ "a queue pair", prepare_qp, create_qp, destroy_qp, 0, 8 },
	{ "a connection", prepare_connect, connect_rc, reset_rc, 0, 3 },
	{ "a memory window", nothing, alloc_mw, dealloc_mw, 0, 3 },
	{ "a protection domain", nothing, alloc_pd, nothing, 0, 3 },
	/* libibverbs looks for the node in other ways when it cannot open it. */
	{ "an opened device", nothing, open_device, close_device, 0, 8, ENOENT },
};

/* What a process has that an operation could leave behind. */
struct account {
	long long pinned_vm;
	long long pins;
	long long regions;
};

static struct account account(void)
{
	return (struct account){
		.pinned_vm = pinned_vm(0),
		.pins = pins_now(),
		.regions = gift_stats().regions,
	};
}

static bool error_expected(int error)
{
	switch (error) {
	case ENOMEM:	/* an allocation failed */
	case EFAULT:	/* a copy, or a page that could not be faulted in */
	case EAGAIN:
	case EMFILE:
	case ENFILE:
		return true;
	default:
		return false;
	}
}

static void every_point(const struct test_case *c)
{
	struct failing f = { .op = &operations[c->n] };
	unsigned int n, failed = 0;
	struct account before, after;

	f.dev = dev_open();
	f.pd = ibv_alloc_pd(f.dev->ctx);
	MUST(f.pd);
	f.nth = open(NTH, O_RDWR | O_CLOEXEC);
	MUST(f.nth >= 0);
	f.op->prepare(&f);
	/* Once without a failure, so that what is done only once is done. */
	MUST_ERR(0, f.op->run(&f));
	f.op->undo(&f);
	before = account();

	for (n = 1; n <= MAX_POINTS; n++) {
		int error;

		test_context("point %u", n);
		set_nth(&f, n);
		error = f.op->run(&f);
		if (!error)
			f.op->undo(&f);
		else if (error != f.op->error && !error_expected(error))
			test_fail(__FILE__, __LINE__,
				  "%s: expected ENOMEM or EFAULT, got %s",
				  f.op->name, test_strerror(error));
		failed += !!error;

		after = account();
		CHECK_EQ(before.pinned_vm, after.pinned_vm);
		CHECK_EQ(before.pins, after.pins);
		CHECK_EQ(before.regions, after.regions);
		if (!f.reached || test_failed())
			break;
	}
	test_context("%s", "");
	test_note("%u points, %u made it fail", n - 1, failed);
	CHECK_BETWEEN(f.op->min_points, n - 1, MAX_POINTS - 1);
	CHECK_BETWEEN(1, failed, n);
}

int main(int argc, char **argv)
{
	static struct test_case cases[ARRAY_LEN(operations)];
	static char names[ARRAY_LEN(operations)][128];

	for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
		snprintf(names[i], sizeof(names[i]),
			 "%s: whatever fails, nothing is left behind",
			 operations[i].name);
		cases[i] = (struct test_case){
			.name = names[i], .run = every_point, .n = i
		};
	}
	return test_main(argc, argv, cases, ARRAY_LEN(cases), ready);
}
