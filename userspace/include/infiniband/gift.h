/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Names that the verbs headers of this machine may not have yet: the access
 * flag IBV_ACCESS_GIFT and the send flag IBV_SEND_INVALIDATE. Owns no function
 * and promises nothing: whether a device honours them is asked by
 * shca_query_caps() in <infiniband/sample_hca.h>, or, for any driver, of
 * /dev/ib_gift.
 */
#ifndef INFINIBAND_GIFT_H
#define INFINIBAND_GIFT_H

#include <infiniband/verbs.h>

/* Nothing here has linkage; rdma-core's build wants this of each public header. */
#ifdef __cplusplus
extern "C" {
#endif

/*
 * ibv_reg_mr(): take the memory as it is, without breaking copy-on-write. Legal
 * only with read access. Bytes written to such a page afterwards reach the
 * adapter when the memory is registered again, or refreshed: see
 * shca_query_stale() and shca_refresh_mr() in <infiniband/sample_hca.h>.
 * A stack that does not know this optional flag drops it without a word.
 */
#ifndef IBV_ACCESS_GIFT
#define IBV_ACCESS_GIFT (1 << 29)
#endif

/*
 * ibv_post_send() with IBV_WR_SEND: the same as IBV_WR_SEND_WITH_INV; the key is
 * in invalidate_rkey.
 */
#ifndef IBV_SEND_INVALIDATE
#define IBV_SEND_INVALIDATE (1 << 6)
#endif

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_GIFT_H */
