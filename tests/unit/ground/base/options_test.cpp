// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/options.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tailrace {
namespace {

using Entries = std::vector<Option>;

Entries parsed(std::string_view text) {
  const Result<Options> options = Options::parse(text);
  EXPECT_TRUE(options.is_ok()) << options.status().text();
  return options.is_ok() ? options->entries() : Entries{};
}

std::string parse_error_of(std::string_view text) {
  const Result<Options> options = Options::parse(text);
  if (options.is_ok()) return "no error";
  EXPECT_EQ(options.status().code(), Code::settings);
  return options.status().text();
}

TEST(options, keep_their_order) {
  EXPECT_EQ(parsed("b=2 a=1 c=3"), (Entries{{"b", "2"}, {"a", "1"}, {"c", "3"}}));
}

TEST(options, nothing_is_no_entry) {
  EXPECT_TRUE(parsed("").empty());
  EXPECT_TRUE(parsed(" \t\n").empty());
}

TEST(options, any_blanks_separate) {
  EXPECT_EQ(parsed("  a=1\t\tb=2\r\n c=3 "), (Entries{{"a", "1"}, {"b", "2"}, {"c", "3"}}));
}

TEST(options, quotes_of_both_kinds_hold_blanks_commas_and_each_other) {
  EXPECT_EQ(parsed("keys=\"centre=98, a=b\" hook='mail \"done\"'"),
            (Entries{{"keys", "centre=98, a=b"}, {"hook", "mail \"done\""}}));
  EXPECT_EQ(parsed("a=\"it's\""), (Entries{{"a", "it's"}}));
}

TEST(options, a_doubled_quote_stands_for_itself) {
  EXPECT_EQ(parsed("a=\"say \"\"hi\"\"\" b='it''s'"), (Entries{{"a", "say \"hi\""}, {"b", "it's"}}));
}

TEST(options, an_empty_value_is_written_with_quotes) {
  EXPECT_EQ(parsed("a=\"\" b=''"), (Entries{{"a", ""}, {"b", ""}}));
  EXPECT_NE(parse_error_of("a= b=1").find("position 3: \"a\" has no value"), std::string::npos);
}

TEST(options, a_value_may_hold_equals_signs_commas_and_colons) {
  EXPECT_EQ(parsed("levels=hybrid:1-40 x=a=b on_full=wait:10m c=1,2"),
            (Entries{{"levels", "hybrid:1-40"}, {"x", "a=b"}, {"on_full", "wait:10m"}, {"c", "1,2"}}));
}

TEST(options, a_key_that_comes_twice_is_an_error_at_its_second_place) {
  EXPECT_EQ(parse_error_of("a=1 b=2 a=3"),
            "options \"a=1 b=2 a=3\", position 9: \"a\" is given twice; keep one of them");
}

TEST(options, what_is_no_entry_is_an_error_with_its_position) {
  EXPECT_NE(parse_error_of("a=1 flag").find("position 5: expected key=value"), std::string::npos);
  EXPECT_NE(parse_error_of("a =1").find("without blanks around \"=\""), std::string::npos);
  EXPECT_NE(parse_error_of("=1").find("position 1: there is no key"), std::string::npos);
  EXPECT_NE(parse_error_of("a=\"open").find("position 3: the quote that begins here is never closed"),
            std::string::npos);
  EXPECT_NE(parse_error_of("a=\"x\"y").find("position 6: a blank is missing"), std::string::npos);
  EXPECT_NE(parse_error_of("a=x\"y\"").find("position 4: a quote inside"), std::string::npos);
  EXPECT_NE(parse_error_of("\"a\"=1").find("expected key=value"), std::string::npos);
}

TEST(options, lists_inside_of_a_value_may_have_commas) {
  const Result<Options> list = Options::parse_list("centre=98, perturbationNumber=7,x='a, b' y=2,");
  ASSERT_TRUE(list.is_ok()) << list.status().text();
  EXPECT_EQ(list->entries(),
            (Entries{{"centre", "98"}, {"perturbationNumber", "7"}, {"x", "a, b"}, {"y", "2"}}));
}

TEST(options, find_gives_the_value_or_nothing) {
  const Result<Options> options = Options::parse("a=1 b=2");
  ASSERT_NE(options->find("b"), nullptr);
  EXPECT_EQ(*options->find("b"), "2");
  EXPECT_EQ(options->find("c"), nullptr);
}

TEST(options, any_values_survive_being_written_and_read) {
  std::mt19937_64 random(1);
  const std::string letters = "ab \t\n\"',=:{}%\\\x80";
  for (int round = 0; round < 20000; ++round) {
    Entries entries;
    std::string text;
    for (std::size_t i = 0; i < random() % 4; ++i) {
      std::string value;
      for (std::size_t j = 0; j < random() % 8; ++j) value += letters[random() % letters.size()];
      entries.push_back({"key" + std::to_string(i), value});
      text += entries.back().key + "=" + quote_option(value) + " ";
    }
    const Result<Options> options = Options::parse(text);
    ASSERT_TRUE(options.is_ok()) << options.status().text();
    ASSERT_EQ(options->entries(), entries) << text;
    ASSERT_EQ(Options::parse_list(text)->entries(), entries);
  }
}

TEST(options, no_text_breaks_the_parser) {
  std::mt19937_64 random(2);
  const std::string letters = "a=\"' ,";
  for (int round = 0; round < 100000; ++round) {
    std::string text;
    for (std::size_t i = 0; i < random() % 16; ++i) text += letters[random() % letters.size()];
    const Result<Options> options = Options::parse(text);
    if (options.is_ok()) {
      std::string again;
      for (const Option& option : options->entries())
        again += option.key + "=" + quote_option(option.value) + " ";
      ASSERT_EQ(Options::parse(again)->entries(), options->entries()) << text;
    } else {
      ASSERT_FALSE(options.status().text().empty());
    }
  }
}

TEST(values, whole_numbers_have_bounds) {
  EXPECT_EQ(*parse_integer("-5", -5, 5), -5);
  EXPECT_EQ(*parse_integer("9223372036854775807", 0, std::numeric_limits<std::int64_t>::max()),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_integer("6", -5, 5).status().text(), "6 is out of range; it may be -5 to 5");
  EXPECT_EQ(parse_integer("99999999999999999999", 0, 5).status().text(),
            "99999999999999999999 is out of range; it may be 0 to 5");
  for (const std::string_view text : {"", "x", "1.0", "1 ", " 1", "+1", "0x1", "--1"}) {
    EXPECT_FALSE(parse_integer(text, -5, 5).is_ok()) << text;
  }
}

TEST(values, real_numbers_are_read_whole) {
  EXPECT_EQ(*parse_real("0.01"), 0.01);
  EXPECT_EQ(*parse_real("-1e-3"), -1e-3);
  EXPECT_EQ(*parse_real("+2"), 2);
  EXPECT_TRUE(std::isnan(*parse_real("nan")));
  EXPECT_TRUE(std::isinf(*parse_real("inf")));
  for (const std::string_view text : {"", "x", "1,5", "1.5x", "+-1", "+", "1e999"})
    EXPECT_FALSE(parse_real(text).is_ok()) << text;
}

TEST(values, sizes_have_units) {
  EXPECT_EQ(*parse_bytes("4096"), 4096);
  EXPECT_EQ(*parse_bytes("512MiB"), Bytes{512} << 20);
  EXPECT_EQ(*parse_bytes("1.5GiB"), Bytes{3} << 29);
  EXPECT_EQ(*parse_bytes("2GB"), 2'000'000'000);
  EXPECT_EQ(*parse_bytes("50 MB"), 50'000'000);
  EXPECT_EQ(*parse_bytes("1tib"), Bytes{1} << 40);
  EXPECT_EQ(*parse_bytes("64KiB"), 65536);
  EXPECT_EQ(*parse_bytes("7B"), 7);
  EXPECT_EQ(*parse_bytes("0"), 0);
  for (const std::string_view text :
       {"", "x", "-1", "5G", "5PiB", "1e3", "MiB", "0.5", "1.0001kB", "inf", "nan", "10000000TiB"}) {
    const Result<Bytes> size = parse_bytes(text);
    EXPECT_FALSE(size.is_ok()) << text;
    EXPECT_EQ(size.status().code(), Code::settings);
  }
}

TEST(values, switches_are_on_or_off) {
  for (const std::string_view text : {"on", "ON", "yes", "true", "1"})
    EXPECT_TRUE(*parse_boolean(text)) << text;
  for (const std::string_view text : {"off", "no", "False", "0"}) EXPECT_FALSE(*parse_boolean(text)) << text;
  EXPECT_EQ(parse_boolean("maybe").status().text(), "\"maybe\" is neither on nor off");
  EXPECT_FALSE(parse_boolean("").is_ok());
}

TEST(values, a_wrong_choice_gets_the_nearest_right_one) {
  EXPECT_EQ(*parse_choice("b", {"a", "b"}), 1U);
  EXPECT_EQ(parse_choice("replcae", {"replace", "continue", "fail"}).status().text(),
            "unknown value \"replcae\"; did you mean \"replace\"? It may be replace, continue, fail");
  EXPECT_EQ(parse_choice("yes", {"replace", "continue", "fail"}).status().text(),
            "unknown value \"yes\"; it may be replace, continue, fail");
}

TEST(values, number_lists_hold_ranges_up_and_down) {
  EXPECT_EQ(*parse_number_list("1000,850,500"), (std::vector<double>{1000, 850, 500}));
  EXPECT_EQ(*parse_number_list("1-4"), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(*parse_number_list("3-1, 7"), (std::vector<double>{3, 2, 1, 7}));
  EXPECT_EQ(*parse_number_list("-2"), (std::vector<double>{-2}));
  EXPECT_EQ(*parse_number_list("-2-1"), (std::vector<double>{-2, -1, 0, 1}));
  EXPECT_EQ(*parse_number_list("0.5,1e-3"), (std::vector<double>{0.5, 1e-3}));
  EXPECT_EQ(*parse_number_list("5-5"), (std::vector<double>{5}));
  EXPECT_EQ(*parse_number_list("1e20, 9007199254740992"), (std::vector<double>{1e20, 0x1p53}));
  for (const std::string_view text :
       {"", ",", "1,", "a", "1-", "1-b", "0.5-3", "1-2.5", "1-2-3", "nan", "1-inf", "inf"}) {
    EXPECT_FALSE(parse_number_list(text).is_ok()) << text;
  }
}

TEST(values, a_number_list_cannot_be_made_to_fill_the_memory) {
  EXPECT_FALSE(parse_number_list("1-1000000000000").is_ok());
  EXPECT_FALSE(parse_number_list("1-10", 9).is_ok());
  EXPECT_TRUE(parse_number_list("1-10", 10).is_ok());
  EXPECT_FALSE(parse_number_list("1-10,11", 10).is_ok());
  EXPECT_FALSE(parse_number_list("-1e308-1e308").is_ok());
}

}  // namespace
}  // namespace tailrace
