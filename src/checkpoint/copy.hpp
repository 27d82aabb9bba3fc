// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/format.hpp"
#include "files/position.hpp"
#include "layout/transfer_map.hpp"
#include "storage/target.hpp"

namespace tailrace::checkpoint {

/// One saved generation, as its files tell of it: all but the elements themselves.
struct Copy {
  std::string path;
  Header header;
  Directory directory;
  std::vector<Table> tables;  // by part
  /// What brings the files back that it records: those of its generation, or of the oldest that one of these
  /// files needs, and newer ones. The newest first; for who loads it.
  std::vector<files::UndoName> undo = {};

  [[nodiscard]] std::int64_t generation() const { return header.id.generation; }
  /// Number of the item of that name, or -1.
  [[nodiscard]] int find(std::string_view name) const;
};

/// The file of a part: "run.0", or "run.0.r00003" in the local mode.
std::string part_path(const std::string& path, Mode mode, int part);

/// Local. The header of the copy at `path`. Code::io if there is no file, Code::corrupt if it is no
/// checkpoint.
Result<Header> read_header(storage::Target& target, const std::string& path);
/// Local. Header and directory, checked; no tables.
Result<Copy> read_directory(storage::Target& target, const std::string& path);
/// Local. Everything but the elements, checked: every part is there, of this save, and whole; every element
/// is in some part. Otherwise Code::corrupt or Code::io, with what is wrong with which file.
Result<Copy> read_copy(storage::Target& target, const std::string& path);

/// Local. Makes a copy that is whole, but was not committed by the run that saved it, durable, and says so in
/// its header. Only once all of its elements were read: those may be lost where the machine was.
Status commit_copy(storage::Target& target, Copy& copy);

ByteVector pack(const Copy& copy);
Result<Copy> unpack_copy(std::span<const std::byte> bytes);

/// Reads elements of one copy. Keeps its files open. One thread at a time.
class CopyReader {
 public:
  CopyReader(storage::Target& target, const Copy& copy) : target_(target), copy_(copy) {}

  /// Fills what `wanted` names of an item: its "file" is the item's bytes in the order of the global array,
  /// its memory starts at `base`. Every block that is touched is checked; Code::corrupt or Code::io
  /// otherwise.
  Status read(int item, const layout::TransferMap& wanted, std::byte* base);
  /// Reads all of one part and checks it.
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
  Result<storage::File*> file_of(int part);
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
