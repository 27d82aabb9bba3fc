// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

namespace tailrace::journal {

/// The parts of a name NAME.u7.0123456789abcdef.0 beside the copies of checkpoint NAME. That file keeps what
/// another file held before it was written over, since generation 7 has recorded it (undo_file.hpp).
struct UndoName {
  std::string path;
  std::int64_t generation = 0;
  std::uint64_t key = 0;  // of the other file
  std::int64_t number = 0;
  friend bool operator==(const UndoName&, const UndoName&) = default;
};

/// A save's choice for a file that was written over, so that cutting cannot bring it back: refuse, or rely on
/// undo files.
enum class Overwritten { refuse, journal };

/// Where a file stands, as a checkpoint records it: the file holds [0, size).
struct Position {
  std::string path;  // as it was opened; for a local file the name of this rank's file
  Bytes position = 0;
  Bytes size = 0;
  bool behind_end = false;  // a sequential Fortran file after ENDFILE, or after its end was read
  /// The first generation of the checkpoint for which overwritten bytes of the file are kept; 0 means the
  /// generation that records it. An earlier one is possible if nobody has opened the file since that
  /// generation was loaded.
  std::int64_t since = 0;
  /// In a loaded position: the undo files that bring the file back, the newest generation first.
  std::vector<UndoName> undo = {};
  friend bool operator==(const Position&, const Position&) = default;
};

/// Returns the oldest generation whose undo files are needed to bring the files back to what `generation` has
/// recorded.
std::int64_t oldest_undo(std::span<const Position> positions, std::int64_t generation);

/// The bytes are described in docs/formats/checkpoint.md.
void put_positions(Packer& out, std::span<const Position> positions);
/// Returns Code::corrupt for bytes that are no positions.
Result<std::vector<Position>> get_positions(Unpacker& in);

/// Returns true if two names mean one file as far as names tell: "log" and "./log" do.
bool is_same_path(const std::string& a, const std::string& b);

}  // namespace tailrace::journal
