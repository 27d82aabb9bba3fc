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

/// A file that begin_file has made ready for steps.
struct Begun {
  Bytes end = 0;     // offset at which its first step goes
  std::string path;  // where it is written to; it need not have its final name yet
  // If another server has begun the file, before this one took its place:
  std::vector<std::int64_t> leads{};  // of the steps that server has committed, in order
  bool is_finished = false;           // that server has also finished the file
};

/// The files of one stream as its root keeps them: the file of each step, what is committed in it, and what
/// happens when a file is complete. All methods but path_of and left_open wait for storage, and run as jobs:
/// the jobs of one file one after another, those of different files also side by side.
class Ledger {
 public:
  virtual ~Ledger() = default;
  /// Local and quick. Returns the file of the step with this lead.
  virtual Result<std::string> path_of(std::int64_t lead) = 0;
  /// Local and quick. Returns the files that the run before this one may have left unfinished. The root
  /// finishes them as if it had begun them, even if no step comes to them. The stream may go on in the last
  /// of them.
  [[nodiscard]] virtual std::vector<std::string> left_open() const = 0;
  /// Creates the file and its index (directory entry durable), after checking that `expected` bytes have
  /// room.
  virtual Result<Begun> begin_file(const std::string& path, std::int64_t lead, Bytes expected) = 0;
  /// Asked before a step's bytes are made durable where that puts them over what lies there (places of whole
  /// objects). Code::state if another run has taken the file.
  virtual Status check_owner(const std::string& path) = 0;
  /// Called once the step's bytes are on storage. Writes its index record and makes it durable.
  virtual Status commit(const StepEntry& step) = 0;
  /// Removes the bytes of a failed step: cuts the file to `size`, or deletes it if nothing was ever committed
  /// in it. Fails, and cuts nothing, if another run has taken the file.
  virtual Status cut(const std::string& path, Bytes size) = 0;
  /// Gives the file its final name, and marks it as whole in its index. The root calls it once no step will
  /// follow in the file. The root may try finish_file and announce again after a failure.
  virtual Status finish_file(const std::string& path) = 0;
  /// Tells others of a finished file: manifest, ready marker, hook.
  virtual Status announce(const std::string& path) = 0;
};

}  // namespace tailrace::pipeline
