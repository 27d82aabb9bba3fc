// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "arrays.hpp"

namespace tailrace::layout::test {
namespace {

/// Section number -> global element, by visiting every element of the array.
std::map<Index, Index> naive_numbers(const std::vector<Index>& shape, const Section& section) {
  std::map<Index, Index> globals;
  Index elements = 1;
  for (const Index extent : shape) elements *= extent;
  Index number = 0;
  for (Index global = 0; global < elements; ++global) {
    const auto at = index_tuple(global, shape);
    bool inside = true;
    for (std::size_t d = 0; d < at.size(); ++d)
      inside = inside && at[d] >= section.start[d] && at[d] < section.stop[d] &&
               (at[d] - section.start[d]) % section.stride[d] == 0;
    if (inside) globals[number++] = global;
  }
  return globals;
}

TEST(SectionLayout, owns_what_the_layout_owns_of_the_section) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    const Section section = any_section(generator, layout.shape());
    const auto part = section_layout(layout, section);
    ASSERT_TRUE(part.is_ok()) << part.status().text();
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(layout));
    const auto numbers = naive_numbers(layout.shape(), section);
    ASSERT_EQ(part->elements(), static_cast<Index>(numbers.size()));
    ASSERT_EQ(part->shape(), *section.shape());
    ASSERT_EQ(part->is_box(), layout.is_box());
    for (const auto& [number, global] : numbers) ASSERT_EQ(part->owner(number), layout.owner(global));
    ASSERT_EQ(part->has_unowned(),
              std::ranges::any_of(numbers, [&](const auto& each) { return layout.owner(each.second) < 0; }));
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      std::vector<Index> expected;  // in the layout's packed order
      std::map<Index, Index> number_of;
      for (const auto& [number, global] : numbers) number_of[global] = number;
      for (const Index global : expand(layout.rows(rank)))
        if (number_of.contains(global)) expected.push_back(number_of[global]);
      ASSERT_EQ(expand(part->rows(rank)), expected);
      ASSERT_EQ(part->count(rank), static_cast<Index>(expected.size()));
    }
    ASSERT_TRUE(part->validate().is_ok());
  }
}

TEST(SectionMap, packs_just_the_selected_elements) {
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    const int rank = static_cast<int>(generator.between(0, layout.ranks() - 1));
    const ElementType type = any_type(generator);
    NaiveArray array(generator, layout, rank, type);
    const Section section = any_section(generator, layout.shape());
    SCOPED_TRACE("seed " + std::to_string(seed) + ": rank " + std::to_string(rank) + " of " +
                 describe(layout));
    const auto map = section_map(layout, rank, type, array.allocation, section);
    ASSERT_TRUE(map.is_ok()) << map.status().text();
    const auto part = section_layout(layout, section);
    ASSERT_EQ(map->count(), part->count(rank));
    const Index level = generator.between(0, array.allocation.levels - 1);
    const auto numbers = naive_numbers(layout.shape(), section);
    std::vector<Index> selected;
    for (const Index number : expand(part->rows(rank))) selected.push_back(numbers.at(number));
    std::vector<std::byte> expected(selected.size() * static_cast<std::size_t>(array.element)),
        got(expected.size());
    for (std::size_t i = 0; i < selected.size(); ++i) {
      std::byte* value = expected.data() + i * static_cast<std::size_t>(array.element);
      fill_value(value, array.element, selected[i], level);
      const auto position =
          std::find(array.owned.begin(), array.owned.end(), selected[i]) - array.owned.begin();
      std::memcpy(array.base() + array.offset(position, level), value,
                  static_cast<std::size_t>(array.element));
    }
    pack(*map, array.base(), level, got.data());
    ASSERT_EQ(got, expected);
  }
}

TEST(SectionLayout, of_indices_is_what_each_rank_tells_of_its_own_part) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    const Section section = any_section(generator, layout.shape());
    const auto part = section_layout(layout, section);
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const auto numbers = section_indices(layout.shape(), section, expand(layout.rows(rank)));
      ASSERT_EQ(*numbers, expand(part->rows(rank))) << "seed " << seed << ", rank " << rank;
    }
  }
  EXPECT_EQ(section_indices({4}, {{0}, {5}, {1}}, {}).status().code(), Code::layout);
}

TEST(SectionLayout, beside_the_gaps_of_a_layout_has_none) {
  const std::vector<std::vector<Box>> tiles{{{{0, 4}, {2, 8}}, {{2, 0}, {4, 8}}}, {{{4, 0}, {6, 8}}}};
  const auto layout = Layout::tiles({6, 8}, tiles, true);
  ASSERT_TRUE(layout->has_unowned());
  EXPECT_FALSE(section_layout(*layout, {{2, 0}, {6, 8}, {1, 1}})->has_unowned());
  EXPECT_FALSE(section_layout(*layout, {{0, 4}, {6, 8}, {2, 2}})->has_unowned());
  const auto part = section_layout(*layout, {{1, 0}, {6, 8}, {2, 3}});
  EXPECT_TRUE(part->has_unowned());
  EXPECT_EQ(expand(part->unowned()), (std::vector<Index>{0, 1}));
}

TEST(SectionLayout, a_section_of_a_section_is_a_section) {
  const auto layout = Layout::block({20, 30}, 6);
  const auto once = section_layout(*layout, {{2, 3}, {18, 30}, {2, 3}});
  const auto twice = section_layout(*once, {{1, 0}, {8, 9}, {3, 2}});
  ASSERT_TRUE(twice.is_ok());
  EXPECT_EQ(twice->shape(), (std::vector<Index>{3, 5}));
  EXPECT_EQ(twice->owner(1 * 5 + 2), layout->owner((2 + 2 * 4) * 30 + 3 + 3 * 4));
}

TEST(SectionLayout, of_a_million_ranks_is_computed) {
  const auto layout = Layout::block({40'000, 40'000}, 1'000'000);
  const auto part = section_layout(*layout, {{0, 0}, {40'000, 40'000}, {1000, 1}});
  ASSERT_TRUE(part.is_ok());
  EXPECT_EQ(part->elements(), 1'600'000);
  EXPECT_EQ(part->count(0), 40);
  EXPECT_EQ(part->count(1000), 0);
}

TEST(SectionShape, huge_numbers_do_not_overflow) {
  const Index huge = std::numeric_limits<Index>::max();
  const Section all{{0}, {huge}, {1}}, few{{0}, {huge}, {huge}};
  EXPECT_EQ(*all.shape(), (std::vector<Index>{huge}));
  EXPECT_EQ(*few.shape(), (std::vector<Index>{1}));
  const auto layout = Layout::block({10}, 3);
  const auto part = section_layout(*layout, {{4}, {10}, {huge}});
  ASSERT_TRUE(part.is_ok());
  EXPECT_EQ(part->owner(0), layout->owner(4));
  EXPECT_EQ(section_map(*layout, layout->owner(4), ElementType::f64, {}, {{4}, {10}, {huge}})->count(), 1);
}

TEST(SectionErrors, name_the_bad_dimension) {
  const auto layout = Layout::block({10, 10}, 2);
  const auto text = [&](const Section& section) {
    const Status status = section_layout(*layout, section).status();
    EXPECT_EQ(status.code(), Code::layout);
    EXPECT_EQ(section_map(*layout, 0, ElementType::f32, {}, section).status().text(), status.text());
    return status.text();
  };
  EXPECT_NE(text({{0, 0}, {10, 11}, {1, 1}}).find("stops at 11 in dimension 1"), std::string::npos);
  EXPECT_NE(text({{0, 0}, {10, 10}, {1, 0}}).find("0:10:0 of dimension 1 has a stride below 1"),
            std::string::npos);
  EXPECT_NE(text({{0, 5}, {10, 4}, {1, 1}}).find("5:4:1 of dimension 1 stops before"), std::string::npos);
  EXPECT_NE(text({{-1, 0}, {10, 4}, {1, 1}}).find("-1:10:1 of dimension 0 starts below 0"),
            std::string::npos);
  EXPECT_NE(text({{0}, {10}, {1}}).find("1 dimension "), std::string::npos);
  EXPECT_NE(text({{0, 0}, {10}, {1}}).find("2 starts, 1 stop and"), std::string::npos);
}

}  // namespace
}  // namespace tailrace::layout::test
