/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Looks into the kernel's memory through /proc/kcore for the one thing that no file
 * says: the reference count of a page. Never writes.
 */
#ifndef SELFTESTS_KCORE_H
#define SELFTESTS_KCORE_H

#include <stdbool.h>

/* Does the kernel have a function or variable of this name? */
bool kernel_has(const char *name);
/*
 * References on the page that is mapped at @addr; the first of a compound page has
 * those of all. Skips the case where the kernel does not let us look.
 */
long page_references(const void *addr);
/* KPF_* of <linux/kernel-page-flags.h> of that page. */
unsigned long long page_flags(const void *addr);

#endif /* SELFTESTS_KCORE_H */
