// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::comm {

/// Keys and values for whoever opens a file (MPI_Info). What they mean, and which of them count, is up to the
/// MPI.
using Hints = std::vector<std::pair<std::string, std::string>>;

/// Files that the processes of a group open, write, synchronise and close in calls that all of them make
/// together, as those of MPI-IO are. All processes queue the same calls in the same order, and each its own
/// append() among them. A call is made once every process has queued it. No function blocks: `done` runs
/// inside of poll(), on the thread that calls poll(). Only one thread may use an object.
class CollectiveFiles {
 public:
  using Done = std::function<void(const Status&)>;
  /// Gets an error if this process's own part has failed, and whether the file is open: on all processes or
  /// on none.
  using Opened = std::function<void(const Status& own, bool is_open)>;
  /// This process's own part of a call, which may wait for storage. It runs on another thread than poll().
  using Own = std::function<Status()>;
  /// Bytes that follow one another in a file.
  struct Run {
    using Parts = std::vector<std::span<const std::byte>>;
    Bytes offset = 0;
    Parts parts;
  };
  /// The most bytes of one process in one call: counts of MPI are int.
  static constexpr Bytes most_at_once = Bytes{1} << 30;
  /// Returns how many calls a process needs for one run of so many bytes.
  [[nodiscard]] static constexpr int calls_for(Bytes size) {
    return static_cast<int>((size + most_at_once - 1) / most_at_once);
  }

  virtual ~CollectiveFiles() = default;
  /// True if a path must be the name of a file by which the operating system knows it
  /// (storage::Target::system_name).
  [[nodiscard]] virtual bool needs_files_of_system() const { return true; }
  /// Opens a file that exists, unless `own` fails on any process.
  virtual void open(std::string path, Hints hints, Own own, Opened opened) = 0;
  /// Writes the runs, whose bytes must stay as they are until `done`. `calls` is the same on all processes,
  /// and suffices for the process with the most runs. If `own` fails, which runs first, the process takes
  /// part without bytes. A failed write may have left any part of the bytes in the file, and may be tried
  /// again by all processes.
  virtual void write(std::string path, std::vector<Run> runs, int calls, Own own, Done done) = 0;
  /// Not made together: writes the bytes, at most `most_at_once`, at the shared file pointer, which `offset`
  /// tells. From the call until `started` runs, no other process may append to the file: somebody gives
  /// turns. `own` runs first. If `started` gets an error, nothing is under way, and `done` does not run; if
  /// it is not that of `own`, the pointer may stand anywhere. Otherwise the write is under way, and `done`
  /// runs when it is over. The bytes must stay as they are until then. Of each file two writes are under way:
  /// a third waits for the first.
  virtual void append(std::string path, Bytes offset, Run::Parts parts, Own own, Done started, Done done) = 0;
  /// Sets the shared file pointer of an open file.
  virtual void seek(std::string path, Bytes offset, Done done) = 0;
  /// Tries on a new file of this name, which it removes, whether appends stand where their turns say. The
  /// error says what does not work.
  virtual void try_appends(std::string path, Done done) = 0;
  /// Makes the bytes of all processes durable. Waits first for the appends of all files that are under way:
  /// so do seek() and close(). `own` runs behind it.
  virtual void sync(std::string path, Own own, Done done) = 0;
  /// Closes the file, if it is open. `own` runs behind it.
  virtual void close(std::string path, Own own, Done done) = 0;
  /// Runs the `done` of calls that were made. Returns true if there was one.
  virtual bool poll() = 0;
};

}  // namespace tailrace::comm
