// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rule.hpp"

#include <fnmatch.h>
#include <infiniband/gift.h>

#include <algorithm>

namespace giftrun
{

namespace
{

constexpr unsigned int writes = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
/* What is asked for beside these is not understood, so the region is left alone. */
constexpr unsigned int understood =
	writes | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;

bool within_addresses(const Options &options, const Registration &r)
{
	const uint64_t end = r.address + r.length;

	return options.addresses.empty() ||
	       std::any_of(options.addresses.begin(), options.addresses.end(),
			   [&](const AddressRange &range) {
				   return r.address >= range.start && end <= range.end;
			   });
}

bool matches(const Options &options, const std::string &name)
{
	return std::any_of(options.mappings.begin(), options.mappings.end(),
			   [&](const std::string &pattern) {
				   return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
			   });
}

/* All of them: a region that is partly elsewhere is not named. */
bool within_mappings(const Options &options, const Registration &r, MappingNames mapping_names)
{
	if (options.mappings.empty()) {
		return true;
	}
	const std::vector<std::string> names = mapping_names(r.address, r.length);

	return !names.empty() &&
	       std::all_of(names.begin(), names.end(),
			   [&](const std::string &name) { return matches(options, name); });
}

Verdict judge(const Options &options, const Registration &r, MappingNames mapping_names)
{
	if (r.length == 0 || r.address + r.length < r.address) {
		return Verdict::empty;
	}
	if (r.access & IBV_ACCESS_GIFT) {
		return Verdict::already;
	}
	if (r.access & ~understood) {
		return Verdict::other_access;
	}
	if (r.access & writes && !options.drop_write) {
		return Verdict::writable;
	}
	if (r.access & IBV_ACCESS_REMOTE_READ && options.refresh && !options.remote_read) {
		return Verdict::remote_read;
	}
	if (r.length < options.min_size || r.length > options.max_size) {
		return Verdict::size;
	}
	if (!within_addresses(options, r)) {
		return Verdict::address;
	}
	if (!within_mappings(options, r, mapping_names)) {
		return Verdict::mapping;
	}
	return Verdict::named;
}

} // namespace

Decision decide(const Options &options, const Registration &registration,
		MappingNames mapping_names)
{
	const Verdict verdict = judge(options, registration, mapping_names);

	return {verdict,
		verdict == Verdict::named ? registration.access & ~writes : registration.access};
}

} // namespace giftrun
