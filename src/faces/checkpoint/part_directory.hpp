// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "faces/checkpoint/format.hpp"

namespace tailrace::checkpoint {

/// One rank's share of the directory that tells which parts of a copy have which elements. The elements of
/// each item are cut into ranges of equal length, one for each rank: the rank is the watcher of the elements
/// in its range. A rank that has read the table of a part tells the watchers of its elements. A rank that
/// wants elements asks their watchers. So no rank knows more than its share, and no rank walks the rows of
/// all parts. All functions are local: the caller sends the messages.
class PartDirectory {
 public:
  /// Elements of one item: those that a rank wants, or those that a part has.
  struct Share {
    std::int32_t item = 0;
    std::vector<layout::Rows> rows;
  };
  /// Messages to send, by their destination.
  using Messages = std::map<int, ByteVector>;

  PartDirectory(std::vector<ItemInfo> items, int rank, int ranks);

  /// Returns the messages that tell the watchers which elements these parts have.
  [[nodiscard]] Messages tell(std::span<const Table> tables) const;
  /// Takes a message of tell(), at the watcher. Call check() and answer() only after all messages were taken.
  void take(std::span<const std::byte> told);
  /// Returns OK if every element that this rank watches is in exactly one part, once, and Code::corrupt
  /// otherwise.
  Status check();

  /// Returns the questions to send to the watchers of these elements.
  [[nodiscard]] Messages ask(std::span<const Share> wanted) const;
  /// Returns the answer to a question of ask(), at the watcher. Call it after check().
  [[nodiscard]] ByteVector answer(std::span<const std::byte> question) const;
  /// Adds the parts that an answer names, with their places, to `parts`.
  static void take_answer(std::span<const std::byte> answer, std::map<std::int32_t, PartPlace>& parts);

 private:
  /// The elements that one part has of items that lie alike.
  struct Told {
    std::int32_t part = 0;
    PartPlace place;
    std::vector<std::int32_t> items;
    std::vector<layout::Rows> rows;
  };
  /// Elements that follow one another, and the entry of told_ that has them.
  struct Run {
    Index begin = 0;
    Index end = 0;
    std::size_t told = 0;
  };
  [[nodiscard]] Index elements_of(std::int32_t item) const {
    return items_[static_cast<std::size_t>(item)].elements();
  }
  [[nodiscard]] bool are_items(const std::vector<std::int32_t>& items) const;
  [[nodiscard]] Status check_rows(const ItemInfo& item, const std::vector<std::size_t>& told) const;
  [[nodiscard]] std::vector<Run> runs_of(const std::vector<std::size_t>& told) const;
  [[nodiscard]] Status check_runs(const ItemInfo& item, const std::vector<Run>& runs) const;

  const std::vector<ItemInfo> items_;
  const int rank_;
  const int ranks_;
  std::vector<Told> told_;
  std::vector<std::vector<Run>> runs_;  // elements watched here, sorted; items that lie alike share one list
  std::vector<std::size_t> runs_of_item_;
};

}  // namespace tailrace::checkpoint
