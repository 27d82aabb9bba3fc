// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// HEALPix grids: template 3.150 of GRIB2 (WMO Manual on Codes, FM 92 GRIB edition 2). ecCodes knows this
// template only since version 2.32. So that files do not depend on the version, this module writes section 3
// itself, octet by octet. An older ecCodes gets an unstructured grid with as many points in its place.
#include <eccodes.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "formats/grib2/header.hpp"
#include "formats/grib2/sample.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

constexpr std::uint64_t template_number = 150;
constexpr std::size_t section_length = 42;
constexpr std::size_t template_at = 12;  // in section 3

/// A key of ecCodes, the octets of section 3 that hold its number, and the number if the key is missing.
struct Octets {
  std::string_view key;
  std::size_t at;
  int width;
  std::uint64_t otherwise;
};

constexpr std::array<Octets, 13> octets{{{"shapeOfTheEarth", 14, 1, 0},
                                         {"scaleFactorOfRadiusOfSphericalEarth", 15, 1, 0xff},
                                         {"scaledValueOfRadiusOfSphericalEarth", 16, 4, 0xffffffff},
                                         {"scaleFactorOfEarthMajorAxis", 20, 1, 0xff},
                                         {"scaledValueOfEarthMajorAxis", 21, 4, 0xffffffff},
                                         {"scaleFactorOfEarthMinorAxis", 25, 1, 0xff},
                                         {"scaledValueOfEarthMinorAxis", 26, 4, 0xffffffff},
                                         {"resolutionAndComponentFlags", 30, 1, 0},
                                         {"Nside", 31, 4, 0},
                                         {"longitudeOfFirstGridPoint", 35, 4, 45000000},
                                         {"gridPointPosition", 39, 1, 4},
                                         {"ordering", 40, 1, 0},
                                         {"scanningMode", 41, 1, 0}}};

const Octets* find_octets(std::string_view key) {
  const auto found = std::ranges::find(octets, key, &Octets::key);
  return found == octets.end() ? nullptr : &*found;
}

/// Translates a key to the name and the unit of the table above.
Result<std::pair<std::string, std::string>> plain(const std::string& key, const std::string& value) {
  if (key == "N" || key == "numberOfPointsAlongASide")
    return std::pair<std::string, std::string>("Nside", value);
  if (key == "orderingConvention") {
    if (value == "ring" || value == "nested")
      return std::pair<std::string, std::string>("ordering", value == "ring" ? "0" : "1");
    return Status(Code::format, cat("grid key 'orderingConvention' = ", value, ": expected ring or nested"));
  }
  if (key == "longitudeOfFirstGridPointInDegrees") {
    const Result<double> degrees = parse_real(value);
    TR_TRY(degrees.status().in(cat("grid key '", key, "'")));
    if (!std::isfinite(*degrees)) return Status(Code::format, cat("grid key '", key, "' = ", value));
    const double turned = std::fmod(std::fmod(*degrees, 360) + 360, 360);
    return std::pair<std::string, std::string>("longitudeOfFirstGridPoint", cat(std::llround(turned * 1e6)));
  }
  return std::pair(key, value);
}

Status no_such_key(const std::string& key) {
  std::string names;
  for (const Octets& each : octets) names += cat(", ", each.key);
  return {Code::format, cat("grid 'healpix' has no key ", key, ": it has orderingConvention",
                            ", longitudeOfFirstGridPointInDegrees", names)};
}

Status check_points(std::uint64_t side, bool is_nested, Index points) {
  constexpr std::uint64_t most = 18918;  // 12 * 18919^2 points are more than GRIB2 counts
  if (side < 1 || side > most)
    return {Code::format, cat("grid 'healpix' needs Nside=, the points along a side of its 12 rhomboids: "
                              "expected 1 to ",
                              most, ", got ", side)};
  if (is_nested && !std::has_single_bit(side))
    return {Code::format, cat("grid 'healpix' in nested order: expected a power of 2 as Nside, got ", side)};
  const Index described = 12 * static_cast<Index>(side * side);
  if (described == points) return {};
  return {Code::format, cat("the grid 'healpix' with Nside=", side, " has ", counted(described, "point"),
                            ", and a record has ", counted(points, "element"),
                            "; make the layout and the georeference agree")};
}

/// Returns the number in `text`, `missing` for the word "missing", or -1 if the text is no whole number.
std::int64_t count_of(const std::string& text, std::uint64_t missing) {
  if (text == "missing") return static_cast<std::int64_t>(missing);
  return as_integer(text).value_or(-1);
}

Status put_key(const std::string& given, const std::string& text, Index points, ByteVector& section) {
  const auto key = plain(given, text);
  TR_TRY(key.status());
  const auto& [name, value] = *key;
  if (name == "numberOfDataPoints") {
    if (count_of(value, 0) == points) return {};
    return {Code::format, cat("grid key '", given, "' = ", text, ": the record has ", points)};
  }
  const Octets* const to = find_octets(name);
  if (to == nullptr) return no_such_key(given);
  const std::int64_t most = (std::int64_t{1} << (8 * to->width)) - 1;
  const std::int64_t number = count_of(value, to->otherwise);
  if (number < 0 || number > most)
    return {Code::format,
            cat("grid key '", given, "' = ", text, ": expected a whole number from 0 to ", most)};
  put_number(&section[to->at], static_cast<std::uint64_t>(number), to->width);
  return {};
}

/// Returns a section 3 with template 3.101 (unstructured grid), for an ecCodes that does not know HEALPix.
ByteVector unstructured_section(std::uint64_t points) {
  constexpr std::size_t length = 35;
  ByteVector section(length);
  put_number(&section[0], length, 4);
  put_number(&section[4], 3, 1);
  put_number(&section[6], points, 4);
  put_number(&section[template_at], 101, 2);
  return section;
}

/// Returns offset and length of section 3 of a message, or nothing if its grid is no HEALPix grid.
std::optional<std::pair<std::size_t, std::size_t>> find_healpix(std::span<const std::byte> message) {
  constexpr std::size_t first = 16, least = 5;
  if (message.size() < first || message[7] != std::byte{2}) return std::nullopt;
  for (std::size_t at = first; at + template_at + 2 <= message.size();) {
    const std::size_t length = get_number(&message[at], 4);
    const int number = std::to_integer<int>(message[at + 4]);
    if (length < least || length > message.size() - at || number > 3) return std::nullopt;
    if (number == 3) {
      const bool is_it =
          length >= section_length && get_number(&message[at + template_at], 2) == template_number;
      return is_it ? std::optional(std::pair(at, length)) : std::nullopt;
    }
    at += length;
  }
  return std::nullopt;
}

ByteVector with_section(std::span<const std::byte> message, std::size_t at, std::size_t length,
                        const ByteVector& section) {
  ByteVector changed(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(at));
  changed.insert(changed.end(), section.begin(), section.end());
  changed.insert(changed.end(), message.begin() + static_cast<std::ptrdiff_t>(at + length), message.end());
  put_number(&changed[8], get_number(&message[8], 8) - length + section.size(), 8);
  return changed;
}

bool is_grid_key(const std::string& key) {
  return key == "gridType" || key == "gridDefinitionTemplateNumber" || key == "gridName" ||
         key == "orderingConvention" || key == "longitudeOfFirstGridPointInDegrees" || key == "N" ||
         key == "numberOfPointsAlongASide" || key == "numberOfDataPoints" || find_octets(key) != nullptr;
}

}  // namespace

bool is_healpix(const codec::Keys& keys) {
  return std::ranges::any_of(keys, [](const auto& key) {
    return (key.first == "gridType" && key.second == "healpix") ||
           (key.first == "gridDefinitionTemplateNumber" && key.second == cat(template_number));
  });
}

Result<ByteVector> healpix_section(const codec::Keys& keys, Index points) {
  ByteVector section(section_length);
  put_number(&section[0], section_length, 4);
  put_number(&section[4], 3, 1);
  put_number(&section[6], static_cast<std::uint64_t>(points), 4);
  put_number(&section[template_at], template_number, 2);
  for (const Octets& each : octets) put_number(&section[each.at], each.otherwise, each.width);
  for (const auto& [key, value] : keys) {
    if (key != "gridType" && key != "gridDefinitionTemplateNumber")
      TR_TRY(put_key(key, value, points, section));
  }
  const Octets &side = *find_octets("Nside"), &order = *find_octets("ordering");
  TR_TRY(check_points(get_number(&section[side.at], side.width), section[order.at] == std::byte{1}, points));
  return section;
}

codec::Keys keys_of_section(std::span<const std::byte> section) {
  codec::Keys keys{{"gridType", "healpix"}};
  for (const Octets& each : octets) {
    const std::uint64_t value = get_number(&section[each.at], each.width);
    if (each.key == "ordering" && value <= 1)
      keys.emplace_back("orderingConvention", value == 0 ? "ring" : "nested");
    else if (each.key == "longitudeOfFirstGridPoint")
      keys.emplace_back("longitudeOfFirstGridPointInDegrees", cat(static_cast<double>(value) / 1e6));
    else if (value != each.otherwise || each.key == "Nside" || each.key == "shapeOfTheEarth")
      keys.emplace_back(each.key, cat(value));
  }
  return keys;
}

std::optional<codec::Keys> healpix_keys(std::span<const std::byte> message) {
  const auto place = find_healpix(message);
  if (!place) return std::nullopt;
  return keys_of_section(message.subspan(place->first, place->second));
}

std::optional<ByteVector> without_healpix(std::span<const std::byte> message) {
  constexpr long knows_healpix = 23200;
  if (codes_get_api_version() >= knows_healpix) return std::nullopt;
  const auto place = find_healpix(message);
  if (!place) return std::nullopt;
  return with_section(message, place->first, place->second,
                      unstructured_section(get_number(&message[place->first + 6], 4)));
}

Result<HealpixField> healpix_field(const codec::StreamDefinition& stream,
                                   const codec::FieldDefinition& field) {
  HealpixField stand_in;
  const codec::Georeference& georeference = field.georeference;
  const bool by_own_keys = georeference.sample.empty() && georeference.keys.empty();
  Result<codec::Keys> named = named_grid(!by_own_keys           ? georeference.keys
                                         : has_grid(field.keys) ? field.keys
                                                                : stream.keys);
  TR_TRY(named.status());
  codec::Keys keys = std::move(*named);
  const std::optional<codec::Keys> sample = healpix_keys(georeference.sample);
  const bool names_another = !is_healpix(keys) && has_grid(keys);
  if (names_another || (!sample && !is_healpix(keys))) return stand_in;
  // The program's keys come behind those of the sample, because the last one of equal keys counts.
  if (sample) keys.insert(keys.begin(), sample->begin(), sample->end());
  if (by_own_keys) std::erase_if(keys, [](const auto& key) { return !is_grid_key(key.first); });
  Result<ByteVector> section = healpix_section(keys, field.elements());
  TR_TRY(section.status());
  stand_in.section = std::move(*section);
  stand_in.stream = stream;
  stand_in.field = field;
  stand_in.field.georeference = {};
  stand_in.field.georeference.keys = {{"gridType", "unstructured_grid"}};
  const auto is_its = [](const auto& key) { return is_grid_key(key.first); };
  if (by_own_keys) {
    std::erase_if(stand_in.field.keys, is_its);
    std::erase_if(stand_in.stream.keys, is_its);
  }
  const auto has_tables = [](const auto& key) { return key.first == "tablesVersion"; };
  stand_in.has_tables =
      std::ranges::any_of(field.keys, has_tables) || std::ranges::any_of(stream.keys, has_tables);
  return stand_in;
}

void put_healpix(const HealpixField& from, Field& field) {
  constexpr std::size_t tables_at = 16 + 9;
  constexpr std::uint64_t first_tables = 32;  // the first version of WMO's tables with this grid
  ByteVector& head = field.parts.head;
  const std::size_t begin = section_begin(head, 3), end = section_begin(head, 4);
  const auto moved =
      static_cast<std::ptrdiff_t>(from.section.size()) - static_cast<std::ptrdiff_t>(end - begin);
  if (!from.has_tables && get_number(&head[tables_at], 1) < first_tables)
    put_number(&head[tables_at], first_tables, 1);
  head = with_section(head, begin, end - begin, from.section);
  for (std::vector<Patch>& level : field.levels)
    for (Patch& patch : level)
      if (patch.offset >= end)
        patch.offset = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(patch.offset) + moved);
  for (Bytes* const at : {&field.time.unit, &field.time.forecast_time, &field.time.end_time,
                          &field.time.range_unit, &field.time.range_length})
    if (*at >= static_cast<Bytes>(end)) *at += moved;
}

}  // namespace tailrace::grib2
