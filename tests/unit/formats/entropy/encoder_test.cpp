// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The octets of each way are compared with those of libaec.
#include "samples.hpp"

#include "ground/base/text.hpp"

namespace tailrace::entropy::test {
namespace {

constexpr int usual_interval = 128;

class Encoding : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!has_libaec()) GTEST_SKIP() << "built without libaec";
    if (!has(GetParam())) GTEST_SKIP() << "this processor lacks the instructions";
  }
  void expect_same(const Parameters& parameters, const Codes& codes) {
    ASSERT_TRUE(covers(parameters));
    EXPECT_TRUE(encoded(parameters, codes, GetParam()) == by_libaec(parameters, codes))
        << codes.size() << " codes of " << parameters.bits << " bits, blocks of " << parameters.block
        << ", intervals of " << parameters.interval;
  }
  std::mt19937_64 random_{17};
};

INSTANTIATE_TEST_SUITE_P(way, Encoding, testing::ValuesIn(all_ways), [](const auto& info) {
  return std::string(info.param == Way::portable ? "portable" : info.param == Way::avx2 ? "avx2" : "avx512");
});

TEST_P(Encoding, has_the_octets_of_libaec_for_each_width_and_level_of_noise) {
  for (int bits = 1; bits <= 32; ++bits) {
    for (int noise = 0; noise <= bits; ++noise) {
      const Index count = 4096 + static_cast<Index>(random_() % 1000);
      expect_same({bits, 32, usual_interval}, codes_of(Kind::walk, bits, noise, count, random_));
    }
  }
}

TEST_P(Encoding, has_the_octets_of_libaec_for_each_kind_block_and_interval) {
  for (const int bits : {1, 2, 3, 7, 8, 9, 12, 16, 17, 24, 25, 32}) {
    for (const Kind kind : all_kinds) {
      for (const int block : {8, 16, 32, 64}) {
        for (const int interval : {1, 2, 63, 64, 65, 128, 4096}) {
          SCOPED_TRACE(static_cast<int>(kind));
          const Index count = 1 + static_cast<Index>(random_() % 9000);
          expect_same({bits, block, interval}, codes_of(kind, bits, bits / 2, count, random_));
        }
      }
    }
  }
}

TEST_P(Encoding, fills_up_the_last_block_of_every_length) {
  for (Index count = 1; count <= 100; ++count) {
    expect_same({12, 32, usual_interval}, codes_of(Kind::walk, 12, 5, count, random_));
    expect_same({24, 8, 3}, codes_of(Kind::small_numbers, 24, 0, count, random_));
  }
  for (const Index count : {4095, 4096, 4097, 8191, 8192, 8193, 2048, 2049})
    expect_same({16, 32, usual_interval}, codes_of(Kind::walk, 16, 6, count, random_));
}

/// Returns codes that do not change in `length` blocks from block `first` on, and in all others do.
Codes with_equal_blocks(int block, int blocks, int first, int length) {
  Codes codes;
  for (int i = 0; i < blocks * block; ++i) {
    const bool is_equal = i / block >= first && i / block < first + length;
    codes.push_back(is_equal ? codes.empty() ? 5 : codes.back() : static_cast<std::uint32_t>(i * 7 % 11));
  }
  return codes;
}

TEST_P(Encoding, ends_runs_of_zero_blocks_where_segments_and_intervals_end) {
  for (int length = 1; length <= 140; ++length) {
    for (const int first : {0, 1, 58, 59, 60, 63, 64, 65, 123, 124, 127})
      expect_same({10, 8, usual_interval}, with_equal_blocks(8, 270, first, length));
  }
  // The rest of a segment has a code of its own from five blocks on, also where the values end.
  for (int blocks = 1; blocks <= 70; ++blocks) {
    expect_same({10, 32, usual_interval}, with_equal_blocks(32, blocks, blocks / 2, blocks));
    expect_same({10, 32, usual_interval}, with_equal_blocks(32, blocks, 0, blocks));
    expect_same({20, 16, 100}, with_equal_blocks(16, 2 * blocks, 1, 2 * blocks));
  }
}

// Blocks of few, small numbers often have options of equal length.
TEST_P(Encoding, chooses_as_libaec_where_options_are_equally_long) {
  for (int round = 0; round < 3000; ++round) {
    const int bits = 1 + static_cast<int>(random_() % 6);
    const std::uint64_t most = random_() % 6;
    Codes codes;
    for (int i = 0; i < 400; ++i)
      codes.push_back(
          static_cast<std::uint32_t>(std::min<std::uint64_t>(random_() % (most + 1), largest_code(bits))));
    expect_same({bits, round % 2 == 0 ? 8 : 32, 5}, codes);
  }
}

/// Returns the codes whose differences are these, alternately up and down.
Codes zigzag(const std::vector<int>& steps) {
  Codes codes{1000};
  for (std::size_t i = 0; i < steps.size(); ++i)
    codes.push_back(codes.back() + static_cast<std::uint32_t>(i % 2 == 0 ? steps[i] : -steps[i]));
  return codes;
}

// A block whose splits at 1 and 2 are equally long is split as the block before it was, or nearest to that.
TEST_P(Encoding, keeps_the_split_of_the_block_before_where_several_are_shortest) {
  constexpr int block = 8;
  const Codes tied = zigzag({1, 1, 1, 1, 2, 2, 2, 2});  // mapped: 2 1 2 1 4 3 4 3
  const auto blocks = [&](int step) {
    std::vector<int> steps(2 * block - 1, step);
    for (int i = 0; i < block; ++i) steps.push_back(i < block / 2 ? 1 : 2);
    return zigzag(steps);
  };
  const ByteVector small = encoded({12, block, usual_interval}, blocks(1), GetParam());
  const ByteVector large = encoded({12, block, usual_interval}, blocks(200), GetParam());
  expect_same({12, block, usual_interval}, blocks(1));
  expect_same({12, block, usual_interval}, blocks(200));
  expect_same({12, block, 1}, blocks(200));
  EXPECT_GT(large.size(), small.size());
  for (int step = 0; step < 300; ++step) expect_same({12, block, 2}, blocks(step));
  expect_same({12, block, usual_interval}, tied);
}

TEST_P(Encoding, in_portions_gives_the_octets_of_the_whole) {
  for (const int bits : {9, 21}) {
    const Parameters parameters{bits, 16, 6};
    constexpr Index interval = 16 * 6;
    const Codes codes = codes_of(Kind::walk, bits, 4, 20 * interval + 29, random_);
    Encoder narrow(parameters, GetParam()), wide(parameters, GetParam());
    ByteVector all;
    for (Index at = 0, portion = interval; at < static_cast<Index>(codes.size()); at += portion) {
      portion = interval * (1 + static_cast<Index>(random_() % 4));
      const Index here = std::min(portion, static_cast<Index>(codes.size()) - at);
      const bool is_last = at + here == static_cast<Index>(codes.size());
      const Codes part(codes.begin() + at, codes.begin() + at + here);
      ByteVector out(static_cast<std::size_t>(bound(parameters, here) + encoder_spare));
      const Bytes length = bits <= most_narrow_bits
                               ? narrow.encode(as<std::uint16_t>(part).data(), here, is_last, out.data())
                               : wide.encode(part.data(), here, is_last, out.data());
      all.insert(all.end(), out.begin(), out.begin() + length);
    }
    EXPECT_TRUE(all == by_libaec(parameters, codes)) << bits;
  }
}

TEST(entropy, agrees_with_this_libaec) {
  EXPECT_TRUE(agrees_with_libaec());
  EXPECT_TRUE(has(Way::portable));
  EXPECT_TRUE(has(best_way()));
}

TEST(entropy, covers_what_the_coder_can_do_and_nothing_else) {
  EXPECT_TRUE(covers({1, 8, 1}));
  EXPECT_TRUE(covers({32, 64, 4096}));
  for (const Parameters& each : {Parameters{0, 32, 128},
                                 {33, 32, 128},
                                 {16, 4, 128},
                                 {16, 24, 128},
                                 {16, 128, 128},
                                 {16, 32, 0},
                                 {16, 32, 4097}})
    EXPECT_FALSE(covers(each)) << each.bits << ' ' << each.block << ' ' << each.interval;
}

}  // namespace
}  // namespace tailrace::entropy::test
