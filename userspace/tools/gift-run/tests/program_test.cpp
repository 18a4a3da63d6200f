// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which programs are found, and which cannot have a library preloaded. */
#include "program.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace giftrun
{

namespace
{

class Files : public testing::Test
{
protected:
	void SetUp() override
	{
		char name[] = "/tmp/gift-run-test.XXXXXX";

		ASSERT_NE(mkdtemp(name), nullptr);
		folder_ = name;
		old_path_ = getenv("PATH"); // NOLINT(concurrency-mt-unsafe)
	}
	void TearDown() override
	{
		setenv("PATH", old_path_.c_str(), 1);               // NOLINT(concurrency-mt-unsafe)
		EXPECT_EQ(system(("rm -r " + folder_).c_str()), 0); // NOLINT
	}
	std::string make(const std::string &name, mode_t mode, const std::string &content)
	{
		std::string path = folder_ + "/" + name;
		const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		EXPECT_EQ(write(fd, content.data(), content.size()),
			  static_cast<ssize_t>(content.size()));
		EXPECT_EQ(fchmod(fd, mode), 0);
		close(fd);
		return path;
	}

	std::string folder_;
	std::string old_path_;
};

TEST_F(Files, AreFoundAsExecvpFindsThem)
{
	const std::string script = make("script", 0755, "#!/bin/sh\n");

	make("data", 0644, "");
	setenv("PATH", ("/nonexistent:" + folder_).c_str(), 1); // NOLINT(concurrency-mt-unsafe)
	EXPECT_EQ(find_program("script").path, script);
	EXPECT_EQ(find_program("script").error, 0);
	EXPECT_EQ(find_program(script).error, 0);
	EXPECT_EQ(find_program("nowhere").error, ENOENT);
	EXPECT_EQ(find_program("").error, ENOENT);
	EXPECT_EQ(find_program(folder_ + "/nowhere").error, ENOENT);
	EXPECT_EQ(find_program(folder_).error, EISDIR);
	EXPECT_EQ(find_program("data").error, EACCES);
	EXPECT_EQ(find_program(folder_ + "/data").error, EACCES);
}

TEST_F(Files, OfOrdinaryProgramsHaveNoObstacle)
{
	EXPECT_EQ(obstacle("/proc/self/exe"), "");
	EXPECT_EQ(obstacle(make("script", 0755, "#!/bin/sh\n")), "");
	EXPECT_EQ(obstacle(make("empty", 0755, "")), "");
}

/* An ELF header, of which only what is looked at is right. */
std::string elf(unsigned char elf_class, unsigned char machine)
{
	std::string header(64, '\0');

	header.replace(0, 4, "\177ELF");
	header[4] = static_cast<char>(elf_class);
	header[18] = static_cast<char>(machine);
	return header;
}

TEST_F(Files, ThatTheLinkerWouldLeaveAloneAreToldApart)
{
	EXPECT_NE(obstacle(make("static", 0755, elf(2, 62))).find("static"), std::string::npos);
	EXPECT_NE(obstacle(make("32", 0755, elf(1, 3))).find("architecture"), std::string::npos);
	EXPECT_NE(obstacle(make("arm", 0755, elf(2, 183))).find("architecture"), std::string::npos);
}

TEST_F(Files, SetUserIdMattersOnlyIfItChangesTheUser)
{
	const std::string path = make("setuid", 04755, "#!/bin/sh\n");

	EXPECT_EQ(obstacle(path), "");
	if (getuid() != 0) {
		return;
	}
	ASSERT_EQ(chown(path.c_str(), 1, 0), 0);
	ASSERT_EQ(chmod(path.c_str(), 04755), 0);
	EXPECT_NE(obstacle(path).find("set-user-ID"), std::string::npos);
}

} // namespace

} // namespace giftrun
