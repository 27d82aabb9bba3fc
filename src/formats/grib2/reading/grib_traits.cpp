// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/reading/grib_traits.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "formats/grib2/handle.hpp"
#include "formats/grib2/header.hpp"
#include "formats/grib2/reading/grib_header.hpp"
#include "formats/grib2/reading/grib_times.hpp"
#include "formats/grib2/sections.hpp"
#include "ground/base/checksum.hpp"

namespace tailrace::sources {

namespace {

using grib2::Handle;

/// Returns the value of a key as the user writes it in keys="...".
std::string held_text(const Handle& handle, const std::string& key) {
  return handle.is_missing(key) ? "missing" : handle.text(key).value_or("");
}

/// Returns the extreme that the name of a parameter of GRIB1 tells, or "". Code table 5 has no word for
/// extremes: their time range indicator says that they belong to an interval, and nothing more.
std::string extreme_by_name(const Handle& handle) {
  constexpr long between = 2;
  if (handle.integer("timeRangeIndicator") != between) return "";
  const std::string name = handle.text("shortName").value_or("");
  const auto tells = [&](std::string_view front, std::string_view part) {
    return name.starts_with(front) || name.find(part) != std::string::npos;
  };
  return tells("mn", "min") ? "minimum" : tells("mx", "max") ? "maximum" : "";
}

/// Returns the word that the user writes in statistic=, or "" for a statistic without one.
std::string statistic_word(const Handle& handle, int edition) {
  if (edition == 1) {
    constexpr std::array<std::array<std::string_view, 2>, 5> words{{{"instant", "instant"},
                                                                    {"accum", "accum"},
                                                                    {"avg", "average"},
                                                                    {"max", "maximum"},
                                                                    {"min", "minimum"}}};
    if (std::string extreme = extreme_by_name(handle); !extreme.empty()) return extreme;
    const std::string type = handle.text("stepType").value_or("");
    const auto word = std::ranges::find_if(words, [&](const auto& each) { return each[0] == type; });
    return word == words.end() ? "" : std::string((*word)[1]);
  }
  if (!handle.has("typeOfStatisticalProcessing")) return "instant";
  constexpr std::array<std::string_view, 4> code_table_4_10{"average", "accum", "maximum", "minimum"};
  const long code = handle.integer("typeOfStatisticalProcessing").value_or(255);
  return code < 0 || code > 3 ? "" : std::string(code_table_4_10[static_cast<std::size_t>(code)]);
}

std::optional<double> layer_bottom_of(const Handle& handle, int edition) {
  if (edition == 2 && handle.integer("typeOfSecondFixedSurface").value_or(255) == 255) return std::nullopt;
  if (const auto negative = negative_surface(handle, "Second")) return negative;
  // In GRIB1 only layers have a bottom: equal numbers mean that there is no layer.
  const auto top = handle.number("topLevel"), bottom = handle.number("bottomLevel");
  if (edition == 1 && (!top || !bottom || *top == *bottom)) return std::nullopt;
  return bottom;
}

/// True for keys that may differ between records with the same content: lengths, and the scale factor that
/// GRIB1 keeps in section 1.
bool is_form_key(std::string_view key) {
  return key == "totalLength" || key == "7777" || key == "decimalScaleFactor" || key.ends_with("Length") ||
         key == "identifier";
}

/// True for keys whose content is already in Record or Traits::begin.
bool is_time_key(std::string_view key) {
  return key.ends_with("OfEndOfOverallTimeInterval") || key == "indicatorOfUnitOfTimeRange" ||
         key == "forecastTime" || key == "indicatorOfUnitForTimeRange" || key == "lengthOfTimeRange" ||
         key == "unitOfTimeRange" || key == "P1" || key == "P2";
}

/// Returns the keys of the sections that describe a record: sections 1, 2 and 4; in GRIB1 section 1.
codec::Keys held_keys(const Handle& handle, int edition, bool knows_begin) {
  codec::Keys keys;
  bool is_grid = false;
  for (const std::string& key : handle.coded_keys()) {
    const bool is_over = edition == 1
                             ? key == "section2Length" || key == "section3Length" || key == "section4Length"
                             : key == "section5Length";
    if (is_over) break;
    if (key == "section3Length") is_grid = true;
    if (key == "section4Length") is_grid = false;
    if (is_grid || is_form_key(key) || (knows_begin && is_time_key(key))) continue;
    keys.emplace_back(key, held_text(handle, key));
  }
  // The template's number goes last: it follows from the other keys, which tell a user more.
  std::ranges::stable_partition(
      keys, [](const auto& each) { return each.first != "productDefinitionTemplateNumber"; });
  return keys;
}

/// Returns the checksum of the octets that describe the record: without grid and packing.
std::uint64_t product_checksum(std::span<const std::byte> message, int edition) {
  if (edition == 1) {
    constexpr std::size_t first = 8, scale = 26;  // the decimal scale factor belongs to the packing
    if (message.size() < first + 3) return checksum(message);
    const auto length = static_cast<std::size_t>(grib2::get_number(&message[first], 3));
    if (length < scale + 2 || length > message.size() - first) return checksum(message);
    const auto product = message.subspan(first, length);
    ByteVector octets(product.begin(), product.end());
    octets[scale] = octets[scale + 1] = std::byte{0};
    return checksum(octets);
  }
  const std::size_t grid = grib2::section_begin(message, 3), product = grib2::section_begin(message, 4),
                    end = grib2::section_begin(message, 5);
  constexpr std::size_t first = 16;
  if (grid < first || product < grid || end < product) return checksum(message);
  return checksum(message.subspan(product, end - product), checksum(message.subspan(first, grid - first)));
}

}  // namespace

Result<Traits> grib_traits(std::span<const std::byte> message, const Record& record,
                           const codec::Keys& asked) {
  Traits traits;
  const auto lock = grib2::lock_definitions();
  const Result<Handle> handle = Handle::from_message(message);
  TR_TRY(handle.status());
  const int edition = static_cast<int>(handle->integer("edition").value_or(2));
  traits.statistic = statistic_word(*handle, edition);
  if (traits.statistic != "instant") traits.begin = interval_begin_of(*handle, edition, record.reference);
  traits.bottom = layer_bottom_of(*handle, edition);
  if (handle->has("percentileValue")) traits.percentile = handle->number("percentileValue");
  traits.keys = held_keys(*handle, edition, traits.statistic == "instant" || traits.begin);
  traits.checksum = product_checksum(message, edition);
  for (const auto& each : asked) {
    const bool is_there = handle->has(each.first);
    traits.answers.push_back({is_there ? held_text(*handle, each.first) : "", grib2::matches(*handle, each)});
  }
  if (handle->is_lost()) return Status(Code::corrupt, "ecCodes cannot tell its keys");
  return traits;
}

}  // namespace tailrace::sources
