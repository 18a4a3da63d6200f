// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "options.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

namespace giftrun
{

namespace
{

enum class Value { none, optional, required };

struct Option {
	const char *name;
	Value value;
	const char *value_name;
	const char *help;
	/* False: the value makes no sense. */
	bool (*set)(Options *options, const std::string &value);
};

/* Digits only: strtoull() takes a sign and blanks. */
bool number(const std::string &text, int base, uint64_t *out, size_t *used)
{
	char *end = nullptr;

	if (text.empty() || !isxdigit(static_cast<unsigned char>(text[0]))) {
		return false;
	}
	errno = 0;
	const unsigned long long value = strtoull(text.c_str(), &end, base);
	*used = static_cast<size_t>(end - text.c_str());
	*out = value;
	return errno == 0 && *used != 0;
}

/* Bytes, with an optional K, M, G or T. */
bool size(const std::string &text, uint64_t *out)
{
	static const std::string units = "KMGT";
	size_t used = 0;

	if (!number(text, 10, out, &used)) {
		return false;
	}
	if (used == text.size()) {
		return true;
	}
	const size_t unit = units.find(static_cast<char>(toupper(text[used])));
	if (unit == std::string::npos || used + 1 != text.size()) {
		return false;
	}
	const auto shift = static_cast<unsigned int>(10 * (unit + 1));
	if (*out > UINT64_MAX >> shift) {
		return false;
	}
	*out <<= shift;
	return true;
}

bool hexadecimal(const std::string &text, uint64_t *out)
{
	size_t used = 0;

	return number(text, 16, out, &used) && used == text.size();
}

/* START-END as /proc/PID/maps has them. */
bool add_address(Options *options, const std::string &text)
{
	const size_t dash = text.find('-');
	AddressRange range{};

	if (dash == std::string::npos || !hexadecimal(text.substr(0, dash), &range.start) ||
	    !hexadecimal(text.substr(dash + 1), &range.end) || range.start >= range.end) {
		return false;
	}
	options->addresses.push_back(range);
	return true;
}

/* A line break would end it in the environment. */
bool add_mapping(Options *options, const std::string &text)
{
	if (text.empty() || text.find('\n') != std::string::npos) {
		return false;
	}
	options->mappings.push_back(text);
	return true;
}

bool set_report(Options *options, const std::string &text)
{
	options->report = true;
	options->report_file = text;
	return text.find('\n') == std::string::npos;
}

bool set_fresh_limit(Options *options, const std::string &text)
{
	size_t used = 0;

	return number(text, 10, &options->fresh_limit, &used) && used == text.size();
}

#define FLAG(member, to)                            \
	[](Options *options, const std::string &) { \
		options->member = (to);             \
		return true;                        \
	}

const Option table[] = {
	{"drop-write", Value::none, "",
	 "give GIFT also to regions that ask for LOCAL_WRITE or\n"
	 "REMOTE_WRITE, without these; needs a bound or a filter",
	 FLAG(drop_write, true)},
	{"min-size", Value::required, "SIZE", "only regions of at least SIZE bytes (K, M, G, T)",
	 [](Options *options, const std::string &value) {
		 return size(value, &options->min_size);
	 }},
	{"max-size", Value::required, "SIZE", "only regions of at most SIZE bytes",
	 [](Options *options, const std::string &value) {
		 return size(value, &options->max_size);
	 }},
	{"address", Value::required, "START-END",
	 "only regions within these hexadecimal addresses; may be\nrepeated", add_address},
	{"mapping", Value::required, "PATTERN",
	 "only regions in mappings whose name in /proc/PID/maps\n"
	 "matches PATTERN ([anon] for none); may be repeated",
	 add_mapping},
	{"remote-read", Value::none, "",
	 "give GIFT also to regions that peers may read, which\n--refresh does not cover",
	 FLAG(remote_read, true)},
	{"refresh", Value::none, "", "send what the program sees at the post (the default)",
	 FLAG(refresh, true)},
	{"no-refresh", Value::none, "", "do not: the program registers again itself",
	 FLAG(refresh, false)},
	{"fresh-limit", Value::required, "N", "keep at most N idle fresh regions (256)",
	 set_fresh_limit},
	{"report", Value::optional, "FILE",
	 "at exit, say for each region what was held, pinned and\n"
	 "refreshed, on standard error or appended to FILE",
	 set_report},
	{"help", Value::none, "", "this text", FLAG(help, true)},
	{"version", Value::none, "", "the version", FLAG(version, true)},
};

#undef FLAG

const Option *find(const std::string &name)
{
	for (const Option &option : table) {
		if (name == option.name) {
			return &option;
		}
	}
	return nullptr;
}

/* What no single option can see. */
std::string check(const Options &options)
{
	if (options.min_size > options.max_size) {
		return "--min-size is above --max-size: no region is named";
	}
	if (options.drop_write && options.min_size == 0 && options.max_size == UINT64_MAX &&
	    options.addresses.empty() && options.mappings.empty()) {
		return "--drop-write takes the right to write from regions that it names: say "
		       "which "
		       "with --min-size, --max-size, --address or --mapping";
	}
	return "";
}

std::string hex(uint64_t value)
{
	static const char digits[] = "0123456789abcdef";
	std::string text;

	do {
		text.insert(text.begin(), digits[value & 0xf]);
		value >>= 4;
	} while (value != 0);
	return text;
}

} // namespace

Parsed parse(const std::vector<std::string> &args)
{
	Parsed parsed;
	size_t i = 0;

	for (; i < args.size(); i++) {
		const std::string &arg = args[i];

		if (arg == "--") {
			i++;
			break;
		}
		if (arg.size() < 2 || arg[0] != '-') {
			break;
		}
		const size_t equals = arg.find('=');
		const bool has_value = equals != std::string::npos;
		const Option *option =
			arg[1] == '-' ? find(arg.substr(2, has_value ? equals - 2 : equals))
				      : nullptr;
		std::string value = has_value ? arg.substr(equals + 1) : "";

		if (!option) {
			parsed.error = "no option '" + arg + "'";
			return parsed;
		}
		if (has_value && option->value == Value::none) {
			parsed.error = std::string("--") + option->name + " takes no value";
			return parsed;
		}
		if (!has_value && option->value == Value::required) {
			if (i + 1 == args.size()) {
				parsed.error = arg + " needs a value: " + option->value_name;
				return parsed;
			}
			value = args[++i];
		}
		if (!option->set(&parsed.options, value)) {
			parsed.error = std::string("--") + option->name + ": '" + value +
				       "' is no " + option->value_name;
			return parsed;
		}
	}
	parsed.rest = i;
	parsed.error = check(parsed.options);
	return parsed;
}

std::string to_environment(const Options &options)
{
	const Options defaults;
	std::string out;
	const auto add = [&out](const std::string &arg) { out += (out.empty() ? "" : "\n") + arg; };

	if (options.drop_write) {
		add("--drop-write");
	}
	if (options.min_size != defaults.min_size) {
		add("--min-size=" + std::to_string(options.min_size));
	}
	if (options.max_size != defaults.max_size) {
		add("--max-size=" + std::to_string(options.max_size));
	}
	for (const AddressRange &range : options.addresses) {
		add("--address=" + hex(range.start) + "-" + hex(range.end));
	}
	for (const std::string &pattern : options.mappings) {
		add("--mapping=" + pattern);
	}
	if (options.remote_read) {
		add("--remote-read");
	}
	if (!options.refresh) {
		add("--no-refresh");
	}
	if (options.fresh_limit != defaults.fresh_limit) {
		add("--fresh-limit=" + std::to_string(options.fresh_limit));
	}
	if (options.report) {
		add("--report=" + options.report_file);
	}
	return out;
}

Parsed from_environment(const char *value)
{
	std::vector<std::string> args;
	const std::string text = value;

	for (size_t at = 0; at < text.size();) {
		const size_t end = std::min(text.find('\n', at), text.size());

		args.push_back(text.substr(at, end - at));
		at = end + 1;
	}
	Parsed parsed = parse(args);
	if (parsed.error.empty() && parsed.rest != args.size()) {
		parsed.error = "no option '" + args[parsed.rest] + "'";
	}
	return parsed;
}

std::string usage()
{
	constexpr size_t column = 26;
	std::string out = "usage: gift-run [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
			  "Runs PROGRAM with RDMA registrations that break no copy-on-write.\n\n";

	for (const Option &option : table) {
		std::string left = std::string("  --") + option.name;

		if (option.value == Value::required) {
			left += std::string(" ") + option.value_name;
		} else if (option.value == Value::optional) {
			left += std::string("[=") + option.value_name + "]";
		}
		left.resize(std::max(left.size() + 1, column), ' ');
		out += left;
		for (const char *c = option.help; *c; c++) {
			out += *c;
			if (*c == '\n') {
				out.append(column, ' ');
			}
		}
		out += '\n';
	}
	return out + "\nSee gift-run(1).\n";
}

} // namespace giftrun
