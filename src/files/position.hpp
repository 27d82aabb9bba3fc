// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace tailrace::files {

/// Where a file stands, as a checkpoint records it: what it holds is [0, size).
struct Position {
  std::string path;  // as it was opened; of a local file that of its rank
  Bytes position = 0;
  Bytes size = 0;
  bool behind_end = false;  // a sequential Fortran file after ENDFILE, or after its end was read
  friend bool operator==(const Position&, const Position&) = default;
};

/// docs/formats/checkpoint.md has the bytes.
void put_positions(Packer& out, std::span<const Position> positions);
/// Code::corrupt for bytes that are none.
Result<std::vector<Position>> get_positions(Unpacker& in);

/// Whether two names mean one file as far as names tell: "log" and "./log" do.
bool is_same_path(const std::string& a, const std::string& b);

}  // namespace tailrace::files
