// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/index/bytes/index_format.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {
namespace {

constexpr std::string_view kStepMark = "STEP";
constexpr std::string_view kClosedMark = "DONE";
constexpr std::uint32_t kVersion = 1;            // leads are seconds
constexpr std::uint32_t kVersionOfTimes = 2;     // the header has an axis of times at its end
constexpr std::uint32_t kVersionOfSections = 3;  // and behind that the sections of fields
constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kRecordPrefix = 24;               // mark, length, previous, sequence
constexpr std::size_t kStepFixed = kRecordPrefix + 40;  // step, lead, begin, end, count, zero
constexpr std::size_t kEntryBytes = 24;
constexpr std::size_t kClosedLength = kRecordPrefix + 8 + kChecksumBytes;
static_assert(kClosedLength == static_cast<std::size_t>(kClosedBytes));
constexpr std::size_t kMostRecords = 100'000'000;
constexpr std::size_t kMostText = 1 << 20;
constexpr std::int64_t kMostLead = 31'557'600'000'000'000;  // 10^9 years: base + lead must fit into 64 bits

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and so is Packer here");

void put_raw(Packer& out, std::string_view text) {
  for (const char c : text) out.put(c);
}

/// Puts the number of values and then each value.
template <typename List>
void put_list(Packer& out, const List& values) {
  out.put(static_cast<std::uint32_t>(values.size()));
  for (const auto& value : values) out.put(value);
}

/// Reads back a list of put_list. A count that is too large ends with the bytes: memory for at most a few
/// times as much is taken.
template <typename List>
List get_list(Unpacker& in) {
  List values;
  const auto count = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) values.push_back(in.get<typename List::value_type>());
  return values;
}

void put_sections(Packer& out, std::uint32_t count, const std::vector<IndexField>& fields) {
  out.put(count);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const IndexSection& section = fields[i].section;
    if (!section.is_given()) continue;
    out.put(static_cast<std::uint32_t>(i));
    put_list(out, section.whole);
    put_list(out, section.start);
    put_list(out, section.stop);
    put_list(out, section.stride);
  }
}

Packer begin_record(std::string_view mark, const IndexChain& chain) {
  Packer out;
  put_raw(out, mark);
  out.put(std::uint32_t{0}).put(chain.previous).put(chain.sequence);
  return out;
}

/// Writes the length of the record, checksum included, at `length_position`, and the checksum at its end.
ByteVector seal(Packer& out, std::size_t length_position, std::uint64_t seed) {
  ByteVector bytes = out.take();
  const auto length = static_cast<std::uint32_t>(bytes.size() + kChecksumBytes);
  std::memcpy(bytes.data() + length_position, &length, sizeof length);
  const std::uint64_t sum = checksum(bytes, seed);
  bytes.resize(length);
  std::memcpy(bytes.data() + length - kChecksumBytes, &sum, sizeof sum);
  return bytes;
}

std::uint64_t stored_checksum(std::span<const std::byte> record) {
  return Unpacker(record.last(kChecksumBytes)).get<std::uint64_t>();
}

Status corrupt(std::string_view what) { return {Code::corrupt, cat("index: ", what)}; }

bool starts_with(std::span<const std::byte> bytes, std::string_view mark) {
  return bytes.size() >= mark.size() && std::memcmp(bytes.data(), mark.data(), mark.size()) == 0;
}

// Returns the record at the beginning of `bytes`, or nothing if its length or checksum is wrong.
std::span<const std::byte> whole_record(std::span<const std::byte> bytes, std::uint64_t file) {
  if (bytes.size() < kClosedLength || (!starts_with(bytes, kStepMark) && !starts_with(bytes, kClosedMark)))
    return {};
  const std::size_t length = Unpacker(bytes.subspan(4)).get<std::uint32_t>();
  if (length < kClosedLength || length > bytes.size()) return {};
  const auto record = bytes.first(length);
  return checksum(record.first(length - kChecksumBytes), file) == stored_checksum(record)
             ? record
             : std::span<const std::byte>();
}

// True if a whole record of this file begins anywhere in `tail`.
bool holds_record(std::span<const std::byte> tail, std::uint64_t file) {
  for (std::size_t at = 0; at + kClosedLength <= tail.size(); ++at) {
    if (!whole_record(tail.subspan(at), file).empty()) return true;
  }
  return false;
}

IndexField decode_field(Unpacker& in) {
  IndexField field;
  field.name = get_list<std::string>(in);
  field.type = static_cast<ElementType>(in.get<std::int32_t>());
  field.shape = get_list<std::vector<Index>>(in);
  field.level_type = get_list<std::string>(in);
  field.levels = get_list<std::vector<double>>(in);
  return field;
}

/// Gives fields their sections.
Status decode_sections(Unpacker& in, std::vector<IndexField>& fields) {
  const auto count = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto number = in.get<std::uint32_t>();
    IndexSection section;
    section.whole = get_list<std::vector<Index>>(in);
    section.start = get_list<std::vector<Index>>(in);
    section.stop = get_list<std::vector<Index>>(in);
    section.stride = get_list<std::vector<Index>>(in);
    if (number >= fields.size() || fields[number].section.is_given() || !section.is_given())
      return corrupt(cat("a section of field ", number, " is empty, comes twice, or has no field"));
    fields[number].section = std::move(section);
  }
  return count > 0 ? Status() : corrupt("version 3 of an index is for sections of arrays, and it has none");
}

Result<TimeAxis> decode_time(Unpacker& in) {
  TimeAxis::Parts parts;
  parts.kind = in.get<TimeAxis::Kind>();
  parts.has_base = in.get<std::uint32_t>() != 0;
  parts.nanoseconds = in.get<std::int64_t>();
  parts.shown = in.get<std::int64_t>();
  parts.name = get_list<std::string>(in);
  parts.units = get_list<std::string>(in);
  return TimeAxis::of_parts(std::move(parts));
}

Result<IndexHeader> decode_header(std::span<const std::byte> bytes) {
  Unpacker in(bytes.subspan(kIndexMark.size() + 8));
  IndexHeader header;
  header.run = in.get<Uuid>();
  header.data_begin = in.get<std::int64_t>();
  const auto base = in.get<std::int64_t>();
  const auto calendar = in.get<std::int32_t>();
  const auto member = in.get<std::int32_t>();
  if (!is_calendar(calendar)) return corrupt(cat("calendar number ", calendar, " does not exist"));
  header.calendar = static_cast<Calendar>(calendar);
  header.base = from_seconds(base, header.calendar);
  if (member >= 0) header.member = member;
  header.format = get_list<std::string>(in);
  const auto fields = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < fields && in.ok(); ++i) header.fields.push_back(decode_field(in));
  const auto version = Unpacker(bytes.subspan(kIndexMark.size())).get<std::uint32_t>();
  if (version >= kVersionOfTimes) {
    Result<TimeAxis> time = decode_time(in);
    if (!time.is_ok()) return corrupt(time.status().text());
    if (version == kVersionOfTimes && time->is_default())
      return corrupt("version 2 of an index is for other times than leads in seconds");
    header.time = std::move(*time);
  }
  if (version == kVersionOfSections) TR_TRY(decode_sections(in, header.fields));
  if (!in.ok() || !in.rest().empty()) return corrupt("the header's parts do not add up to its length");
  if (const Status status = check_header(header); !status.is_ok()) return corrupt(status.text());
  return header;
}

/// Returns true if this is the code of a time of a model.
bool is_code(std::int64_t lead) {
  const Result<std::int64_t> code = TimeAxis::code_of(TimeAxis::time_of(lead));
  return code.is_ok() && *code == lead;
}

/// Returns true if the base time and a lead may have a sum beyond 64 bits of seconds.
bool is_too_far(const TimeAxis& time, std::int64_t lead) {
  const std::int64_t seconds = time.floor_seconds(lead);
  return seconds < -kMostLead || seconds > kMostLead;
}

IndexStep decode_step(std::span<const std::byte> record) {
  Unpacker in(record.subspan(kRecordPrefix, record.size() - kRecordPrefix - kChecksumBytes));
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

// Adds a whole record to `contents`. An error means that the record itself is sound, but cannot stand here.
Status take_record(std::span<const std::byte> record, IndexContents& contents, IndexChain& chain) {
  Unpacker in(record.subspan(8));
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
  // Each record is fsync'd before the next is written, so a crash can damage only the last one.
  const bool more = contents.closed || holds_record(tail, file);
  contents.tail = more ? IndexTail::damaged : IndexTail::torn;
  contents.tail_text =
      more ? cat("bytes ", contents.marks.back().position,
                 " and on are damaged, and committed steps or a closed file's end were among them")
           : cat("the last ", counted(tail.size(), "byte"), " are a record that was begun and not finished");
}

Result<std::size_t> header_length(std::span<const std::byte> bytes) {
  TR_TRY(decode_run(bytes).status());
  const std::size_t length = Unpacker(bytes.subspan(kIndexMark.size() + 4)).get<std::uint32_t>();
  if (length > bytes.size() || length < static_cast<std::size_t>(kIndexPrefix) + kChecksumBytes) {
    return corrupt(cat("the header has ", counted(length, "byte"), ", the file ", bytes.size()));
  }
  if (checksum(bytes.first(length - kChecksumBytes)) != stored_checksum(bytes.first(length))) {
    return corrupt("the header's checksum is wrong: its bytes were changed after they were written");
  }
  const auto version = Unpacker(bytes.subspan(kIndexMark.size())).get<std::uint32_t>();
  if (version < kVersion || version > kVersionOfSections) {
    return Status(Code::unsupported, cat("index: version ", version, ", this Tailrace reads versions ",
                                         kVersion, " to ", kVersionOfSections));
  }
  return length;
}

Status bad(std::string_view what) { return {Code::argument, std::string(what)}; }

Status check_section(const IndexField& field) {
  const auto& [whole, start, stop, stride] = field.section;
  bool is_sound =
      start.size() == whole.size() && stop.size() == whole.size() && stride.size() == whole.size();
  for (std::size_t i = 0; is_sound && i < whole.size(); ++i)
    is_sound = start[i] >= 0 && start[i] < stop[i] && stop[i] <= whole[i] && stride[i] >= 1;
  return is_sound ? Status() : bad(cat("field \"", field.name, "\" has no such section"));
}

Status check_field(const IndexField& field) {
  if (field.name.empty() || field.name.size() > kMostText) return bad("a field's name is empty or too long");
  if (size_of(field.type) == 0) return bad(cat("field \"", field.name, "\" has an unknown element type"));
  if (field.levels.empty()) return bad(cat("field \"", field.name, "\" has no levels"));
  Index elements = 1;
  for (const Index extent : field.shape) {
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) {
      return bad(cat("field \"", field.name, "\" has an extent of ", extent));
    }
  }
  return check_section(field);
}

}  // namespace

std::size_t IndexContents::steps_up_to(std::int64_t lead) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(steps, lead, {}, &IndexStep::lead) -
                                  steps.begin());
}

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
  const auto where = cat("step ", step.step, " (", header.time.at(step.lead), ")");
  if (step.step < 0 || (before && step.step <= before->step)) {
    return bad(cat(where, " does not follow step ", before ? before->step : -1));
  }
  if (before && step.lead < before->lead)
    return bad(cat(where, " goes back in time: the step before is at ", header.time.at(before->lead)));
  if (header.time.is_model() ? !is_code(step.lead) : is_too_far(header.time, step.lead))
    return bad(cat(where, " is more than 10^9 years away from the base time"));
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
    // Keep the order of the tests: offset + length may not fit into 64 bits.
    if (record.length < 0 || record.offset < step.begin || record.offset > step.end ||
        record.length > step.end - record.offset) {
      return bad(cat(where, " has a record at ", record.offset, " of ", counted(record.length, "byte"),
                     ", outside of its bytes ", step.begin, " to ", step.end));
    }
  }
  return {};
}

ByteVector encode_header(const IndexHeader& header) {
  Packer out;
  put_raw(out, kIndexMark);
  const auto sections = static_cast<std::uint32_t>(
      std::ranges::count_if(header.fields, [](const IndexField& field) { return field.section.is_given(); }));
  const bool has_times = sections > 0 || !header.time.is_default();
  out.put(sections > 0 ? kVersionOfSections : has_times ? kVersionOfTimes : kVersion);
  out.put(std::uint32_t{0}).put(header.run);
  out.put(header.data_begin).put(to_seconds(header.base, header.calendar));
  out.put(header.calendar).put(static_cast<std::int32_t>(header.member.value_or(-1)));
  put_list(out, header.format);
  out.put(static_cast<std::uint32_t>(header.fields.size()));
  for (const IndexField& field : header.fields) {
    put_list(out, field.name);
    out.put(field.type);
    put_list(out, field.shape);
    put_list(out, field.level_type);
    put_list(out, field.levels);
  }
  if (has_times) {
    const TimeAxis::Parts& time = header.time.parts();
    out.put(time.kind).put(std::uint32_t{time.has_base}).put(time.nanoseconds).put(time.shown);
    put_list(out, time.name);
    put_list(out, time.units);
  }
  if (sections > 0) put_sections(out, sections, header.fields);
  return seal(out, kIndexMark.size() + 4, 0);
}

ByteVector encode_step(const IndexStep& step, const IndexChain& chain) {
  Packer out = begin_record(kStepMark, chain);
  out.put(step.step).put(step.lead).put(step.begin).put(step.end);
  out.put(static_cast<std::uint32_t>(step.records.size())).put(std::uint32_t{0});
  for (const IndexRecord& entry : step.records) {
    out.put(entry.field).put(entry.level).put(entry.offset).put(entry.length);
  }
  return seal(out, 4, chain.file);
}

ByteVector encode_closed(Bytes data_end, const IndexChain& chain) {
  Packer out = begin_record(kClosedMark, chain);
  return seal(out.put(data_end), 4, chain.file);
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
  return Unpacker(bytes.subspan(kIndexMark.size() + 8)).get<Uuid>();
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
      contents.tail_text = status.text();
      return contents;
    }
    rest = rest.subspan(record.size());
    if (!contents.closed) contents.marks.push_back({static_cast<Bytes>(bytes.size() - rest.size()), chain});
  }
  judge_tail(rest, chain.file, contents);
  return contents;
}

Status count_seconds(IndexContents& contents) {
  const TimeAxis times = std::exchange(contents.header.time, TimeAxis());
  for (IndexStep& step : contents.steps) {
    const std::optional<std::int64_t> seconds = times.is_model() ? std::nullopt : times.seconds(step.lead);
    if (!seconds)
      return {
          Code::unsupported,
          cat("the step at ", times.at(step.lead),
              times.is_model() ? " has a time of the model (time=model), and this version reads leads alone"
                               : " is at no whole second, and this version reads no other")};
    step.lead = *seconds;
  }
  return {};
}

}  // namespace tailrace::streams
