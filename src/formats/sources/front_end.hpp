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

// The interface between `open` and the formats that it reads.
namespace tailrace::sources {

/// Called by `scan`, now and then, with the bytes of the file that it has looked at so far, and the size of
/// the file.
using Progress = std::function<void(Bytes done, Bytes of)>;

/// An existing file or directory, as front ends get it.
struct Opening {
  std::shared_ptr<storage::Target> target;
  std::string path;
  std::shared_ptr<storage::File> file;  // null: the path is a directory
  Bytes size = 0;
  ByteVector head;  // the first bytes, at most `head_bytes`; empty for a directory
  std::optional<storage::Identity>
      identity;  // of the file, before it was opened; none outside of a file system
  /// True if any change of the file after `identity` was taken shows in its identity
  /// (storage::shows_changes).
  bool is_settled = false;
  /// The index of one of our own streams beside the file; null = there is none. Front ends return only
  /// records of the steps in it.
  std::shared_ptr<const streams::IndexContents> index;
  Progress progress;  // may be empty
};
inline constexpr Bytes head_bytes = 64;
/// The largest number of records that a file may have.
inline constexpr std::int64_t most_records = std::int64_t{1} << 24;

/// A format that can be read.
struct FrontEnd {
  std::string_view name;
  std::string_view
      why;  // the reason why this build lacks it, and `scan` and `make` are null; "" = it does not
  /// True if the first bytes, or the index, are those of the format.
  bool (*fits)(const Opening& opening) = nullptr;
  /// Local. Blocks on storage. Reads headers only, and returns the records: those in the index if there is
  /// one. Inventory::format is `name`. Errors begin with the path.
  Result<Inventory> (*scan)(const Opening& opening) = nullptr;
  /// Local. Returns the source of a file whose records are known. An older build may have kept the inventory,
  /// so `read` must not trust its places. A front end without `maker` ignores `inventory` for a file without
  /// an index: it blocks on storage and finds the records itself.
  Result<std::shared_ptr<const Source>> (*make)(const Opening& opening, Inventory inventory) = nullptr;
  /// Local. Returns name, version and settings of the library that `scan` uses. An inventory is kept together
  /// with this text, and used only as long as the text is the same. null: the records follow from a single
  /// header, so their inventory is not kept.
  std::string (*maker)() = nullptr;
};

/// Returns one line for each format that is read (src/formats/variables/front_ends.cpp).
std::span<const FrontEnd> front_ends();

/// Local. Blocks on storage. Opens the file or directory `path`, and reads the index beside it. Code::io if
/// there is nothing, or a pipe or a device; Code::corrupt if the index is damaged or lists more bytes than
/// the file has.
Result<Opening> look_at(const std::shared_ptr<storage::Target>& target, const std::string& path);

/// Local. Returns the front end that reads the file. Blocks on storage if it has to look for objects in a
/// directory. Code::format if no front end fits, Code::unsupported if this build lacks it.
Result<const FrontEnd*> front_end_of(const Opening& opening);

}  // namespace tailrace::sources
