// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "layout/part.hpp"

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

TEST(Parts, together_are_the_record_from_packed_pieces_and_from_arrays_in_place) {
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
    for (Part part{0, 0, element, scalar}; part.first < layout.elements(); part.first = part.end) {
      part.end = std::min(layout.elements(), part.first + generator.between(1, 40));
      Buffer out(static_cast<std::size_t>((part.end - part.first) * element) + 1, std::byte{0xAA});
      part.out = out.data();
      for (int rank = 0; rank < layout.ranks(); ++rank) {
        Piece& piece = pieces[static_cast<std::size_t>(rank)];
        auto runs = packed_runs(piece.map, piece.array.base(), piece.level);
        in_place += runs && !runs->loops.empty() ? 1 : 0;
        if (!runs) runs = PackedRuns{piece.packed.data(), {}, static_cast<Bytes>(piece.packed.size())};
        place_part(layout.rows(rank), *runs, part);
      }
      ASSERT_EQ(out.back(), std::byte{0xAA}) << "wrote past the end";
      std::copy(out.begin(), out.end() - 1, record.begin() + part.first * element);
    }
    ASSERT_EQ(record, whole) << "seed " << seed << ": " << describe(layout) << " of " << name_of(type);
  }
  EXPECT_GT(in_place, 1000);
}

TEST(Parts, of_long_rows_are_cheap_and_of_scattered_elements_are_not) {
  EXPECT_TRUE(come_in_parts(Layout::block({1000, 1000}, 4)->rows(3)));
  EXPECT_TRUE(come_in_parts(Layout::block({100, 300, 400}, 8)->rows(5)));
  EXPECT_TRUE(come_in_parts({}));
  EXPECT_FALSE(come_in_parts(Layout::block_cyclic({1000}, 4, {1})->rows(0)));
  EXPECT_FALSE(come_in_parts(Layout::block({1000, 40}, 4, {1, 4})->rows(0)));
}

}  // namespace
}  // namespace tailrace::layout::test
