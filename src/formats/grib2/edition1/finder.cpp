// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A message counts as one of the codec's own records if its sections 1 and 2 equal a prepared header, except
// for the octets that differ from record to record, and if the octets of time are those that the codec would
// write for the time that they state.
#include "formats/grib2/edition1/finder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "formats/grib2/edition1/sections.hpp"
#include "formats/grib2/edition1/time.hpp"
#include "formats/grib2/sections.hpp"

namespace tailrace::grib2::edition1 {

namespace {

/// Returns as much of a head as there is, with the octets set to zero that differ from record to record.
std::string closed(std::span<const std::byte> head) {
  constexpr std::array<std::size_t, 9> open{
      total_length_at, total_length_at + 1, total_length_at + 2, unit_at, p1_at, p2_at,
      range_at,        decimal_at,          decimal_at + 1};
  std::string text(reinterpret_cast<const char*>(head.data()), head.size());
  for (const std::size_t at : open)
    if (at < text.size()) text[at] = 0;
  if (flags_at < text.size()) text[flags_at] &= static_cast<char>(~std::to_integer<int>(has_bitmap));
  return text;
}

class Finder final : public codec::Finder {
 public:
  explicit Finder(const std::deque<Field>& fields) : fields_(fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) add(fields[i], static_cast<int>(i));
  }

  Result<codec::FoundRecord> find(const codec::ReadBytes& read, Bytes offset, Bytes size) const override {
    codec::FoundRecord found;
    bool may_begin = false;
    for (const auto& [length, heads] : heads_) {
      ByteVector head(static_cast<std::size_t>(std::min(size - offset, static_cast<Bytes>(length))));
      const Result<Bytes> got = read(head, offset);
      TR_TRY(got.status());
      head.resize(static_cast<std::size_t>(*got));
      if (head.size() < length) {
        const std::string beginning = closed(head);
        may_begin = may_begin || std::ranges::any_of(heads, [&](const auto& each) {
                      return each.first.starts_with(beginning);
                    });
        continue;
      }
      if (!tell(heads, head, found.key)) continue;
      found.has_key = true;
      const Result<Bytes> whole = whole_length(read, offset, size, head);
      TR_TRY(whole.status());
      found.state = *whole > 0 ? codec::FoundRecord::State::whole : codec::FoundRecord::State::torn;
      found.length = *whole > 0 ? *whole : size - offset;
      return found;
    }
    if (may_begin) {
      found.state = codec::FoundRecord::State::torn;
      found.length = size - offset;
    }
    return found;
  }

 private:
  using Place = std::pair<int, Index>;  // the field and the level
  /// By head. The octets of time tell fields apart that differ in their statistic alone.
  using Heads = std::map<std::string, std::vector<Place>>;

  void add(const Field& field, int number) {
    Heads& heads = heads_[field.parts.head.size()];
    for (std::size_t level = 0; level < field.levels.size(); ++level) {
      ByteVector head = field.parts.head;
      for (const Patch& patch : field.levels[level]) head[patch.offset] = patch.value;
      heads[closed(head)].emplace_back(number, static_cast<Index>(level));
    }
  }

  /// Returns true if the codec would have written this head, and sets `key` to its record.
  bool tell(const Heads& heads, const ByteVector& head, codec::RecordKey& key) const {
    const auto found = heads.find(closed(head));
    return found != heads.end() &&
           std::ranges::any_of(found->second, [&](const Place& place) { return tell(place, head, key); });
  }

  bool tell(const Place& place, const ByteVector& head, codec::RecordKey& key) const {
    const Field& field = fields_[static_cast<std::size_t>(place.first)];
    const codec::Process process = field.definition.statistic.process;
    const Interval interval = read_time(head);
    if (!check_interval(interval, process).is_ok()) return false;
    ByteVector ours = head;
    write_time(ours.data(), interval, process);
    if (ours != head) return false;
    const std::optional<std::int64_t> end = field.axis.lead_at(interval.end);
    const std::optional<std::int64_t> start = field.axis.lead_at(field.statistic ? interval.start : 0);
    if (!end || !start) return false;
    key = {place.first, place.second, *end, *start};
    return true;
  }

  /// Returns the length of the message that begins with `head`, or 0 if its sections do not end where it
  /// says.
  static Result<Bytes> whole_length(const codec::ReadBytes& read, Bytes begin, Bytes size,
                                    const ByteVector& head) {
    const auto octets = [&](Bytes at, std::size_t count) -> Result<ByteVector> {
      ByteVector bytes(count);
      const Result<Bytes> got = at < size ? read(bytes, at) : Result<Bytes>(0);
      TR_TRY(got.status());
      bytes.resize(static_cast<std::size_t>(*got));
      return bytes;
    };
    Bytes at = std::ssize(head);
    if ((head[flags_at] & has_bitmap) != std::byte{}) {
      const Result<ByteVector> length = octets(begin + at, 3);
      TR_TRY(length.status());
      if (length->size() < 3) return 0;
      at += static_cast<Bytes>(get_number(length->data(), 3));
    }
    const Result<ByteVector> data = octets(begin + at, 3);
    TR_TRY(data.status());
    if (data->size() < 3) return 0;
    const Lengths lengths =
        lengths_of(get_number(&head[total_length_at], 3), get_number(data->data(), 3), at);
    if (lengths.data < data_header || lengths.message > size - begin ||
        at + lengths.data + end_length != lengths.message)
      return 0;
    const Result<ByteVector> last = octets(begin + lengths.message - end_length, end_length);
    TR_TRY(last.status());
    const bool is_end = last->size() == end_length && std::memcmp(last->data(), "7777", end_length) == 0;
    return is_end ? lengths.message : 0;
  }

  const std::deque<Field>& fields_;
  std::map<std::size_t, Heads> heads_;  // by length
};

}  // namespace

std::unique_ptr<codec::Finder> make_finder(const std::deque<Field>& fields) {
  return std::make_unique<Finder>(fields);
}

}  // namespace tailrace::grib2::edition1
