// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "ground/layout/grid.hpp"
#include "random_layouts.hpp"

namespace tailrace::layout::test {
namespace {

std::vector<int> chosen(std::vector<Index> shape, int ranks, std::vector<int> grid = {}) {
  auto result = choose_grid(shape, ranks, std::move(grid));
  EXPECT_TRUE(result.is_ok()) << result.status().text();
  return result.is_ok() ? *result : std::vector<int>{};
}

TEST(Grid, blocks_are_as_square_as_the_divisors_allow) {
  EXPECT_EQ(chosen({100, 100}, 72), (std::vector<int>{9, 8}));
  EXPECT_EQ(chosen({100, 100}, 12), (std::vector<int>{4, 3}));
  EXPECT_EQ(chosen({64, 64, 64}, 64), (std::vector<int>{4, 4, 4}));
  EXPECT_EQ(chosen({1000}, 7), (std::vector<int>{7}));
}

TEST(Grid, longer_dimensions_get_more_processes) {
  EXPECT_EQ(chosen({100, 400}, 16), (std::vector<int>{2, 8}));
  EXPECT_EQ(chosen({4000, 10}, 8), (std::vector<int>{8, 1}));
  EXPECT_EQ(chosen({1, 50}, 6), (std::vector<int>{1, 6}));
}

TEST(Grid, a_tie_goes_to_the_slower_dimension) { EXPECT_EQ(chosen({50, 50}, 2), (std::vector<int>{2, 1})); }

TEST(Grid, given_entries_are_kept) {
  EXPECT_EQ(chosen({100, 100}, 12, {0, 2}), (std::vector<int>{6, 2}));
  EXPECT_EQ(chosen({100, 100}, 12, {1, 12}), (std::vector<int>{1, 12}));
  EXPECT_EQ(chosen({10, 100, 100}, 24, {0, 0, 6}), (std::vector<int>{1, 4, 6}));
}

TEST(Grid, ranks_lie_in_c_order) {
  const auto layout = Layout::block({4, 6}, 6, {2, 3});
  EXPECT_EQ(layout->box(1), (Box{{0, 2}, {2, 4}}));
  EXPECT_EQ(layout->box(3), (Box{{2, 0}, {4, 2}}));
}

TEST(Grid, no_other_grid_has_less_surface) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Generator generator(seed);
    const int ranks = static_cast<int>(generator.between(1, 200));
    // The extents are longer than there are ranks, so that only the surface decides.
    const std::vector<Index> shape{generator.between(200, 900), generator.between(200, 900),
                                   generator.between(200, 900)};
    const auto surface = [&](int a, int b, int c) {
      return static_cast<double>(a) / static_cast<double>(shape[0]) +
             static_cast<double>(b) / static_cast<double>(shape[1]) +
             static_cast<double>(c) / static_cast<double>(shape[2]);
    };
    const auto grid = chosen(shape, ranks);
    ASSERT_EQ(grid[0] * grid[1] * grid[2], ranks);
    for (int a = 1; a <= ranks; ++a)
      for (int b = 1; ranks % a == 0 && b <= ranks / a; ++b)
        if (ranks / a % b == 0)
          ASSERT_LE(surface(grid[0], grid[1], grid[2]), surface(a, b, ranks / a / b) * (1 + 1e-6)) << seed;
  }
}

TEST(Grid, highly_composite_rank_counts_in_seven_dimensions_are_quick) {
  const auto grid = chosen({100, 90, 80, 70, 60, 50, 40}, 735'134'400);
  Index ranks = 1;
  for (const int parts : grid) ranks *= parts;
  EXPECT_EQ(ranks, 735'134'400);
}

TEST(Grid, errors_tell_what_does_not_fit) {
  const auto text = [](int ranks, std::vector<int> grid) {
    return Layout::block({10, 10}, ranks, std::move(grid)).status().text();
  };
  EXPECT_NE(text(6, {4, 0}).find("4 x 0 does not fit 6 ranks"), std::string::npos) << text(6, {4, 0});
  EXPECT_NE(text(6, {2, 2}).find("2 x 2"), std::string::npos) << text(6, {2, 2});
  EXPECT_NE(text(8, {2, 2}).find("has 4 processes, expected 8"), std::string::npos) << text(8, {2, 2});
  EXPECT_NE(text(6, {6}).find("2 dimensions"), std::string::npos) << text(6, {6});
  EXPECT_NE(text(6, {-2, 3}).find("dimension 0, is negative"), std::string::npos) << text(6, {-2, 3});
  EXPECT_NE(text(0, {}).find("at least 1 rank, but got 0"), std::string::npos) << text(0, {});
}

}  // namespace
}  // namespace tailrace::layout::test
