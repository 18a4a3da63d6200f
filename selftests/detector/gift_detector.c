// SPDX-License-Identifier: GPL-2.0
/*
 * Deliberate faults, one for each checker of the debug kernel, made on demand:
 *	echo NAME >/sys/module/gift_detector/parameters/fault
 * The proof that the checkers are on and that scripts/vm believes them. Built
 * for that proof only, and useful nowhere else. No fault here brings the
 * machine down, if panic_on_oops is off: what follows it in the same boot still
 * runs.
 */
#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/page_ref.h>
#include <linux/platform_device.h>
#include <linux/scatterlist.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>

static DEFINE_MUTEX(first_lock);
static DEFINE_MUTEX(second_lock);
static DEFINE_SPINLOCK(atomic_lock);

/* The compiler must neither see through these nor drop what reads them. */
static volatile u8 sink;
static volatile u32 shift = 35;

static void use_after_free(void)
{
	u8 *p = kmalloc(64, GFP_KERNEL);

	if (!p)
		return;
	kfree(p);
	OPTIMIZER_HIDE_VAR(p);
	sink = READ_ONCE(p[8]);
}

static void vmalloc_out_of_bounds(void)
{
	u8 *p = vmalloc(PAGE_SIZE - 16);
	size_t i = PAGE_SIZE - 8;

	if (!p)
		return;
	OPTIMIZER_HIDE_VAR(i);
	sink = READ_ONCE(p[i]);
	vfree(p);
}

static void sleep_in_atomic(void)
{
	spin_lock(&atomic_lock);
	mutex_lock(&first_lock);
	mutex_unlock(&first_lock);
	spin_unlock(&atomic_lock);
}

static void lock_inversion(void)
{
	mutex_lock(&first_lock);
	mutex_lock(&second_lock);
	mutex_unlock(&second_lock);
	mutex_unlock(&first_lock);

	mutex_lock(&second_lock);
	mutex_lock(&first_lock);
	mutex_unlock(&first_lock);
	mutex_unlock(&second_lock);
}

static void shift_out_of_bounds(void)
{
	sink = 1U << shift;
}

static void do_nothing(struct timer_list *timer)
{
}

static void free_active_timer(void)
{
	struct timer_list *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, do_nothing, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	kfree(timer);
}

/* Given back with another length than it was mapped with. */
static void wrong_dma_unmap(void)
{
	struct platform_device *pdev;
	dma_addr_t addr;
	void *p;

	pdev = platform_device_register_simple("gift_detector",
					       PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(pdev))
		return;
	p = kmalloc(128, GFP_KERNEL);
	if (p) {
		addr = dma_map_single(&pdev->dev, p, 128, DMA_TO_DEVICE);
		if (!dma_mapping_error(&pdev->dev, addr))
			dma_unmap_single(&pdev->dev, addr, 64, DMA_TO_DEVICE);
	}
	kfree(p);
	platform_device_unregister(pdev);
}

static void list_del_twice(void)
{
	struct list_head head, entry;

	INIT_LIST_HEAD(&head);
	list_add(&entry, &head);
	list_del(&entry);
	list_del(&entry);
}

/* What has no struct page of its own by its address cannot be in a scatterlist. */
static void scatterlist_of_vmalloc(void)
{
	struct scatterlist sg;
	void *p = vmalloc(PAGE_SIZE);

	if (p)
		sg_init_one(&sg, p, 64);
	vfree(p);
}

/* One reference less than there are. The page is lost. */
static void put_page_once_more(void)
{
	struct page *page = alloc_page(GFP_KERNEL);

	if (page && page_ref_freeze(page, 1))
		put_page(page);
}

/* Several: a stray copy of a pointer hides one. */
static noinline void leak_memory(void)
{
	int i;

	for (i = 0; i < 16; i++) {
		u8 *p = kmalloc(200, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(p);
	}
}

/**
 * struct fault - a fault that can be made
 * @name: what it is called by
 * @make: makes it
 * @ends_task: what the checker says of it is BUG(), so it has a task of its own
 */
struct fault {
	const char *name;
	void (*make)(void);
	bool ends_task;
};

static const struct fault faults[] = {
	{ "lock-inversion", lock_inversion },
	{ "sleep-in-atomic", sleep_in_atomic },
	{ "shift-out-of-bounds", shift_out_of_bounds },
	{ "free-active-timer", free_active_timer },
	{ "use-after-free", use_after_free },
	{ "vmalloc-out-of-bounds", vmalloc_out_of_bounds },
	{ "wrong-dma-unmap", wrong_dma_unmap },
	{ "list-del-twice", list_del_twice, true },
	{ "scatterlist-of-vmalloc", scatterlist_of_vmalloc, true },
	{ "put-page-once-more", put_page_once_more, true },
	{ "leak", leak_memory },
};

struct fault_task {
	const struct fault *fault;
	struct completion started;
};

static int run_fault(void *arg)
{
	struct fault_task *t = arg;

	complete(&t->started);
	t->fault->make();
	return 0;
}

/* Returns when the task is gone, however it ended. */
static int make_in_task(const struct fault *fault)
{
	struct fault_task t = { .fault = fault };
	struct task_struct *task;

	init_completion(&t.started);
	task = kthread_create(run_fault, &t, "gift_detector");
	if (IS_ERR(task))
		return PTR_ERR(task);
	get_task_struct(task);
	wake_up_process(task);
	/* One that is stopped before it has begun never does. */
	wait_for_completion(&t.started);
	kthread_stop(task);
	put_task_struct(task);
	return 0;
}

static int make_fault(const char *name, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		if (!sysfs_streq(name, faults[i].name))
			continue;
		if (faults[i].ends_task)
			return make_in_task(&faults[i]);
		faults[i].make();
		return 0;
	}
	return -EINVAL;
}

static const struct kernel_param_ops fault_ops = { .set = make_fault };

module_param_cb(fault, &fault_ops, NULL, 0200);
MODULE_PARM_DESC(fault, "name of the fault to make");

static int __init detector_init(void)
{
	return 0;
}

static void __exit detector_exit(void)
{
}

module_init(detector_init);
module_exit(detector_exit);

MODULE_DESCRIPTION("Deliberate faults that prove the debug kernel's checkers");
MODULE_LICENSE("GPL");
