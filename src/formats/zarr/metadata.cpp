// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/metadata.hpp"

#include <algorithm>

#include "formats/cf/json.hpp"
#include "formats/zarr/layout.hpp"
#include "ground/base/text.hpp"

namespace tailrace::zarr {

namespace {

using cf::Contents;
using cf::Json;
using cf::Type;
using cf::Variable;

bool is_real(Type type) { return type == Type::float32 || type == Type::float64; }

std::string_view name_of(Type type) {
  switch (type) {
    case Type::text:
      return text_type;
    case Type::int8:
      return "int8";
    case Type::uint8:
      return "uint8";
    case Type::int16:
      return "int16";
    case Type::uint16:
      return "uint16";
    case Type::int32:
      return "int32";
    case Type::uint32:
      return "uint32";
    case Type::int64:
      return "int64";
    case Type::uint64:
      return "uint64";
    case Type::float32:
      return "float32";
    case Type::float64:
      return "float64";
  }
  return "float64";
}

/// Returns the value of the attribute `_FillValue`, from which xarray takes the value that means "no value".
/// (Zarr's own fill value may be a number like others.) JSON has no name for every real number, so reals are
/// written as xarray's FillValueCoder does: the base64 of a little-endian float64.
Json masked_value(Type type, std::span<const std::byte> fill) {
  if (!is_real(type)) return cf::number_of(type, fill);
  ByteVector whole(fill.begin(), fill.end());
  cf::swap(whole, std::ssize(whole));
  double value = 0;
  float narrow = 0;
  if (type == Type::float32) {
    std::memcpy(&narrow, whole.data(), sizeof narrow);
    value = static_cast<double>(narrow);
  } else {
    std::memcpy(&value, whole.data(), sizeof value);
  }
  ByteVector bytes;
  cf::put_big_endian(bytes, value);
  std::ranges::reverse(bytes);
  return cf::base64(bytes);
}

Json attributes_of(const Variable& variable) {
  Json attributes = Json::object();
  const cf::Attribute* fill = nullptr;  // stands last
  for (const cf::Attribute& each : variable.attributes) {
    if (each.name == "_FillValue")
      fill = &each;
    else
      attributes[each.name] = cf::value_of(each);
  }
  if (fill != nullptr) attributes["_FillValue"] = masked_value(variable.type, fill->values);
  return attributes;
}

Json named(std::string_view name, Json configuration) {
  return {{"name", name}, {"configuration", std::move(configuration)}};
}

/// Returns the codec `bytes`. Elements of one byte need no byte order.
Json bytes_codec(Type type, std::string_view order) {
  return cf::size_of(type) == 1 ? Json{{"name", "bytes"}} : named("bytes", {{"endian", order}});
}

/// Returns the codec of a compression, with the names and settings that zarr-python writes
/// (https://github.com/zarr-developers/zarr-extensions/tree/main/codecs).
Json compression_codec(Type type, const compression::Compression& how) {
  using compression::Method;
  if (how.method == Method::gzip) return named("gzip", {{"level", how.level}});
  if (how.method == Method::zstd) return named("zstd", {{"level", how.level}, {"checksum", false}});
  const Bytes size = cf::size_of(type);
  return named("blosc", {{"typesize", size},
                         {"cname", how.method == Method::blosc_lz4 ? "lz4" : "zstd"},
                         {"clevel", how.level},
                         {"shuffle", size > 1 ? "shuffle" : "noshuffle"},
                         {"blocksize", compression::blosc_block(how)}});
}

/// Returns the codecs of a field. A shard holds all levels of the field in one step, and each of its chunks
/// holds one level or a part of one. Enlarges `shard` to whole chunks, because the codec asks for that.
Json codecs_of(Type type, const FieldArray& field, std::vector<Index>& shard) {
  Json codecs = Json::array({bytes_codec(type, "little")});
  if (field.is_compressed()) codecs.push_back(compression_codec(type, field.compression));
  if (!field.is_sharded()) return codecs;
  const std::vector<Index>& cut = field.chunking.chunk;
  const std::size_t first = shard.size() - cut.size();
  std::vector<Index> chunk(first, 1);
  chunk.insert(chunk.end(), cut.begin(), cut.end());
  for (std::size_t i = first; i < shard.size(); ++i)
    shard[i] = (shard[i] + chunk[i] - 1) / chunk[i] * chunk[i];
  const Json index = Json::array({named("bytes", {{"endian", "little"}}), Json{{"name", "crc32c"}}});
  return Json::array({named(
      "sharding_indexed",
      {{"chunk_shape", chunk}, {"codecs", codecs}, {"index_codecs", index}, {"index_location", "end"}})});
}

Json array_of(const Contents& contents, const Variable& variable, const FieldArray* field) {
  std::vector<Index> shape;
  Json names = Json::array(), data_type = name_of(variable.type);
  std::vector<int> dimensions = variable.dimensions;
  if (variable.type == Type::text) {  // an element of the array is a whole text
    const Index bytes = contents.dimensions[static_cast<std::size_t>(dimensions.back())].length;
    data_type = named(text_type, {{"length_bytes", bytes}});
    dimensions.pop_back();
  }
  for (const int each : dimensions) {
    const cf::Dimension& dimension = contents.dimensions[static_cast<std::size_t>(each)];
    shape.push_back(each == 0 ? 0 : dimension.length);
    names.push_back(dimension.name);
  }
  std::vector<Index> chunk = shape;
  if (Contents::is_record(variable)) chunk.front() = field != nullptr ? 1 : steps_in_chunk;
  const Json codecs = field != nullptr ? codecs_of(variable.type, *field, chunk)
                                       : Json::array({bytes_codec(variable.type, "big")});
  const Json fill = variable.type == Type::text ? Json("")  // the base64 of zeros
                    : field != nullptr          ? cf::number_of(variable.type, field->fill)
                    : is_real(variable.type)    ? Json("NaN")
                                                : Json(0);
  return {{"zarr_format", 3},
          {"node_type", "array"},
          {"shape", shape},
          {"data_type", std::move(data_type)},
          {"chunk_grid", named("regular", {{"chunk_shape", chunk}})},
          {"chunk_key_encoding", named("default", {{"separator", "."}})},
          {"fill_value", fill},
          {"codecs", codecs},
          {"attributes", attributes_of(variable)},
          {"dimension_names", names}};
}

}  // namespace

std::string group_text(const Contents& contents, const FieldOf& field_of) {
  Json attributes = Json::object();
  for (const cf::Attribute& each : contents.attributes) attributes[each.name] = cf::value_of(each);
  Json arrays = Json::object();
  for (std::size_t i = 0; i < contents.variables.size(); ++i) {
    if (!contents.is_in_file(contents.variables[i])) continue;
    arrays[contents.variables[i].name] = array_of(contents, contents.variables[i], field_of(i));
  }
  const Json consolidated{{"kind", "inline"}, {"must_understand", false}, {"metadata", std::move(arrays)}};
  return cf::text_of(Json{{"zarr_format", 3},
                          {"node_type", "group"},
                          {"attributes", std::move(attributes)},
                          {"consolidated_metadata", consolidated}});
}

}  // namespace tailrace::zarr
