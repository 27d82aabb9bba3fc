// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Makes the prepared header of a field. As in GRIB2, ecCodes drops and overrides keys, depending on their
// order (docs/design/004-grib-keys.md), so that every key is read back.
#include "formats/grib2/edition1/header.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "formats/grib2/edition1/sections.hpp"
#include "formats/grib2/edition1/time.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2::edition1 {

namespace {

constexpr std::size_t level_at = product_at + 10;
constexpr std::size_t most_coefficients = 255;  // their number has one octet

bool is_given(const codec::Keys& keys, std::string_view name) {
  return codec::find_key(keys, name) != nullptr;
}

/// Sets the keys of one field on one handle, in the order in which ecCodes keeps all of them.
class Builder {
 public:
  explicit Builder(const Request& request)
      : request_(request), stream_(*request.stream), field_(*request.field) {}

  Result<Field> build(const codec::Keys& grid);

 private:
  Status begin();
  Status early_keys();
  Status base_time();
  Status ensemble();
  Status level_type();
  Status parameter();
  Status coefficients();
  Status late_keys(const codec::Keys& keys);
  Status all_levels(Field& field);
  Status verify(const Field& field, std::size_t level) const;
  Status set(const std::string& key, long value, std::string_view hint);
  [[nodiscard]] bool is_asked(std::string_view key) const {
    return is_given(request_.stream_keys, key) || is_given(request_.field_keys, key);
  }

  const Request& request_;
  const codec::StreamDefinition& stream_;
  const codec::FieldDefinition& field_;
  std::optional<Handle> handle_;
  codec::Keys wanted_;
};

Status Builder::set(const std::string& key, long value, std::string_view hint) {
  if (const int error = handle_->set(key, value); error != 0) return key_fails(error, key, cat(value), hint);
  wanted_.emplace_back(key, cat(value));
  return {};
}

/// Opens the handle. ecCodes' sample says that ECMWF made it, in a local section: the message becomes one of
/// unknown origin, with WMO's table of parameters.
Status Builder::begin() {
  Result<Handle> own = Handle::from_sample("GRIB1");
  TR_TRY(own.status());
  for (const auto& [key, value] : {std::pair("deleteLocalDefinition", 1L), std::pair("centre", 255L),
                                   std::pair("generatingProcessIdentifier", 255L),
                                   std::pair("table2Version", 3L), std::pair("indicatorOfParameter", 255L)}) {
    if (const int error = own->set(key, value); error != 0)
      return key_fails(error, key, cat(value),
                       "ecCodes' sample 'GRIB1' lacks the key: check ECCODES_SAMPLES_PATH");
  }
  const Result<ByteVector> head = head_of(own->message());
  TR_TRY(head.status());
  Result<Handle> handle = Handle::from_message(constant_message(*head));
  TR_TRY(handle.status());
  handle_ = std::move(*handle);
  return {};
}

Status Builder::early_keys() {
  for (const auto& [key, value] : request_.stream_keys) {
    if (key == "gridName" || key == "isOctahedral") continue;
    if (const int error = handle_->set_text(key, value); error != 0 && !is_absent(error))
      return key_fails(error, key, value, "correct the stream's keys=");
  }
  return {};
}

Status Builder::base_time() {
  const DateTime& base = stream_.base;
  constexpr std::int64_t last_year = 25500;
  if (base.second != 0 || base.year < 1 || base.year > last_year)
    return {Code::format,
            cat("base time ", format_time(base), ": GRIB1 holds whole minutes of the years 1 to ", last_year,
                "; choose another base=, or format=grib2")};
  const auto century = static_cast<long>((base.year - 1) / 100 + 1);
  const std::string_view hint = "choose format=grib2";
  TR_TRY(set("centuryOfReferenceTimeOfData", century, hint));
  TR_TRY(set("yearOfCentury", static_cast<long>(base.year) - (century - 1) * 100, hint));
  TR_TRY(set("month", base.month, hint));
  TR_TRY(set("day", base.day, hint));
  TR_TRY(set("hour", base.hour, hint));
  TR_TRY(set("minute", base.minute, hint));
  wanted_.emplace_back("dataDate", cat(base.year * 10000 + base.month * 100 + base.day));
  wanted_.emplace_back("dataTime", cat(base.hour * 100 + base.minute));
  return {};
}

/// GRIB1 has no octets for a member. ECMWF keeps it in a section of its own, definition 1, with the words of
/// its archive: a perturbed forecast or the control run of an ensemble, which no operational archive has.
Status Builder::ensemble() {
  if (!request_.member) return {};
  if (!handle_->has("perturbationNumber")) {
    static_cast<void>(handle_->set("setLocalDefinition", 1L));
    static_cast<void>(handle_->set("localDefinitionNumber", 1L));
    const std::array<std::array<std::string, 3>, 3> words{
        {{"class", "marsClass", "rd"},
         {"type", "marsType", *request_.member == 0 ? "cf" : "pf"},
         {"stream", "marsStream", "enfo"}}};
    for (const auto& [key, other, value] : words) {
      if (handle_->has("perturbationNumber") && !is_asked(key) && !is_asked(other))
        static_cast<void>(handle_->set(key, value));
    }
  }
  if (!handle_->has("perturbationNumber"))
    return {Code::format,
            cat("ensemble member ", *request_.member,
                ": GRIB1 holds it in a local section of ECMWF alone: add centre=98 (or subCentre=98) to "
                "the keys, leave member= out, or choose format=grib2")};
  const std::string_view hint = "the local section has no such key; choose localDefinitionNumber=1";
  TR_TRY(set("perturbationNumber", *request_.member, hint));
  return request_.members ? set("numberOfForecastsInEnsemble", *request_.members, hint) : Status();
}

Status Builder::level_type() {
  const int error = handle_->set("typeOfLevel", request_.level_type);
  if (error == 0 && handle_->text("typeOfLevel") == request_.level_type) return {};
  return {Code::format, cat("ecCodes knows no type of level '", request_.level_type,
                            "' in GRIB1: take one of code table 3, as surface, height, pressure, hybrid, "
                            "depthBelowSea or depthBelowLandLayer, or choose format=grib2")};
}

Status Builder::parameter() {
  if (request_.named_by_keys) return {};
  const int error = handle_->set("shortName", field_.name);
  if (error != 0)
    return key_fails(error, "shortName", field_.name,
                     cat("ecCodes knows no parameter of GRIB1 by this name with centre ",
                         handle_->text("centre").value_or("?"),
                         "; correct the name, give centre=98 for the names of ECMWF's tables, or give "
                         "indicatorOfParameter and table2Version as keys"));
  const std::string type = handle_->text("typeOfLevel").value_or("unknown"),
                    at = handle_->text("level").value_or("0");
  if (type == request_.level_type) return {};
  return differs(
      *handle_, {"typeOfLevel", request_.level_type},
      cat("the name '", field_.name, "' belongs to levels=", type == "heightAboveGround" ? "height" : type,
          at == "0" ? "" : ":" + at, ": define it there, or by another name"));
}

Status Builder::coefficients() {
  std::vector<double> pv = field_.levels.coefficients;
  const codec::Georeference& georeference = field_.georeference;
  // A hybrid field without coefficients of its own takes those of the sample.
  if (pv.empty() && request_.level_type.starts_with("hybrid") && !georeference.sample.empty()) {
    if (const Result<Handle> sample = Handle::from_message(georeference.sample); sample.is_ok())
      pv = sample->numbers("pv");
  }
  if (pv.empty()) return {};
  if (pv.size() > most_coefficients)
    return {Code::format, cat(pv.size(), " vertical coefficients: GRIB1 holds at most ", most_coefficients,
                              "; leave them out, or choose format=grib2")};
  wanted_.emplace_back("NV", cat(pv.size()));
  constexpr double rounding = 1e-6;  // coefficients are stored as IBM floats
  return set_coefficients(*handle_, pv, rounding, "leave the coefficients out");
}

Status Builder::late_keys(const codec::Keys& keys) {
  for (const auto& [key, value] : keys) {
    wanted_.emplace_back(key, value);
    if (matches(*handle_, wanted_.back()) && !key.starts_with("set") && !key.starts_with("delete")) continue;
    const int error = handle_->set_text(key, value);
    if (is_absent(error)) return no_such_key(*handle_, key, value);
    if (error != 0) return key_fails(error, key, value, "correct keys=; the key may be read-only");
  }
  return {};
}

/// The levels of a field differ in two octets of their headers.
Status Builder::all_levels(Field& field) {
  const bool by_keys = levels_by_keys(request_);
  for (std::size_t level = 0; level < field_.levels.values.size(); ++level) {
    std::vector<Patch>& patches = field.levels.emplace_back();
    if (by_keys) continue;
    const Result<std::uint64_t> octets = level_octets(request_, level);
    TR_TRY(octets.status());
    const std::array<std::byte, 2> both{static_cast<std::byte>(*octets >> 8),
                                        static_cast<std::byte>(*octets & 0xff)};
    for (std::size_t i = 0; i < both.size(); ++i) {
      if (level == 0) field.parts.head[level_at + i] = both[i];
      if (field.parts.head[level_at + i] != both[i]) patches.push_back({level_at + i, both[i]});
    }
  }
  return {};
}

Status Builder::verify(const Field& field, std::size_t level) const {
  ByteVector head = field.parts.head;
  for (const Patch& patch : field.levels[level]) head[patch.offset] = patch.value;
  const Result<Handle> handle = Handle::from_message(constant_message(head));
  TR_TRY(handle.status());
  codec::Keys wanted{{"typeOfLevel", request_.level_type}};
  if (!request_.named_by_keys) wanted.emplace_back("shortName", field_.name);
  if (level == 0) wanted.insert(wanted.end(), wanted_.begin(), wanted_.end());
  return read_back(*handle, wanted);
}

Result<Field> Builder::build(const codec::Keys& grid) {
  TR_TRY(begin());
  TR_TRY(early_keys());
  TR_TRY(base_time());
  TR_TRY(set_grid(*handle_, field_, grid, false, wanted_, 1));
  TR_TRY(ensemble());
  TR_TRY(level_type());
  TR_TRY(parameter());
  TR_TRY(coefficients());
  TR_TRY(late_keys(request_.stream_keys));
  TR_TRY(late_keys(request_.field_keys));
  Field field = field_of(stream_, field_);
  Result<ByteVector> head = head_of(handle_->message());
  TR_TRY(head.status());
  field.parts.head = std::move(*head);
  write_time(field.parts.head.data(), {0, 0}, field_.statistic.process);
  TR_TRY(all_levels(field));
  for (std::size_t level = 0; level < field.levels.size(); ++level) TR_TRY(verify(field, level));
  return field;
}

/// Removes the keys of the grid that `grid` says in other words: set as they are, they would overwrite it.
void leave_translated(Request& request, const codec::Keys& grid) {
  for (const auto& [key, value] : grid_keys(request)) {
    if (key == "gridName" || key == "isOctahedral") continue;
    const std::string* const same = codec::find_key(grid, key);
    if (same != nullptr && *same == value) continue;
    const std::string name = key;
    for (codec::Keys* const keys : {&request.stream_keys, &request.field_keys})
      std::erase_if(*keys, [&](const auto& each) { return each.first == name; });
  }
}

}  // namespace

Result<Field> prepare(const codec::StreamDefinition& stream, const codec::FieldDefinition& field) {
  TR_TRY(check_section(stream, field));
  Result<Request> request = resolve(stream, field);
  TR_TRY(request.status());
  const Result<codec::Keys> grid = grid_keys_of(*request);
  TR_TRY(grid.status());
  const codec::Georeference& georeference = field.georeference;
  if (georeference.sample.empty() && georeference.keys.empty()) leave_translated(*request, *grid);
  const auto lock = lock_definitions();
  return Builder(*request).build(*grid);
}

}  // namespace tailrace::grib2::edition1
