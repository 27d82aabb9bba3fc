// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/option_table.hpp"

#include <gtest/gtest.h>

namespace tailrace {
namespace {

/// A pump: its limit is read with the unit that was given.
struct Pump {
  std::int64_t unit = 1, limit = 0;
  bool runs = false;
};

Status set_limit_of_pump(Pump& pump, const std::string& text) {
  TR_TRY(take(parse_integer(text, 0, 9), pump.limit));
  pump.limit *= pump.unit;
  return {};
}

constexpr OptionRow<Pump> pump_rows[] = {
    {{"unit", "1", "", "unit=60 limit=2", "seconds of a unit"},
     [](auto& p, auto& t) { return take(parse_integer(t, 1, 60), p.unit); }},
    {{"limit", required_option, "units", "limit=2", "how long it runs"}, set_limit_of_pump},
    {{"runs", "", "", "", "`on` or `off`"}, [](auto& p, auto& t) { return take(parse_boolean(t), p.runs); }},
};
constexpr OptionTable<Pump> pump_options(pump_rows);

Status taken(std::string_view text, Pump& pump) {
  const Result<Options> given = Options::parse(text);
  return given.is_ok() ? pump_options.take(*given, pump) : given.status();
}

TEST(option_table, stores_values_in_its_own_order_and_leaves_others_alone) {
  Pump pump;
  ASSERT_TRUE(taken("limit=3 other=5 unit=60", pump).is_ok());
  EXPECT_EQ(pump.limit, 180);
  EXPECT_FALSE(pump.runs);
}

TEST(option_table, an_error_begins_with_the_option_as_it_was_written) {
  Pump pump;
  EXPECT_EQ(taken("limit='1 2'", pump).text(), "limit=\"1 2\": \"1 2\" is no whole number");
  EXPECT_EQ(taken("limit=3 unit=99", pump).text(), "unit=99: 99 is out of range; it may be 1 to 60");
  EXPECT_EQ(pump.limit, 0) << "nothing behind the first error is stored";
}

TEST(option_table, stores_a_single_option_or_names_those_that_there_are) {
  Pump pump;
  ASSERT_TRUE(pump_options.set({"runs", "yes"}, pump).is_ok());
  EXPECT_TRUE(pump.runs);
  EXPECT_EQ(pump_options.set({"limit", "x"}, pump).text(), "limit=x: \"x\" is no whole number");
  EXPECT_EQ(pump_options.set({"limt", "1"}, pump).text(),
            "unknown key \"limt\"; did you mean \"limit\"? It may be unit, limit, runs");
  EXPECT_EQ(pump_options.set({"colour", "1"}, pump).code(), Code::settings);
}

TEST(option_table, reads_a_string_that_has_none_but_its_keys) {
  Pump pump;
  ASSERT_TRUE(pump_options.read("limit=3 unit=60", pump).is_ok());
  EXPECT_EQ(pump.limit, 180);
  EXPECT_TRUE(pump_options.read("", pump).is_ok());
  EXPECT_EQ(pump_options.read("limit=x colour=1", pump).text(),
            "unknown key \"colour\"; it may be unit, limit, runs");
  EXPECT_EQ(pump_options.read("runs=maybe limit=x", pump).text(), "limit=x: \"x\" is no whole number");
  EXPECT_EQ(pump_options.read("limit", pump).code(), Code::settings);
}

TEST(option_table, prints_a_line_for_each_key_and_those_first_that_are_required) {
  EXPECT_EQ(options_markdown(pump_options.infos()),
            "| option | default | unit | example | means |\n"
            "|---|---|---|---|---|\n"
            "| `limit` | – (required) | units | `limit=2` | how long it runs |\n"
            "| `unit` | 1 | | `unit=60 limit=2` | seconds of a unit |\n"
            "| `runs` | – | | | `on` or `off` |\n");
}

TEST(option_table, prints_no_column_in_which_no_key_has_anything) {
  EXPECT_EQ(options_markdown({{"page", "1 MiB", "", "", "size of a page"}}),
            "| option | default | means |\n"
            "|---|---|---|\n"
            "| `page` | 1 MiB | size of a page |\n");
}

TEST(option_table, prints_a_plain_table_that_fits_the_terminal) {
  const std::vector<OptionInfo> infos{
      {"page", "`1MiB`", "bytes", "page=64KiB", "size of a page: [more](streams.md#pages) in `docs`, on it"},
      {"base", required_option, "", "", "when"}};
  EXPECT_EQ(options_text(infos, 50),
            "option  default       means\n"
            "base    – (required)  when\n"
            "page    1MiB          size of a page: more in\n"
            "        (bytes)       docs, on it\n"
            "                      Example: page=64KiB\n");
  EXPECT_EQ(options_text(infos, 0), options_text(infos, 46)) << "a narrow terminal breaks no words";
}

TEST(option_table, a_call_with_one_option_says_so) {
  EXPECT_EQ(unknown_word("key", "ofset", {"offset"}).text(),
            "unknown key \"ofset\"; did you mean \"offset\"? The only one is offset");
  EXPECT_EQ(unknown_word("key", "colour", {"offset"}).text(),
            "unknown key \"colour\"; the only one is offset");
}

TEST(option_table, values_keep_their_errors_or_get_them_as_settings) {
  std::int32_t number = 7;
  EXPECT_EQ(take(Result<std::int64_t>(Status(Code::unsupported, "no")), number).code(), Code::unsupported);
  EXPECT_EQ(number, 7);
  const Result<std::int64_t> changed = as_setting(Result<std::int64_t>(Status(Code::argument, "no")));
  EXPECT_EQ(changed.status().code(), Code::settings);
  EXPECT_EQ(changed.status().text(), "no");
  ASSERT_TRUE(take(as_setting(Result<std::int64_t>(3)), number).is_ok());
  EXPECT_EQ(number, 3);
}

}  // namespace
}  // namespace tailrace
