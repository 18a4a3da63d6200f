// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The names of mappings, from a table and from this process. */
#include "mappings.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace giftrun
{

namespace
{

const char text[] = "1000-2000 rw-p 00000000 00:00 0 \n"
		    "2000-3000 r--p 00001000 08:01 17                 /lib/a b.so\n"
		    "4000-5000 rw-s 00000000 00:01 9 /memfd:ram (deleted)\n"
		    "7ffc000000-7ffc021000 rw-p 00000000 00:00 0      [stack]\n";

std::vector<std::string> names(uint64_t address, uint64_t length)
{
	FILE *const file = fmemopen(const_cast<char *>(text), sizeof(text) - 1, "r");
	std::vector<std::string> found = mapping_names_in(file, address, length);

	fclose(file);
	return found;
}

using Names = std::vector<std::string>;

TEST(Mappings, AreThoseThatTheRangeIsIn)
{
	EXPECT_EQ(names(0x1000, 0x1000), (Names{"[anon]"}));
	EXPECT_EQ(names(0x1fff, 2), (Names{"[anon]", "/lib/a b.so"}));
	EXPECT_EQ(names(0x4800, 1), (Names{"/memfd:ram (deleted)"}));
	EXPECT_EQ(names(0x7ffc000000, 0x21000), (Names{"[stack]"}));
}

TEST(Mappings, AHoleIsSeen)
{
	EXPECT_EQ(names(0, 1), (Names{""}));
	EXPECT_EQ(names(0x2000, 0x1001), (Names{"/lib/a b.so", ""}));
	EXPECT_EQ(names(0x2800, 0x2000), (Names{"/lib/a b.so", ""}));
	EXPECT_EQ(names(0x3000, 0x1000), (Names{""}));
	EXPECT_EQ(names(0x7ffc000000, 0x21001), (Names{"[stack]", ""}));
}

TEST(Mappings, OfThisProcess)
{
	char self[4096];
	const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
	const auto code = reinterpret_cast<uintptr_t>(&names);

	ASSERT_GT(length, 0);
	EXPECT_EQ(mapping_names(code, 1), (Names{std::string(self, static_cast<size_t>(length))}));
}

} // namespace

} // namespace giftrun
