// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See memory.hpp. */
#include "memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "connection.hpp"

namespace demo
{

namespace
{

constexpr size_t mib = 1 << 20;

/* A setting in a file of one line, as it was before when this goes away. */
class Setting
{
public:
	Setting(std::string path, const std::string &value) : path_(std::move(path))
	{
		std::ifstream(path_) >> before_;
		write(value);
	}
	~Setting() { std::ofstream(path_) << before_; }
	Setting(const Setting &) = delete;
	Setting &operator=(const Setting &) = delete;

private:
	void write(const std::string &value) const
	{
		std::ofstream file(path_);

		file << value << std::flush;
		if (!file) {
			fail(EACCES, path_);
		}
	}

	std::string path_;
	std::string before_;
};

size_t number_in(const char *path)
{
	size_t number = 0;

	if (!(std::ifstream(path) >> number)) {
		throw std::runtime_error(std::string("no number in ") + path);
	}
	return number;
}

class Untouched : public Memory
{
public:
	Untouched() : Memory(64 * mib, Pattern::zero, -1) {}
};

class Owned : public Memory
{
public:
	Owned() : Memory(64 * mib, Pattern::unlike_pages, -1) { fill(); }
};

/* Equal pages that the kernel has merged into one. */
class Merged : public Memory
{
public:
	Merged()
		: Memory(16 * mib, Pattern::equal_pages, -1),
		  sleep_("/sys/kernel/mm/ksm/sleep_millisecs", "1"),
		  batch_("/sys/kernel/mm/ksm/pages_to_scan", "4096"),
		  run_("/sys/kernel/mm/ksm/run", "1")
	{
		const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);

		if (madvise(address(), length(), MADV_NOHUGEPAGE)) {
			fail(errno, "MADV_NOHUGEPAGE");
		}
		fill();
		if (madvise(address(), length(), MADV_MERGEABLE)) {
			fail(errno, "MADV_MERGEABLE");
		}
		while (number_in("/proc/self/ksm_merging_pages") < length() / page_size) {
			if (std::chrono::steady_clock::now() > deadline) {
				throw std::runtime_error("KSM did not merge the memory");
			}
			std::this_thread::sleep_for(std::chrono::milliseconds(20));
		}
	}

private:
	Setting sleep_;
	Setting batch_;
	Setting run_;
};

/* Written by this process and shared, since then, with a child that lives on. */
class Forked : public Memory
{
public:
	Forked() : Memory(64 * mib, Pattern::unlike_pages, -1)
	{
		fill();
		child_ = fork();
		if (child_ < 0) {
			fail(errno, "fork");
		}
		if (child_ == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;) {
				pause();
			}
		}
	}
	~Forked() override
	{
		kill(child_, SIGKILL);
		waitpid(child_, nullptr, 0);
	}

private:
	pid_t child_;
};

class File
{
public:
	explicit File(size_t pages)
	{
		std::vector<char> page(page_size);
		char name[] = "/tmp/gift-demo-XXXXXX";

		fd = mkostemp(name, O_CLOEXEC);
		if (fd < 0) {
			fail(errno, name);
		}
		unlink(name);
		for (size_t i = 0; i < pages; i++) {
			fill_page(page.data(), Pattern::unlike_pages, i);
			if (write(fd, page.data(), page_size) != static_cast<ssize_t>(page_size)) {
				fail(errno, "write to a file in /tmp");
			}
		}
	}
	~File() { close(fd); }
	File(const File &) = delete;
	File &operator=(const File &) = delete;

	int fd;
};

/* A file in the page cache, mapped privately. */
class PrivateFile : public Memory
{
public:
	PrivateFile() : PrivateFile(16 * mib, File(16 * mib / page_size)) {}

private:
	PrivateFile(size_t length, const File &file)
		: Memory(length, Pattern::unlike_pages, file.fd)
	{
	}
};

template <typename T>
std::unique_ptr<Memory> make()
{
	return std::make_unique<T>();
}

} // namespace

const Kind kinds[5] = {
	{"untouched", make<Untouched>, true},   {"KSM-merged", make<Merged>, true},
	{"shared by fork", make<Forked>, true}, {"private file", make<PrivateFile>, true},
	{"owned", make<Owned>, false},
};

void fill_page(void *page, Pattern pattern, size_t index)
{
	constexpr size_t words = page_size / sizeof(uint64_t);
	auto *word = static_cast<uint64_t *>(page);

	for (size_t i = 0; i < words; i++) {
		switch (pattern) {
		case Pattern::zero:
			word[i] = 0;
			break;
		case Pattern::equal_pages:
			word[i] = i * 0x9e3779b97f4a7c15 + 1;
			break;
		case Pattern::unlike_pages:
			word[i] = (index * words + i) * 0x9e3779b97f4a7c15 + 1;
			break;
		}
	}
}

Memory::Memory(size_t length, Pattern pattern, int fd) : length_(length), pattern_(pattern)
{
	address_ = mmap(nullptr, length, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	if (address_ == MAP_FAILED) {
		fail(errno, "mmap");
	}
}

Memory::~Memory()
{
	munmap(address_, length_);
}

void Memory::fill()
{
	for (size_t i = 0; i < length_ / page_size; i++) {
		fill_page(static_cast<char *>(address_) + i * page_size, pattern_, i);
	}
}

size_t anonymous_memory_in_use()
{
	std::ifstream file("/proc/meminfo");
	std::string name;
	std::string unit;
	size_t value = 0;

	/* Counts that processors keep for themselves are added up first. */
	std::ifstream("/proc/sys/vm/stat_refresh").get();
	while (file >> name >> value) {
		if (name == "AnonPages:") {
			return value * 1024;
		}
		std::getline(file, unit);
	}
	throw std::runtime_error("no AnonPages in /proc/meminfo");
}

} // namespace demo
