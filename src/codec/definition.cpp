// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "codec/definition.hpp"

namespace tailrace::codec {

namespace {

template <typename T>
void put_optional(Packer& out, const std::optional<T>& value) {
  out.put(static_cast<std::int8_t>(value.has_value())).put(value.value_or(T{}));
}

template <typename T>
std::optional<T> get_optional(Unpacker& in) {
  const bool present = in.get<std::int8_t>() != 0;
  const T value = in.get<T>();
  return present ? std::optional<T>(value) : std::nullopt;
}

void put_keys(Packer& out, const Keys& keys) {
  out.put(static_cast<std::int64_t>(keys.size()));
  for (const auto& [name, value] : keys) out.put_text(name).put_text(value);
}

Keys get_keys(Unpacker& in) {
  const auto count = in.get<std::int64_t>();
  Keys keys;
  for (std::int64_t i = 0; i < count && in.ok(); ++i) {
    std::string name = in.get_text();
    keys.emplace_back(std::move(name), in.get_text());
  }
  return keys;
}

void put_levels(Packer& out, const Levels& levels) {
  out.put_text(levels.type);
  out.put_list(std::span<const double>(levels.values));
  out.put_list(std::span<const double>(levels.bottoms));
  out.put_list(std::span<const double>(levels.coefficients));
}

Levels get_levels(Unpacker& in) {
  Levels levels;
  levels.type = in.get_text();
  levels.values = in.get_list<double>();
  levels.bottoms = in.get_list<double>();
  levels.coefficients = in.get_list<double>();
  return levels;
}

void put_statistic(Packer& out, const Statistic& statistic) {
  out.put(statistic.process).put(statistic.since).put(statistic.duration_seconds);
  out.put(static_cast<std::int8_t>(statistic.write_at_zero));
}

bool get_statistic(Unpacker& in, Statistic& statistic) {
  const auto process = in.get<std::int32_t>();
  const auto since = in.get<std::int32_t>();
  statistic.duration_seconds = in.get<std::int64_t>();
  statistic.write_at_zero = in.get<std::int8_t>() != 0;
  if (process < 0 || process > static_cast<int>(Process::minimum)) return false;
  if (since < 0 || since > static_cast<int>(Statistic::Since::duration)) return false;
  statistic.process = static_cast<Process>(process);
  statistic.since = static_cast<Statistic::Since>(since);
  return true;
}

Status damaged(std::string_view what) {
  return {Code::corrupt, std::string("the packed definition of a ") + std::string(what) +
                             " is shorter than its contents or holds a value out of range"};
}

}  // namespace

Index FieldDefinition::elements() const {
  Index product = 1;
  for (const Index extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) return -1;
  }
  return product;
}

void FieldDefinition::pack(Packer& out) const {
  out.put_text(name).put(type).put_list(std::span<const Index>(shape));
  out.put_bytes(georeference.sample);
  put_keys(out, georeference.keys);
  put_levels(out, levels);
  put_statistic(out, statistic);
  put_optional(out, accuracy);
  put_optional(out, relative_accuracy);
  put_optional(out, bits);
  put_optional(out, missing);
  put_keys(out, keys);
}

Result<FieldDefinition> FieldDefinition::unpack(Unpacker& in) {
  FieldDefinition field;
  field.name = in.get_text();
  field.type = static_cast<ElementType>(in.get<std::int32_t>());
  field.shape = in.get_list<Index>();
  const auto sample = in.get_bytes();
  field.georeference.sample.assign(sample.begin(), sample.end());
  field.georeference.keys = get_keys(in);
  field.levels = get_levels(in);
  const bool valid = get_statistic(in, field.statistic);
  field.accuracy = get_optional<double>(in);
  field.relative_accuracy = get_optional<double>(in);
  field.bits = get_optional<int>(in);
  field.missing = get_optional<double>(in);
  field.keys = get_keys(in);
  if (!in.ok() || !valid || size_of(field.type) == 0) return damaged("field");
  return field;
}

void StreamDefinition::pack(Packer& out) const {
  out.put_text(format);
  // Each member is packed by itself: padding would make equal definitions differ in bytes.
  out.put(base.year).put(base.month).put(base.day).put(base.hour).put(base.minute).put(base.second);
  out.put(calendar);
  put_optional(out, member);
  put_optional(out, members);
  out.put_text(packing);
  put_keys(out, keys);
}

Result<StreamDefinition> StreamDefinition::unpack(Unpacker& in) {
  StreamDefinition stream;
  stream.format = in.get_text();
  stream.base.year = in.get<std::int64_t>();
  for (int* part :
       {&stream.base.month, &stream.base.day, &stream.base.hour, &stream.base.minute, &stream.base.second})
    *part = in.get<int>();
  stream.calendar = in.get<Calendar>();
  stream.member = get_optional<int>(in);
  stream.members = get_optional<int>(in);
  stream.packing = in.get_text();
  stream.keys = get_keys(in);
  if (!in.ok() || stream.calendar < Calendar::proleptic_gregorian || stream.calendar > Calendar::no_leap)
    return damaged("stream");
  return stream;
}

}  // namespace tailrace::codec
