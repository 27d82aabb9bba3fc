// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "faces/files/file_stream.hpp"
#include "faces/files/framing.hpp"
#include "faces/files/own_reads.hpp"

namespace tailrace::files {

/// The outcome of an array call: the same on every rank of the group.
struct ArrayOutcome {
  Index elements = 0;  // elements that were moved or, in an asynchronous file, will be
  Status status;
};

/// Moves the arrays of a group's file, and knows whether tasks of aggregators are still at work for earlier
/// calls. A local file has LocalArrays in place of move(), and never leaves such tasks behind.
class ArrayCalls {
 public:
  /// Both arguments must outlive the object.
  ArrayCalls(const Opened& file, FileStream& stream) : file_(file), stream_(stream) {}

  /// Collective. Does the work of File::move_arrays().
  ArrayOutcome move(const std::string& name, std::span<const Array> arrays, Direction direction,
                    const Status& mine, const std::shared_ptr<const Framing>& framing);

  /// True if tasks of aggregators may still run. The same on every rank.
  [[nodiscard]] bool are_outstanding() const { return outstanding_; }
  /// Local. Blocks until the tasks of this rank are done, and all bytes that are read for its arrays have
  /// arrived there.
  void wait(const std::string& call);
  /// Collective (local files: local). Call it after the tasks of this rank are done. Blocks until the tasks
  /// of all ranks are done. The rank that holds the stream then knows whether a task has failed.
  Status agree_on_tasks(const std::string& call, const Status& mine);

 private:
  struct Call;

  Status begin(Call& call, const Status& planned);
  Status tell_position(Call& call, Packer& out);
  [[nodiscard]] bool may_read_own(const Call& call) const;
  Status offer_to_read(const Call& call, Packer& out);
  void compare_offers(Call& call, const comm::Verdict& verdict);
  void commit(const Call& call);
  ArrayOutcome finish(const Call& call);
  ArrayOutcome leave_to_tasks(const Call& call);

  const Opened& file_;
  FileStream& stream_;
  OwnReads own_reads_{file_, stream_};
  bool outstanding_ = false;
  std::atomic<bool> task_failed_{false};  // a task has failed here, unknown yet to the stream's rank
};

}  // namespace tailrace::files
