// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "engine/placement/placement.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::pipeline {

/// One record of a committed step, as its index tells it.
using RecordEntry = placement::Record;

struct StepEntry {
  std::int64_t step = 0;
  std::int64_t lead = 0;
  std::string path;
  Bytes begin = 0;  // offset of its first record
  Bytes end = 0;    // size of the file with this step
  std::vector<RecordEntry> records;
};

/// A file that was begun.
struct Begun {
  Bytes end = 0;     // offset at which its first step goes
  std::string path;  // where it is written to; it need not have its final name yet
  // Another server may have begun the file for the same stream, before this one took its place.
  std::vector<std::int64_t> leads{};  // of the steps that it has committed, in order
  bool is_finished = false;           // it has also finished the file
};

/// The files of one stream as its root keeps them: the file of each step, what is committed in it, and what
/// happens when a file is complete. Except path_of and left_open, methods touch storage: they run as jobs,
/// those of one file one after another, those of different files also side by side.
class Ledger {
 public:
  virtual ~Ledger() = default;
  /// Local and quick. Returns the file of the step with this lead.
  virtual Result<std::string> path_of(std::int64_t lead) = 0;
  /// Local and quick. Returns files that the run which this one continues may not have finished. They are
  /// finished like files that were begun, even if no step comes to them. In the last of them the stream may
  /// go on.
  [[nodiscard]] virtual std::vector<std::string> left_open() const = 0;
  /// Creates the file and its index (directory entry durable), after checking that `expected` bytes have
  /// room.
  virtual Result<Begun> begin_file(const std::string& path, std::int64_t lead, Bytes expected) = 0;
  /// Called once the step's bytes are on storage. Writes its index record and makes it durable.
  virtual Status commit(const StepEntry& step) = 0;
  /// Takes back what a failed step left behind: the file ends at `size` again, or vanishes if nothing was
  /// ever committed in it.
  virtual Status cut(const std::string& path, Bytes size) = 0;
  /// Called once no step will follow in this file. Gives it its name, and its index says that it is whole. A
  /// failed call may be tried again, as with announce.
  virtual Status finish_file(const std::string& path) = 0;
  /// Tells others of a finished file: manifest, ready marker, hook.
  virtual Status announce(const std::string& path) = 0;
};

}  // namespace tailrace::pipeline
