// SPDX-License-Identifier: GPL-2.0
/*
 * A live patch of one of the functions that ib_gift redirects, to see that the two
 * exclude each other. What it puts in their place is of no use: nothing may be
 * registered while it is loaded.
 */
#include <linux/err.h>
#include <linux/livepatch.h>
#include <linux/module.h>
#include <linux/string.h>
#include <rdma/ib_umem.h>

static char *function = "ib_umem_get";
module_param(function, charp, 0444);
MODULE_PARM_DESC(function, "ib_umem_get or ib_umem_release");

static struct ib_umem *patched_get(struct ib_device *device, unsigned long addr,
				   size_t size, int access)
{
	return ERR_PTR(-EUCLEAN);
}

static void patched_release(struct ib_umem *umem)
{
}

static struct klp_func funcs[] = {
	{ .old_name = "ib_umem_get", .new_func = patched_get },
	{ }
};

static struct klp_object objs[] = {
	{ .name = "ib_uverbs", .funcs = funcs },
	{ }
};

static struct klp_patch patch = {
	.mod = THIS_MODULE,
	.objs = objs,
};

static int __init gift_livepatch_init(void)
{
	if (!strcmp(function, "ib_umem_release")) {
		funcs[0].old_name = "ib_umem_release";
		funcs[0].new_func = patched_release;
	}
	return klp_enable_patch(&patch);
}

static void __exit gift_livepatch_exit(void)
{
}

module_init(gift_livepatch_init);
module_exit(gift_livepatch_exit);

MODULE_DESCRIPTION("A live patch of ib_umem_get or ib_umem_release");
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
