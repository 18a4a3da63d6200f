// SPDX-License-Identifier: GPL-2.0
/*
 * What the device says of itself, and the table of everything it can do.
 */
#include <linux/module.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "driver.h"

#define SHCA_PKEY	0xffff
/* No vendor: an OUI of all ones is nobody's. */
#define SHCA_VENDOR_ID	0xffffff
#define SHCA_PART_ID	1

/**
 * shca_port_is_up() - can the netdev carry traffic
 * @dev: the device
 *
 * Return: true when it is up and has a carrier.
 */
bool shca_port_is_up(const struct shca_dev *dev)
{
	return netif_running(dev->netdev) && netif_carrier_ok(dev->netdev);
}

/**
 * shca_caps() - what the device tells a process that it can do
 * @dev: the device
 *
 * Return: enum shca_caps.
 */
u64 shca_caps(const struct shca_dev *dev)
{
	return SHCA_CAP_GIFT |
	       (dev->hca.send_w_inv ? SHCA_CAP_SEND_W_INV : 0);
}

static int shca_query_device(struct ib_device *ibdev,
			     struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	struct shca_dev *dev = to_shca_dev(ibdev);
	struct shca_query_device_resp resp = { .caps = shca_caps(dev) };

	memset(attr, 0, sizeof(*attr));
	addrconf_addr_eui48((u8 *)&attr->sys_image_guid, dev->netdev->dev_addr);
	attr->vendor_id = SHCA_VENDOR_ID;
	attr->vendor_part_id = SHCA_PART_ID;
	attr->hw_ver = SHCA_ABI_VERSION;
	attr->max_mr_size = SHCA_MAX_MR_SIZE;
	attr->page_size_cap = PAGE_SIZE;
	attr->max_qp = SHCA_MAX_QP;
	attr->max_qp_wr = SHCA_MAX_QP_WR;
	attr->device_cap_flags = IB_DEVICE_MEM_WINDOW |
				 IB_DEVICE_MEM_WINDOW_TYPE_2B |
				 IB_DEVICE_CURR_QP_STATE_MOD |
				 IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_SYS_IMAGE_GUID;
	if (dev->hca.send_w_inv)
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
	attr->kernel_cap_flags = IBK_ALLOW_USER_UNREG;
	attr->max_send_sge = SHCA_MAX_SGE;
	attr->max_recv_sge = SHCA_MAX_SGE;
	attr->max_sge_rd = SHCA_MAX_SGE;
	attr->max_cq = SHCA_MAX_CQ;
	attr->max_cqe = SHCA_MAX_CQE;
	attr->max_mr = SHCA_MAX_MR;
	attr->max_pd = SHCA_MAX_PD;
	attr->max_qp_rd_atom = SHCA_MAX_RD_ATOMIC;
	attr->max_qp_init_rd_atom = SHCA_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = SHCA_MAX_RD_ATOMIC * SHCA_MAX_QP;
	attr->atomic_cap = IB_ATOMIC_NONE;
	attr->max_mw = SHCA_MAX_MW;
	attr->max_pkeys = 1;

	if (!udata || !udata->outlen)
		return 0;
	return shca_udata_response(udata, &resp, sizeof(resp));
}

static int shca_query_port(struct ib_device *ibdev, u32 port,
			   struct ib_port_attr *attr)
{
	struct shca_dev *dev = to_shca_dev(ibdev);

	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = iboe_get_mtu(dev->netdev->mtu);
	attr->gid_tbl_len = SHCA_GID_TABLE_LEN;
	attr->max_msg_sz = SHCA_MAX_MSG_SIZE;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->ip_gids = true;
	attr->state = shca_port_is_up(dev) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = attr->state == IB_PORT_ACTIVE ?
				   IB_PORT_PHYS_STATE_LINK_UP :
				   IB_PORT_PHYS_STATE_DISABLED;
	/* Nominal: there is no wire, and copies go as fast as memory lets them. */
	attr->active_speed = IB_SPEED_SDR;
	attr->active_width = IB_WIDTH_1X;
	return 0;
}

/*
 * No MADs and no connection manager: there is no QP1 to carry them.
 */
static int shca_get_port_immutable(struct ib_device *ibdev, u32 port,
				   struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP |
				    RDMA_CORE_CAP_ETH_AH |
				    RDMA_CORE_CAP_AF_IB;
	immutable->gid_tbl_len = SHCA_GID_TABLE_LEN;
	immutable->pkey_tbl_len = 1;
	return 0;
}

static enum rdma_link_layer shca_get_link_layer(struct ib_device *ibdev,
						u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int shca_query_pkey(struct ib_device *ibdev, u32 port, u16 index,
			   u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = SHCA_PKEY;
	return 0;
}

static ssize_t hca_type_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", SHCA_HCA_TYPE);
}

/* How the provider recognises the device, whatever its name. */
static DEVICE_ATTR_RO(hca_type);

static struct attribute *shca_attributes[] = {
	&dev_attr_hca_type.attr,
	NULL,
};

static const struct attribute_group shca_attribute_group = {
	.attrs = shca_attributes,
};

const struct ib_device_ops shca_device_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = SHCA_ABI_VERSION,
	.device_group = &shca_attribute_group,

	.query_device = shca_query_device,
	.query_port = shca_query_port,
	.query_pkey = shca_query_pkey,
	.get_port_immutable = shca_get_port_immutable,
	.get_link_layer = shca_get_link_layer,
	.enable_driver = shca_enable_driver,
	.dealloc_driver = shca_dealloc_driver,

	.alloc_ucontext = shca_alloc_ucontext,
	.dealloc_ucontext = shca_dealloc_ucontext,
	.disassociate_ucontext = shca_disassociate_ucontext,
	.mmap = shca_mmap,
	.mmap_free = shca_mmap_free,

	.alloc_pd = shca_alloc_pd,
	.dealloc_pd = shca_dealloc_pd,
	.reg_user_mr = shca_reg_user_mr,
	.rereg_user_mr = shca_rereg_user_mr,
	.dereg_mr = shca_dereg_mr,
	.fill_res_mr_entry = shca_fill_res_mr_entry,
	.alloc_mw = shca_alloc_mw,
	.dealloc_mw = shca_dealloc_mw,
	.create_cq = shca_create_cq,
	.destroy_cq = shca_destroy_cq,
	.req_notify_cq = shca_req_notify_cq,
	.create_qp = shca_create_qp,
	.modify_qp = shca_modify_qp,
	.query_qp = shca_query_qp,
	.destroy_qp = shca_destroy_qp,
	.post_send = shca_post_send,
	.post_recv = shca_post_recv,

	INIT_RDMA_OBJ_SIZE(ib_ucontext, shca_ucontext, ibucontext),
	INIT_RDMA_OBJ_SIZE(ib_pd, shca_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_mw, shca_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_cq, shca_ibcq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_qp, shca_ibqp, ibqp),
};
