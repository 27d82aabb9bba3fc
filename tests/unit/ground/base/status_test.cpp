// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/status.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>

#include "ground/base/text.hpp"

namespace tailrace {
namespace {

TEST(status, success_stays_success_in_any_context) {
  EXPECT_TRUE(Status().in("context").at({1, 2, 3}).is_ok());
  EXPECT_EQ(Status().text(), "");
  EXPECT_EQ(Status().code(), Code::ok);
  EXPECT_TRUE(Status(Code::ok, "ignored").is_ok());
}

TEST(status, context_and_cause_are_added_and_the_rest_is_kept) {
  const Status status = Status(Code::io, "write failed", EIO).in("file a").at({4, 5, 6});
  EXPECT_EQ(status.text(), "file a: write failed");
  EXPECT_EQ(status.code(), Code::io);
  EXPECT_EQ(status.error_number(), EIO);
  EXPECT_EQ(status.cause(), (Cause{4, 5, 6}));
  EXPECT_EQ(status.rank(), 6);
}

TEST(status, survives_packing) {
  Packer out;
  Status(Code::data, "NaN at 7").at({1, 2, 3}).pack(out);
  Status().pack(out);
  Unpacker in(out.bytes());
  const Status error = Status::unpack(in);
  EXPECT_EQ(error.text(), "NaN at 7");
  EXPECT_EQ(error.cause(), (Cause{1, 2, 3}));
  EXPECT_TRUE(Status::unpack(in).is_ok());
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.rest().empty());
}

TEST(status, the_first_cause_is_the_lowest_step_then_operation_then_rank) {
  const Status early = Status(Code::io, "early").at({1, 9, 9});
  const Status late = Status(Code::io, "late").at({2, 0, 0});
  const Status later_rank = Status(Code::io, "rank").at({1, 9, 10});
  EXPECT_EQ(first_cause(early, late).text(), "early");
  EXPECT_EQ(first_cause(late, early).text(), "early");
  EXPECT_EQ(first_cause(later_rank, early).text(), "early");
  EXPECT_EQ(first_cause(Status(), late).text(), "late");
  EXPECT_EQ(first_cause(late, Status()).text(), "late");
  EXPECT_TRUE(first_cause(Status(), Status()).is_ok());
}

TEST(status, a_full_disk_and_a_full_quota_are_space_and_other_errors_io) {
  EXPECT_EQ(io_error("write", "f", ENOSPC).code(), Code::space);
  EXPECT_EQ(io_error("write", "f", EDQUOT).code(), Code::space);
  EXPECT_EQ(io_error("write", "f", EIO).code(), Code::io);
  EXPECT_EQ(io_error("write", "f", EIO).text(), "write f: Input/output error");
}

TEST(status, bad_alloc_becomes_a_status) {
  const Status status = guarded([]() -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(status.code(), Code::memory);
}

TEST(result, holds_a_value_or_an_error) {
  const Result<int> value = 7;
  ASSERT_TRUE(value.is_ok());
  EXPECT_EQ(*value, 7);
  EXPECT_TRUE(value.status().is_ok());
  const Result<int> error = Status(Code::state, "no");
  EXPECT_FALSE(error.is_ok());
  EXPECT_EQ(error.status().text(), "no");
}

TEST(unpacker, never_reads_past_the_end) {
  Packer out;
  out.put(std::int64_t{1000}).put(std::int32_t{5});  // announces a text of 1000 bytes that is not there
  Unpacker in(out.bytes());
  EXPECT_EQ(in.get_text(), "");
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.get<std::int32_t>(), 0);
  Packer negative;
  negative.put(std::int64_t{-1});
  Unpacker second(negative.bytes());
  EXPECT_TRUE(second.get_list<double>().empty());
  EXPECT_FALSE(second.ok());
}

TEST(text, parts_are_joined_and_doubles_read_back_exactly) {
  EXPECT_EQ(cat("a", 1, 'b', std::int64_t{-5}, 0.1), "a1b-50.1");
  EXPECT_EQ(std::stod(cat(1.0 / 3.0)), 1.0 / 3.0);
}

TEST(text, edit_distance_counts_single_letters) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("acuracy", "accuracy"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("wran", "warn"), 1U) << "two letters in the wrong order are one slip";
  EXPECT_EQ(edit_distance("ca", "abc"), 3U);
}

TEST(text, the_nearest_word_is_one_that_was_probably_meant) {
  const std::vector<std::string_view> keys{"base",   "member",   "compress", "statistic", "bits",
                                           "levels", "existing", "accuracy", "packing"};
  for (const auto& [word, meant] :
       std::vector<std::pair<std::string_view, std::string_view>>{{"compres", "compress"},
                                                                  {"statistc", "statistic"},
                                                                  {"Base", "base"},
                                                                  {"exsiting", "existing"},
                                                                  {"acuracy", "accuracy"},
                                                                  {"stat", "statistic"},
                                                                  {"packingType", "packing"},
                                                                  {"precision", "accuracy"},
                                                                  {"unit", ""},
                                                                  {"units", ""},
                                                                  {"time", ""},
                                                                  {"method", ""},
                                                                  {"x", ""},
                                                                  {"", ""}})
    EXPECT_EQ(nearest(word, keys), meant) << word;
  const std::vector<std::string_view> existing{"replace", "continue", "fail", "overwrite"};
  EXPECT_EQ(nearest("append", existing), "continue") << "a word of other programs";
  EXPECT_EQ(nearest("mean", std::vector<std::string_view>{"instant", "average"}), "average");
  EXPECT_EQ(nearest("average", std::vector<std::string_view>{"instant", "mean"}), "mean");
  EXPECT_EQ(nearest("max", std::vector<std::string_view>{"mean", "maximum", "minimum"}), "maximum");
  EXPECT_EQ(nearest("uu", std::vector<std::string_view>{"t", "u"}), "u");
  EXPECT_EQ(nearest("q", std::vector<std::string_view>{"t", "u"}), "");
  EXPECT_EQ(nearest("stagin", std::vector<std::string>{"servers", "staging"}), "staging");
  EXPECT_EQ(nearest("x", std::vector<std::string>{}), "");
}

TEST(text, an_error_names_a_near_word_or_none) {
  const std::vector<std::string_view> known{"replace", "fail"};
  EXPECT_EQ(did_you_mean("replcae", known, "it may be replace or fail"),
            "; did you mean \"replace\"? It may be replace or fail");
  EXPECT_EQ(did_you_mean("yes", known, "it may be replace or fail"), "; it may be replace or fail");
  EXPECT_EQ(did_you_mean("yes", known), "");
}

}  // namespace
}  // namespace tailrace
