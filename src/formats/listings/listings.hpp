// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/codec/listing.hpp"
#include "ground/storage/target.hpp"

// Listings of data files: files by which other tools find records (docs/formats/other-indexes.md). A listing
// can be made from the data file and the places of its committed records, which the index has. All functions
// are local and block on storage. The caller holds the lock of the data file.
namespace tailrace::listings {

/// The places of records, in the order of the file.
using Records = std::span<const storage::Range>;
/// Returns the places of all committed records. It is called only when they are needed.
using AllRecords = std::function<Result<std::vector<storage::Range>>()>;

/// True if there is no file with the name of the listing, or if this file is a listing of the data file,
/// which may be written anew at any time. A listing is recognised by its first line: it is the line of the
/// first record, or gives the record's place and length in the words of other tables. For kinds with an
/// enclosure, the mark of the tool is enough.
Result<bool> is_ours(storage::Target& target, const std::string& data_path, const codec::Listing& kind);

/// Returns Code::state, naming the file, if another file has the name of one of these listings. A file that
/// may not be read is accepted for a kind with an enclosure: it is left alone, and its Writer fails.
Status check_ours(storage::Target& target, const std::string& data_path,
                  const std::vector<codec::Listing>& kinds);

/// Returns success if each kind has a line for the records of a field, otherwise Code::format. `field` is a
/// field's number in the codec.
Status check_field(const codec::Codec& codec, int field, const std::vector<codec::Listing>& kinds);

/// Removes the file with the name of the listing, durably. If a listing with an enclosure cannot be removed,
/// this function and the functions below only log a warning: the tool sees that the listing is older than the
/// data file.
Status remove(storage::Target& target, const std::string& data_path, const codec::Listing& kind);

/// Removes all listings of the data file, durably, and unfinished ones (FILE.idx.new). Leaves files of
/// others.
Status remove_all(storage::Target& target, const std::string& data_path);

/// Removes the listings with an enclosure that are not in `kept`. Call it when a stream adds steps to the
/// data file without keeping them: a tool would find such a listing too old each time, and would not replace
/// it.
Status remove_others(storage::Target& target, const std::string& data_path,
                     const std::vector<codec::Listing>& kept);

/// Cuts all listings of the data file behind the lines of the records `kept`, durably. Call it before cutting
/// the index. A listing that this library has written must be cut: a failure is an error for all kinds.
Status cut_all(storage::Target& target, const std::string& data_path, Records kept);

/// Adds missing lines to the listings of the data file, durably. It makes no new listings, and leaves alone
/// those that describe a record in other words.
Status complete_all(storage::Target& target, const std::string& data_path, Records records);

/// One listing of an open data file.
class Writer {
 public:
  explicit Writer(codec::Listing kind) : kind_(std::move(kind)) {}
  [[nodiscard]] const codec::Listing& kind() const { return kind_; }
  /// Adds the lines of the records of a committed step, durably. Call it for each step. If the listing lacks
  /// lines of earlier records, it gets those, too.
  Status add(storage::Target& target, const std::string& data_path, Records step, const AllRecords& all);
  /// Adds missing lines, durably. Call it when the data file is complete. A listing with an enclosure is
  /// written even if nothing is missing: its tool compares ages, so the listing must be younger than the data
  /// file.
  Status finish(storage::Target& target, const std::string& data_path, const AllRecords& all);
  /// Compares all lines with the data file, and writes those that are missing or different, durably.
  Status complete(storage::Target& target, const std::string& data_path, const AllRecords& all);
  /// True if the listing is known to have the lines of all steps that were added.
  [[nodiscard]] bool is_complete() const { return told_ >= 0; }

 private:
  codec::Listing kind_;
  std::int64_t told_ = -1;  // number of records with a line; -1: not known
  Bytes size_ = 0;
};

}  // namespace tailrace::listings
