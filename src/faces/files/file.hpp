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
  static Result<std::unique_ptr<File>> open(const Owner& owner, const std::string& path, const Mode& mode,
                                            const std::optional<journal::Position>& from = {});
  /// Takes a standard stream of the I/O rank (stdin, stdout or stderr), which is never closed. `stream`
  /// counts on that rank only.
  static std::unique_ptr<File> adopt(const Owner& owner, const std::string& name, const Mode& mode,
                                     std::FILE* stream);

  [[nodiscard]] const std::string& path() const { return opened_.path; }
  [[nodiscard]] const Mode& mode() const { return opened_.mode; }
  [[nodiscard]] const Owner& owner() const { return opened_.owner; }
  /// True if it is a standard stream of the I/O rank (adopt()).
  [[nodiscard]] bool is_adopted() const { return stream_.c_stream().is_adopted; }
  /// Returns true if this rank holds the stream: the I/O rank, or every rank of a local file.
  [[nodiscard]] bool holds_stream() const { return opened_.holds_stream(); }
  /// Returns the stream, which takes operations without a result. They are local.
  [[nodiscard]] FileStream& stream() { return stream_; }

  /// Collective (local files: local). Does `operation` on the stream, after all operations that asynchronous
  /// calls have queued. Returns its outcome on every rank. Costs one broadcast. `call` is for the watchdog.
  Outcome ask(const std::string& call, const Operation& operation);
  /// Collective (local files: local). Call it before something other than ask() changes the position or
  /// clears a failure. Blocks until the aggregators of an asynchronous file have written what they still have
  /// to write.
  Status before_move(const std::string& call);

  /// Collective (local files: local). Moves the arrays, one after another, between the ranks' memory and the
  /// file's position. Blocks until the arrays are moved, or in asynchronous files until the arrays to be
  /// written are captured. `name` is the call's name, `mine` what the caller found wrong with it. `framing`
  /// has the bytes around the array; there is only one array then.
  ArrayOutcome move_arrays(const std::string& name, std::span<const Array> arrays, Direction direction,
                           const Status& mine = {}, const std::shared_ptr<const Framing>& framing = nullptr);

  /// True if read_to_all() brings so many bytes to all ranks faster than one message from the I/O rank does.
  /// The same on every rank.
  [[nodiscard]] bool reads_to_all(Bytes bytes) const;
  /// Collective. Reads from the file's position into the memory of every rank, as move_arrays() reads an
  /// array of which every rank has the whole.
  ArrayOutcome read_to_all(const std::string& name, std::span<std::byte> memory, const Status& mine = {},
                           const std::shared_ptr<const Framing>& framing = nullptr);

  /// Collective (local files: local). Blocks until the asynchronous operations are done. Returns the first
  /// failure since the last one returned.
  Status wait();
  /// Collective (local files: local). Hands all written bytes to the system, where other programs see them,
  /// and with `durable` to storage. Blocks until then. Returns the first failure since the last one returned.
  Status flush(bool durable);
  /// Collective (local files: local). Does the work of flush(false) and closes the file, even if it returns
  /// an error.
  Status close();

  // The following functions are for checkpoints.
  /// On the rank that holds the stream: true if a later run can go on from a position of the file. A pipe, a
  /// terminal and a file that is only read have none.
  [[nodiscard]] bool has_position() const { return stream_.c_stream().growth != nullptr; }
  /// Local. Finishes this rank's work on the file and hands the bytes to the system: flush() without the
  /// vote.
  Status rest();
  /// Local, on the rank that holds the stream, after rest(): returns where the file stands. With
  /// Overwritten::refuse, returns Code::state if the program has written over bytes: cutting the file could
  /// not bring it back then.
  Result<journal::Position> position(journal::Overwritten overwritten);
  /// On the same rank: notes that a checkpoint records `size` bytes of the file.
  void note_recorded(Bytes size) { stream_.c_stream().growth->record(size); }
  /// Local, after rest(). Returns the file if this rank may have written to it, otherwise nullptr. The file
  /// stays open as long as the caller holds it.
  [[nodiscard]] std::shared_ptr<storage::File> hold() const {
    return stream_.c_stream().file != nullptr ? stream_.c_stream().file->hold() : nullptr;
  }
  /// Local. Writes over bytes of a record that has not ended. The stream then stands behind these bytes.
  void write_over(Bytes position, ByteVector bytes);
  /// Local. Notes that the program may write the bytes from `from` on again: this does not count as writing
  /// over, unless a checkpoint has recorded the bytes.
  void forget(Bytes from);
  /// On the rank that holds the stream, between its other operations: makes the file end at `size`.
  Status cut(Bytes size);

 private:
  File(const Owner& owner, const std::string& path, const Mode& mode);
  Status open_beside(const exchange::Channel& channel);
  Status finish(const std::string& call, const std::function<Status()>& end);

  const Opened opened_;
  FileStream stream_{opened_};
  ArrayCalls array_calls_{opened_, stream_};
  LocalArrays local_arrays_{opened_, stream_};
};

}  // namespace tailrace::files
