/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a test program is written with: a table of cases, each a sentence and a
 * function that runs in a process of its own, and checks that say what was
 * expected and what was got. Knows nothing of RDMA.
 *
 * A case's process and all that it forks are one process group, and what is
 * left of it is killed when the case ends: a case needs no cleaning up.
 */
#ifndef SELFTESTS_TEST_H
#define SELFTESTS_TEST_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))
#define KIB		1024UL
#define MIB		(1024UL * KIB)

struct test_case {
	const char *name;	/* a sentence about the behaviour */
	void (*run)(const struct test_case *c);
	const void *arg;
	unsigned long n;
	unsigned int timeout;	/* seconds; 0: the default */
};

/*
 * Runs the cases and prints TAP; returns what main() returns. With arguments,
 * runs only the cases whose name contains one of them. @ready says what the
 * whole program cannot do without: it returns a reason to skip, or NULL.
 */
int test_main(int argc, char **argv, const struct test_case *cases, size_t n,
	      const char *(*ready)(void));

/* Ends the case as skipped. Only the case's own process may. */
void test_skip(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

/* Marks the case failed and says why; the case goes on. */
void test_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Ends this process: with failure if any of its checks failed. */
__attribute__((noreturn)) void test_exit(void);

/* Appended to every failure from here on, to tell turns of a loop apart. */
void test_context(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A line of diagnosis, failure or not. */
void test_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

bool test_failed(void);

/* SELFTEST_SLOW: how many times slower than usual the kernel is. */
unsigned int test_slowness(void);
/* SELFTEST_LONG: larger sizes, more turns, all combinations. */
bool test_long(void);

bool test_eq(const char *file, int line, const char *what, long long expected,
	     long long got);
bool test_le(const char *file, int line, const char *what, long long low,
	     long long got, long long high);
bool test_true(const char *file, int line, const char *what, bool got);
bool test_errno(const char *file, int line, const char *what, int expected,
		int got);
bool test_bytes(const char *file, int line, const char *what,
		const void *expected, const void *got, size_t length);

/* CHECK_* goes on after a failure, MUST_* ends the process. */
#define CHECK_EQ(expected, got) \
	test_eq(__FILE__, __LINE__, #got, (long long)(expected), (long long)(got))
#define CHECK_BETWEEN(low, got, high) \
	test_le(__FILE__, __LINE__, #got, (long long)(low), \
		(long long)(got), (long long)(high))
#define CHECK(cond) \
	test_true(__FILE__, __LINE__, #cond, !!(cond))
/* For calls that return 0 or an error number, as most verbs do. */
#define CHECK_ERR(expected, call) \
	test_errno(__FILE__, __LINE__, #call, expected, call)
/* For calls that return a pointer and set errno. */
#define CHECK_NULL_ERRNO(expected, call) ({				\
	void *_p = (errno = 0, (call));					\
	test_errno(__FILE__, __LINE__, #call, expected, _p ? 0 : errno);\
	_p; })
#define CHECK_BYTES(expected, got, length) \
	test_bytes(__FILE__, __LINE__, #got, expected, got, length)

#define MUST(cond) do {							\
	if (!(cond)) {							\
		int _e = errno;						\
		test_fail(__FILE__, __LINE__, "expected %s (errno %d, %s)", \
			  #cond, _e, test_strerror(_e));		\
		test_exit();						\
	}								\
} while (0)
#define MUST_ERR(expected, call) do {					\
	if (!CHECK_ERR(expected, call))					\
		test_exit();						\
} while (0)
#define MUST_EQ(expected, got) do {					\
	if (!CHECK_EQ(expected, got))					\
		test_exit();						\
} while (0)

const char *test_strerror(int err);

/* Seconds since an arbitrary start. */
double test_now(void);
void test_sleep_ms(unsigned int ms);

/* Forks; the child runs @fn and ends with the state of its checks. */
pid_t test_fork(void (*fn)(void *arg), void *arg);
/* Waits for a child of test_fork() and takes over its failure. */
void test_join(pid_t pid);

/* The same bytes on every run. */
void test_fill(void *buf, size_t length, uint32_t seed);
uint32_t test_random(uint64_t *state);

#endif /* SELFTESTS_TEST_H */
