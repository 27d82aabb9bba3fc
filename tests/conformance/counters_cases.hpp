// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ground/comm/counters/counters.hpp"

namespace tailrace::comm {

/// One process's end of shared counters, with further functions of its world. Each case of the suite is a
/// program that all processes run: under MPI, or as fibres in the simulated world.
class CountersEnd {
 public:
  virtual ~CountersEnd() = default;
  [[nodiscard]] virtual Counters& counters() = 0;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Blocks until all processes have called it. Counters make progress meanwhile.
  virtual void meet() = 0;
  /// Returns the `mine` of all processes together. Blocks until all processes have called it with lists of
  /// one length. Counters make progress meanwhile.
  virtual std::vector<std::int64_t> gather(const std::vector<std::int64_t>& mine) = 0;
  /// Lets counters make progress, and something else run for a moment.
  virtual void idle() = 0;
  /// Notes a failure unless `holds`, and goes on: if one process left a case, the others would hang.
  virtual void check(bool holds, const std::string& what) = 0;
};

struct CountersCase {
  std::string name;
  void (*run)(CountersEnd& end);
};

/// Returns the cases of the suite.
const std::vector<CountersCase>& counters_cases();

}  // namespace tailrace::comm
