// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/faulty.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "ground/storage/scratch.hpp"

namespace tailrace::storage {
namespace {

/// Makes one call of each counted kind, in the order of the list below, and then checks the result.
Status exercise(Target& target) {
  TR_TRY(target.make_directories("/d"));
  auto file = target.open("/d/tmp", OpenMode::create);
  if (!file.is_ok()) return file.status();
  TR_TRY((*file)->write(bytes_of("0123456789"), 0));
  TR_TRY((*file)->truncate(8));
  TR_TRY((*file)->sync());
  TR_TRY((*file)->close());
  TR_TRY(target.rename("/d/tmp", "/d/final"));
  TR_TRY(target.sync_directory_of("/d/final"));
  auto again = target.open("/d/final", OpenMode::read);
  if (!again.is_ok()) return again.status();
  const auto size = (*again)->size();
  if (!size.is_ok()) return size.status();
  ByteVector data(static_cast<std::size_t>(*size));
  const auto got = (*again)->read(data, 0);
  if (!got.is_ok()) return got.status();
  TR_TRY(target.exists("/d/final").status());
  TR_TRY(target.list("/d").status());
  TR_TRY(target.space("/d").status());
  TR_TRY(target.lock("/d/lock").status());
  TR_TRY((*again)->close());
  TR_TRY(target.remove("/d/final"));
  return text_of(data) == "01234567" ? Status() : Status(Code::corrupt, "read back " + text_of(data));
}
constexpr std::int64_t changing = 11, every = 17;

TEST(faulty_target, without_a_plan_counts_and_changes_nothing) {
  const auto target = faulty_target(memory_target(), {});
  EXPECT_TRUE(exercise(*target).is_ok());
  EXPECT_EQ(target->calls(), changing);
  EXPECT_FALSE(target->fired());
  target->restart({0, Fault::io_error, all_calls});
  EXPECT_TRUE(exercise(*target).is_ok());
  EXPECT_EQ(target->calls(), every);
}

TEST(faulty_target, the_nth_call_fails_with_the_errno_asked_for_and_no_other) {
  for (const Fault fault : {Fault::io_error, Fault::no_space, Fault::quota}) {
    for (std::int64_t n = 1; n <= every; ++n) {
      const auto target = faulty_target(memory_target(), {n, fault, all_calls});
      const Status status = exercise(*target);
      EXPECT_TRUE(target->fired());
      EXPECT_EQ(target->calls(), n) << status.text();
      EXPECT_EQ(status.error_number(), error_number_of(fault)) << status.text();
      EXPECT_NE(status.text().find("/d"), std::string::npos) << status.text();
    }
    const auto target = faulty_target(memory_target(), {every + 1, fault, all_calls});
    EXPECT_TRUE(exercise(*target).is_ok());
    EXPECT_FALSE(target->fired());
  }
}

TEST(faulty_target, interruptions_and_short_writes_are_invisible) {
  for (const bool for_good : {false, true}) {
    for (std::int64_t n = 1; n <= every; ++n) {
      const auto interrupted = faulty_target(memory_target(), {n, Fault::interrupted, all_calls, for_good});
      const Status status = exercise(*interrupted);
      EXPECT_TRUE(status.is_ok()) << n << ": " << status.text();
      EXPECT_TRUE(interrupted->fired());
    }
    const auto cut = faulty_target(memory_target(), {1, Fault::short_write, all_calls, for_good});
    const Status status = exercise(*cut);
    EXPECT_TRUE(status.is_ok()) << status.text();
    EXPECT_TRUE(cut->fired());
    EXPECT_EQ(cut->calls(), for_good ? 4 : 2) << "ten bytes: 5, 3, 1, 1, or 5, 5";
  }
}

TEST(faulty_target, only_calls_of_the_kinds_asked_for_are_counted) {
  for (CallSet kind = 1; kind <= all_calls; kind *= 2) {
    const auto target = faulty_target(memory_target(), {1, Fault::io_error, kind});
    EXPECT_EQ(exercise(*target).error_number(), EIO) << kind;
    EXPECT_EQ(target->calls(), 1);
  }
}

TEST(faulty_target, once_is_once_and_for_good_is_until_the_plan_is_replaced) {
  const auto target = faulty_target(memory_target(), {2, Fault::no_space, set_of(Call::write)});
  auto file = target->open("a", OpenMode::create);
  EXPECT_TRUE((*file)->write(bytes_of("1"), 0).is_ok());
  EXPECT_EQ((*file)->write(bytes_of("2"), 1).code(), Code::space);
  EXPECT_TRUE((*file)->write(bytes_of("3"), 2).is_ok());
  target->restart({2, Fault::quota, set_of(Call::write), true});
  EXPECT_FALSE(target->fired());
  EXPECT_TRUE((*file)->write(bytes_of("4"), 3).is_ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*file)->write(bytes_of("5"), 4).error_number(), EDQUOT);
  target->restart({});
  EXPECT_TRUE((*file)->write(bytes_of("5"), 4).is_ok());
  EXPECT_EQ(contents_of(*target, "a"), std::string("1\0"
                                                   "345",
                                                   5));
}

TEST(faulty_target, a_failed_write_leaves_the_first_half) {
  const auto target = faulty_target(memory_target(), {1, Fault::no_space, set_of(Call::write)});
  const auto file = target->open("a", OpenMode::create);
  const ByteVector one = bytes_of("abc"), two = bytes_of("defg"), three = bytes_of("hij");
  const std::span<const std::byte> parts[] = {one, two, three};
  const Status status = (*file)->write_gathered(parts, 2);
  EXPECT_EQ(status.text(), "write of 10 bytes at offset 2 of a: No space left on device");
  EXPECT_EQ(contents_of(*target, "a"), std::string("\0\0abcde", 7));
}

TEST(faulty_target, a_write_of_another_library_may_fail_and_is_never_short) {
  const auto target = faulty_target(memory_target(), {2, Fault::no_space, set_of(Call::write)});
  EXPECT_TRUE(target->count_write("a", 5).is_ok());
  EXPECT_EQ(target->count_write("a", 5).code(), Code::space);
  const auto file = *target->open("a", OpenMode::create);
  target->restart({1, Fault::no_space, set_of(Call::write)});
  EXPECT_EQ(file->reserve(std::vector<Range>{{0, 5}}).code(), Code::space);
  EXPECT_TRUE(file->reserve(std::vector<Range>{{0, 5}}).is_ok());
  target->restart({1, Fault::short_write, set_of(Call::write)});
  EXPECT_TRUE(target->count_write("a", 5).is_ok());
  EXPECT_TRUE(file->reserve(std::vector<Range>{{0, 5}}).is_ok());
  EXPECT_FALSE(target->fired());
}

TEST(faulty_target, a_failed_sync_stays_failed_for_that_file) {
  const auto target = faulty_target(memory_target(), {1, Fault::io_error, set_of(Call::sync)});
  const auto file = target->open("a", OpenMode::create), other = target->open("b", OpenMode::create);
  EXPECT_EQ((*file)->sync().error_number(), EIO);
  target->restart({});
  EXPECT_EQ((*file)->sync().error_number(), EIO);
  EXPECT_TRUE((*other)->sync().is_ok());
}

TEST(faulty_target, a_failed_close_has_closed) {
  const auto target = faulty_target(memory_target(), {1, Fault::io_error, set_of(Call::close)});
  const auto file = target->open("a", OpenMode::create);
  EXPECT_EQ((*file)->close().error_number(), EIO);
  EXPECT_EQ((*file)->close().code(), Code::state);
}

TEST(fault_plan, is_read_from_text) {
  const auto plan = parse_fault("nth=3 fault=enospc calls=write,sync  for=good");
  ASSERT_TRUE(plan.is_ok()) << plan.status().text();
  EXPECT_EQ(plan->nth, 3);
  EXPECT_EQ(plan->fault, Fault::no_space);
  EXPECT_EQ(plan->calls, set_of(Call::write, Call::sync));
  EXPECT_TRUE(plan->for_good);
  const auto least = parse_fault("nth=12");
  ASSERT_TRUE(least.is_ok());
  EXPECT_EQ(least->nth, 12);
  EXPECT_EQ(least->fault, Fault::io_error);
  EXPECT_EQ(least->calls, changing_calls);
  EXPECT_FALSE(least->for_good);
  EXPECT_EQ(parse_fault("nth=1 calls=all")->calls, all_calls);
  EXPECT_EQ(parse_fault("nth=1 fault=short")->fault, Fault::short_write);
}

TEST(fault_plan, bad_text_is_refused_with_the_nearest_word) {
  const std::pair<const char*, const char*> bad[] = {
      {"", "nth=N is missing"},
      {"fault=eio", "nth=N is missing"},
      {"nth=0", "from 1 on"},
      {"nth=-2", "from 1 on"},
      {"nth=two", "from 1 on"},
      {"nth=3x", "from 1 on"},
      {"nth=99999999999999999999", "from 1 on"},
      {"nth=1 fault=enospace", "did you mean \"enospc\""},
      {"nth=1 calls=wrote", "did you mean \"write\""},
      {"nth=1 call=write", "did you mean \"calls\""},
      {"nth=1 for=god", "did you mean \"good\""},
  };
  for (const auto& [text, expected] : bad) {
    const auto plan = parse_fault(text);
    ASSERT_FALSE(plan.is_ok()) << text;
    EXPECT_EQ(plan.status().code(), Code::settings);
    EXPECT_NE(plan.status().text().find(expected), std::string::npos) << plan.status().text();
  }
}

}  // namespace
}  // namespace tailrace::storage
