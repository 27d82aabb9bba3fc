// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "checkpoint/format.hpp"

namespace tailrace::checkpoint {

/// One rank's share of the knowledge of which parts of a copy have which elements. Each element of an item is
/// watched by one rank: the elements are cut into ranges of equal length, one for each rank. Who has read the
/// table of a part tells the watchers of its elements. Who wants elements asks their watchers. So no rank
/// knows more than its share, and none walks the rows of all parts. Local: sending is the caller's.
class PartDirectory {
 public:
  /// What a rank wants of an item, or a part has of it.
  struct Share {
    std::int32_t item = 0;
    std::vector<layout::Rows> rows;
  };
  /// Messages to send, by their destination.
  using Messages = std::map<int, ByteVector>;

  PartDirectory(std::vector<ItemInfo> items, int rank, int ranks);

  /// What the watchers have to know of these parts.
  [[nodiscard]] Messages tell(std::span<const Table> tables) const;
  /// At a watcher: what a rank tells. All of it has to be taken before anything else is called.
  void take(std::span<const std::byte> told);
  /// Every element watched here is in one part, once; otherwise Code::corrupt.
  Status check();

  /// What to ask the watchers of these elements.
  [[nodiscard]] Messages ask(std::span<const Share> wanted) const;
  /// At a watcher, after check(): the answer to a rank that asks.
  [[nodiscard]] ByteVector answer(std::span<const std::byte> question) const;
  /// Adds the parts of an answer, and where they lie, to `parts`.
  static void take_answer(std::span<const std::byte> answer, std::map<std::int32_t, PartPlace>& parts);

 private:
  /// What one part has of items that lie alike.
  struct Told {
    std::int32_t part = 0;
    PartPlace place;
    std::vector<std::int32_t> items;
    std::vector<layout::Rows> rows;
  };
  struct Run {
    Index begin = 0;
    Index end = 0;
    std::size_t told = 0;
  };
  [[nodiscard]] Index elements_of(std::int32_t item) const {
    return items_[static_cast<std::size_t>(item)].elements();
  }
  [[nodiscard]] bool are_items(const std::vector<std::int32_t>& items) const;
  [[nodiscard]] std::vector<Run> runs_of(const std::vector<std::size_t>& told) const;
  [[nodiscard]] Status check_runs(const ItemInfo& item, const std::vector<Run>& runs) const;

  const std::vector<ItemInfo> items_;
  const int rank_;
  const int ranks_;
  std::vector<Told> told_;
  std::vector<std::vector<Run>> runs_;  // of the elements watched here, in their order; one for items alike
  std::vector<std::size_t> runs_of_item_;
};

}  // namespace tailrace::checkpoint
