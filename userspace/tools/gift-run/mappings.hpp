// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The names of this process's mappings, as /proc/self/maps has them.
 */
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace giftrun
{

/* Of a mapping without a name, and of a hole, which nothing can match. */
constexpr const char *anonymous_name = "[anon]";
constexpr const char *hole_name = "";

/*
 * Names of what is mapped in a range, by ascending address; a hole is hole_name,
 * once. Nothing if the file cannot be read.
 */
std::vector<std::string> mapping_names(uint64_t address, uint64_t length);
std::vector<std::string> mapping_names_in(FILE *maps, uint64_t address, uint64_t length);

} // namespace giftrun
