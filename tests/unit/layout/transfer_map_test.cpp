// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A rank's array goes into the file's order of elements, and back, through stripes of any size: the bytes are
// the same as one element at a time.
#include "layout/transfer_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "arrays.hpp"

namespace tailrace::layout {
namespace {

using namespace tailrace::layout::test;

/// The expected bytes of one rank's array in the file, and which of the file's bytes are the rank's.
struct Expected {
  std::vector<std::byte> file;
  std::vector<char> own;
};

Expected expected_of(const NaiveArray& array, Index elements) {
  Expected expected;
  expected.file.assign(static_cast<std::size_t>(elements * array.element), std::byte{0});
  expected.own.assign(expected.file.size(), 0);
  for (const Index global : array.owned) {
    fill_value(expected.file.data() + global * array.element, array.element, global, 0);
    std::fill_n(expected.own.begin() + global * array.element, array.element, 1);
  }
  return expected;
}

void fill(NaiveArray& array) {
  for (std::size_t i = 0; i < array.owned.size(); ++i)
    fill_value(array.base() + array.offset(static_cast<Index>(i), 0), array.element, array.owned[i], 0);
}

void check_case(unsigned seed,
                const std::function<void(Generator&, NaiveArray&, const TransferMap&, Bytes)>& check) {
  Generator generator(seed);
  const Layout layout = generator.any();
  const ElementType type = any_type(generator);
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    SCOPED_TRACE(describe(layout) + ", seed " + std::to_string(seed) + ", rank " + std::to_string(rank));
    NaiveArray array(generator, layout, rank, type);
    const auto memory = memory_map(layout, rank, type, array.allocation);
    ASSERT_TRUE(memory.is_ok()) << memory.status().text();
    const std::vector<Rows> rows = layout.rows(rank);
    check(generator, array, TransferMap::make(rows, *memory), layout.elements() * array.element);
  }
}

TEST(TransferMap, GathersTheFilesBytesThroughStripes) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    check_case(seed, [](Generator& generator, NaiveArray& array, const TransferMap& map, Bytes bytes) {
      fill(array);
      const Expected expected = expected_of(array, bytes / array.element);
      std::vector<std::byte> file(expected.file.size(), std::byte{0});
      for (Bytes at = 0; at < bytes;) {
        const Bytes end = std::min(bytes, at + generator.between(1, 97));  // also through an element
        std::vector<std::byte> stripe(static_cast<std::size_t>(end - at), std::byte{0});
        map.gather(array.base(), at, end, stripe.data());
        std::copy(stripe.begin(), stripe.end(), file.begin() + at);
        const auto own = std::count(expected.own.begin() + at, expected.own.begin() + end, 1);
        EXPECT_EQ(map.bytes_in(at, end), own);
        at = end;
      }
      EXPECT_EQ(file, expected.file);
    });
  }
}

TEST(TransferMap, HasTheFilesBytesInPieces) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    check_case(seed, [](Generator&, NaiveArray& array, const TransferMap& map, Bytes bytes) {
      fill(array);
      std::vector<std::byte> file(static_cast<std::size_t>(bytes), std::byte{0});
      Index pieces = 0;
      map.for_each_piece([&](Bytes at, Bytes memory, Bytes length) {
        std::copy_n(array.base() + memory, length, file.begin() + at);
        ++pieces;
      });
      EXPECT_EQ(file, expected_of(array, bytes / array.element).file);
      EXPECT_EQ(map.pieces(), pieces);
    });
  }
}

TEST(TransferMap, ScattersNothingBesideTheRanksElements) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    check_case(seed, [](Generator& generator, NaiveArray& array, const TransferMap& map, Bytes bytes) {
      const Expected expected = expected_of(array, bytes / array.element);
      NaiveArray wanted = array;
      fill(wanted);
      for (Bytes at = 0; at < bytes;) {
        const Bytes end = std::min(bytes, at + generator.between(1, 97));
        map.scatter(array.base(), at, end, expected.file.data() + at);
        at = end;
      }
      EXPECT_EQ(array.buffer, wanted.buffer);
    });
  }
}

TEST(TransferMap, BothEndsOfAMessageAgreeAboutItsOrder) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    check_case(seed, [](Generator& generator, NaiveArray& array, const TransferMap&, Bytes bytes) {
      const std::vector<Rows> rows = array.layout.rows(array.rank);
      const TransferMap map = TransferMap::of_rows(rows, array.element);
      const Expected expected = expected_of(array, bytes / array.element);
      std::vector<std::byte> file(expected.file.size(), std::byte{0});
      for (Bytes at = 0; at < bytes;) {
        const Bytes end = std::min(bytes, at + generator.between(1, 97));
        std::vector<std::byte> piece(static_cast<std::size_t>(map.bytes_in(at, end)));
        map.take_from(expected.file.data() + at, at, end, piece.data());
        map.put_into(file.data() + at, at, end, piece.data());
        at = end;
      }
      EXPECT_EQ(file, expected.file);
    });
  }
}

TEST(TransferMap, KnowsItsRange) {
  const Layout layout = *Layout::block({6, 6}, 4);
  const auto memory = memory_map(layout, 3, ElementType::f64, {{}, -1, 1, 0, {}});
  ASSERT_TRUE(memory.is_ok());
  const std::vector<Rows> rows = layout.rows(3);
  const TransferMap map = TransferMap::make(rows, *memory);
  EXPECT_EQ(map.begin(), (3 * 6 + 3) * 8);
  EXPECT_EQ(map.end(), 36 * 8);
  EXPECT_TRUE(TransferMap().is_empty());
}

}  // namespace
}  // namespace tailrace::layout
