// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "ground/base/bytes.hpp"
#include "ground/layout/memory.hpp"
#include "random_layouts.hpp"

namespace tailrace::layout::test {
namespace {

void expect_same(const Layout& a, const Layout& b) {
  ASSERT_EQ(a.kind(), b.kind());
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.ranks(), b.ranks());
  ASSERT_EQ(a.is_box(), b.is_box());
  ASSERT_EQ(a.is_tiled(), b.is_tiled());
  ASSERT_EQ(a.unowned(), b.unowned());
  for (int rank = 0; rank < a.ranks(); ++rank) {
    ASSERT_EQ(a.count(rank), b.count(rank));
    ASSERT_EQ(a.rows(rank), b.rows(rank));
    ASSERT_EQ(a.box(rank), b.box(rank));
    ASSERT_EQ(a.tiles(rank), b.tiles(rank));
  }
}

Layout random_section(Generator& generator, const Layout& layout) {
  Section section;
  for (const Index extent : layout.shape()) {
    section.start.push_back(generator.between(0, extent));
    section.stop.push_back(generator.between(section.start.back(), extent));
    section.stride.push_back(generator.between(1, 3));
  }
  return *section_layout(layout, section);
}

TEST(Travel, a_layout_arrives_as_it_was_sent) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Generator generator(seed);
    Layout layout = generator.any();
    if (seed % 3 == 0) layout = random_section(generator, layout);
    Packer out;
    layout.pack(out);
    out.put(std::int64_t{42});
    Unpacker in(out.bytes());
    const auto arrived = Layout::unpack(in);
    ASSERT_TRUE(arrived.is_ok()) << arrived.status().text();
    expect_same(layout, *arrived);
    ASSERT_EQ(in.get<std::int64_t>(), 42) << "nothing more, nothing less was read";
  }
}

TEST(Travel, a_part_of_an_indexed_layout_arrives_as_it_was_sent) {
  const auto layout = Layout::indexed_part({10}, 1, 3, {9, 2, 3}, {2});
  Packer out;
  layout->pack(out);
  Unpacker in(out.bytes());
  const auto arrived = Layout::unpack(in);
  ASSERT_TRUE(arrived.is_ok());
  expect_same(*layout, *arrived);
  EXPECT_EQ(arrived->owner(9), 1);
  EXPECT_FALSE(arrived->has_share(2));
}

TEST(Travel, a_regular_layout_of_a_million_ranks_is_a_short_message) {
  Packer out;
  Layout::block({40'000, 40'000}, 1'000'000)->pack(out);
  EXPECT_LT(out.bytes().size(), 100U);
}

TEST(Travel, every_truncated_message_is_an_error) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Generator generator(seed);
    Layout layout = generator.any();
    if (seed % 3 == 0) layout = random_section(generator, layout);
    Packer out;
    layout.pack(out);
    for (std::size_t length = 0; length < out.bytes().size(); ++length) {
      Unpacker in(std::span(out.bytes()).first(length));
      ASSERT_FALSE(Layout::unpack(in).is_ok()) << describe(layout) << " cut to " << length;
    }
  }
}

TEST(Travel, damaged_messages_never_crash) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Generator generator(seed);
    Packer out;
    generator.any().pack(out);
    ByteVector bytes = out.take();
    for (int i = 0; i < 3; ++i) {
      // Damage in the first bytes reaches kinds and shapes; small values get past the first checks.
      const auto at = static_cast<std::size_t>(generator.between(0, static_cast<Index>(bytes.size()) - 1));
      bytes[at] = static_cast<std::byte>(generator.between(0, 9));
    }
    Unpacker in(bytes);
    const auto arrived = Layout::unpack(in);
    if (!arrived.is_ok()) EXPECT_FALSE(arrived.status().text().empty());
  }
}

TEST(Travel, an_unknown_kind_is_an_error_that_says_so) {
  Packer out;
  out.put(std::int32_t{99}).put_list<Index>(std::vector<Index>{4});
  Unpacker in(out.bytes());
  const Status status = Layout::unpack(in).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("unknown kind"), std::string::npos);
}

}  // namespace
}  // namespace tailrace::layout::test
