// SPDX-License-Identifier: GPL-2.0
/*
 * Protection domains. The engine only compares their addresses.
 */
#include "driver.h"

/**
 * shca_alloc_pd() - allocate a protection domain
 * @ibpd: the PD
 * @udata: unused
 *
 * Return: 0, or -ENOMEM at the device's limit.
 */
int shca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return shca_count(&to_shca_dev(ibpd->device)->nr_pd, SHCA_MAX_PD);
}

/**
 * shca_dealloc_pd() - free a protection domain that nothing uses
 * @ibpd: the PD
 * @udata: unused
 *
 * Return: 0.
 */
int shca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	atomic_dec(&to_shca_dev(ibpd->device)->nr_pd);
	return 0;
}
