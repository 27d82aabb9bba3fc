// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/reading/grib_header.hpp"

#include <algorithm>
#include <cmath>

#include "formats/grib2/handle.hpp"
#include "formats/grib2/header.hpp"
#include "formats/grib2/reading/grib_times.hpp"
#include "formats/grib2/sample.hpp"
#include "formats/grib2/sections.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::sources {

namespace {

using grib2::Handle;

Status lacks(std::string_view what) {
  return {Code::corrupt,
          cat("ecCodes does not tell its ", what, "; codes_info prints which ecCodes this is")};
}

/// Returns the name of the parameter. One without a name is called by its numbers:
/// discipline.category.number, or number.table in GRIB1.
std::string name_of(const Handle& handle) {
  const std::string name = handle.text("shortName").value_or("unknown");
  if (name != "unknown" && !name.empty() && name != "~") return name;
  const auto number = [&](const char* key) { return handle.present_integer(key).value_or(255); };
  if (handle.integer("edition").value_or(2) == 1)
    return cat(number("indicatorOfParameter"), ".", number("table2Version"));
  return cat(number("discipline"), ".", number("parameterCategory"), ".", number("parameterNumber"));
}

void set_level(const Handle& handle, Record& record) {
  record.level_type = handle.text("typeOfLevel").value_or("unknown");
  record.level = handle.number("level").value_or(0);
  if (const auto negative = negative_surface(handle, "First")) record.level = *negative;
  if (record.level_type == "unknown") record.level_type.clear();
  if (record.level_type != "isobaricInPa") return;
  record.level_type = "isobaricInhPa";
  record.level /= 100;
}

/// Returns the number of the member, or -1. In GRIB1 the number lies in sections of a centre's own, and some
/// centres add such a section to every message: outside of an ensemble it holds zeros. Other writers number
/// the members but leave the total at 0.
int member_of(const Handle& handle) {
  const int number = static_cast<int>(handle.present_integer("perturbationNumber").value_or(-1));
  const auto members = handle.present_integer("numberOfForecastsInEnsemble");
  if (!members || *members != 0 || number > 0) return number;
  // Member 0 is real if the message has a template of ensembles (GRIB2) or ECMWF's keys for one: the first
  // member, or the control run, has number 0.
  if (handle.integer("edition").value_or(2) == 2 || handle.has("mars.number")) return number;
  return handle.text("type").value_or("") == "cf" ? number : -1;
}

Result<std::vector<Index>> shape_of(const Handle& handle, const std::string& type) {
  if (type == "sh") {
    const auto most = handle.present_integer("J");
    if (!most || *most < 0 || *most > 65535) return lacks("truncation");
    return std::vector<Index>{(*most + 1) * (*most + 2)};
  }
  const Index points = handle.integer("numberOfDataPoints").value_or(0);
  const auto ni = handle.present_integer("Ni"), nj = handle.present_integer("Nj");
  const bool is_reduced = handle.has("PLPresent") && handle.integer("PLPresent").value_or(0) != 0;
  if (is_reduced || !ni || !nj) {
    if (points <= 0) return lacks("number of points");
    return std::vector<Index>{points};
  }
  std::vector<Index> shape{*nj, *ni};
  if (handle.integer("jPointsAreConsecutive").value_or(0) != 0) std::ranges::reverse(shape);
  if (*ni < 1 || *nj < 1 || !layout::check_shape(shape).is_ok() || (points > 0 && *ni * *nj != points))
    return Status(Code::corrupt,
                  cat("its grid has ", *ni, " x ", *nj, " points, and says that these are ", points));
  return shape;
}

/// The time of a message that is valid at one moment, and the octets of its headers without those of the
/// time.
struct PlainTime {
  std::int64_t reference = 0;
  std::int64_t valid = 0;
  std::string rest;
};

std::optional<PlainTime> timed(const DateTime& base, std::int64_t unit_seconds, std::int64_t step,
                               std::string rest) {
  if (!is_valid(base, Calendar::proleptic_gregorian) || unit_seconds == 0) return std::nullopt;
  const std::int64_t reference = to_seconds(base, Calendar::proleptic_gregorian);
  return PlainTime{reference, reference + step * unit_seconds, std::move(rest)};
}

using grib2::get_number;

std::optional<PlainTime> plain_time_1(std::span<const std::byte> message) {
  const std::span<const std::byte> product =
      message.subspan(8, static_cast<std::size_t>(get_number(&message[8], 3)));
  const auto at = [&](std::size_t octet) { return static_cast<int>(get_number(&product[octet - 1], 1)); };
  // 0: valid P1 after the reference time; 1: initialised analysis.
  if (at(21) > 1) return std::nullopt;
  const DateTime base{(at(25) - 1) * 100 + at(13), at(14), at(15), at(16), at(17), 0};
  std::string rest(reinterpret_cast<const char*>(product.data()), product.size());
  for (const std::size_t octet : {13, 14, 15, 16, 17, 18, 19, 20, 25}) rest[octet - 1] = 0;
  return timed(base, seconds_of_unit(1, at(18)), at(19), "1" + rest);
}

/// Returns the time of a message with template 4.0 or 4.1, and nothing for other templates: a statistic's
/// name and level may depend on the length of its interval.
std::optional<PlainTime> plain_time_2(std::span<const std::byte> message) {
  constexpr std::size_t first = 16;
  const std::size_t grid = grib2::section_begin(message, 3), product = grib2::section_begin(message, 4),
                    end = grib2::section_begin(message, 5);
  if (grid < first + 21 || product < grid || end < product + 34 || get_number(&message[product + 7], 2) > 1)
    return std::nullopt;
  const auto at = [&](std::size_t octet) {
    return static_cast<int>(get_number(&message[first + octet - 1], 1));
  };
  const std::uint64_t step = get_number(&message[product + 18], 4);
  if (step >> 31 != 0) return std::nullopt;
  const DateTime base{
      static_cast<std::int64_t>(get_number(&message[first + 12], 2)), at(15), at(16), at(17), at(18), at(19)};
  std::string rest(reinterpret_cast<const char*>(message.data()), end);
  rest.replace(8, 8, 8, 0);             // the length
  rest.replace(first + 12, 7, 7, 0);    // the base time
  rest.replace(product + 17, 5, 5, 0);  // the step
  rest.erase(grid, product - grid);
  const auto unit = static_cast<long>(get_number(&message[product + 17], 1));
  return timed(base, seconds_of_unit(2, unit), static_cast<std::int64_t>(step), rest);
}

/// Returns a number that tells grids without a grid section apart: the edition and, for GRIB1, the centre and
/// the centre's or the WMO's number of the grid.
std::uint64_t grid_number(std::span<const std::byte> message, std::span<const std::byte> grid_section) {
  const auto edition = std::to_integer<std::uint64_t>(message[7]);
  if (edition != 1 || !grid_section.empty()) return edition;
  constexpr std::size_t centre = 8 + 4, grid = 8 + 6;
  return edition | get_number(&message[centre], 1) << 8 | get_number(&message[grid], 1) << 16;
}

/// Code::unsupported if ecCodes' definitions lack a template of the message.
Status check_templates(std::span<const std::byte> message) {
  constexpr std::size_t grid_template = 12, product_template = 7;
  if (message[7] == std::byte{1}) return {};
  const std::size_t grid = grib2::section_begin(message, 3), product = grib2::section_begin(message, 4);
  if (message.size() < std::max(grid + grid_template, product + product_template) + 2) return {};
  const auto check = [&](int section, std::size_t at, std::string_view what) -> Status {
    const auto number = static_cast<long>(get_number(&message[at], 2));
    constexpr long healpix = 150;  // read without ecCodes
    if ((section == 3 && number == healpix) || !grib2::lacks_template(section, number)) return {};
    return {Code::unsupported, cat("its ", what, " has template ", section, ".", number,
                                   ", which is unknown to ", grib2::library_text())};
  };
  TR_TRY(check(3, grid + grid_template, "grid"));
  return check(4, product + product_template, "product");
}

std::optional<PlainTime> plain_time(std::span<const std::byte> message) {
  return message[7] == std::byte{1} ? plain_time_1(message) : plain_time_2(message);
}

}  // namespace

std::optional<double> negative_surface(const Handle& handle, const std::string& which) {
  const auto scaled = handle.present_integer(cat("scaledValueOf", which, "FixedSurface"));
  if (!scaled || *scaled < grib2::sign_of_surface) return std::nullopt;
  const auto factor = handle.present_integer(cat("scaleFactorOf", which, "FixedSurface")).value_or(0);
  // In the unit of ecCodes' key `level`.
  const double unit = handle.text("typeOfLevel") == "potentialVorticity" ? 1e6 : 1;
  return -static_cast<double>(*scaled - grib2::sign_of_surface) * unit /
         std::pow(10.0, static_cast<double>(factor));
}

Result<int> GribHeaders::grid_of(std::span<const std::byte> message,
                                 std::span<const std::byte> grid_section) {
  const std::uint64_t mark = checksum(grid_section, grid_number(message, grid_section));
  if (const auto found = known_.find(mark); found != known_.end()) return found->second;
  Grid grid;
  {
    const auto lock = grib2::lock_definitions();
    const Result<Handle> handle = Handle::from_message(message);
    TR_TRY(handle.status());
    const std::optional<std::string> type = handle->text("gridType");
    if (!type) return lacks("type of grid");
    Result<std::vector<Index>> shape = shape_of(*handle, *type);
    TR_TRY(shape.status());
    if (handle->is_lost()) return Status(Code::corrupt, "ecCodes cannot tell the shape of its grid");
    grid.shape = std::move(*shape);
  }
  Result<codec::Keys> keys = grib2::grid_keys({{message.begin(), message.end()}, {}});
  TR_TRY(keys.status());
  grid.keys = std::move(*keys);
  grids.push_back(std::move(grid));
  return known_[mark] = static_cast<int>(grids.size()) - 1;
}

Result<Record> GribHeaders::described_by_eccodes(std::span<const std::byte> message) {
  Record record;
  const auto lock = grib2::lock_definitions();
  Result<Handle> handle = Handle::from_message(message);
  TR_TRY(handle.status());
  record.field = name_of(*handle);
  set_level(*handle, record);
  record.member = member_of(*handle);
  TR_TRY(set_times(*handle, record));
  if (handle->is_lost()) return Status(Code::corrupt, "ecCodes cannot tell its keys");
  return record;
}

std::string GribHeaders::name(std::span<const std::byte> message) {
  if (!check_templates(message).is_ok()) return "";
  const auto lock = grib2::lock_definitions();
  const Result<Handle> handle = Handle::from_message(message);
  const std::string name = handle.is_ok() ? handle->text("shortName").value_or("") : "";
  return name == "unknown" || name == "~" ? "" : name;
}

Result<Record> GribHeaders::describe(std::span<const std::byte> message,
                                     std::span<const std::byte> grid_section) {
  TR_TRY(check_templates(message));
  const Result<int> grid = grid_of(message, grid_section);
  TR_TRY(grid.status());
  const std::optional<PlainTime> time = plain_time(message);
  const auto known = time ? described_.find(time->rest) : described_.end();
  if (known != described_.end()) {
    Record record = known->second;
    record.grid = *grid;
    record.reference = time->reference;
    record.valid = time->valid;
    return record;
  }
  Result<Record> record = described_by_eccodes(message);
  TR_TRY(record.status());
  record->grid = *grid;
  // Headers that differ only in time give the same record. The times from the octets are used for them only
  // if ecCodes found the same times here.
  if (time && time->reference == record->reference && time->valid == record->valid)
    described_[time->rest] = *record;
  return record;
}

}  // namespace tailrace::sources
