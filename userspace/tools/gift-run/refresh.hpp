// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which lkey to send an SGE from, so that what is sent is what the program sees.
 */
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "fresh.hpp"
#include "region.hpp"

namespace giftrun
{

/*
 * If a page of the SGE is stale: the fresh region to send it from, held; nullptr if
 * it is right to send it as it is. 0 or an errno: then it must not be sent.
 */
int refresh(const ibv_context *context, const ibv_sge &sge, Fresh **fresh);

} // namespace giftrun
