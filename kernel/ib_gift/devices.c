// SPDX-License-Identifier: GPL-2.0
/*
 * Which RDMA devices honour GIFT: those whose drivers said so; and, while other
 * drivers' calls are redirected (every.c), those whose drivers are fit for it.
 * Uses a device as a key, or as the caller's.
 */
#include <linux/export.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "../compat.h"
#include "gift.h"

/*
 * Drivers that pass the access flags of a registration to ib_umem_get() as they
 * are, and let a device write only through a region whose flags say so. Not here:
 * efa and mana remove the optional flags, mlx4 adds LOCAL_WRITE, usnic pins pages
 * by itself, vmw_pvrdma passes the flags to a hypervisor as well; and irdma and
 * mthca have a process register its queues, which the device writes to, like other
 * memory, with flags of its choice. What mlx5's devices allow through an indirect
 * key that a process made over such a region is not known. A driver that is not
 * known may do anything. Documentation/every-driver.rst has the details.
 */
static const bool driver_passes_flags[] = {
	[RDMA_DRIVER_CXGB4] = true,
	[RDMA_DRIVER_BNXT_RE] = true,
	[RDMA_DRIVER_OCRDMA] = true,
	[RDMA_DRIVER_QEDR] = true,
	[RDMA_DRIVER_HNS] = true,
	[RDMA_DRIVER_RXE] = true,
	[RDMA_DRIVER_HFI1] = true,
	[RDMA_DRIVER_QIB] = true,
	[RDMA_DRIVER_SIW] = COMPAT_SIW_USES_UMEM,
	[RDMA_DRIVER_ERDMA] = true,
};

struct gift_device {
	struct list_head node;
	struct ib_device *device;
};

static LIST_HEAD(devices);
static DEFINE_MUTEX(devices_lock);	/* devices */

static struct gift_device *find(struct ib_device *device)
{
	struct gift_device *entry;

	lockdep_assert_held(&devices_lock);
	list_for_each_entry(entry, &devices, node)
		if (entry->device == device)
			return entry;
	return NULL;
}

/**
 * ib_gift_register_device() - this device honours GIFT
 * @device: registered with ib_register_device(), or in enable_driver()
 *
 * For a driver all of whose user memory regions come from ib_gift_umem_get().
 * Saying it again changes nothing, so this can be called from
 * ib_device_ops.enable_driver, which ib_core also calls after it has moved a
 * device to another network namespace.
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int ib_gift_register_device(struct ib_device *device)
{
	struct gift_device *entry;

	entry = kmalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return -ENOMEM;
	entry->device = device;
	mutex_lock(&devices_lock);
	if (!find(device)) {
		list_add_tail(&entry->node, &devices);
		entry = NULL;
	}
	mutex_unlock(&devices_lock);
	kfree(entry);
	return 0;
}
EXPORT_SYMBOL_GPL(ib_gift_register_device);

/**
 * ib_gift_unregister_device() - this device is about to go
 * @device: what was registered; nothing happens to another
 *
 * Context: may sleep; before ib_unregister_device().
 */
void ib_gift_unregister_device(struct ib_device *device)
{
	struct gift_device *entry;

	mutex_lock(&devices_lock);
	entry = find(device);
	if (entry)
		list_del(&entry->node);
	mutex_unlock(&devices_lock);
	kfree(entry);
}
EXPORT_SYMBOL_GPL(ib_gift_unregister_device);

static bool fit(u32 driver, bool can_rereg)
{
	/* Re-registering could make a region writable behind our back. */
	if (can_rereg && !COMPAT_REREG_IS_CHECKED)
		return false;
	return driver < ARRAY_SIZE(driver_passes_flags) &&
	       driver_passes_flags[driver];
}

/**
 * gift_device_fit() - can calls of this device's driver be redirected
 * @device: that
 *
 * Context: any.
 * Return: whether GIFT is honoured, and safe, then.
 */
bool gift_device_fit(const struct ib_device *device)
{
	return fit(device->ops.driver_id, device->ops.rereg_user_mr);
}

/**
 * gift_device_caps() - what is honoured on a device
 * @name: its name; or empty, for what holds on every device
 * @caps: to fill in, enum ib_gift_caps
 *
 * Context: may sleep; a process, whose network namespace says what it can see.
 * Return: 0, or -ENODEV when the caller can see no such device.
 */
int gift_device_caps(const char *name, u64 *caps)
{
	struct ib_device *device;

	*caps = 0;
	if (!*name) {
		if (gift_every_on())
			*caps |= IB_GIFT_CAP_EVERY_DRIVER;
		return 0;
	}
	device = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
	if (!device)
		return -ENODEV;
	if (!rdma_dev_access_netns(device, current->nsproxy->net_ns)) {
		ib_device_put(device);
		return -ENODEV;
	}
	mutex_lock(&devices_lock);
	if (find(device))
		*caps |= IB_GIFT_CAP_HONOURED;
	else if (gift_every_on() && gift_device_fit(device))
		*caps |= IB_GIFT_CAP_HONOURED | IB_GIFT_CAP_EVERY_DRIVER;
	mutex_unlock(&devices_lock);
	ib_device_put(device);
	return 0;
}
