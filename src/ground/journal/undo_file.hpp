// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/journal/position.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::journal {

// The format is in docs/formats/undo-files.md.

/// The highest generation that is believed. No checkpoint is saved so often in a human life, so a file of a
/// higher generation is not the library's. If it were believed, later saves would find no higher number.
constexpr std::int64_t most_generation = std::int64_t{1} << 40;

/// Returns the key of a file, made from its name.
std::uint64_t undo_key(const std::string& path);
std::string undo_path(const std::string& name, std::int64_t generation, std::uint64_t key,
                      std::int64_t number);
/// Local. Returns the undo files of the checkpoint `name`, newest first.
Result<std::vector<UndoName>> find_undo_files(storage::Target& target, const std::string& name);
/// Returns those undo files of `all` that bring a file back to its state in `generation`, in the same order.
std::vector<UndoName> undo_files_of(const Position& file, std::int64_t generation,
                                    const std::vector<UndoName>& all);

/// One entry of an undo file.
struct UndoRecord {
  enum class What : std::int32_t { bytes, sidecar };
  What what = What::bytes;
  std::string path;  // the file whose bytes these are
  Bytes offset = 0;
  ByteVector bytes;
};

/// Writes an undo file. A record counts once seal() has returned OK: only then may the program's file be
/// overwritten.
class UndoWriter {
 public:
  /// The numbers N that this writer's rank may use: `first`, and then every `step`-th number.
  struct Numbers {
    std::int64_t first = 0;
    std::int64_t step = 1;
  };
  /// Makes NAME.uGENERATION.KEY.N with the first number N that is free. Ranks that make undo files of the
  /// same name and path need different numbers. The undo file is readable from its first moment only for
  /// those who may read the kept file. `rights` are the rights of the kept file; if they are unknown, only
  /// the owner may read the undo file.
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
  /// Makes the added records durable, so that they count.
  Status seal();
  /// Frees the room of records that could not be sealed. It is the last call.
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
  const std::string path_;  // the file whose bytes are kept
  const std::unique_ptr<storage::File> file_;
  std::vector<Tail> tails_;  // tails of records not sealed yet
  Bytes end_ = 0;
  Bytes sealed_ = 0;
  std::int64_t records_ = 0;
  bool has_name_ = false;  // the name is durable
};

struct UndoHead;

/// Reads an undo file.
class UndoReader {
 public:
  static Result<UndoReader> open(storage::Target& target, const UndoName& name);
  /// Returns the next record, or nothing at the end. A record at the end that was never sealed is ignored.
  /// Returns Code::corrupt if a sealed record is damaged.
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

/// Brings a file back to the state that a checkpoint has recorded: puts bytes back that were overwritten,
/// from the undo files, and cuts off bytes behind the recorded size. Returns Code::corrupt, with EIO, if the
/// file is shorter than recorded, or if an undo file is damaged. `recorder` names who has recorded the state,
/// for texts of errors.
Status bring_back(storage::Target& target, storage::File& file, const Position& from,
                  std::string_view recorder = "the checkpoint that was loaded");
/// How a file differs from the state that a checkpoint has recorded.
struct Difference {
  Bytes size = 0;      // of the file now
  Bytes put_back = 0;  // how many bytes bring_back() would put back
  [[nodiscard]] Bytes behind(const Position& from) const { return std::max<Bytes>(0, size - from.size); }
};
/// Changes nothing. Returns how the file differs from its recorded state, or the error of bring_back() if it
/// cannot be brought back.
Result<Difference> difference(storage::Target& target, storage::File& file, const Position& from,
                              std::string_view recorder);
/// Passes to `body` the bytes that the undo files have of the file. Of one byte, the bytes that it had in the
/// recorded state come last.
Status for_each_kept(storage::Target& target, const Position& from,
                     const std::function<Status(Bytes offset, std::span<const std::byte> bytes)>& body);
/// Returns the sidecar that the local file had in the recorded state, if it was replaced since.
Result<std::optional<std::string>> recorded_sidecar(storage::Target& target, const Position& from);

}  // namespace tailrace::journal
