// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/options.hpp"

#include <gtest/gtest.h>

namespace tailrace::checkpoint {
namespace {

std::string refusal(const std::string& options) { return parse_options(options).status().text(); }

TEST(checkpoint_options, are_those_of_the_string_and_otherwise_the_defaults) {
  const Result<Options> plain = parse_options("");
  ASSERT_TRUE(plain.is_ok());
  EXPECT_EQ(plain->keep, 2);
  EXPECT_EQ(plain->keep_every, 0);
  EXPECT_EQ(plain->mode, Mode::parallel);
  EXPECT_TRUE(plain->async);
  const Result<Options> given = parse_options(
      "keep=3 keep_every=10 mode=local async=off busy=replace capture=copy_on_write overwritten=journal "
      "compress=none");
  ASSERT_TRUE(given.is_ok()) << given.status().text();
  EXPECT_EQ(given->keep, 3);
  EXPECT_EQ(given->keep_every, 10);
  EXPECT_EQ(given->mode, Mode::local);
  EXPECT_FALSE(given->async);
  EXPECT_EQ(given->busy, Options::Busy::replace);
  EXPECT_EQ(given->capture, Options::Capture::copy_on_write);
  EXPECT_EQ(given->overwritten, journal::Overwritten::journal);
  EXPECT_EQ(given->compression.coding, Coding::raw);
}

TEST(checkpoint_options, tell_the_defaults_that_the_code_has) {
  Options told;
  for (const OptionInfo& info : option_table.infos()) {
    ASSERT_TRUE(info.default_value.starts_with('`') && info.default_value.ends_with('`')) << info.key;
    const std::string_view value = info.default_value.substr(1, info.default_value.size() - 2);
    const Status status = option_table.set({std::string(info.key), std::string(value)}, told);
    EXPECT_TRUE(status.is_ok()) << status.text();
  }
  EXPECT_EQ(told, Options());
}

TEST(checkpoint_options, name_what_was_given_and_what_there_is) {
  EXPECT_EQ(refusal("keeep=3"),
            "unknown key \"keeep\"; did you mean \"keep\"? It may be keep, keep_every, mode, async, "
            "busy, capture, overwritten, compress");
  EXPECT_EQ(refusal("keep=1"), "keep=1: 1 is out of range; it may be 2 to 1000");
  EXPECT_EQ(refusal("keep='3 4'"), "keep=\"3 4\": \"3 4\" is no whole number");
  EXPECT_EQ(refusal("busy=never"), "busy=never: unknown value \"never\"; it may be wait, drop, replace");
  EXPECT_TRUE(refusal("busy=never colour=1").starts_with("unknown key \"colour\"; it may be keep, "));
  EXPECT_EQ(refusal("mode=paralel"),
            "mode=paralel: unknown value \"paralel\"; did you mean \"parallel\"? It may be parallel, local");
}

}  // namespace
}  // namespace tailrace::checkpoint
