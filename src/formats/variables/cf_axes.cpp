// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/variables/cf_axes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "formats/cf/unpacking.hpp"
#include "ground/base/text.hpp"

namespace tailrace::variables {

namespace {

/// Returns the names of variables in an attribute: "lat lon" and "ap: lev_ap ps: sp" name two each.
std::vector<std::string> words_in(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    if (word.back() != ':') words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

CfAxes::CfAxes(const cf::FoundContents& contents, const cf::ReadNumbers& read, bool has_default_fill)
    : contents_(contents),
      read_(read),
      has_default_fill_(has_default_fill),
      roles_(contents.dimensions.size(), Role::unknown),
      coordinates_(contents.dimensions.size(), -1),
      auxiliary_(contents.variables.size(), false) {
  for (std::size_t i = 0; i < contents_.variables.size(); ++i) has_dates_ = has_dates_ || has_time_units(i);
  mark_named();
  mark_others(true);
  mark_auxiliary();
  mark_plane();
  mark_others(false);
  find_single_times();
}

bool CfAxes::has_time_units(std::size_t variable) const {
  return at(variable).type != cf::Number::none && cf::are_time_units(at(variable).text("units"));
}

bool CfAxes::is_reference(std::size_t variable) const {
  return has_time_units(variable) && at(variable).text("standard_name") == "forecast_reference_time";
}

bool CfAxes::tells_time(std::size_t variable) const {
  return lower_case(at(variable).text("axis")) == "t" || at(variable).text("standard_name") == "time";
}

/// True for an axis of times that names no date, as in "s" or "1", in a file without dates. Units such as
/// "day as %Y%m%d.%f" write dates as numbers, which are no times. One time without a dimension is no axis: it
/// would take its mask or map away from programs that read by dates.
bool CfAxes::has_model_times(std::size_t variable) const {
  const cf::FoundVariable& of = at(variable);
  return !has_dates_ && of.type != cf::Number::none && of.dimensions.size() == 1 && tells_time(variable) &&
         of.text("standard_name") != "forecast_period" && of.text("units").find('%') == std::string::npos;
}

Status CfAxes::check_no_times(int dimension) const {
  const int coordinate = this->coordinate(dimension);
  if (coordinate < 0 || role(dimension) != Role::unknown) return {};
  const auto variable = static_cast<std::size_t>(coordinate);
  const cf::FoundVariable& of = at(variable);
  if (tells_time(variable) && !has_time_units(variable))
    return {Code::format,
            cat("variable '", of.name, "' is a time axis with the units \"", of.text("units"),
                "\": expected a unit of time since a date, as \"hours since 1900-01-01 00:00\"; `cdo -r copy "
                "IN OUT` writes such a file")};
  const bool counts_runs = is_reference(variable) || of.text("standard_name") == "forecast_period";
  if (!counts_runs || contents_.dimensions[static_cast<std::size_t>(dimension)].length == 1) return {};
  return {Code::format, cat("variable '", of.name, "' holds a ", of.text("standard_name"),
                            ", which does not tell alone when a field is valid: expected a time for each of "
                            "its elements; write each base time to a file of its own")};
}

bool CfAxes::is_member(std::size_t variable) const {
  constexpr std::array names{"realization", "member", "ensemble", "ensemble_member", "number"};
  return at(variable).type != cf::Number::none &&
         (at(variable).text("standard_name") == "realization" ||
          std::ranges::count(names, lower_case(cf::base_name(at(variable).name))) > 0);
}

Role CfAxes::role_of(std::size_t coordinate) const {
  if (holds_times(coordinate)) return is_reference(coordinate) ? Role::unknown : Role::time;
  if (cf::is_horizontal(at(coordinate))) return Role::horizontal;
  if (cf::is_vertical(at(coordinate))) return Role::level;
  return is_member(coordinate) ? Role::member : Role::unknown;
}

/// Marks each dimension that has a variable of its own name, which is its coordinate by the conventions.
void CfAxes::mark_named() {
  for (std::size_t i = 0; i < contents_.variables.size(); ++i) {
    const cf::FoundVariable& each = at(i);
    if (each.type == cf::Number::none || each.dimensions.size() != 1) continue;
    const auto dimension = static_cast<std::size_t>(each.dimensions.front());
    if (each.name != contents_.dimensions[dimension].name || coordinates_[dimension] >= 0) continue;
    coordinates_[dimension] = static_cast<int>(i);
    roles_[dimension] = role_of(i);
  }
}

/// Marks dimensions whose coordinate has another name, as some writers have it. A field along a list of
/// points looks the same, so units of pressure are not enough to make it levels. The constructor calls this
/// twice, in order of trust: first for variables that say they are times (`surely_times`), and, after
/// mark_plane, for levels.
void CfAxes::mark_others(bool surely_times) {
  for (std::size_t i = 0; i < contents_.variables.size(); ++i) {
    const cf::FoundVariable& each = at(i);
    if (each.type == cf::Number::none || each.dimensions.size() != 1) continue;
    const auto dimension = static_cast<std::size_t>(each.dimensions.front());
    const Role role = role_of(i);
    // A coordinate with an unknown role, like the hours since a base time, is replaced by times.
    if (roles_[dimension] != Role::unknown) continue;
    if (role == Role::time ? surely_times && !tells_time(i)
                           : surely_times || role != Role::level || coordinates_[dimension] >= 0 ||
                                 !cf::tells_vertical(each))
      continue;
    if (role == Role::level && is_of_points(dimension)) continue;
    coordinates_[dimension] = static_cast<int>(i);
    roles_[dimension] = role;
    auxiliary_[i] = true;
  }
}

/// Returns true if a variable has times and this dimension alone: then it is a list of points, each of which
/// may have a depth. Levels would leave nothing of a record of that variable.
bool CfAxes::is_of_points(std::size_t dimension) const {
  return std::ranges::any_of(contents_.variables, [&](const cf::FoundVariable& each) {
    return each.text_bytes == 0 && each.dimensions.size() == 2 &&
           static_cast<std::size_t>(each.dimensions[1]) == dimension &&
           roles_[static_cast<std::size_t>(each.dimensions[0])] == Role::time;
  });
}

void CfAxes::mark_auxiliary() {
  for (const int each : coordinates_) {
    if (each >= 0) auxiliary_[static_cast<std::size_t>(each)] = true;
  }
  for (const cf::FoundVariable& variable : contents_.variables) {
    for (const std::string_view attribute : {"bounds", "climatology", "coordinates", "grid_mapping"}) {
      const bool is_bounds = attribute == "bounds" || attribute == "climatology";
      for (const std::string& name : words_in(variable.text(attribute))) {
        const int named = contents_.find_from(variable, name);
        if (named < 0) continue;
        auxiliary_[static_cast<std::size_t>(named)] = true;
        const std::vector<int>& dimensions = at(static_cast<std::size_t>(named)).dimensions;
        if (!is_bounds || dimensions.empty()) continue;
        Role& last = roles_[static_cast<std::size_t>(dimensions.back())];
        if (last == Role::unknown) last = Role::corner;
      }
    }
  }
}

/// Marks the dimensions along which latitudes or longitudes vary: those of the plane.
void CfAxes::mark_plane() {
  for (std::size_t i = 0; i < contents_.variables.size(); ++i) {
    if (!cf::is_horizontal(at(i))) continue;
    auxiliary_[i] = true;
    for (const int dimension : at(i).dimensions) {
      Role& role = roles_[static_cast<std::size_t>(dimension)];
      if (role == Role::unknown) role = Role::horizontal;
    }
  }
}

void CfAxes::find_single_times() {
  for (std::size_t i = 0; i < contents_.variables.size(); ++i) {
    if (at(i).dimensions.empty() && holds_times(i))
      (is_reference(i) ? single_references_ : single_times_).push_back(i);
  }
}

int CfAxes::time_dimension() const {
  const auto found = std::ranges::find(roles_, Role::time);
  return found == roles_.end() ? -1 : static_cast<int>(found - roles_.begin());
}

std::vector<std::size_t> CfAxes::scalars_of(const cf::FoundVariable& field) const {
  const auto is_scalar = [&](std::size_t variable) {
    return at(variable).type != cf::Number::none &&
           std::ranges::all_of(at(variable).dimensions, [&](int dimension) {
             return contents_.dimensions[static_cast<std::size_t>(dimension)].length == 1;
           });
  };
  std::vector<std::size_t> scalars;
  for (const std::string& name : words_in(field.text("coordinates"))) {
    const int named = contents_.find_from(field, name);
    if (named >= 0 && is_scalar(static_cast<std::size_t>(named)))
      scalars.push_back(static_cast<std::size_t>(named));
  }
  // Few writers name the file's single time in each field, so it is added. With several times it stays open
  // which one is meant.
  for (const bool reference : {true, false}) {
    const std::vector<std::size_t>& single = reference ? single_references_ : single_times_;
    const bool is_told = single.size() == 1 && (reference || time_dimension() < 0);
    if (is_told && std::ranges::count(scalars, single.front()) == 0) scalars.push_back(single.front());
  }
  return scalars;
}

Result<std::vector<double>> scaled_numbers(const cf::FoundVariable& variable, std::size_t number,
                                           const cf::ReadNumbers& read, bool has_default_fill) {
  Result<std::vector<double>> numbers = read(number);
  TR_TRY(numbers.status().in(cat("variable '", variable.name, "'")));
  const Result<cf::Unpacking> how = cf::unpacking_of_coordinate(variable, has_default_fill);
  TR_TRY(how.status());
  // Classic files have only signed types; an attribute says that the numbers are meant as unsigned.
  const double span = std::ldexp(1.0, static_cast<int>(8 * cf::size_of(how->type)));
  for (double& each : *numbers)
    if (how->type != variable.type && each < 0) each += span;
  cf::unpack_coordinate(*how, *numbers);
  return numbers;
}

Result<std::vector<double>> CfAxes::numbers(std::size_t variable) const {
  return scaled_numbers(at(variable), variable, read_, has_default_fill_);
}

/// Returns the numbers of a time coordinate, or with `ends` the second numbers of its bounds.
Result<std::vector<double>> CfAxes::time_numbers(std::size_t variable, bool ends) const {
  Result<std::vector<double>> read = numbers(variable);
  TR_TRY(read.status());
  const int bounds = ends ? contents_.find_from(at(variable), at(variable).text("bounds")) : -1;
  if (bounds < 0) return read;
  const Result<std::vector<double>> pairs = numbers(static_cast<std::size_t>(bounds));
  TR_TRY(pairs.status());
  if (pairs->size() != 2 * read->size())
    return Status(Code::corrupt, cat("variable '", at(static_cast<std::size_t>(bounds)).name, "': expected ",
                                     2 * read->size(), " bounds of ", counted(read->size(), "time"), ", got ",
                                     pairs->size()));
  // A missing time stays missing, even if its bounds hold numbers.
  for (std::size_t i = 0; i < read->size(); ++i)
    if (!std::isnan((*read)[i])) (*read)[i] = (*pairs)[2 * i + 1];
  return read;
}

Result<FoundTimes> CfAxes::model_times(std::size_t variable, bool ends) {
  const Result<std::vector<double>> read = time_numbers(variable, ends);
  TR_TRY(read.status());
  FoundTimes found;
  for (const double each : *read) {
    const Result<std::int64_t> code = TimeAxis::code_of(each);
    found.seconds.push_back(code.is_ok() ? *code : untold_time);
    if (code.is_ok() || !found.odd.is_ok()) continue;
    found.odd = {Code::data, cat("variable '", at(variable).name, "': element ", found.seconds.size(), " of ",
                                 read->size(), " is ", each)};
  }
  found.rests.assign(found.seconds.size(), 0);
  TimeAxis axis = TimeAxis::of_model();
  const std::string units = at(variable).text("units");
  TR_TRY(axis.set_units(units.empty() ? "1" : units));
  const auto unit_of = [](const TimeAxis& of) {
    const TimeUnit* const known = find_time_unit(of.unit());
    return known == nullptr ? of.unit() : std::string(known->symbol);
  };
  if (model_ && unit_of(*model_) != unit_of(axis))
    return Status(Code::format, cat("variable '", at(variable).name, "': the unit is ", axis.unit(),
                                    ", and that of another time axis of the file is ", model_->unit(),
                                    "; expected one unit in a file whose times count from no date"));
  if (!model_) model_ = std::move(axis);
  return found;
}

Result<FoundTimes> CfAxes::times(std::size_t variable, bool ends) {
  if (has_model_times(variable)) return model_times(variable, ends);
  const std::string context = cat("variable '", at(variable).name, "'");
  const Result<cf::TimeUnits> units =
      cf::parse_time_units(at(variable).text("units"), at(variable).text("calendar"));
  TR_TRY(units.status().in(context));
  if (calendar_ && *calendar_ != units->calendar)
    return Status(Code::format, cat(context, ": the calendar is ", tailrace::name_of(units->calendar),
                                    ", and that of another time axis of the file is ",
                                    tailrace::name_of(*calendar_), "; expected one calendar in a file"));
  const Result<std::vector<double>> read = time_numbers(variable, ends);
  TR_TRY(read.status());
  FoundTimes found;
  for (const double each : *read) {
    const Result<std::int64_t> one = cf::seconds_at(*units, each);
    found.seconds.push_back(one.is_ok() ? *one : untold_time);
    const std::optional<std::int64_t> rest = one.is_ok() ? cf::rest_of(*units, each, *one) : 0;
    found.rests.push_back(rest.value_or(0));
    if (!rest && found.inexact.is_ok())
      found.inexact = {Code::data, cat(context, ": element ", found.seconds.size(), " of ", read->size(),
                                       " is ", each, " ", at(variable).text("units"),
                                       ", which is no whole number of nanoseconds: without lead_unit= it is "
                                       "rounded to seconds")};
    if (one.is_ok() || !found.odd.is_ok()) continue;
    found.odd = {Code::data, cat(context, ": element ", found.seconds.size(), " of ", read->size(), " is ",
                                 std::isnan(each) ? "a fill value or NaN" : cat(each, ", beyond all times"))};
  }
  if (std::ranges::count(found.seconds, untold_time) < std::ssize(found.seconds)) calendar_ = units->calendar;
  return found;
}

}  // namespace tailrace::variables
