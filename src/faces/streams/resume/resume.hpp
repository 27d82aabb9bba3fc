// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/operations/interval.hpp"
#include "formats/index/index.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/uuid.hpp"
#include "ground/storage/target.hpp"

// Makes a stream go on exactly where a checkpoint has recorded it. docs/design/007-restart.md says why it is
// done like this.
namespace tailrace::streams {

/// A step that could not be written. The files lack it for good, unless an earlier run had published a file
/// that has it.
struct FailedStep {
  std::int64_t step = 0;  // number in the stream, counted from its very first run
  std::int64_t lead = 0;
  std::string text;
  friend bool operator==(const FailedStep&, const FailedStep&) = default;
};

/// An interval of a stream with interval= that is not complete.
struct OpenInterval {
  /// A field in it. The accumulated values are items of the checkpoint.
  struct Field {
    std::string name;
    std::int32_t operation = 0;  // operations::Operation
    std::int64_t puts = 0;       // how often it was put in the interval
    std::uint64_t leads = 0;     // checksum of the leads of these puts
    std::string type;            // name of its elements' type
    std::vector<Index> shape;    // of its records
    std::string levels;          // type and values of its levels, in the order of the array
    std::string missing;         // its missing value; "" = none
    friend bool operator==(const Field&, const Field&) = default;
  };
  /// An error that was kept for the end of the interval: no run may write values of this interval.
  struct Failure {
    Code code = Code::ok;
    std::int64_t operation = -1;  // of the cause
    std::int32_t rank = -1;       // of the cause
    std::string text;
    friend bool operator==(const Failure&, const Failure&) = default;
  };
  std::int64_t begin = 0;  // lead at which it began
  std::int64_t lead = 0;   // of its last step so far
  std::vector<Field> fields;
  operations::IntervalLength length;
  std::optional<Failure> failure = std::nullopt;

  void pack(Packer& out) const;
  static OpenInterval unpack(Unpacker& in);
  friend bool operator==(const OpenInterval&, const OpenInterval&) = default;
};

/// The place where a stream stands, as the program sees it: behind the last step that it has ended. Steps
/// within an interval count as part of the step that completes it.
struct Position {
  std::string pattern;
  Uuid run;                              // the run in the stream's indexes
  std::int64_t steps = 0;                // number of steps ended so far, failed ones too
  std::optional<std::int64_t> lead;      // of the last step
  std::optional<std::int64_t> put_lead;  // of the last step that did not fail and to which this rank put
  std::vector<FailedStep> failed;        // those known so far, by their numbers
  std::optional<OpenInterval> interval = std::nullopt;  // begun behind the last step
  TimeAxis time{};                                      // what leads count

  [[nodiscard]] ByteVector pack() const;
  /// Returns Code::corrupt for bytes that are no position, and Code::unsupported for those of a later
  /// version. Allocates no more than a few times what it is given.
  static Result<Position> unpack(std::span<const std::byte> bytes);
  friend bool operator==(const Position&, const Position&) = default;
};

/// Returns "lead 43200 s (12 steps)" or "time 0.5 s (1 step)", for people.
std::string text_of(const Position& position);

/// A position, and the files on which it relies. The ledger of a stream that continues needs both, besides
/// the stream's definition.
struct Resuming {
  Position position;
  std::string path;                   // the file of the last step that was ended; "" = there was none
  std::optional<std::int64_t> needs;  // `path` must have this lead: the step was durable
  std::string before;                 // the last file with a step that did not fail, if it is not `path`

  [[nodiscard]] bool has_passed(std::int64_t lead) const { return position.lead && lead <= *position.lead; }
};

/// One of the two pairs of data and index that a file may have.
struct Pair {
  IndexContents contents;
  bool again = false;  // the second one
};

/// Returns true if a data file and its index are there.
Result<bool> pair_exists(storage::Target& target, const std::string& data_path);

/// Compares the header of an index with that of the stream. Returns Code::state, naming the first difference,
/// if format, base time, calendar, member or fields differ, or if the run differs and `any_run` is false.
Status check_same_stream(const std::string& path, const IndexHeader& found, const IndexHeader& now,
                         bool any_run);

/// Returns the pair in which a run goes on that continues from a checkpoint: the one with the steps that the
/// checkpoint has recorded. If both pairs have them it is the second one, the younger. Returns none if no
/// step is needed and there is no pair of the run. `now` is the stream's definition; if it has no fields (a
/// stream that is closed at once), fields are not compared. `any_run`: existing=continue goes on with files
/// of other runs. Returns Code::corrupt, saying what the first pair lacks, if neither has the steps, and
/// Code::state if the file is another stream's.
Result<std::optional<Pair>> recorded_pair(storage::Target& target, const std::string& data_path,
                                          const IndexHeader& now, const Resuming& resuming, bool any_run);

/// Changes nothing. Looks at the data file `data_path` and the index beside it. Returns Code::corrupt if they
/// lack a step or bytes that the checkpoint has recorded; the text says what is missing.
Status check_first_pair(storage::Target& target, const std::string& data_path, const Resuming& resuming);

// The second pair.
//
// A published file is never written to again: its name always shows a whole file. A run that must write steps
// of a published file once more writes them to a second pair: a data file called again_path(), with an index
// of its own. When the second pair is complete, it takes the place of the first.

/// Returns "fc+006.grib2.again" for "fc+006.grib2".
std::string again_path(const std::string& data_path);

/// Local, like all functions that follow; the caller holds the file's lock. Synchronises the index. It may
/// not be on storage yet, if the process that wrote it was killed before its fsync.
Status make_index_durable(storage::Target& target, const std::string& data_path);

/// Opens a pair, first or second, for more steps. Cuts it back to its last committed step before, and to
/// `through_lead`.
Result<IndexWriter> reopen_pair(storage::Target& target, const std::string& data_path,
                                std::optional<std::int64_t> through_lead);

/// Completes a replace_by_again that a crash has interrupted between its two renames: the data have their new
/// name, the index has not. Renames an index that has the old name of an earlier Tailrace: the other
/// functions for the file rely on today's name.
Status end_replacing(storage::Target& target, const std::string& data_path);

/// Removes the second pair, if there is any. Durable on return.
Status discard_again(storage::Target& target, const std::string& data_path);

/// Makes an empty second pair. Makes the published pair durable first: while there is a second pair, the
/// first one is whole.
Result<IndexWriter> begin_again(storage::Target& target, const std::string& data_path,
                                const IndexHeader& header);

/// Makes a second pair with the first `steps` steps of the published one.
Result<IndexWriter> copy_again(storage::Target& target, const std::string& data_path,
                               const IndexContents& published, std::size_t steps);

/// Changes nothing. Returns the pair in which a run without a checkpoint goes on: the one whose steps reach
/// the later lead. Returns Code::state if this is the second pair, and it is of another run or stream than
/// the first. Returns Code::corrupt if this is the first pair, and its data lack bytes that the steps of the
/// second one may replace.
Result<Pair> pair_without_checkpoint(storage::Target& target, const std::string& data_path);

/// Puts the second pair in the first one's place if `again_holds`; otherwise removes it.
Status settle_again(storage::Target& target, const std::string& data_path, bool again_holds);

/// Returns true if the published pair is whole and holds each step of the second one, with the same bytes.
/// The published pair may hold more steps: a run that ends early has not come to them.
Result<bool> first_holds_again(storage::Target& target, const std::string& data_path);

/// Gives the second pair the first one's names: the data, then the index.
Status replace_by_again(storage::Target& target, const std::string& data_path);

}  // namespace tailrace::streams
