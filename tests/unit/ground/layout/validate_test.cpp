// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "ground/base/shape_text.hpp"
#include "random_layouts.hpp"

namespace tailrace::layout::test {
namespace {

void expect_error(const Status& status, std::initializer_list<const char*> parts) {
  EXPECT_EQ(status.code(), Code::layout) << status.text();
  for (const char* part : parts)
    EXPECT_NE(status.text().find(part), std::string::npos) << part << " in: " << status.text();
}

/// Counts how often each element is owned, one by one.
std::vector<int> holders_by_counting(const Layout& layout) {
  std::vector<int> count(static_cast<std::size_t>(layout.elements()), 0);
  for (int rank = 0; rank < layout.ranks(); ++rank)
    for (const Index global : expand(layout.rows(rank))) ++count[static_cast<std::size_t>(global)];
  return count;
}

/// Expects validate() to report the first element that is not owned once, found by the naive count.
void expect_first_offence(const Layout& layout) {
  const auto count = holders_by_counting(layout);
  const auto first = std::find_if(count.begin(), count.end(), [](int n) { return n != 1; });
  const Status status = layout.validate();
  if (first == count.end()) {
    ASSERT_TRUE(status.is_ok()) << status.text();
    return;
  }
  ASSERT_EQ(status.code(), Code::layout);
  const auto element = "global element " + std::to_string(first - count.begin()) + ", ";
  ASSERT_EQ(status.text().find(element), 0U) << status.text() << " expected " << element;
  ASSERT_EQ(status.text().find("is in no rank's") != std::string::npos, *first == 0) << status.text();
}

TEST(ValidateBoxes, finds_the_first_gap_or_overlap_of_random_boxes) {
  int valid = 0, broken = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Generator generator(seed);
    const auto shape = generator.shape();
    const Layout whole = generator.boxes(shape);
    std::vector<Box> boxes;
    for (int rank = 0; rank < whole.ranks(); ++rank) boxes.push_back(whole.box(rank));
    for (Index changes = generator.between(0, 2); changes > 0; --changes) {
      Box& box = boxes[static_cast<std::size_t>(generator.between(0, whole.ranks() - 1))];
      const auto d = static_cast<std::size_t>(generator.between(0, static_cast<Index>(shape.size()) - 1));
      if (generator.chance())
        box.lower[d] = generator.between(0, box.upper[d]);
      else
        box.upper[d] = generator.between(box.lower[d], shape[d]);
    }
    const auto layout = Layout::boxes(shape, boxes);
    ASSERT_TRUE(layout.is_ok());
    SCOPED_TRACE(seed);
    expect_first_offence(*layout);
    (layout->validate().is_ok() ? valid : broken)++;
  }
  EXPECT_GT(valid, 500);
  EXPECT_GT(broken, 500);
}

TEST(ValidateBoxes, names_index_and_ranks) {
  const auto overlap = Layout::boxes({4, 6}, {{{0, 0}, {2, 6}}, {{2, 0}, {4, 3}}, {{1, 3}, {4, 6}}});
  expect_error(overlap->validate(),
               {"global element 9, index (1, 3) of an array of 4 x 6", "both rank 0 and rank 2"});
  const auto gap = Layout::boxes({4, 6}, {{{0, 0}, {2, 6}}, {{2, 0}, {4, 3}}, {{3, 3}, {4, 6}}});
  expect_error(gap->validate(), {"global element 15, index (2, 3)", "in no rank's box (ranks 0 to 2)"});
}

TEST(ValidateBoxes, needs_no_memory_for_each_element) {
  const Index huge = Index{1} << 30;
  const auto whole = Layout::boxes({huge, huge}, {{{0, 0}, {huge, 5}}, {{0, 5}, {huge, huge}}});
  EXPECT_TRUE(whole->validate().is_ok());
  const auto gap = Layout::boxes({huge, huge}, {{{0, 0}, {huge, 5}}, {{0, 5}, {huge - 1, huge}}});
  expect_error(gap->validate(), {"index (1073741823, 5)"});
}

TEST(ValidateBoxes, hundred_thousand_boxes_are_quick) {
  const auto blocks = Layout::block({4000, 4000}, 100'000);
  std::vector<Box> boxes;
  for (int rank = 0; rank < blocks->ranks(); ++rank) boxes.push_back(blocks->box(rank));
  EXPECT_TRUE(Layout::boxes({4000, 4000}, boxes)->validate().is_ok());
  const Box hole = boxes[77'777];
  boxes[77'777].upper = boxes[77'777].lower;
  const auto layout = Layout::boxes({4000, 4000}, boxes);
  const auto index = "index (" + std::to_string(hole.lower[0]) + ", " + std::to_string(hole.lower[1]) + ")";
  expect_error(layout->validate(), {index.c_str()});
}

TEST(ValidateBoxes, bad_bounds_are_refused_with_rank_and_dimension) {
  expect_error(Layout::boxes({4, 6}, {{{0, 0}, {4, 6}}, {{0, 0}, {0, 7}}}).status(),
               {"box of rank 1", "index 6 in dimension 1", "0 .. 5"});
  expect_error(Layout::boxes({4, 6}, {{{-1, 0}, {4, 6}}}).status(),
               {"box of rank 0", "index -1 in dimension 0"});
  expect_error(Layout::boxes({4, 6}, {{{3, 0}, {2, 6}}}).status(), {"rank 0", "[3, 2)", "dimension 0"});
  expect_error(Layout::boxes({4, 6}, {{{0}, {4}}}).status(), {"rank 0", "expected 2"});
  expect_error(Layout::boxes({4, 6}, {}).status(), {"one for each rank"});
}

TEST(ValidateIndexed, finds_the_first_gap_or_overlap_of_random_lists) {
  int broken = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Generator generator(seed);
    const auto shape = generator.shape();
    auto lists = generator.index_lists(shape);
    const Index elements = std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
    for (Index changes = generator.between(0, 3); changes > 0 && elements > 0; --changes) {
      auto& list =
          lists[static_cast<std::size_t>(generator.between(0, static_cast<Index>(lists.size()) - 1))];
      if (generator.chance() && !list.empty())
        list.erase(list.begin() + generator.between(0, static_cast<Index>(list.size()) - 1));
      else
        list.push_back(generator.between(0, elements - 1));
    }
    const auto layout = Layout::indexed(shape, lists);
    ASSERT_TRUE(layout.is_ok());
    SCOPED_TRACE(seed);
    expect_first_offence(*layout);
    if (!layout->validate().is_ok()) ++broken;
  }
  EXPECT_GT(broken, 1000);
}

TEST(ValidateIndexed, names_index_and_ranks) {
  expect_error(Layout::indexed({2, 3}, {{0, 1, 2}, {3, 4, 1}, {5}})->validate(),
               {"global element 1, index (0, 1) of an array of 2 x 3", "both rank 0 and rank 1"});
  expect_error(Layout::indexed({2, 3}, {{0, 1, 2}, {3, 3, 4, 5}})->validate(),
               {"global element 3", "named twice by rank 1"});
  expect_error(Layout::indexed({2, 3}, {{0, 1, 2}, {3, 5}})->validate(),
               {"global element 4, index (1, 1)", "in no rank's list", "ranks 0 to 1"});
  expect_error(Layout::indexed({2, 3}, {{0, 1, 2}, {3, 6}}).status(),
               {"global index 6", "entry 1 of rank 1", "0 .. 5"});
  expect_error(Layout::indexed({2, 3}, {{-1}}).status(), {"global index -1", "rank 0"});
}

TEST(ValidateIndexed, a_few_indices_of_a_huge_array_need_little_memory) {
  const auto layout = Layout::indexed({Index{1} << 60}, {{0, 1}, {2, 5}});
  expect_error(layout->validate(), {"global element 3,"});
  EXPECT_EQ(layout->owner(5), 1);
  EXPECT_EQ(layout->owner(6), -1);
}

TEST(BadInput, shapes_are_checked) {
  expect_error(Layout::block({}, 1).status(), {"1 to 7 dimensions", "0 extents"});
  expect_error(Layout::block(std::vector<Index>(8, 2), 1).status(), {"8 extents"});
  expect_error(Layout::block({4, -1}, 1).status(), {"extent -1 of dimension 1"});
  expect_error(Layout::block({Index{1} << 32, Index{1} << 31}, 1).status(),
               {"4294967296 x 2147483648", "64-bit"});
  expect_error(Layout::block({Index{1} << 32, 0, Index{1} << 31}, 1).status(), {"64-bit"});
  EXPECT_TRUE(Layout::block({4, 0, 3}, 5)->validate().is_ok());
}

TEST(BadInput, weights_are_checked) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  expect_error(Layout::weighted({4}, {{1, -0.5}}).status(), {"weight 1 of dimension 0 is -0.5"});
  expect_error(Layout::weighted({4, 4}, {{1}, {1, nan}}).status(), {"weight 1 of dimension 1"});
  expect_error(Layout::weighted({4}, {{infinite}}).status(), {"weight 0 of dimension 0"});
  tell_in(Order::fortran);
  expect_error(Layout::weighted({4, 4}, {{1}, {1, nan}}).status(), {"weight 2 of dimension 1"});
  tell_in(Order::c);
  expect_error(Layout::weighted({4}, {{0, 0}}).status(), {"all 2 weights of dimension 0 are 0"});
  expect_error(Layout::weighted({4}, {{}}).status(), {"dimension 0 has no weights"});
  expect_error(Layout::weighted({4, 4}, {{1}}).status(), {"2 dimensions"});
  expect_error(
      Layout::weighted({4, 4}, {std::vector<double>(70'000, 1), std::vector<double>(70'000, 1)}).status(),
      {"more than 2^31 - 1 ranks"});
}

TEST(BadInput, block_sizes_counts_and_ranks_are_checked) {
  expect_error(Layout::block_cyclic({4, 4}, 2, {2}).status(), {"2 dimensions", "1 were given"});
  expect_error(Layout::block_cyclic({4, 4}, 2, {2, 0}).status(), {"block size 0 of dimension 1"});
  expect_error(Layout::replicated({4}, 0).status(), {"at least 1 rank"});
  expect_error(Layout::indexed_part({4}, 2, 2, {}).status(), {"rank 2", "2 ranks"});
  expect_error(Layout::indexed_part({4}, 0, 2, {4}).status(), {"global index 4", "rank 0"});
  expect_error(Layout::indexed_part({4}, 0, 3, {}, {2, 1}).status(), {"not in their order"});
}

}  // namespace
}  // namespace tailrace::layout::test
