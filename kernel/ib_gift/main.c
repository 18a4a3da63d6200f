// SPDX-License-Identifier: GPL-2.0
/*
 * ib_gift.ko comes and goes.
 */
#include <linux/module.h>

#include "gift.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static int __init gift_init(void)
{
	int ret;

	gift_regions_init();
	ret = gift_every_init();
	if (ret)
		goto err_regions;
	/* Once it is there it may be open, and nothing may fail any more. */
	ret = gift_dev_register();
	if (ret)
		goto err_every;
	gift_debugfs_init();
	gift_every_start();
	return 0;

err_every:
	gift_every_cancel();
err_regions:
	gift_regions_exit();
	return ret;
}

static void __exit gift_exit(void)
{
	gift_every_exit();
	gift_debugfs_exit();
	gift_dev_unregister();
	gift_regions_exit();
}

module_init(gift_init);
module_exit(gift_exit);

MODULE_DESCRIPTION("Memory registration that leaves copy-on-write alone");
MODULE_LICENSE("GPL");
