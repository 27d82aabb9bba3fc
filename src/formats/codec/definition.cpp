// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/codec/definition.hpp"

#include <algorithm>
#include <utility>

#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

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
    keys.push_back({in.get_text(), in.get_text()});
  }
  return keys;
}

bool get_statistic(Unpacker& in, Statistic& statistic) {
  statistic = {in.get<Process>(), in.get<Statistic::Since>(), in.get<std::int64_t>(),
               in.get<std::int8_t>() != 0};
  return statistic.process >= Process::instant && statistic.process <= Process::minimum &&
         statistic.since >= Statistic::Since::start && statistic.since <= Statistic::Since::duration;
}

// Definitions stand in the heads of NetCDF-4 files, and those that have neither another axis of times nor
// names of dimensions nor fields without time keep the bytes that they had before there were any. This bit of
// the calendar and of a field's type says that more stands at the end.
constexpr std::int32_t more_follows = 1 << 16;
// This bit of the calendar says that attributes with types stand at the end.
constexpr std::int32_t attributes_follow = 1 << 17;
// This bit of a field's type says that a reduction stands behind what more_follows announces.
constexpr std::int32_t reduction_follows = 1 << 18;
// Likewise a section, which is the last.
constexpr std::int32_t section_follows = 1 << 19;
// This bit of a reduction's operation says that its weights stand behind it.
constexpr std::int32_t weights_follow = 1 << 8;

Index product_of(const std::vector<Index>& shape) {
  Index product = 1;
  for (const Index extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) return -1;
  }
  return product;
}

/// Returns true if the reduction leaves records of the field's shape, as it may not in a damaged file.
bool leaves(const Reduction& reduction, const std::vector<Index>& shape) {
  std::vector<Index> left;
  if (reduction.is_lost.size() != reduction.shape.size()) return false;
  for (std::size_t i = 0; i < reduction.shape.size(); ++i)
    if (reduction.is_lost[i] == 0) left.push_back(reduction.shape[i]);
  return left == shape && product_of(reduction.shape) > 0 &&
         (reduction.dimensions.empty() || reduction.dimensions.size() == reduction.shape.size()) &&
         (!reduction.is_weighted() || reduction.weight_strides.size() == reduction.shape.size()) &&
         reduction.operation > Reduction::Operation::none &&
         reduction.operation <= Reduction::Operation::maximum;
}

Status damaged(std::string_view what) {
  return {Code::corrupt, cat("the packed definition of a ", what,
                             " is shorter than its contents or holds a value out of range")};
}

/// Returns true if the sizes fit the type, as they may not in a damaged file.
bool is_whole(const Axis& axis) {
  const Bytes size = size_of(axis.type), values = std::ssize(axis.values);
  return size > 0 && values % size == 0 && (axis.bounds.empty() || std::ssize(axis.bounds) == 2 * values);
}

bool is_whole(const Section& section) {
  const std::size_t dimensions = section.whole.size();
  const bool fits = section.start.size() == dimensions && section.stop.size() == dimensions &&
                    section.stride.size() == dimensions;
  if (dimensions == 0 || !fits) return false;
  for (std::size_t i = 0; i < dimensions; ++i)
    if (section.start[i] < 0 || section.stop[i] <= section.start[i] || section.stop[i] > section.whole[i] ||
        section.stride[i] < 1)
      return false;
  return true;
}

bool is_whole(const GivenAttribute& given) {
  if (!given.type) return true;
  const Bytes size = size_of(*given.type);
  return size > 0 && !given.values.empty() && std::ssize(given.values) % size == 0;
}

}  // namespace

std::int64_t Statistic::interval_start(std::int64_t lead, std::int64_t previous_lead) const {
  switch (since) {
    case Since::start:
      return std::min<std::int64_t>(0, lead);
    case Since::last_output:
      return std::min(previous_lead, lead);
    case Since::duration:
      return std::max<std::int64_t>(0, lead - duration);
  }
  return 0;
}

Index row_of(std::span<const Index> shape) {
  for (std::size_t i = shape.size(); i > 0; --i)
    if (shape[i - 1] > 1) return shape[i - 1];
  return 1;
}

Index FieldDefinition::elements() const { return product_of(shape); }

Index FieldDefinition::elements_put() const {
  return product_of(reduction.operation == Reduction::Operation::none ? shape : reduction.shape);
}

Bytes FieldDefinition::whole_bytes() const {
  Bytes bytes = elements();
  for (const std::int64_t factor : {size_of(type), static_cast<Bytes>(levels.values.size())}) {
    if (bytes < 0 || __builtin_mul_overflow(bytes, factor, &bytes)) return -1;
  }
  return bytes;
}

Index Coordinates::points() const {
  Index product = 1;
  for (const Index extent : shape) product *= extent;
  return product;
}

std::optional<Bytes> Coordinates::bytes() const {
  Bytes product = 16 * (1 + corners);
  for (const Index extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return product;
}

void Coordinates::pack_front(Packer& out) const {
  out.put_list<Index>(shape).put(corners).put(checksum).put(static_cast<std::int64_t>(values.size()));
}

void Coordinates::pack(Packer& out) const {
  out.put_list<Index>(shape).put(corners).put(checksum).put_bytes(values);
}

Result<Coordinates> Coordinates::unpack(Unpacker& in) {
  Coordinates told{in.get_list<Index>(), in.get<Index>(), in.get<std::uint64_t>(), in.get_list<std::byte>()};
  const bool is_shape = std::ranges::none_of(told.shape, [](Index extent) { return extent < 0; });
  const bool is_whole = in.ok() && told.corners >= 0 && told.corners <= most_corners && is_shape;
  const std::optional<Bytes> bytes = is_whole ? told.bytes() : std::nullopt;
  if (bytes && (told.values.empty() || std::ssize(told.values) == *bytes)) return told;
  return Status(Code::corrupt, "the definition of coordinates is not whole");
}

void Axis::pack(Packer& out) const {
  out.put_text(dimension).put(type).put_bytes(values).put_bytes(bounds);
  put_keys(out, attributes);
}

Axis Axis::unpack(Unpacker& in) {
  return {in.get_text(), in.get<ElementType>(), in.get_list<std::byte>(), in.get_list<std::byte>(),
          get_keys(in)};
}

void GivenAttribute::pack(Packer& out) const {
  out.put_text(of)
      .put_text(name)
      .put(static_cast<std::int32_t>(type.value_or(ElementType{})))
      .put_bytes(values);
}

GivenAttribute GivenAttribute::unpack(Unpacker& in) {
  GivenAttribute given{in.get_text(), in.get_text(), in.get<ElementType>(), in.get_list<std::byte>()};
  if (*given.type == ElementType{}) given.type.reset();
  return given;
}

bool Reduction::is_within_level() const {
  return std::ranges::any_of(is_lost, [](std::int8_t each) { return each != 0; });
}

void Reduction::pack(Packer& out) const {
  out.put(static_cast<std::int32_t>(operation) | (weights.empty() ? 0 : weights_follow));
  out.put_list<Index>(shape).put_list<std::int8_t>(is_lost).put_text(level_type);
  out.put(static_cast<std::int64_t>(dimensions.size()));
  for (const std::string& each : dimensions) out.put_text(each);
  if (!weights.empty()) out.put_text(weights).put_list<Index>(weight_strides).put(weight_level);
}

Reduction Reduction::unpack(Unpacker& in) {
  Reduction reduction;
  const auto operation = in.get<std::int32_t>();
  reduction.operation = static_cast<Operation>(operation & ~weights_follow);
  reduction.shape = in.get_list<Index>();
  reduction.is_lost = in.get_list<std::int8_t>();
  reduction.level_type = in.get_text();
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count)
    reduction.dimensions.push_back(in.get_text());
  if ((operation & weights_follow) == 0) return reduction;
  reduction.weights = in.get_text();
  reduction.weight_strides = in.get_list<Index>();
  reduction.weight_level = in.get<Index>();
  return reduction;
}

void Section::pack(Packer& out) const {
  out.put_list<Index>(whole).put_list<Index>(start).put_list<Index>(stop).put_list<Index>(stride);
}

Section Section::unpack(Unpacker& in) {
  return {in.get_list<Index>(), in.get_list<Index>(), in.get_list<Index>(), in.get_list<Index>(), {}};
}

void FieldDefinition::pack(Packer& out) const {
  const bool is_reduced = reduction.operation != Reduction::Operation::none;
  const bool has_more = !dimensions.empty() || !has_time || is_reduced;
  out.put_text(name).put(static_cast<std::int32_t>(type) | (has_more ? more_follows : 0) |
                         (is_reduced ? reduction_follows : 0) | (section.is_given() ? section_follows : 0));
  out.put_list<Index>(shape);
  out.put_bytes(georeference.sample);
  put_keys(out, georeference.keys);
  out.put_text(levels.type).put_list<double>(levels.values).put_list<double>(levels.bottoms);
  out.put_list<double>(levels.coefficients);
  out.put(statistic.process).put(statistic.since).put(statistic.duration);
  out.put(static_cast<std::int8_t>(statistic.write_at_zero));
  // Below zero the number is no accuracy. Heads of files have had this place since before there was
  // accuracy=auto.
  put_optional(out, information ? std::optional(-*information) : accuracy);
  put_optional(out, relative_accuracy);
  put_optional(out, bits);
  put_optional(out, missing);
  put_keys(out, keys);
  put_keys(out, attributes);
  if (has_more) {
    out.put(static_cast<std::int64_t>(dimensions.size()));
    for (const std::string& each : dimensions) out.put_text(each);
    out.put(static_cast<std::int64_t>(axes.size()));
    for (const Axis& each : axes) each.pack(out);
    out.put(static_cast<std::int8_t>(has_time));
  }
  if (is_reduced) reduction.pack(out);
  if (section.is_given()) section.pack(out);
}

Result<FieldDefinition> FieldDefinition::unpack(Unpacker& in) {
  FieldDefinition field;
  field.name = in.get_text();
  const auto type = in.get<std::int32_t>();
  field.type = static_cast<ElementType>(type & ~(more_follows | reduction_follows | section_follows));
  field.shape = in.get_list<Index>();
  field.georeference = {in.get_list<std::byte>(), get_keys(in), nullptr};
  field.levels = {in.get_text(), in.get_list<double>(), in.get_list<double>(), in.get_list<double>()};
  bool valid = get_statistic(in, field.statistic);
  field.accuracy = get_optional<double>(in);
  if (field.accuracy && *field.accuracy < 0)
    field.information = -*std::exchange(field.accuracy, std::nullopt);
  field.relative_accuracy = get_optional<double>(in);
  field.bits = get_optional<int>(in);
  field.missing = get_optional<double>(in);
  field.keys = get_keys(in);
  field.attributes = get_keys(in);
  if ((type & more_follows) != 0) {
    for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count)
      field.dimensions.push_back(in.get_text());
    for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count)
      valid = is_whole(field.axes.emplace_back(Axis::unpack(in))) && valid;
    field.has_time = in.get<std::int8_t>() != 0;
  }
  if ((type & reduction_follows) != 0) {
    field.reduction = Reduction::unpack(in);
    valid = valid && leaves(field.reduction, field.shape);
  }
  if ((type & section_follows) != 0) {
    field.section = Section::unpack(in);
    valid = valid && is_whole(field.section);
  }
  if (!in.ok() || !valid || size_of(field.type) == 0) return damaged("field");
  return field;
}

void StreamDefinition::pack(Packer& out) const {
  out.put_text(format).put_text(name);
  // Each member is packed by itself: padding would make equal definitions differ in bytes.
  out.put(base.year).put(base.month).put(base.day).put(base.hour).put(base.minute).put(base.second);
  out.put(static_cast<std::int32_t>(calendar) | (time.is_default() ? 0 : more_follows) |
          (given.empty() ? 0 : attributes_follow));
  put_optional(out, member);
  put_optional(out, members);
  out.put_text(packing);
  put_keys(out, keys);
  put_keys(out, attributes);
  if (!time.is_default()) time.pack(out);
  if (given.empty()) return;
  out.put(static_cast<std::int64_t>(given.size()));
  for (const GivenAttribute& each : given) each.pack(out);
}

Result<StreamDefinition> StreamDefinition::unpack(Unpacker& in) {
  StreamDefinition stream;
  stream.format = in.get_text();
  stream.name = in.get_text();
  stream.base = {in.get<std::int64_t>(), in.get<int>(), in.get<int>(),
                 in.get<int>(),          in.get<int>(), in.get<int>()};
  const auto calendar = in.get<std::int32_t>();
  stream.calendar = static_cast<Calendar>(calendar & ~(more_follows | attributes_follow));
  stream.member = get_optional<int>(in);
  stream.members = get_optional<int>(in);
  stream.packing = in.get_text();
  stream.keys = get_keys(in);
  stream.attributes = get_keys(in);
  if ((calendar & more_follows) != 0) {
    Result<TimeAxis> time = TimeAxis::unpack(in);
    if (!time.is_ok()) return damaged("stream");
    stream.time = std::move(*time);
  }
  bool valid = true;
  if ((calendar & attributes_follow) != 0) {
    for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count)
      valid = is_whole(stream.given.emplace_back(GivenAttribute::unpack(in))) && valid;
  }
  if (!in.ok() || !valid || !is_calendar(static_cast<std::int32_t>(stream.calendar)))
    return damaged("stream");
  return stream;
}

const std::string* find_key(const Keys& keys, std::string_view name) {
  const auto found = std::ranges::find(keys, name, [](const auto& each) { return each.first; });
  return found == keys.end() ? nullptr : &found->second;
}

}  // namespace tailrace::codec
