// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a person sees of gift regions: tracepoints, counters, the list in debugfs
 * and `rdma resource show mr`. Each is compared with a region whose pages are
 * known.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/link.h"
#include "lib/mem.h"
#include "lib/pair.h"
#include "lib/proc.h"
#include "lib/stale.h"

#ifndef PAGE
#define PAGE	4096UL
#endif
#define MISC	"/sys/class/misc/ib_gift/"
#define TRACING	"/sys/kernel/tracing/"
#define DEBUGFS	"/sys/kernel/debug/"
#define LIST	DEBUGFS "ib_gift/regions"

/* Names of the kinds, as the tracepoints, the list and the counters have them. */
static const struct {
	const char *trace, *list, *counter, *resource;
} names[IB_GIFT_PAGE_KINDS] = {
	[IB_GIFT_PAGE_PINNED] = { "pinned", "pinned", "pages_pinned",
				  "drv_pages_pinned" },
	[IB_GIFT_PAGE_ZERO] = { "zero", "zero", "pages_held_zero", "drv_pages_zero" },
	[IB_GIFT_PAGE_HUGE_ZERO] = { "huge_zero", "huge_zero",
				     "pages_held_huge_zero", "drv_pages_huge_zero" },
	[IB_GIFT_PAGE_KSM] = { "ksm", "ksm", "pages_held_ksm", "drv_pages_ksm" },
	[IB_GIFT_PAGE_SHARED] = { "shared", "shared", "pages_held_shared",
				  "drv_pages_shared" },
	[IB_GIFT_PAGE_FILE] = { "file", "file", "pages_held_file", "drv_pages_file" },
};

struct region {
	unsigned char *p;
	size_t length;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	unsigned char *zeros;		/* four pages of them */
	unsigned long long pages[IB_GIFT_PAGE_KINDS];
};

/* A region of pages of each kind, of each another number: none is taken for another. */
static struct region region_new(void)
{
	struct mem m = mem_make(&mem_mixed, 0);
	struct region r = { .p = m.p + 16, .length = m.length - 32 };

	for (int i = 0; i < IB_GIFT_PAGE_KINDS; i++) {
		r.pages[i] = mem_taken(&m, i);
		MUST(r.pages[i] > 4);
		for (int j = 0; j < i; j++)
			MUST(r.pages[i] != r.pages[j]);
	}
	for (size_t i = 0; i < m.nr_parts && !r.zeros; i++)
		if (m.parts[i].kind == &mem_untouched)
			r.zeros = m.parts[i].p;
	MUST(r.zeros);
	r.ctx = dev_open()->ctx;
	r.pd = ibv_alloc_pd(r.ctx);
	MUST(r.pd);
	return r;
}

static void region_take(struct region *r)
{
	r->mr = mr_reg(r->pd, r->p, r->length, GIFT_READ);
}

/* Four pages more are owned and pinned, and as many fewer held. */
static void region_refresh(struct region *r)
{
	memset(r->zeros, 1, 3 * PAGE + 1);
	MUST_EQ(4, refresh(r->mr));
	r->pages[IB_GIFT_PAGE_PINNED] += 4;
	r->pages[IB_GIFT_PAGE_ZERO] -= 4;
}

static char *read_file(const char *path)
{
	size_t size = 1 << 20, length = 0;
	char *text = malloc(size);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		test_skip("cannot open %s: %s", path, test_strerror(errno));
	MUST(text);
	while ((n = read(fd, text + length, size - 1 - length)) > 0)
		length += n;
	close(fd);
	text[length] = '\0';
	return text;
}

/* The number behind "NAME=" in a line; -1 when there is none. */
static long long field(const char *line, const char *name, int base)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), " %s=", name);
	at = strstr(line, key);
	return at ? strtoll(at + strlen(key), NULL, base) : -1;
}

/* The nth line of an event in the trace, in memory of its own; NULL: no such. */
static char *trace_line(const char *event, int nth)
{
	char *text = read_file(TRACING "trace"), *line, *save;
	char key[64];

	snprintf(key, sizeof(key), ": %s: ", event);
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (strstr(line, key) && !nth--)
			return line;
	return NULL;
}

static void check_line(const struct region *r, const char *event, int nth,
		       const unsigned long long *pages)
{
	char *line = trace_line(event, nth), device[80];

	test_context("%s %d", event, nth);
	MUST(line);
	snprintf(device, sizeof(device), " device=%s ", dev_name());
	CHECK(strstr(line, device));
	CHECK_EQ(getpid(), field(line, "pid", 10));
	CHECK_EQ((uintptr_t)r->p, field(line, "addr", 16));
	CHECK_EQ(r->length, field(line, "length", 10));
	for (int i = 0; i < IB_GIFT_PAGE_KINDS; i++)
		CHECK_EQ(pages[i], field(line, names[i].trace, 10));
	/* No registration takes no time, or a day. */
	CHECK_BETWEEN(1, field(line, "ns", 10), 86400LL * 1000000000);
	if (test_failed())
		test_note("%s", line);
}

static void trace_on(void)
{
	if (access(TRACING "events", F_OK))
		mount("none", TRACING, "tracefs", 0, NULL);
	if (access(TRACING "events/ib_gift", F_OK))
		test_skip("no tracepoints in this kernel");
	MUST(proc_write(TRACING "trace", "\n"));
	MUST(proc_write(TRACING "events/ib_gift/enable", "1"));
	MUST(proc_write(TRACING "tracing_on", "1"));
}

static void tracepoints(const struct test_case *c)
{
	const unsigned long long four[IB_GIFT_PAGE_KINDS] = {
		[IB_GIFT_PAGE_PINNED] = 4,
	};
	const unsigned long long replaced[IB_GIFT_PAGE_KINDS] = {
		[IB_GIFT_PAGE_ZERO] = 4,
	};
	struct region r = region_new();
	unsigned long long first[IB_GIFT_PAGE_KINDS];

	trace_on();
	region_take(&r);
	memcpy(first, r.pages, sizeof(first));
	region_refresh(&r);
	/* Nothing to be taken again, and what fails: no event. */
	CHECK_EQ(0, refresh(r.mr));
	CHECK_NULL_ERRNO(EFAULT, ibv_reg_mr(r.pd, NULL, PAGE, GIFT_READ));
	MUST_ERR(0, ibv_dereg_mr(r.mr));
	/* A plain region is none of this. */
	MUST_ERR(0, ibv_dereg_mr(mr_new(r.pd, 4 * PAGE)));
	MUST(proc_write(TRACING "events/ib_gift/enable", "0"));

	check_line(&r, "umem_get", 0, first);
	check_line(&r, "umem_refresh", 0, four);
	/* What the refresh has replaced, and then all. */
	check_line(&r, "umem_release", 0, replaced);
	check_line(&r, "umem_release", 1, r.pages);
	test_context("%s", "");
	CHECK(!trace_line("umem_get", 1));
	CHECK(!trace_line("umem_refresh", 1));
	CHECK(!trace_line("umem_release", 2));
}

struct counters {
	long long regions, bytes, refreshes, retaken, pages[IB_GIFT_PAGE_KINDS];
};

static struct counters counters_now(void)
{
	struct counters now = {
		.regions = proc_number(MISC "regions"),
		.bytes = proc_number(MISC "bytes_not_copied"),
		.refreshes = proc_number(MISC "refreshes"),
		.retaken = proc_number(MISC "pages_retaken"),
	};

	for (int i = 0; i < IB_GIFT_PAGE_KINDS; i++) {
		char path[96];

		snprintf(path, sizeof(path), MISC "%s", names[i].counter);
		now.pages[i] = proc_number(path);
		MUST(now.pages[i] >= 0);
	}
	MUST(now.regions >= 0 && now.bytes >= 0);
	MUST(now.refreshes >= 0 && now.retaken >= 0);
	return now;
}

static void check_counters(const struct region *r, struct counters before,
			   long long regions, long long refreshes, long long retaken)
{
	struct counters now = counters_now();
	long long held = 0;

	for (int i = 0; i < IB_GIFT_PAGE_KINDS; i++) {
		CHECK_EQ(regions ? r->pages[i] : 0, now.pages[i] - before.pages[i]);
		if (i != IB_GIFT_PAGE_PINNED && regions)
			held += r->pages[i];
	}
	CHECK_EQ(regions, now.regions - before.regions);
	CHECK_EQ(held * (long long)PAGE, now.bytes - before.bytes);
	CHECK_EQ(refreshes, now.refreshes - before.refreshes);
	CHECK_EQ(retaken, now.retaken - before.retaken);
}

static void counters(const struct test_case *c)
{
	struct region r = region_new();
	struct counters before = counters_now();
	struct stat st;

	region_take(&r);
	test_context("registered");
	check_counters(&r, before, 1, 0, 0);
	region_refresh(&r);
	test_context("refreshed");
	check_counters(&r, before, 1, 1, 4);
	MUST_ERR(0, ibv_dereg_mr(r.mr));
	test_context("deregistered");
	check_counters(&r, before, 0, 1, 4);
	MUST(!stat(MISC "regions", &st));
	CHECK_EQ(0444, st.st_mode & 07777);
}

/* The caller's line of the list; NULL when it has none. */
static char *list_line(void)
{
	char *text = read_file(LIST), *line, *save;
	char key[80];

	snprintf(key, sizeof(key), "%s %d ", dev_name(), getpid());
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, key, strlen(key)))
			return line;
	return NULL;
}

static void list(const struct test_case *c)
{
	struct region r = region_new();
	char expected[256], *header;
	int length;

	/* A name that could be taken for two fields, or for another line. */
	MUST(!prctl(PR_SET_NAME, "a b\nc\\"));
	if (access(LIST, R_OK))
		mount("none", DEBUGFS, "debugfs", 0, NULL);
	CHECK(!list_line());
	region_take(&r);
	for (int turn = 0; turn < 2; turn++) {
		length = snprintf(expected, sizeof(expected),
				  "%s %d a\\040b\\012c\\134 0x%lx %zu", dev_name(),
				  getpid(), (unsigned long)r.p, r.length);
		for (int i = 0; i < IB_GIFT_PAGE_KINDS; i++)
			length += snprintf(expected + length,
					   sizeof(expected) - length, " %llu",
					   r.pages[i]);
		MUST(list_line());
		if (strcmp(expected, list_line()))
			test_fail(__FILE__, __LINE__, "expected '%s', got '%s'",
				  expected, list_line());
		if (!turn)
			region_refresh(&r);
	}
	header = strtok(read_file(LIST), "\n");
	length = snprintf(expected, sizeof(expected), "device pid comm address length");
	for (int i = 0; i < IB_GIFT_PAGE_KINDS; i++)
		length += snprintf(expected + length, sizeof(expected) - length,
				   " %s", names[i].list);
	if (strcmp(expected, header))
		test_fail(__FILE__, __LINE__, "expected '%s', got '%s'", expected,
			  header);
	MUST_ERR(0, ibv_dereg_mr(r.mr));
	CHECK(!list_line());
}

/* The list has every process's regions: root alone reads it. */
static void list_is_private(const struct test_case *c)
{
	struct stat st;

	if (access(LIST, R_OK))
		mount("none", DEBUGFS, "debugfs", 0, NULL);
	free(read_file(LIST));
	/* The folder that it is in may be closed to others as well. */
	MUST(!stat(LIST, &st));
	CHECK_EQ(0400, st.st_mode & 07777);
	MUST(!setresuid(65534, 65534, 65534));
	CHECK(open(LIST, O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
}

/* The core writes a name over the other, some bytes at a time. */
static bool mixed_from(const char *name, const char *one, const char *other)
{
	size_t i = 0;

	do {
		if (!(i <= strlen(one) && name[i] == one[i]) &&
		    !(i <= strlen(other) && name[i] == other[i]))
			return false;
	} while (name[i++]);
	return true;
}

/*
 * This process's lines that begin with a name; in @strange those that begin with
 * anything but that, the other name, or what there is on the way between the two.
 */
static size_t lines_of(const char *name, const char *other, size_t *strange)
{
	char *text = read_file(LIST), *line, *save, pid[32];
	size_t n = 0;

	snprintf(pid, sizeof(pid), " %d ", getpid());
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *end = strchr(line, ' ');

		if (!end || strncmp(end, pid, strlen(pid)))
			continue;
		*end = '\0';
		if (!strcmp(line, name))
			n++;
		else if (!mixed_from(line, name, other))
			++*strange;
	}
	free(text);
	return n;
}

#define RENAMES		20
#define RENAMED		200

static void rename_to_and_fro(void *arg)
{
	const struct link *links = arg;

	for (int i = 0; i < RENAMES; i++) {
		MUST_EQ(0, RUN("rdma", "dev", "set", links[i % 2].name, "name",
			       links[!(i % 2)].name));
		test_sleep_ms(5);
	}
}

/*
 * The regions are on a link of this case's own. A name that is read when it is
 * freed is for a kernel that checks its memory to see.
 */
static void renamed(const struct test_case *c)
{
	struct link links[2] = { {}, { "shcarenamed", "shcatest8" } };
	size_t seen[2] = {}, strange = 0;
	struct ibv_mr *mrs[RENAMED];
	struct ibv_pd *pd;
	unsigned char *p;
	pid_t pid;

	link_need();
	link_drop(&links[1]);
	links[0] = link_new(8);
	pd = ibv_alloc_pd(dev_open_name(links[0].name)->ctx);
	MUST(pd);
	p = mem_make(&mem_untouched, PAGE).p;
	for (int i = 0; i < RENAMED; i++)
		mrs[i] = mr_reg(pd, p, PAGE, GIFT_READ);
	pid = test_fork(rename_to_and_fro, links);
	for (siginfo_t ended = {}; !ended.si_pid;) {
		for (int i = 0; i < 2; i++)
			seen[i] += lines_of(links[i].name, links[!i].name, &strange);
		MUST(!waitid(P_PID, pid, &ended, WEXITED | WNOHANG | WNOWAIT));
	}
	test_join(pid);
	CHECK_EQ(0, strange);
	CHECK(seen[0] > 0);
	CHECK(seen[1] > 0);
	CHECK_EQ(RENAMED, lines_of(links[0].name, links[1].name, &strange));
	for (int i = 0; i < RENAMED; i++)
		MUST_ERR(0, ibv_dereg_mr(mrs[i]));
	link_drop(&links[0]);
}

/* What rdma says of this process's only region. */
static char *resource(void)
{
	static char out[1 << 16];
	char pid[32];

	snprintf(pid, sizeof(pid), "%d", getpid());
	if (run_output(out, sizeof(out), (const char *const[]){
			"rdma", "-dd", "resource", "show", "mr", "dev", dev_name(),
			"pid", pid, NULL }))
		test_skip("no rdma tool that shows resources: %s", out);
	for (char *p = out; *p; p++)
		if (*p == '\n')
			*p = ' ';
	return out;
}

static long long resource_field(const char *text, const char *name)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), " %s ", name);
	at = strstr(text, key);
	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static void resources(const struct test_case *c)
{
	struct region r = region_new();
	struct ibv_mr *plain;
	char *text;

	region_take(&r);
	region_refresh(&r);
	text = resource();
	test_note("%s", text);
	CHECK_EQ(1, resource_field(text, "drv_gift"));
	for (int i = 0; i < IB_GIFT_PAGE_KINDS; i++)
		CHECK_EQ(r.pages[i], resource_field(text, names[i].resource));
	CHECK_EQ(r.length, resource_field(text, "mrlen"));
	MUST_ERR(0, ibv_dereg_mr(r.mr));

	plain = mr_new(r.pd, 4 * PAGE);
	text = resource();
	CHECK_EQ(0, resource_field(text, "drv_gift"));
	CHECK_EQ(-1, resource_field(text, "drv_pages_pinned"));
	MUST_ERR(0, ibv_dereg_mr(plain));
}

static void resources_are_private(const struct test_case *c)
{
	struct region r = region_new();
	char *text;

	region_take(&r);
	MUST(!setresuid(65534, 65534, 65534));
	text = resource();
	CHECK_EQ(1, resource_field(text, "drv_gift"));
	for (int i = 0; i < IB_GIFT_PAGE_KINDS; i++)
		CHECK_EQ(-1, resource_field(text, names[i].resource));
}

static const struct test_case cases[] = {
	{ "the tracepoints say who, where, what of each kind, and how long",
	  tracepoints },
	{ "the counters go up and down with the regions", counters },
	{ "debugfs lists the live regions, one a line, whatever their process is called",
	  list },
	{ "the list of everybody's regions is for root only", list_is_private },
	{ "while a device is renamed the list has nothing but its old name and its new one",
	  renamed },
	{ "rdma resource show mr tells a gift region and its pages by kind",
	  resources },
	{ "to other users it tells a gift region, and of its pages nothing",
	  resources_are_private },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), dev_ready);
}
