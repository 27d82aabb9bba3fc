// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "faces/checkpoint/format.hpp"
#include "ground/journal/position.hpp"
#include "ground/layout/transfer_map.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::checkpoint {

/// One saved generation as its files describe it: everything but the elements.
struct Copy {
  std::string path;
  Header header;
  Directory directory;
  std::vector<Table> tables;  // of all parts, in order; on a rank that loads, only of the parts that it needs
  /// A program that loads the copy needs these undo files to restore the recorded files. They are those of
  /// the copy's generation, or of the oldest generation that a file needs, and all newer ones; the newest
  /// first.
  std::vector<journal::UndoName> undo = {};

  [[nodiscard]] std::int64_t generation() const { return header.id.generation; }
  /// Returns the number of the item of that name, or -1.
  [[nodiscard]] int find(std::string_view name) const;
};

/// Returns the path of a part's file: "run.0", or "run.0.r00003" in the local mode.
std::string part_path(const std::string& path, Mode mode, int part);

/// Returns the first bytes of the file, as far as the mark goes.
Result<std::string> file_beginning(storage::File& file);
[[nodiscard]] bool has_mark(std::string_view beginning);
/// Local. Returns the header of the copy at `path`. Returns Code::io if there is no file, and Code::corrupt
/// if it is no checkpoint.
Result<Header> read_header(storage::Target& target, const std::string& path);
/// Local. Reads and checks header and directory, but no tables.
Result<Copy> read_directory(storage::Target& target, const std::string& path);
/// Local. Reads and checks everything but the elements: every part is there, belongs to this save, and is
/// whole; every element is in some part. Otherwise returns Code::corrupt or Code::io, saying what is wrong
/// with which file.
Result<Copy> read_copy(storage::Target& target, const std::string& path);

/// Local. Makes durable what the system has of the file at `path`.
Status sync_file(storage::Target& target, const std::string& path);
/// Local. Makes durable a copy that is whole but was not committed by the run that saved it, and says so in
/// its header. Call it only once all of its elements were read: they may be lost if the machine lost power.
Status commit_copy(storage::Target& target, Copy& copy);

/// Packs the copy without its tables.
ByteVector pack(const Copy& copy);
Result<Copy> unpack_copy(std::span<const std::byte> bytes);

/// Reads parts and elements of one copy. Keeps its files open. One thread at a time.
class CopyReader {
 public:
  /// `copy` must outlive this.
  CopyReader(storage::Target& target, const Copy& copy) : target_(target), copy_(copy) {}
  /// `file` is the copy's file, open for reading.
  CopyReader(storage::Target& target, const Copy& copy, std::unique_ptr<storage::File> file)
      : CopyReader(target, copy) {
    files_[copy.path] = std::move(file);
  }

  /// Reads the places of `count` parts, beginning with part `first`.
  Result<std::vector<PartPlace>> places(std::int32_t first, std::int32_t count);
  /// Reads and checks the table of a part. Does not check it against the tables of other parts.
  Result<Table> table(std::int32_t part, const PartPlace& place);
  /// Fills the elements of an item that `wanted` names. The "file" in `wanted` is the item's bytes in the
  /// order of the global array, its memory starts at `base`. Checks every block that it touches; returns
  /// Code::corrupt or Code::io otherwise. Looks for the elements in the tables that `copy` has.
  Status read(int item, const layout::TransferMap& wanted, std::byte* base);
  /// Reads all of one part, whose table `copy` has, and checks it.
  Status check(int part);

 private:
  struct Piece {
    Bytes global = 0;
    Bytes bytes = 0;
    Bytes packed = 0;
  };
  Status read_part_item(const Table& table, const PartItem& item, const layout::TransferMap& wanted,
                        std::byte* base);
  Status read_block(const Table& table, const PartItem& item, std::size_t block, std::span<std::byte> raw);
  Result<storage::File*> open(const std::string& path);
  [[nodiscard]] std::string name_of_block(const Table& table, const PartItem& item, std::size_t block) const;

  storage::Target& target_;
  const Copy& copy_;
  std::map<std::string, std::unique_ptr<storage::File>> files_;
  ByteVector block_;
  ByteVector stored_;
  ByteVector scratch_;
  std::vector<Piece> pieces_;
};

}  // namespace tailrace::checkpoint
