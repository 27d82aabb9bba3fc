// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/arrays/array.hpp"
#include "faces/files/mode.hpp"
#include "ground/journal/position.hpp"
#include "ground/journal/sidecar_file.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::files {

using journal::bring_back_sidecar;
using journal::remove_sidecar;
using journal::replace_sidecar;
using journal::sidecar_path;
using journal::sidecar_text;

/// A record of the distributed arrays that a rank wrote into its local file. It lies beside that file in
/// FILE.layout (docs/formats/local-sidecar.md), so that a reader with another layout is refused and never
/// gets wrong numbers.
struct Sidecar {
  struct Entry {
    Bytes bytes = 0;
    std::string array;  // type, layout, section, rank and ranks, as a text
    std::uint64_t digest = 0;
  };
  /// Ordered by offset in the file. The bytes at an offset belong to one array. Arrays of which the rank owns
  /// nothing have no bytes: several of them may lie at one offset, and their digests tell them apart.
  using Key = std::pair<Bytes, std::uint64_t>;
  bool exists = false;  // if not, nothing is known of the file's arrays
  std::map<Key, Entry> entries;

  /// Notes the array written at `offset`, in place of the one that was there.
  void note(Bytes offset, const Entry& entry);
  /// Notes that the bytes at `offset` belong to no array any more.
  void forget(Bytes offset);
  /// Returns the entry at `offset` that is equal to `wanted`, otherwise another entry there, or nullptr if
  /// there is none.
  [[nodiscard]] const Entry* find(Bytes offset, const Entry& wanted) const;
};

/// Returns the entry of an array that `rank` writes or reads.
Sidecar::Entry sidecar_entry(const arrays::Array& array, int rank, Bytes bytes);
/// Returns Code::layout if the array to be read is not the one that was written at `offset`; the text says
/// what was written there.
Status check_sidecar(const Sidecar& sidecar, Bytes offset, const Sidecar::Entry& wanted);
/// Returns the sidecar of `path`. Returns an empty one if the file is begun anew or the sidecar cannot be
/// read. `from` is what a checkpoint has recorded of a file that goes on there.
Sidecar read_sidecar(storage::Target& target, const std::string& path, const Mode& mode,
                     const std::optional<journal::Position>& from);
/// Writes the sidecar of `path` as a whole, or leaves the old one after an error. Writes nothing if there are
/// no entries and the file has had no sidecar.
Status write_sidecar(storage::Target& target, const std::string& path, const Sidecar& sidecar);

}  // namespace tailrace::files
