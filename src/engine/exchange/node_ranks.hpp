// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace tailrace::exchange {

/// The ranks of a group by their nodes. Nodes are numbered from 0, in the order of their lowest ranks.
class NodeRanks {
 public:
  /// The place of one rank.
  struct Seat {
    int node = 0;
    int number = 0;  // among the ranks of the node
    int ranks = 1;   // of the node
  };

  /// `lowest` has the lowest rank of each rank's node.
  explicit NodeRanks(const std::vector<int>& lowest) : seats_(lowest.size()), ranks_(lowest.size()) {
    std::map<int, int> numbers;
    std::vector<int> counts;
    for (std::size_t rank = 0; rank < lowest.size(); ++rank) {
      const auto [entry, is_new] = numbers.try_emplace(lowest[rank], static_cast<int>(counts.size()));
      if (is_new) counts.push_back(0);
      seats_[rank] = {entry->second, counts[static_cast<std::size_t>(entry->second)]++, 0};
    }
    begins_.push_back(0);
    for (const int count : counts) begins_.push_back(begins_.back() + count);
    for (std::size_t rank = 0; rank < lowest.size(); ++rank) {
      Seat& seat = seats_[rank];
      seat.ranks = counts[static_cast<std::size_t>(seat.node)];
      ranks_[static_cast<std::size_t>(begin_of(seat.node) + seat.number)] = static_cast<int>(rank);
    }
  }

  [[nodiscard]] int ranks() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int nodes() const { return static_cast<int>(begins_.size()) - 1; }
  [[nodiscard]] const Seat& seat(int rank) const { return seats_[static_cast<std::size_t>(rank)]; }
  /// Returns the ranks of a node, in their order.
  [[nodiscard]] std::span<const int> of(int node) const {
    return std::span(ranks_).subspan(static_cast<std::size_t>(begin_of(node)),
                                     static_cast<std::size_t>(begin_of(node + 1) - begin_of(node)));
  }

 private:
  [[nodiscard]] int begin_of(int node) const { return begins_[static_cast<std::size_t>(node)]; }

  std::vector<Seat> seats_;  // by rank
  std::vector<int> ranks_;   // those of the first node, of the second one, ...
  std::vector<int> begins_;  // by node: where its ranks begin in ranks_; then the end
};

}  // namespace tailrace::exchange
