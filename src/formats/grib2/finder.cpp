// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The codec prepares a header for each field, and patches only a few of its octets for each record. So a
// message counts as one of the codec's own records if two things hold. First, its sections 0 to 4 equal a
// prepared header, except for the total length and the octets of time. Second, the octets of time are those
// that the codec would write for the time that they state.
#include "formats/grib2/finder.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "formats/grib2/sections.hpp"

namespace tailrace::grib2 {

namespace {

constexpr std::size_t total_length_at = 8;
constexpr std::size_t section_header = 5;

std::int64_t seconds_of_unit(std::uint64_t code) {
  if (code == 0) return 60;
  if (code == 1) return 3600;
  return code == 13 ? 1 : 0;
}

/// Returns the interval that a message's octets of time state. If they state none, returns an interval that
/// ends before the base time, which check_interval() refuses.
Interval read_time(const std::byte* head, const TimeOffsets& offsets) {
  const std::int64_t unit = seconds_of_unit(get_number(head + offsets.unit, 1));
  const auto start = static_cast<std::int64_t>(get_number(head + offsets.forecast_time, 4));
  if (unit == 0 || start >> 31 != 0) return {0, -1};
  if (offsets.end_time < 0) return {start * unit, start * unit};
  const auto length = static_cast<std::int64_t>(get_number(head + offsets.range_length, 4));
  if (length >> 31 != 0) return {0, -1};
  return {start * unit, (start + length) * unit};
}

/// All prepared heads of one length whose octets of time are at the same offsets.
struct Shape {
  std::size_t length = 0;
  TimeOffsets time;
  /// By head, with the octets set to zero that differ from record to record: the field and the level.
  std::map<std::string, std::pair<int, Index>> heads;

  [[nodiscard]] bool fits(const Field& field) const {
    return length == field.parts.head.size() && time == field.time;
  }
  /// Returns the head with the octets set to zero that differ from record to record.
  [[nodiscard]] std::string closed(const std::byte* head) const {
    std::string text(reinterpret_cast<const char*>(head), length);
    const auto clear = [&](Bytes at, std::size_t count) {
      if (at >= 0) std::memset(&text[static_cast<std::size_t>(at)], 0, count);
    };
    clear(total_length_at, 8);
    clear(time.unit, 1);
    clear(time.forecast_time, 4);
    clear(time.end_time, 7);
    clear(time.range_unit, 1);
    clear(time.range_length, 4);
    return text;
  }
  /// Returns true if the bytes, which are fewer than a head has, may be the beginning of one of the heads.
  [[nodiscard]] bool may_begin(const ByteVector& bytes) const {
    ByteVector whole = bytes;
    whole.resize(length);
    const std::string wanted = closed(whole.data()).substr(0, bytes.size());
    return std::any_of(heads.begin(), heads.end(),
                       [&](const auto& head) { return head.first.starts_with(wanted); });
  }
};

class Grib2Finder final : public codec::Finder {
 public:
  explicit Grib2Finder(const std::deque<Field>& fields) : fields_(fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) add(fields[i], static_cast<int>(i));
  }

  Result<codec::FoundRecord> find(const codec::ReadBytes& read, Bytes offset, Bytes size) const override {
    codec::FoundRecord found;
    bool any_longer = false;
    for (const Shape& shape : shapes_) {
      const Bytes rest = std::min(size - offset, static_cast<Bytes>(shape.length));
      ByteVector head(static_cast<std::size_t>(rest));
      const Result<Bytes> got = read(head, offset);
      TR_TRY(got.status());
      head.resize(static_cast<std::size_t>(*got));
      if (head.size() < shape.length) {
        any_longer = any_longer || shape.may_begin(head);
        continue;
      }
      if (!tell(shape, head, found.key)) continue;
      found.has_key = true;
      found.length = static_cast<Bytes>(get_number(&head[total_length_at], 8));
      const Result<bool> whole = is_whole(read, offset, size, static_cast<Bytes>(shape.length), found.length);
      TR_TRY(whole.status());
      found.state = *whole ? codec::FoundRecord::State::whole : codec::FoundRecord::State::torn;
      // The length that a torn message states may be wrong.
      if (!*whole && (found.length < static_cast<Bytes>(shape.length) || found.length > size - offset))
        found.length = size - offset;
      return found;
    }
    if (any_longer) {
      found.state = codec::FoundRecord::State::torn;
      found.length = size - offset;
    }
    return found;
  }

 private:
  void add(const Field& field, int number) {
    auto shape = std::find_if(shapes_.begin(), shapes_.end(), [&](const Shape& s) { return s.fits(field); });
    if (shape == shapes_.end())
      shape = shapes_.insert(shapes_.end(), {field.parts.head.size(), field.time, {}});
    for (std::size_t level = 0; level < field.levels.size(); ++level) {
      ByteVector head = field.parts.head;
      for (const Patch& patch : field.levels[level]) head[patch.offset] = patch.value;
      shape->heads.emplace(shape->closed(head.data()), std::pair(number, static_cast<Index>(level)));
    }
  }

  /// Returns true if the codec would have written this head, and sets `key` to its record.
  bool tell(const Shape& shape, const ByteVector& head, codec::RecordKey& key) const {
    const auto found = shape.heads.find(shape.closed(head.data()));
    if (found == shape.heads.end()) return false;
    const Field& field = fields_[static_cast<std::size_t>(found->second.first)];
    const Interval interval = read_time(head.data(), shape.time);
    if (!check_interval(interval, field.statistic, field.base).is_ok()) return false;
    ByteVector ours = head;
    write_time(ours.data(), shape.time, interval, field.base);
    if (ours != head) return false;
    const std::optional<std::int64_t> end = field.axis.lead_at(interval.end);
    const std::optional<std::int64_t> start = field.axis.lead_at(field.statistic ? interval.start : 0);
    if (!end || !start) return false;
    key = {found->second.first, found->second.second, *end, *start};
    return true;
  }

  /// Returns true if sections 5 to 8 follow the head and end where the message says.
  static Result<bool> is_whole(const codec::ReadBytes& read, Bytes begin, Bytes size, Bytes head,
                               Bytes length) {
    if (length < head + end_length || length > size - begin) return false;
    const Bytes end = begin + length - end_length;
    Bytes at = begin + head;
    for (std::uint64_t number = 5; number <= 7; ++number) {
      ByteVector header(section_header);
      const Result<Bytes> got = read(header, at);
      TR_TRY(got.status());
      if (*got < static_cast<Bytes>(section_header) || get_number(&header[4], 1) != number) return false;
      const auto section = static_cast<Bytes>(get_number(header.data(), 4));
      if (section < static_cast<Bytes>(section_header) || section > end - at) return false;
      at += section;
    }
    ByteVector last(end_length);
    const Result<Bytes> got = read(last, at);
    TR_TRY(got.status());
    return at == end && *got == end_length && std::memcmp(last.data(), "7777", end_length) == 0;
  }

  const std::deque<Field>& fields_;
  std::vector<Shape> shapes_;
};

}  // namespace

std::unique_ptr<codec::Finder> make_finder(const std::deque<Field>& fields) {
  return std::make_unique<Grib2Finder>(fields);
}

}  // namespace tailrace::grib2
