// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which regions are named, and what they are registered with. */
#include "rule.hpp"

#include <gtest/gtest.h>
#include <infiniband/gift.h>

namespace giftrun
{

namespace
{

constexpr unsigned int local_write = IBV_ACCESS_LOCAL_WRITE;
constexpr unsigned int remote_write = IBV_ACCESS_REMOTE_WRITE;
constexpr unsigned int remote_read = IBV_ACCESS_REMOTE_READ;

std::vector<std::string> names_here{"[anon]"};

std::vector<std::string> names(uint64_t /*address*/, uint64_t /*length*/)
{
	return names_here;
}

struct Row {
	const char *options; /* as in the environment */
	Registration registration;
	std::vector<std::string> mappings;
	Verdict verdict;
	unsigned int access;
};

class Rule : public testing::TestWithParam<Row>
{
};

TEST_P(Rule, Decides)
{
	const Row &row = GetParam();
	const Parsed parsed = from_environment(row.options);
	ASSERT_EQ(parsed.error, "");
	names_here = row.mappings;
	const Decision decision = decide(parsed.options, row.registration, names);

	EXPECT_EQ(decision.verdict, row.verdict);
	EXPECT_EQ(decision.access, row.access);
}

constexpr Registration region(unsigned int access, uint64_t length = 0x10000)
{
	return {0x100000, length, access};
}

const std::vector<std::string> anon{"[anon]"};

INSTANTIATE_TEST_SUITE_P(
	Access, Rule,
	testing::Values(Row{"", region(0), anon, Verdict::named, 0},
			Row{"", region(IBV_ACCESS_RELAXED_ORDERING), anon, Verdict::named,
			    IBV_ACCESS_RELAXED_ORDERING},
			Row{"", region(0, 0), anon, Verdict::empty, 0},
			Row{"", region(0, UINT64_MAX), anon, Verdict::empty, 0},
			Row{"", region(local_write), anon, Verdict::writable, local_write},
			Row{"", region(local_write | remote_write), anon, Verdict::writable,
			    local_write | remote_write},
			Row{"", region(IBV_ACCESS_GIFT), anon, Verdict::already, IBV_ACCESS_GIFT},
			Row{"", region(IBV_ACCESS_ON_DEMAND), anon, Verdict::other_access,
			    IBV_ACCESS_ON_DEMAND},
			Row{"--drop-write\n--min-size=1", region(IBV_ACCESS_MW_BIND | local_write),
			    anon, Verdict::other_access, IBV_ACCESS_MW_BIND | local_write},
			Row{"--drop-write\n--min-size=1",
			    region(IBV_ACCESS_REMOTE_ATOMIC | local_write), anon,
			    Verdict::other_access, IBV_ACCESS_REMOTE_ATOMIC | local_write},
			Row{"", region(IBV_ACCESS_ZERO_BASED), anon, Verdict::other_access,
			    IBV_ACCESS_ZERO_BASED},
			Row{"--drop-write\n--min-size=1", region(local_write | remote_write), anon,
			    Verdict::named, 0}));

INSTANTIATE_TEST_SUITE_P(
	RemoteRead, Rule,
	testing::Values(Row{"", region(remote_read), anon, Verdict::remote_read, remote_read},
			Row{"--remote-read", region(remote_read), anon, Verdict::named,
			    remote_read},
			Row{"--no-refresh", region(remote_read), anon, Verdict::named, remote_read},
			Row{"--drop-write\n--min-size=1", region(local_write | remote_read), anon,
			    Verdict::remote_read, local_write | remote_read},
			Row{"--drop-write\n--min-size=1\n--remote-read",
			    region(local_write | remote_read), anon, Verdict::named, remote_read}));

INSTANTIATE_TEST_SUITE_P(
	Size, Rule,
	testing::Values(Row{"--min-size=64K", region(0, 0x10000), anon, Verdict::named, 0},
			Row{"--min-size=64K", region(0, 0xffff), anon, Verdict::size, 0},
			Row{"--max-size=64K", region(0, 0x10000), anon, Verdict::named, 0},
			Row{"--max-size=64K", region(0, 0x10001), anon, Verdict::size, 0}));

/* The region is 100000-110000. */
INSTANTIATE_TEST_SUITE_P(
	Address, Rule,
	testing::Values(Row{"--address=100000-110000", region(0), anon, Verdict::named, 0},
			Row{"--address=100001-110000", region(0), anon, Verdict::address, 0},
			Row{"--address=100000-10ffff", region(0), anon, Verdict::address, 0},
			/* Together they cover it, but neither does. */
			Row{"--address=100000-108000\n--address=108000-110000", region(0), anon,
			    Verdict::address, 0},
			Row{"--address=1-2\n--address=0-ffffffffffffffff", region(0), anon,
			    Verdict::named, 0}));

INSTANTIATE_TEST_SUITE_P(
	Mapping, Rule,
	testing::Values(Row{"--mapping=[[]anon]", region(0), anon, Verdict::named, 0},
			Row{"--mapping=\\[anon\\]", region(0), anon, Verdict::named, 0},
			Row{"--mapping=/dev/shm/*", region(0), anon, Verdict::mapping, 0},
			Row{"--mapping=/dev/shm/*", region(0), {"/dev/shm/a"}, Verdict::named, 0},
			Row{"--mapping=/dev/shm/*",
			    region(0),
			    {"/dev/shm/a", "[anon]"},
			    Verdict::mapping,
			    0},
			Row{"--mapping=/dev/shm/*\n--mapping=*anon*",
			    region(0),
			    {"/dev/shm/a", "[anon]"},
			    Verdict::named,
			    0},
			/* A hole matches nothing, and what cannot be read neither. */
			Row{"--mapping=?*", region(0), {"[anon]", ""}, Verdict::mapping, 0},
			Row{"--mapping=*", region(0), {}, Verdict::mapping, 0}));

} // namespace

} // namespace giftrun
