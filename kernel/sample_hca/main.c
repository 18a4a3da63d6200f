// SPDX-License-Identifier: GPL-2.0
/*
 * The module, its links and the list of its devices. Owns when a device comes
 * and goes; never what it does.
 */
#include <linux/if_arp.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/rdma_netlink.h>

#include "../ib_gift/ib_gift.h"
#include "driver.h"

#define SHCA_LINK_TYPE	"sample_hca"

static bool send_with_invalidate = true;
module_param(send_with_invalidate, bool, 0444);
MODULE_PARM_DESC(send_with_invalidate,
		 "offer sends with invalidate (default); off: act like a driver that does not know them");

/*
 * Every device that was ever registered and not yet forgotten. The list holds
 * a reference on each, so that a device which somebody else is unregistering
 * can be waited for: only then may the module's code go.
 */
static LIST_HEAD(shca_devs);
static DEFINE_MUTEX(shca_devs_lock);

/**
 * shca_enable_driver() - the device is registered, or is again
 * @ibdev: the device
 *
 * From here on events of the netdev reach it; what happened before is looked
 * up. ib_core also comes here after it has moved the device to another network
 * namespace.
 * Return: 0 or -ENOMEM.
 */
int shca_enable_driver(struct ib_device *ibdev)
{
	struct shca_dev *dev = to_shca_dev(ibdev);

	mutex_lock(&shca_devs_lock);
	WRITE_ONCE(dev->hca.port_up, shca_port_is_up(dev));
	mutex_unlock(&shca_devs_lock);
	return ib_gift_register_device(ibdev);
}

static void shca_set_port(struct shca_dev *dev)
{
	bool up = shca_port_is_up(dev);
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = SHCA_PORT_NUM,
		.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	if (READ_ONCE(dev->hca.port_up) == up)
		return;
	WRITE_ONCE(dev->hca.port_up, up);
	ib_dispatch_event(&event);
}

static void shca_netdev_changed(struct shca_dev *dev, unsigned long event)
{
	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		shca_set_port(dev);
		break;
	case NETDEV_UNREGISTER:
		ib_unregister_device_queued(&dev->ibdev);
		break;
	}
}

static int shca_netdev_event(struct notifier_block *nb, unsigned long event,
			     void *info)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(info);
	struct shca_dev *dev;

	mutex_lock(&shca_devs_lock);
	list_for_each_entry(dev, &shca_devs, link) {
		if (dev->netdev != netdev || !ib_device_try_get(&dev->ibdev))
			continue;
		shca_netdev_changed(dev, event);
		ib_device_put(&dev->ibdev);
	}
	mutex_unlock(&shca_devs_lock);
	return NOTIFY_OK;
}

static struct notifier_block shca_netdev_nb = {
	.notifier_call = shca_netdev_event,
};

/**
 * shca_dealloc_driver() - a device is unregistered and nobody uses it
 * @ibdev: the device
 */
void shca_dealloc_driver(struct ib_device *ibdev)
{
	struct shca_dev *dev = to_shca_dev(ibdev);

	ib_gift_unregister_device(ibdev);
	shca_key_table_destroy(&dev->hca.keys);
	dev_put(dev->netdev);
	/* The list no longer looks at a netdev that may be gone. */
	mutex_lock(&shca_devs_lock);
	dev->netdev = NULL;
	mutex_unlock(&shca_devs_lock);
}

/* Take a device off the list; its reference goes to the caller. */
static struct shca_dev *shca_take(bool only_dead)
{
	struct shca_dev *dev;

	mutex_lock(&shca_devs_lock);
	list_for_each_entry(dev, &shca_devs, link)
		if (!only_dead || !dev->netdev) {
			list_del(&dev->link);
			goto out;
		}
	dev = NULL;
out:
	mutex_unlock(&shca_devs_lock);
	return dev;
}

/* Returns only when the devices are unregistered, whoever began to. */
static void shca_forget(bool only_dead)
{
	struct shca_dev *dev;

	while ((dev = shca_take(only_dead))) {
		ib_unregister_device(&dev->ibdev);
		put_device(&dev->ibdev.dev);
	}
}

static void shca_setup(struct shca_dev *dev, struct net_device *netdev)
{
	struct ib_device *ibdev = &dev->ibdev;

	dev->netdev = netdev;
	dev_hold(netdev);
	shca_key_table_init(&dev->hca.keys);
	dev->hca.send_w_inv = send_with_invalidate;

	strscpy(ibdev->node_desc, "sample HCA", sizeof(ibdev->node_desc));
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_possible_cpus();
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, netdev->dev_addr);
	/* Doorbells, and notifications that the kernel gives. */
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) |
				  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	ibdev->driver_def = shca_uapi_defs;
	ib_set_device_ops(ibdev, &shca_device_ops);
}

static int shca_newlink(const char *name, struct net_device *netdev)
{
	struct shca_dev *dev;
	bool gone;
	int ret;

	if (netdev->type != ARPHRD_ETHER && netdev->type != ARPHRD_LOOPBACK)
		return -EINVAL;

	shca_forget(true);
	dev = ib_alloc_device(shca_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	shca_setup(dev, netdev);
	get_device(&dev->ibdev.dev);
	mutex_lock(&shca_devs_lock);
	list_add_tail(&dev->link, &shca_devs);
	mutex_unlock(&shca_devs_lock);

	/* Once it is registered, others may unregister and forget it. */
	get_device(&dev->ibdev.dev);
	ret = ib_device_set_netdev(&dev->ibdev, netdev, SHCA_PORT_NUM);
	if (!ret)
		ret = ib_register_device(&dev->ibdev, name, NULL);
	if (ret)
		goto err;

	/* What happened to the netdev before events reached the device. */
	rtnl_lock();
	gone = netdev->reg_state != NETREG_REGISTERED;
	rtnl_unlock();
	if (gone) {
		ib_unregister_device(&dev->ibdev);
		ret = -ENODEV;
	}
	put_device(&dev->ibdev.dev);
	return ret;

err:
	put_device(&dev->ibdev.dev);
	mutex_lock(&shca_devs_lock);
	list_del(&dev->link);
	mutex_unlock(&shca_devs_lock);
	put_device(&dev->ibdev.dev);
	ib_dealloc_device(&dev->ibdev);
	/* The core's way to say that the name is taken. */
	return ret == -ENFILE ? -EEXIST : ret;
}

static struct rdma_link_ops shca_link_ops = {
	.type = SHCA_LINK_TYPE,
	.newlink = shca_newlink,
};

static int __init shca_init(void)
{
	int ret;

	ret = shca_engine_init();
	if (ret)
		return ret;
	ret = register_netdevice_notifier(&shca_netdev_nb);
	if (ret) {
		shca_engine_exit();
		return ret;
	}
	rdma_link_register(&shca_link_ops);
	return 0;
}

static void __exit shca_exit(void)
{
	rdma_link_unregister(&shca_link_ops);
	unregister_netdevice_notifier(&shca_netdev_nb);
	shca_forget(false);
	shca_engine_exit();
}

module_init(shca_init);
module_exit(shca_exit);

MODULE_DESCRIPTION("Sample HCA: GIFT and send with invalidate in software");
MODULE_LICENSE("GPL");
MODULE_ALIAS_RDMA_LINK(SHCA_LINK_TYPE);
