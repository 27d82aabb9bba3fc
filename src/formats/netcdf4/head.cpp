// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/netcdf4/head.hpp"

#include <algorithm>
#include <string_view>

#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"

namespace tailrace::netcdf4 {

namespace {

constexpr std::string_view mark = "TRLNC4D";
// The version of the definitions changes whenever their bytes change. Those of version 3 have an axis of
// times, names of dimensions, fields without time or given attributes, and all others still have version 2.
constexpr char version = '2', version_with_more = '3';
constexpr std::size_t alignment = 512;  // of the first step

Status no_head() { return {Code::corrupt, "the definitions in the head of the file are damaged"}; }

}  // namespace

codec::Patch unfinished() {
  constexpr std::string_view text = "tailrace: NetCDF-4, not finished (docs/formats/netcdf4.md)\n";
  static_assert(text.size() <= superblock_room);
  ByteVector bytes(static_cast<std::size_t>(superblock_room));
  std::ranges::copy(std::as_bytes(std::span(text)), bytes.begin());
  return {0, std::move(bytes), 1};
}

namespace {

/// Returns equal definitions for streams that mean the same: clears the name of the stream, and writes
/// compress= in full for each field, whether the program named the default or not.
Definitions normalised(Definitions definitions) {
  definitions.stream.name.clear();
  const auto is_compress = [](const auto& key) { return key.first == "compress"; };
  for (Definitions::Field& each : definitions.fields) {
    const Result<compression::Compression> how =
        compression::asked_for(each.definition, definitions.stream.keys, methods);
    if (!how.is_ok()) continue;  // cannot happen: defining the field has checked it
    std::erase_if(each.definition.keys, is_compress);
    each.definition.keys.emplace_back("compress", compression::text_of(*how));
  }
  std::erase_if(definitions.stream.keys, is_compress);
  return definitions;
}

using ToldCoordinates = std::shared_ptr<const codec::Coordinates>;

/// Returns the coordinates of all fields, without repetitions.
std::vector<ToldCoordinates> told_coordinates(const Definitions& definitions) {
  std::vector<ToldCoordinates> told;
  for (const Definitions::Field& field : definitions.fields) {
    const ToldCoordinates& its = field.definition.georeference.coordinates;
    const auto same = [&](const ToldCoordinates& each) { return each->are_those_of(*its); };
    if (its && std::ranges::none_of(told, same)) told.push_back(its);
  }
  return told;
}

/// Reads the coordinates that follow the definitions, and gives them to their fields. The prepared bytes of a
/// field end with the facts (shape, checksum) of its coordinates.
Status read_coordinates(Unpacker& in, Definitions& definitions) {
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) {
    Result<codec::Coordinates> read = codec::Coordinates::unpack(in);
    TR_TRY(read.status());
    const auto told = std::make_shared<const codec::Coordinates>(std::move(*read));
    Packer facts;
    told->facts().pack(facts);
    for (Definitions::Field& field : definitions.fields) {
      const bool ends_so = field.prepared.size() >= facts.bytes().size() &&
                           std::equal(facts.bytes().rbegin(), facts.bytes().rend(), field.prepared.rbegin());
      if (ends_so) field.definition.georeference.coordinates = told;
    }
  }
  return {};
}

bool is_without_time(const Definitions::Field& field) { return !field.definition.has_time; }

char version_of(const Definitions& definitions) {
  const bool have_more = std::ranges::any_of(definitions.fields, [](const auto& each) {
    return !each.definition.dimensions.empty() || is_without_time(each) ||
           each.definition.reduction.operation != codec::Reduction::Operation::none;
  });
  const codec::StreamDefinition& stream = definitions.stream;
  return have_more || !stream.time.is_default() || !stream.given.empty() ? version_with_more : version;
}

}  // namespace

ByteVector encode_head(const Definitions& given) {
  const Definitions definitions = normalised(given);
  Packer packed;
  definitions.stream.pack(packed);
  packed.put(static_cast<std::int64_t>(definitions.fields.size()));
  for (const Definitions::Field& each : definitions.fields) {
    each.definition.pack(packed);
    packed.put_bytes(each.prepared);
  }
  // Without large values a head ends here, as all heads did before heads could hold coordinates.
  const std::vector<ToldCoordinates> told = told_coordinates(definitions);
  const bool have_values = std::ranges::any_of(definitions.fields, is_without_time);
  if (!told.empty() || have_values) packed.put(static_cast<std::int64_t>(told.size()));
  for (const ToldCoordinates& each : told) each->pack(packed);
  for (const Definitions::Field& each : definitions.fields) {
    const auto& values = each.definition.values;
    if (is_without_time(each)) packed.put_bytes(values ? std::span(*values) : std::span<const std::byte>());
  }
  Packer out;
  for (const std::byte each : unfinished().bytes) out.put(each);
  for (const char letter : mark) out.put(letter);
  out.put(version_of(definitions));
  {
    // Coordinates and fields without time may be large. This block frees `body` early, so that memory holds
    // at most two copies of them.
    const ByteVector body = packed.take();
    out.put(checksum(body)).put_bytes(body);
  }
  ByteVector head = out.take();
  head.resize((head.size() + alignment - 1) / alignment * alignment);
  return head;
}

Result<Definitions> decode_head(std::span<const std::byte> head) {
  if (std::ssize(head) < superblock_room) return no_head();
  Unpacker in(head.subspan(static_cast<std::size_t>(superblock_room)));
  for (const char letter : mark) {
    if (in.get<char>() != letter) return no_head();
  }
  const char found = in.get<char>();
  if (in.ok() && found != version && found != version_with_more)
    return Status(Code::unsupported, cat("the definitions in the head of the file have version '", found,
                                         "', and this Tailrace reads versions '", version, "' and '",
                                         version_with_more, "': use the Tailrace that began the file"));
  const auto sum = in.get<std::uint64_t>();
  const std::span<const std::byte> packed = in.get_bytes();
  const auto is_zero = [](std::byte each) { return each == std::byte{}; };
  if (!in.ok() || checksum(packed) != sum || !std::ranges::all_of(in.rest(), is_zero)) return no_head();
  Unpacker fields(packed);
  Result<codec::StreamDefinition> stream = codec::StreamDefinition::unpack(fields);
  TR_TRY(stream.status());
  Definitions definitions{std::move(*stream), {}};
  for (auto count = fields.get<std::int64_t>(); count > 0 && fields.ok(); --count) {
    Result<codec::FieldDefinition> field = codec::FieldDefinition::unpack(fields);
    TR_TRY(field.status());
    definitions.fields.push_back({std::move(*field), fields.get_list<std::byte>()});
  }
  if (fields.ok() && !fields.rest().empty()) {
    TR_TRY(read_coordinates(fields, definitions));
    for (Definitions::Field& each : definitions.fields) {
      if (!is_without_time(each)) continue;
      ByteVector values = fields.get_list<std::byte>();
      if (values.empty()) continue;  // it was not put, and all steps have failed
      if (std::ssize(values) != each.definition.whole_bytes()) return no_head();
      each.values_at = fields.rest().data() - head.data() - std::ssize(values);
      each.definition.values = std::make_shared<const ByteVector>(std::move(values));
    }
  }
  if (!fields.ok() || !fields.rest().empty() || found != version_of(definitions)) return no_head();
  return definitions;
}

}  // namespace tailrace::netcdf4
