// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/exchange/transfer.hpp"
#include "faces/files/cookie.hpp"
#include "faces/files/group.hpp"

namespace tailrace::files {

/// The tasks of one file on this rank, one after another: behind the program if the file is asynchronous,
/// otherwise inside the calls. A failure that no call returned is kept for the next one that can return it.
class Tasks {
 public:
  /// `file` must outlive the tasks.
  explicit Tasks(const Opened& file) : file_(file), key_(file.owner.service->threads().new_key()) {}

  /// Returns the key of the file's jobs.
  [[nodiscard]] executor::Key key() const { return key_; }
  /// Local; does not wait. Has `task` run before any other task, while the program goes on.
  void begin_with(std::function<void()> task) { first_ = std::move(task); }
  /// Local; does not wait. Queues the task of begin_with(). Call it before something else queues jobs of the
  /// key.
  void begin();
  /// Local. Queues `task` if the file is asynchronous, otherwise does it at once.
  void run(std::function<void()> task);
  /// Local. Blocks until all tasks are done. `call` is for the watchdog.
  void wait(const std::string& call);

  // Any thread may call the following functions.
  /// Keeps the failure, if it is one and the first.
  void note(const Outcome& outcome);
  void note(const Status& status);
  /// Keeps the failure of a task that moved `got` of the `wanted` bytes of an array. An array that ended
  /// early has failed, too: its call has returned long since, so that no count can tell the caller.
  void note_moved(const Status& status, Bytes got, Bytes wanted);
  /// Returns the failure of an asynchronous file that no call has returned yet. After it, a task must write
  /// nothing: the bytes would lie in the wrong place.
  Status unheard_failure();
  /// Returns the failure, and keeps it no longer.
  Status take_failure();

 private:
  /// Does `task`. If memory runs out in it, keeps that failure.
  void attempt(const std::function<void()>& task);

  const Opened& file_;
  const executor::Key key_;
  std::function<void()> first_;
  std::mutex mutex_;
  Status failure_;
};

/// A file as this rank has it open: C's stream on the rank that holds it, the file alone on the other
/// aggregators of a parallel file, nothing elsewhere. Together with the tasks that work on it. No function is
/// collective.
class FileStream {
 public:
  /// `file` must outlive the stream.
  explicit FileStream(const Opened& file) : file_(file), tasks_(file) {}
  ~FileStream();

  /// Takes over what this rank has opened. If that has a stream, the stream stands at `position`.
  void take(CStream opened, Bytes position);
  [[nodiscard]] const CStream& c_stream() const { return c_stream_; }
  [[nodiscard]] Tasks& tasks() { return tasks_; }

  /// Never waits. Does `operation` without a result: a failure is kept for the next flush() or close() of the
  /// file.
  void tell(Operation operation);
  /// As tell(), for bytes that are appended one after another: many small calls become few tasks.
  void tell_bytes(std::span<const std::byte> bytes);
  /// Hands the bytes of tell_bytes() to a task, which moves the stream.
  void send_pending();
  /// Blocks until all tasks of this rank are done, also those of tell() and tell_bytes().
  void wait_for_tasks(const std::string& call);

  /// On the rank that holds the stream: ferror and clearerr, also for array calls that failed beside C's
  /// stream.
  [[nodiscard]] bool has_failed() const { return std::ferror(c_stream_.stream) != 0 || failed_beside_; }
  void clear_failure();
  void note_failure_beside() { failed_beside_ = true; }
  /// On the rank that holds the stream: notes that ungetc has pushed a character back. It need not be the one
  /// that the file has there, so the next read must be one of C's stream.
  void note_pushed_back() { pushed_back_ = true; }
  [[nodiscard]] bool take_pushed_back() { return std::exchange(pushed_back_, false); }

  // The following functions are for array calls, on the rank that holds the stream.
  /// Returns where a call in `direction` begins; a stream that appends writes somewhere else than it reads.
  /// If the position is not known, blocks until the tasks are done, and writes or drops the stream's buffer:
  /// other ranks read and write the file beside the stream.
  Result<Bytes> find_position(const std::string& call, Direction direction);
  /// Notes that something other than an array call moves the stream.
  void forget_position() { position_.reset(); }
  /// Notes that the stream is going to stand at `position` after a call in `direction`.
  void will_stand_at(Bytes position, Direction direction);
  /// Moves the stream to `position`. With `is_end` the file ended there before all bytes were read: feof() is
  /// then true.
  void move_to(Bytes position, Direction direction, bool is_end);
  /// Sets what C's stream shows after a read from `begin` on that ended early: it stands at the end of the
  /// file, or has failed. If the file ends before `begin`, C's fread leaves the stream at `begin`.
  void stop_short(const Status& status, Bytes begin);
  /// Returns where the file ends once the tasks of all aggregators are done. The stream must have nothing
  /// left to write.
  [[nodiscard]] Result<Bytes> end_to_read() const;
  /// On every aggregator: returns the function by which tasks write to, or read from, the file. With
  /// `parallel` it works on the file at the offsets that it gets. Otherwise it works on C's stream, which
  /// takes the bytes in their order, and ignores the offsets.
  [[nodiscard]] exchange::WriteBytes writer(bool parallel);
  [[nodiscard]] exchange::ReadBytes reader(bool parallel);

  /// Hands the written bytes to the system, and with `durable` to storage. Blocks until then.
  Status flush(bool durable);
  /// Closes the stream, or the file; a standard stream is only flushed, since the program goes on with it.
  Status close();

 private:
  Result<Bytes> position_of_stream(Direction direction);

  const Opened& file_;
  Tasks tasks_;
  CStream c_stream_;
  std::optional<Bytes> position_;             // known while nothing but array calls moved the stream
  Direction position_for_ = Direction::read;  // for a stream that appends: the direction for which the
                                              // position is good
  std::atomic<bool> cutting_{false};          // the file is still as long as before it was opened
  std::atomic<bool> failed_beside_{false};    // a failure of array calls, unknown to C's stream
  bool pushed_back_ = false;
  ByteVector pending_;  // told as bytes, not handed to a task yet
};

}  // namespace tailrace::files
