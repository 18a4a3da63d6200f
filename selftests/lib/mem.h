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

/* Pages in a row that are alike in what was written, for KSM. */
#define MEM_ALIKE	2

struct mem;

/* What any registration, plain or GIFT, brings into memory. */
enum mem_fills { FILLS_NOTHING, FILLS_ANON, FILLS_CACHE, FILLS_HUGE };

/* What sort of mapping it is, as far as what may happen to it depends on that. */
enum mem_sort { SORT_ANON, SORT_PRIVATE_FILE, SORT_SHARED, SORT_HUGETLB_PRIVATE,
		SORT_HUGETLB_SHARED, SORT_MIXED };

struct mem_kind {
	const char *name;
	enum mem_sort sort;
	/* How GIFT takes it; IB_GIFT_PAGE_KINDS when mem.taken says it by page. */
	enum ib_gift_page_kind taken;
	enum mem_fills fills;
	/* Makes m->p and m->length, or ends the case as failed. */
	void (*make)(struct mem *m);
	bool read_only;			/* the owner cannot write to it */
	bool unmapped;			/* in memory, not in the page tables */
	bool unshares;			/* GIFT copies it like a plain registration */
	bool huge;			/* its length is one of huge pages */
	size_t length;			/* if it is not the test's to choose */
};

/*
 * A piece of memory in a mapping of its own. For memory shared by fork the
 * other process waits for mem_other(); for those kinds that have their region
 * in the child, mem_make() returns in the child.
 */
struct mem {
	const struct mem_kind *kind;
	unsigned char *p;		/* what is to be registered */
	size_t length;
	unsigned char *map;		/* the mapping it lies in */
	size_t map_length;
	unsigned char *taken;		/* how GIFT takes each of its pages */
	/* The parts of it that a test looks at, from its start on. */
	size_t windows, window, distance;
	struct mem *parts;		/* of a mixture */
	size_t nr_parts;
	void *place;			/* where it has to lie, for a part */
	int fd;
	int sock;			/* to the process that shares it */
	pid_t other;
};

extern const struct mem_kind
	mem_untouched, mem_read, mem_written, mem_ksm, mem_forked_parent,
	mem_forked_child, mem_swapped, mem_forked_swapped, mem_private_file,
	mem_file_read, mem_file_hole, mem_file_written, mem_shared_file, mem_memfd,
	mem_readonly_untouched, mem_readonly_written, mem_thp_untouched,
	mem_thp_read, mem_thp_written, mem_thp_half, mem_thp_halved, mem_thp_forked,
	mem_thp_forked_child, mem_hugetlb_untouched, mem_hugetlb_private,
	mem_hugetlb_shared, mem_hugetlb_forked, mem_hugetlb_forked_child,
	mem_unaligned, mem_one_byte, mem_sparse, mem_mixed;

/* All of them. */
extern const struct mem_kind *const mem_kinds[];
extern const size_t mem_nr_kinds;

struct mem mem_make(const struct mem_kind *kind, size_t length);
/* Unmaps it and ends the process that shares it. */
void mem_drop(struct mem *m);
/* The whole range with no mapping beside it that could be merged with it. */
void *mem_map(size_t length, size_t unit, int prot, int flags, int fd);
bool mem_is_hugetlb(const struct mem_kind *kind);
/* Do the owner's writes reach a region taken before, all of them? */
bool mem_coherent(const struct mem_kind *kind);
/* Calls @fn with each mapping that it is made of. */
void mem_each(struct mem *m, void (*fn)(struct mem *part));
/* The mapping that a page of it lies in: of a mixture a part, or itself. */
const struct mem *mem_at(const struct mem *m, size_t page);
/* The pages that it touches, and how many of them are taken in a way. */
size_t mem_pages(const struct mem *m);
size_t mem_taken(const struct mem *m, enum ib_gift_page_kind kind);
/* Writes where tests look, if it can be written to. */
void mem_write(struct mem *m, unsigned char byte);
/* Bytes that a test looks at, and a copy of them as the owner sees them. */
size_t mem_seen(const struct mem *m);
unsigned char *mem_look(const struct mem *m);

/*
 * What the process that shares it is told: to do something to all of it, to
 * exit, or to run another program.
 */
enum mem_order { MEM_WRITE = 'w', MEM_UNMAP = 'u', MEM_EXIT = 'x', MEM_EXEC = 'e',
		 MEM_PAGEOUT = 'p', MEM_MERGE = 'm', MEM_SPLIT = 's',
		 MEM_COLLAPSE = 'c' };
/* Of a mixture, the processes of all parts. */
void mem_other(struct mem *m, enum mem_order order, unsigned char byte);
/* The same things to one's own; not of mixtures. */
void mem_do(struct mem *m, enum mem_order order, unsigned char byte);
/*
 * KSM scans all that is mergeable, which is seen by two pages more, of another
 * mapping, that it merges.
 */
void mem_scan(void);
/* For the making of memory: forks the process that shares it. */
void mem_share(struct mem *m, bool region_in_child);
/* Does as it is told by who has the other end of the socket, and ends with him. */
__attribute__((noreturn)) void mem_serve(struct mem *m, int sock);

/* What /dev/ib_gift says of the caller's memory. */
struct ib_gift_stats gift_stats(void);

#endif /* SELFTESTS_MEM_H */
