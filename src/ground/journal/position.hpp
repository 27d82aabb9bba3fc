// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

namespace tailrace::journal {

/// The name of an undo file and its parts. The file NAME.u7.0123456789abcdef.0 lies beside the copies of
/// checkpoint NAME. It keeps bytes that another file held when generation 7 recorded it and that were
/// overwritten since (undo_file.hpp).
struct UndoName {
  std::string path;
  std::int64_t generation = 0;
  std::uint64_t key = 0;  // the key of the other file
  std::int64_t number = 0;
  friend bool operator==(const UndoName&, const UndoName&) = default;
};

/// The choice of a save for a file whose bytes were overwritten, so that cutting cannot bring it back:
/// refuse, or rely on undo files.
enum class Overwritten { refuse, journal };

/// The state of a file that a checkpoint records: it stands at `position`, and has the bytes [0, size).
struct Position {
  std::string path;  // as it was opened; of a local file, this rank's file
  Bytes position = 0;
  Bytes size = 0;
  bool behind_end = false;  // a sequential Fortran file after ENDFILE, or after its end was read
  /// The first generation of the checkpoint whose undo files keep overwritten bytes of this file. 0 means the
  /// generation that records the position. It can be an earlier one if nobody has opened the file since that
  /// generation was loaded.
  std::int64_t since = 0;
  /// In a position that was loaded: the undo files that bring the file back, newest generation first.
  std::vector<UndoName> undo = {};
  friend bool operator==(const Position&, const Position&) = default;
};

/// Returns the oldest generation whose undo files are needed to bring the files back to their state in
/// `generation`.
std::int64_t oldest_undo(std::span<const Position> positions, std::int64_t generation);

/// Packs positions in the form of docs/formats/checkpoint.md.
void put_positions(Packer& out, std::span<const Position> positions);
/// Reads packed positions. Returns Code::corrupt for other bytes.
Result<std::vector<Position>> get_positions(Unpacker& in);

/// True if two names mean the same file, as far as names tell: "log" and "./log" do.
bool is_same_path(const std::string& a, const std::string& b);

}  // namespace tailrace::journal
