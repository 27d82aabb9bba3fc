// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/entropy/decoder.hpp"

#include "ground/base/text.hpp"
#include "samples.hpp"

namespace tailrace::entropy::test {
namespace {

/// Decodes into memory of exactly `count` codes, so that the address sanitizer sees a write behind them.
template <typename Number>
Result<Codes> decoded_as(const Parameters& parameters, const ByteVector& stream, Index count, Way way) {
  const std::unique_ptr<Number[]> codes(new Number[static_cast<std::size_t>(count)]);
  // A copy without spare octets, which the address sanitizer watches.
  const std::unique_ptr<std::byte[]> octets(new std::byte[stream.size()]);
  std::copy(stream.begin(), stream.end(), octets.get());
  TR_TRY(decode(parameters, {octets.get(), stream.size()}, count, codes.get(), way));
  return Codes(codes.get(), codes.get() + count);
}

Result<Codes> decoded(const Parameters& parameters, const ByteVector& stream, Index count, Way way) {
  return parameters.bits <= most_narrow_bits ? decoded_as<std::uint16_t>(parameters, stream, count, way)
                                             : decoded_as<std::uint32_t>(parameters, stream, count, way);
}

class Decoding : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!has(GetParam())) GTEST_SKIP() << "this processor lacks the instructions";
  }
  std::mt19937_64 random_{19};
};

INSTANTIATE_TEST_SUITE_P(way, Decoding, testing::ValuesIn(all_ways), [](const auto& info) {
  return std::string(info.param == Way::portable ? "portable" : info.param == Way::avx2 ? "avx2" : "avx512");
});

TEST_P(Decoding, gives_back_what_libaec_encoded) {
  if (!has_libaec()) GTEST_SKIP() << "built without libaec";
  for (int bits = 1; bits <= 32; ++bits) {
    for (const Kind kind : all_kinds) {
      const Parameters parameters{bits, 8 << random_() % 4, 1 + static_cast<int>(random_() % 200)};
      const Index count = 1 + static_cast<Index>(random_() % 9000);
      const Codes codes =
          codes_of(kind, bits, static_cast<int>(random_() % static_cast<unsigned>(bits)), count, random_);
      const Result<Codes> back = decoded(parameters, by_libaec(parameters, codes), count, GetParam());
      ASSERT_TRUE(back.is_ok()) << back.status().text();
      ASSERT_TRUE(*back == codes) << bits << " bits, kind " << static_cast<int>(kind);
    }
  }
}

TEST_P(Decoding, of_the_first_codes_needs_no_more_of_the_stream) {
  const Parameters parameters{16, 32, 128};
  const Codes codes = codes_of(Kind::walk, 16, 6, 9000, random_);
  const ByteVector stream = encoded(parameters, codes, Way::portable);
  for (const Index count : {0, 1, 31, 32, 33, 4096, 4100, 9000}) {
    const Result<Codes> back = decoded(parameters, stream, count, GetParam());
    ASSERT_TRUE(back.is_ok()) << back.status().text();
    EXPECT_TRUE(std::equal(back->begin(), back->end(), codes.begin()));
  }
}

TEST_P(Decoding, says_that_a_stream_is_cut_off_wherever_it_is_cut) {
  for (const Kind kind : all_kinds) {
    for (const int bits : {2, 8, 13, 24}) {
      const Parameters parameters{bits, 16, 5};
      constexpr Index count = 31 * 16;  // whole blocks: the filling of the last one may be missing
      const Codes codes = codes_of(kind, bits, bits / 3, count, random_);
      ByteVector stream = encoded(parameters, codes, Way::portable);
      while (!stream.empty()) {
        stream.pop_back();
        const Result<Codes> back = decoded(parameters, stream, count, GetParam());
        ASSERT_FALSE(back.is_ok()) << "cut to " << stream.size() << " octets";
        ASSERT_EQ(back.status().code(), Code::corrupt);
      }
    }
  }
}

// What is decoded of a damaged stream is what libaec decodes.
TEST_P(Decoding, of_damaged_streams_ends_in_codes_of_the_width_or_an_error) {
  int refused = 0, read = 0;
  for (int round = 0; round < 4000; ++round) {
    const int bits = 1 + static_cast<int>(random_() % 32);
    const Kind kind = all_kinds[random_() % std::size(all_kinds)];
    const Parameters parameters{bits, 8 << random_() % 4, 1 + static_cast<int>(random_() % 70)};
    const Index count = 1 + static_cast<Index>(random_() % 700);
    ByteVector stream = encoded(parameters, codes_of(kind, bits, bits / 2, count, random_), Way::portable);
    const auto flips = 1 + random_() % 8;
    for (std::uint64_t i = 0; i < flips; ++i)
      stream[random_() % stream.size()] ^= static_cast<std::byte>(1U << random_() % 8);
    if (round % 5 == 0) {
      for (std::byte& each : stream) each = static_cast<std::byte>(random_());
    }
    const Result<Codes> back = decoded(parameters, stream, count, GetParam());
    (back.is_ok() ? read : refused) += 1;
    if (!back.is_ok()) continue;
    for (const std::uint32_t code : *back) ASSERT_LE(code, largest_code(bits));
    if (!has_libaec()) continue;
    ByteVector theirs(static_cast<std::size_t>(count * libaec_width(bits)));
    const LibaecParameters same{usual_flags, static_cast<unsigned>(parameters.block),
                                static_cast<unsigned>(parameters.interval), bits};
    if (!libaec_decode(same, stream, theirs).is_ok()) continue;  // a second extension beyond libaec's table
    Codes expected(static_cast<std::size_t>(count), 0);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto width = static_cast<std::size_t>(libaec_width(bits));
      std::memcpy(&expected[i], &theirs[i * width], width);
    }
    ASSERT_TRUE(*back == expected) << bits << " bits, blocks of " << parameters.block << ", round " << round;
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(read, 100);
}

/// Returns these bits, each a character 0 or 1; blanks are left out.
ByteVector stream_of(std::string_view text) {
  ByteVector octets;
  int bit = 0;
  for (const char each : text) {
    if (each == ' ') continue;
    if (bit % 8 == 0) octets.push_back(std::byte{0});
    if (each == '1') octets.back() |= static_cast<std::byte>(0x80 >> bit % 8);
    ++bit;
  }
  return octets;
}

TEST_P(Decoding, needs_no_filling_of_the_last_block) {
  const Parameters parameters{12, 32, 128};
  for (const Kind kind : {Kind::noise, Kind::walk}) {
    const Codes codes = codes_of(kind, 12, 6, 40, random_);
    const ByteVector whole = encoded(parameters, codes, Way::portable);
    std::size_t shortest = whole.size();  // that is read
    for (ByteVector stream = whole; !stream.empty(); stream.pop_back()) {
      const Result<Codes> back = decoded(parameters, stream, std::ssize(codes), GetParam());
      if (!back.is_ok()) {
        EXPECT_NE(back.status().text().find("block 1 of the compressed values is cut off"),
                  std::string::npos);
        break;
      }
      EXPECT_TRUE(*back == codes);
      shortest = stream.size();
    }
    // Of 24 codes that fill the block up, 12 bits each, or the low bits of each.
    EXPECT_LT(shortest + 4, whole.size()) << "kind " << static_cast<int>(kind);
  }
}

TEST_P(Decoding, names_what_is_wrong_and_the_block) {
  const auto error = [&](const Parameters& parameters, std::string_view bits, Index count) {
    const Result<Codes> back = decoded(parameters, stream_of(bits), count, GetParam());
    return back.is_ok() ? std::string("none") : back.status().text();
  };
  // A block of zeros behind the reference 3, then two zero blocks where the interval has one more.
  const Parameters parameters{4, 8, 2};
  EXPECT_EQ(error(parameters, "000 0 0011 1  000 0 1", 16), "none");
  EXPECT_NE(
      error(parameters, "000 0 0011 1  000 0 01", 16)
          .find(
              "block 1 of the compressed values begins a run of zero blocks beyond its interval of 2 blocks"),
      std::string::npos);
  EXPECT_NE(error(parameters, "000 0 0011 1  001 0000 0000 0000 0000 1 1111 1111", 16)
                .find("block 1 of the compressed values has a value of more than 4 bits"),
            std::string::npos);
  EXPECT_NE(
      error(parameters, "000 0 0011 1  001 0000", 16).find("block 1 of the compressed values is cut off"),
      std::string::npos);
  EXPECT_NE(error(parameters, "", 16).find("block 0 of the compressed values is cut off"), std::string::npos);
}

}  // namespace
}  // namespace tailrace::entropy::test
