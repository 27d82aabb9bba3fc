// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/journal/ranges.hpp"
#include "ground/journal/undo_file.hpp"

namespace tailrace::journal {

/// Keeps what one checkpoint has recorded of files and what is written over since, so that the files can be
/// brought back. It belongs to one rank; any thread may use it. Bytes count as written over only if the last
/// generation, or one before it, has recorded them.
class Journal {
 public:
  Journal(storage::Target& target, std::string name) : target_(target), name_(std::move(name)) {}

  /// From now on bytes are kept for `generation`, the last one that was begun. It or an earlier one recorded
  /// `positions`. Call it while none of these files is written.
  void begin(std::int64_t generation, std::span<const Position> positions);
  [[nodiscard]] bool has(const std::string& path) const;
  /// Call it before these bytes of the file at `path` are written over or cut off. They are durable elsewhere
  /// once it returns. After a failure they must stay.
  Status keep(const std::string& path, storage::File& file, Bytes offset, Bytes bytes);
  /// As keep(), for the sidecar of a local file that was written over. A sidecar is replaced as a whole.
  Status keep_sidecar(const std::string& path, const std::string& text);

 private:
  /// The state that the journal keeps for one file.
  struct Kept {
    std::mutex mutex;
    std::int64_t generation = 0;
    Bytes size = 0;                              // as any generation recorded it
    Ranges ranges = {};                          // kept for the last generation
    Bytes bytes = 0;                             // in the ranges
    bool sidecar = false;                        // the sidecar was kept
    std::optional<storage::Rights> rights = {};  // of the file, when bytes of it were kept
    std::unique_ptr<UndoWriter> writer = nullptr;
  };
  [[nodiscard]] std::shared_ptr<Kept> find(const std::string& path) const;
  Status add(Kept& kept, const std::string& path, UndoRecord::What what, Bytes offset,
             std::span<const std::byte> bytes) const;
  Status keep_part(Kept& kept, const std::string& path, storage::File& file, Bytes offset, Bytes asked) const;
  Status keep_range(Kept& kept, const std::string& path, storage::File& file, Bytes begin, Bytes end) const;
  template <typename Add>
  static Status seal(Kept& kept, const Add& add);

  storage::Target& target_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::int64_t generation_ = 0;
  std::map<std::string, std::shared_ptr<Kept>> files_;  // by tidy path
};

/// The journals of all checkpoints of a session.
class Journals {
 public:
  /// Returns the journal of the checkpoint of this name. The first call makes it.
  Journal& of(storage::Target& target, const std::string& name);
  [[nodiscard]] bool has(const std::string& path) const;
  Status keep(const std::string& path, storage::File& file, Bytes offset, Bytes bytes);
  Status keep_sidecar(const std::string& path, const std::string& text);
  /// Says that the file is open as a shared one until the returned object dies: no journal sees what is
  /// written over. One of the ranks that have it open says so with `tells`.
  [[nodiscard]] std::shared_ptr<void> note_shared(const std::string& path, bool tells);
  [[nodiscard]] bool is_shared(const std::string& path) const;
  /// Returns the shared files of which this rank tells the others.
  [[nodiscard]] std::vector<std::string> told_shared() const;

 private:
  [[nodiscard]] std::vector<std::shared_ptr<Journal>> all() const;

  std::atomic<bool> any_{false};  // most programs have none, and ask before every write
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Journal>> journals_;
  std::multimap<std::string, bool> shared_;  // by tidy path: whether this rank tells of it
};

}  // namespace tailrace::journal
