// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "streams/index_format.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checksum.hpp"
#include "base/text.hpp"

namespace tailrace::streams {
namespace {

constexpr std::string_view kStepMark = "STEP";
constexpr std::string_view kClosedMark = "DONE";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kRecordPrefix = 24;               // mark, length, previous, sequence
constexpr std::size_t kStepFixed = kRecordPrefix + 40;  // step, lead, begin, end, count, zero
constexpr std::size_t kEntryBytes = 24;
constexpr std::size_t kClosedLength = kRecordPrefix + 8 + kChecksumBytes;
static_assert(kClosedLength == static_cast<std::size_t>(kClosedBytes));
constexpr std::size_t kMostRecords = 100'000'000;
constexpr std::size_t kMostText = 1 << 20;

/// Appends little-endian values, on any machine.
class LittleEndianPacker {
 public:
  template <typename T>
  requires std::is_integral_v<T> LittleEndianPacker& put(T value) {
    auto bits = static_cast<std::make_unsigned_t<T>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::byte>(bits & 0xFFU));
      if constexpr (sizeof(T) > 1) bits = static_cast<std::make_unsigned_t<T>>(bits >> 8);
    }
    return *this;
  }
  LittleEndianPacker& put(double value) { return put(std::bit_cast<std::uint64_t>(value)); }
  LittleEndianPacker& put_raw(std::string_view text) {
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  LittleEndianPacker& put_text(std::string_view text) {
    return put(static_cast<std::uint32_t>(text.size())).put_raw(text);
  }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  /// Writes the length, checksum included, at `position`, and the checksum behind everything.
  ByteVector seal(std::size_t length_position, std::uint64_t seed) {
    const auto length = static_cast<std::uint32_t>(bytes_.size() + kChecksumBytes);
    for (std::size_t i = 0; i < 4; ++i)
      bytes_[length_position + i] = static_cast<std::byte>((length >> (8 * i)) & 0xFFU);
    put(checksum(bytes_, seed));
    return std::move(bytes_);
  }

 private:
  ByteVector bytes_;
};

/// Reads little-endian values back. After the first value that does not fit, `ok()` is false and all further
/// ones are zero.
class LittleEndianUnpacker {
 public:
  explicit LittleEndianUnpacker(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_integral_v<T> T get() {
    if (!fits(sizeof(T))) return 0;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) bits |= std::to_integer<std::uint64_t>(rest_[i]) << (8 * i);
    rest_ = rest_.subspan(sizeof(T));
    return static_cast<T>(bits);
  }
  double get_real() { return std::bit_cast<double>(get<std::uint64_t>()); }
  std::string get_raw(std::size_t size) {
    if (!fits(size)) return {};
    std::string text(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return text;
  }
  std::string get_text() {
    const auto size = get<std::uint32_t>();
    return get_raw(size);
  }
  /// Reads a count of things that take at least `bytes` more each. A count that is too large is refused
  /// before anything is allocated.
  std::size_t get_count(std::size_t bytes) {
    const auto count = get<std::uint32_t>();
    return fits(std::size_t{count} * bytes) ? count : 0;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool finished() const { return ok_ && rest_.empty(); }

 private:
  bool fits(std::size_t bytes) {
    ok_ = ok_ && bytes <= rest_.size();
    return ok_;
  }
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

std::uint64_t stored_checksum(std::span<const std::byte> record) {
  return LittleEndianUnpacker(record.last(kChecksumBytes)).get<std::uint64_t>();
}

Status corrupt(std::string_view what) { return {Code::corrupt, cat("index: ", what)}; }

bool starts_with(std::span<const std::byte> bytes, std::string_view mark) {
  return bytes.size() >= mark.size() && std::memcmp(bytes.data(), mark.data(), mark.size()) == 0;
}

// Returns the bytes of the record with which `bytes` begin if its length and checksum are right, otherwise
// nothing.
std::span<const std::byte> whole_record(std::span<const std::byte> bytes, std::uint64_t file) {
  if (bytes.size() < kClosedLength || (!starts_with(bytes, kStepMark) && !starts_with(bytes, kClosedMark)))
    return {};
  const std::size_t length = LittleEndianUnpacker(bytes.subspan(4)).get<std::uint32_t>();
  if (length < kClosedLength || length > bytes.size()) return {};
  const auto record = bytes.first(length);
  return checksum(record.first(length - kChecksumBytes), file) == stored_checksum(record)
             ? record
             : std::span<const std::byte>();
}

// Returns true if a whole record of this file begins anywhere in `tail`.
bool holds_record(std::span<const std::byte> tail, std::uint64_t file) {
  for (std::size_t at = 0; at + kClosedLength <= tail.size(); ++at) {
    if (!whole_record(tail.subspan(at), file).empty()) return true;
  }
  return false;
}

IndexField decode_field(LittleEndianUnpacker& in) {
  IndexField field;
  field.name = in.get_text();
  field.type = static_cast<ElementType>(in.get<std::int32_t>());
  field.shape.resize(in.get_count(8));
  for (Index& extent : field.shape) extent = in.get<std::int64_t>();
  field.level_type = in.get_text();
  field.levels.resize(in.get_count(8));
  for (double& level : field.levels) level = in.get_real();
  return field;
}

Result<IndexHeader> decode_header(std::span<const std::byte> bytes) {
  LittleEndianUnpacker in(bytes.subspan(kIndexMark.size() + 8));
  IndexHeader header;
  for (std::uint8_t& byte : header.run.bytes) byte = in.get<std::uint8_t>();
  header.data_begin = in.get<std::int64_t>();
  const auto base = in.get<std::int64_t>();
  const auto calendar = in.get<std::int32_t>();
  const auto member = in.get<std::int32_t>();
  if (calendar < 0 || calendar > 2) return corrupt(cat("calendar number ", calendar, " does not exist"));
  header.calendar = static_cast<Calendar>(calendar);
  header.base = from_seconds(base, header.calendar);
  if (member >= 0) header.member = member;
  header.format = in.get_text();
  const std::size_t fields = in.get_count(20);
  for (std::size_t i = 0; i < fields && in.ok(); ++i) header.fields.push_back(decode_field(in));
  if (!in.finished()) return corrupt("the header's parts do not add up to its length");
  if (const Status status = check_header(header); !status.is_ok()) return corrupt(status.text());
  return header;
}

IndexStep decode_step(std::span<const std::byte> record) {
  LittleEndianUnpacker in(record.subspan(kRecordPrefix, record.size() - kRecordPrefix - kChecksumBytes));
  IndexStep step;
  step.step = in.get<std::int64_t>();
  step.lead = in.get<std::int64_t>();
  step.begin = in.get<std::int64_t>();
  step.end = in.get<std::int64_t>();
  const auto count = in.get<std::uint32_t>();
  in.get<std::uint32_t>();
  if (record.size() != kStepFixed + std::size_t{count} * kEntryBytes + kChecksumBytes) {
    step.step = -1;  // check_step will refuse it
    return step;
  }
  step.records.resize(count);
  for (IndexRecord& entry : step.records) {
    entry.field = in.get<std::int32_t>();
    entry.level = in.get<std::int32_t>();
    entry.offset = in.get<std::int64_t>();
    entry.length = in.get<std::int64_t>();
  }
  return step;
}

// Takes the whole record in. An error means that the record is sound in itself but cannot stand here.
Status take_record(std::span<const std::byte> record, IndexContents& contents, IndexChain& chain) {
  LittleEndianUnpacker in(record.subspan(8));
  const auto previous = in.get<std::uint64_t>();
  const auto sequence = in.get<std::int64_t>();
  if (previous != chain.previous || sequence != chain.sequence) {
    return corrupt(
        cat("record ", chain.sequence, " is missing or was replaced: another one stands in its place"));
  }
  if (starts_with(record, kClosedMark)) {
    if (in.get<std::int64_t>() != contents.data_end())
      return corrupt("the closing record disagrees with the last step");
    contents.closed = true;
  } else {
    IndexStep step = decode_step(record);
    const IndexStep* before = contents.steps.empty() ? nullptr : &contents.steps.back();
    if (const Status status = check_step(contents.header, before, step); !status.is_ok()) {
      return corrupt(cat("record ", chain.sequence, ": ", status.text()));
    }
    contents.steps.push_back(std::move(step));
  }
  chain = next_chain(chain, record);
  return {};
}

void judge_tail(std::span<const std::byte> tail, std::uint64_t file, IndexContents& contents) {
  if (tail.empty()) return;
  contents.tail_bytes = static_cast<Bytes>(tail.size());
  // Each record is fsync'd before the next is begun, so a crash can leave only the last one in pieces.
  const bool more = contents.closed || holds_record(tail, file);
  contents.tail = more ? IndexTail::damaged : IndexTail::torn;
  contents.tail_text =
      more ? cat("bytes ", contents.marks.back().position,
                 " and on are damaged, and committed steps or a closed file's end were among them")
           : cat("the last ", counted(tail.size(), "byte"), " are a record that was begun and not finished");
}

Result<std::size_t> header_length(std::span<const std::byte> bytes) {
  TR_TRY(decode_run(bytes).status());
  const std::size_t length = LittleEndianUnpacker(bytes.subspan(kIndexMark.size() + 4)).get<std::uint32_t>();
  if (length > bytes.size() || length < static_cast<std::size_t>(kIndexPrefix) + kChecksumBytes) {
    return corrupt(cat("the header has ", counted(length, "byte"), ", the file ", bytes.size()));
  }
  if (checksum(bytes.first(length - kChecksumBytes)) != stored_checksum(bytes.first(length))) {
    return corrupt("the header's checksum is wrong: its bytes were changed after they were written");
  }
  const auto version = LittleEndianUnpacker(bytes.subspan(kIndexMark.size())).get<std::uint32_t>();
  if (version != kVersion) {
    return Status(Code::unsupported,
                  cat("index: version ", version, ", this Tailrace reads version ", kVersion));
  }
  return length;
}

Status bad(std::string_view what) { return {Code::argument, std::string(what)}; }

Status check_field(const IndexField& field) {
  if (field.name.empty() || field.name.size() > kMostText) return bad("a field's name is empty or too long");
  if (size_of(field.type) == 0) return bad(cat("field \"", field.name, "\" has an unknown element type"));
  if (field.shape.empty() || field.levels.empty())
    return bad(cat("field \"", field.name, "\" has no shape or no levels"));
  Index elements = 1;
  for (const Index extent : field.shape) {
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) {
      return bad(cat("field \"", field.name, "\" has an extent of ", extent));
    }
  }
  return {};
}

}  // namespace

Status check_header(const IndexHeader& header) {
  if (header.data_begin < 0) return bad(cat("the data begin at ", header.data_begin, ", before the file"));
  if (header.format.empty() || header.format.size() > kMostText)
    return bad("the format's name is empty or too long");
  if (!is_valid(header.base, header.calendar)) return bad("the base time does not exist in its calendar");
  if (header.member && *header.member < 0) return bad(cat("member ", *header.member, " is below zero"));
  for (const IndexField& field : header.fields) TR_TRY(check_field(field));
  return {};
}

Status check_step(const IndexHeader& header, const IndexStep* before, const IndexStep& step) {
  const Bytes begin = before ? before->end : header.data_begin;
  const auto where = cat("step ", step.step, " (lead ", step.lead, " s)");
  if (step.step < 0 || (before && step.step <= before->step)) {
    return bad(cat(where, " does not follow step ", before ? before->step : -1));
  }
  if (before && step.lead < before->lead)
    return bad(cat(where, " goes back in time: the step before has lead ", before->lead, " s"));
  if (step.begin != begin || step.end < step.begin) {
    return bad(
        cat(where, " takes bytes ", step.begin, " to ", step.end, ", but the step before ended at ", begin));
  }
  if (step.records.size() > kMostRecords)
    return bad(cat(where, " has more than ", counted(kMostRecords, "record")));
  for (const IndexRecord& record : step.records) {
    if (record.field < 0 || static_cast<std::size_t>(record.field) >= header.fields.size()) {
      return bad(
          cat(where, " has a record of field ", record.field, ", the header names ", header.fields.size()));
    }
    const IndexField& field = header.fields[static_cast<std::size_t>(record.field)];
    if (record.level < 0 || static_cast<std::size_t>(record.level) >= field.levels.size()) {
      return bad(cat(where, " has level ", record.level, " of field \"", field.name, "\", which has ",
                     field.levels.size()));
    }
    // The order of the tests matters, because offset + length may not fit into 64 bits.
    if (record.length < 0 || record.offset < step.begin || record.offset > step.end ||
        record.length > step.end - record.offset) {
      return bad(cat(where, " has a record at ", record.offset, " of ", counted(record.length, "byte"),
                     ", outside of its bytes ", step.begin, " to ", step.end));
    }
  }
  return {};
}

ByteVector encode_header(const IndexHeader& header) {
  LittleEndianPacker out;
  out.put_raw(kIndexMark).put(kVersion).put(std::uint32_t{0});
  for (const std::uint8_t byte : header.run.bytes) out.put(byte);
  out.put(header.data_begin).put(to_seconds(header.base, header.calendar));
  out.put(static_cast<std::int32_t>(header.calendar))
      .put(static_cast<std::int32_t>(header.member.value_or(-1)));
  out.put_text(header.format).put(static_cast<std::uint32_t>(header.fields.size()));
  for (const IndexField& field : header.fields) {
    out.put_text(field.name)
        .put(static_cast<std::int32_t>(field.type))
        .put(static_cast<std::uint32_t>(field.shape.size()));
    for (const Index extent : field.shape) out.put(extent);
    out.put_text(field.level_type).put(static_cast<std::uint32_t>(field.levels.size()));
    for (const double level : field.levels) out.put(level);
  }
  return out.seal(kIndexMark.size() + 4, 0);
}

ByteVector encode_step(const IndexStep& step, const IndexChain& chain) {
  LittleEndianPacker out;
  out.reserve(kStepFixed + step.records.size() * kEntryBytes + kChecksumBytes);
  out.put_raw(kStepMark).put(std::uint32_t{0}).put(chain.previous).put(chain.sequence);
  out.put(step.step).put(step.lead).put(step.begin).put(step.end);
  out.put(static_cast<std::uint32_t>(step.records.size())).put(std::uint32_t{0});
  for (const IndexRecord& entry : step.records) {
    out.put(entry.field).put(entry.level).put(entry.offset).put(entry.length);
  }
  return out.seal(4, chain.file);
}

ByteVector encode_closed(Bytes data_end, const IndexChain& chain) {
  LittleEndianPacker out;
  out.put_raw(kClosedMark).put(std::uint32_t{0}).put(chain.previous).put(chain.sequence).put(data_end);
  return out.seal(4, chain.file);
}

IndexChain next_chain(const IndexChain& before, std::span<const std::byte> record) {
  return {before.file, stored_checksum(record), before.sequence + 1};
}

IndexChain first_chain(std::span<const std::byte> header) {
  const std::uint64_t sum = stored_checksum(header);
  return {sum, sum, 0};
}

bool begins_as_index(std::span<const std::byte> bytes) { return starts_with(bytes, kIndexMark); }

Result<Uuid> decode_run(std::span<const std::byte> bytes) {
  if (bytes.size() < static_cast<std::size_t>(kIndexPrefix)) {
    return corrupt(cat("its ", counted(bytes.size(), "byte"), " are less than a header"));
  }
  if (!begins_as_index(bytes)) return corrupt("its first bytes are not those of an index");
  LittleEndianUnpacker in(bytes.subspan(kIndexMark.size() + 8));
  Uuid run;
  for (std::uint8_t& byte : run.bytes) byte = in.get<std::uint8_t>();
  return run;
}

Result<IndexContents> decode_index(std::span<const std::byte> bytes) {
  const Result<std::size_t> length = header_length(bytes);
  TR_TRY(length.status());
  const auto head = bytes.first(*length);
  Result<IndexHeader> header = decode_header(head.first(*length - kChecksumBytes));
  TR_TRY(header.status());
  IndexContents contents;
  contents.header = std::move(*header);
  IndexChain chain = first_chain(head);
  auto rest = bytes.subspan(*length);
  contents.marks.push_back({static_cast<Bytes>(*length), chain});
  while (!contents.closed) {
    const auto record = whole_record(rest, chain.file);
    if (record.empty()) break;
    if (const Status status = take_record(record, contents, chain); !status.is_ok()) {
      contents.tail = IndexTail::damaged;
      contents.tail_bytes = static_cast<Bytes>(rest.size());
      contents.tail_text = status.text();
      return contents;
    }
    rest = rest.subspan(record.size());
    if (!contents.closed) contents.marks.push_back({static_cast<Bytes>(bytes.size() - rest.size()), chain});
  }
  judge_tail(rest, chain.file, contents);
  return contents;
}

}  // namespace tailrace::streams
