// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "files/position.hpp"
#include "storage/target.hpp"

namespace tailrace::files {

// docs/formats/undo-files.md

/// No checkpoint is saved so often, not within a human life. What tells of a higher generation is not ours:
/// believed, one stray file would leave no number for any save to come.
constexpr std::int64_t most_generation = std::int64_t{1} << 40;

/// Of a file, by its name.
std::uint64_t undo_key(const std::string& path);
std::string undo_path(const std::string& name, std::int64_t generation, std::uint64_t key,
                      std::int64_t number);
/// Local. Those of the checkpoint `name`, what was kept last first.
Result<std::vector<UndoName>> find_undo_files(storage::Target& target, const std::string& name);
/// Those of `all` that bring a file back to what `generation` has recorded of it, in the same order.
std::vector<UndoName> undo_files_of(const Position& file, std::int64_t generation,
                                    const std::vector<UndoName>& all);

/// One entry of an undo file.
struct UndoRecord {
  enum class What : std::int32_t { bytes, sidecar };
  What what = What::bytes;
  std::string path;  // of the file that held them
  Bytes offset = 0;
  ByteVector bytes;
};

/// Writes an undo file. What is added counts once it is sealed: only then may the file be written over.
class UndoWriter {
 public:
  /// Makes the first NAME.uGENERATION.KEY.N that is not there yet.
  static Result<std::unique_ptr<UndoWriter>> create(storage::Target& target, const std::string& name,
                                                    std::int64_t generation, const std::string& path);
  Status add(UndoRecord::What what, Bytes offset, std::span<const std::byte> bytes);
  /// Makes durable what was added.
  Status seal();
  /// Gives the room back that records take which cannot be sealed. The last call.
  void take_back();

 private:
  UndoWriter(storage::Target& target, UndoName name, std::string path, std::unique_ptr<storage::File> file)
      : target_(target), name_(std::move(name)), path_(std::move(path)), file_(std::move(file)) {}

  struct Tail {
    Bytes offset = 0;
    ByteVector bytes;
  };
  storage::Target& target_;
  const UndoName name_;
  const std::string path_;  // of the file that is kept
  const std::unique_ptr<storage::File> file_;
  std::vector<Tail> tails_;  // of what is not sealed
  Bytes end_ = 0;
  Bytes sealed_ = 0;
  std::int64_t records_ = 0;
  bool has_name_ = false;  // durably
};

struct UndoHead;

/// Reads an undo file.
class UndoReader {
 public:
  static Result<UndoReader> open(storage::Target& target, const UndoName& name);
  /// The next record; nothing at the end, where one that was never sealed counts for nothing. Code::corrupt
  /// if one that was is damaged.
  Result<std::optional<UndoRecord>> next();

 private:
  UndoReader(UndoName name, std::unique_ptr<storage::File> file, Bytes size)
      : name_(std::move(name)), file_(std::move(file)), size_(size) {}
  Result<std::optional<UndoHead>> head_at(Bytes at, bool tail);
  Result<std::optional<UndoHead>> find_tail();
  Result<std::optional<UndoRecord>> read(const UndoHead& head);
  [[nodiscard]] Status damaged(const std::string& what) const;

  UndoName name_;
  std::unique_ptr<storage::File> file_;
  Bytes size_ = 0;
  Bytes at_ = 0;
  std::int64_t records_ = 0;
};

/// Brings a file back to what a checkpoint has recorded of it: what was written over is put back from its
/// undo files, what lies behind is cut off. Code::corrupt, with EIO, if it holds less, or if one of those is
/// damaged.
Status bring_back(storage::Target& target, storage::File& file, const Position& from);
/// The text that lay beside a local file then, if it was replaced since.
Result<std::optional<std::string>> recorded_sidecar(storage::Target& target, const Position& from);

}  // namespace tailrace::files
