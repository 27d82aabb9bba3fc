// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/journal/position.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::journal {

// docs/formats/undo-files.md

/// No checkpoint is saved so often in a human life. A file of a higher generation is not ours: if it were
/// believed, one stray file would leave no number for any save to come.
constexpr std::int64_t most_generation = std::int64_t{1} << 40;

/// Returns the key of a file, made from its name.
std::uint64_t undo_key(const std::string& path);
std::string undo_path(const std::string& name, std::int64_t generation, std::uint64_t key,
                      std::int64_t number);
/// Local. Returns the undo files of the checkpoint `name`, the one kept last first.
Result<std::vector<UndoName>> find_undo_files(storage::Target& target, const std::string& name);
/// Returns those of `all` that bring a file back to what `generation` has recorded of it, in the same order.
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

/// Writes an undo file. An added record counts once it is sealed: only then may the file be written over.
class UndoWriter {
 public:
  /// N and the numbers of this writer's rank: `first`, and then every `step`-th one.
  struct Numbers {
    std::int64_t first = 0;
    std::int64_t step = 1;
  };
  /// Makes the first NAME.uGENERATION.KEY.N that is not there yet. Ranks that make some of one name and path
  /// need numbers of their own. Only those may read it who may read the kept file, which has these rights,
  /// from its first moment on; its owner alone if they are unknown.
  static Result<std::unique_ptr<UndoWriter>> create(storage::Target& target, const std::string& name,
                                                    std::int64_t generation, const std::string& path,
                                                    Numbers numbers,
                                                    const std::optional<storage::Rights>& rights);
  static Result<std::unique_ptr<UndoWriter>> create(storage::Target& target, const std::string& name,
                                                    std::int64_t generation, const std::string& path) {
    return create(target, name, generation, path, {0, 1}, {});
  }
  [[nodiscard]] const std::string& own_path() const { return name_.path; }
  Status add(UndoRecord::What what, Bytes offset, std::span<const std::byte> bytes);
  /// Makes the added records durable.
  Status seal();
  /// Gives back the room of records that cannot be sealed. It is the last call.
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
  std::vector<Tail> tails_;  // of the records that are not sealed
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
  /// Returns the next record, or nothing at the end; a record at the end that was never sealed counts for
  /// nothing. Returns Code::corrupt if a sealed record is damaged.
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

/// Brings a file back to what a checkpoint has recorded of it: bytes that were written over are put back from
/// its undo files, bytes behind are cut off. Returns Code::corrupt, with EIO, if the file holds less, or if
/// an undo file is damaged. `recorder` is who has recorded it, for the text of an error.
Status bring_back(storage::Target& target, storage::File& file, const Position& from,
                  std::string_view recorder = "the checkpoint that was loaded");
/// Returns the text that lay beside a local file then, if it was replaced since.
Result<std::optional<std::string>> recorded_sidecar(storage::Target& target, const Position& from);

}  // namespace tailrace::journal
