/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Links of the sample HCA that a test makes for itself, each on a dummy network
 * interface of its own, and the running of the rdma tool. Never touches a link
 * that it has not made.
 */
#ifndef SELFTESTS_LINK_H
#define SELFTESTS_LINK_H

#include <stddef.h>

struct link {
	char name[32], netdev[16];
};

/* Skips the case unless links can be made here. */
void link_need(void);
/* Makes the netdev and the link; @i tells the links of a program apart. */
struct link link_new(int i);
/* Removes what is left of both. */
void link_drop(const struct link *link);

/* rdma link add / delete: the exit status; what it says goes to @out. */
int rdma_link_add(const char *name, const char *netdev, char *out, size_t size);
int rdma_link_delete(const char *name);
/* The line that "rdma resource show NAME" prints: how many of each object. */
void rdma_resources(const char *name, char *out, size_t size);

#endif /* SELFTESTS_LINK_H */
