// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The command line and the environment. */
#include "options.hpp"

#include <gtest/gtest.h>

namespace giftrun
{

namespace
{

TEST(Options, DefaultsRefreshAndDropNothing)
{
	const Parsed parsed = parse({"program", "--report"});

	EXPECT_EQ(parsed.error, "");
	EXPECT_EQ(parsed.rest, 0U);
	EXPECT_TRUE(parsed.options.refresh);
	EXPECT_FALSE(parsed.options.drop_write);
	EXPECT_FALSE(parsed.options.remote_read);
	EXPECT_FALSE(parsed.options.report);
	EXPECT_EQ(parsed.options.min_size, 0U);
	EXPECT_EQ(parsed.options.max_size, UINT64_MAX);
}

TEST(Options, EndAtTheFirstThatIsNone)
{
	EXPECT_EQ(parse({"--report", "program", "--no-refresh"}).rest, 1U);
	EXPECT_EQ(parse({"--report", "--", "--no-refresh"}).rest, 2U);
	EXPECT_TRUE(parse({"--report", "--", "--no-refresh"}).options.refresh);
	EXPECT_EQ(parse({"-"}).rest, 0U);
}

struct Size {
	const char *text;
	uint64_t value;
};

class GoodSize : public testing::TestWithParam<Size>
{
};

TEST_P(GoodSize, IsTaken)
{
	const Parsed parsed = parse({"--min-size", GetParam().text});

	EXPECT_EQ(parsed.error, "");
	EXPECT_EQ(parsed.options.min_size, GetParam().value);
}

INSTANTIATE_TEST_SUITE_P(, GoodSize,
			 testing::Values(Size{"0", 0}, Size{"4096", 4096}, Size{"1k", 1024},
					 Size{"3M", 3 << 20}, Size{"2G", uint64_t{2} << 30},
					 Size{"1T", uint64_t{1} << 40}));

struct Bad {
	std::vector<std::string> args;
	const char *names; /* what the message has to say */
};

class BadOptions : public testing::TestWithParam<Bad>
{
};

TEST_P(BadOptions, AreRefusedByName)
{
	const Parsed parsed = parse(GetParam().args);

	EXPECT_NE(parsed.error, "");
	EXPECT_NE(parsed.error.find(GetParam().names), std::string::npos) << parsed.error;
}

INSTANTIATE_TEST_SUITE_P(
	, BadOptions,
	testing::Values(Bad{{"--nonsense"}, "--nonsense"}, Bad{{"-x"}, "-x"}, Bad{{"--=3"}, "--=3"},
			Bad{{"--min-size"}, "--min-size"}, Bad{{"--min-size="}, "SIZE"},
			Bad{{"--min-size", "-1"}, "'-1'"}, Bad{{"--min-size", "1X"}, "'1X'"},
			Bad{{"--min-size", "1KB"}, "'1KB'"}, Bad{{"--min-size", " 1"}, "' 1'"},
			Bad{{"--min-size", "99999999999999999999"}, "SIZE"},
			Bad{{"--max-size", "18014398509481984K"}, "SIZE"},
			Bad{{"--min-size=2K", "--max-size=1K"}, "--max-size"},
			Bad{{"--drop-write"}, "--drop-write"}, Bad{{"--drop-write=1"}, "no value"},
			Bad{{"--address", "1000"}, "START-END"},
			Bad{{"--address", "2-1"}, "START-END"},
			Bad{{"--address", "1-1"}, "START-END"},
			Bad{{"--address", "1-2x"}, "START-END"}, Bad{{"--mapping", ""}, "PATTERN"},
			Bad{{"--mapping", "a\nb"}, "PATTERN"}, Bad{{"--report=a\nb"}, "FILE"},
			Bad{{"--fresh-limit", "many"}, "N"}));

TEST(Options, DropWriteNeedsOneThatNames)
{
	for (const char *name :
	     {"--min-size=1", "--max-size=1M", "--address=1-2", "--mapping=[heap]"}) {
		EXPECT_EQ(parse({"--drop-write", name}).error, "") << name;
	}
}

TEST(Options, ComeThroughTheEnvironmentUnchanged)
{
	const Parsed parsed =
		parse({"--drop-write", "--min-size=1M", "--max-size=2G", "--address=7f00-7fff",
		       "--address=1-2", "--mapping=/dev/shm/a b*", "--mapping=[heap]",
		       "--remote-read", "--no-refresh", "--fresh-limit=7", "--report=/tmp/a b"});
	ASSERT_EQ(parsed.error, "");
	const std::string text = to_environment(parsed.options);
	const Parsed back = from_environment(text.c_str());

	EXPECT_EQ(back.error, "");
	EXPECT_EQ(to_environment(back.options), text);
	EXPECT_TRUE(back.options.drop_write);
	EXPECT_EQ(back.options.min_size, uint64_t{1} << 20);
	EXPECT_EQ(back.options.max_size, uint64_t{2} << 30);
	ASSERT_EQ(back.options.addresses.size(), 2U);
	EXPECT_EQ(back.options.addresses[0].start, 0x7f00U);
	EXPECT_EQ(back.options.addresses[0].end, 0x7fffU);
	EXPECT_EQ(back.options.mappings, (std::vector<std::string>{"/dev/shm/a b*", "[heap]"}));
	EXPECT_TRUE(back.options.remote_read);
	EXPECT_FALSE(back.options.refresh);
	EXPECT_EQ(back.options.fresh_limit, 7U);
	EXPECT_TRUE(back.options.report);
	EXPECT_EQ(back.options.report_file, "/tmp/a b");
}

TEST(Options, TheEnvironmentMayBeEmptyAndMayNotBeNonsense)
{
	EXPECT_EQ(from_environment("").error, "");
	EXPECT_NE(from_environment("program").error, "");
	EXPECT_NE(from_environment("--report\n--nonsense").error, "");
}

TEST(Options, UsageNamesEach)
{
	for (const char *name : {"--drop-write", "--min-size SIZE", "--report[=FILE]",
				 "--no-refresh", "--fresh-limit N"}) {
		EXPECT_NE(usage().find(name), std::string::npos) << name;
	}
}

} // namespace

} // namespace giftrun
