// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "base/uuid.hpp"
#include "storage/target.hpp"
#include "streams/index.hpp"

// How a stream goes on exactly where a checkpoint has recorded it. Why it is done like this:
// docs/design/007-restart.md.
namespace tailrace::streams {

/// A step that could not be written. The files lack it for good, unless an earlier run had published one that
/// has it.
struct FailedStep {
  std::int64_t step = 0;  // number in the stream, counted from its very first run
  std::int64_t lead = 0;
  std::string text;
  friend bool operator==(const FailedStep&, const FailedStep&) = default;
};

/// Where a stream stands, as the program sees it: behind the last step that it has ended.
struct Position {
  std::string pattern;
  Uuid run;                              // what the stream's indexes carry
  std::int64_t steps = 0;                // ended so far, failed ones too
  std::optional<std::int64_t> lead;      // of the last of them
  std::optional<std::int64_t> put_lead;  // of the last of them that did not fail and that this rank put to
  std::vector<FailedStep> failed;        // as far as they are known, by their numbers

  [[nodiscard]] ByteVector pack() const;
  /// Code::corrupt for bytes that are none, Code::unsupported for those of a later version. Allocates no more
  /// than a few times what it is given.
  static Result<Position> unpack(std::span<const std::byte> bytes);
  friend bool operator==(const Position&, const Position&) = default;
};

/// "step 12, lead 43200 s", for people.
std::string text_of(const Position& position);

/// What the ledger of a stream that continues knows beside the stream's definition.
struct Resuming {
  Position position;
  std::string path;                   // the file of the last step that was ended; "" = there was none
  std::optional<std::int64_t> needs;  // this lead must be in that file: it was durable
  std::string before;                 // the last file in which a step did not fail, if that is another one

  [[nodiscard]] bool has_passed(std::int64_t lead) const { return position.lead && lead <= *position.lead; }
};

/// One of the two pairs of data and index that a file may have.
struct Pair {
  IndexContents contents;
  bool again = false;  // the second one
};

/// Whether a data file and its index are there.
Result<bool> pair_exists(storage::Target& target, const std::string& data_path);

/// Code::state if an index is another run's, unless `any_run`, or tells of other fields than `now`, naming
/// the first difference.
Status check_same_stream(const std::string& path, const IndexHeader& found, const IndexHeader& now,
                         bool any_run);

/// The pair in which a run goes on that continues from a checkpoint: the one that has the steps which the
/// checkpoint has recorded. Where both have them it is the second one, the younger. None if no step is needed
/// and there is no pair of the run. `now` is what the stream is defined as; without fields (a stream that is
/// closed at once) those are not compared. `any_run`: existing=continue goes on with files of other runs.
/// Code::corrupt, saying what is missing of the first pair, if neither has the steps; Code::state if the file
/// is another stream's.
Result<std::optional<Pair>> recorded_pair(storage::Target& target, const std::string& data_path,
                                          const IndexHeader& now, const Resuming& resuming, bool any_run);

/// Looks only. Code::corrupt, saying what is missing, if the first pair lacks a step or bytes that the
/// checkpoint has recorded.
Status check_first_pair(storage::Target& target, const std::string& data_path, const Resuming& resuming);

// The second pair.
//
// A file that was published is never written to again, and its name never shows anything but a whole file.
// Its steps are written once more under AGAIN_PATH, with an index of its own, and put in its place when that
// file is complete.

/// "fc+006.grib2.again"
std::string again_path(const std::string& data_path);

/// Local, like all that follows; the caller holds the file's lock. What was read of an index may not be on
/// storage yet: the process that wrote it was killed before its fsync.
Status make_index_durable(storage::Target& target, const std::string& data_path);

/// Ends what a crash may have left between the two renames of replace_by_again: the data have their new name,
/// the index has not. Gives indexes under the old name today's: what else is called for the file relies on
/// it.
Status end_replacing(storage::Target& target, const std::string& data_path);

/// Takes the second pair away, if there is any; durable on return.
Status discard_again(storage::Target& target, const std::string& data_path);

/// A second pair with nothing in it yet. The published one is made durable first: as long as there is a
/// second pair, the first one is whole.
Result<IndexWriter> begin_again(storage::Target& target, const std::string& data_path,
                                const IndexHeader& header);

/// A second pair with the first `steps` steps of the published one.
Result<IndexWriter> copy_again(storage::Target& target, const std::string& data_path,
                               const IndexContents& published, std::size_t steps);

/// The second pair that an earlier continuation has left, cut back to `lead`.
Result<IndexWriter> adopt_again(storage::Target& target, const std::string& data_path, std::int64_t lead);

/// Looks only. The pair in which a run goes on that has no checkpoint: the one that came further. Code::state
/// if that is the second one and it is not the first one's run.
Result<Pair> pair_without_checkpoint(storage::Target& target, const std::string& data_path);

/// The second pair takes the first one's place if `again_holds`; otherwise it is taken away.
Status settle_again(storage::Target& target, const std::string& data_path, bool again_holds);

/// Whether the published pair is whole and holds each step of the second one, with the same bytes. It may
/// hold more: a run that ends before its time has not come to them.
Result<bool> first_holds_again(storage::Target& target, const std::string& data_path);

/// The second pair takes the first one's names: the data, then the index.
Status replace_by_again(storage::Target& target, const std::string& data_path);

/// Number of steps with leads up to `lead`.
std::size_t steps_up_to(const IndexContents& contents, std::int64_t lead);

}  // namespace tailrace::streams
