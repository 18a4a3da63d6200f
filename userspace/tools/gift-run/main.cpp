// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * gift-run: puts the library and its options into the environment and becomes the
 * program. Exits with 125 for its own errors, 126 for a program that cannot be run
 * and 127 for one that is not found, as env(1) does.
 */
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "options.hpp"
#include "program.hpp"

namespace
{

enum Exit { own_error = 125, cannot_run = 126, not_found = 127 };

constexpr const char *library = "libgift-run.so";

int complain(int status, const std::string &what)
{
	fprintf(stderr, "gift-run: %s\n", what.c_str());
	return status;
}

std::string error_text(int error)
{
	return strerror(error); // NOLINT(concurrency-mt-unsafe)
}

/* Beside this program, as it is built, or where it is installed. */
std::string find_library()
{
	char self[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
	std::vector<std::string> folders{GIFT_RUN_LIBDIR};

	if (length > 0) {
		const std::string path(self, static_cast<size_t>(length));

		folders.insert(folders.begin(), path.substr(0, path.rfind('/')));
	}
	for (const std::string &folder : folders) {
		std::string path = folder + "/" + library;

		if (access(path.c_str(), R_OK) == 0) {
			return path;
		}
	}
	return "";
}

/* Before what is preloaded already: that may stand in front of the same calls. */
bool preload(const std::string &path)
{
	const char *others = getenv("LD_PRELOAD"); // NOLINT(concurrency-mt-unsafe)
	const std::string value = path + (others && *others ? std::string(":") + others : "");

	return setenv("LD_PRELOAD", value.c_str(), 1) == 0; // NOLINT(concurrency-mt-unsafe)
}

/* The program may change its folder before it reports. */
bool make_absolute(std::string *file)
{
	char folder[PATH_MAX];

	if (file->empty() || (*file)[0] == '/') {
		return true;
	}
	if (!getcwd(folder, sizeof(folder))) {
		return false;
	}
	*file = std::string(folder) + "/" + *file;
	return true;
}

int run(const std::vector<std::string> &args, char **argv)
{
	giftrun::Parsed parsed = giftrun::parse(args);

	if (!parsed.error.empty()) {
		return complain(own_error, parsed.error + "; --help lists the options");
	}
	if (parsed.options.help) {
		fputs(giftrun::usage().c_str(), stdout);
		return 0;
	}
	if (parsed.options.version) {
		puts("gift-run " GIFT_RUN_VERSION);
		return 0;
	}
	if (parsed.rest == args.size()) {
		return complain(own_error, "which program? --help lists the options");
	}

	const std::string &name = args[parsed.rest];
	const std::string path = find_library();
	if (path.empty()) {
		return complain(own_error, std::string("no ") + library +
						   " beside this program or in " GIFT_RUN_LIBDIR);
	}
	if (path.find_first_of(" :") != std::string::npos) {
		return complain(own_error,
				"LD_PRELOAD cannot have a path with a blank or a colon: " + path);
	}
	const giftrun::Program program = giftrun::find_program(name);
	if (program.error) {
		return complain(program.error == ENOENT ? not_found : cannot_run,
				name + ": " + error_text(program.error));
	}
	const std::string obstacle = giftrun::obstacle(program.path);
	if (!obstacle.empty()) {
		return complain(own_error,
				"nothing can be preloaded into " + name + ": " + obstacle);
	}
	if (!make_absolute(&parsed.options.report_file) || !preload(path) ||
	    // NOLINTNEXTLINE(concurrency-mt-unsafe)
	    setenv(giftrun::options_variable, giftrun::to_environment(parsed.options).c_str(), 1) ||
	    // NOLINTNEXTLINE(concurrency-mt-unsafe)
	    setenv(giftrun::process_variable, std::to_string(getpid()).c_str(), 1)) {
		return complain(own_error, error_text(errno));
	}
	/* args begins at argv[1]. */
	execv(program.path.c_str(), argv + 1 + parsed.rest);
	const int error = errno;
	return complain(error == ENOENT ? not_found : cannot_run,
			program.path + ": " + error_text(error));
}

} // namespace

int main(int argc, char **argv)
{
	return run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), argv);
}
