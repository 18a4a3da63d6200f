// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows, as objects. Binding and invalidating them are work requests,
 * which the engine carries out.
 */
#include "driver.h"

/**
 * shca_alloc_mw() - allocate a window of type 1 or 2, not bound
 * @ibmw: the window; rkey is filled in
 * @udata: unused
 *
 * Return: 0, -ENOMEM or -EBUSY at the device's limit.
 */
int shca_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct shca_dev *dev = to_shca_dev(ibmw->device);
	struct shca_mw *mw = to_shca_mw(ibmw);
	int ret;

	ret = shca_count(&dev->nr_mw, SHCA_MAX_MW);
	if (ret)
		return ret;
	mw->key.kind = ibmw->type == IB_MW_TYPE_1 ? SHCA_KEY_WINDOW_1 :
						    SHCA_KEY_WINDOW_2;
	mw->key.state = SHCA_KEY_FREE;
	mw->key.pd = ibmw->pd;
	ret = shca_key_add(&dev->hca.keys, &mw->key);
	if (ret) {
		atomic_dec(&dev->nr_mw);
		return ret;
	}
	ibmw->rkey = mw->key.key;
	return 0;
}

/**
 * shca_dealloc_mw() - free a window; one that is bound is invalidated
 * @ibmw: the window
 *
 * Context: process, sleeps.
 * Return: 0.
 */
int shca_dealloc_mw(struct ib_mw *ibmw)
{
	struct shca_dev *dev = to_shca_dev(ibmw->device);

	shca_key_remove(&to_shca_mw(ibmw)->key);
	atomic_dec(&dev->nr_mw);
	return 0;
}
