/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory of every kind that registration treats in its own way, what is
 * expected of each, and what ib_gift says it did. Registers nothing itself.
 */
#ifndef SELFTESTS_MEM_H
#define SELFTESTS_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <rdma/ib_gift.h>

#define GIFT_READ	((unsigned int)IB_UVERBS_ACCESS_GIFT | IBV_ACCESS_REMOTE_READ)

struct mem;

struct mem_kind {
	const char *name;
	/* Makes m->p and m->length, or ends the case as skipped. */
	void (*make)(struct mem *m);
	enum ib_gift_page_kind taken;	/* by GIFT */
	bool plain_copies;		/* a plain registration allocates it all */
	bool fills_cache;		/* any registration fills the page cache */
	bool read_only;			/* the owner cannot write to it */
	bool sticky;			/* survives its process: munmap frees nothing */
	size_t unit;			/* alignment; 0 is a page */
};

/*
 * A piece of memory in a mapping of its own. For memory shared by fork the
 * other process waits for mem_other(); for those kinds that have their region
 * in the child, mem_make() returns in the child.
 */
struct mem {
	const struct mem_kind *kind;
	unsigned char *p;
	size_t length;
	int fd;
	int sock;			/* to the process that shares it */
	pid_t other;
};

extern const struct mem_kind
	mem_untouched, mem_read, mem_written, mem_ksm, mem_forked_parent,
	mem_forked_child, mem_private_file, mem_file_hole, mem_shared_file,
	mem_memfd, mem_readonly_untouched, mem_readonly_written,
	mem_thp_untouched, mem_thp_written, mem_thp_forked,
	mem_hugetlb_private, mem_hugetlb_shared;

struct mem mem_make(const struct mem_kind *kind, size_t length);
/* Unmaps it and ends the process that shares it. */
void mem_drop(struct mem *m);
/* The whole range with no mapping beside it that could be merged with it. */
void *mem_map(size_t length, size_t unit, int prot, int flags, int fd);
/* Does the kind's pages' owner writes reach a region taken before? */
bool mem_coherent(const struct mem_kind *kind);

/* The process that shares it writes all of it, unmaps it or exits. */
enum mem_order { MEM_WRITE = 'w', MEM_UNMAP = 'u', MEM_EXIT = 'x' };
void mem_other(struct mem *m, enum mem_order order, unsigned char byte);

/* What /dev/ib_gift says of the caller's memory. */
struct ib_gift_stats gift_stats(void);

#endif /* SELFTESTS_MEM_H */
