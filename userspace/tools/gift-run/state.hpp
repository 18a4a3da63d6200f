// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the library has in a process: one of it, made at the first use and never
 * unmade, since threads may post while the process exits. Owns what fork() does to
 * it.
 */
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "device.hpp"
#include "fresh.hpp"
#include "options.hpp"
#include "registry.hpp"
#include "report.hpp"

namespace giftrun
{

struct State {
	State();

	Options options;
	bool enabled = false; /* false: every call goes straight on */
	/* The one that gift-run became, and no child or child's program. */
	bool first_process = false;
	Registry registry;
	Report report;
	FreshCache fresh;

	/* Replaced in the child of a fork, where a thread may have had it locked. */
	std::unique_ptr<GiftDevice> device;
	/*
	 * Gift registrations and deregistrations one at a time, so that what
	 * /dev/ib_gift counts tells the pages of one region.
	 */
	std::unique_ptr<std::mutex> one_at_a_time;
};

State &state();

} // namespace giftrun
