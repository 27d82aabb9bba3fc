// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "random_layouts.hpp"

namespace tailrace::layout::test {
namespace {

/// Does what the ranks of a job do together: sends the requests, checks them, and returns the first verdict
/// in element order.
Status distributed_check(Index elements, const std::vector<std::vector<Index>>& lists) {
  const int ranks = static_cast<int>(lists.size());
  const Directory directory(elements, ranks);
  std::vector<std::map<int, std::vector<Index>>> received(lists.size());
  for (std::size_t r = 0; r < lists.size(); ++r) {
    auto requests = directory.requests(static_cast<int>(r), lists[r]);
    if (!requests.is_ok()) return requests.status();
    for (auto& [w, indices] : *requests)
      received[static_cast<std::size_t>(w)][static_cast<int>(r)] = std::move(indices);
  }
  for (std::size_t w = 0; w < lists.size(); ++w) {
    const Status status = directory.check(static_cast<int>(w), received[w]);
    if (!status.is_ok()) return status;
  }
  return {};
}

std::string first_words(const std::string& text) { return text.substr(0, text.find_first_of(", ", 15)); }

TEST(Directory, says_what_the_check_with_all_indices_says) {
  int broken = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Generator generator(seed);
    const auto shape = generator.shape();
    auto lists = generator.index_lists(shape);
    const Index elements = std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
    for (Index changes = generator.between(0, 2); changes > 0 && elements > 0; --changes) {
      auto& list =
          lists[static_cast<std::size_t>(generator.between(0, static_cast<Index>(lists.size()) - 1))];
      if (generator.chance() && !list.empty())
        list.pop_back();
      else
        list.push_back(generator.between(0, elements - 1));
    }
    const Status together = Layout::indexed(shape, lists)->validate();
    const Status apart = distributed_check(elements, lists);
    ASSERT_EQ(together.code(), apart.code()) << together.text() << apart.text();
    ASSERT_EQ(first_words(together.text()), first_words(apart.text())) << together.text() << apart.text();
    if (!apart.is_ok()) ++broken;
  }
  EXPECT_GT(broken, 500);
}

TEST(Directory, names_index_and_ranks) {
  const Status twice = distributed_check(6, {{0, 1, 2}, {3, 4, 5, 1}, {}});
  EXPECT_EQ(twice.code(), Code::layout);
  EXPECT_NE(twice.text().find("global element 1 is owned by both rank 0 and rank 1"), std::string::npos)
      << twice.text();
  const Status missing = distributed_check(6, {{0, 1, 2}, {3, 5}, {}});
  EXPECT_NE(missing.text().find("global element 4 is in no rank's list"), std::string::npos)
      << missing.text();
  const Status same = distributed_check(6, {{0, 1, 2, 2}, {3, 4, 5}});
  EXPECT_NE(same.text().find("named twice by rank 0"), std::string::npos) << same.text();
}

TEST(Directory, an_index_outside_of_the_array_is_named_with_its_rank) {
  for (const Index wrong : {Index{-1}, Index{6}}) {
    const std::vector<Index> indices{0, wrong};
    const Status status = Directory(6, 4).requests(3, indices).status();
    EXPECT_EQ(status.code(), Code::layout);
    EXPECT_NE(status.text().find("global index " + std::to_string(wrong) + ", entry 1 of rank 3"),
              std::string::npos)
        << status.text();
  }
}

TEST(Directory, an_index_that_another_rank_watches_is_refused) {
  const std::map<int, std::vector<Index>> received{{1, {5}}};
  const Status status = Directory(6, 2).check(0, received);
  EXPECT_NE(status.text().find("rank 1 asked rank 0 about global index 5, expected 0 .. 2"),
            std::string::npos)
      << status.text();
}

TEST(Directory, more_ranks_than_elements_leave_some_without_a_watch) {
  EXPECT_TRUE(distributed_check(3, {{2}, {}, {}, {0}, {}, {1}, {}}).is_ok());
  EXPECT_TRUE(distributed_check(0, {{}, {}}).is_ok());
}

}  // namespace
}  // namespace tailrace::layout::test
