// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the files that stand in front of libibverbs call of each other.
 */
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>

#include "queue.hpp"

namespace giftrun
{

/* Empty if GIFT is honoured on a context's device, else why not. */
std::string refusal(const ibv_context *context);

/*
 * post.cpp: sees from now on what is posted to and polled from a context, if that is
 * of use there. False: it is not.
 */
bool hook(ibv_context *context);

/* post.cpp: the queue of a queue pair, seen or not. */
std::shared_ptr<SendQueue> queue_of(const ibv_qp *qp);

} // namespace giftrun
