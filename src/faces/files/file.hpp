// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "faces/files/local_arrays.hpp"

namespace tailrace::files {

/// A collective file: C's stream on the I/O rank, its results on every rank. In the local mode each rank has
/// a stream of its own, and no call communicates.
class File {
 public:
  /// Collective over the group, or local. Returns the same Status on every rank of the group. With `from` the
  /// file goes on where a checkpoint has recorded it.
  static Result<std::unique_ptr<File>> open(const Place& place, const std::string& path, const Mode& mode,
                                            const std::optional<journal::Position>& from = {});
  /// Takes a standard stream of the I/O rank (stdin, stdout or stderr), which is never closed. `stream`
  /// counts on that rank only.
  static std::unique_ptr<File> adopt(const Place& place, const std::string& name, const Mode& mode,
                                     std::FILE* stream);

  [[nodiscard]] const std::string& path() const { return opened_.path; }
  [[nodiscard]] const Mode& mode() const { return opened_.mode; }
  [[nodiscard]] const Place& place() const { return opened_.place; }
  /// Returns true if it is a standard stream that goes where the program was started to write.
  [[nodiscard]] bool is_adopted() const { return stream_.c_stream().is_adopted; }
  /// Returns true if this rank holds the stream: the I/O rank, or every rank of a local file.
  [[nodiscard]] bool holds_stream() const { return opened_.holds_stream(); }
  /// Returns what takes the operations without a result, which are local.
  [[nodiscard]] FileStream& stream() { return stream_; }

  /// Collective (local files: local). Does `operation` on the stream, after the operations that asynchronous
  /// calls left to be done. Returns its outcome on every rank. Costs one broadcast. `call` is for the
  /// watchdog.
  Outcome ask(const std::string& call, const Operation& operation);
  /// Collective (local files: local). Call it before the position changes, or a failure is forgotten, without
  /// ask(). It blocks until the aggregators of an asynchronous file have written what they still have to
  /// write.
  Status before_move(const std::string& call);

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
  [[nodiscard]] bool has_position() const { return stream_.c_stream().growth != nullptr; }
  /// Local. Finishes this rank's work on the file and hands the bytes to the system: flush() without the
  /// vote.
  Status rest();
  /// Local, on the rank that holds the stream, after rest(): returns where the file stands. Returns
  /// Code::state if it is refused because cutting the file could not bring it back there.
  Result<journal::Position> position(journal::Overwritten overwritten);
  /// On the same rank: notes that a checkpoint records `size` bytes of the file.
  void note_recorded(Bytes size) { stream_.c_stream().growth->record(size); }
  /// Local, after rest(). Returns the file if this rank may have written to it, otherwise nullptr. It stays
  /// open as long as it is held.
  [[nodiscard]] std::shared_ptr<storage::File> hold() const {
    return stream_.c_stream().file != nullptr ? stream_.c_stream().file->hold() : nullptr;
  }
  /// Local. Writes over bytes of a record that has not ended. The stream stays at the end of the record.
  void write_over(Bytes position, ByteVector bytes);
  /// Local. Says that the bytes from there on may be written again.
  void forget(Bytes from);
  /// On the rank that holds the stream, between its other operations: makes the file end at `size`.
  Status cut(Bytes size);

 private:
  File(const Place& place, const std::string& path, const Mode& mode);
  Status open_beside(const exchange::Channel& channel);
  Status finish(const std::string& call, const std::function<Status()>& end);

  const Opened opened_;
  FileStream stream_{opened_};
  ArrayCalls array_calls_{opened_, stream_};
  LocalArrays local_arrays_{opened_, stream_};
};

}  // namespace tailrace::files
