// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fibre_world.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::sim {

/// One collective call of a program: an agreement or a broadcast, on one of its lines.
struct CollectiveCall {
  int number = 0;  // in the program
  int line = 0;
  bool is_broadcast = false;
  std::size_t bytes = 0;  // the bytes that rank 0 of the line broadcasts, or that each rank contributes
  [[nodiscard]] std::string name() const;
};

/// A correct parallel program: one sequence of collective calls on lines of overlapping groups of ranks. Each
/// rank makes the calls of its own lines, in this order.
class CollectiveProgram {
 public:
  struct Size {
    int ranks = 0;
    int lines = 0;
    int calls = 0;
  };
  /// Makes a random program.
  CollectiveProgram(Scheduler& dice, const Size& size);

  /// Returns the calls that `rank` makes.
  [[nodiscard]] std::vector<CollectiveCall> calls_of(int rank) const;
  using Lines = std::map<int, std::unique_ptr<comm::Line>>;  // each opened by its first call
  /// Runs on a rank: makes `calls`, with stalls in between, and checks each result. Adds a text to `wrong`
  /// for each wrong result.
  void run(FibreRank& rank, const std::vector<CollectiveCall>& calls, Scheduler& dice, Lines& lines,
           std::vector<std::string>& wrong) const;
  /// Closes the lines, and waits until everything that the rank has sent has left.
  static void leave(FibreRank& rank, Lines& lines);

 private:
  struct Group {
    std::shared_ptr<const comm::Members> members;
  };
  [[nodiscard]] std::string make(comm::Line& line, const CollectiveCall& call) const;

  std::vector<Group> groups_;
  std::vector<CollectiveCall> calls_;
};

}  // namespace tailrace::sim
