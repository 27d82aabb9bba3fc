// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// How the variables and dimensions of a file are called, which of them a name means, and by which methods
// values are made along them.
#include <algorithm>
#include <sstream>
#include <string>

#include "formats/cf/conventions.hpp"
#include "formats/cf/names.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cf {

using codec::FieldDefinition;
using codec::Process;

namespace {

/// Returns the value of `cell_methods` for a statistic (CF conventions, appendix E).
std::string_view method_of(Process process) {
  switch (process) {
    case Process::instant:
      return "time: point";
    case Process::accum:
      return "time: sum";
    case Process::average:
      return "time: mean";
    case Process::maximum:
      return "time: maximum";
    case Process::minimum:
      return "time: minimum";
  }
  return "";
}

std::string name_of_levels(const std::string& type) {
  const LevelType* const known = find_level_type(type);
  if (known == nullptr) return type;
  return std::string(known->standard_name.empty() ? known->dimension : known->standard_name);
}

}  // namespace

/// Returns the value of `cell_methods`: first over time, then over levels, then over dimensions of a level,
/// as the values are made (CF-1.8, section 7.3). The variable lacks those that it has lost, so their
/// standard names stand for them (section 7.3.4), or where there is none their own names.
std::string Conventions::methods_of(const FieldDefinition& field, const Horizontal& points) const {
  std::string methods;
  if (field.statistic.process != Process::instant) methods = cat(" ", method_of(field.statistic.process));
  const codec::Reduction& reduction = field.reduction;
  if (!reduction.level_type.empty())
    methods += cat(" ", name_of_levels(reduction.level_type), ": ", name_of(reduction.operation),
                   reduction.weights.empty() || reduction.is_weighted()
                       ? ""
                       : cat(" (weighted by ", reduction.weights, ")"));
  if (!reduction.is_within_level()) return methods.empty() ? methods : methods.substr(1);
  const bool is_on_map = points.standard_names.size() == reduction.is_lost.size();
  for (std::size_t i = 0; i < reduction.is_lost.size(); ++i) {
    if (reduction.is_lost[i] == 0) continue;
    const bool is_named = i < reduction.dimensions.size();  // not in each damaged head
    methods += cat(" ",
                   is_on_map  ? points.standard_names[i]
                   : is_named ? reduction.dimensions[i]
                              : "area",
                   ":");
  }
  // CF-1.8, section 7.3.3, has this place for what its own words do not tell.
  const std::string how = reduction.is_weighted() ? cat(" (weighted by ", reduction.weights, ")") : "";
  return cat(methods.substr(1), " ", name_of(reduction.operation), how);
}

std::optional<std::size_t> Conventions::variable_of(const std::string& name) const {
  if (const auto field = by_name_.find(name); field != by_name_.end()) return fields_[field->second].variable;
  const auto found = std::ranges::find(contents_.variables, name, &Variable::name);
  const bool is_coordinate =
      found != contents_.variables.end() && found->dimensions.size() == 1 &&
      contents_.dimensions[static_cast<std::size_t>(found->dimensions[0])].name == name;
  return is_coordinate ? std::optional(static_cast<std::size_t>(found - contents_.variables.begin()))
                       : std::nullopt;
}

/// Returns the names of the variables that attributes= of the field names as further coordinates. Their
/// dimensions are among the field's (CF-1.8, chapter 5).
Result<std::vector<std::string>> Conventions::named_coordinates(const FieldDefinition& field,
                                                                const Grid& grid) const {
  std::vector<std::string> names;
  const std::string* const given = codec::find_key(field.attributes, "coordinates");
  if (given == nullptr) return names;
  const std::vector<int> known = known_dimensions(field, grid);
  std::istringstream words(*given);
  for (std::string word; words >> word;) {
    std::optional<std::size_t> number = variable_of(word);
    const auto other = std::ranges::find(contents_.variables, word, &Variable::name);
    if (!number && other != contents_.variables.end())
      number = static_cast<std::size_t>(other - contents_.variables.begin());
    const std::string what = cat("attribute 'coordinates' names '", word, "', ");
    if (!number)
      return Status(Code::argument, cat(what,
                                        "which is neither a field nor a coordinate of the stream: define "
                                        "it before '",
                                        field.name, "'"));
    const Variable& variable = contents_.variables[*number];
    for (const int each : variable.dimensions) {
      if (std::ranges::find(of_texts_, each, &std::pair<Index, int>::second) != of_texts_.end()) continue;
      if (std::ranges::find(known, each) == known.end())
        return Status(Code::argument, cat(what, "which has the dimension '",
                                          contents_.dimensions[static_cast<std::size_t>(each)].name, "'; '",
                                          field.name, "' does not"));
    }
    names.push_back(variable.name);
  }
  return names;
}

/// Gives the dimension with this name another one. The program has named no dimension so, and it has no
/// coordinate: the name is the field's.
void Conventions::rename_unnamed(const std::string& name) {
  if (contents_.names.contains(name)) return;
  const auto found = std::ranges::find(contents_.dimensions, name, &Dimension::name);
  if (found != contents_.dimensions.end()) found->name = free_name(name);
}

std::string Conventions::free_name(const std::string& name) const {
  std::string free = name;
  for (int i = 2; is_taken(free); ++i) free = cat(name, "_", i);
  return free;
}

bool Conventions::is_taken(const std::string& name) const {
  return contents_.names.contains(name) ||
         std::ranges::count(contents_.dimensions, name, &Dimension::name) > 0;
}

}  // namespace tailrace::cf
