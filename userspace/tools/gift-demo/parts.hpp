// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The two parts of the demonstration. Each prints what it does and tells
 * whether everything was as it has to be.
 */
#pragma once

#include "connection.hpp"
#include "peer.hpp"

namespace demo
{

bool show_registration(ibv_context *context, Peer &peer);
bool show_send_with_invalidate(ibv_context *context, Peer &peer);

} // namespace demo
