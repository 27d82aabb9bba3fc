// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/codec/listing.hpp"
#include "ground/storage/target.hpp"

// Listings of data files: files by which other tools find records (docs/formats/other-indexes.md). A listing
// follows from the data file and from the places of its committed records, which the index has. All functions
// are local, and the caller holds the lock of the data file.
namespace tailrace::listings {

/// The places of records, in the order of the file.
using Records = std::span<const storage::Range>;
/// Returns the places of all committed records. Called only if they are needed.
using AllRecords = std::function<Result<std::vector<storage::Range>>()>;

/// Returns true if there is no listing, or one of this data file: its first line is that of the file's first
/// record, or gives that place and length in the words of other tables. Such a listing can be written anew at
/// any time. Of a kind with an enclosure, any file with the mark of its tool is one.
Result<bool> is_ours(storage::Target& target, const std::string& data_path, const codec::Listing& kind);

/// Returns Code::state, naming the file, if another file has the name of one of these listings. One of a kind
/// with an enclosure that may not be read is none: it is left alone, and its Writer fails.
Status check_ours(storage::Target& target, const std::string& data_path,
                  const std::vector<codec::Listing>& kinds);

/// Returns Code::format if the line of a field's records is not known. `field` is a number of the codec.
Status check_field(const codec::Codec& codec, int field, const std::vector<codec::Listing>& kinds);

/// Removes whatever has the name of the listing, durably. Here and below, a listing of a kind with an
/// enclosure that cannot be removed gets a warning and stays: its tool finds that it is too old.
Status remove(storage::Target& target, const std::string& data_path, const codec::Listing& kind);

/// Removes all listings of the data file, durably, and the unfinished ones (FILE.idx.new). Files of others
/// stay.
Status remove_all(storage::Target& target, const std::string& data_path);

/// Removes the listings that are as good as gone when a stream that does not keep them goes on with the data
/// file: their tool would find each of them too old, and make no other one.
Status remove_others(storage::Target& target, const std::string& data_path,
                     const std::vector<codec::Listing>& kept);

/// Cuts all listings of the data file behind the lines of these records, durably, before the index loses the
/// rest. One that this library has written and that cannot be cut is an error whatever its kind.
Status cut_all(storage::Target& target, const std::string& data_path, Records kept);

/// Adds the lines that the listings of the data file lack, durably. Listings that are not there stay away,
/// and those that tell of a record in other words stay as they are.
Status complete_all(storage::Target& target, const std::string& data_path, Records records);

/// One listing of an open data file.
class Writer {
 public:
  explicit Writer(codec::Listing kind) : kind_(std::move(kind)) {}
  [[nodiscard]] const codec::Listing& kind() const { return kind_; }
  /// Adds the lines of a step's records, which was committed, durably. Called for each step: if the listing
  /// lacks lines of earlier records it gets those, too.
  Status add(storage::Target& target, const std::string& data_path, Records step, const AllRecords& all);
  /// Gives the listing the lines that it lacks, durably. Called when the data file is complete: for a tool
  /// that compares ages the listing is written last.
  Status finish(storage::Target& target, const std::string& data_path, const AllRecords& all);
  /// Compares all lines, and gives the listing those that it lacks, durably.
  Status complete(storage::Target& target, const std::string& data_path, const AllRecords& all);
  /// Returns true if the listing is known to have the lines of all steps that were added.
  [[nodiscard]] bool is_complete() const { return told_ >= 0; }

 private:
  codec::Listing kind_;
  std::int64_t told_ = -1;  // records whose lines it has; -1: not known
  Bytes size_ = 0;
};

}  // namespace tailrace::listings
