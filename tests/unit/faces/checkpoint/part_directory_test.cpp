// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/part_directory.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "ground/base/text.hpp"

namespace tailrace::checkpoint {
namespace {

using layout::Layout;
using layout::Rows;
using Shares = std::vector<PartDirectory::Share>;

constexpr Index rows = 24, columns = 10;

std::vector<ItemInfo> two_items() {
  return {{"field", ElementType::f64, {rows, columns}}, {"line", ElementType::f32, {rows * columns}}};
}

/// Returns layouts in which the items may lie, among any number of ranks.
std::vector<Layout> layouts_of(int choice, int ranks, std::mt19937& dice) {
  switch (choice) {
    case 0:
      return {*Layout::block({rows, columns}, ranks), *Layout::block({rows * columns}, ranks)};
    case 1:
      return {*Layout::block_cyclic({rows, columns}, ranks, {5, 3}),
              *Layout::block_cyclic({rows * columns}, ranks, {7})};
    default: {
      std::vector<Index> all(static_cast<std::size_t>(rows * columns));
      std::iota(all.begin(), all.end(), Index{0});
      std::shuffle(all.begin(), all.end(), dice);
      std::vector<std::vector<Index>> lists(static_cast<std::size_t>(ranks));
      for (const Index each : all) lists[dice() % lists.size()].push_back(each);
      return {*Layout::indexed({rows, columns}, lists), *Layout::indexed({rows * columns}, lists)};
    }
  }
}

/// Returns the tables of a copy that `parts` ranks have saved. A table has no entry of an item of which its
/// rank owns nothing.
std::vector<Table> tables_of(const std::vector<Layout>& layouts, int parts) {
  std::vector<Table> tables;
  for (int part = 0; part < parts; ++part) {
    Table table;
    table.part = part;
    table.parts = parts;
    table.place = {part * 4096, 4096 + part};
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      std::vector<Rows> own = layouts[i].rows(part);
      if (own.empty()) continue;
      PartItem item;
      item.item = static_cast<std::int32_t>(i);
      item.map = static_cast<std::int32_t>(table.maps.size());
      table.items.push_back(item);
      table.maps.push_back(std::move(own));
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

/// The ranks that load a copy. Rank i has read the tables i, i + ranks, i + 2 * ranks, ...
class Loaders {
 public:
  explicit Loaders(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) ranks_.emplace_back(two_items(), rank, ranks);
  }
  /// Tells the watchers of all tables. Returns the first error that a watcher finds.
  Status check(const std::vector<Table>& tables) {
    for (std::size_t i = 0; i < tables.size(); ++i) {
      for (const auto& [watcher, told] : ranks_[i % ranks_.size()].tell({&tables[i], 1}))
        at(watcher).take(told);
    }
    Status first;
    for (PartDirectory& each : ranks_) {
      const Status found = each.check();
      if (first.is_ok()) first = found;
    }
    return first;
  }
  std::map<std::int32_t, PartPlace> find(int rank, const Shares& wanted) {
    std::map<std::int32_t, PartPlace> parts;
    for (const auto& [watcher, question] : at(rank).ask(wanted))
      PartDirectory::take_answer(at(watcher).answer(question), parts);
    return parts;
  }
  PartDirectory& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<PartDirectory> ranks_;
};

std::set<int> owners_of(const Shares& wanted, const std::vector<Layout>& layouts) {
  std::set<int> owners;
  for (const auto& share : wanted) {
    for (const Rows& each : share.rows) {
      for (Index row = 0; row < each.rows; ++row) {
        for (Index i = 0; i < each.count; ++i)
          owners.insert(
              layouts[static_cast<std::size_t>(share.item)].owner(each.global + row * each.stride + i));
      }
    }
  }
  return owners;
}

TEST(PartDirectory, a_rank_finds_the_parts_that_hold_what_it_wants_and_no_others) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 dice(seed);
    const int parts = static_cast<int>(dice() % 12 + 1);
    const int ranks = static_cast<int>(dice() % 12 + 1);
    const std::vector<Layout> saved = layouts_of(static_cast<int>(dice() % 3), parts, dice);
    const std::vector<Layout> loaded = layouts_of(static_cast<int>(dice() % 3), ranks, dice);
    Loaders loaders(ranks);
    ASSERT_TRUE(loaders.check(tables_of(saved, parts)).is_ok()) << "seed " << seed;
    for (int rank = 0; rank < ranks; ++rank) {
      const Shares wanted{{0, loaded[0].rows(rank)}, {1, loaded[1].rows(rank)}};
      std::set<int> found;
      for (const auto& [part, place] : loaders.find(rank, wanted)) {
        EXPECT_EQ(place.offset, part * 4096);
        EXPECT_EQ(place.bytes, 4096 + part);
        found.insert(part);
      }
      ASSERT_EQ(found, owners_of(wanted, saved)) << "seed " << seed << " rank " << rank;
    }
  }
}

TEST(PartDirectory, an_element_that_no_part_or_two_have_is_found) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::mt19937 dice(seed);
    const int parts = static_cast<int>(dice() % 5 + 2);
    std::vector<Table> tables = tables_of(layouts_of(static_cast<int>(dice() % 3), parts, dice), parts);
    Table& bad = tables[dice() % tables.size()];
    if (bad.maps.empty()) continue;
    std::vector<Rows>& map = bad.maps[dice() % bad.maps.size()];
    const bool twice = dice() % 2 == 0;
    Rows& one = map[dice() % map.size()];
    if (twice)
      map.push_back({one.global, 1, 0, 1});
    else if (--one.rows == 0)
      map.erase(map.begin() + (&one - map.data()));
    const Status status = Loaders(static_cast<int>(dice() % 9 + 1)).check(tables);
    EXPECT_EQ(status.code(), Code::corrupt) << "seed " << seed;
    EXPECT_NE(status.text().find(twice ? "is there twice" : "is in no part"), std::string::npos)
        << status.text();
  }
}

/// One part has three of every five elements, in a million rows. Each of 64 watchers still gets no more than
/// 200 bytes.
TEST(PartDirectory, tells_each_watcher_in_few_entries) {
  Table table;
  table.parts = 1;
  table.maps = {{{0, 3, 5, 1'000'000}}, {{3, 2, 5, 1'000'000}}};
  PartItem item;
  table.items = {item};
  table.items[0].item = 1;
  const PartDirectory directory({{"none", ElementType::f64, {0}}, {"all", ElementType::f64, {5'000'000}}}, 0,
                                64);
  const auto told = directory.tell({&table, 1});
  EXPECT_EQ(told.size(), 64U);
  for (const auto& [watcher, bytes] : told) EXPECT_LE(bytes.size(), 200U);
}

/// Every second of 1000 elements, three times: more rows than there are elements.
TEST(PartDirectory, a_damaged_copy_cannot_name_more_rows_than_there_are_elements) {
  Table table;
  table.maps = {{{0, 1, 2, 500}}};
  table.items = {PartItem{}};
  PartDirectory directory({{"field", ElementType::f64, {1000}}}, 0, 1);
  for (int part = 0; part < 3; ++part) {
    for (const auto& [watcher, told] : directory.tell({&table, 1})) directory.take(told);
  }
  const Status status = directory.check();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_EQ(status.text(), "an element of field is there twice");
}

TEST(PartDirectory, a_table_whose_items_together_are_longer_than_its_part_is_damaged) {
  Table table;
  table.block_bytes = 64;
  table.maps = {{{0, 8, 0, 1}}};
  PartItem item;
  item.bytes = 64;
  item.blocks = {{0, 64}};
  table.items = {item, item};
  EXPECT_EQ(decode_table(encode(table), 127).status().code(), Code::corrupt);
  EXPECT_TRUE(decode_table(encode(table), 128).is_ok());
}

}  // namespace
}  // namespace tailrace::checkpoint
