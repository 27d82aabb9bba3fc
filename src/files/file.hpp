// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>

#include "arrays/array.hpp"
#include "exchange/transfer.hpp"
#include "files/cookie.hpp"
#include "files/framing.hpp"
#include "files/group.hpp"
#include "files/outcome.hpp"
#include "files/sidecar.hpp"

namespace tailrace::files {

using arrays::Array;
using arrays::ArrayPlan;
using arrays::Direction;

/// The ranks to which a file belongs: the group that opened it, or one rank alone in the local mode.
struct Place {
  Service* service = nullptr;
  std::shared_ptr<Group> group;  // nullptr: local
  int rank = 0;                  // in the communicator that opened it
};

/// The outcome of an array call: the same on every rank of the group.
struct ArrayOutcome {
  Index elements = 0;  // elements that were moved or, in an asynchronous file, will be
  Status status;
};

/// A collective file: C's stream on the I/O rank, its results on every rank. In the local mode each rank has
/// a stream of its own, and no call communicates.
class File {
 public:
  using Operation = std::function<Outcome(std::FILE*)>;

  /// Collective over the group, or local. Returns the same Status on every rank of the group. With `from` the
  /// file goes on where a checkpoint has recorded it.
  static Result<std::unique_ptr<File>> open(Place place, const std::string& path, const Mode& mode,
                                            const std::optional<journal::Position>& from = {});
  /// Takes a standard stream of the I/O rank (stdin, stdout or stderr), which is never closed. `stream`
  /// counts on that rank only.
  static std::unique_ptr<File> adopt(Place place, const std::string& name, const Mode& mode,
                                     std::FILE* stream);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const Mode& mode() const { return mode_; }
  [[nodiscard]] const Place& place() const { return place_; }
  /// Returns true if it is a standard stream that goes where the program was started to write.
  [[nodiscard]] bool is_adopted() const { return adopted_; }
  /// Returns true if this rank holds the stream: the I/O rank, or every rank of a local file.
  [[nodiscard]] bool holds_stream() const { return place_.group == nullptr || place_.group->is_io_rank(); }

  /// Collective (local files: local). Does `operation` on the stream, after the operations that asynchronous
  /// calls left to be done. Returns its outcome on every rank. Costs one broadcast. `call` is for the
  /// watchdog.
  Outcome ask(const std::string& call, const Operation& operation);
  /// Local; never waits. Does `operation` without a result: a failure is kept for the next flush() or
  /// close().
  void tell(Operation operation);
  /// As tell(), for bytes that are appended one after another: many small calls become few tasks.
  void tell_bytes(std::span<const std::byte> bytes);
  /// Collective (local files: local). Call it before the position changes, or a failure is forgotten, without
  /// ask(). It blocks until the aggregators of an asynchronous file have written what they still have to
  /// write.
  Status before_move(const std::string& call) { return outstanding_ ? drain(call) : Status(); }

  /// On the rank that holds the stream: ferror and clearerr, also for what aggregators did beside it.
  [[nodiscard]] bool has_failed() const { return std::ferror(stream_.stream) != 0 || failed_beside_; }
  void clear_failure() {
    std::clearerr(stream_.stream);
    failed_beside_ = false;
  }

  /// Collective (local files: local). Moves the arrays, one after another, between the ranks' memory and the
  /// file's position. Blocks until the arrays are moved, or in asynchronous files until the arrays to be
  /// written are captured. `name` is the call's name, `mine` what the caller found wrong with it, `framing`
  /// the bytes around an array that is the only one.
  ArrayOutcome move_arrays(const std::string& name, std::span<const Array> arrays, Direction direction,
                           const Status& mine = {}, const std::shared_ptr<const Framing>& framing = nullptr);

  /// Collective (local files: local). Blocks until the asynchronous operations are done. Returns the first
  /// failure since the last one returned.
  Status wait();
  /// Collective (local files: local). Hands all written bytes to the system, where other programs see them,
  /// and with `durable` to storage. Blocks until then. Returns the first failure since the last one returned.
  Status flush(bool durable);
  /// Collective (local files: local). Does flush() and closes the file, whatever is returned.
  Status close();

  // The following functions are for checkpoints.
  /// On the rank that holds the stream: returns true if the file has a place to go on from. A pipe, a
  /// terminal and a file that is only read have none.
  [[nodiscard]] bool has_position() const { return stream_.growth != nullptr; }
  /// Local. Finishes this rank's work on the file and hands the bytes to the system: flush() without the
  /// vote.
  Status rest();
  /// Local, on the rank that holds the stream, after rest(): returns where the file stands. Returns
  /// Code::state if it is refused because cutting the file could not bring it back there.
  Result<journal::Position> position(journal::Overwritten overwritten);
  /// On the same rank: notes that a checkpoint records `size` bytes of the file.
  void note_recorded(Bytes size);
  /// Local, after rest(). Returns the files that this rank wrote to. They stay open as long as they are held.
  [[nodiscard]] std::vector<std::shared_ptr<storage::File>> hold() const;
  /// Local. Writes over bytes of a record that has not ended. The stream stays at the end of the record.
  void write_over(Bytes position, ByteVector bytes);
  /// Local. Says that the bytes from there on may be written again.
  void forget(Bytes from);
  /// On the rank that holds the stream, between its other operations: says that the file is going to end at
  /// `size`.
  Status will_cut(Bytes size);

 private:
  /// An array of a call while it is moved.
  struct Moving {
    std::byte* data = nullptr;
    std::shared_ptr<const ArrayPlan> plan;
    std::shared_ptr<exchange::Tally> tally;
  };
  using Moved = std::vector<Moving>;
  /// Where a call of aggregators begins in the file, and where the file ends for that call.
  struct Extent {
    Bytes begin = 0;
    Bytes end = std::numeric_limits<Bytes>::max();
    /// Returns how many of the bytes there are.
    [[nodiscard]] Bytes available(Bytes bytes) const { return std::clamp(end - begin, Bytes{0}, bytes); }
  };
  static Result<Moved> plan_all(std::span<const Array> arrays, int rank, int ranks, Direction direction);
  static ByteVector ends_of(const Moved& moved, Status& status);
  static ArrayOutcome reached_by_all(const Moved& moved, const comm::Verdict& verdict);

  File(Place place, std::string path, const Mode& mode);
  /// Returns true if this rank is an aggregator that is not the I/O rank.
  [[nodiscard]] bool opened_beside() const { return shared_ != nullptr && !holds_stream(); }
  void queue_cut();
  Status keep(Bytes offset, Bytes bytes);
  void wait_for_tasks(const std::string& call);
  void wait_for_deliveries(const std::string& call);
  void send_pending();
  void run_or_queue(std::function<void()> task);
  void note(const Outcome& outcome);
  void note(const Status& status);
  Status unheard_failure();
  Status take_failure();
  Status agree(const std::string& call, Status mine);
  Status agree_on_tasks(const std::string& call, const Status& mine);
  Status flush_stream(bool durable);
  Status close_stream();
  Status store_sidecar();
  Status open_shared();
  Status finish(const std::string& call, const std::function<Status()>& end);
  Status drain(const std::string& call);

  [[nodiscard]] Status check_direction(Direction direction) const;
  Status tell_position(const std::string& call, Direction direction, Packer& out);
  Status find_position(const std::string& call, Direction direction);
  Result<Bytes> position_of_stream(Direction direction);
  Result<Bytes> end_to_read() const;
  void move_stream_to(Bytes position, Direction direction, bool is_end);
  void begin_write_back() const;
  [[nodiscard]] Status complete(Bytes got, Bytes wanted) const;
  void stop_stream_short(const Status& status, Bytes begin);
  [[nodiscard]] exchange::WriteBytes writer(bool parallel);
  [[nodiscard]] exchange::ReadBytes reader(bool parallel);
  Status begin_arrays(const std::string& call, const Status& planned, std::optional<Bytes> parallel,
                      Direction direction, Extent& reach);
  void commit_arrays(exchange::Channel& channel, exchange::Ring& ring, const Moved& moved,
                     Direction direction, const std::shared_ptr<const Framing>& framing, bool parallel,
                     const Extent& reach);
  ArrayOutcome finish_arrays(const std::string& call, const Moved& moved, bool parallel, const Extent& reach);
  ArrayOutcome leave_to_tasks(const Moved& moved, bool parallel, const Extent& reach);
  ArrayOutcome move_local(const std::string& name, std::span<const Array> arrays, Direction direction,
                          const Status& mine, const std::shared_ptr<const Framing>& framing);
  bool stands_at_end();
  Status check_local(const Array& array, Direction direction, Bytes bytes, const Framing* framing);
  Bytes write_local(const std::byte* base, const ArrayPlan& plan, const exchange::WriteBytes& writer,
                    Status& status);
  Bytes read_local(std::byte* base, const ArrayPlan& plan, const exchange::ReadBytes& reader, Status& status);
  void write_local_later(const std::byte* base, const ArrayPlan& plan, const exchange::WriteBytes& writer);

  Place place_;
  std::string path_;
  Mode mode_;
  std::uint64_t epoch_ = 0;
  executor::Key key_ = 0;
  CStream stream_;
  std::shared_ptr<journal::LastingFile> shared_;  // on aggregators of a parallel file; on the I/O rank it is
                                                  // the stream's file
  std::optional<Bytes> position_;             // of the stream, known while nothing but array calls moved it
  Direction position_for_ = Direction::read;  // for a stream that appends: the direction for which the
                                              // position is good
  bool outstanding_ = false;                  // tasks of aggregators may still run; the same on every rank
  std::atomic<bool> failed_beside_{false};    // an aggregator's failure, unknown to C's stream
  std::atomic<bool> task_failed_{false};      // of this aggregator, not heard of by the stream's rank
  bool adopted_ = false;
  std::atomic<bool> cutting_{false};      // the file is still as long as before it was opened
  Sidecar sidecar_;                       // of a local file
  std::atomic<Bytes> captured_bytes_{0};  // of a local file, not written yet
  node::Draw drawn_;                      // captured_bytes_, without the portions that did not fit the budget
  ByteVector pending_;                    // told as bytes, not handed to a task yet
  std::mutex failure_mutex_;
  Status failure_;  // of a call without result
};

}  // namespace tailrace::files
