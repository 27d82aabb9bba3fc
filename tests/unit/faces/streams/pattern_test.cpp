// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/definition/pattern.hpp"

#include <gtest/gtest.h>

#include <random>

namespace tailrace::streams {
namespace {

const PatternContext kContext{{2026, 3, 1, 0, 0, 0}, Calendar::proleptic_gregorian, 7};

std::string expanded(std::string_view text, std::int64_t lead, const PatternContext& context = kContext) {
  const Result<Pattern> pattern = Pattern::parse(text);
  if (!pattern.is_ok()) return pattern.status().text();
  const Result<std::string> name = pattern->expand(lead, context);
  return name.is_ok() ? *name : name.status().text();
}

std::optional<std::int64_t> matched(std::string_view text, std::string_view name,
                                    const PatternContext& context = kContext) {
  return Pattern::parse(text)->match(name, context);
}

bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(pattern, names_the_files_of_the_target_programs) {
  EXPECT_EQ(expanded("fc_{base:%Y%m%d%H}+{lead:03h}.grib2", 6 * 3600), "fc_2026030100+006.grib2");
}

TEST(pattern, every_documented_place_is_filled) {
  EXPECT_EQ(expanded("{lead:03h}", 1000 * 3600), "1000");
  EXPECT_EQ(expanded("{lead:h}h", 6 * 3600), "6h");
  EXPECT_EQ(expanded("{lead:05m}", 900), "00015");
  EXPECT_EQ(expanded("{lead:06s}", 90), "000090");
  EXPECT_EQ(expanded("{lead:02d}", 172800), "02");
  EXPECT_EQ(expanded("{lead:03h}", 0), "000");
  EXPECT_EQ(expanded("{member:02}_{member}", 0), "07_7");
  EXPECT_EQ(expanded("{base}_{valid}", 3600), "2026030100_2026030101");
  EXPECT_EQ(expanded("{valid:%Y-%m-%dT%H:%M:%S_%j_%y_%%}", 86400 + 61), "2026-03-02T00:01:01_061_26_%");
  EXPECT_EQ(expanded("{base:%Y/%m}/x", 0), "2026/03/x");
  EXPECT_EQ(expanded("{{{member}}}", 0), "{7}");
  EXPECT_EQ(expanded("plain.grib2", 0), "plain.grib2");
}

TEST(pattern, valid_times_follow_the_calendar) {
  PatternContext context{{2023, 2, 28, 0, 0, 0}, Calendar::day_360, {}};
  EXPECT_EQ(expanded("{valid:%m%d %j}", 86400, context), "0229 059");
  EXPECT_EQ(expanded("{valid:%m%d %j}", 3 * 86400, context), "0301 061");
  context = {{2024, 2, 28, 0, 0, 0}, Calendar::no_leap, {}};
  EXPECT_EQ(expanded("{valid:%m%d %j}", 86400, context), "0301 060");
  context = {{2024, 2, 28, 0, 0, 0}, Calendar::proleptic_gregorian, {}};
  EXPECT_EQ(expanded("{valid:%m%d %j}", 86400, context), "0229 060");
}

TEST(pattern, a_lead_that_its_unit_cannot_hold_is_a_format_error) {
  const Result<Pattern> pattern = Pattern::parse("fc+{lead:03h}");
  const Status odd = pattern->expand(5400, kContext).status();
  EXPECT_EQ(odd.code(), Code::format);
  EXPECT_TRUE(mentions(odd.text(), "5400 s is no whole number of {lead:h}")) << odd.text();
  EXPECT_TRUE(mentions(odd.text(), "use a finer unit, as {lead:05m}")) << odd.text();
  EXPECT_TRUE(mentions(pattern->expand(5401, kContext).status().text(), "{lead:06s}"));
  EXPECT_EQ(pattern->expand(-3600, kContext).status().code(), Code::format);
  EXPECT_TRUE(Pattern::parse("fc_{valid}")->expand(-3600, kContext).is_ok());
}

TEST(pattern, leads_have_the_unit_of_the_stream) {
  PatternContext context = kContext;
  context.time = TimeAxis::of_leads(*find_time_unit("ms"));
  EXPECT_EQ(expanded("{lead:06ms}", 667, context), "000667");
  EXPECT_EQ(expanded("{lead:us}", 667, context), "667000");
  EXPECT_EQ(expanded("{lead:s}_{valid:%S}", 2000, context), "2_02");
  EXPECT_EQ(expanded("{valid:%S}", 2999, context), "02");
  EXPECT_TRUE(
      mentions(expanded("{lead:s}", 667, context), "a lead of 667 ms is no whole number of {lead:s}"));
  EXPECT_TRUE(mentions(expanded("{lead:s}", 667, context), "as {lead:09ms}"));
  EXPECT_EQ(matched("a{lead:06ms}", "a000667", context), 667);
  EXPECT_EQ(matched("a{lead:02s}", "a02", context), 2000);
  EXPECT_EQ(matched("a{lead:02ms}", "a02", kContext), std::nullopt);  // 2 ms are no whole second
  EXPECT_EQ(matched("{valid:%Y%m%d%H%M%S}", "20260301000002", context), 2000);
  context = {
      {2026, 3, 1, 12, 0, 0}, Calendar::proleptic_gregorian, {}, TimeAxis::of_leads(*find_time_unit("d"))};
  EXPECT_EQ(expanded("{valid:%Y%m%d}", 1, context), "20260302");
  EXPECT_EQ(matched("{valid:%Y%m%d}", "20260302", context), 1);  // no lead ends at its midnight
}

TEST(pattern, times_of_a_model_are_written_as_numbers) {
  PatternContext context = kContext;
  context.time = TimeAxis::of_model();
  const auto code = [](double time) { return *TimeAxis::code_of(time); };
  EXPECT_EQ(expanded("a{time}.nc", code(0.1 + 0.2), context), "a0.30000000000000004.nc");
  EXPECT_EQ(expanded("a{time:08.3f}.nc", code(0.6666), context), "a0000.667.nc");
  EXPECT_EQ(expanded("a{time:08.3f}.nc", code(-0.5), context), "a-000.500.nc");
  EXPECT_EQ(expanded("a{time:.0f}.nc", code(1e22), context), "a10000000000000000000000.nc");
  EXPECT_EQ(matched("a{time}.nc", "a0.30000000000000004.nc", context), code(0.1 + 0.2));
  EXPECT_EQ(matched("a{time:08.3f}.nc", "a0000.667.nc", context), code(0.667));
  EXPECT_EQ(matched("a{time:08.3f}.nc", "a-000.500.nc", context), code(-0.5));
  EXPECT_EQ(matched("a{time:08.3f}.nc", "a0.667.nc", context), std::nullopt);
  EXPECT_EQ(matched("a{time}.nc", "anan.nc", context), std::nullopt);
  EXPECT_EQ(expanded("a{time:06.1f}.nc", code(-0.04), context), "a0000.0.nc");
  EXPECT_EQ(matched("a{time:06.1f}.nc", "a0000.0.nc", context), 0);
  EXPECT_EQ(Pattern::parse("a{time:08.3f}{member:02}")->split(context).rest, "{time:08.3f}07");
  EXPECT_TRUE(Pattern::parse("a{time}")->depends_on_lead());
  for (const std::string_view wrong :
       {"{time:3f}", "{time:8.3f}", "{time:08.3e}", "{time:08.19f}", "{time:.f}"})
    EXPECT_EQ(Pattern::parse(wrong).status().code(), Code::settings) << wrong;
}

TEST(pattern, asks_for_nothing_that_the_times_of_a_stream_lack) {
  TimeAxis model = TimeAxis::of_model();
  EXPECT_TRUE(Pattern::parse("{time}")->check(model).is_ok());
  for (const std::string_view wrong : {"{lead:h}", "{valid}", "{base}"})
    EXPECT_EQ(Pattern::parse(wrong)->check(model).code(), Code::settings) << wrong;
  ASSERT_TRUE(model.set_base().is_ok());
  EXPECT_TRUE(Pattern::parse("{valid}_{base}")->check(model).is_ok());
  EXPECT_EQ(Pattern::parse("{time}")->check(TimeAxis()).code(), Code::settings);
}

TEST(pattern, a_member_that_is_not_given_is_an_error) {
  const PatternContext none{kContext.base, kContext.calendar, {}};
  const Status status = Pattern::parse("fc_{member:02}")->expand(0, none).status();
  EXPECT_EQ(status.code(), Code::settings);
  EXPECT_TRUE(mentions(status.text(), "no member= is given")) << status.text();
}

TEST(pattern, what_is_no_pattern_is_an_error_with_position_and_valid_forms) {
  struct Case {
    std::string_view text;
    std::string_view position;
    std::string_view what;
  };
  for (const Case& wrong :
       {Case{"a{lead:03h", "position 2:", "never closed"}, Case{"a}b", "position 2:", "\"}\" without"},
        Case{"{led:03h}", "position 1:", "did you mean {lead}"}, Case{"x{}", "position 2:", "unknown \"{}\""},
        Case{"x{lead}", "position 7:", "needs its unit"}, Case{"x{lead:03}", "position 8:", "needs its unit"},
        Case{"x{lead:3h}", "position 8:", "\"3\" is no width"},
        Case{"x{lead:0h}", "position 8:", "\"0\" is no width"},
        Case{"x{lead:099h}", "position 8:", "\"099\" is no width"},
        Case{"x{member:x}", "position 10:", "\"x\" is no width"},
        Case{"{base:%Q}", "position 7:", "unknown \"%Q\""}, Case{"{valid:%}", "position 8:", "unknown \"%\""},
        Case{"{valid:}", "position 8:", "time format is empty"},
        Case{"{base:{lead:h}}", "position 7:", "\"{\" inside"}, Case{"dir/", "position 4:", "directory"}}) {
    const Result<Pattern> pattern = Pattern::parse(wrong.text);
    ASSERT_FALSE(pattern.is_ok()) << wrong.text;
    EXPECT_EQ(pattern.status().code(), Code::settings);
    EXPECT_TRUE(mentions(pattern.status().text(), wrong.position)) << pattern.status().text();
    EXPECT_TRUE(mentions(pattern.status().text(), wrong.what)) << pattern.status().text();
    EXPECT_TRUE(mentions(pattern.status().text(), "{lead:03h} {lead:05m} {lead:06s}"))
        << pattern.status().text();
  }
  EXPECT_FALSE(Pattern::parse("").is_ok());
  EXPECT_FALSE(Pattern::parse(std::string_view("a\0b", 3)).is_ok());
}

TEST(pattern, tells_whether_the_name_depends_on_the_lead) {
  const auto depends = [](std::string_view text) { return Pattern::parse(text)->depends_on_lead(); };
  EXPECT_TRUE(depends("fc+{lead:03h}"));
  EXPECT_TRUE(depends("fc_{valid:%Y%m%d}"));
  EXPECT_TRUE(depends("fc_{valid}"));
  EXPECT_FALSE(depends("fc_{base}_{member:02}"));
  EXPECT_FALSE(depends("fc.grib2"));
  EXPECT_FALSE(depends("{{lead}}"));
  EXPECT_FALSE(depends("fc_{valid:%%Y}"));
}

TEST(pattern, is_cut_before_its_first_part_that_the_lead_changes) {
  PatternContext context;
  context.base = {2026, 3, 1, 6, 0, 0};
  context.member = 3;
  const auto split =
      Pattern::parse("out/m{member:02}/fc_{base:%Y%m%d}+{lead:03h}_{valid:%H}.grib2")->split(context);
  EXPECT_EQ(split.fixed, "out/m03/fc_20260301+");
  EXPECT_EQ(split.rest, "{lead:03h}_{valid:%H}.grib2");
  EXPECT_EQ(Pattern::parse("fc.grib2")->split(context).fixed, "fc.grib2");
}

TEST(pattern, a_name_matches_back_to_its_lead) {
  EXPECT_EQ(matched("fc_{base:%Y%m%d%H}+{lead:03h}.grib2", "fc_2026030100+006.grib2"), 6 * 3600);
  EXPECT_EQ(matched("fc_{base:%Y%m%d%H}+{lead:03h}.grib2", "fc_2026030200+006.grib2"), std::nullopt);
  EXPECT_EQ(matched("fc+{lead:03h}h.grib2", "fc+006h.grib2"), 6 * 3600);
  EXPECT_EQ(matched("+{lead:03h}", "+1000"), 1000 * 3600);
  EXPECT_EQ(matched("+{lead:03h}", "+06"), std::nullopt);
  EXPECT_EQ(matched("+{lead:03h}", "+0006"), std::nullopt);
  EXPECT_EQ(matched("{lead:h}{member:02}", "1207"), 12 * 3600);
  EXPECT_EQ(matched("{lead:h}{member:02}", "1208"), std::nullopt);
  EXPECT_EQ(matched("fc_{valid:%Y%m%d%H}", "fc_2026030206"), 30 * 3600);
  EXPECT_EQ(matched("fc_{valid:%Y%j}", "fc_2026061"), 86400);
  EXPECT_EQ(matched("fc_{valid:%y%m%d}", "fc_260303"), 2 * 86400);
  EXPECT_EQ(matched("fc_{valid:%Y%m%d}", "fc_20260230"), std::nullopt);
  EXPECT_EQ(matched("fc_{valid:%Y%m%d}", "fc_20260228"), std::nullopt) << "before the base time";
  EXPECT_EQ(matched("{{a}}%", "{a}%"), 0);
  EXPECT_EQ(matched("a", "b"), std::nullopt);
  EXPECT_EQ(matched("+{lead:h}", "+99999999999999999999"), std::nullopt);
  EXPECT_EQ(matched("+{lead:d}", "+999999999999999999"), std::nullopt) << "more seconds than 64 bits hold";
}

TEST(pattern, names_of_times_before_the_base_time_match_if_asked) {
  const PatternContext morning{{2026, 3, 1, 6, 30, 0}, Calendar::proleptic_gregorian, {}};
  const auto matched_before = [&](std::string_view text, std::string_view name) {
    return Pattern::parse(text)->match(name, morning, true);
  };
  EXPECT_EQ(matched_before("bd_{valid:%Y%m%d%H}", "bd_2026030103"), -3 * 3600 - 1800);
  EXPECT_EQ(matched("bd_{valid:%Y%m%d%H}", "bd_2026030103", morning), std::nullopt);
  EXPECT_EQ(matched_before("bd_{valid:%Y%m%d}", "bd_20260228"), -30 * 3600 - 1800);
  EXPECT_EQ(matched_before("bd_{valid:%Y%m%d%H}", "bd_2026030106"), 0) << "it has the base time, too";
  EXPECT_EQ(matched_before("bd_{valid:%Y%m%d%H}", "bd_2026030109"), 2 * 3600 + 1800);
  EXPECT_EQ(matched_before("bd_{valid:%Y%m%d%H}_{lead:03h}", "bd_2026030103_000"), std::nullopt);
  EXPECT_EQ(matched_before("bd_{valid:%Y%j}", "bd_2026059"), -30 * 3600 - 1800);
  EXPECT_EQ(matched_before("bd_{valid:%H}", "bd_03"), std::nullopt);
  EXPECT_EQ(matched_before("bd_{valid:%m%d}", "bd_0101"), std::nullopt);
  EXPECT_EQ(matched_before("bd_{valid:%Y%d}", "bd_202605"), std::nullopt);
}

TEST(pattern, a_name_of_many_leads_matches_to_the_first) {
  const PatternContext morning{{2026, 3, 1, 6, 0, 0}, Calendar::proleptic_gregorian, {}};
  EXPECT_EQ(matched("{valid:%Y%m%d}", "20260301", morning), 0);
  EXPECT_EQ(matched("{valid:%Y%m%d}", "20260302", morning), 18 * 3600);
  EXPECT_EQ(matched("single.grib2", "single.grib2", morning), 0);
}

TEST(pattern, every_expanded_name_matches_back_in_all_calendars) {
  std::mt19937_64 random(1);
  const std::vector<std::string> exact{"a{lead:s}",
                                       "{lead:06s}b",
                                       "{valid:%Y%m%d%H%M%S}",
                                       "{valid:%Y%j-%H:%M:%S}",
                                       "{lead:04s}{member:03}",
                                       "{base}{lead:03s}",
                                       "{valid:%S%M%H%d%m%Y}",
                                       "{lead:010s}{lead:s}"};
  for (const Calendar calendar : {Calendar::proleptic_gregorian, Calendar::day_360, Calendar::no_leap}) {
    for (int round = 0; round < 5000; ++round) {
      const PatternContext context{
          from_seconds(static_cast<std::int64_t>(random() % 100'000'000'000), calendar), calendar,
          static_cast<int>(random() % 1000)};
      const auto lead = static_cast<std::int64_t>(random() % 1'000'000'000);
      const Result<Pattern> pattern = Pattern::parse(exact[random() % exact.size()]);
      const Result<std::string> name = pattern->expand(lead, context);
      ASSERT_TRUE(name.is_ok()) << name.status().text();
      ASSERT_EQ(pattern->match(*name, context), lead) << pattern->text() << " " << *name;
    }
  }
}

TEST(pattern, no_text_breaks_the_parser_and_no_name_the_matcher) {
  std::mt19937_64 random(2);
  const std::string letters = "{}:%YmdH03hmsleadbs+1";
  for (int round = 0; round < 200000; ++round) {
    std::string text;
    for (std::size_t i = 0; i < random() % 14; ++i) text += letters[random() % letters.size()];
    const Result<Pattern> pattern = Pattern::parse(text);
    if (!pattern.is_ok()) continue;
    const Result<std::string> name = pattern->expand(0, kContext);
    ASSERT_TRUE(name.is_ok()) << text;
    std::string other = *name;
    if (!other.empty()) other[random() % other.size()] = letters[random() % letters.size()];
    const std::optional<std::int64_t> lead = pattern->match(other, kContext);
    if (lead) ASSERT_EQ(*pattern->expand(*lead, kContext), other) << text;
  }
}

}  // namespace
}  // namespace tailrace::streams
