// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "formats/index/index_format.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::streams {

/// Returns "fc+006.grib2.trx", the index beside a data file.
std::string index_path(const std::string& data_path);
/// Returns "fc+006.grib2.idx", the old name of the index. Other programs keep inventories under this name.
std::string old_index_path(const std::string& data_path);
/// Returns "fc+006.grib2.refs.json", the reference file beside a data file.
std::string references_path(const std::string& data_path);
/// Returns "fc+006.grib2.lock". A process that writes or repairs the pair holds Target::lock of this file.
std::string lock_path(const std::string& data_path);

/// Local. Returns true if the file is there and begins as an index does, whatever follows.
Result<bool> is_index(storage::Target& target, const std::string& path);

/// Local. Returns where the index of a data file lies: under today's name, or under the old one if only that
/// is there and begins as an index does. Returns today's name if there is none. Returns Code::state if both
/// are indexes.
Result<std::string> find_index(storage::Target& target, const std::string& data_path);

/// Local; the caller holds the lock. Afterwards the index, if there is any, is at index_path. Any other file
/// with the old name is left alone. Returns Code::state if both are indexes.
Status rename_old_index(storage::Target& target, const std::string& data_path);

/// Local. Reads and validates an index. Returns Code::io if there is none, and the errors of decode_index,
/// with the path.
Result<IndexContents> load_index(storage::Target& target, const std::string& path);

struct Reopen {
  std::optional<std::int64_t> through_lead;  // keep only the steps up to this lead: a restart goes on from it
  bool force = false;  // give up committed steps that are damaged; without it they are an error
};

struct Recovered {
  IndexContents contents;     // what was kept
  std::size_t steps_cut = 0;  // whole steps that were dropped: behind through_lead, or by force
  Bytes index_bytes_cut = 0;
  Bytes data_bytes_cut = 0;
};

/// Returns where the records of the steps lie.
std::vector<storage::Range> ranges_of(std::span<const IndexStep> steps);

/// Local; the caller holds the lock. Cuts index and data back to the last committed step (and to
/// `options.through_lead`), the index first, and fsyncs both. If it cuts committed steps it first removes the
/// reference file and the lines of listings, which may tell of them. Afterwards the data file ends where its
/// last step ends. The index is closed if it was closed before and no step was cut: a file that needs an
/// ending (see ending.hpp) keeps it then, and loses it otherwise. Returns Code::corrupt, with nothing
/// changed, if committed steps are damaged or the data file is shorter than they say and force is off, and
/// Code::unsupported likewise if this build cannot make the ending that a cut would take away.
Result<Recovered> recover(storage::Target& target, const std::string& data_path, const Reopen& options = {});

/// Local. Removes an old index before its data file is replaced: from then on nothing in the file counts as
/// committed.
Status remove_index(storage::Target& target, const std::string& data_path);

/// The writing end of one index. Local and not thread-safe; the caller holds the lock. The data of a step
/// must be fsync'd before the step is appended. The step is durable once sync() has returned success.
class IndexWriter {
 public:
  /// Makes a new index, durable on return. It is written under another name and renamed, so that an index
  /// exists whole or not at all.
  static Result<IndexWriter> create(storage::Target& target, const std::string& path,
                                    const IndexHeader& header);
  /// Validates the index, cuts off a torn tail and a closing record, and continues. It treats the index
  /// alone: recover() cuts the data too and comes first.
  static Result<IndexWriter> open_existing(storage::Target& target, const std::string& path);

  /// Writes the step with one write. Returns Code::argument if the step cannot follow, and Code::state if the
  /// file at the path has become another run's or was changed by another writer. After a failed write the
  /// same or another step may be appended in its place.
  Status append(const IndexStep& step);
  /// Returns Code::state if the file at the path has become another run's, or was changed by another writer.
  Status check_owner();
  /// Says that no step follows: the file was rolled over or the stream closed.
  Status append_closed();
  /// Makes the records durable. After a failed sync everything since the last good one is taken back, so that
  /// the index never tells a step that failed. If that fails too, lost() says why, and nothing may be
  /// appended or cut any more.
  Status sync();
  Status close();
  [[nodiscard]] const Status& lost() const { return lost_; }

  /// Returns the last step appended or found, without its records, or nullptr if there is none yet.
  [[nodiscard]] const IndexStep* last() const { return written_.last ? &*written_.last : nullptr; }
  [[nodiscard]] Bytes data_end() const { return written_.last ? written_.last->end : header_.data_begin; }
  [[nodiscard]] std::int64_t steps() const { return written_.steps; }
  [[nodiscard]] const IndexHeader& header() const { return header_; }

 private:
  IndexWriter(storage::Target& target, std::string path, std::unique_ptr<storage::File> file,
              IndexHeader header)
      : target_(&target), path_(std::move(path)), file_(std::move(file)), header_(std::move(header)) {}
  Status write(const ByteVector& record);
  Status take_back();

  storage::Target* target_;
  std::string path_;
  std::unique_ptr<storage::File> file_;
  IndexHeader header_;
  bool closed_ = false;
  bool dirty_tail_ = false;  // a failed write may have left bytes behind the last record
  Status lost_;
  struct State {
    IndexMark mark;
    std::optional<IndexStep> last;
    std::int64_t steps = 0;
  } written_, synced_;
};

}  // namespace tailrace::streams
