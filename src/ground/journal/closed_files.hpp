// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "ground/storage/target.hpp"

namespace tailrace::journal {

/// The files that the program has closed on this rank since the last save. The next save makes them durable.
/// At most `most` files wait for it. If there are more, the oldest are synchronised at once, and a failure
/// there fails the next save.
class ClosedFiles {
  struct Failure {
    Status status;
    std::int64_t others = 0;  // number of other files that failed
    std::atomic<bool> told{false};
  };
  using IsDurable = std::shared_ptr<std::atomic<bool>>;

 public:
  /// The files that one save makes durable. A save may use it on another thread while the program closes more
  /// files.
  class Due {
   public:
    [[nodiscard]] bool is_empty() const { return files_.empty() && failure_ == nullptr; }
    /// Synchronises the files. Blocks on storage. Returns the first error, also of files that were
    /// synchronised earlier because too many waited.
    [[nodiscard]] Status sync(storage::Target& target) const;

   private:
    friend class ClosedFiles;
    std::map<std::string, IsDurable> files_;
    std::shared_ptr<Failure> failure_;
  };

  explicit ClosedFiles(std::size_t most = 1024) : most_(most) {}

  /// Notes that the program has closed this file, or is about to. If too many files wait, synchronises the
  /// oldest, and so blocks on storage.
  void note(storage::Target& target, const std::string& path);
  /// Notes that the program has renamed the file. If `from` was noted, the next save makes `to` durable
  /// instead, even if a save that is still under way has synchronised `from`.
  void note_renamed(storage::Target& target, const std::string& from, const std::string& to);
  /// Returns all files that no earlier save has made durable, and forgets the durable ones.
  [[nodiscard]] Due due();
  [[nodiscard]] std::size_t count() const { return files_.size(); }

 private:
  struct ClosedFile {
    std::int64_t number = 0;  // position in the order of closing
    IsDurable is_durable;
  };
  void make_room(storage::Target& target);
  void remember(const Status& failure);

  std::size_t most_;
  std::int64_t noted_ = 0;
  std::map<std::string, ClosedFile> files_;  // by path
  std::shared_ptr<Failure> failure_;         // no save has returned it yet
  bool has_dropped_ = false;
};

/// Makes a file's bytes durable. It is no error if the program has meanwhile removed the file, or put
/// something else in its place.
[[nodiscard]] Status sync_if_there(storage::Target& target, const std::string& path);

}  // namespace tailrace::journal
