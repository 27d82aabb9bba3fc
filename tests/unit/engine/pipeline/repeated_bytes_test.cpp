// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/repeated_bytes.hpp"

#include <gtest/gtest.h>

#include <string>

using namespace tailrace;
using namespace tailrace::pipeline;

namespace {

ByteVector bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Returns the runs as text: "offset:bytes " for each.
std::string text_of(const Runs& runs) {
  std::string text;
  for (const auto& run : runs.list) {
    text += std::to_string(run.offset) + ":";
    for (const auto& part : run.parts) text.append(reinterpret_cast<const char*>(part.data()), part.size());
    text += " ";
  }
  return text;
}

TEST(repeated_bytes, patches_are_written_as_often_as_they_say) {
  const std::vector<codec::Patch> patches = {{3, bytes_of("ab"), 3},   {9, bytes_of("head"), 1},
                                             {20, bytes_of("ab"), 5},  {30, bytes_of("x"), 0},
                                             {30, ByteVector(), 1000}, {30, bytes_of("yz"), 2}};
  const RepeatedBytes repeated(patches);
  Runs runs;
  for (const codec::Patch& each : patches) repeated.append(runs, each);
  EXPECT_EQ(text_of(runs), "3:abababhead 20:abababababyzyz ");
  EXPECT_EQ(runs.size, 6 + 4 + 10 + 4);
  EXPECT_EQ(repeated.memory(), 10 + 4);
}

TEST(repeated_bytes, many_fill_patches_of_one_value_share_a_buffer) {
  constexpr std::int64_t values = 10'000'000;
  std::vector<codec::Patch> patches;
  for (int i = 0; i < 97 * 137; ++i) patches.push_back({i * 8 * values, bytes_of("8 bytes."), values});
  const RepeatedBytes repeated(patches);
  EXPECT_EQ(repeated.memory(), RepeatedBytes::most_of_one);
  Runs runs;
  repeated.append(runs, patches.back());
  ASSERT_EQ(runs.list.size(), 1U);
  EXPECT_EQ(runs.list.front().offset, patches.back().offset);
  EXPECT_EQ(runs.size, 8 * values);
}

TEST(repeated_bytes, buffers_of_many_values_have_a_bound_together) {
  std::vector<codec::Patch> patches;
  for (int i = 0; i < 500; ++i) patches.push_back({0, bytes_of("value" + std::to_string(1000 + i)), 100'000});
  EXPECT_LE(RepeatedBytes(patches).memory(), RepeatedBytes::most);
}

TEST(repeated_bytes, what_is_longer_than_a_buffer_is_not_copied) {
  const std::vector<codec::Patch> patches = {{0, ByteVector(RepeatedBytes::most_of_one + 1), 3}};
  const RepeatedBytes repeated(patches);
  EXPECT_EQ(repeated.memory(), 0);
  Runs runs;
  repeated.append(runs, patches.front());
  EXPECT_EQ(runs.size, 3 * (RepeatedBytes::most_of_one + 1));
}

}  // namespace
