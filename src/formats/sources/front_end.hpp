// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/index/index_format.hpp"
#include "formats/sources/source.hpp"
#include "ground/storage/identity.hpp"
#include "ground/storage/target.hpp"

// The seam between `open` and the formats that it reads.
namespace tailrace::sources {

/// Says how much of a file has been looked at.
using Progress = std::function<void(Bytes done, Bytes of)>;

/// A file that is there, as front ends get it.
struct Opening {
  std::shared_ptr<storage::Target> target;
  std::string path;
  std::shared_ptr<storage::File> file;  // null: a directory has the name
  Bytes size = 0;
  ByteVector head;  // the first bytes, at most `head_bytes`; none of a directory
  std::optional<storage::Identity>
      identity;  // of the file, before it was opened; none outside of a file system
  /// A change of the file after that moment shows in its identity (storage::shows_changes).
  bool is_settled = false;
  /// The index of one of our own streams beside the file; null = there is none. Only its steps may be told.
  std::shared_ptr<const streams::IndexContents> index;
  Progress progress;  // may be empty
};
inline constexpr Bytes head_bytes = 64;
/// The most records of a file.
inline constexpr std::int64_t most_records = std::int64_t{1} << 24;

/// A format that is read.
struct FrontEnd {
  std::string_view name;
  std::string_view
      why;  // the reason why this build lacks it, and `scan` and `make` are null; "" = it does not
  /// Returns true if the first bytes, or the index, are those of the format.
  bool (*fits)(const Opening& opening) = nullptr;
  /// Local. Blocks on storage. Finds the records, by the index if there is one. Reads headers only.
  /// Inventory::format is `name`. Errors begin with the path.
  Result<Inventory> (*scan)(const Opening& opening) = nullptr;
  /// Local. Makes the source of a file whose records are known. An inventory that was kept may be older than
  /// this build: `read` must not trust its places. A front end without `maker` blocks on storage, and finds
  /// the records of a file without an index once more itself, whatever inventory it gets.
  Result<std::shared_ptr<const Source>> (*make)(const Opening& opening, Inventory inventory) = nullptr;
  /// Local. Returns the library that `scan` asks, its version and settings: an inventory that was kept fits
  /// only the same. null: one header tells all records, so that inventories are not kept.
  std::string (*maker)() = nullptr;
};

/// Returns one line for each format that is read (src/formats/variables/front_ends.cpp).
std::span<const FrontEnd> front_ends();

/// Local. Blocks on storage. Opens what has the name, and reads the index beside it. Code::io if there is
/// nothing, or a pipe or a device; Code::corrupt if the index is damaged or says more than the file has.
Result<Opening> look_at(const std::shared_ptr<storage::Target>& target, const std::string& path);

/// Local. May look for objects in a directory, and blocks on storage then. Returns the front end that reads
/// the file. Code::format if there is none, Code::unsupported if this build lacks it.
Result<const FrontEnd*> front_end_of(const Opening& opening);

}  // namespace tailrace::sources
