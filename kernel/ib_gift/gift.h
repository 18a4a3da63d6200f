/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of ib_gift.ko share among themselves. Drivers see ib_gift.h
 * only. The functions are documented where they are defined.
 */
#ifndef _GIFT_H
#define _GIFT_H

#include <linux/kref.h>
#include <linux/mm_types.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/types.h>

#include "ib_gift.h"

struct gift_batch;

/*
 * Pages taken at a time. Batches end at multiples of this, so that a huge page
 * that is mapped as one falls into one batch.
 */
#define GIFT_BATCH	512

/* umem.c: one gift region */

/**
 * struct gift_runs - how each page of a region was taken, in page order
 * @run: kind and number of pages, packed; see runs.c
 * @nr: entries in use
 * @room: entries allocated
 */
struct gift_runs {
	u32 *run;
	unsigned int nr;
	unsigned int room;
};

/**
 * struct gift_cursor - a page of a region
 * @sg: the entry of the scatterlist that it is in
 * @sg_page: its number in that entry
 * @run: the run that it is in
 * @run_page: its number in that run
 */
struct gift_cursor {
	struct scatterlist *sg;
	unsigned int sg_page;
	unsigned int run;
	unsigned int run_page;
};

/**
 * struct gift_umem - a gift region
 * @umem: what the driver sees; must stay first
 * @ref: users of the structure. The pages are given back when the driver
 *	releases the region, whoever still has the structure.
 * @npages: pages charged and taken. The driver may change @umem.iova, from
 *	which ib_umem_num_pages() reckons.
 * @counts: @npages by kind
 * @runs: @npages in order
 * @marks: pages at regular distances, to find others by number; see index.c
 * @dma_attrs: how it is mapped for the device
 * @tgid: process that registered it, in the initial PID namespace
 * @comm: its name then
 * @hooked: the driver called ib_umem_get() itself; see every.c
 * @twin: region that has pages in common with it, until one of the two is
 *	released; see refresh.c
 * @own: bitmap of the pages that are not in common; the same for both
 * @nr_own: number of those
 */
struct gift_umem {
	struct ib_umem umem;
	struct kref ref;
	unsigned long npages;
	struct ib_gift_umem_counts counts;
	struct gift_runs runs;
	struct gift_cursor *marks;
	unsigned long dma_attrs;
	pid_t tgid;
	char comm[TASK_COMM_LEN];
	bool hooked;
	struct gift_umem *twin;
	unsigned long *own;
	unsigned long nr_own;
};

void gift_put(struct gift_umem *gift);
struct gift_umem *gift_alloc(struct ib_device *device, unsigned long addr,
			     size_t size, unsigned long npages);
void gift_drop(struct gift_umem *gift);
int gift_append(struct gift_umem *gift, struct gift_batch *batch,
		unsigned int nr, unsigned long left);
int gift_finish(struct gift_umem *gift);

/* classify.c: what is a page */

enum gift_mapping {
	GIFT_MAPPING_UNKNOWN,		/* gone, or not looked up */
	GIFT_MAPPING_SHARED,		/* writes go to the page itself */
	GIFT_MAPPING_PRIVATE_ANON,	/* writes may go to a copy; no file */
	GIFT_MAPPING_PRIVATE_FILE,	/* writes go to a copy */
};

/**
 * struct gift_page_facts - all that decides how a page is taken
 * @hugetlb: belongs to hugetlbfs
 * @device: ZONE_DEVICE memory
 * @anon: anonymous memory, KSM pages included
 * @ksm: merged by KSM
 * @zero: the zero page
 * @mapcount: page tables that map it; for anonymous memory
 * @mapping: what it is mapped by; for memory that is not anonymous
 */
struct gift_page_facts {
	bool hugetlb;
	bool device;
	bool anon;
	bool ksm;
	bool zero;
	int mapcount;
	enum gift_mapping mapping;
};

enum ib_gift_page_kind gift_kind(const struct gift_page_facts *facts);

/**
 * struct gift_batch - pages taken together
 * @pages: the pages. What a failed pin leaves here means nothing.
 * @kinds: enum ib_gift_page_kind of each
 * @pin_flags: FOLL_xxx for those to be pinned
 * @not_owned: the range goes on with memory that the process probably does not
 *	own; a guess for gift_take() that costs only time when it is wrong
 */
struct gift_batch {
	struct page *pages[GIFT_BATCH];
	u8 kinds[GIFT_BATCH];
	unsigned int pin_flags;
	bool not_owned;
};

int gift_classify(struct gift_batch *batch, struct mm_struct *mm,
		  unsigned long addr, unsigned int nr);

/* take.c: takes pages and gives them back */

int gift_take(struct gift_batch *batch, struct mm_struct *mm,
	      unsigned long addr, unsigned int nr);
void gift_untake(struct gift_batch *batch, unsigned int nr);
void gift_give_back(struct page *page, unsigned long nr,
		    enum ib_gift_page_kind kind);

/* runs.c */

int gift_runs_reserve(struct gift_runs *runs, unsigned int more);
void gift_runs_add(struct gift_runs *runs, enum ib_gift_page_kind kind,
		   unsigned int nr);
enum ib_gift_page_kind gift_run_kind(const struct gift_runs *runs,
				     unsigned int i);
unsigned int gift_run_pages(const struct gift_runs *runs, unsigned int i);
void gift_runs_free(struct gift_runs *runs);

/* index.c */

int gift_index_build(struct gift_umem *gift);
void gift_index_free(struct gift_umem *gift);
void gift_cursor_skip(struct gift_cursor *cursor, const struct gift_umem *gift,
		      unsigned long pages);
void gift_cursor_set(struct gift_cursor *cursor, const struct gift_umem *gift,
		     unsigned long page);
struct page *gift_cursor_next(struct gift_cursor *cursor,
			      const struct gift_umem *gift,
			      enum ib_gift_page_kind *kind);

/* limits.c */

int gift_charge(struct mm_struct *mm, unsigned long npages);
void gift_uncharge(struct mm_struct *mm, unsigned long npages);

/* regions.c: the live regions */

int gift_region_add(struct gift_umem *gift);
struct gift_umem *gift_region_find(const struct ib_umem *umem);
struct gift_umem *gift_region_remove(struct ib_umem *umem);
bool gift_is_region(const struct ib_umem *umem);
struct gift_umem *gift_region_next(struct mm_struct *mm, unsigned long *index);
void gift_regions_of(struct mm_struct *mm, struct ib_gift_stats *stats);
int gift_regions_show(struct seq_file *m, void *unused);
void gift_regions_init(void);
void gift_regions_exit(void);
u64 gift_count_regions(void);
u64 gift_count_pages(enum ib_gift_page_kind kind);

/* stale.c: pages that are not what was registered */

int gift_stale(struct mm_struct *mm, struct ib_gift_stale *query);
int gift_stale_pages(struct gift_umem *gift, unsigned long first,
		     unsigned long end, unsigned long *stale);

/* refresh.c: a region of which some pages are taken again */

bool gift_part(struct gift_umem *gift);
u64 gift_count_refreshes(void);
u64 gift_count_retaken(void);

/* devices.c */

int gift_device_caps(const char *name, u64 *caps);
bool gift_device_fit(const struct ib_device *device);

/* show.c: counters and debugfs */

extern const struct attribute_group *gift_attr_groups[];
void gift_debugfs_init(void);
void gift_debugfs_exit(void);

/* dev.c: /dev/ib_gift */

int gift_dev_register(void);
void gift_dev_unregister(void);

/* every.c: drivers that call ib_umem_get() */

int gift_every_init(void);
void gift_every_start(void);
void gift_every_cancel(void);
void gift_every_exit(void);
bool gift_every_on(void);
void gift_every_put(void);

#endif /* _GIFT_H */
