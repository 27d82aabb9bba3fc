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
  /// The undo files from which a program that loads the copy restores the recorded files, the newest first.
  /// They are those of the copy's generation, or of an older one if a file needs it, and of all newer
  /// generations.
  std::vector<journal::UndoName> undo = {};

  [[nodiscard]] std::int64_t generation() const { return header.id.generation; }
  /// Returns the number of the item of that name, or -1.
  [[nodiscard]] int find(std::string_view name) const;
};

/// Returns the path of a part's file: "run.0", or "run.0.r00003" in the local mode.
std::string part_path(const std::string& path, Mode mode, int part);

/// Returns the first bytes of the file up to the end of the mark, fewer if the file is shorter.
Result<std::string> file_beginning(storage::File& file);
/// True if the result of file_beginning() has the mark of a checkpoint's files.
[[nodiscard]] bool has_mark(std::string_view beginning);
/// Local. Returns the header of the copy at `path`. Returns Code::io if there is no file, and Code::corrupt
/// if it is no checkpoint.
Result<Header> read_header(storage::Target& target, const std::string& path);
/// Local. Reads and checks header and directory, but no tables.
Result<Copy> read_directory(storage::Target& target, const std::string& path);
/// Local. Reads and checks everything but the elements: every part is there, belongs to this save, and is
/// whole; every element is in some part. Otherwise returns Code::corrupt or Code::io; the text says what is
/// wrong with which file.
Result<Copy> read_copy(storage::Target& target, const std::string& path);

/// Local. Commits a copy that is whole, but that the run which saved it has not committed: makes its files
/// durable and then says so in its header. Call it only after all elements were read and checked: if the
/// machine has lost power, storage may lack some of them.
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
  /// Reads the elements of an item that `wanted` names into memory. File offsets in `wanted` count the item's
  /// bytes in the order of the global array; memory offsets count from `base`. Finds the elements by the
  /// tables that `copy` has. Checks every block that it reads: returns Code::corrupt if one is damaged, and
  /// Code::io if storage fails.
  Status read(int item, const layout::TransferMap& wanted, std::byte* base);
  /// Reads and checks all blocks of a part. `copy` must have the tables of all parts.
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
