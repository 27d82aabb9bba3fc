// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/layout.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "formats/cf/json.hpp"
#include "ground/base/text.hpp"

namespace tailrace::zarr {

namespace {

using cf::Json;

/// Returns the type of an array's elements, or nothing if no stream writes arrays of it.
std::optional<cf::Type> type_named(const std::string& name) {
  using cf::Type;
  static const std::map<std::string, Type>& types = *new const std::map<std::string, Type>{
      {"int8", Type::int8},       {"uint8", Type::uint8},    {"int16", Type::int16}, {"uint16", Type::uint16},
      {"int32", Type::int32},     {"uint32", Type::uint32},  {"int64", Type::int64}, {"uint64", Type::uint64},
      {"float32", Type::float32}, {"float64", Type::float64}};
  const auto found = types.find(name);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

/// As type_named for an array. Sets `bytes` to the size of one element.
std::optional<cf::Type> element_type_of(const Json& array, Bytes& bytes) {
  const Json& told = array.at("data_type");
  if (told.is_object()) {
    bytes = told.at("configuration").at("length_bytes").get<Bytes>();
    const bool is_text = told.at("name") == text_type && bytes > 0 && bytes <= most_text;
    return is_text ? std::optional(cf::Type::text) : std::nullopt;
  }
  const std::optional<cf::Type> type = type_named(told.get<std::string>());
  if (type) bytes = cf::size_of(*type);
  return type;
}

bool has_codec(const Json& codecs, std::string_view name) {
  return std::ranges::any_of(codecs, [&](const Json& each) { return each.at("name") == name; });
}

/// The text of an array's metadata up to the first number of its shape, which is the number of steps if it
/// has any.
constexpr std::string_view before_steps = R"({"zarr_format":3,"node_type":"array","shape":[)";

/// Sets the room that one object of a field needs, from its codecs. Returns false if no stream writes such a
/// field.
bool set_room(Layout::Array& field, const Json& array, const std::vector<Index>& shape, Bytes raw) {
  const Json& codecs = array.at("codecs");
  const bool is_sharded = has_codec(codecs, "sharding_indexed");
  const Json& inner = is_sharded ? codecs.at(0).at("configuration").at("codecs") : codecs;
  Index chunks = 1;
  if (is_sharded) {
    const auto chunk = codecs.at(0).at("configuration").at("chunk_shape").get<std::vector<Index>>();
    if (chunk.size() != shape.size()) return false;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (chunk[i] <= 0 || shape[i] % chunk[i] != 0) return false;
      chunks *= shape[i] / chunk[i];  // cannot overflow: no more than `raw`
    }
  }
  const Bytes chunk = inner.size() > 1 ? most_compressed(raw / chunks) : raw / chunks;
  field.index = is_sharded ? index_bytes(chunks) : 0;
  return !__builtin_mul_overflow(chunks, chunk, &field.size) &&
         !__builtin_add_overflow(field.size, field.index, &field.size);
}

}  // namespace

std::string Layout::Array::object(std::int64_t number) const {
  std::string text = name + "/c";
  for (std::size_t i = 0; i < dimensions; ++i) text += cat(".", i == 0 ? number : 0);
  return text;
}

Status Layout::add(const std::string& name, const Json& array, const std::string& steps_name) {
  Array added{name, array.at("shape").size()};
  const Json& names = array.at("dimension_names");
  added.has_steps = has_steps_ && !names.empty() && names.at(0) == steps_name;
  const auto chunk = array.at("chunk_grid").at("configuration").at("chunk_shape").get<std::vector<Index>>();
  const std::string own = cf::text_of(array);
  added.text = text_.find(own, arrays_.empty() ? 0 : arrays_.back().text + arrays_.back().text_length);
  added.text_length = own.size();
  Bytes raw = 0;
  const std::optional<cf::Type> type = element_type_of(array, raw);
  const bool is_known = type && chunk.size() == added.dimensions && names.size() == added.dimensions &&
                        added.text != std::string::npos && own.starts_with(before_steps) &&
                        std::ranges::all_of(chunk, [](Index each) { return each > 0; }) &&
                        (!added.has_steps || array.at("shape").at(0) == 0) &&
                        (has_steps_ || array.at("shape").get<std::vector<Index>>() == chunk);
  if (!is_known) return {Code::corrupt, cat("array '", name, "' is none that a stream writes")};
  added.type = *type;
  for (std::size_t i = added.has_steps ? 1 : 0; i < chunk.size(); ++i) {
    if (__builtin_mul_overflow(raw, chunk[i], &raw) || raw > (Bytes{1} << 60))
      return {Code::argument, cat("a chunk of '", name, "' has more than 2^60 bytes")};
  }
  added.size = raw;
  if (added.has_steps && chunk.front() > 1) added.in_chunk = chunk.front();
  if (added.has_steps && added.in_chunk == 0 && !set_room(added, array, chunk, raw))
    return {Code::corrupt, cat("array '", name, "' has chunks that no stream writes")};
  Bytes& end = added.has_steps ? step_ : head_;
  added.begin = end;
  if (__builtin_add_overflow(end, added.size, &end) || end > (Bytes{1} << 62))
    return {Code::argument, cat("with array '", name, "' a step has more than 2^62 bytes")};
  (added.has_steps ? of_step_ : of_head_).push_back(arrays_.size());
  by_name_.emplace(name, arrays_.size());
  arrays_.push_back(std::move(added));
  return {};
}

Result<Layout> Layout::of(std::string text) {
  Layout layout;
  layout.text_ = std::move(text);
  try {
    const Json group = Json::parse(layout.text_);
    const Json& arrays = group.at("consolidated_metadata").at("metadata");
    if (arrays.empty()) return Status(Code::corrupt, "its metadata tell of no arrays");
    // The variable of time comes first, and begins without steps. No other array has a dimension without
    // elements.
    const Json& shape = arrays.begin()->at("shape");
    layout.has_steps_ = !shape.empty() && shape.at(0) == 0;
    const std::string steps_name =
        layout.has_steps_ ? arrays.begin()->at("dimension_names").at(0).get<std::string>() : "";
    for (const auto& [name, array] : arrays.items()) TR_TRY(layout.add(name, array, steps_name));
  } catch (const Json::exception& error) {
    return Status(Code::corrupt, cat("its metadata are none that a stream writes: ", error.what()));
  }
  if (layout.has_steps_ && (layout.times().in_chunk == 0 || layout.times().size != 8))
    return Status(Code::corrupt, "its metadata are none that a stream writes: the first array has no times");
  const Bytes before = frame_bytes + std::ssize(layout.text_);
  for (Array& each : layout.arrays_) {
    if (!each.has_steps) each.begin += before;
  }
  layout.head_ += before;
  return layout;
}

const Layout::Array* Layout::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &arrays_[found->second];
}

const Layout::Array* Layout::at(const std::vector<std::size_t>& of, Bytes offset) const {
  const auto behind =
      std::ranges::upper_bound(of, offset, {}, [&](std::size_t each) { return arrays_[each].begin; });
  if (behind == of.begin()) return nullptr;
  const Array& last = arrays_[*std::prev(behind)];
  return offset < last.begin + last.size ? &last : nullptr;
}

std::string Layout::group_text(std::int64_t steps) const {
  std::string text;
  std::size_t copied = 0;
  for (const Array& each : arrays_) {
    if (!each.has_steps) continue;
    const std::size_t count = each.text + before_steps.size();
    text.append(text_, copied, count - copied).append(std::to_string(steps));
    copied = count + 1;
  }
  return text.append(text_, copied);
}

std::string Layout::array_text(const Array& array, std::int64_t steps) const {
  std::string text = text_.substr(array.text, array.text_length);
  if (array.has_steps) text.replace(before_steps.size(), 1, std::to_string(steps));
  return text;
}

ByteVector Layout::head_begin(std::int64_t steps) const {
  ByteVector out;
  cf::put_big_endian(out, static_cast<std::int64_t>(text_.size()));
  cf::put_big_endian(out, steps);
  const auto bytes = std::as_bytes(std::span(text_));
  out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

Result<std::int64_t> Layout::steps_in(std::string_view group) const {
  if (!has_steps_) return std::int64_t{0};
  // In most cases a stream has written the text. Then it is enough to read one number from it.
  const std::size_t count = times().text + before_steps.size();
  std::int64_t steps = 0;
  if (count < group.size()) std::from_chars(group.data() + count, group.data() + group.size(), steps);
  if (group == group_text(steps)) return steps;
  try {
    const Json json = Json::parse(group);
    return json.at("consolidated_metadata")
        .at("metadata")
        .at(times().name)
        .at("shape")
        .at(0)
        .get<std::int64_t>();
  } catch (const Json::exception& error) {
    return Status(Code::corrupt, cat("zarr.json does not tell the number of steps: ", error.what()));
  }
}

}  // namespace tailrace::zarr
