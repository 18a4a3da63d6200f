// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which registrations become GIFT, and with which access. Registers nothing and
 * knows nothing of the kernel.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "options.hpp"

namespace giftrun
{

struct Registration {
	uint64_t address;
	uint64_t length;
	unsigned int access; /* enum ibv_access_flags */
};

/* Why a region is left alone, in the order in which it is found. */
enum class Verdict {
	named,
	empty,        /* no byte, or it wraps around */
	already,      /* the program itself asks for GIFT */
	other_access, /* an access that has no meaning together with GIFT */
	writable,
	remote_read,
	size,
	address,
	mapping,
};

struct Decision {
	Verdict verdict;
	unsigned int access; /* to register with, GIFT not included */
};

/* The names of the mappings that a range lies in; one that is empty has no name. */
using MappingNames = std::vector<std::string> (*)(uint64_t address, uint64_t length);

Decision decide(const Options &options, const Registration &registration,
		MappingNames mapping_names);

} // namespace giftrun
