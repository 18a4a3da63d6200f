// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * gift-run: unmodified programs send what they see and take no memory to register
 * it. Runs gift_run_client, the programs of ibverbs-utils and perftest and a test
 * of pyverbs under it. GIFT_RUN_BIN names it; otherwise it is the one that was
 * built, or the one in PATH.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/every.h"

#define OUT_SIZE	65536
#define MAX_WANTS	12

static char gift_run[4096], client[4096];

#define RXE "gift_run_rxe"

static void drop_rxe(void)
{
	RUN("rdma", "link", "delete", RXE);
	RUN("ip", "link", "delete", "gift_run0");
}

/* Where the two programs are; a reason to skip, or NULL. */
static const char *ready(void)
{
	const char *why = dev_ready(), *named = getenv("GIFT_RUN_BIN");
	char self[3000] = "";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (why)
		return why;
	MUST(n > 0);
	*strrchr(self, '/') = '\0';
	snprintf(client, sizeof(client), "%s/gift_run_client", self);
	if (access(client, X_OK))
		return "gift_run_client is not built";
	snprintf(gift_run, sizeof(gift_run), "%s/../userspace/gift-run", self);
	if (named)
		snprintf(gift_run, sizeof(gift_run), "%s", named);
	else if (access(gift_run, X_OK))
		strcpy(gift_run, "gift-run");
	if (RUN(gift_run, "--version"))
		return "no gift-run; GIFT_RUN_BIN says where it is";
	if (!access(EVERY_PARAM, W_OK))
		every_keep(drop_rxe);
	return NULL;
}

/* Runs a shell command in which $G is gift-run and $C the client. */
static int shell(char *out, const char *command)
{
	setenv("G", gift_run, 1);
	setenv("C", client, 1);
	out[0] = '\0';
	return run_output(out, OUT_SIZE,
			  (const char *const[]){ "bash", "-c", command, NULL });
}

/* The number after "key=" at the start of a line; -1000 if there is none. */
static long long value(const char *out, const char *key)
{
	size_t n = strlen(key);
	const char *at;

	for (at = out; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (!strncmp(at, key, n) && at[n] == '=')
			return strtoll(at + n + 1, NULL, 10);
	return -1000;
}

static int count_of(const char *out, const char *text)
{
	int n = 0;

	for (; (out = strstr(out, text)); out += strlen(text))
		n++;
	return n;
}

/* What a run of the client has to print, each number between two bounds. */
struct want {
	const char *key;
	long long low, high;
};

struct client_run {
	const char *command;
	struct want wants[MAX_WANTS];
};

#define IS(key_, n)	{ key_, n, n }
#define COMES_CLEAN	IS("dereg", 0), IS("regions_left", 0), IS("pinned_left", 0)

static void client_prints(const struct test_case *c)
{
	const struct client_run *run = c->arg;
	char *out = malloc(OUT_SIZE);
	int status = shell(out, run->command);
	bool good = CHECK_EQ(0, status);

	for (const struct want *w = run->wants; w->key; w++) {
		test_context("of %s", w->key);
		good &= CHECK_BETWEEN(w->low, value(out, w->key), w->high);
	}
	if (!good)
		test_note("%s\n%s", run->command, out);
}

/* A command that has to end so, and to say so. */
struct refusal {
	const char *command;
	int status;
	const char *says;
};

static void refuses(const struct test_case *c)
{
	const struct refusal *r = c->arg;
	char *out = malloc(OUT_SIZE);

	CHECK_EQ(r->status, shell(out, r->command));
	if (!CHECK(strstr(out, r->says)))
		test_note("%s", out);
}

/* The line of a report that begins so, behind the tool's name. */
static bool report_line(const char *out, const char *name, long long *numbers)
{
	char start[64];
	const char *at;

	snprintf(start, sizeof(start), "gift-run: %s ", name);
	at = strstr(out, start);
	return at && sscanf(at + strlen(start), "%lld %lld %lld %lld %lld %lld %lld",
			    numbers, numbers + 1, numbers + 2, numbers + 3,
			    numbers + 4, numbers + 5, numbers + 6) == 7;
}

/*
 * 16 pages of which 3 are owned; 8 rounds write to pages 3, 8, 13, 2, 7, 12, 1
 * and 6, of which 2 and 1 are owned. So 6 go stale, and nothing is sent before
 * the first has.
 */
static void reports(const struct test_case *c)
{
	static const long long expected[] = { 64, 13, 3, 6, 6, 8, 52 };
	long long got[7];
	char *out = malloc(OUT_SIZE);

	MUST_EQ(0, shell(out, "$G --report $C write rounds=8 touch=3"));
	if (!report_line(out, "all", got)) {
		test_note("%s", out);
		CHECK(!"the report has a sum");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		test_context("of number %zu", i);
		CHECK_EQ(expected[i], got[i]);
	}
	CHECK(strstr(out, "process"));
	CHECK_EQ(1, count_of(out, "1 gift regions"));
	CHECK_EQ(1, count_of(out, "1 registrations left as they were"));
}

static void reports_to_a_file(const struct test_case *c)
{
	char *out = malloc(OUT_SIZE);
	long long got[7];

	MUST_EQ(0, shell(out, "cd /tmp && rm -f gift-run-report && "
			 "$G --report=gift-run-report -- "
			 "bash -c 'cd / && $C write && $C write; true' >/dev/null"));
	CHECK_EQ(0, count_of(out, "gift-run:"));
	MUST_EQ(0, shell(out, "cat /tmp/gift-run-report"));
	/* The two clients' and the shell's own. */
	CHECK_EQ(2, count_of(out, "1 gift regions"));
	CHECK_EQ(1, count_of(out, "0 gift regions"));
	CHECK(report_line(out, "all", got));
}

/* A device whose driver knows nothing of GIFT. */
static void need_rxe(void)
{
	drop_rxe();
	if (RUN("modprobe", "rdma_rxe"))
		test_skip("no rdma_rxe");
	MUST(!RUN("ip", "link", "add", "gift_run0", "type", "dummy"));
	MUST(!RUN("ip", "link", "set", "gift_run0", "up"));
	MUST(!RUN("ip", "addr", "add", "10.78.0.1/24", "dev", "gift_run0"));
	MUST(!RUN("rdma", "link", "add", RXE, "type", "rxe", "netdev", "gift_run0"));
	setenv(DEV_ENV, RXE, 1);
}

static void not_honoured(const struct test_case *c)
{
	char *out = malloc(OUT_SIZE);
	bool good;

	need_rxe();
	/* Whoever ran before may have left it on. */
	MUST_ERR(0, every_switch(false));
	/* Two regions that would be named, and one of them twice. */
	good = CHECK_EQ(0, shell(out, "$G --report --drop-write --min-size 1 "
				 "$C write access=1 rounds=3"));
	good &= CHECK_EQ(1, count_of(out, "GIFT is not honoured on " RXE));
	good &= CHECK_EQ(16, value(out, "anon_registered"));
	good &= CHECK_EQ(0, value(out, "wrong"));
	good &= CHECK_EQ(0, value(out, "regions"));
	good &= CHECK_EQ(1, count_of(out, "0 gift regions"));
	if (!good)
		test_note("%s", out);
	drop_rxe();
}

/* The same device once ib_gift stands in for its driver. */
static void stock_rxe(const struct test_case *c)
{
	char *out = malloc(OUT_SIZE);
	bool good;

	need_rxe();
	if (every_switch(true))
		test_skip("ib_gift cannot stand in for other drivers here");
	good = CHECK_EQ(0, shell(out, "$G --drop-write --min-size 64K "
				 "$C write access=3 rounds=5 touch=2"));
	good &= CHECK_EQ(2, value(out, "anon_registered"));
	good &= CHECK_EQ(0, value(out, "wrong"));
	/* Pages 2, 7, 12, 1 and 6 were written; 0 and 1 before. */
	good &= CHECK_EQ(6, value(out, "anon_sent"));
	good &= CHECK_EQ(0, value(out, "regions_left"));
	good &= CHECK_EQ(0, shell(out, "$G --no-refresh $C write rounds=2"));
	good &= CHECK_BETWEEN(1, value(out, "wrong"), 65536);
	if (!good)
		test_note("%s", out);
	CHECK_ERR(0, every_switch(false));
	drop_rxe();
}

/*
 * A program of the distribution's, both ends of it on one device: $D is the device,
 * $X its GID. The end that only sends, or is only read, is under gift-run.
 */
struct ends {
	const char *program, *server, *client;
	int regions;			/* that are given GIFT */
};

static void unmodified(const struct test_case *c)
{
	const struct ends *e = c->arg;
	char *out = malloc(OUT_SIZE), command[1024], number[16], regions[32];
	struct dev *dev = dev_open();
	bool good;

	snprintf(number, sizeof(number), "%d", dev->gid_index);
	setenv("D", dev_name(), 1);
	setenv("X", number, 1);
	snprintf(command, sizeof(command), "command -v %s", e->program);
	if (shell(out, command))
		test_skip("no %s", e->program);
	snprintf(command, sizeof(command),
		 "A=\"-d $D -n 20 -s 8192\"; "
		 "[ %s = ibv_rc_pingpong ] && A=\"$A -g $X\" || "
		 "A=\"$A -x $X -F\"; %s %s $A & sleep 1; %s %s $A 127.0.0.1 || exit 1; wait $!",
		 e->program, e->server, e->program, e->client, e->program);
	snprintf(regions, sizeof(regions), "%d gift regions", e->regions);
	good = CHECK_EQ(0, shell(out, command));
	good &= CHECK_EQ(1, count_of(out, regions));
	if (!good)
		test_note("%s", out);
}

/*
 * The queue pair is made by librdmacm, not by the program. Its other region, of 4 KiB,
 * is one that it receives into.
 */
static void by_librdmacm(const struct test_case *c)
{
	char *out = malloc(OUT_SIZE);
	bool good;

	if (shell(out, "command -v ib_send_bw"))
		test_skip("no ib_send_bw");
	need_rxe();
	if (every_switch(true))
		test_skip("ib_gift cannot stand in for other drivers here");
	RUN("modprobe", "rdma_ucm");
	good = CHECK_EQ(0, shell(out, "A='-R -F -n 20 -s 8192'; ib_send_bw $A & sleep 1; "
				 "$G --report --drop-write --min-size 8K "
				 "ib_send_bw $A 10.78.0.1 || exit 1; wait $!"));
	good &= CHECK_EQ(1, count_of(out, "1 gift regions"));
	if (!good)
		test_note("%s", out);
}

static void python(const struct test_case *c)
{
	char *out = malloc(OUT_SIZE), command[9000];
	struct dev *dev = dev_open();
	long long got[7] = { 0 };
	bool good;

	if (RUN("/usr/bin/python3", "-c", "import pyverbs.qp"))
		test_skip("no pyverbs");
	snprintf(command, sizeof(command),
		 "$G --report /usr/bin/python3 $(dirname $C)/gift_run_pyverbs.py %s %d",
		 dev_name(), dev->gid_index);
	good = CHECK_EQ(0, shell(out, command));
	good &= CHECK_EQ(0, value(out, "status"));
	good &= CHECK_EQ(0, value(out, "wrong"));
	good &= CHECK(report_line(out, "all", got));
	/* 16 pages, all untouched then, one of them stale. */
	good &= CHECK_EQ(16, got[1]);
	good &= CHECK_EQ(1, got[3]);
	if (!good)
		test_note("%s", out);
}

/* A shell command runs this before the program, since root passes the limit. */
#define NO_IPC_LOCK "setpriv --bounding-set -ipc_lock "
#define NAMES "$G --report --remote-read --drop-write --min-size 1"

#define RUNS(name, command_, ...)					\
	{ name, client_prints,						\
	  &(struct client_run){ command_, { __VA_ARGS__ } } }
#define REFUSES(name, command_, status_, says_)				\
	{ name, refuses, &(struct refusal){ command_, status_, says_ } }

static const struct test_case cases[] = {
	RUNS("plainly, a registration allocates the memory and what is sent is right",
	     "$C write", IS("anon_registered", 16), IS("wrong", 0), COMES_CLEAN),
	RUNS("under gift-run it allocates nothing, and what is sent is right",
	     "$G $C write", IS("anon_registered", 0), IS("wrong", 0), IS("status", 0),
	     IS("anon_sent", 1), COMES_CLEAN),
	RUNS("without --refresh a page written after registration arrives wrong",
	     "$G --no-refresh $C write", IS("anon_registered", 0), IS("wrong", 4096)),
	RUNS("only what is written is allocated, however often is written and sent",
	     "$G $C write rounds=12", IS("wrong", 0), IS("anon_sent", 12), COMES_CLEAN),
	RUNS("a page that the program owned already needs no fresh registration",
	     "$G $C write touch=16 rounds=4", IS("wrong", 0), IS("regions", 1)),
	RUNS("lists of work requests of several SGEs are sent right",
	     "$G $C send rounds=5", IS("wrong", 0), IS("status", 0), IS("anon_sent", 5),
	     COMES_CLEAN),
	RUNS("an ibv_wr_set_sge is sent right",
	     "$G $C wr rounds=5", IS("wrong", 0), IS("status", 0), IS("anon_sent", 5),
	     COMES_CLEAN),
	RUNS("an ibv_wr_set_sge_list is sent right",
	     "$G $C wr_list rounds=5", IS("wrong", 0), IS("status", 0), COMES_CLEAN),
	RUNS("an inline send needs nothing",
	     "$G $C inline", IS("post", 0), IS("status", 0), IS("wrong", 0),
	     IS("pinned_more", 0)),
	RUNS("the work requests are the program's own, before and after",
	     "$G $C write rounds=2", IS("changed", -1000), IS("wrong", 0)),
	RUNS("the bad work request is the program's own, and those before it are sent",
	     "$G $C bad_wr", IS("post", 1), IS("bad", 1), IS("status", 0), IS("quiet", 1),
	     IS("wrong", 0)),
	RUNS("a region that begins within a page is sent right",
	     "$G $C write skew=100 rounds=5", IS("wrong", 0), IS("status", 0)),
	RUNS("a region with names of its own for its addresses is sent right",
	     "$G $C write iova=0x10000000 rounds=5", IS("wrong", 0), IS("status", 0),
	     IS("anon_registered", 0)),
	RUNS("idle fresh registrations are released above --fresh-limit",
	     "$G --fresh-limit 2 $C write rounds=14", IS("wrong", 0), { "regions", 3, 5 },
	     COMES_CLEAN),
	RUNS("a region is registered again, and made writable, with the same key",
	     "$G $C rereg", IS("rereg", 0), IS("rereg_access", 0), IS("wrong", 0),
	     IS("received", 1), IS("same_key", 1), IS("regions_writable", 0),
	     IS("dereg", 0)),
	RUNS("a forked child and its parent each send what they see",
	     "$G $C fork rounds=3", IS("child", 0), IS("wrong", 0), IS("parent_wrong", 0)),
	RUNS("plainly, a registration copies what KSM has merged",
	     "$C write merged=1", IS("pss_registered", 16), IS("wrong", 0)),
	RUNS("under gift-run it stays merged but for what is written, and is sent right",
	     "$G $C write merged=1 rounds=3", IS("pss_registered", 8), IS("pss_sent", 11),
	     IS("wrong", 0), IS("status", 0), COMES_CLEAN),
	RUNS("a fresh registration needs RLIMIT_MEMLOCK for what it covers, and no more",
	     "$G " NO_IPC_LOCK "$C write rounds=12 room=16", IS("wrong", 0), IS("status", 0),
	     IS("anon_sent", 12), COMES_CLEAN),
	RUNS("without that a post fails with ENOMEM, sends nothing, and can be repeated",
	     "$G " NO_IPC_LOCK "$C limited", IS("post", ENOMEM), IS("bad", 0),
	     IS("wr", ENOMEM), IS("quiet", 1), IS("sent", 0), IS("post_again", 0),
	     IS("status", 0), IS("wrong", 0), IS("wr_again", 0), IS("wrong_wr", 0)),
	RUNS("a device is closed with regions left, and used anew",
	     "$G $C close", IS("close", 0), IS("wrong", 0), IS("status", 0), IS("fresh", 2),
	     IS("fresh_left", 0)),
	RUNS("threads that post and register side by side send what they see",
	     "$G --fresh-limit 4 $C threads rounds=24 pages=8", IS("wrong", 0),
	     IS("regions_left", 0)),
	RUNS("a program that another executes is covered too",
	     "$G bash -c '$C write'", IS("anon_registered", 0), IS("wrong", 0)),

	RUNS("a region that asks for a write is left alone",
	     "$G $C write access=1", IS("anon_registered", 16), IS("regions", 0)),
	RUNS("--drop-write gives it GIFT",
	     "$G --drop-write --min-size 64K $C write access=3", IS("anon_registered", 0),
	     IS("wrong", 0), IS("anon_sent", 1)),
	RUNS("a region below --min-size is left alone",
	     "$G --drop-write --min-size 65K $C write access=3", IS("anon_registered", 16)),
	RUNS("a region above --max-size is left alone",
	     "$G --drop-write --max-size 63K $C write access=3", IS("anon_registered", 16)),
	RUNS("a region outside --address is left alone",
	     "$G --address 1000-2000 $C write", IS("anon_registered", 16)),
	RUNS("a region whose mapping's name matches is given GIFT",
	     "$G --mapping '\\[anon\\]' $C write", IS("anon_registered", 0)),
	RUNS("a region whose mapping's name does not match is left alone",
	     "$G --mapping '/dev/shm/*' $C write", IS("anon_registered", 16)),
	RUNS("a region that peers may read is left alone",
	     "$G $C write access=4", IS("anon_registered", 16), IS("regions", 0)),
	RUNS("--remote-read gives it GIFT",
	     "$G --remote-read $C write access=4", IS("anon_registered", 0), IS("wrong", 0)),

	{ "the report tells what was held, pinned, refreshed and saved", reports },
	{ "the report goes to a file, from every process, wherever it is then",
	  reports_to_a_file },
	{ "where the kernel does not honour GIFT it says so once and changes nothing",
	  not_honoured },
	{ "on stock rxe what is sent is right, and costs what was written", stock_rxe },

	REFUSES("an unknown option is refused", "$G --nonsense $C write", 125, "--nonsense"),
	REFUSES("--drop-write without a region is refused", "$G --drop-write $C write", 125,
		"--min-size"),
	REFUSES("no program is refused", "$G --report", 125, "which program"),
	REFUSES("a program that there is not is refused", "$G nowhere-to-be-found", 127,
		"nowhere-to-be-found"),
	REFUSES("a file that is no program is refused", "$G /etc/passwd", 126, "/etc/passwd"),
	REFUSES("a static program is refused", "$G /bin/busybox true", 125, "static"),
	REFUSES("a set-user-ID program that changes the user is refused",
		"cp /bin/true /tmp/gr-suid && chown 1 /tmp/gr-suid && chmod 4755 /tmp/gr-suid && "
		"$G /tmp/gr-suid", 125, "set-user-ID"),
	REFUSES("a missing library is told",
		"cp $G /tmp/gr-alone && /tmp/gr-alone true", 125, "libgift-run.so"),
	REFUSES("nonsense in the environment is told, and changes nothing",
		"GIFT_RUN=--nonsense LD_PRELOAD=$(dirname $G)/libgift-run.so "
		"$C write", 0, "GIFT_RUN"),
	REFUSES("the program's exit status is gift-run's", "$G bash -c 'echo it ran; exit 42'",
		42, "it ran"),

	{ "ibv_rc_pingpong, which receives into what it sends, is left alone", unmodified,
	  &(struct ends){ "ibv_rc_pingpong", "", "$G --report", 0 } },
	{ "ib_send_bw sends from a gift region", unmodified,
	  &(struct ends){ "ib_send_bw", "", NAMES, 1 } },
	{ "ib_read_bw is read from a gift region", unmodified,
	  &(struct ends){ "ib_read_bw", NAMES, "", 1 } },
	{ "ib_send_bw that connects by librdmacm sends from a gift region", by_librdmacm },
	{ "a pyverbs program sends what it sees", python },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, ARRAY_LEN(cases), ready);
}
