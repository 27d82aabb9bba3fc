// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "random_layouts.hpp"

namespace tailrace::layout::test {
namespace {

TEST(Partition, rows_name_every_element_once_and_owner_agrees) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(layout));
    std::vector<int> owners(static_cast<std::size_t>(layout.elements()), -1);
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const auto mine = expand(layout.rows(rank));
      ASSERT_EQ(static_cast<Index>(mine.size()), layout.count(rank));
      for (const Index global : mine) {
        ASSERT_GE(global, 0);
        ASSERT_LT(global, layout.elements());
        ASSERT_EQ(owners[static_cast<std::size_t>(global)], -1) << "element " << global << " is owned twice";
        owners[static_cast<std::size_t>(global)] = rank;
      }
    }
    for (Index global = 0; global < layout.elements(); ++global)
      ASSERT_EQ(layout.owner(global), owners[static_cast<std::size_t>(global)]) << global;
    ASSERT_EQ(std::count(owners.begin(), owners.end(), -1), 0);
    ASSERT_TRUE(layout.validate().is_ok()) << layout.validate().text();
  }
}

TEST(Partition, packed_order_is_c_order_but_for_tiles_and_indexed_layouts) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    if (layout.kind() == "indexed" || layout.is_tiled()) continue;
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const auto mine = expand(layout.rows(rank));
      ASSERT_TRUE(std::is_sorted(mine.begin(), mine.end())) << describe(layout);
    }
  }
}

TEST(Partition, packed_order_of_indexed_layouts_is_the_order_given) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Generator generator(seed);
    const auto shape = generator.shape();
    const auto lists = generator.index_lists(shape);
    const auto layout = Layout::indexed(shape, lists);
    ASSERT_TRUE(layout.is_ok());
    for (std::size_t rank = 0; rank < lists.size(); ++rank)
      ASSERT_EQ(expand(layout->rows(static_cast<int>(rank))), lists[rank]);
  }
}

TEST(Partition, the_box_of_a_rank_holds_what_its_rows_name) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    if (!layout.is_box()) continue;
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const Box box = layout.box(rank);
      for (const Index global : expand(layout.rows(rank))) {
        const auto at = index_tuple(global, layout.shape());
        for (std::size_t d = 0; d < at.size(); ++d) {
          ASSERT_GE(at[d], box.lower[d]);
          ASSERT_LT(at[d], box.upper[d]);
        }
      }
    }
  }
}

TEST(Partition, runs_of_one_entry_never_touch) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    for (int rank = 0; rank < layout.ranks(); ++rank)
      for (const Rows& rows : layout.rows(rank)) {
        ASSERT_GT(rows.count, 0);
        ASSERT_GT(rows.rows, 0);
        if (rows.rows > 1) ASSERT_GT(rows.stride, rows.count) << describe(layout);
      }
  }
}

TEST(Compactness, a_two_dimensional_block_is_one_entry) {
  const auto layout = Layout::block({378, 468}, 4, {2, 2});
  EXPECT_EQ(layout->rows(3), (std::vector<Rows>{{189 * 468 + 234, 234, 468, 189}}));
}

TEST(Compactness, whole_rows_are_one_run) {
  const auto layout = Layout::block({378, 468}, 2, {2, 1});
  const auto rows = layout->rows(1);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].global, 189 * 468);
  EXPECT_EQ(rows[0].count, 189 * 468);
  EXPECT_EQ(rows[0].rows, 1);
}

TEST(Compactness, a_three_dimensional_block_has_one_entry_for_each_plane) {
  EXPECT_EQ(Layout::block({40, 100, 100}, 4, {1, 2, 2})->rows(0).size(), 40U);
  EXPECT_EQ(Layout::block({40, 100, 100}, 4, {1, 4, 1})->rows(0).size(), 1U);
  EXPECT_EQ(Layout::block({40, 100, 100}, 4, {4, 1, 1})->rows(2).size(), 1U);
}

TEST(Compactness, a_cyclic_deal_is_one_entry_and_a_short_tail) {
  const auto layout = Layout::block_cyclic({103, 10}, 4, {5, 10}, {4, 1});
  EXPECT_EQ(layout->rows(1).front(), (Rows{50, 50, 200, 5}));
  EXPECT_EQ(layout->rows(1).size(), 1U);
  EXPECT_EQ(layout->rows(0).back(), (Rows{1000, 30, 30, 1}));
  EXPECT_EQ(layout->rows(0).size(), 2U);
}

TEST(Compactness, neighbouring_and_evenly_spaced_indices_are_merged) {
  const auto layout =
      Layout::indexed({20}, {{0, 1, 2, 10, 11, 12, 19}, {3, 5, 7, 9}, {18, 17}, {4, 6, 8, 13, 14, 15, 16}});
  EXPECT_EQ(layout->rows(0), (std::vector<Rows>{{0, 3, 10, 2}, {19, 1, 1, 1}}));
  EXPECT_EQ(layout->rows(1), (std::vector<Rows>{{3, 1, 2, 4}}));
  EXPECT_EQ(layout->rows(2).size(), 2U) << "order is kept, also backwards";
  EXPECT_EQ(layout->rows(3), (std::vector<Rows>{{4, 1, 2, 3}, {13, 4, 4, 1}}));
}

TEST(ManyRanks, any_rank_of_a_million_is_computed_without_a_table) {
  constexpr int ranks = 1'000'000;
  const auto block = Layout::block({40'000, 40'000}, ranks);
  const auto cyclic = Layout::block_cyclic({40'000, 40'000}, ranks, {7, 11});
  ASSERT_TRUE(block.is_ok() && cyclic.is_ok());
  Index total = 0, total_cyclic = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    total += block->count(rank);
    total_cyclic += cyclic->count(rank);
  }
  EXPECT_EQ(total, 1'600'000'000);
  EXPECT_EQ(total_cyclic, 1'600'000'000);
  for (const int rank : {0, 1, 999, 1000, 123'456, ranks - 1}) {
    for (const Layout* layout : {&*block, &*cyclic}) {
      const Rows first = layout->rows(rank).front();
      EXPECT_EQ(layout->owner(first.global), rank);
      EXPECT_EQ(layout->owner(first.global + first.count - 1), rank);
    }
  }
}

TEST(LargeArrays, cuts_are_exact_where_products_exceed_64_bits) {
  const Index huge = Index{1} << 61;
  const auto layout = Layout::block({huge}, 1'000'003);
  ASSERT_TRUE(layout.is_ok()) << layout.status().text();
  for (const int rank : {0, 1, 500'000, 1'000'001, 1'000'002}) {
    const Box box = layout->box(rank);
    EXPECT_EQ(layout->owner(box.lower[0]), rank);
    EXPECT_EQ(layout->owner(box.upper[0] - 1), rank);
  }
  EXPECT_EQ(layout->box(1'000'002).upper[0], huge);
  const auto cyclic = Layout::block_cyclic({huge}, 1'000'003, {huge - 1});
  EXPECT_EQ(cyclic->count(0), huge - 1);
  EXPECT_EQ(cyclic->count(1), 1);
  EXPECT_EQ(cyclic->count(2), 0);
}

TEST(Queries, a_rank_or_element_that_does_not_exist_has_nothing) {
  const auto layout = Layout::block({4, 4}, 2);
  for (const int rank : {-1, 2}) {
    EXPECT_EQ(layout->count(rank), 0);
    EXPECT_TRUE(layout->rows(rank).empty());
    EXPECT_EQ(layout->box(rank).upper, (std::vector<Index>{0, 0}));
  }
  EXPECT_EQ(layout->owner(-1), -1);
  EXPECT_EQ(layout->owner(16), -1);
}

TEST(Weighted, a_weight_of_zero_owns_nothing_and_the_cuts_cover_everything) {
  const auto layout = Layout::weighted({10}, {{0, 1, 0, 0, 3, 0}});
  ASSERT_TRUE(layout.is_ok());
  EXPECT_EQ(layout->ranks(), 6);
  const std::vector<Index> expected{0, 2, 0, 0, 8, 0};
  for (int rank = 0; rank < 6; ++rank)
    EXPECT_EQ(layout->count(rank), expected[static_cast<std::size_t>(rank)]);
  EXPECT_EQ(layout->owner(1), 1);
  EXPECT_EQ(layout->owner(2), 4);
}

TEST(Weighted, equal_weights_cut_as_a_block_layout_does) {
  for (int parts = 1; parts < 40; ++parts) {
    const std::vector<double> weights(static_cast<std::size_t>(parts), 0.1);
    const auto weighted = Layout::weighted({1009}, {weights});
    const auto block = Layout::block({1009}, parts);
    for (int rank = 0; rank < parts; ++rank)
      EXPECT_EQ(weighted->box(rank), block->box(rank)) << parts << " " << rank;
  }
}

TEST(Weighted, extreme_weights_stay_monotone) {
  const auto layout = Layout::weighted({1000}, {{1e308, 1e308, 1e-300, 5e-324, 1e308}});
  ASSERT_TRUE(layout.is_ok());
  Index next = 0;
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(layout->box(rank).lower[0], next);
    next = layout->box(rank).upper[0];
  }
  EXPECT_EQ(next, 1000);
}

TEST(Replicated, rank_0_writes_for_all) {
  const auto layout = Layout::replicated({3, 5}, 4);
  EXPECT_EQ(layout->count(0), 15);
  EXPECT_EQ(layout->count(3), 0);
  EXPECT_EQ(layout->owner(14), 0);
}

TEST(IndexedPart, answers_for_its_own_rank_only) {
  const auto layout = Layout::indexed_part({10}, 1, 3, {9, 2, 3}, {2});
  ASSERT_TRUE(layout.is_ok());
  EXPECT_EQ(layout->ranks(), 3);
  EXPECT_EQ(layout->count(1), 3);
  EXPECT_TRUE(layout->has_share(0));
  EXPECT_TRUE(layout->has_share(1));
  EXPECT_FALSE(layout->has_share(2));
  EXPECT_EQ(expand(layout->rows(1)), (std::vector<Index>{9, 2, 3}));
  EXPECT_TRUE(layout->rows(0).empty());
  EXPECT_EQ(layout->owner(2), 1);
  EXPECT_EQ(layout->owner(4), -1);
}

TEST(Callback, gives_each_rank_the_elements_that_the_callback_assigns_to_it) {
  const auto checkered = [](std::span<const Index> at) { return static_cast<int>((at[0] + at[1]) % 3); };
  std::vector<std::vector<Index>> lists;
  for (int rank = 0; rank < 3; ++rank) {
    const auto mine = indices_by_callback({7, 5}, 3, rank, checkered);
    ASSERT_TRUE(mine.is_ok());
    lists.push_back(*mine);
  }
  const auto layout = Layout::indexed({7, 5}, lists);
  EXPECT_TRUE(layout->validate().is_ok());
  EXPECT_EQ(layout->owner(6), (1 + 1) % 3);
}

TEST(Callback, an_owner_that_is_no_rank_is_named_with_its_element) {
  const auto wrong = [](std::span<const Index> at) { return at[0] == 2 && at[1] == 1 ? 9 : 0; };
  const Status status = indices_by_callback({4, 3}, 2, 0, wrong).status();
  EXPECT_EQ(status.code(), Code::layout);
  EXPECT_NE(status.text().find("rank 9"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("global element 7, index (2, 1)"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("0 .. 1"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace tailrace::layout::test
