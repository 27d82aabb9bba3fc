// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/calendar.hpp"
#include "ground/base/status.hpp"
#include "ground/base/time_axis.hpp"
#include "ground/base/types.hpp"
#include "ground/base/uuid.hpp"

// The bytes of an index file, as docs/formats/index.md defines them. Nothing here touches a file.
namespace tailrace::streams {

/// Which part of the program's array the records of a field hold: of each dimension the elements start, start
/// + stride, ..., the last of them before `stop`. Slowest dimension first.
struct IndexSection {
  std::vector<Index> whole;  // shape of the array; empty: the records hold all of it
  std::vector<Index> start;
  std::vector<Index> stop;
  std::vector<Index> stride;
  [[nodiscard]] bool is_given() const { return !whole.empty(); }
  friend bool operator==(const IndexSection&, const IndexSection&) = default;
};

/// The facts about a field that a reader needs to understand its records.
struct IndexField {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<Index> shape;  // of one record, slowest dimension first
  std::string level_type = "surface";
  std::vector<double> levels{0};
  IndexSection section{};
  friend bool operator==(const IndexField&, const IndexField&) = default;
};

/// The header of an index: facts about the whole data file.
struct IndexHeader {
  Uuid run;
  std::string format;
  DateTime base;
  Calendar calendar = Calendar::proleptic_gregorian;
  std::optional<int> member;
  Bytes data_begin = 0;  // first byte of the first step
  std::vector<IndexField> fields;
  TimeAxis time{};
  friend bool operator==(const IndexHeader&, const IndexHeader&) = default;
};

/// The place of one record in the data file.
struct IndexRecord {
  std::int32_t field = 0;  // index into IndexHeader::fields
  std::int32_t level = 0;  // index into IndexField::levels
  Bytes offset = 0;
  Bytes length = 0;
  friend bool operator==(const IndexRecord&, const IndexRecord&) = default;
};

/// One committed step: its records lie in [begin, end) of the data file, in the order of their offsets.
struct IndexStep {
  std::int64_t step = 0;  // number in the stream, rising
  std::int64_t lead = 0;  // on IndexHeader::time, never falling
  Bytes begin = 0;        // where the step before ended
  Bytes end = 0;
  std::vector<IndexRecord> records;
  friend bool operator==(const IndexStep&, const IndexStep&) = default;
};

/// Ties a record to all records before it, so that a lost or replaced record shows.
struct IndexChain {
  std::uint64_t file = 0;      // checksum of the header; seeds each record's checksum
  std::uint64_t previous = 0;  // checksum of the record before, or of the header if there is none
  std::int64_t sequence = 0;   // number of the next record in this index
};

/// A position behind a whole record, and the chain at this position.
struct IndexMark {
  Bytes position = 0;
  IndexChain chain;
};

enum class IndexTail {
  none,  // every byte belongs to a whole record
  torn,  // the last record is incomplete; opening the index cuts it off
  /// Committed steps were harmed after they were written: whole records follow bytes that are none, a record
  /// contradicts an earlier one, or bytes follow the closing record.
  damaged,
};

/// The header of an index, and its steps up to the first damage.
struct IndexContents {
  IndexHeader header;
  std::vector<IndexStep> steps;
  std::vector<IndexMark> marks;  // [0] behind the header, [i + 1] behind steps[i]
  bool closed = false;           // the stream said that no step follows
  IndexTail tail = IndexTail::none;
  std::string tail_text;  // what is wrong with the tail, for an error's text

  /// Returns the end of the first `count` steps in the data file.
  [[nodiscard]] Bytes end_of(std::size_t count) const {
    return count == 0 ? header.data_begin : steps[count - 1].end;
  }
  /// Returns the end of the last committed step in the data file.
  [[nodiscard]] Bytes data_end() const { return end_of(steps.size()); }
  /// Returns the number of steps with leads up to `lead`.
  [[nodiscard]] std::size_t steps_up_to(std::int64_t lead) const;
};

/// Returns success if readers accept the header, otherwise Code::argument with the reason.
Status check_header(const IndexHeader& header);
/// Returns success if `step` may follow `before` (nullptr: it is the first), otherwise Code::argument with
/// the reason.
Status check_step(const IndexHeader& header, const IndexStep* before, const IndexStep& step);

ByteVector encode_header(const IndexHeader& header);
ByteVector encode_step(const IndexStep& step, const IndexChain& chain);
/// Returns the record that closes an index whose steps end at `data_end`. It has kClosedBytes bytes.
ByteVector encode_closed(Bytes data_end, const IndexChain& chain);
/// Returns the chain behind `record`, which an encode_... above has made.
IndexChain next_chain(const IndexChain& before, std::span<const std::byte> record);
/// Returns the chain behind a header.
IndexChain first_chain(std::span<const std::byte> header);

/// Decodes an index. The bytes may be anything: the function never reads out of bounds and never allocates
/// more than a few times their number. Damage behind the header is no error: see IndexContents::tail.
/// Code::corrupt if the header is damaged; Code::unsupported for another version.
Result<IndexContents> decode_index(std::span<const std::byte> bytes);

/// Has the leads of an index count seconds. Code::unsupported, naming the first step, if a step is not at a
/// whole second after the base time.
Status count_seconds(IndexContents& contents);

/// The first bytes of an index of any version.
constexpr std::string_view kIndexMark = "TRLINDEX";
bool begins_as_index(std::span<const std::byte> bytes);

/// Returns the run that wrote an index, from its first kIndexPrefix bytes. Code::corrupt if they are not
/// those of an index.
Result<Uuid> decode_run(std::span<const std::byte> bytes);
constexpr Bytes kIndexPrefix = 32;
constexpr Bytes kClosedBytes = 40;

}  // namespace tailrace::streams
