// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Packs prepared headers on the rank that made them, and unpacks them on other ranks, which need no ecCodes
// for them.
#include <algorithm>

#include "formats/grib2/header.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

bool lies_within(const ByteVector& head, Bytes at, Bytes width) {
  return at >= 0 && at <= static_cast<Bytes>(head.size()) - width;
}

}  // namespace

bool has_all_octets(const Field& field) {
  constexpr std::size_t least_representation = 20;  // up to the octet with the number of bits
  if (field.parts.representation.size() < least_representation) return false;
  const TimeOffsets& time = field.time;
  const ByteVector& head = field.parts.head;
  if (!lies_within(head, time.unit, 1) || !lies_within(head, time.forecast_time, 4)) return false;
  if (!field.statistic) return time == TimeOffsets{time.unit, time.forecast_time};
  return lies_within(head, time.end_time, 7) && lies_within(head, time.range_unit, 1) &&
         lies_within(head, time.range_length, 4);
}

void pack(const Field& field, Packer& out) {
  out.put_text(field.definition.name).put(field.definition.elements());
  out.put_bytes(field.parts.head).put_bytes(field.parts.representation).put(field.time);
  std::vector<std::uint32_t> counts, offsets;
  ByteVector values;
  for (const std::vector<Patch>& level : field.levels) {
    counts.push_back(static_cast<std::uint32_t>(level.size()));
    for (const Patch& patch : level) {
      offsets.push_back(static_cast<std::uint32_t>(patch.offset));
      values.push_back(patch.value);
    }
  }
  out.put_list<std::uint32_t>(counts).put_list<std::uint32_t>(offsets).put_bytes(values);
}

Result<Field> unpack_field(const codec::StreamDefinition& stream, const codec::FieldDefinition& definition,
                           Unpacker& in, bool (*is_sound)(const Field&)) {
  Field field = field_of(stream, definition);
  const bool is_its_own = in.get_text() == definition.name && in.get<Index>() == definition.elements();
  field.parts = {in.get_list<std::byte>(), in.get_list<std::byte>()};
  field.time = in.get<TimeOffsets>();
  const auto counts = in.get_list<std::uint32_t>();
  const auto offsets = in.get_list<std::uint32_t>();
  const auto values = in.get_bytes();
  bool sound = in.ok() && is_its_own && in.rest().empty() &&
               counts.size() == definition.levels.values.size() && offsets.size() == values.size() &&
               is_sound(field) && std::all_of(offsets.begin(), offsets.end(), [&](std::uint32_t at) {
                 return at < field.parts.head.size();
               });
  std::size_t next = 0;
  for (const std::uint32_t count : counts) {
    sound = sound && count <= offsets.size() - next;
    if (!sound) break;
    std::vector<Patch>& level = field.levels.emplace_back();
    for (std::uint32_t i = 0; i < count; ++i, ++next) level.push_back({offsets[next], values[next]});
  }
  if (!sound || next != offsets.size())
    return Status(Code::corrupt, cat("the header of field '", definition.name, "' arrived incomplete"));
  return field;
}

}  // namespace tailrace::grib2
