// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/mode.hpp"

#include <gtest/gtest.h>

namespace tailrace::files {
namespace {

TEST(mode, letters_come_in_any_order_after_the_first) {
  for (const char* text : {"r+bps", "rb+ps", "rspb+", "rP+Sb"}) {
    const Result<Mode> mode = parse_mode(text);
    ASSERT_TRUE(mode.is_ok()) << text;
    EXPECT_EQ(mode->for_libc(), "r+b");
    EXPECT_TRUE(mode->parallel && mode->async && !mode->local && mode->reads() && mode->writes());
  }
  for (const char* text : {"al", "aL", "ai", "aI"}) {
    const Result<Mode> mode = parse_mode(text);
    ASSERT_TRUE(mode.is_ok()) << text;
    EXPECT_EQ(mode->for_libc(), "a");
    EXPECT_TRUE(mode->local && mode->writes() && !mode->reads());
  }
}

TEST(mode, what_makes_no_sense_says_why) {
  const auto says = [](const char* text, const char* part) {
    const Result<Mode> mode = parse_mode(text);
    EXPECT_EQ(mode.status().code(), Code::argument) << text;
    EXPECT_NE(mode.status().text().find(part), std::string::npos) << mode.status().text();
  };
  says("", "it is empty");
  says("b", "none of r, w and a");
  says("wr", "'r' is none of the letters");
  says("wx", "not C99's");
  says("w++", "'+' is said twice");
  says("wli", "said twice");
  says("wpl", "choose one");
}

}  // namespace
}  // namespace tailrace::files
