// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Owns how cases are run, timed out, counted and reported, on top of the
 * kernel's kselftest.h. Never touches RDMA or anything outside the process
 * group of the case.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest.h"
#include "test.h"

/* A loaded emulator is slow; a case that hangs is not a matter of seconds. */
#define DEFAULT_TIMEOUT 90

/* More failures than this of one case tell nothing new. */
#define MAX_FAILURES 12

static unsigned int failures;
static char context[256];
static pid_t case_pid;
static char *skip_reason;		/* shared with the case's process */

#define SKIP_REASON_MAX 256

static void print_line(const char *line)
{
	/* One write a line: several processes print to the same pipe. */
	char out[1200];
	int n = snprintf(out, sizeof(out), "# %s\n", line);

	fflush(stdout);
	if (n >= (int)sizeof(out)) {
		n = sizeof(out) - 1;
		out[n - 1] = '\n';
	}
	if (write(STDOUT_FILENO, out, n) != n)
		_exit(KSFT_FAIL);
}

void test_note(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	print_line(line);
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	char what[640], text[1024];
	va_list ap;

	if (failures++ > MAX_FAILURES)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(text, sizeof(text), "FAIL %s:%d: %s%s%s%s",
		 base ? base + 1 : file, line, what, context[0] ? " [" : "",
		 context, context[0] ? "]" : "");
	print_line(text);
}

void test_context(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
}

bool test_failed(void)
{
	return failures;
}

bool test_long(void)
{
	const char *value = getenv("SELFTEST_LONG");

	return value && *value && strcmp(value, "0");
}

void test_exit(void)
{
	fflush(stdout);
	_exit(failures ? KSFT_FAIL : KSFT_PASS);
}

void test_skip(const char *fmt, ...)
{
	va_list ap;

	if (getpid() != case_pid) {
		test_fail(__FILE__, __LINE__, "skip outside of the case's process");
		test_exit();
	}
	va_start(ap, fmt);
	vsnprintf(skip_reason, SKIP_REASON_MAX, fmt, ap);
	va_end(ap);
	fflush(stdout);
	_exit(failures ? KSFT_FAIL : KSFT_SKIP);
}

bool test_eq(const char *file, int line, const char *what, long long expected,
	     long long got)
{
	if (expected == got)
		return true;
	test_fail(file, line, "%s: expected %lld (0x%llx), got %lld (0x%llx)",
		  what, expected, expected, got, got);
	return false;
}

bool test_le(const char *file, int line, const char *what, long long low,
	     long long got, long long high)
{
	if (low <= got && got <= high)
		return true;
	test_fail(file, line, "%s: expected %lld to %lld, got %lld", what, low,
		  high, got);
	return false;
}

bool test_true(const char *file, int line, const char *what, bool got)
{
	if (got)
		return true;
	test_fail(file, line, "expected %s, got the opposite", what);
	return false;
}

const char *test_strerror(int err)
{
	const char *name = strerrorname_np(err);

	return name ? name : "no error";
}

bool test_errno(const char *file, int line, const char *what, int expected,
		int got)
{
	if (expected == got)
		return true;
	test_fail(file, line, "%s: expected %s (%d), got %s (%d)", what,
		  expected ? test_strerror(expected) : "success", expected,
		  got ? test_strerror(got) : "success", got);
	return false;
}

bool test_bytes(const char *file, int line, const char *what,
		const void *expected, const void *got, size_t length)
{
	const unsigned char *e = expected, *g = got;
	size_t first = 0, differ = 0;

	if (!memcmp(e, g, length))
		return true;
	for (size_t i = length; i-- > 0;) {
		if (e[i] != g[i]) {
			first = i;
			differ++;
		}
	}
	test_fail(file, line,
		  "%s: %zu of %zu bytes differ, first at %zu: expected 0x%02x, got 0x%02x",
		  what, differ, length, first, e[first], g[first]);
	return false;
}

double test_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1000000000.0;
}

void test_sleep_ms(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

pid_t test_fork(void (*fn)(void *arg), void *arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		failures = 0;
		fn(arg);
		test_exit();
	}
	return pid;
}

void test_join(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid);
	if (!WIFEXITED(status))
		test_fail(__FILE__, __LINE__, "child: ended by signal %d",
			  WTERMSIG(status));
	else if (WEXITSTATUS(status))
		test_fail(__FILE__, __LINE__, "child: its checks failed (exit %d)",
			  WEXITSTATUS(status));
}

void test_fill(void *buf, size_t length, uint32_t seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
	unsigned char *p = buf;

	while (length >= 4) {
		uint32_t r = test_random(&state);

		memcpy(p, &r, 4);
		p += 4;
		length -= 4;
	}
	for (; length; length--)
		*p++ = test_random(&state);
}

uint32_t test_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 32;
}

static bool selected(const struct test_case *c, int argc, char **argv)
{
	if (argc < 2)
		return true;
	for (int i = 1; i < argc; i++)
		if (strstr(c->name, argv[i]))
			return true;
	return false;
}

/* Waits for the child; false when it had to be killed for its time. */
static bool wait_child(pid_t pid, unsigned int seconds, int *status)
{
	double end = test_now() + seconds;
	unsigned int ms = 1;

	for (;;) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
		if (test_now() > end)
			break;
		test_sleep_ms(ms);
		if (ms < 20)
			ms++;
	}
	kill(-pid, SIGKILL);
	waitpid(pid, status, 0);
	return false;
}

/*
 * What the case forked is gone before the next case measures anything: orphans
 * are this process's children (PR_SET_CHILD_SUBREAPER).
 */
static void reap_group(pid_t pid)
{
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0)
		;
}

unsigned int test_slowness(void)
{
	const char *value = getenv("SELFTEST_SLOW");
	int times = value ? atoi(value) : 1;

	return times > 1 ? times : 1;
}

/* Who ends this program ends its case with it. */
static volatile pid_t running;

static void end_case(int sig)
{
	if (running)
		kill(-running, SIGKILL);
	_exit(128 + sig);
}

static void run_case(const struct test_case *c)
{
	unsigned int seconds = test_slowness() * (c->timeout ? c->timeout : DEFAULT_TIMEOUT);
	double start = test_now();
	int status;
	pid_t pid;

	skip_reason[0] = '\0';
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		ksft_exit_fail_msg("fork: %s\n", strerror(errno));
	if (!pid) {
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		case_pid = getpid();
		c->run(c);
		test_exit();
	}
	setpgid(pid, pid);
	running = pid;
	if (!wait_child(pid, seconds, &status)) {
		reap_group(pid);
		ksft_print_msg("FAIL expected an end within %u s, killed\n",
			       seconds);
		ksft_test_result_fail("%s\n", c->name);
		return;
	}
	reap_group(pid);

	if (WIFEXITED(status) && WEXITSTATUS(status) == KSFT_SKIP) {
		ksft_test_result_skip("%s: %s\n", c->name, skip_reason);
		return;
	}
	if (WIFSIGNALED(status))
		ksft_print_msg("FAIL ended by signal %d\n", WTERMSIG(status));
	if (test_now() - start > 1)
		ksft_print_msg("took %.1f s\n", test_now() - start);
	ksft_test_result(WIFEXITED(status) && !WEXITSTATUS(status), "%s\n",
			 c->name);
}

int test_main(int argc, char **argv, const struct test_case *cases, size_t n,
	      const char *(*ready)(void))
{
	const char *reason;
	size_t planned = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	ksft_print_header();
	reason = ready ? ready() : NULL;
	if (reason)
		ksft_exit_skip("%s\n", reason);

	for (size_t i = 0; i < n; i++)
		planned += selected(&cases[i], argc, argv);
	if (!planned)
		ksft_exit_fail_msg("no case of that name\n");
	skip_reason = mmap(NULL, SKIP_REASON_MAX, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (skip_reason == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));

	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		ksft_exit_fail_msg("prctl: %s\n", strerror(errno));

	signal(SIGTERM, end_case);
	signal(SIGINT, end_case);
	ksft_set_plan(planned);
	for (size_t i = 0; i < n; i++)
		if (selected(&cases[i], argc, argv))
			run_case(&cases[i]);
	/* Every case skipped is a program skipped, not a program passed. */
	if (ksft_get_xskip_cnt() == (int)planned) {
		ksft_print_cnts();
		return KSFT_SKIP;
	}
	ksft_finished();
	return KSFT_FAIL;
}
