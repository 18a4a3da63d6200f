// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mappings.hpp"

#include <cinttypes>
#include <cstdlib>
#include <cstring>

namespace giftrun
{

std::vector<std::string> mapping_names_in(FILE *maps, uint64_t address, uint64_t length)
{
	const uint64_t end = address + length;
	std::vector<std::string> names;
	char *line = nullptr;
	size_t room = 0;
	uint64_t at = address;

	while (at < end && getline(&line, &room, maps) > 0) {
		char *next = nullptr;
		const uint64_t first = strtoull(line, &next, 16);
		const uint64_t last = *next == '-' ? strtoull(next + 1, &next, 16) : 0;
		int name = 0;

		if (last <= at) {
			continue;
		}
		if (first > at) {
			break;
		}
		/* permissions, offset, device, inode; the name may have blanks in it. */
		(void)sscanf(next, "%*s %*s %*s %*s %n", &name); // NOLINT(cert-err34-c)
		line[strcspn(line, "\n")] = '\0';
		names.emplace_back(name && next[name] ? next + name : anonymous_name);
		at = last;
	}
	if (at < end) {
		names.emplace_back(hole_name);
	}
	free(line);
	return names;
}

std::vector<std::string> mapping_names(uint64_t address, uint64_t length)
{
	FILE *maps = fopen("/proc/self/maps", "re");

	if (!maps) {
		return {};
	}
	std::vector<std::string> names = mapping_names_in(maps, address, length);
	fclose(maps);
	return names;
}

} // namespace giftrun
