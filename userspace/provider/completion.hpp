// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// From a completion queue entry to a verbs completion. Works on a copy of the
// entry, never on the ring.
#ifndef SHCA_COMPLETION_HPP
#define SHCA_COMPLETION_HPP

#include "wire.hpp"

#include <infiniband/verbs.h>

namespace shca
{

// Every value that an entry can hold gives a completion that the verbs allow; a
// status or opcode that is not in the ABI gives IBV_WC_GENERAL_ERR.
ibv_wc translate(const wire::Cqe &cqe);

} // namespace shca

#endif // SHCA_COMPLETION_HPP
