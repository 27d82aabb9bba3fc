// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "files/ranges.hpp"
#include "files/undo_file.hpp"

namespace tailrace::files {

/// Keeps what one checkpoint has recorded of files and what is written over since, so that they can be
/// brought back. Of one rank; any thread. Bytes count as written over only where the last generation, or one
/// before it, has recorded them.
class Journal {
 public:
  Journal(storage::Target& target, std::string name) : target_(target), name_(std::move(name)) {}

  /// What is kept from now on belongs to `generation`, the last one that was begun; `positions` were recorded
  /// by it or by one before it. To be called while none of these files is written.
  void begin(std::int64_t generation, std::span<const Position> positions);
  [[nodiscard]] bool has(const std::string& path) const;
  /// To be called before these bytes of the file at `path` are written over or cut off. They are durable
  /// elsewhere once it returns; after a failure they must stay.
  Status keep(const std::string& path, storage::File& file, Bytes offset, Bytes bytes);
  /// The same for the sidecar of a local file that was written over, which is replaced as a whole.
  Status keep_sidecar(const std::string& path, const std::string& text);

 private:
  /// Of one file.
  struct Kept {
    std::mutex mutex;
    std::int64_t generation = 0;
    Bytes size = 0;        // recorded by any generation
    Ranges ranges = {};    // what was kept for the last one
    Bytes bytes = 0;       // in them
    bool sidecar = false;  // was kept
    std::unique_ptr<UndoWriter> writer = nullptr;
  };
  [[nodiscard]] std::shared_ptr<Kept> find(const std::string& path) const;
  Status add(Kept& kept, const std::string& path, UndoRecord::What what, Bytes offset,
             std::span<const std::byte> bytes) const;
  Status keep_range(Kept& kept, const std::string& path, storage::File& file, Bytes begin, Bytes end) const;
  static void give_up(Kept& kept);

  storage::Target& target_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::int64_t generation_ = 0;
  std::map<std::string, std::shared_ptr<Kept>> files_;  // by tidy path
};

/// The journals of all checkpoints of a session.
class Journals {
 public:
  /// That of the checkpoint of this name, which is made when it is first asked for.
  Journal& of(storage::Target& target, const std::string& name);
  [[nodiscard]] bool has(const std::string& path) const;
  Status keep(const std::string& path, storage::File& file, Bytes offset, Bytes bytes);
  Status keep_sidecar(const std::string& path, const std::string& text);

 private:
  [[nodiscard]] std::vector<std::shared_ptr<Journal>> all() const;

  std::atomic<bool> any_{false};  // most programs have none, and ask before every write
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Journal>> journals_;
};

}  // namespace tailrace::files
