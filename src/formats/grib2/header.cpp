// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Makes a prepared header from definitions. ecCodes drops and overrides keys, depending on their order:
// docs/design/004-grib-keys.md gives the reason for the order of the steps.
#include "formats/grib2/header.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "formats/grib2/sample.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

/// Keys that users must not set, and what to do instead.
struct Governed {
  std::string_view instead;
  std::vector<std::string_view> keys;
};

// Returns the keys that follow from a definition or from a step's lead. If users set them as keys, too, one
// of the two values would be lost silently.
const std::vector<Governed>& governed() {
  static const auto& table = *new const std::vector<Governed>{
      {"leave it out: format= gives it", {"edition", "editionNumber"}},
      {"use bits=",
       {"bitsPerValue", "numberOfBits", "numberOfBitsContainingEachPackedValue", "setBitsPerValue"}},
      {"use accuracy=",
       {"accuracy", "decimalScaleFactor", "decimalPrecision", "setDecimalPrecision", "changeDecimalPrecision",
        "optimizeScaleFactor"}},
      {"use packing=", {"packingType", "typeOfPacking", "dataRepresentationTemplateNumber"}},
      {"use missing=", {"bitmapPresent", "bitMapIndicator", "missingValue"}},
      {"use put", {"values", "codedValues"}},
      {"use base=",
       {"dataDate", "dataTime", "year", "month", "day", "hour", "minute", "second", "yearOfCentury",
        "centuryOfReferenceTimeOfData"}},
      {"the step's lead gives it",
       {"step", "stepRange", "startStep", "endStep", "stepUnits", "forecastTime",
        "indicatorOfUnitOfTimeRange", "unitOfTimeRange", "P1", "P2"}},
      {"statistic= gives it", {"timeRangeIndicator"}},
      {"statistic= and since= give it", {"lengthOfTimeRange", "indicatorOfUnitForTimeRange"}},
  };
  return table;
}

Status check_governed(const codec::Keys& keys) {
  for (const auto& [key, value] : keys)
    for (const Governed& entry : governed())
      if (std::find(entry.keys.begin(), entry.keys.end(), key) != entry.keys.end())
        return {Code::argument, cat("key '", key, "' = ", value, " cannot be set: ", entry.instead)};
  return {};
}

// Returns true if ecCodes numbers the layers of this type by their bottoms: its definitions of
// template.4.horizontal make the second surface the `level`.
bool is_numbered_by_bottom(std::string_view level_type) {
  return level_type == "soilLayer" || level_type == "seaIceLayer" || level_type == "oceanModelLayer" ||
         level_type == "snowLayer";
}

// Returns true for these surfaces of code table 4.5: altitude, height, depth below land, potential vorticity,
// depth below the sea.
bool may_be_negative(long type_of_surface) {
  return type_of_surface == 102 || type_of_surface == 103 || type_of_surface == 106 ||
         type_of_surface == 109 || type_of_surface == 160;
}

// A number, and the name of the key that gave it.
struct Given {
  std::optional<long> value;
  std::string by;
};

// Moves the keys of these names from `keys` to `typed`. They are needed before the template is chosen; the
// other keys are set after that. Returns Code::argument if two of them contradict each other.
Status take(codec::Keys& keys, std::initializer_list<std::string_view> names, Given& typed) {
  for (auto key = keys.begin(); key != keys.end();) {
    if (std::find(names.begin(), names.end(), key->first) == names.end()) {
      ++key;
      continue;
    }
    const std::optional<long> value = as_integer(key->second);
    if (!value) return {Code::argument, cat("key '", key->first, "' = ", key->second, " is no integer")};
    if (typed.value && *typed.value != *value)
      return {Code::argument, cat("key '", key->first, "' = ", *value, " contradicts ", typed.by, " = ",
                                  *typed.value, ": give one of the two")};
    typed = {value, cat("key '", key->first, "'")};
    key = keys.erase(key);
  }
  return {};
}

Status check_octet(std::string_view what, std::optional<long> value) {
  if (!value || (*value >= 0 && *value <= 254)) return {};
  return {Code::format,
          cat(what, " ", *value, " does not fit the one octet that GRIB has for it (0 to 254)")};
}

Status resolve_ensemble(Request& request) {
  const codec::StreamDefinition& stream = *request.stream;
  Given member, members, own_template;
  if (stream.member) member = {*stream.member, "the stream's option member"};
  if (stream.members) members = {*stream.members, "the stream's option members"};
  for (codec::Keys* keys : {&request.stream_keys, &request.field_keys}) {
    TR_TRY(take(*keys, {"perturbationNumber", "number"}, member));
    TR_TRY(take(*keys, {"numberOfForecastsInEnsemble", "totalNumber"}, members));
    TR_TRY(take(*keys, {"productDefinitionTemplateNumber"}, own_template));
    for (Given* const each : {&member, &members, &own_template}) {
      if (each->by.starts_with("key")) each->by = cat("the stream's ", each->by);
    }
  }
  request.member = member.value;
  request.members = members.value;
  request.own_template = own_template.value;
  if (request.members && !request.member)
    return {Code::argument,
            cat("members=", *request.members, " without member=; say which one this stream is")};
  TR_TRY(check_octet("ensemble member", request.member));
  return check_octet("ensemble size", request.members);
}

Status check_levels(const Request& request) {
  const codec::Levels& levels = request.field->levels;
  if (is_numbered_by_bottom(request.level_type) && !levels.bottoms.empty())
    return {Code::argument, cat("levels of type ", request.level_type, " are numbered by their bottoms, and ",
                                request.level_type, ":1 lies between 0 and 1: leave bottom= out")};
  if (is_numbered_by_bottom(request.level_type) && std::ranges::min(levels.values) < 1)
    return {Code::argument, cat("levels of type ", request.level_type, " are numbered from 1 on, got ",
                                std::ranges::min(levels.values))};
  if (levels.coefficients.empty()) return {};
  if (!request.level_type.starts_with("hybrid"))
    return {Code::argument,
            cat("vertical coefficients belong to hybrid levels, not to ", request.level_type)};
  if (levels.coefficients.size() % 2 != 0)
    return {Code::argument,
            cat(levels.coefficients.size(), " vertical coefficients: as many b as a are needed")};
  const double deepest = *std::max_element(levels.values.begin(), levels.values.end());
  if (deepest * 2 > static_cast<double>(levels.coefficients.size()))
    return {Code::argument, cat("level ", deepest, " is beyond the ", levels.coefficients.size() / 2,
                                " pairs of vertical coefficients")};
  return {};
}

// Returns `head` with section 3 of `sample`. Only the grid is taken from a sample. Its origin, tables and
// product (template, level, statistic, member) may be true of the sample alone, and ecCodes refuses to change
// some templates into others.
ByteVector with_grid_of(const ByteVector& head, const ByteVector& sample) {
  const auto begin = [](const ByteVector& bytes, int section) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(section_begin(bytes, section));
  };
  ByteVector joined(head.begin(), begin(head, 2));
  joined.insert(joined.end(), begin(sample, 3), begin(sample, 4));
  joined.insert(joined.end(), begin(head, 4), head.end());
  return joined;
}

/// Returns true if section 4 of both headers has the same place, length and template number.
bool same_template(const ByteVector& one, const ByteVector& other) {
  constexpr std::size_t template_end = 9;  // length, number of the section, of coordinates, of the template
  const std::size_t at = section_begin(one, 4);
  return at == section_begin(other, 4) && one.size() >= at + template_end &&
         other.size() >= at + template_end && get_number(&one[at], 4) == get_number(&other[at], 4) &&
         get_number(&one[at + 7], 2) == get_number(&other[at + 7], 2);
}

bool same_sections_1_to_3(const ByteVector& one, const ByteVector& other) {
  const auto begin = static_cast<std::ptrdiff_t>(section_begin(one, 1));
  const auto end = static_cast<std::ptrdiff_t>(section_begin(one, 4));
  return section_begin(other, 4) == static_cast<std::size_t>(end) &&
         std::equal(one.begin() + begin, one.begin() + end, other.begin() + begin);
}

/// Returns true if all keys are numbers of the parameter. Any other key may overwrite an earlier key, or
/// change the template without changing its number.
bool names_alone(const codec::Keys& keys) {
  return std::all_of(keys.begin(), keys.end(), [](const auto& key) {
    return key.first == "discipline" || key.first == "parameterCategory" || key.first == "parameterNumber";
  });
}

/// Returns true if the field sets the three numbers of its parameter and one surface, and nothing else. Such
/// a field can go on with the handle of an earlier field of this kind, because it overwrites all that the
/// earlier field has set.
bool sets_numbers_alone(const Request& request, bool has_coefficients) {
  const codec::Keys& keys = request.field_keys;
  const auto is_set = [&](std::string_view name) {
    return std::any_of(keys.begin(), keys.end(), [&](const auto& key) { return key.first == name; });
  };
  return keys.size() == 3 && is_set("discipline") && is_set("parameterCategory") &&
         is_set("parameterNumber") && request.field->levels.bottoms.empty() && !has_coefficients;
}

FirstHalf first_half_of(const Request& request) {
  const codec::FieldDefinition& field = *request.field;
  const codec::Georeference& georeference = field.georeference;
  return {georeference.keys,       checksum(georeference.sample),
          grid_keys(request),      field.shape,
          field.statistic.process, request.level_type,
          request.member,          request.members,
          request.own_template};
}

/// Builds a header on one handle. It sets the keys in the only order in which ecCodes keeps all of them.
class Builder {
 public:
  explicit Builder(const Request& request)
      : request_(request), stream_(*request.stream), field_(*request.field) {}

  Result<Field> build();
  /// Builds the second half only, on the first half of an earlier field.
  Result<Field> build_on(Base& base);
  /// Returns the first half, for later fields. Call it after build().
  [[nodiscard]] Base take_base() { return std::move(base_); }

 private:
  Status first_half();
  Status second_half();
  Result<Field> finish(const codec::Keys& wanted, const TimeOffsets* known_time,
                       std::optional<Handle>& verified);
  Status begin();
  Status origin(Handle& own) const;
  Status early_keys();
  Status reference_time();
  Status product_template();
  Status ensemble();
  Status statistic();
  Status level_type();
  Status parameter();
  Status coefficients();
  Status level(std::size_t index);
  Status late_keys(const codec::Keys& keys);
  Status set(const std::string& key, long value, std::string_view hint);
  Status surface(const std::string& which, double value);
  Result<Bytes> locate(const std::string& key, int width, long one, long other);
  Status locate_time(TimeOffsets& offsets);
  Status all_levels(Field& field);

  const Request& request_;
  const codec::StreamDefinition& stream_;
  const codec::FieldDefinition& field_;
  std::optional<Handle> handle_;
  std::vector<double> sample_pv_;
  codec::Keys wanted_;
  Base base_;
};

Status Builder::set(const std::string& key, long value, std::string_view hint) {
  if (const int error = handle_->set(key, value); error != 0) return key_fails(error, key, cat(value), hint);
  wanted_.emplace_back(key, cat(value));
  return {};
}

// Replaces the origin in ecCodes' sample, which says that ECMWF made it as an operational analysis. The
// message becomes a forecast of unknown origin. The user's keys may name the origin later.
Status Builder::origin(Handle& own) const {
  constexpr long forecast = 2, ensemble_forecast = 4;  // code table 4.3
  const std::array<std::pair<const char*, long>, 5> keys{
      {{"centre", 65535},
       {"productionStatusOfProcessedData", 255},
       {"typeOfProcessedData", 1},
       {"typeOfGeneratingProcess", request_.member ? ensemble_forecast : forecast},
       {"generatingProcessIdentifier", 255}}};
  for (const auto& [key, value] : keys) {
    if (const int error = own.set(key, value); error != 0)
      return key_fails(error, key, cat(value),
                       "ecCodes' sample 'GRIB2' lacks the key: check ECCODES_SAMPLES_PATH");
  }
  return {};
}

// Opens the handle. The packing is set on ecCodes' own small sample: on the user's sample, ecCodes would
// unpack and repack all values.
Status Builder::begin() {
  Result<Handle> own = Handle::from_sample("GRIB2");
  if (!own.is_ok()) return own.status();
  const std::string packing = stream_.packing == "ccsds" ? "grid_ccsds" : "grid_simple";
  if (const int error = own->set("packingType", packing); error != 0)
    return key_fails(error, "packingType", packing, "this ecCodes cannot; choose packing=simple");
  wanted_.emplace_back("packingType", packing);
  TR_TRY(origin(*own));
  Result<Parts> parts = cut(own->message());
  if (!parts.is_ok()) return parts.status();
  std::uint64_t points = 1;
  if (const ByteVector& sample = field_.georeference.sample; !sample.empty()) {
    Result<Parts> given = cut(sample);
    if (!given.is_ok()) return given.status();
    // A hybrid field without coefficients of its own takes those of the sample.
    if (Result<Handle> whole = Handle::from_message(constant_message(*given, points)); whole.is_ok())
      sample_pv_ = whole->numbers("pv");
    parts->head = with_grid_of(parts->head, given->head);
  }
  Result<Handle> handle = Handle::from_message(constant_message(*parts, points));
  if (!handle.is_ok()) return handle.status();
  handle_ = std::move(*handle);
  return {};
}

// Sets the stream's keys for the first time, because the centre and the versions of tables are among them,
// and ecCodes looks up names by these. Keys that do not exist yet are set by late_keys().
Status Builder::early_keys() {
  for (const auto& [key, value] : request_.stream_keys) {
    if (key == "gridName" || key == "isOctahedral") continue;  // named_grid() makes other keys of these two
    if (const int error = handle_->set_text(key, value); error != 0 && !is_absent(error))
      return key_fails(error, key, value, "correct the stream's keys=");
  }
  return {};
}

Status Builder::reference_time() {
  const DateTime& base = stream_.base;
  const std::string_view hint = "GRIB2 holds years 0 to 65534";
  if (base.year < 0 || base.year > 65534)
    return {Code::format, cat("base time ", format_time(base), ": ", hint)};
  TR_TRY(set("year", static_cast<long>(base.year), hint));
  TR_TRY(set("month", base.month, hint));
  TR_TRY(set("day", base.day, hint));
  TR_TRY(set("hour", base.hour, hint));
  TR_TRY(set("minute", base.minute, hint));
  return set("second", base.second, hint);
}

Status Builder::product_template() {
  const bool interval = field_.statistic.process != codec::Process::instant;
  const long number =
      request_.own_template.value_or(request_.member ? (interval ? 11 : 1) : (interval ? 8 : 0));
  TR_TRY(set("productDefinitionTemplateNumber", number, "ecCodes has no such template"));
  if (interval != handle_->has("lengthOfTimeRange"))
    return {Code::format, cat("template 4.", number,
                              interval ? " has no interval, which a statistic needs"
                                       : " needs an interval: give statistic=",
                              "; or leave productDefinitionTemplateNumber out")};
  return {};
}

Status Builder::ensemble() {
  if (!request_.member) return {};
  const std::string_view hint =
      "the template has no ensemble member; leave productDefinitionTemplateNumber out";
  TR_TRY(set("perturbationNumber", *request_.member, hint));
  return request_.members ? set("numberOfForecastsInEnsemble", *request_.members, hint) : Status();
}

Status Builder::statistic() {
  if (field_.statistic.process == codec::Process::instant) return {};
  static constexpr std::array<long, 5> code_table_4_10{255, 1, 0, 2, 3};
  const std::string_view hint = "the template has no statistic";
  TR_TRY(set("numberOfTimeRange", 1, hint));
  TR_TRY(set("typeOfTimeIncrement", 2, hint));
  return set("typeOfStatisticalProcessing",
             code_table_4_10[static_cast<std::size_t>(field_.statistic.process)], hint);
}

Status Builder::level_type() {
  if (!handle_->has("typeOfFirstFixedSurface")) return {};
  for (const char* which : {"First", "Second"}) {
    for (const char* part : {"scaleFactorOf", "scaledValueOf"})
      (void)handle_->set_missing(
          cat(part, which, "FixedSurface"));  // removes the sample's; some templates have none
  }
  const int error = handle_->set("typeOfLevel", request_.level_type);
  // ecCodes accepts an unknown type without an error, and keeps the old one.
  if (error == 0 && handle_->text("typeOfLevel") == request_.level_type) return {};
  if (error != 0)
    return key_fails(error, "typeOfLevel", request_.level_type, "ecCodes does not know this type of level");
  return {
      Code::format,
      cat("ecCodes does not know the type of level '", request_.level_type,
          "': take one of GRIB2's, as surface, height, pressure, hybrid, depthBelowSea or depthBelowLand")};
}

Status Builder::parameter() {
  if (request_.named_by_keys) return {};
  const int error = handle_->set("shortName", field_.name);
  if (error == 0) {
    // A name may set a level of its own (2t: 2 m above ground), and override the level that the field asks
    // for.
    const std::string type = handle_->text("typeOfLevel").value_or("unknown"),
                      at = handle_->text("level").value_or("0");
    if (!handle_->has("typeOfFirstFixedSurface") || same_level_type(request_.level_type, type)) return {};
    return differs(
        *handle_, {"typeOfLevel", request_.level_type},
        cat("the name '", field_.name, "' belongs to levels=", type == "heightAboveGround" ? "height" : type,
            at == "0" ? "" : ":" + at, ": define it there, or by another name"));
  }
  const bool instant = field_.statistic.process == codec::Process::instant;
  return key_fails(
      error, "shortName", field_.name,
      instant ? "ecCodes knows no such name for a value at one instant; if it is accumulated, averaged or "
                "extreme, say "
                "statistic=accum|average|maximum|minimum; otherwise correct the name, the centre, or give "
                "discipline, parameterCategory and parameterNumber as keys"
              : "ecCodes knows no such name with this statistic; correct the name or the centre, or give "
                "discipline, "
                "parameterCategory and parameterNumber as keys");
}

Status Builder::coefficients() {
  const bool hybrid = request_.level_type.starts_with("hybrid");
  const std::vector<double>& pv =
      field_.levels.coefficients.empty() && hybrid ? sample_pv_ : field_.levels.coefficients;
  if (pv.empty()) return {};
  wanted_.emplace_back("NV", cat(pv.size()));
  constexpr double rounding = 1.2e-7;  // coefficients are stored as float32
  return set_coefficients(*handle_, pv, rounding, "GRIB2 holds at most 65535 coefficients");
}

Status Builder::surface(const std::string& which, double value) {
  const Result<Surface> surface = surface_on(*handle_, request_, which, value);
  if (!surface.is_ok()) return surface.status();
  const int error = set_surface(*handle_, which, *surface);
  return error == 0 ? Status()
                    : key_fails(error, cat("scaledValueOf", which, "FixedSurface"), cat(value),
                                "choose another type of level");
}

// Sets the surfaces of a level. Runs after parameter(), because a name may set a level of its own (2t: 2 m
// above ground).
Status Builder::level(std::size_t index) {
  if (!handle_->has("scaledValueOfFirstFixedSurface")) return {};
  const LevelSurfaces surfaces = surfaces_of(request_, index);
  TR_TRY(surface("First", surfaces.first));
  const bool layer = handle_->integer("typeOfSecondFixedSurface").value_or(255) != 255;
  const bool by_keys =
      std::any_of(request_.field_keys.begin(), request_.field_keys.end(), [](const auto& key) {
        return key.first.find("SecondFixed") != std::string::npos || key.first == "bottomLevel";
      });
  if (!field_.levels.bottoms.empty() && !layer)
    return {Code::argument,
            cat("level type ", request_.level_type, " has one surface; leave the bottoms out")};
  if (surfaces.second) return surface("Second", *surfaces.second);
  const bool between_numbers =
      layer && handle_->integer("typeOfSecondFixedSurface") == handle_->integer("typeOfFirstFixedSurface");
  if (between_numbers && !by_keys)
    return {Code::argument, cat("level type ", request_.level_type,
                                " is a layer: give the bottom of each level too, as bottom=")};
  return {};
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

// Returns the offset of the octets that hold a key. Sets the key to two values whose octets all differ, and
// compares the messages.
Result<Bytes> Builder::locate(const std::string& key, int width, long one, long other) {
  ByteVector messages[2];
  const std::array<long, 2> values{one, other};
  for (int i = 0; i < 2; ++i) {
    Result<Handle> copy = Handle::from_message(handle_->message());
    if (!copy.is_ok()) return copy.status();
    if (const int error = copy->set(key, values[static_cast<std::size_t>(i)]); error != 0)
      return key_fails(error, key, cat(values[static_cast<std::size_t>(i)]),
                       "the template cannot hold a lead");
    const auto message = copy->message();
    messages[i].assign(message.begin(), message.end());
  }
  std::vector<Bytes> different;
  for (std::size_t i = 0; i < std::min(messages[0].size(), messages[1].size()); ++i) {
    if (messages[0][i] != messages[1][i]) different.push_back(static_cast<Bytes>(i));
  }
  const bool found = messages[0].size() == messages[1].size() &&
                     different.size() == static_cast<std::size_t>(width) &&
                     different.back() - different.front() == width - 1 &&
                     get_number(&messages[0][static_cast<std::size_t>(different.front())], width) ==
                         static_cast<std::uint64_t>(one);
  if (found) return different.front();
  return Status(
      Code::unsupported,
      cat("key '", key, "' of template 4.", handle_->integer("productDefinitionTemplateNumber").value_or(-1),
          " is not kept in ", width, " octets of its own; choose another template"));
}

Status Builder::locate_time(TimeOffsets& offsets) {
  struct Probe {
    const char* key;
    int width;
    long one, other;
    Bytes* to;
  };
  Bytes second = -1;
  const std::array<Probe, 6> probes{
      {{"indicatorOfUnitOfTimeRange", 1, 0, 1, &offsets.unit},
       {"forecastTime", 4, 0x01020304, 0x05060708, &offsets.forecast_time},
       {"yearOfEndOfOverallTimeInterval", 2, 0x0102, 0x0304, &offsets.end_time},
       {"secondOfEndOfOverallTimeInterval", 1, 1, 2, &second},
       {"indicatorOfUnitForTimeRange", 1, 0, 1, &offsets.range_unit},
       {"lengthOfTimeRange", 4, 0x01020304, 0x05060708, &offsets.range_length}}};
  const std::size_t count = field_.statistic.process == codec::Process::instant ? 2 : probes.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Probe& probe = probes[i];
    Result<Bytes> at = locate(probe.key, probe.width, probe.one, probe.other);
    if (!at.is_ok()) return at.status();
    *probe.to = *at;
  }
  if (count > 2 && second != offsets.end_time + 6)
    return {Code::unsupported, "the end of the interval is not kept in 7 octets; choose another template"};
  return {};
}

Status Builder::all_levels(Field& field) {
  for (std::size_t index = 0; index < field_.levels.values.size(); ++index) {
    if (index > 0) {
      TR_TRY(level(index));
      TR_TRY(late_keys(request_.field_keys));
    }
    Result<Parts> parts = cut(handle_->message());
    if (!parts.is_ok()) return parts.status();
    if (index == 0) field.parts = *parts;
    const ByteVector &first = field.parts.head, &here = parts->head;
    if (first.size() != here.size())
      return {Code::format, cat("level ", field_.levels.values[index],
                                " changes the length of the header; use a stream of its own")};
    std::vector<Patch>& patches = field.levels.emplace_back();
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (first[i] != here[i]) patches.push_back({i, here[i]});
    }
  }
  return {};
}

/// Returns Code::format if every second row of the grid runs backwards. Values are stored in the order of the
/// array, in which all rows run the same way.
Status check_rows(const Handle& handle) {
  if (handle.integer("alternativeRowScanning").value_or(0) == 0) return {};
  return {Code::format,
          "alternativeRowScanning=1 says that every second row is stored from its end, and rows are stored "
          "as the array has them: leave the key out, or add alternativeRowScanning=0 to the keys if the "
          "sample message has it"};
}

Status Builder::first_half() {
  TR_TRY(begin());
  base_.rest = std::exchange(wanted_, {});
  TR_TRY(early_keys());
  TR_TRY(reference_time());
  base_.half = first_half_of(request_);
  TR_TRY(set_grid(*handle_, field_, base_.half.grid, !field_.georeference.sample.empty(), wanted_));
  TR_TRY(check_rows(*handle_));
  base_.front = std::exchange(wanted_, {});
  TR_TRY(product_template());
  TR_TRY(ensemble());
  TR_TRY(statistic());
  TR_TRY(level_type());
  base_.rest.insert(base_.rest.end(), wanted_.begin(), wanted_.end());
  const auto message = handle_->message();
  base_.message.assign(message.begin(), message.end());
  wanted_.clear();
  return {};
}

Status Builder::second_half() {
  TR_TRY(parameter());
  TR_TRY(coefficients());
  TR_TRY(level(0));
  TR_TRY(late_keys(request_.stream_keys));
  return late_keys(request_.field_keys);
}

Result<Field> Builder::finish(const codec::Keys& wanted, const TimeOffsets* known_time,
                              std::optional<Handle>& verified) {
  Field field = field_of(stream_, field_);
  if (known_time != nullptr)
    field.time = *known_time;
  else
    TR_TRY(locate_time(field.time));
  TR_TRY(all_levels(field));
  TR_TRY(verify(field, request_, wanted, known_time != nullptr, verified));
  return field;
}

Result<Field> Builder::build() {
  TR_TRY(first_half());
  TR_TRY(second_half());
  codec::Keys wanted = base_.front;
  wanted.insert(wanted.end(), base_.rest.begin(), base_.rest.end());
  wanted.insert(wanted.end(), wanted_.begin(), wanted_.end());
  Result<Field> field = finish(wanted, nullptr, base_.verified);
  if (!field.is_ok()) return field;
  base_.sample_pv = sample_pv_;
  base_.head = field->parts.head;
  base_.time = field->time;
  return field;
}

Result<Field> Builder::build_on(Base& base) {
  sample_pv_ = base.sample_pv;
  const bool numbers_alone =
      sets_numbers_alone(request_, !sample_pv_.empty() || !field_.levels.coefficients.empty());
  if (numbers_alone) handle_ = std::exchange(base.named_by_numbers, std::nullopt);
  if (!handle_) {
    Result<Handle> handle = Handle::from_message(base.message);
    if (!handle.is_ok()) return handle.status();
    handle_ = std::move(*handle);
  }
  TR_TRY(second_half());
  const Result<Parts> parts = cut(handle_->message());
  if (!parts.is_ok()) return parts.status();
  const bool same_front = names_alone(request_.field_keys) && same_sections_1_to_3(base.head, parts->head);
  codec::Keys wanted = same_front ? codec::Keys{} : base.front;
  wanted.insert(wanted.end(), base.rest.begin(), base.rest.end());
  wanted.insert(wanted.end(), wanted_.begin(), wanted_.end());
  const bool time_is_known = same_front && same_template(base.head, parts->head);
  Result<Field> field = finish(wanted, time_is_known ? &base.time : nullptr, base.verified);
  if (numbers_alone && field.is_ok()) base.named_by_numbers = std::move(handle_);
  return field;
}

}  // namespace

Status no_such_key(const Handle& handle, std::string_view key, std::string_view value) {
  return {Code::format, cat("key '", key, "' = ", value,
                            " is neither an option nor a key that GRIB messages of this field have",
                            did_you_mean(key, handle.keys(), "it may belong to another template"))};
}

Status key_fails(int error, std::string_view key, std::string_view value, std::string_view hint) {
  return {Code::format, cat("key '", key, "' = ", value, ": ", reason(error), "; ", hint)};
}

LevelSurfaces surfaces_of(const Request& request, std::size_t level) {
  const codec::Levels& levels = request.field->levels;
  const double value = levels.values[level];
  if (!levels.bottoms.empty()) return {value, levels.bottoms[level]};
  const bool by_keys = std::ranges::any_of(request.field_keys, [](const auto& key) {
    return key.first.find("FixedSurface") != std::string::npos || key.first.ends_with("Level");
  });
  if (!is_numbered_by_bottom(request.level_type) || by_keys) return {value, std::nullopt};
  return {value - 1, value};
}

// Only the types in `numbered` have a value. For other types (surface, mean sea level, tropopause) 0 means
// that the surface has no value.
Result<Surface> surface_on(const Handle& handle, const Request& request, const std::string& which,
                           double value) {
  const std::string& level_type = request.level_type;
  const long type_of_surface = handle.integer(cat("typeOf", which, "FixedSurface")).value_or(255);
  const bool numbered = type_of_surface == 20 ||
                        (type_of_surface >= 100 && type_of_surface != 101 && type_of_surface <= 161) ||
                        type_of_surface == 168;
  if (value == 0 && !numbered) return Surface{0, 0, true};
  const bool in_hpa = type_of_surface == 100 && level_type != "isobaricInPa";
  // ecCodes has potential vorticity in units of 1e-6 K m2 kg-1 s-1. Dividing by 1e6 rounds correctly;
  // multiplying by 1e-6 does not.
  const bool in_pvu = level_type == "potentialVorticity";
  const double stored = std::fabs(in_hpa ? value * 100 : in_pvu ? value / 1e6 : value);
  if (value < 0 && !may_be_negative(type_of_surface))
    return Status(Code::format, cat("level ", value, " of type ", level_type,
                                    ": only heights, depths and potential vorticity may be negative"));
  const long sign = value < 0 ? sign_of_surface : 0;
  constexpr double largest = sign_of_surface - 2;  // ecCodes takes the next larger number for "missing"
  double power = 1;
  for (long scale = 0; scale <= 9; ++scale, power *= 10) {
    const double scaled = std::nearbyint(stored * power);
    if (scaled > largest) break;
    if (std::fabs(scaled / power - stored) <= 1e-12 * stored)
      return Surface{scale, sign | static_cast<long>(scaled), false};
  }
  return Status(Code::format, cat("level ", value, " of type ", level_type,
                                  " cannot be held: GRIB2 keeps levels as decimals of 31 bits and a sign"));
}

Result<Request> resolve(const codec::StreamDefinition& stream, const codec::FieldDefinition& field) {
  Request request;
  request.stream = &stream;
  request.field = &field;
  request.stream_keys = stream.keys;
  request.field_keys = field.keys;
  request.level_type = field.levels.type == "pressure" ? "isobaricInhPa"
                       : field.levels.type == "height" ? "heightAboveGround"
                                                       : field.levels.type;
  TR_TRY(check_governed(stream.keys));
  TR_TRY(check_governed(field.keys));
  TR_TRY(check_governed(field.georeference.keys));
  for (const auto& [key, value] : field.keys)
    request.named_by_keys = request.named_by_keys || key == "parameterNumber" || key == "paramId" ||
                            key == "shortName" || key == "indicatorOfParameter";
  TR_TRY(resolve_ensemble(request));
  TR_TRY(check_levels(request));
  return request;
}

int set_surface(Handle& handle, const std::string& which, const Surface& surface) {
  const std::string scale = cat("scaleFactorOf", which, "FixedSurface");
  const std::string scaled = cat("scaledValueOf", which, "FixedSurface");
  const int error = surface.missing ? handle.set_missing(scale) : handle.set(scale, surface.scale);
  if (error != 0) return error;
  return surface.missing ? handle.set_missing(scaled) : handle.set(scaled, surface.scaled);
}

Status check_keys(const codec::StreamDefinition& stream, std::span<const std::string> keys) {
  std::vector<std::string> unknown(keys.begin(), keys.end());
  if (unknown.empty()) return {};
  const auto lock = lock_definitions();
  Result<Handle> handle = Handle::from_sample("GRIB2");
  TR_TRY(handle.status());
  for (const long number : {0L, 1L, 8L, 11L}) {
    static_cast<void>(handle->set("productDefinitionTemplateNumber", number));
    // Some keys exist only once others are set. Errors are ignored here: define() reports wrong values.
    for (const auto& [key, value] : stream.keys) static_cast<void>(handle->set_text(key, value));
    std::erase_if(unknown, [&](const std::string& key) { return handle->has(key); });
    if (unknown.empty()) return {};
  }
  const std::string& key = unknown.front();
  return {Code::settings,
          cat("unknown key \"", key, "\": it is no option, and ecCodes has no such key",
              did_you_mean(key, handle->keys(),
                           cat("a key of another template is given as keys=\"", key, "=...\"")))};
}

Status set_coefficients(Handle& handle, const std::vector<double>& pv, double rounding,
                        std::string_view hint) {
  if (const int error = handle.set("PVPresent", 1L); error != 0)
    return key_fails(error, "PVPresent", "1", "no room for coefficients");
  if (const int error = handle.set("pv", std::span<const double>(pv)); error != 0)
    return key_fails(error, "pv", cat(pv.size(), " values"), hint);
  const std::vector<double> got = handle.numbers("pv");
  for (std::size_t i = 0; i < pv.size(); ++i) {
    if (i >= got.size() || std::fabs(got[i] - pv[i]) > rounding * std::fabs(pv[i]))
      return {Code::format, cat("vertical coefficient ", i, " was asked to be ", pv[i], " but reads back as ",
                                i < got.size() ? cat(got[i]) : "nothing")};
  }
  return {};
}

Status check_section(const codec::StreamDefinition& stream, const codec::FieldDefinition& field) {
  const codec::Section& section = field.section;
  if (!section.is_given()) return {};
  if (!section.no_grid.empty())
    return {Code::format, cat("section=: ", section.no_grid,
                              "; NetCDF, Zarr and raw files hold any section, and a layout of the part's "
                              "shape, with a grid of its own, holds what the program cuts out itself")};
  const codec::Georeference& georeference = field.georeference;
  const bool has_own = !georeference.sample.empty() || !georeference.keys.empty();
  if (has_own || (!has_grid(field.keys) && !has_grid(stream.keys))) return {};
  return {Code::format,
          "section=: the grid of the section follows from that of the layout: give the grid of the whole "
          "array to tr_layout_georeference, and not in keys="};
}

Field field_of(const codec::StreamDefinition& stream, const codec::FieldDefinition& definition) {
  Field field;
  field.definition = definition;
  field.definition.georeference = {};  // not needed any more; it may be a large sample
  field.base = stream.base;
  field.axis = stream.time;
  field.points = definition.elements();
  field.ccsds = stream.packing == "ccsds";
  field.statistic = definition.statistic.process != codec::Process::instant;
  return field;
}

Result<Field> Headers::prepare(const codec::FieldDefinition& field) {
  TR_TRY(check_section(stream_, field));
  const Result<HealpixField> healpix = healpix_field(stream_, field);
  TR_TRY(healpix.status());
  const bool is_healpix = !healpix->section.empty();
  const auto lock = lock_definitions();
  Result<Request> request = is_healpix ? resolve(healpix->stream, healpix->field) : resolve(stream_, field);
  if (!request.is_ok()) return request.status();
  Result<Field> prepared = prepare_on_base(*request);
  if (!prepared.is_ok() || !is_healpix) return prepared;
  prepared->definition = field_of(stream_, field).definition;
  put_healpix(*healpix, *prepared);
  return prepared;
}

/// Prepares a field on the base of an earlier field, if there is one with an equal first half. If that fails,
/// prepares it once more from the beginning: the base was opened from its octets, and may lack what a key of
/// the user's did to the handle. The error then also says what is wrong with the field itself.
Result<Field> Headers::prepare_on_base(const Request& request) {
  constexpr std::size_t most_bases = 16;
  const FirstHalf half = first_half_of(request);
  const auto base =
      std::find_if(bases_.rbegin(), bases_.rend(), [&](const Base& each) { return each.half == half; });
  if (base != bases_.rend()) {
    Result<Field> prepared = Builder(request).build_on(*base);
    if (prepared.is_ok()) return prepared;
  }
  Builder builder(request);
  Result<Field> prepared = builder.build();
  if (!prepared.is_ok() || base != bases_.rend()) return prepared;
  if (bases_.size() == most_bases) bases_.erase(bases_.begin());
  bases_.push_back(builder.take_base());
  return prepared;
}

}  // namespace tailrace::grib2
