// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/sequence.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace tailrace::pipeline {
namespace {

using Kind = SequenceEntry::Kind;

ByteVector packed(const std::vector<SequenceEntry>& entries) {
  Packer out;
  pack_sequence(out, entries);
  return out.take();
}

void expect_same(const SequenceEntry& a, const SequenceEntry& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.field, b.field);
  EXPECT_EQ(a.level, b.level);
  EXPECT_EQ(a.owner, b.owner);
  EXPECT_EQ(a.chunk, b.chunk);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.lead, b.lead);
  EXPECT_EQ(a.interval_start, b.interval_start);
  EXPECT_EQ(a.calls, b.calls);
}

void expect_comes_back(const std::vector<SequenceEntry>& entries) {
  const ByteVector bytes = packed(entries);
  Unpacker in(bytes);
  const std::vector<SequenceEntry> back = unpack_sequence(in);
  EXPECT_TRUE(in.ok() && in.rest().empty());
  ASSERT_EQ(back.size(), entries.size());
  for (std::size_t i = 0; i < back.size(); ++i) expect_same(back[i], entries[i]);
}

/// A step of a field whose levels go to servers in turn, each in a chunk of its own.
std::vector<SequenceEntry> usual_step(int records, int servers) {
  std::vector<SequenceEntry> entries{{.kind = Kind::begin, .step = 7, .lead = 3600}};
  for (int i = 0; i < records; ++i) {
    const auto chunk = static_cast<std::uint64_t>(1000 + i);
    entries.push_back({.kind = Kind::record,
                       .field = 2,
                       .level = i,
                       .owner = i % servers,
                       .chunk = chunk,
                       .step = 7,
                       .lead = 3600,
                       .interval_start = 3600});
    entries.push_back({.kind = Kind::end_chunk, .chunk = chunk, .step = 7});
  }
  entries.push_back({.kind = Kind::end_step, .step = 7});
  return entries;
}

TEST(sequence, comes_back_as_it_was) {
  expect_comes_back({});
  expect_comes_back(usual_step(100, 7));
  std::mt19937_64 random(1);
  std::vector<SequenceEntry> any;
  for (int i = 0; i < 1000; ++i) {
    const auto small = [&] { return static_cast<std::int32_t>(random()); };
    const auto large = [&] { return static_cast<std::int64_t>(random()); };
    any.push_back({static_cast<Kind>(1 + random() % 5), small(), small(), small(), random(), large(), large(),
                   large(), large()});
  }
  any.push_back({.kind = Kind::record,
                 .field = std::numeric_limits<std::int32_t>::min(),
                 .chunk = std::numeric_limits<std::uint64_t>::max(),
                 .lead = std::numeric_limits<std::int64_t>::min()});
  expect_comes_back(any);
}

TEST(sequence, takes_about_four_bytes_for_a_record_and_the_end_of_its_chunk) {
  constexpr int records = 4096;
  EXPECT_LT(packed(usual_step(records, 512)).size(), 5 * records);
}

TEST(sequence, that_is_cut_short_gives_no_entry_that_was_not_whole) {
  const ByteVector whole = packed(usual_step(20, 3));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Unpacker in(std::span<const std::byte>(whole).first(size));
    const std::vector<SequenceEntry> back = unpack_sequence(in);
    EXPECT_FALSE(in.ok());
    const std::vector<SequenceEntry> all = usual_step(20, 3);
    ASSERT_LT(back.size(), all.size());
    for (std::size_t i = 0; i < back.size(); ++i) expect_same(back[i], all[i]);
  }
}

}  // namespace
}  // namespace tailrace::pipeline
