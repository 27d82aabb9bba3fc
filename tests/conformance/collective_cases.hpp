// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "ground/comm/collective/collective_files.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::comm {

/// One process's end of collective files, with further functions of its world. Each case of the suite is a
/// program that all processes run: under MPI, or as fibres in the simulated world.
class CollectiveEnd {
 public:
  virtual ~CollectiveEnd() = default;
  [[nodiscard]] virtual CollectiveFiles& files() = 0;
  [[nodiscard]] virtual storage::Target& target() = 0;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Returns the same path on all processes, in a directory that is there.
  [[nodiscard]] virtual std::string path(const std::string& name) const = 0;
  /// Blocks until all processes have called it.
  virtual void meet() = 0;
  /// Lets something else run for a moment.
  virtual void idle() = 0;
  /// Notes a failure unless `holds`, and goes on: if one process left a case, the others would hang.
  virtual void check(bool holds, const std::string& what) = 0;
};

struct CollectiveCase {
  std::string name;
  void (*run)(CollectiveEnd& end);
};

/// Return the cases of the suite. The large ones take gigabytes of memory and storage.
const std::vector<CollectiveCase>& collective_cases();
const std::vector<CollectiveCase>& large_collective_cases();

}  // namespace tailrace::comm
