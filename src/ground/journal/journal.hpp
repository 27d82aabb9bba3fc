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

/// Keeps the bytes that the program overwrites in files whose state one checkpoint has recorded, so that the
/// files can be brought back to that state. A journal belongs to one rank. Any thread may use it. It keeps
/// only bytes that the last generation, or one before it, has recorded.
class Journal {
 public:
  Journal(storage::Target& target, std::string name) : target_(target), name_(std::move(name)) {}

  /// Keeps bytes for `generation` from now on. It is the last generation that was begun; it or an earlier one
  /// recorded `positions`. None of these files may be written during the call.
  void begin(std::int64_t generation, std::span<const Position> positions);
  [[nodiscard]] bool has(const std::string& path) const;
  /// Keeps bytes of the file at `path`. Call it before they are overwritten or cut off. When it returns OK,
  /// they are durable in an undo file. After a failure the caller must leave them in the file.
  Status keep(const std::string& path, storage::File& file, Bytes offset, Bytes bytes);
  /// As keep(), for the sidecar of a local file some of whose bytes were overwritten. A sidecar is always
  /// replaced as a whole.
  Status keep_sidecar(const std::string& path, const std::string& text);

 private:
  /// The state of one file in the journal.
  struct Kept {
    std::mutex mutex;
    std::int64_t generation = 0;
    Bytes size = 0;                              // the largest recorded by any generation
    Ranges ranges = {};                          // the ranges kept for the last generation
    Bytes bytes = 0;                             // number of bytes in the ranges
    bool sidecar = false;                        // the sidecar was kept
    std::optional<storage::Rights> rights = {};  // the file's rights when bytes were kept
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
  std::map<std::string, std::shared_ptr<Kept>> files_;  // tidy path -> its state
};

/// Local. Returns the one name of a file that may have several by symbolic links, its own or those of its
/// directories. The file need not exist.
std::string name_behind_links(storage::Target& target, const std::string& path);

/// The journals of all checkpoints of a session.
class Journals {
 public:
  /// Returns the journal of the checkpoint `name`. The first call makes it.
  Journal& of(storage::Target& target, const std::string& name);
  [[nodiscard]] bool has(const std::string& path) const;
  Status keep(const std::string& path, storage::File& file, Bytes offset, Bytes bytes);
  Status keep_sidecar(const std::string& path, const std::string& text);
  /// Notes that the file is open as a shared file, until the returned object is destroyed. Journals do not
  /// see which bytes of a shared file are overwritten. One rank among those that have the file open passes
  /// `tells`.
  [[nodiscard]] std::shared_ptr<void> note_shared(storage::Target& target, const std::string& path,
                                                  bool tells);
  /// True also if the file was opened by another name: both names are followed through links.
  [[nodiscard]] bool is_shared(storage::Target& target, const std::string& path) const;
  /// Returns the names behind links of the shared files for which this rank has passed `tells`.
  [[nodiscard]] std::vector<std::string> told_shared() const;

 private:
  [[nodiscard]] std::vector<std::shared_ptr<Journal>> all() const;

  /// False as long as there is no journal: most programs have none, and the library asks before every write.
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Journal>> journals_;
  /// The name behind links (name_behind_links()), and whether this rank has passed `tells`.
  std::multimap<std::string, bool> shared_;
};

}  // namespace tailrace::journal
