// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Invariant 7 of docs/design/008-checkpoints.md for wrong maps of a copy: each element lies in exactly one
// part.
#include "faces/checkpoint/coverage.hpp"

#include <gtest/gtest.h>

#include <random>

#include "faces/checkpoint/ranks.hpp"
#include "ground/base/checksum.hpp"
#include "ground/storage/faulty.hpp"
#include "support/crash.hpp"

namespace tailrace::checkpoint {
namespace {

using layout::Layout;
using layout::Rows;

constexpr std::int64_t plenty = 1'000'000;

std::vector<Rows> all_rows(const Layout& layout) {
  std::vector<Rows> all;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const std::vector<Rows> mine = layout.rows(rank);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  return all;
}

/// Does what find_misplaced does, by counting each element.
std::optional<Misplaced> count_all(const std::vector<Rows>& groups, Index elements, bool gaps = false) {
  std::vector<int> times(static_cast<std::size_t>(elements), 0);
  for (const Rows& each : groups) {
    for (Index row = 0; row < each.rows; ++row) {
      for (Index i = 0; i < each.count; ++i)
        ++times[static_cast<std::size_t>(each.global + row * each.stride + i)];
    }
  }
  for (Index i = 0; i < elements; ++i) {
    const int found = times[static_cast<std::size_t>(i)];
    if (gaps ? found > 1 : found != 1) return Misplaced{i, found > 1};
  }
  return std::nullopt;
}

Index end_of(const Rows& each) {
  return each.global + (each.rows > 1 ? (each.rows - 1) * each.stride : 0) + each.count;
}

void expect_the_same(const std::vector<Rows>& groups, Index elements, bool gaps) {
  const std::optional<Misplaced> expected = count_all(groups, elements, gaps);
  std::int64_t runs = plenty;
  const std::optional<Misplaced> found = find_misplaced(groups, elements, runs, gaps);
  ASSERT_GT(runs, 0);
  ASSERT_EQ(found.has_value(), expected.has_value());
  if (!found) return;
  ASSERT_EQ(found->element, expected->element);
  ASSERT_EQ(found->twice, expected->twice);
}

void expect_the_same(const std::vector<Rows>& groups, Index elements) {
  expect_the_same(groups, elements, false);
  expect_the_same(groups, elements, true);
}

std::vector<Layout> some_layouts() {
  using Indices = std::vector<Index>;
  return {*Layout::block({12, 10}, 6),
          *Layout::block({5, 6, 7}, 8),
          *Layout::block({6, 40}, 4, {1, 4}),
          *Layout::weighted({9, 14}, {{1, 0, 2}, {3, 1}}),
          *Layout::block_cyclic({11, 13}, 4, {2, 3}),
          *Layout::block_cyclic({100}, 3, {7}),
          *Layout::boxes({6, 8}, {{{0, 0}, {6, 3}}, {{0, 3}, {2, 8}}, {{2, 3}, {6, 5}}, {{2, 5}, {6, 8}}}),
          *Layout::boxes({4, 6, 5}, {{{0, 0, 0}, {4, 3, 5}}, {{0, 3, 0}, {4, 6, 2}}, {{0, 3, 2}, {4, 6, 5}}}),
          *Layout::indexed({12}, {Indices{0, 2, 4, 6, 8, 10}, Indices{9, 5, 1}, Indices{3, 7, 11}}),
          *Layout::replicated({3, 4}, 3)};
}

/// The rows have several strides. A group of them is moved, widened, left out or there twice.
TEST(checkpoint_coverage, what_lies_twice_or_nowhere_is_found_wherever_it_is) {
  std::mt19937 random(7);
  for (const Layout& layout : some_layouts()) {
    SCOPED_TRACE(testing::Message() << layout.kind() << " of " << layout.elements());
    std::vector<Rows> groups = all_rows(layout);
    if (layout.kind() == "replicated") groups = layout.rows(0);
    ASSERT_FALSE(count_all(groups, layout.elements()));
    ASSERT_NO_FATAL_FAILURE(expect_the_same(groups, layout.elements()));
    for (std::size_t at = 0; at < groups.size(); ++at) {
      for (const Index shift : {Index{-3}, Index{-1}, Index{1}, Index{2}, Index{11}}) {
        for (Index Rows::*part : {&Rows::global, &Rows::count, &Rows::stride, &Rows::rows}) {
          std::vector<Rows> wrong = groups;
          Rows& victim = wrong[at];
          victim.*part += shift;
          const bool possible = victim.global >= 0 && victim.count > 0 && victim.rows > 0 &&
                                (victim.rows == 1 || victim.stride > victim.count) &&
                                end_of(victim) <= layout.elements();
          if (possible) ASSERT_NO_FATAL_FAILURE(expect_the_same(wrong, layout.elements()));
        }
      }
      std::vector<Rows> wrong = groups;
      wrong[at] = groups[random() % groups.size()];
      ASSERT_NO_FATAL_FAILURE(expect_the_same(wrong, layout.elements()));
      wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(at));
      ASSERT_NO_FATAL_FAILURE(expect_the_same(wrong, layout.elements()));
    }
  }
}

TEST(checkpoint_coverage, any_share_of_elements_is_right_and_none_of_it_can_be_another) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 3000; ++trial) {
    const Index elements = 1 + static_cast<Index>(random() % 60);
    const int ranks = 1 + static_cast<int>(random() % 4);
    const unsigned regular = random() % 3;
    std::vector<std::vector<Index>> indices(static_cast<std::size_t>(ranks));
    for (Index i = 0; i < elements; ++i)
      indices[regular > 0 ? static_cast<std::size_t>(i) / regular % indices.size()
                          : random() % indices.size()]
          .push_back(i);
    std::vector<Rows> groups = all_rows(*Layout::indexed({elements}, indices));
    ASSERT_NO_FATAL_FAILURE(expect_the_same(groups, elements)) << "trial " << trial;
    // The number of elements is right, but one of them is another's.
    std::vector<Rows> wrong = groups;
    Rows& victim = wrong[random() % wrong.size()];
    victim.global += victim.global > 0 && (random() % 2 == 0 || end_of(victim) == elements) ? -1 : 1;
    if (end_of(victim) > elements) continue;
    ASSERT_NO_FATAL_FAILURE(expect_the_same(wrong, elements)) << "trial " << trial << ", moved";
  }
}

/// Columns of a large array, a field of boxes with whole rows beside such without, and cyclic blocks: one
/// rank's rows are never expanded.
TEST(checkpoint_coverage, regular_layouts_cost_what_their_groups_do) {
  constexpr Index large = 1'000'000;
  constexpr Index few = 100;
  const Layout layouts[] = {
      *Layout::block({large, large}, 1000, {1, 1000}), *Layout::block({large, large}, 1024),
      *Layout::block({few, large, large}, 64), *Layout::block_cyclic({large}, 100, {7}),
      *Layout::boxes(
          {few, large, 8},
          {{{0, 0, 0}, {few, 10, 8}}, {{0, 10, 0}, {few, large, 3}}, {{0, 10, 3}, {few, large, 8}}})};
  for (const Layout& layout : layouts) {
    const std::vector<Rows> groups = all_rows(layout);
    const std::int64_t allowed = 4 * static_cast<std::int64_t>(groups.size()) + 4;
    std::int64_t runs = allowed;
    EXPECT_FALSE(find_misplaced(groups, layout.elements(), runs)) << layout.kind();
    EXPECT_GT(runs, 0) << layout.kind() << " of " << groups.size() << " groups";
  }
}

TEST(checkpoint_coverage, no_more_runs_are_followed_than_allowed) {
  // Every run begins in the stride of the other group: none can be left out.
  const Index far = Index{1} << 50;
  const std::vector<Rows> groups = {
      {0, 1, 2, far / 2}, {1, 1, 4, far / 4}, {3, 1, 4, far / 4 - 1}, {5, 1, 1, 1}};
  std::int64_t runs = 1;
  EXPECT_FALSE(find_misplaced(groups, far, runs));
  EXPECT_EQ(runs, 0);
  runs = 1000;
  const std::optional<Misplaced> wrong = find_misplaced(groups, far, runs);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->element, 5);
  EXPECT_TRUE(wrong->twice);
  runs = 100'000;
  EXPECT_FALSE(find_misplaced({groups.begin(), groups.end() - 1}, far - 1, runs));
  EXPECT_EQ(runs, 0);
}

/// Writes the table of a part as `change` leaves it, with the checksums that belong to it.
template <typename Change>
void change_table(storage::Target& target, const std::string& path, std::size_t part, const Change& change) {
  const Copy copy = *read_copy(target, path);
  const PartPlace& place = copy.directory.parts[part];
  const auto file = *target.open(path, storage::OpenMode::existing);
  ByteVector end(Footer::size);
  ASSERT_EQ(*file->read(end, place.offset + place.bytes - Footer::size), Footer::size);
  Footer footer = *decode_footer(end);
  Table table = copy.tables[part];
  change(table);
  const ByteVector bytes = encode(table);
  ASSERT_EQ(static_cast<Bytes>(bytes.size()), footer.table.bytes);
  footer.table.checksum = checksum(bytes);
  ASSERT_TRUE(file->write(bytes, place.offset + footer.table.offset).is_ok());
  ASSERT_TRUE(file->write(encode(footer), place.offset + place.bytes - Footer::size).is_ok());
}

TEST(checkpoint_coverage, a_copy_with_an_element_in_two_parts_and_one_in_none_is_not_whole) {
  const auto disk = storage::crash_target();
  Job job({disk, disk, disk, disk}, Mode::parallel);
  ASSERT_TRUE(job.save(1, false).is_ok());
  ASSERT_TRUE(read_copy(*disk, "run.0").is_ok());
  // The last cyclic block of the part begins one element earlier, in another part's.
  ASSERT_NO_FATAL_FAILURE(change_table(*disk, "run.0", 1, [](Table& table) {
    for (const PartItem& item : table.items) {
      if (item.item == 2) --table.maps[static_cast<std::size_t>(item.map)].back().global;
    }
  }));
  const Result<Copy> copy = read_copy(*disk, "run.0");
  ASSERT_EQ(copy.status().code(), Code::corrupt);
  EXPECT_NE(copy.status().text().find(" of item2 is there twice"), std::string::npos) << copy.status().text();
  EXPECT_EQ(load(*disk, 4), 0);
}

TEST(checkpoint_coverage, a_copy_of_one_file_is_opened_once) {
  const auto disk = storage::crash_target();
  Job job({disk, disk, disk, disk}, Mode::parallel);
  ASSERT_TRUE(job.save(1, false).is_ok());
  const auto counting =
      storage::faulty_target(disk, {0, storage::Fault::io_error, set_of(storage::Call::open)});
  ASSERT_TRUE(read_copy(*counting, "run.0").is_ok());
  EXPECT_EQ(counting->calls(), 1);
}

}  // namespace
}  // namespace tailrace::checkpoint
