// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "arrays.hpp"

namespace tailrace::layout::test {
namespace {

using Buffer = std::vector<std::byte>;

Buffer expected_pack(const NaiveArray& array, Index level) {
  Buffer out(array.owned.size() * static_cast<std::size_t>(array.element));
  for (std::size_t i = 0; i < array.owned.size(); ++i)
    fill_value(out.data() + i * static_cast<std::size_t>(array.element), array.element, array.owned[i],
               level);
  return out;
}

void fill(NaiveArray& array) {
  for (Index level = 0; level < array.allocation.levels; ++level)
    for (std::size_t i = 0; i < array.owned.size(); ++i)
      fill_value(array.base() + array.offset(static_cast<Index>(i), level), array.element, array.owned[i],
                 level);
}

/// Calls body(array, map) for many layouts, ranks, element types and allocations.
template <typename Body>
void for_random_arrays(unsigned seeds, const Body& body) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    const int rank = static_cast<int>(generator.between(0, layout.ranks() - 1));
    const ElementType type = any_type(generator);
    NaiveArray array(generator, layout, rank, type);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": rank " + std::to_string(rank) + " of " +
                 describe(layout));
    const auto map = memory_map(layout, rank, type, array.allocation);
    ASSERT_TRUE(map.is_ok()) << map.status().text();
    ASSERT_EQ(map->count(), layout.count(rank));
    body(array, *map);
  }
}

TEST(Pack, takes_each_level_in_packed_order_from_any_allocation) {
  for_random_arrays(5000, [](NaiveArray& array, const MemoryMap& map) {
    fill(array);
    for (Index level = 0; level < array.allocation.levels; ++level) {
      const Buffer expected = expected_pack(array, level);
      Buffer got(expected.size() + 1, std::byte{0xAA});
      pack(map, array.base(), level, got.data());
      ASSERT_EQ(got.back(), std::byte{0xAA}) << "wrote past the end";
      got.pop_back();
      ASSERT_EQ(got, expected) << "level " << level;
    }
  });
}

TEST(Pack, rows_of_every_length_arrive_whole) {
  for (Index length = 1; length <= 700; ++length) {
    const auto layout = Layout::block({5, length}, 1);
    Allocation allocation;
    allocation.halo = {1, 3};
    const auto map = memory_map(*layout, 0, ElementType::i8, allocation);
    std::vector<std::byte> array(static_cast<std::size_t>(7 * (length + 6)));
    for (std::size_t i = 0; i < array.size(); ++i) array[i] = static_cast<std::byte>(i * 37 + (i >> 8));
    std::vector<std::byte> got(static_cast<std::size_t>(5 * length + 1), std::byte{0x55});
    pack(*map, array.data(), 0, got.data());
    for (Index y = 0; y < 5; ++y)
      ASSERT_EQ(0, std::memcmp(got.data() + y * length, array.data() + (y + 1) * (length + 6) + 3,
                               static_cast<std::size_t>(length)));
    ASSERT_EQ(got.back(), std::byte{0x55});
  }
}

/// Makes a nest of up to four loops over memory without overlap, whose innermost is mostly contiguous. Moves
/// `offset` behind it.
Nest any_nest(Generator& generator, Bytes element, Bytes& offset) {
  Nest nest{offset, {}};
  const Index longest =
      std::array<Index, 3>{20, 400, 5000}[static_cast<std::size_t>(generator.between(0, 2))];
  Loop loop{generator.between(1, longest), element * (generator.between(0, 3) > 0 ? 1 : 3)};
  for (Index outer = generator.between(0, 3); outer >= 0; --outer) {
    nest.loops.insert(nest.loops.begin(), loop);
    const Bytes room = (loop.count * loop.stride / element + generator.between(0, 9)) * element;
    loop = {generator.between(1, 5), room};
  }
  const Loop& slowest = nest.loops.front();
  offset += slowest.count * slowest.stride + generator.between(0, 70);
  return nest;
}

TEST(PackPastCaches, gives_the_bytes_of_pack_at_any_address_and_nothing_beside_them) {
  constexpr Bytes guard = 128;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Generator generator(seed);
    MemoryMap map;
    map.element = Bytes{1} << generator.between(0, 4);
    Bytes room = generator.between(0, 63);
    for (Index nests = generator.between(1, 3); nests > 0; --nests)
      map.nests.push_back(any_nest(generator, map.element, room));
    map.level_stride = generator.between(0, 100);
    const Index level = generator.between(0, 2);
    Buffer from(static_cast<std::size_t>(room + level * map.level_stride));
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 31 + i / 256);
    const Bytes bytes = map.count() * map.element, shift = guard + generator.between(0, 64);
    Buffer expected(static_cast<std::size_t>(bytes + shift + guard), std::byte{0xA5}), got = expected;
    pack(map, from.data(), level, expected.data() + shift);
    pack_past_caches(map, from.data(), level, got.data() + shift);
    ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.size()), 0)
        << "seed " << seed << ", " << bytes << " bytes of elements of " << map.element;
  }
}

TEST(MemoryMap, a_block_with_halo_is_one_nest_of_two_loops) {
  const auto layout = Layout::block({378, 468}, 4, {2, 2});
  Allocation allocation;
  allocation.halo = {2, 2};
  allocation.levels = 40;
  const auto map = memory_map(*layout, 0, ElementType::f32, allocation);
  ASSERT_EQ(map->nests.size(), 1U);
  const Nest& nest = map->nests[0];
  EXPECT_EQ(nest.offset, (2 * 238 + 2) * 4);
  ASSERT_EQ(nest.loops.size(), 2U);
  EXPECT_EQ(nest.loops[0].stride, 238 * 4);
  EXPECT_EQ(nest.loops[1].count, 234);
  EXPECT_EQ(map->level_stride, 193 * 238 * 4);
}

TEST(MemoryMap, an_array_without_halo_is_one_run) {
  const auto map = memory_map(*Layout::block({30, 20, 10}, 1), 0, ElementType::f64, {});
  ASSERT_EQ(map->nests.size(), 1U);
  ASSERT_EQ(map->nests[0].loops.size(), 1U);
  EXPECT_EQ(map->nests[0].loops[0].count, 6000);
}

TEST(MemoryMap, the_short_last_nproma_block_is_a_second_nest) {
  Allocation allocation;
  allocation.levels = 3;
  allocation.nproma = 16;
  const auto map = memory_map(*Layout::block({50}, 1), 0, ElementType::f64, allocation);
  ASSERT_EQ(map->nests.size(), 2U);
  EXPECT_EQ(map->nests[1].offset, 3 * (3 * 16 * 8));
  EXPECT_EQ(map->nests[1].loops[0].count, 2);
  EXPECT_EQ(map->level_stride, 16 * 8);
}

TEST(MemoryMap, a_rank_that_owns_nothing_has_no_nests) {
  const auto layout = Layout::block({2}, 3);
  const auto map = memory_map(*layout, 0, ElementType::f64, {});
  ASSERT_TRUE(map.is_ok());
  EXPECT_EQ(layout->count(0), 0);
  EXPECT_TRUE(map->nests.empty());
  pack(*map, nullptr, 0, nullptr);
}

std::string refusal(const Layout& layout, const Allocation& allocation, int rank = 0) {
  const Status status = memory_map(layout, rank, ElementType::f32, allocation).status();
  EXPECT_EQ(status.code(), Code::layout);
  return status.text();
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(MemoryMap, errors_tell_what_does_not_fit) {
  const auto block = Layout::block({10, 10}, 4);
  const auto cyclic = Layout::block_cyclic({10, 10}, 4, {2, 2});
  Allocation halo, wrong_halo, negative_halo, axis, levels, no_axis, nproma, nproma_halo, strides, wide;
  halo.halo = {1, 1};
  wrong_halo.halo = {1};
  negative_halo.halo = {0, -1};
  axis.level_axis = 3;
  levels.levels = 0;
  no_axis = {.halo = {}, .level_axis = -1, .levels = 2, .nproma = 0, .strides = {}};
  nproma.nproma = -8;
  nproma_halo = {.halo = {1, 0}, .level_axis = 0, .levels = 1, .nproma = 8, .strides = {}};
  strides.strides = {4, 4};
  wide.halo = {0, Index{1} << 62};
  EXPECT_SAYS(refusal(*cyclic, halo), "halo (1, 1) with a layout of kind block_cyclic");
  EXPECT_SAYS(refusal(*block, wrong_halo), "has 1 entries, expected 2");
  EXPECT_SAYS(refusal(*block, negative_halo), "halo -1 of dimension 1");
  EXPECT_SAYS(refusal(*block, axis), "level_axis is 3, expected 0 (slowest) to 2 (fastest)");
  EXPECT_SAYS(refusal(*block, levels), "0 levels");
  EXPECT_SAYS(refusal(*block, no_axis), "field of 2 levels");
  EXPECT_SAYS(refusal(*block, nproma), "nproma is -8");
  EXPECT_SAYS(refusal(*block, nproma_halo), "NPROMA");
  EXPECT_SAYS(refusal(*block, strides), "2 strides for an array of 3 dimensions (1 x 5 x 5");
  EXPECT_SAYS(refusal(*block, wide), "64-bit");
  EXPECT_SAYS(refusal(*block, {}, 4), "rank 4 is outside of the layout's 4 ranks");
  const Status type = memory_map(*block, 0, static_cast<ElementType>(77), {}).status();
  EXPECT_EQ(type.code(), Code::argument);
  EXPECT_SAYS(type.text(), "77");
}

TEST(MatchExtents, tells_arrays_with_halo_from_those_without) {
  const auto layout = Layout::block({378, 468}, 4, {2, 2});
  Allocation allocation;
  allocation.halo = {2, 3};
  allocation.levels = 40;
  const auto with = match_extents(*layout, 0, allocation, std::vector<Index>{40, 193, 240});
  ASSERT_TRUE(with.is_ok());
  EXPECT_EQ(with->halo, (std::vector<Index>{2, 3}));
  const auto without = match_extents(*layout, 0, allocation, std::vector<Index>{40, 189, 234});
  ASSERT_TRUE(without.is_ok());
  EXPECT_TRUE(without->halo.empty());
  allocation.level_axis = 1;
  EXPECT_TRUE(match_extents(*layout, 0, allocation, std::vector<Index>{193, 40, 240}).is_ok());
}

TEST(MatchExtents, a_field_of_one_level_needs_no_level_dimension) {
  const auto layout = Layout::block({6, 8}, 1);
  Allocation allocation;
  allocation.halo = {1, 1};
  const auto flat = match_extents(*layout, 0, allocation, std::vector<Index>{8, 10});
  ASSERT_TRUE(flat.is_ok()) << flat.status().text();
  EXPECT_EQ(flat->level_axis, -1);
  EXPECT_EQ(flat->halo, allocation.halo);
  EXPECT_TRUE(match_extents(*layout, 0, allocation, std::vector<Index>{1, 6, 8})->halo.empty());
}

TEST(MatchExtents, refuses_anything_else_and_tells_expected_and_got) {
  const auto layout = Layout::block({378, 468}, 4, {2, 2});
  Allocation allocation;
  allocation.halo = {2, 2};
  allocation.levels = 40;
  const Status status = match_extents(*layout, 3, allocation, std::vector<Index>{40, 193, 234}).status();
  EXPECT_EQ(status.code(), Code::layout);
  EXPECT_SAYS(status.text(),
              "array of rank 3 has extents 40 x 193 x 234, expected 40 x 193 x 238 or 40 x 189 x 234");
  EXPECT_FALSE(match_extents(*layout, 0, allocation, std::vector<Index>{193, 238}).is_ok())
      << "40 levels need a dimension";
}

TEST(MatchExtents, knows_nproma_blocks_and_lists) {
  Allocation nproma;
  nproma.nproma = 16;
  nproma.levels = 5;
  EXPECT_TRUE(match_extents(*Layout::block({50}, 1), 0, nproma, std::vector<Index>{4, 5, 16}).is_ok());
  EXPECT_FALSE(match_extents(*Layout::block({50}, 1), 0, nproma, std::vector<Index>{3, 5, 16}).is_ok());
  Allocation list;
  list.levels = 5;
  list.level_axis = 1;
  const auto indexed = Layout::indexed({4}, {{3, 0}, {1, 2}});
  EXPECT_TRUE(match_extents(*indexed, 1, list, std::vector<Index>{2, 5}).is_ok());
}

TEST(MatchExtents, a_rank_that_owns_nothing_may_have_any_array) {
  EXPECT_TRUE(match_extents(*Layout::block({2}, 3), 0, {}, std::vector<Index>{0, 7, 1}).is_ok());
}

}  // namespace
}  // namespace tailrace::layout::test
