// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/layout/stretch.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "arrays.hpp"

namespace tailrace::layout::test {
namespace {

using Buffer = std::vector<std::byte>;

/// The elements of a rank on one level, in packed order, in any allocation.
struct Piece {
  NaiveArray array;
  MemoryMap map;
  Index level = 0;
  Buffer packed;

  Piece(Generator& generator, const Layout& layout, int rank, ElementType type)
      : array(generator, layout, rank, type),
        map(*memory_map(layout, rank, type, array.allocation)),
        level(generator.between(0, array.allocation.levels - 1)),
        packed(array.owned.size() * static_cast<std::size_t>(array.element)) {
    for (std::size_t i = 0; i < array.owned.size(); ++i)
      fill_value(array.base() + array.offset(static_cast<Index>(i), level), array.element, array.owned[i], 0);
    pack(map, array.base(), level, packed.data());
  }
};

TEST(Stretches, together_are_the_record_from_packed_pieces_and_from_arrays_in_place) {
  int in_place = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    const ElementType type = any_type(generator);
    const Bytes element = size_of(type), numbers = element == 16 ? 8 : element;
    const Bytes scalar = generator.chance() ? numbers : 1;
    Buffer whole(static_cast<std::size_t>(layout.elements() * element)), record(whole.size());
    for (Index global = 0; global < layout.elements(); ++global)
      fill_value(whole.data() + global * element, element, global, 0);
    if (scalar > 1) {
      for (auto number = whole.begin(); number != whole.end(); number += scalar)
        std::reverse(number, number + scalar);
    }
    std::vector<Piece> pieces;
    for (int rank = 0; rank < layout.ranks(); ++rank) pieces.emplace_back(generator, layout, rank, type);
    for (Stretch stretch{0, 0, element, scalar}; stretch.first < layout.elements();
         stretch.first = stretch.end) {
      stretch.end = std::min(layout.elements(), stretch.first + generator.between(1, 40));
      Buffer out(static_cast<std::size_t>((stretch.end - stretch.first) * element) + 1, std::byte{0xAA});
      stretch.out = out.data();
      for (int rank = 0; rank < layout.ranks(); ++rank) {
        Piece& piece = pieces[static_cast<std::size_t>(rank)];
        auto runs = packed_runs(piece.map, piece.array.base(), piece.level);
        in_place += runs && !runs->loops.empty() ? 1 : 0;
        if (!runs) runs = PackedRuns{piece.packed.data(), {}, static_cast<Bytes>(piece.packed.size())};
        if (reach_of(layout.rows(rank)).meets(stretch)) place_stretch(layout.rows(rank), *runs, stretch);
      }
      ASSERT_EQ(out.back(), std::byte{0xAA}) << "wrote past the end";
      std::copy(out.begin(), out.end() - 1, record.begin() + stretch.first * element);
    }
    ASSERT_EQ(record, whole) << "seed " << seed << ": " << describe(layout) << " of " << name_of(type);
  }
  EXPECT_GT(in_place, 1000);
}

TEST(Stretches, of_long_rows_are_cheap_and_of_scattered_elements_are_not) {
  EXPECT_TRUE(come_in_stretches(Layout::block({1000, 1000}, 4)->rows(3)));
  EXPECT_TRUE(come_in_stretches(Layout::block({100, 300, 400}, 8)->rows(5)));
  EXPECT_TRUE(come_in_stretches({}));
  EXPECT_FALSE(come_in_stretches(Layout::block_cyclic({1000}, 4, {1})->rows(0)));
  EXPECT_FALSE(come_in_stretches(Layout::block({1000, 40}, 4, {1, 4})->rows(0)));
}

TEST(Stretches, reach_tells_where_a_rank_has_elements) {
  const std::vector<Rows> rows{{500, 20, 100, 3}, {100, 20, 20, 1}, {300, 20, 20, 1}};
  const Reach reach = reach_of(rows);
  EXPECT_EQ(reach.first, 100);
  EXPECT_EQ(reach.end, 720);
  EXPECT_TRUE(reach.meets({0, 101}));
  EXPECT_TRUE(reach.meets({719, 800}));
  EXPECT_FALSE(reach.meets({0, 100}));
  EXPECT_FALSE(reach.meets({720, 800}));
  EXPECT_FALSE(reach_of({}).meets({0, 100}));
}

/// Boxes of a large array lie in few parts each, those of a cyclic layout in all of them.
TEST(Stretches, entries_are_looked_at_where_their_rank_has_elements) {
  constexpr Index side = 8192, elements = side * side;
  const Layout blocks = *Layout::block({side, side}, 1024);
  const Layout cycles = *Layout::block_cyclic({elements}, 1024, {32});
  const Layout slabs = *Layout::block({1024, 256, 256}, 1024, {1, 32, 32});
  double in_blocks = 0, in_cycles = 0, in_slabs = 0;
  for (int rank = 0; rank < 1024; ++rank) {
    in_blocks += entries_looked_at(blocks.rows(rank), elements);
    in_cycles += entries_looked_at(cycles.rows(rank), elements);
    in_slabs += entries_looked_at(slabs.rows(rank), elements);
  }
  EXPECT_LT(in_blocks, 40) << "one band of 32 boxes, or two";
  EXPECT_DOUBLE_EQ(in_cycles, 1024);
  EXPECT_GT(in_slabs, 1024 * 1000.0) << "each rank has an entry for each of 1024 slabs";
}

}  // namespace
}  // namespace tailrace::layout::test
