// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "files/file_stream.hpp"
#include "files/framing.hpp"
#include "files/own_reads.hpp"

namespace tailrace::files {

/// The outcome of an array call: the same on every rank of the group.
struct ArrayOutcome {
  Index elements = 0;  // elements that were moved or, in an asynchronous file, will be
  Status status;
};

/// The array calls of a group's file, and what aggregators have still to do for them. For a local file
/// nothing is left to do, and LocalArrays stands in for move().
class ArrayCalls {
 public:
  /// Both arguments must outlive the object.
  ArrayCalls(const Opened& file, FileStream& stream) : file_(file), stream_(stream) {}

  /// Collective. Does File::move_arrays().
  ArrayOutcome move(const std::string& name, std::span<const Array> arrays, Direction direction,
                    const Status& mine, const std::shared_ptr<const Framing>& framing);

  /// Returns true if tasks of aggregators may still run. The same on every rank.
  [[nodiscard]] bool are_outstanding() const { return outstanding_; }
  /// Local. Blocks until the tasks of this rank are done, and all bytes that they read are where they belong.
  void wait(const std::string& call);
  /// Collective (local files: local). Runs after the tasks of this rank are done. Blocks until those of all
  /// ranks are. The rank that holds the stream then knows whether any of them failed.
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
  std::atomic<bool> task_failed_{false};  // of this aggregator, not heard of by the stream's rank
};

}  // namespace tailrace::files
