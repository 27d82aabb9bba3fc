// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "zarr/layout.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cf/json.hpp"

namespace tailrace::zarr {

namespace {

using cf::Json;

Bytes item_size(const std::string& type) {
  if (type == "int8" || type == "uint8") return 1;
  if (type == "int16") return 2;
  if (type == "int32" || type == "float32") return 4;
  if (type == "int64" || type == "float64") return 8;
  return 0;
}

bool has_codec(const Json& codecs, std::string_view name) {
  return std::ranges::any_of(codecs, [&](const Json& each) { return each.at("name") == name; });
}

/// Returns the room that one object of a field needs.
Bytes room_of(const Json& array, Bytes raw) {
  const Json& codecs = array.at("codecs");
  const bool is_sharded = has_codec(codecs, "sharding_indexed");
  const Json& inner = is_sharded ? codecs.at(0).at("configuration").at("codecs") : codecs;
  const Index chunks =
      is_sharded ? array.at("chunk_grid").at("configuration").at("chunk_shape").at(1).get<Index>() : 1;
  const Bytes chunk = has_codec(inner, "gzip") ? most_compressed(raw / chunks) : raw / chunks;
  return chunks * chunk + (is_sharded ? index_bytes(chunks) : 0);
}

/// A copy of the group in which arrays have so many steps.
Json with_steps(const Json& group, const std::vector<Layout::Array>& arrays, std::int64_t steps) {
  Json changed = group;
  Json& metadata = changed["consolidated_metadata"]["metadata"];
  for (const Layout::Array& each : arrays) {
    if (each.has_steps) metadata[each.name]["shape"][0] = steps;
  }
  return changed;
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
  added.has_steps = !names.empty() && names.at(0) == steps_name;
  const auto chunk = array.at("chunk_grid").at("configuration").at("chunk_shape").get<std::vector<Index>>();
  Bytes raw = item_size(array.at("data_type").get<std::string>());
  if (raw == 0 || chunk.size() != added.dimensions || names.size() != added.dimensions)
    return {Code::corrupt, cat("array '", name, "' is none that a stream writes")};
  for (std::size_t i = added.has_steps ? 1 : 0; i < chunk.size(); ++i) {
    if (chunk[i] < 0 || __builtin_mul_overflow(raw, chunk[i], &raw) || raw > (Bytes{1} << 60))
      return {Code::argument, cat("a chunk of '", name, "' has more than 2^60 bytes")};
  }
  if (added.has_steps && chunk.front() > 1) added.in_chunk = chunk.front();
  added.size = added.has_steps && added.in_chunk == 0 ? room_of(array, raw) : raw;
  Bytes& end = added.has_steps ? step_ : head_;
  added.begin = end;
  if (__builtin_add_overflow(end, added.size, &end) || end > (Bytes{1} << 62))
    return {Code::argument, cat("with array '", name, "' a step has more than 2^62 bytes")};
  arrays_.push_back(std::move(added));
  return {};
}

Result<Layout> Layout::of(std::string_view text) {
  Layout layout;
  try {
    Json group = Json::parse(text);
    const Json& arrays = group.at("consolidated_metadata").at("metadata");
    if (arrays.empty()) return Status(Code::corrupt, "zarr.json tells of no arrays");
    const std::string steps_name = arrays.begin()->at("dimension_names").at(0).get<std::string>();
    for (const auto& [name, array] : arrays.items()) TR_TRY(layout.add(name, array, steps_name));
    layout.steps_ = arrays.begin()->at("shape").at(0).get<std::int64_t>();
    layout.group_ = std::make_shared<const Json>(with_steps(group, layout.arrays_, 0));
  } catch (const Json::exception& error) {
    return Status(Code::corrupt, cat("zarr.json is none that a stream writes: ", error.what()));
  }
  const Array& times = layout.arrays_.front();
  if (times.in_chunk == 0 || times.size != 8)
    return Status(Code::corrupt, "zarr.json is none that a stream writes: the first array has no times");
  const Bytes before = frame_bytes + std::ssize(layout.group_text(0));
  for (Array& each : layout.arrays_) {
    if (!each.has_steps) each.begin += before;
  }
  layout.head_ += before;
  return layout;
}

const Layout::Array& Layout::array(std::string_view name) const {
  return *std::ranges::find(arrays_, name, &Array::name);
}

std::string Layout::group_text(std::int64_t steps) const {
  return cf::text_of(with_steps(*group_, arrays_, steps));
}

std::string Layout::array_text(const Array& array, std::int64_t steps) const {
  Json changed = group_->at("consolidated_metadata").at("metadata").at(array.name);
  if (array.has_steps) changed["shape"][0] = steps;
  return cf::text_of(changed);
}

ByteVector Layout::head_begin(std::int64_t steps) const {
  const std::string text = group_text(0);
  ByteVector out;
  cf::put_big_endian(out, static_cast<std::int64_t>(text.size()));
  cf::put_big_endian(out, steps);
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

}  // namespace tailrace::zarr
