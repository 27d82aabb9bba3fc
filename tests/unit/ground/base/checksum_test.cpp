// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/checksum.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "ground/base/bytes.hpp"
#include "ground/base/uuid.hpp"

#define XXH_INLINE_ALL
#define XXH_VECTOR 0  // for every processor
#include "xxhash/xxhash.h"

namespace tailrace {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(checksum, is_xxh3_64_as_published) {
  // The values come from the test vectors of the XXH3 specification for the empty input, and from `xxhsum
  // -H3`.
  EXPECT_EQ(checksum({}), 0x2D06800538D394C2ULL);
  EXPECT_EQ(checksum(bytes_of("abc")), 0x78AF5F94892F3950ULL);
  EXPECT_NE(checksum(bytes_of("abc"), 1), checksum(bytes_of("abc")));
}

/// The processor decides which instructions compute it.
TEST(checksum, is_the_same_with_any_instructions) {
  std::mt19937_64 random(2);
  ByteVector bytes(300'000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t length = 0; length <= bytes.size(); length += 1 + length / 7) {
    for (const std::size_t begin : {0, 1, 9}) {
      if (begin + length > bytes.size()) continue;
      const std::span<const std::byte> some = std::span(bytes).subspan(begin, length);
      const std::uint64_t seed = random();
      EXPECT_EQ(checksum(some, seed), XXH3_64bits_withSeed(some.data(), some.size(), seed));
      EXPECT_EQ(checksum(some), XXH3_64bits(some.data(), some.size()));
    }
  }
}

TEST(checksum, digest_is_xxh3_128_as_published) {
  EXPECT_EQ(Digest().hex(), "99aa06d3014798d86001c324468d497f");
  Digest digest;
  digest.add(bytes_of("abc"));
  EXPECT_EQ(digest.hex(), "06b05ab6733a618578af5f94892f3950");
}

TEST(checksum, digest_does_not_depend_on_the_pieces) {
  std::mt19937_64 random(1);
  ByteVector bytes(100'000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  Digest whole;
  whole.add(bytes);
  for (int round = 0; round < 20; ++round) {
    Digest pieces;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t length = std::min<std::size_t>(random() % 3000, bytes.size() - at);
      pieces.add(std::span(bytes).subspan(at, length));
      at += length;
    }
    EXPECT_EQ(pieces.hex(), whole.hex());
  }
}

TEST(uuid, random_ones_differ_and_are_of_version_4) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = Uuid::random().text();
    EXPECT_EQ(text.size(), 36U);
    EXPECT_EQ(text[14], '4');
    EXPECT_NE(std::string("89ab").find(text[19]), std::string::npos);
    EXPECT_TRUE(seen.insert(text).second);
  }
}

TEST(uuid, text_reads_back_in_either_case) {
  const Uuid uuid = Uuid::random();
  EXPECT_EQ(*Uuid::parse(uuid.text()), uuid);
  const Result<Uuid> upper = Uuid::parse("123E4567-E89B-42D3-A456-426614174000");
  ASSERT_TRUE(upper.is_ok());
  EXPECT_EQ(upper->text(), "123e4567-e89b-42d3-a456-426614174000");
}

TEST(uuid, refuses_what_is_none) {
  for (const std::string_view text :
       {"", "123e4567", "123e4567-e89b-42d3-a456-42661417400", "123e4567-e89b-42d3-a456-4266141740000",
        "123e4567e89b-42d3-a456-426614174000-", "123e4567-e89b-42d3-a456-42661417400g"}) {
    EXPECT_FALSE(Uuid::parse(text).is_ok()) << text;
  }
}

}  // namespace
}  // namespace tailrace
