// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/reading.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "formats/cf/json.hpp"
#include "formats/zarr/layout.hpp"
#include "ground/base/text.hpp"

namespace tailrace::zarr {

namespace {

using cf::FoundAttribute;
using cf::Json;
using cf::Number;

struct TypeName {
  std::string_view name;  // version 3
  std::string_view old;   // version 2, without the byte order
  Number type;
};
constexpr std::array<TypeName, 10> type_names{{{"int8", "i1", Number::int8},
                                               {"uint8", "u1", Number::uint8},
                                               {"int16", "i2", Number::int16},
                                               {"uint16", "u2", Number::uint16},
                                               {"int32", "i4", Number::int32},
                                               {"uint32", "u4", Number::uint32},
                                               {"int64", "i8", Number::int64},
                                               {"uint64", "u8", Number::uint64},
                                               {"float32", "f4", Number::float32},
                                               {"float64", "f8", Number::float64}}};

bool is_real(Number type) { return type == Number::float32 || type == Number::float64; }

/// Decodes base64. Returns nothing if the text is no base64.
std::optional<ByteVector> from_base64(std::string_view text) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  ByteVector bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char each : text) {
    const std::size_t value = letters.find(each);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> held & 0xff));
  }
  return bytes;
}

void append_raw(ByteVector& out, const auto& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// Returns the real that is not finite for which a text stands, or nothing.
std::optional<double> special_of(const std::string& text) {
  if (text == "NaN") return std::nan("");
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

/// Returns one element of the type, in the host's byte order, from a number, the name of a real that is not
/// finite, or a real's bits in hexadecimal digits. Returns nothing if the value is none of these.
std::optional<ByteVector> element_of(const Json& value, Number type) {
  ByteVector element;
  if (value.is_number_unsigned() && type == Number::uint64) {
    append_raw(element, value.get<std::uint64_t>());
  } else if (value.is_number_integer() && type == Number::int64) {
    append_raw(element, value.get<std::int64_t>());
  } else if (value.is_number()) {
    if (!cf::append(element, type, value.get<double>())) return std::nullopt;
  } else if (value.is_string() && is_real(type)) {
    const auto text = value.get<std::string>();
    const std::optional<double> special = special_of(text);
    const auto digits = static_cast<std::size_t>(2 * cf::size_of(type));
    if (special) {
      cf::append(element, type, *special);
    } else if (text.size() == 2 + digits && text.starts_with("0x")) {
      char* end = nullptr;
      const std::uint64_t bits = std::strtoull(text.c_str() + 2, &end, 16);
      if (*end != '\0') return std::nullopt;
      if (type == Number::float32)
        append_raw(element, static_cast<std::uint32_t>(bits));
      else
        append_raw(element, bits);
    } else {
      return std::nullopt;
    }
  } else {
    return std::nullopt;
  }
  return element;
}

/// Makes an attribute of a list of numbers: integers if all of them are integers, otherwise reals.
FoundAttribute numbers_of(const std::string& name, const Json& list) {
  const auto is_large = [](const Json& each) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return each.is_number_unsigned() && each.get<std::uint64_t>() > most;
  };
  Number type = Number::float64;
  if (std::ranges::none_of(list, is_large)) {
    if (std::ranges::all_of(list, &Json::is_number_integer)) type = Number::int64;
  } else if (std::ranges::all_of(list, &Json::is_number_unsigned)) {
    type = Number::uint64;
  }
  FoundAttribute attribute{name, type, {}, {}};
  for (const Json& each : list) {
    if (type == Number::int64)
      append_raw(attribute.values, each.get<std::int64_t>());
    else if (type == Number::uint64)
      append_raw(attribute.values, each.get<std::uint64_t>());
    else
      append_raw(attribute.values, each.get<double>());
  }
  return attribute;
}

/// Reads the attributes that are texts, numbers or lists of numbers, and leaves out the others. xarray writes
/// a real
/// `_FillValue` as the base64 of a little-endian float64, since JSON has no name for every real number.
std::vector<FoundAttribute> attributes_of(const Json& object, Number type) {
  std::vector<FoundAttribute> attributes;
  if (!object.is_object()) return attributes;
  for (const auto& [name, value] : object.items()) {
    if (name == "_FillValue" && value.is_string() && is_real(type)) {
      const auto text = value.get<std::string>();
      double number = special_of(text).value_or(0);
      if (!special_of(text)) {
        const auto bytes = from_base64(text);
        if (!bytes || bytes->size() != sizeof number) continue;
        std::uint64_t bits = 0;
        for (std::size_t i = 0; i < 8; ++i) bits |= static_cast<std::uint64_t>((*bytes)[i]) << (8 * i);
        std::memcpy(&number, &bits, sizeof number);
      }
      attributes.push_back(numbers_of(name, Json::array({number})));
    } else if (value.is_string()) {
      attributes.push_back({name, Number::none, value.get<std::string>(), {}});
    } else if (value.is_number_unsigned() && type == Number::uint64 &&
               (name == "_FillValue" || name == "missing_value")) {
      // In the array's own type: float64 has not all of its elements.
      FoundAttribute fill{name, type, {}, {}};
      append_raw(fill.values, value.get<std::uint64_t>());
      attributes.push_back(std::move(fill));
    } else if (value.is_number()) {
      attributes.push_back(numbers_of(name, Json::array({value})));
    } else if (value.is_array() && !value.empty() &&
               std::ranges::all_of(value, [](const Json& each) { return each.is_number(); })) {
      attributes.push_back(numbers_of(name, value));
    }
  }
  return attributes;
}

Status refuse_codec(const std::string& name) {
  return {
      Code::unsupported,
      cat("its chunks went through the codec '", name,
          "' of Zarr, which is not read here: expected bytes, transpose, gzip, zlib, zstd, blosc, lz4, bz2, "
          "crc32c, sharding_indexed, shuffle, delta, fixedscaleoffset, quantize, bitround or astype")};
}

/// Returns the name of a codec without "numcodecs.", which zarr-python puts before the names of codecs from
/// there.
std::string without_library(const std::string& name) {
  constexpr std::string_view library = "numcodecs.";
  return name.starts_with(library) ? name.substr(library.size()) : name;
}

Status add_step(Coding& coding, const std::string& full_name, const Json& configuration) {
  using compression::Packed;
  using Kind = Coding::Step::Kind;
  constexpr std::array<std::pair<std::string_view, Packed>, 6> packings{{{"zlib", Packed::zlib},
                                                                         {"gzip", Packed::gzip},
                                                                         {"zstd", Packed::zstd},
                                                                         {"blosc", Packed::blosc},
                                                                         {"lz4", Packed::lz4},
                                                                         {"bz2", Packed::bzip2}}};
  const std::string name = without_library(full_name);
  if (const auto each = std::ranges::find(packings, name, [](const auto& of) { return of.first; });
      each != packings.end()) {
    TR_TRY(compression::check_reads(each->second));
    coding.steps.push_back({Kind::packed, each->second, 1});
  } else if (name == "crc32c") {
    coding.steps.push_back({Kind::crc32c, {}, 1});
  } else if (name == "shuffle") {
    const auto element = configuration.value("elementsize", Bytes{4});
    if (element < 1 || element > 256)
      return {Code::corrupt, cat("expected a shuffle of elements of 1 to 256 bytes, got ", element)};
    coding.steps.push_back({Kind::shuffle, {}, element});
  } else {
    return refuse_codec(full_name);
  }
  return {};
}

/// Adds a filter that a writer has applied to elements of the type `now`, and sets `now` to the type behind
/// it. Returns false if no filter of elements has this name.
Result<bool> add_filter(Coding& coding, const std::string& name, const Json& configuration, Elements& now) {
  const Result<std::optional<Filter>> read = read_filter(without_library(name), configuration, now);
  TR_TRY(read.status());
  if (!*read) return false;
  if ((*read)->kind != Filter::Kind::cast || (*read)->stored != (*read)->decoded)
    coding.filters.push_back(**read);
  return true;
}

/// Sets the order of the dimensions from a transposition. Returns Code::corrupt if it does not name each
/// dimension once.
Status read_order(const Json& order, std::size_t dimensions, Coding& coding) {
  if (order == "C") return {};
  std::vector<std::size_t> read;
  if (order == "F") {
    for (std::size_t d = dimensions; d-- > 0;) read.push_back(d);
  } else {
    read = order.get<std::vector<std::size_t>>();
  }
  std::vector<std::size_t> sorted = read;
  std::ranges::sort(sorted);
  for (std::size_t d = 0; d < sorted.size(); ++d) {
    if (sorted[d] != d) return {Code::corrupt, "expected each dimension once in a transposition"};
  }
  if (read.size() != dimensions)
    return {Code::corrupt, cat("expected ", dimensions, " dimensions in a transposition, got ", read.size())};
  coding.order = std::move(read);
  return {};
}

/// Reads the codecs of version 3 that turn a chunk with elements of this type into bytes. If the only codec
/// is that of shards, sets `*sharding` to its configuration; with a null `sharding` shards are refused.
Status read_codecs(const Json& codecs, std::size_t dimensions, Number type, Coding& coding,
                   const Json** sharding) {
  Elements now{type, {}};
  bool has_bytes = false;
  for (const Json& each : codecs) {
    const auto name = each.is_string() ? each.get<std::string>() : each.at("name").get<std::string>();
    const Json configuration =
        each.is_object() && each.contains("configuration") ? each.at("configuration") : Json::object();
    if (name == "transpose" && !has_bytes && coding.order.empty()) {
      TR_TRY(read_order(configuration.at("order"), dimensions, coding));
    } else if (name == "bytes" && !has_bytes) {
      has_bytes = true;
      coding.endian =
          configuration.value("endian", "little") == "big" ? std::endian::big : std::endian::little;
    } else if (name == "sharding_indexed" && sharding != nullptr && codecs.size() == 1) {
      *sharding = &each.at("configuration");
      return {};
    } else if (has_bytes) {
      TR_TRY(add_step(coding, name, configuration));
    } else {
      const Result<bool> added = add_filter(coding, name, configuration, now);
      TR_TRY(added.status());
      if (!*added) return refuse_codec(name);
    }
    // Differences (delta) follow the order of the elements, and a transposition changes this order.
    if (!coding.order.empty() && std::ranges::count(coding.filters, Filter::Kind::delta, &Filter::kind) > 0)
      return {
          Code::unsupported,
          "its chunks went through the codecs 'transpose' and 'delta' of Zarr: expected one of them; both "
          "together are not read here"};
  }
  return has_bytes ? Status()
                   : Status(Code::corrupt, "expected a codec that makes bytes of the elements, got none");
}

Status check_chunk(const std::vector<Index>& shape, const std::vector<Index>& chunk) {
  if (chunk.size() != shape.size())
    return {Code::corrupt,
            cat("expected chunks of ", counted(shape.size(), "dimension"), ", got ", chunk.size())};
  Bytes all = 8;
  for (const Index each : shape) {
    if (each < 0 || __builtin_mul_overflow(all, std::max<Index>(each, 1), &all))
      return {Code::corrupt, "expected an array of less than 2^63 bytes, got another shape"};
  }
  for (const Index each : chunk) {
    if (each <= 0) return {Code::corrupt, cat("expected chunks of at least one element, got ", each)};
  }
  return {};
}

/// Returns the length of texts if it is one that is read, or 0.
Bytes text_bytes_of(const Json& length) {
  const auto bytes = length.get<Bytes>();
  return bytes > 0 && bytes <= most_text ? bytes : 0;
}

/// Returns the text of so many bytes whose base64 the value is, with zeros behind it.
std::optional<ByteVector> text_of(const Json& value, Bytes bytes) {
  if (!value.is_string()) return std::nullopt;
  std::optional<ByteVector> text = from_base64(value.get<std::string>());
  if (text && std::ssize(*text) <= bytes) text->resize(static_cast<std::size_t>(bytes));
  return text && std::ssize(*text) == bytes ? text : std::nullopt;
}

Status read_sharding(const Json& configuration, ReadArray& array) {
  Sharding sharding;
  sharding.chunk = configuration.at("chunk_shape").get<std::vector<Index>>();
  TR_TRY(check_chunk(array.chunk, sharding.chunk));
  Index chunks = 1;
  for (std::size_t d = 0; d < array.chunk.size(); ++d) {
    if (array.chunk[d] % sharding.chunk[d] != 0 ||
        __builtin_mul_overflow(chunks, array.chunk[d] / sharding.chunk[d], &chunks) || chunks > most_in_shard)
      return {Code::corrupt, cat("expected shards of at most ", most_in_shard, " whole chunks, got others")};
  }
  sharding.index_is_at_end = configuration.value("index_location", "end") != "start";
  TR_TRY(read_codecs(configuration.at("index_codecs"), array.chunk.size() + 1, Number::uint64, sharding.index,
                     nullptr));
  for (const Coding::Step& each : sharding.index.steps) {
    if (each.kind != Coding::Step::Kind::crc32c)
      return {Code::unsupported, "expected an index of shards without compression, got one with it"};
  }
  if (!sharding.index.filters.empty())
    return {Code::unsupported, "expected an index of shards without filters, got one with them"};
  if (!sharding.index.order.empty()) return refuse_codec("transpose");
  TR_TRY(read_codecs(configuration.at("codecs"), array.chunk.size(), array.variable.type, array.coding,
                     nullptr));
  array.sharding = std::move(sharding);
  return {};
}

Status check_size(const ReadArray& array) {
  if (array.chunk_bytes() <= most_read_chunk) return {};
  return {Code::unsupported,
          cat("expected chunks of at most ", size_text(most_read_chunk), ", got larger ones")};
}

Result<ReadArray> array_3(const Json& json, const std::string& name) {
  ReadArray array;
  array.variable.name = name;
  array.shape = json.at("shape").get<std::vector<Index>>();
  const Json& type = json.at("data_type");
  const auto known =
      std::ranges::find_if(type_names, [&](const TypeName& each) { return type == each.name; });
  array.variable.type = known == type_names.end() ? Number::none : known->type;
  if (type.is_object() && type.value("name", "") == text_type)
    array.variable.text_bytes = text_bytes_of(type.at("configuration").at("length_bytes"));
  const Json& grid = json.at("chunk_grid");
  if (array.variable.element_bytes() == 0) return array;
  array.variable.attributes = attributes_of(json.value("attributes", Json::object()), array.variable.type);
  if (grid.at("name") != "regular") {
    array.refused = {Code::unsupported, "expected a regular grid of chunks, got another one"};
    return array;
  }
  array.chunk = grid.at("configuration").at("chunk_shape").get<std::vector<Index>>();
  TR_TRY(check_chunk(array.shape, array.chunk));
  const Json& keys = json.at("chunk_key_encoding");
  const bool is_old = keys.at("name") == "v2";
  const Json settings = keys.value("configuration", Json::object());
  array.separator = settings.value("separator", is_old ? "." : "/");
  array.prefix = is_old ? "" : "c" + array.separator;
  for (const Json& each : json.value("dimension_names", Json::array()))
    array.dimension_names.push_back(each.is_string() ? each.get<std::string>() : "");
  const auto fill = array.variable.text_bytes > 0 ? text_of(json.at("fill_value"), array.variable.text_bytes)
                                                  : element_of(json.at("fill_value"), array.variable.type);
  if (!fill) {
    const std::string_view wanted =
        array.variable.text_bytes > 0 ? std::string_view("a text") : cf::name_of(array.variable.type);
    return Status(Code::corrupt,
                  cat("expected a fill value of ", wanted, ", got ", json.at("fill_value").dump()));
  }
  array.fill = *fill;
  const Json* sharding = nullptr;
  array.refused =
      read_codecs(json.at("codecs"), array.shape.size(), array.variable.type, array.coding, &sharding);
  if (sharding != nullptr) {
    const Status read = read_sharding(*sharding, array);
    if (read.code() == Code::corrupt) return read;
    array.refused = read;
  }
  if (array.refused.code() == Code::corrupt) return array.refused;
  if (array.variable.text_bytes > 0) array.coding.endian = std::endian::native;
  if (array.refused.is_ok()) array.refused = check_size(array);
  return array;
}

/// Reads the filters and the compressor of version 2. Filters of elements must come before filters of bytes.
Status read_filters_2(const Json& json, ReadArray& array) {
  Elements now{array.variable.type, array.coding.endian};
  const Json filters = json.value("filters", Json()), compressor = json.value("compressor", Json());
  for (const Json& each : filters.is_array() ? filters : Json::array()) {
    const auto name = each.value("id", std::string("?"));
    const Result<bool> added =
        array.coding.steps.empty() ? add_filter(array.coding, name, each, now) : Result<bool>(false);
    TR_TRY(added.status());
    if (!*added) TR_TRY(add_step(array.coding, name, each));
  }
  array.coding.endian = now.endian.value_or(std::endian::little);
  return compressor.is_object() ? add_step(array.coding, compressor.value("id", std::string("?")), compressor)
                                : Status();
}

/// Returns Code::corrupt if values lie too deep inside of one another. The JSON library recurses into them,
/// and would run out of stack.
Status check_depth(const std::string& text) {
  constexpr int deepest = 100;
  int depth = 0;
  bool is_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char each = text[i];
    if (each == '"') is_text = !is_text;
    if (is_text) {
      i += each == '\\' ? 1 : 0;
      continue;
    }
    if (each == '[' || each == '{') ++depth;
    if (each == ']' || each == '}') --depth;
    if (depth > deepest)
      return {Code::corrupt,
              cat("expected metadata of at most ", deepest, " values inside of one another, got more")};
  }
  return {};
}

/// Runs `parse`, and turns exceptions of the JSON library into Code::corrupt.
template <typename Parse>
Result<ReadNode> parsed(const std::string& name, const Parse& parse) {
  try {
    Result<ReadNode> node = parse();
    TR_TRY(node.status().in(cat("array '", name, "'")));
    return node;
  } catch (const nlohmann::json::exception& error) {
    return Status(Code::corrupt,
                  cat("the metadata of '", name, "': expected those of Zarr, got others: ", error.what()));
  }
}

void read_members(const Json& json, ReadNode& node) {
  if (!json.contains("consolidated_metadata") || !json.at("consolidated_metadata").is_object()) return;
  for (const auto& [name, each] : json.at("consolidated_metadata").at("metadata").items()) {
    if (each.value("node_type", "") != "array") continue;
    node.members.push_back(name);
    node.texts.push_back(each.dump());
  }
}

}  // namespace

std::string ReadArray::object(std::span<const Index> number) const {
  std::string name = prefix;
  for (std::size_t d = 0; d < number.size(); ++d) name += cat(d == 0 ? "" : separator, number[d]);
  // An array without dimensions has one chunk, "c" or "0".
  if (number.empty()) name = prefix.empty() ? "0" : "c";
  return name;
}

Bytes Coding::widest_element(Bytes element) const {
  for (const Filter& each : filters) element = std::max(element, cf::size_of(each.stored));
  return element;
}

cf::Number number_named(std::string_view name) {
  const auto* const known = std::ranges::find_if(
      type_names, [&](const TypeName& each) { return name == each.name || name == each.old; });
  return known == type_names.end() ? Number::none : known->type;
}

Bytes ReadArray::chunk_bytes() const {
  Bytes bytes = coding.widest_element(variable.element_bytes());
  for (const Index each : inner_chunk()) {
    if (__builtin_mul_overflow(bytes, each, &bytes)) return most_read_chunk + 1;
  }
  return bytes;
}

Index ReadArray::chunks_in_shard() const {
  Index chunks = 1;
  for (std::size_t d = 0; sharding && d < chunk.size(); ++d) chunks *= chunk[d] / sharding->chunk[d];
  return chunks;
}

Result<ReadNode> parse_node(const std::string& text, const std::string& name) {
  return parsed(name, [&]() -> Result<ReadNode> {
    TR_TRY(check_depth(text));
    const Json json = Json::parse(text);
    ReadNode node;
    if (json.at("zarr_format") != 3)
      return Status(Code::corrupt, "expected version 3 of Zarr, got another one");
    node.is_array = json.at("node_type") == "array";
    if (!node.is_array) {
      node.attributes = attributes_of(json.value("attributes", Json::object()), Number::none);
      read_members(json, node);
      return node;
    }
    Result<ReadArray> array = array_3(json, name);
    TR_TRY(array.status());
    node.array = std::move(*array);
    return node;
  });
}

Result<ReadNode> parse_array_2(const std::string& zarray, const std::string& zattrs,
                               const std::string& name) {
  return parsed(name, [&]() -> Result<ReadNode> {
    TR_TRY(check_depth(zarray));
    TR_TRY(check_depth(zattrs));
    const Json json = Json::parse(zarray), attributes = zattrs.empty() ? Json::object() : Json::parse(zattrs);
    ReadNode node{true, {}, {}, {}, {}};
    ReadArray& array = node.array;
    array.variable.name = name;
    array.shape = json.at("shape").get<std::vector<Index>>();
    array.chunk = json.at("chunks").get<std::vector<Index>>();
    TR_TRY(check_chunk(array.shape, array.chunk));
    const auto type = json.at("dtype").is_string() ? json.at("dtype").get<std::string>() : "";
    const auto known = std::ranges::find_if(
        type_names, [&](const TypeName& each) { return type.size() == 3 && type.substr(1) == each.old; });
    if (known == type_names.end()) return node;
    array.variable.type = known->type;
    array.variable.attributes = attributes_of(attributes, known->type);
    array.coding.endian = type.front() == '>' ? std::endian::big : std::endian::little;
    if (json.value("order", "C") == "F") TR_TRY(read_order("F", array.shape.size(), array.coding));
    array.separator = json.value("dimension_separator", ".");
    for (const Json& each : attributes.value("_ARRAY_DIMENSIONS", Json::array()))
      array.dimension_names.push_back(each.is_string() ? each.get<std::string>() : "");
    array.fill.resize(static_cast<std::size_t>(cf::size_of(known->type)));
    if (const Json fill = json.value("fill_value", Json()); !fill.is_null()) {
      const auto element = element_of(fill, known->type);
      if (!element)
        return Status(Code::corrupt,
                      cat("expected a fill value of ", cf::name_of(known->type), ", got ", fill.dump()));
      array.fill = *element;
      array.fill_is_missing = true;
    }
    array.refused = read_filters_2(json, array);
    if (array.refused.code() == Code::corrupt) return array.refused;
    if (array.refused.is_ok()) array.refused = check_size(array);
    return node;
  });
}

Result<ReadNode> parse_consolidated_2(const std::string& text) {
  return parsed(".zmetadata", [&]() -> Result<ReadNode> {
    TR_TRY(check_depth(text));
    const Json json = Json::parse(text);
    ReadNode node;
    const Json& all = json.at("metadata");
    for (const auto& [key, each] : all.items()) {
      constexpr std::string_view ending = "/.zarray";
      if (!key.ends_with(ending)) continue;
      const std::string name = key.substr(0, key.size() - ending.size());
      node.members.push_back(name);
      node.texts.push_back(each.dump());
      node.texts.push_back(all.value(name + "/.zattrs", Json::object()).dump());
    }
    return node;
  });
}

}  // namespace tailrace::zarr
