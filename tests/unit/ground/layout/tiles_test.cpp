// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Layouts in which a rank has several boxes, and in which elements have no owner.
#include <gtest/gtest.h>

#include <chrono>

#include "arrays.hpp"
#include "ground/layout/stretch.hpp"

namespace tailrace::layout::test {
namespace {

using Lists = std::vector<std::vector<Box>>;

/// Makes random boxes of which some are left out, and perhaps one is changed.
Lists lists_with_gaps(Generator& generator, const std::vector<Index>& shape) {
  Lists lists = generator.tile_lists(shape);
  for (auto& list : lists) std::erase_if(list, [&](const Box&) { return generator.between(0, 3) == 0; });
  if (generator.chance() && !lists.front().empty()) {
    Box& box = lists.front().front();
    const auto d = static_cast<std::size_t>(generator.between(0, static_cast<Index>(shape.size()) - 1));
    box.upper[d] = generator.between(box.lower[d], shape[d]);
  }
  return lists;
}

std::vector<int> owners_by_counting(const Layout& layout) {
  std::vector<int> count(static_cast<std::size_t>(layout.elements()), 0);
  for (int rank = 0; rank < layout.ranks(); ++rank)
    for (const Index global : expand(layout.rows(rank))) ++count[static_cast<std::size_t>(global)];
  return count;
}

void expect_gaps(const Layout& layout, const std::vector<int>& owners) {
  std::vector<int> seen = owners;
  for (const Index global : expand(layout.unowned())) {
    ASSERT_EQ(seen[static_cast<std::size_t>(global)], 0) << describe(layout) << ", element " << global;
    seen[static_cast<std::size_t>(global)] = 1;
    ASSERT_EQ(layout.owner(global), -1);
  }
  ASSERT_EQ(std::ranges::count(seen, 0), 0) << describe(layout);
}

TEST(Tiles, elements_without_owner_are_just_those_in_no_box) {
  int lacking = 0, twice = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Generator generator(seed);
    const auto shape = generator.shape();
    const auto layout = Layout::tiles(shape, lists_with_gaps(generator, shape), true);
    ASSERT_TRUE(layout.is_ok()) << layout.status().text();
    const std::vector<int> owners = owners_by_counting(*layout);
    const auto wrong = std::ranges::find_if(owners, [](int n) { return n > 1; });
    const Status status = layout->validate();
    ASSERT_EQ(status.is_ok(), wrong == owners.end()) << status.text();
    if (!status.is_ok()) {
      const auto element = "global element " + std::to_string(wrong - owners.begin()) + ", ";
      ASSERT_EQ(status.text().find(element), 0U) << status.text() << " expected " << element;
      ++twice;
      continue;
    }
    ASSERT_EQ(layout->has_unowned(), std::ranges::count(owners, 0) > 0);
    lacking += layout->has_unowned() ? 1 : 0;
    ASSERT_NO_FATAL_FAILURE(expect_gaps(*layout, owners));
    const auto part = section_layout(*layout, any_section(generator, shape));
    ASSERT_NO_FATAL_FAILURE(expect_gaps(*part, owners_by_counting(*part)));
    Packer out;
    layout->pack(out);
    Unpacker in(out.bytes());
    const auto arrived = Layout::unpack(in);
    ASSERT_TRUE(arrived.is_ok()) << arrived.status().text();
    ASSERT_EQ(arrived->unowned(), layout->unowned());
  }
  EXPECT_GT(lacking, 500);
  EXPECT_GT(twice, 100);
}

TEST(Tiles, without_unowned_the_first_gap_is_named) {
  const Lists lists = {{{{0, 0}, {2, 2}}, {{2, 2}, {4, 4}}}, {}, {{{0, 2}, {2, 4}}}};
  const auto layout = Layout::tiles({4, 4}, lists, false);
  EXPECT_EQ(layout->count(0), 8);
  EXPECT_FALSE(layout->has_share(1));
  EXPECT_FALSE(layout->has_unowned());
  const Status status = layout->validate();
  EXPECT_EQ(status.code(), Code::layout);
  EXPECT_EQ(status.text().find("global element 8, index (2, 0)"), 0U) << status.text();
  EXPECT_NE(status.text().find("set unowned"), std::string::npos) << status.text();
  EXPECT_TRUE(Layout::tiles({4, 4}, lists, true)->validate().is_ok());
}

TEST(Tiles, overlaps_within_a_rank_and_between_ranks_are_named) {
  const Box left{{0}, {6}}, right{{5}, {9}};
  const Status within = Layout::tiles({9}, {{}, {left, right}}, true)->validate();
  EXPECT_NE(within.text().find("is in two boxes of rank 1"), std::string::npos) << within.text();
  const Status between = Layout::tiles({9}, {{left}, {}, {right}}, true)->validate();
  EXPECT_NE(between.text().find("is in boxes of both rank 0 and rank 2"), std::string::npos)
      << between.text();
  const Status beyond = Layout::tiles({8}, {{}, {left, right}}, true).status();
  EXPECT_EQ(beyond.code(), Code::layout);
  EXPECT_NE(beyond.text().find("box 1"), std::string::npos) << beyond.text();
  EXPECT_NE(beyond.text().find("rank 1 reaches index 8"), std::string::npos) << beyond.text();
}

TEST(Tiles, hundred_thousand_boxes_are_quick_and_of_few_rows) {
  constexpr Index side = 300, tile = 1000;
  Lists lists(16);
  for (Index i = 0; i < side * side; ++i) {
    if (i % 7 == 3) continue;
    const Index y = i / side * tile, x = i % side * tile;
    lists[static_cast<std::size_t>(i % 16)].push_back({{y, x}, {y + tile, x + tile}});
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto layout = Layout::tiles({side * tile, side * tile}, lists, true);
  ASSERT_TRUE(layout->validate().is_ok());
  EXPECT_EQ(layout->rows(5).size(), lists[5].size());
  EXPECT_EQ(layout->owner(0), 0);
  EXPECT_EQ(layout->owner(3 * tile), -1);
  EXPECT_LT(layout->unowned().size(), static_cast<std::size_t>(side * side));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Tiles, values_for_elements_without_owner_come_to_whole_records_and_to_stretches) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Generator generator(seed);
    const auto shape = generator.shape();
    const auto layout = Layout::tiles(shape, lists_with_gaps(generator, shape), true);
    if (!layout->validate().is_ok()) continue;
    const Bytes element = size_of(any_type(generator));
    std::vector<std::byte> value(static_cast<std::size_t>(element), std::byte{7});
    std::vector<std::byte> expected(static_cast<std::size_t>(layout->elements() * element), std::byte{1});
    const std::vector<int> owners = owners_by_counting(*layout);
    for (Index i = 0; i < layout->elements(); ++i)
      if (owners[static_cast<std::size_t>(i)] == 0)
        std::fill_n(expected.begin() + i * element, element, std::byte{7});
    std::vector<std::byte> record(expected.size(), std::byte{1}), parts = record;
    fill_rows(layout->unowned(), value, record.data());
    ASSERT_EQ(record, expected) << describe(*layout);
    for (Stretch stretch{0, 0, element, 1}; stretch.first < layout->elements(); stretch.first = stretch.end) {
      stretch.end = std::min(layout->elements(), stretch.first + generator.between(1, 40));
      stretch.out = parts.data() + stretch.first * element;
      fill_stretch(layout->unowned(), value, stretch);
    }
    ASSERT_EQ(parts, expected) << describe(*layout);
  }
}

TEST(Tiles, arrays_are_lists_or_have_one_dimension_more) {
  const auto equal = Layout::tiles({4, 6}, {{{{0, 0}, {2, 3}}, {{2, 3}, {4, 6}}}, {}}, true);
  const Allocation levels{.halo = {1, 0}, .level_axis = 1, .levels = 5, .nproma = 0, .strides = {}};
  EXPECT_TRUE(match_extents(*equal, 0, levels, std::vector<Index>{2, 5, 4, 3}).is_ok());
  EXPECT_TRUE(match_extents(*equal, 0, levels, std::vector<Index>{2, 5, 2, 3})->halo.empty());
  EXPECT_FALSE(match_extents(*equal, 0, levels, std::vector<Index>{5, 2, 4, 3}).is_ok());
  EXPECT_TRUE(match_extents(*equal, 1, levels, std::vector<Index>{0, 5, 4, 3}).is_ok());
  Allocation slowest = levels;
  slowest.level_axis = 0;
  EXPECT_TRUE(match_extents(*equal, 0, slowest, std::vector<Index>{5, 24}).is_ok());
  EXPECT_TRUE(match_extents(*equal, 0, slowest, std::vector<Index>{5, 2, 4, 3}).is_ok());
  const auto unlike = Layout::tiles({4, 6}, {{{{0, 0}, {2, 3}}, {{2, 3}, {4, 5}}}}, true);
  EXPECT_TRUE(match_extents(*unlike, 0, slowest, std::vector<Index>{5, 20}).is_ok());
  const auto refused = memory_map(*unlike, 0, ElementType::f32, levels);
  EXPECT_NE(refused.status().text().find("different extents"), std::string::npos) << refused.status().text();
  // Packed order is memory order: one run, as copying wants it.
  Allocation plain = slowest;
  plain.halo.clear();
  const auto map = memory_map(*unlike, 0, ElementType::f32, plain);
  ASSERT_EQ(map->nests.size(), 1U);
  EXPECT_EQ(map->nests[0].loops.size(), 1U);
  EXPECT_EQ(map->level_stride, 10 * 4);
}

}  // namespace
}  // namespace tailrace::layout::test
