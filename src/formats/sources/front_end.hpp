// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/index/bytes/index_format.hpp"
#include "formats/sources/source.hpp"
#include "ground/storage/identity.hpp"
#include "ground/storage/target.hpp"

// The interface between sources::open (formats/opening) and the formats that it reads.
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

/// The sign by which a front end knows its files. `sources::open` asks the front end with the surest sign
/// first, and the first one that fits reads the file.
enum class Sign {
  index,      // the index of a stream: the file's bytes may look like those of any other format
  signature,  // bytes at known places, which a text cannot have
  word,       // letters, which may also stand in a name or text at the beginning of another file
  objects     // objects in a directory
};

/// How files of a format are recognised and read. A build without the format's library still recognises them,
/// so that it can say what it lacks: it has neither `scan` nor `make`.
struct FrontEnd {
  std::string_view name;
  Sign sign = Sign::signature;
  /// True if the first bytes, or the index, are those of the format. An error of storage counts as a fit:
  /// `scan` then meets the error again and returns it.
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

}  // namespace tailrace::sources
