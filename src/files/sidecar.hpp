// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "arrays/array.hpp"
#include "files/mode.hpp"
#include "files/position.hpp"
#include "storage/target.hpp"

namespace tailrace::files {

using arrays::Array;
using arrays::ArrayPlan;
using arrays::Direction;

/// What a rank wrote of distributed arrays into its local file, beside it in FILE.layout
/// (docs/formats/local-sidecar.md), so that a reader with another layout is refused and never gets wrong
/// numbers.
struct Sidecar {
  struct Entry {
    Bytes bytes = 0;
    std::string array;  // type, layout, section, rank and ranks, as a text
    std::uint64_t digest = 0;
  };
  /// By offset in the file. Bytes are of one array; but where a rank owns nothing of an array, more of them
  /// lie at one offset, and these are told apart by their digests.
  using Key = std::pair<Bytes, std::uint64_t>;
  bool exists = false;  // a file without one was not written by us: nothing is known of it
  std::map<Key, Entry> entries;

  /// What was written at `offset`, in place of the array that was there.
  void note(Bytes offset, const Entry& entry);
  /// The bytes at `offset` are of no array any more.
  void forget(Bytes offset);
  /// What was written at `offset` like `wanted`, otherwise something else that was, or nullptr.
  [[nodiscard]] const Entry* find(Bytes offset, const Entry& wanted) const;
};

std::string sidecar_path(const std::string& path);
/// What lies beside `path`; empty if nothing does.
Result<std::string> sidecar_text(storage::Target& target, const std::string& path);
/// Brings back what lay beside a file that goes on, if it was replaced since a checkpoint recorded it.
Status bring_back_sidecar(storage::Target& target, const Position& from);
/// The entry of an array that `rank` writes or reads.
Sidecar::Entry sidecar_entry(const Array& array, int rank, Bytes bytes);
/// Code::layout telling what was written at `offset` if that is not what is to be read now.
Status check_sidecar(const Sidecar& sidecar, Bytes offset, const Sidecar::Entry& wanted);
/// What lies beside `path`; nothing for a file that is begun anew, or where it cannot be read. `from`: of a
/// file that goes on there, what a checkpoint has recorded.
Sidecar read_sidecar(storage::Target& target, const std::string& path, const Mode& mode,
                     const std::optional<Position>& from = {});
/// Of a file that holds no arrays any more; also of what a process that was killed has left of one.
Status remove_sidecar(storage::Target& target, const std::string& path);
/// Writes the sidecar of `path` as a whole, or leaves the old one; without entries there is none.
Status write_sidecar(storage::Target& target, const std::string& path, const Sidecar& sidecar);

}  // namespace tailrace::files
