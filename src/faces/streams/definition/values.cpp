// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/definition/values.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "faces/streams/definition/parse.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {
namespace {

constexpr std::size_t kMostLevels = 100'000;

struct LevelAlias {
  std::string_view alias;
  std::string_view type;
};
constexpr std::array<LevelAlias, 5> kLevelAliases{{{"pressure", "isobaricInhPa"},
                                                   {"height", "heightAboveGround"},
                                                   {"depth", "depthBelowSea"},
                                                   {"model", "hybrid"},
                                                   {"msl", "meanSea"}}};
// levels= must give values for these types: the name of the type alone does not say which level is meant.
constexpr std::array<std::string_view, 7> kTypesWithValues{
    "hybrid",         "isobaricInhPa", "isobaricInPa", "heightAboveGround",
    "heightAboveSea", "theta",         "depthBelowSea"};

// The names that ecCodes 2.28 has for types of level in GRIB2. Formats other than GRIB take any other name,
// too.
constexpr std::string_view kLevelTypes =
    "adiabaticCondensation atmosphere cloudBase cloudTop depthBelowLand depthBelowLandLayer depthBelowSea "
    "depthBelowSeaLayer entireAtmosphere entireLake entireOcean eta generalVertical generalVerticalLayer "
    "heightAboveGround heightAboveGroundLayer heightAboveSea heightAboveSeaLayer hybrid hybridHeight "
    "hybridLayer hybridPressure iceBottomOnWater iceLayerOnWater iceLayerUnderSnowOnWater iceTopOnWater "
    "iceTopUnderSnowOnWater indefiniteSoilDepth isobaricInPa isobaricInhPa isobaricLayer isothermZero "
    "isothermal lakeBottom maxWind meanSea mixedLayerDepthByDensity mixedLayerDepthByDiffusivity "
    "mixedLayerDepthByTemperature mixedLayerDepthGeneric mixedLayerParcel mixingLayer mostUnstableParcel "
    "nominalTop oceanModel oceanModelLayer oceanSurface oceanSurfaceToBottom potentialVorticity "
    "pressureFromGround pressureFromGroundLayer seaBottom seaIce seaIceLayer sigma sigmaLayer snow snowLayer "
    "snowLayerOverIceOnWater snowTopOverIceOnWater soil soilLayer surface theta thetaLayer tropopause";

/// Refuses a slip of a known type of level: in formats that take any type it would become an axis of its own.
Status check_level_type(const std::string& type) {
  const std::vector<std::string> types = split(kLevelTypes, ' ');
  std::vector<std::string_view> known(types.begin(), types.end());
  for (const LevelAlias& alias : kLevelAliases) known.push_back(alias.alias);
  if (std::ranges::find(known, type) != known.end()) return {};
  for (const std::string_view each : known) {
    if (is_slip_of(type, each))
      return settings_error(
          cat("no type of level is called \"", type, "\"; did you mean \"", nearest(type, known), "\"?"));
  }
  return {};
}

// Reads the numbers of one line, with blanks, tabs or commas between them.
Result<std::vector<double>> numbers_of(std::string_view line) {
  std::vector<double> numbers;
  std::string text(line);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == ',' || c == '\t' || c == '\r'; }, ' ');
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const Result<double> number = parse_real(word);
    TR_TRY(number.status());
    if (!std::isfinite(*number)) return settings_error(cat(word, " is not finite"));
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

Status take_file(const std::string& text, std::string& file) {
  if (text.empty()) return settings_error("the file name is empty");
  file = text;
  return {};
}

Status add_key(codec::Keys& keys, const Option& option) {
  for (const auto& [key, value] : keys) {
    if (key == option.key) return settings_error(cat("\"", key, "\" is given twice; keep one of them"));
  }
  keys.emplace_back(option.key, option.value);
  return {};
}

Status take_keys(const std::string& text, codec::Keys& keys) {
  const Result<Options> list = Options::parse_list(text);
  TR_TRY(list.status());
  for (const Option& option : list->entries()) TR_TRY(add_key(keys, option));
  return {};
}

Status take_levels(codec::Levels& levels, const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  levels.type = text.substr(0, colon);
  for (const LevelAlias& alias : kLevelAliases) {
    if (levels.type == alias.alias) levels.type = alias.type;
  }
  const bool named =
      !levels.type.empty() && std::all_of(levels.type.begin(), levels.type.end(),
                                          [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (!named) {
    return settings_error(cat("\"", text,
                              "\" names no type of level; give one as hybrid:1-40, pressure:1000,850,500, "
                              "height:2, surface or any typeOfLevel"));
  }
  TR_TRY(check_level_type(levels.type));
  if (colon == text.size()) {
    if (std::find(kTypesWithValues.begin(), kTypesWithValues.end(), levels.type) == kTypesWithValues.end())
      return {};
    return settings_error(cat(levels.type, " needs its levels, as ", text, ":1-40 or ", text, ":2"));
  }
  Result<std::vector<double>> values =
      parse_number_list(std::string_view(text).substr(colon + 1), kMostLevels);
  TR_TRY(values.status());
  std::vector<double> sorted = *values;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return settings_error(cat("level ", *twice, " is named twice"));
  levels.values = std::move(*values);
  return {};
}

Status take_bottom(codec::Levels& levels, const std::string& text) {
  Result<std::vector<double>> bottoms = parse_number_list(text, kMostLevels);
  TR_TRY(bottoms.status());
  if (bottoms->size() == 1) bottoms->resize(levels.values.size(), bottoms->front());
  if (bottoms->size() != levels.values.size())
    return settings_error(cat("expected one bottom, or one for each of the ",
                              counted(levels.values.size(), "level"), " of levels=, got ", bottoms->size()));
  levels.bottoms = std::move(*bottoms);
  return {};
}

Status check_coefficients(const codec::Levels& levels) {
  if (levels.type != "hybrid") {
    return settings_error(
        cat("vertical coordinate coefficients belong to hybrid levels; these are ", levels.type));
  }
  const double top = *std::max_element(levels.values.begin(), levels.values.end());
  const std::size_t count = levels.coefficients.size();
  // The coefficients are a and b at the half levels 0 to n: n levels need n + 1 of each.
  if (count % 2 == 0 && static_cast<double>(count / 2) >= top + 1) return {};
  return settings_error(cat("there are ", count, " vertical coordinate coefficients; levels up to ", top,
                            " need a and b at their half levels, so at least ",
                            2 * (static_cast<std::int64_t>(top) + 1)));
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

Status set_vertical(codec::FieldDefinition& definition, std::string_view text, std::string_view path) {
  std::vector<double> a, b;
  std::optional<double> counter;
  std::int64_t line_number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    ++line_number;
    const std::string_view whole = take_line(rest);
    const std::string_view line = trim(whole.substr(0, whole.find('#')));
    if (line.empty()) continue;
    const auto where = cat("vertical=", path, ", line ", line_number);
    Result<std::vector<double>> numbers = numbers_of(line);
    TR_TRY(numbers.status().in(where));
    const bool counted = numbers->size() == 3;
    const bool same_form = a.empty() || counted == counter.has_value();
    if ((numbers->size() != 2 && !counted) || !same_form) {
      return settings_error(cat(where, ": expected ", !a.empty() && counter ? "n, a and b" : "a and b",
                                ", got ", numbers->size(), " numbers"));
    }
    if (counted && counter && numbers->front() != *counter + 1) {
      return settings_error(cat(where, ": level ", numbers->front(), " does not follow level ", *counter));
    }
    if (counted) counter = numbers->front();
    a.push_back((*numbers)[counted ? 1 : 0]);
    b.push_back((*numbers)[counted ? 2 : 1]);
  }
  definition.levels.coefficients = std::move(a);
  definition.levels.coefficients.insert(definition.levels.coefficients.end(), b.begin(), b.end());
  return check_coefficients(definition.levels).in(cat("field \"", definition.name, "\": vertical=", path));
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xc2 ? 0
                               : first < 0xe0 ? 2
                               : first < 0xf0 ? 3
                               : first < 0xf5 ? 4
                                              : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    const auto second = length > 1 ? static_cast<unsigned char>(text[i + 1]) : 0x80U;
    // Longer forms than needed, halves of surrogate pairs, and numbers beyond the last character.
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
      return false;
    i += length;
  }
  return true;
}

}  // namespace tailrace::streams
