// SPDX-License-Identifier: GPL-2.0
/*
 * Deliberate faults, one for each checker of the debug kernel, made on demand:
 *	echo NAME >/sys/module/gift_detector/parameters/fault
 * The proof that the checkers are on and that scripts/vm believes them. Built
 * for that proof only, and useful nowhere else. No fault here brings the
 * machine down: what follows it in the same boot still runs.
 */
#include <linux/module.h>
#include <linux/mutex.h>
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

/* Several: a stray copy of a pointer hides one. */
static noinline void leak_memory(void)
{
	int i;

	for (i = 0; i < 16; i++) {
		u8 *p = kmalloc(200, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(p);
	}
}

static const struct {
	const char *name;
	void (*make)(void);
} faults[] = {
	{ "lock-inversion", lock_inversion },
	{ "sleep-in-atomic", sleep_in_atomic },
	{ "shift-out-of-bounds", shift_out_of_bounds },
	{ "free-active-timer", free_active_timer },
	{ "use-after-free", use_after_free },
	{ "vmalloc-out-of-bounds", vmalloc_out_of_bounds },
	{ "leak", leak_memory },
};

static int make_fault(const char *name, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		if (!sysfs_streq(name, faults[i].name))
			continue;
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
