// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace tailrace::files {

/// A file NAME.u7.0123456789abcdef.0 beside the copies of checkpoint NAME: what another file held before it
/// was written over, since generation 7 has recorded it (undo_file.hpp).
struct UndoName {
  std::string path;
  std::int64_t generation = 0;
  std::uint64_t key = 0;  // of the other file
  std::int64_t number = 0;
  friend bool operator==(const UndoName&, const UndoName&) = default;
};

/// What a save does where a file was written over, so that cutting cannot bring it back: it refuses, or
/// relies on undo files.
enum class Overwritten { refuse, journal };

/// Where a file stands, as a checkpoint records it: what it holds is [0, size).
struct Position {
  std::string path;  // as it was opened; of a local file that of its rank
  Bytes position = 0;
  Bytes size = 0;
  bool behind_end = false;  // a sequential Fortran file after ENDFILE, or after its end was read
  /// The generation of the checkpoint since which its bytes are kept where they are written over; 0: that
  /// which records it. An earlier one where nobody has opened the file since that was loaded.
  std::int64_t since = 0;
  /// Of one that was loaded: the undo files that bring it back, the newest generation first.
  std::vector<UndoName> undo = {};
  friend bool operator==(const Position&, const Position&) = default;
};

/// The oldest generation whose undo files it takes to bring them back to what `generation` has recorded.
std::int64_t oldest_undo(std::span<const Position> positions, std::int64_t generation);

/// docs/formats/checkpoint.md has the bytes.
void put_positions(Packer& out, std::span<const Position> positions);
/// Code::corrupt for bytes that are none.
Result<std::vector<Position>> get_positions(Unpacker& in);

/// Whether two names mean one file as far as names tell: "log" and "./log" do.
bool is_same_path(const std::string& a, const std::string& b);

}  // namespace tailrace::files
