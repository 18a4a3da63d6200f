// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "program.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace giftrun
{

namespace
{

class File
{
public:
	explicit File(const std::string &path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
	~File()
	{
		if (fd_ >= 0) {
			close(fd_);
		}
	}
	File(const File &) = delete;
	File &operator=(const File &) = delete;

	template <typename T>
	bool read(T *out, uint64_t offset)
	{
		return fd_ >= 0 && pread(fd_, out, sizeof(*out), static_cast<off_t>(offset)) ==
					   static_cast<ssize_t>(sizeof(*out));
	}

private:
	const int fd_;
};

/* 0 if it is a regular file that may be executed. */
int executable(const std::string &path)
{
	struct stat st;

	if (stat(path.c_str(), &st) != 0) {
		return errno;
	}
	if (S_ISDIR(st.st_mode)) {
		return EISDIR;
	}
	return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

/* The dynamic linker takes no library by its path into such a process. */
std::string privilege(const std::string &path)
{
	struct stat st;

	if (stat(path.c_str(), &st) != 0) {
		return "";
	}
	if ((st.st_mode & S_ISUID && st.st_uid != getuid()) ||
	    (st.st_mode & S_ISGID && st.st_gid != getgid())) {
		return "it is set-user-ID or set-group-ID";
	}
	if (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
		return "it has file capabilities";
	}
	return "";
}

} // namespace

Program find_program(const std::string &name)
{
	const char *variable = getenv("PATH"); // NOLINT(concurrency-mt-unsafe)
	const std::string path = variable ? variable : "/bin:/usr/bin";
	int error = ENOENT;

	if (name.find('/') != std::string::npos) {
		return {name, executable(name)};
	}
	for (size_t at = 0; !name.empty() && at <= path.size();) {
		const size_t end = std::min(path.find(':', at), path.size());
		const std::string folder = path.substr(at, end - at);
		const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
		const int found = executable(candidate);

		if (found == 0) {
			return {candidate, 0};
		}
		if (found == EACCES) {
			error = EACCES;
		}
		at = end + 1;
	}
	return {name, error};
}

std::string obstacle(const std::string &path)
{
	File file(path);
	Elf64_Ehdr header{};
	Elf64_Phdr segment{};
	std::string why = privilege(path);

	/* A script: its interpreter is not looked at. */
	if (!why.empty() || !file.read(&header, 0) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
		return why;
	}
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
		return "it is a program of another architecture";
	}
	for (unsigned int i = 0; i < header.e_phnum; i++) {
		if (!file.read(&segment, header.e_phoff + uint64_t{i} * header.e_phentsize)) {
			return "it is damaged";
		}
		if (segment.p_type == PT_INTERP) {
			return "";
		}
	}
	return "it is statically linked";
}

} // namespace giftrun
