/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * ib_gift's every_driver, two rxe devices that reach each other, and what they were
 * before: put back when the program ends, however its cases did. Asserts nothing of
 * what is honoured.
 */
#ifndef SELFTESTS_EVERY_H
#define SELFTESTS_EVERY_H

#include <stdbool.h>

#include "pair.h"
#include "proc.h"

#define EVERY_PARAM	"/sys/module/ib_gift/parameters/every_driver"

/* On the ends of a veth pair. */
#define RXE_A		"giftrxe0"
#define RXE_B		"giftrxe1"
/* For a case to make and delete, on a netdev that is there. */
#define RXE_C		"giftrxe2"
#define RXE_C_NETDEV	"giftdummy"

/* Less than 256 pages: beyond those rxe of 6.1 looks beyond its own table. */
#define EVERY_LENGTH	(240 * 4096UL)

/* For test_main(): makes the devices, and switches it on. */
const char *every_ready(void);
/*
 * For a program with devices of its own: puts back what every_driver is now, and
 * calls @drop before, when the program ends.
 */
void every_keep(void (*drop)(void));

bool every_is_on(void);
/* 0 or an error number. */
int every_switch(bool on);

/* A case begins with it on, whatever the one before left. c->arg is the case. */
void every_case(const struct test_case *c);
#define EVERY_CASE(name, run)	EVERY_CASE_WITHIN(name, run, 180)
#define EVERY_CASE_WITHIN(name, run, seconds)				\
	{ name, every_case, &(const struct test_case){ NULL, run }, 0, seconds }

#define SHELL(command)	RUN("sh", "-c", command)
/* Through /dev/ib_gift: 0 or an error number. */
int gift_ioctl(unsigned long cmd, void *arg);
/* What is honoured on a device, or everywhere for ""; a negative error number. */
long long every_caps(const char *device);
/* An owner on RXE_A, a peer on RXE_B. */
struct pair every_pair(void);
/* A PD of RXE_A, opened anew. */
struct ibv_pd *every_pd(void);
/* Untouched, owned, and untouched again: one region with both kinds of page. */
struct ibv_mr *every_region(struct ibv_pd *pd, struct mem *m);

#endif /* SELFTESTS_EVERY_H */
