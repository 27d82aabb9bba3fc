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

/// Where a file lives: the group that opened it, or, for files of the local mode, one rank alone.
struct Place {
  Service* service = nullptr;
  std::shared_ptr<Group> group;  // nullptr: local
  int rank = 0;                  // in the communicator that opened it
};

/// What an array call did: the same on every rank of the group.
struct ArrayOutcome {
  Index elements = 0;  // that were moved, or, in an asynchronous file, will be
  Status status;
};

/// A collective file: C's stream on the I/O rank, its results on every rank. In the local mode each rank has
/// such a stream of its own, and no call communicates.
class File {
 public:
  using Operation = std::function<Outcome(std::FILE*)>;

  /// Collective over the group, or local. The same Status on every rank of the group.
  /// `from`: it goes on where a checkpoint has recorded it.
  static Result<std::unique_ptr<File>> open(Place place, const std::string& path, const Mode& mode,
                                            const std::optional<Position>& from = {});
  /// A standard stream of the I/O rank (stdin, stdout or stderr); never closed. `stream` counts there only.
  static std::unique_ptr<File> adopt(Place place, const std::string& name, const Mode& mode,
                                     std::FILE* stream);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const Mode& mode() const { return mode_; }
  [[nodiscard]] const Place& place() const { return place_; }
  /// Whether it is a standard stream that goes where the program was started to write.
  [[nodiscard]] bool is_adopted() const { return adopted_; }
  /// Whether this rank holds the stream: the I/O rank, or every rank of a local file.
  [[nodiscard]] bool holds_stream() const { return place_.group == nullptr || place_.group->is_io_rank(); }

  /// Collective (local files: local). Does `operation` on the stream, after what asynchronous calls left to
  /// be done; its outcome on every rank. Costs one broadcast. `call` is for the watchdog.
  Outcome ask(const std::string& call, const Operation& operation);
  /// Local; never waits. The same without a result: a failure is kept for the next flush() or close().
  void tell(Operation operation);
  /// The same for bytes that are appended one after another: many small calls become few tasks.
  void tell_bytes(std::span<const std::byte> bytes);
  /// Collective (local files: local). To be called before the position goes anywhere, or a failure is
  /// forgotten, without ask(): that comes after what aggregators of an asynchronous file still have to write,
  /// for which it then blocks.
  Status before_move(const std::string& call) { return outstanding_ ? drain(call) : Status(); }

  /// Of the rank that holds the stream: ferror and clearerr, for what aggregators did beside it too.
  [[nodiscard]] bool has_failed() const { return std::ferror(stream_.stream) != 0 || failed_beside_; }
  void clear_failure() {
    std::clearerr(stream_.stream);
    failed_beside_ = false;
  }

  /// Collective (local files: local). Moves the arrays, one after another, between the ranks' memory and the
  /// file's position. Blocks until that is done; asynchronous files until what is written is captured. `name`
  /// is the call's, `mine` what the caller found wrong with it, `framing` what surrounds an array that is the
  /// only one.
  ArrayOutcome move_arrays(const std::string& name, std::span<const Array> arrays, Direction direction,
                           const Status& mine = {}, const std::shared_ptr<const Framing>& framing = nullptr);

  /// Collective (local files: local). Blocks until the asynchronous operations are done. Returns the first
  /// failure since the last one returned.
  Status wait();
  /// Collective (local files: local). What was written is where other programs see it; with `durable` it is
  /// on storage. Blocks until then. Returns the first failure since the last one returned.
  Status flush(bool durable);
  /// Collective (local files: local). flush(), and the end of the file, whatever is returned.
  Status close();

  // What checkpoints call.
  /// Whether it has a place to go on from: not a pipe, a terminal, or what is only read. Of the rank that
  /// holds the stream.
  [[nodiscard]] bool has_position() const { return stream_.growth != nullptr; }
  /// Local. What this rank has left to do of it is done, and the system has the bytes: flush() without the
  /// vote.
  Status rest();
  /// Local, of the rank that holds the stream, after rest(): where it stands. Code::state if it is refused
  /// because cutting the file could not bring it back there.
  Result<Position> position(Overwritten overwritten);
  /// The same rank: a checkpoint records that it has `size` bytes.
  void note_recorded(Bytes size);
  /// Local, after rest(): what this rank wrote to, which stays open as long as it is held.
  [[nodiscard]] std::vector<std::shared_ptr<storage::File>> hold() const;
  /// Local. Writes over bytes of a record that has not ended, at the end of which the stream stays.
  void write_over(Bytes position, ByteVector bytes);
  /// Local. What the file holds from there on may be written again.
  void forget(Bytes from);
  /// Of the rank that holds the stream, between its other operations: the file is going to end at `size`.
  Status will_cut(Bytes size);

 private:
  /// An array of a call, as it is moved.
  struct Moving {
    std::byte* data = nullptr;
    std::shared_ptr<const ArrayPlan> plan;
    std::shared_ptr<exchange::Tally> tally;
  };
  using Moved = std::vector<Moving>;
  /// Where a call of aggregators begins in the file, and where the file ends for it.
  struct Reach {
    Bytes begin = 0;
    Bytes end = std::numeric_limits<Bytes>::max();
    /// How many of the bytes there are.
    [[nodiscard]] Bytes available(Bytes bytes) const { return std::clamp(end - begin, Bytes{0}, bytes); }
  };
  static Result<Moved> plan_all(std::span<const Array> arrays, int rank, int ranks, Direction direction);
  static ByteVector ends_of(const Moved& moved, Status& status);
  static ArrayOutcome reached_by_all(const Moved& moved, const comm::Verdict& verdict);

  File(Place place, std::string path, const Mode& mode);
  /// Whether this rank is an aggregator that is not the I/O rank.
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
  [[nodiscard]] exchange::Sink sink(bool parallel);
  [[nodiscard]] exchange::Source source(bool parallel);
  Status begin_arrays(const std::string& call, const Status& planned, std::optional<Bytes> parallel,
                      Direction direction, Reach& reach);
  void commit_arrays(exchange::Channel& channel, exchange::Ring& ring, const Moved& moved,
                     Direction direction, const std::shared_ptr<const Framing>& framing, bool parallel,
                     const Reach& reach);
  ArrayOutcome finish_arrays(const std::string& call, const Moved& moved, bool parallel, const Reach& reach);
  ArrayOutcome leave_to_tasks(const Moved& moved, bool parallel, const Reach& reach);
  ArrayOutcome move_local(const std::string& name, std::span<const Array> arrays, Direction direction,
                          const Status& mine, const std::shared_ptr<const Framing>& framing);
  bool stands_at_end();
  Status check_local(const Array& array, Direction direction, Bytes bytes, const Framing* framing);
  Bytes write_local(const std::byte* base, const ArrayPlan& plan, const exchange::Sink& sink, Status& status);
  Bytes read_local(std::byte* base, const ArrayPlan& plan, const exchange::Source& source, Status& status);
  void write_local_later(const std::byte* base, const ArrayPlan& plan, const exchange::Sink& sink);

  Place place_;
  std::string path_;
  Mode mode_;
  std::uint64_t epoch_ = 0;
  executor::Key key_ = 0;
  CStream stream_;
  std::shared_ptr<LastingFile> shared_;  // on aggregators of a parallel file: the stream's on the I/O rank
  std::optional<Bytes> position_;        // of the stream, while nothing but array calls moved it
  Direction position_for_ = Direction::read;  // of a stream that appends: what the position is good for
  bool outstanding_ = false;                  // tasks of aggregators may still run: the same on every rank
  std::atomic<bool> failed_beside_{false};    // an aggregator's failure, which C's stream does not know of
  std::atomic<bool> task_failed_{false};      // of this aggregator, which the stream's rank has not heard of
  bool adopted_ = false;
  std::atomic<bool> cutting_{false};      // the file is still as long as before it was opened
  Sidecar sidecar_;                       // of a local file
  std::atomic<Bytes> captured_bytes_{0};  // of a local file, not written yet
  ByteVector pending_;                    // told as bytes, not handed to a task yet
  std::mutex failure_mutex_;
  Status failure_;  // of a call without result
};

}  // namespace tailrace::files
