// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What gift-run is told: the options of its command line, and how they travel to
 * the preloaded library in the environment. Decides nothing about a region.
 *
 * Parsed by hand: getopt() has state that belongs to the program in whose process
 * the library runs.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace giftrun
{

/* Where the options of the library are. */
constexpr const char *options_variable = "GIFT_RUN";
/* The process that gift-run became. */
constexpr const char *process_variable = "GIFT_RUN_PROCESS";

struct AddressRange {
	uint64_t start;
	uint64_t end; /* the first byte after it */
};

struct Options {
	bool drop_write = false;
	uint64_t min_size = 0;
	uint64_t max_size = UINT64_MAX;
	std::vector<AddressRange> addresses; /* none: anywhere */
	std::vector<std::string> mappings;   /* patterns; none: any */
	bool remote_read = false;
	bool refresh = true;
	uint64_t fresh_limit = 256;
	bool report = false;
	std::string report_file; /* empty: standard error */
	bool help = false;
	bool version = false;
};

struct Parsed {
	Options options;
	size_t rest = 0;   /* the first argument that is no option */
	std::string error; /* empty: all is well */
};

/* The options at the start of args, up to "--" or what does not begin with '-'. */
Parsed parse(const std::vector<std::string> &args);

/* The options as one string for the environment, and back. */
std::string to_environment(const Options &options);
Parsed from_environment(const char *value);

/* What --help prints. */
std::string usage();

} // namespace giftrun
