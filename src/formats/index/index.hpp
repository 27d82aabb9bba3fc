// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "formats/index/bytes/index_format.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::streams {

/// Returns "fc+006.grib2.trx", the index beside a data file.
std::string index_path(const std::string& data_path);
/// Returns "fc+006.grib2.idx", the old name of the index. Other programs keep inventories under this name.
std::string old_index_path(const std::string& data_path);
/// Returns "fc+006.grib2.refs.json", the reference file beside a data file.
std::string references_path(const std::string& data_path);
/// Returns "fc+006.grib2.lock". A process that writes or repairs data file and index holds Target::lock of
/// this file.
std::string lock_path(const std::string& data_path);

/// Local. Blocks on storage. True if the file exists and begins as an index does, whatever follows.
Result<bool> is_index(storage::Target& target, const std::string& path);

/// Local. Blocks on storage. Returns the path of the index of a data file: the present name, or the old one
/// if only that exists and begins as an index does. Returns the present name if there is no index.
/// Code::state if both files are indexes.
Result<std::string> find_index(storage::Target& target, const std::string& data_path);

/// Local. Blocks on storage. The caller holds the lock. Moves an index with the old name to index_path.
/// Leaves any other file with the old name alone. Code::state if both files are indexes.
Status rename_old_index(storage::Target& target, const std::string& data_path);

/// Local. Blocks on storage. Reads and checks an index. Code::io if there is none, and the errors of
/// decode_index, with the path.
Result<IndexContents> load_index(storage::Target& target, const std::string& path);

struct Reopen {
  /// Keeps only the steps up to this lead: the restart continues from there.
  std::optional<std::int64_t> through_lead;
  /// Drops committed steps that are damaged; without it they are an error.
  bool force = false;
};

struct Recovered {
  IndexContents contents;     // the index as it is now
  std::size_t steps_cut = 0;  // committed steps dropped: behind through_lead, or by force
  Bytes index_bytes_cut = 0;
  Bytes data_bytes_cut = 0;
};

/// Local. Blocks on storage. Code::state, with both runs, if the index at the path is not that of this run.
Status check_run(storage::Target& target, const std::string& path, const Uuid& run);

/// Returns the places of all records of the steps.
std::vector<storage::Range> ranges_of(std::span<const IndexStep> steps);

/// Local. Blocks on storage. The caller holds the lock. Cuts the index and then the data back to the last
/// committed step (or to `options.through_lead`), and fsyncs each file that it cuts. Before it drops
/// committed steps it removes the reference file and the lines of listings, which may name them. A file that
/// was closed and loses no step stays closed and keeps its ending (see ending.hpp). Any other file is open
/// afterwards, and its data end where the last step ends. Code::corrupt, with nothing changed, if force is
/// off and committed steps are damaged or missing from the data file. Code::unsupported, with nothing
/// changed, if this build could not make the ending again that it would have to remove.
Result<Recovered> recover(storage::Target& target, const std::string& data_path, const Reopen& options = {});

/// Local. Blocks on storage. Removes an index, durably. Call it before replacing the data file: without an
/// index nothing in the file counts as committed.
Status remove_index(storage::Target& target, const std::string& data_path);

/// Adds steps to an index. All calls are local and block on storage. Not thread-safe. The caller holds the
/// lock, and fsyncs the data of a step before it appends the step. The step is durable once sync() has
/// returned success.
class IndexWriter {
 public:
  /// Makes a new index, durable on return. It is written under another name and renamed, so that readers find
  /// a whole index or none.
  static Result<IndexWriter> create(storage::Target& target, const std::string& path,
                                    const IndexHeader& header);
  /// Opens an existing index, checks it, and cuts off a torn tail and a closing record. It leaves the data
  /// file alone: call recover() first, which cuts that, too.
  static Result<IndexWriter> open_existing(storage::Target& target, const std::string& path);

  /// Adds a step with one write. Code::argument if the step cannot follow the last one. Code::state if the
  /// file at the path now belongs to another run or another writer has changed it. After a failed write the
  /// same step, or another one, may be appended.
  Status append(const IndexStep& step);
  /// Returns success if the file at the path is still this run's and only this writer has changed it,
  /// otherwise Code::state. The index is lost then for good: the data are another run's, and the caller must
  /// neither write nor cut them.
  Status check_owner();
  /// Adds the closing record, which says that no step follows: the file was rolled over or the stream closed.
  Status append_closed();
  /// Makes the records durable. If it fails, it removes everything since the last successful sync, so that
  /// the index never lists a step that failed. If removing fails, too, or another run has the index now,
  /// lost() says why, and nothing may be appended or cut any more.
  Status sync();
  Status close();
  [[nodiscard]] const Status& lost() const { return lost_; }

  /// Returns the last step, without its records, or nullptr if there is none yet.
  [[nodiscard]] const IndexStep* last() const { return written_.last ? &*written_.last : nullptr; }
  [[nodiscard]] Bytes data_end() const { return written_.last ? written_.last->end : header_.data_begin; }
  [[nodiscard]] std::int64_t steps() const { return written_.steps; }
  [[nodiscard]] const IndexHeader& header() const { return header_; }

 private:
  IndexWriter(storage::Target& target, std::string path, std::unique_ptr<storage::File> file,
              IndexHeader header)
      : target_(&target), path_(std::move(path)), file_(std::move(file)), header_(std::move(header)) {}
  Status write(const ByteVector& record);
  Status look_for_owner();
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
