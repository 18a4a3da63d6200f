/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The public interface of the sample HCA's provider, beside the verbs: what
 * an application may ask of a context before it relies on it. Link with
 * -lsample_hca.
 */
#ifndef INFINIBAND_SAMPLE_HCA_H
#define INFINIBAND_SAMPLE_HCA_H

#include <infiniband/gift.h>
#include <infiniband/verbs.h>
#include <rdma/sample_hca-abi.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * shca_query_caps - What a device and its provider both do
 * @context: any open device
 * @caps: where to put the bits of enum shca_caps: SHCA_CAP_GIFT, when
 *	IBV_ACCESS_GIFT is honoured and not only accepted; SHCA_CAP_SEND_W_INV,
 *	when a send with invalidate is carried out
 *
 * Returns 0, EOPNOTSUPP when @context is not a sample HCA's (which promises
 * neither) or EINVAL when an argument is NULL. @caps is 0 after a failure.
 */
int shca_query_caps(struct ibv_context *context, uint64_t *caps);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_SAMPLE_HCA_H */
