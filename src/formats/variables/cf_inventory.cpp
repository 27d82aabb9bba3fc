// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/variables/cf_inventory.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

#include "formats/variables/cf_axes.hpp"
#include "ground/base/text.hpp"

namespace tailrace::variables {

namespace {

using Numbers = std::vector<double>;
using Times = std::vector<std::int64_t>;

constexpr int untold_member = std::numeric_limits<int>::min();

/// Finds the fields of a file and their records, variable by variable.
class CfReader {
 public:
  CfReader(const cf::FoundContents& contents, const cf::ReadNumbers& read, bool has_default_fill,
           const StoredBytes& stored)
      : contents_(contents),
        stored_(stored),
        read_([this, &read](std::size_t variable) { return read_or_end(read, variable); }),
        has_default_fill_(has_default_fill),
        axes_(contents, read_, has_default_fill) {}
  Result<CfInventory> take();

 private:
  /// The times, levels and members of the records of one field.
  struct Span {
    Times valid;  // untold_time: the file does not state it; any_time: the field has no time
    Times rests;  // of `valid`, as in FoundTimes; may have fewer elements, for zeros
    std::int64_t reference = any_time;
    std::int64_t reference_rest = 0;  // nanoseconds that it lies behind its second
    std::string level_type;
    Numbers levels{0};             // NaN: the file does not state it
    std::vector<int> members{-1};  // untold_member: the file does not state it
    Status odd;                    // why one of them is not stated
  };

  /// A record with a time that lies between two seconds.
  struct Rest {
    std::size_t record = 0;
    std::int64_t nanoseconds = 0;  // of the valid time behind its second
    std::int64_t of_reference = 0;
  };

  Status add(std::size_t variable);
  void set_axis();
  [[nodiscard]] bool tells_of_times(std::size_t variable) const;
  Result<bool> assign(const cf::FoundVariable& variable, CfField& field) const;
  Status choose_levels(std::vector<int>& rest, const cf::FoundVariable& variable, CfField& field) const;
  [[nodiscard]] bool is_statistic(const cf::FoundVariable& field, std::size_t time) const;
  Result<Span> span_of(const cf::FoundVariable& variable, const CfField& field);
  Status add_scalars(const cf::FoundVariable& variable, const CfField& field, Span& span);
  Status add_levels(const cf::FoundVariable& variable, const CfField& field, Span& span);
  Status add_times(const cf::FoundVariable& variable, const CfField& field, Span& span);
  Status add_members(std::size_t variable, Span& span) const;
  void set_levels(std::size_t variable, Numbers numbers, Span& span) const;
  Status check_stored(std::size_t variable, const CfField& field);
  Status add_records(const std::string& name, const CfField& field, const Span& span);
  Result<int> grid_of(const cf::FoundVariable& variable, const CfField& field);
  Result<const FoundTimes*> times(std::size_t variable, bool ends);
  [[nodiscard]] Index length(int dimension) const {
    return contents_.dimensions[static_cast<std::size_t>(dimension)].length;
  }
  [[nodiscard]] const cf::FoundVariable& at(std::size_t variable) const {
    return contents_.variables[variable];
  }

  Result<Numbers> read_or_end(const cf::ReadNumbers& read, std::size_t variable);

  const cf::FoundContents& contents_;
  const StoredBytes& stored_;
  const cf::ReadNumbers read_;
  bool has_default_fill_;
  CfAxes axes_;
  CfInventory found_;
  Status ended_;  // set: the whole file is unreadable
  std::map<std::pair<std::size_t, bool>, FoundTimes> times_;
  std::vector<Rest> rests_;  // of records, in their order
  /// The most records of series, of all of a file together.
  static constexpr Index most_series_records = Index{1} << 20;
  Index series_records_ = 0;
  std::vector<std::size_t> series_;  // variables without points
  bool adds_series_ = false;
  std::map<std::pair<std::vector<int>, int>, int> grids_;  // key: dimensions and grid_mapping
};

Status no_number(const cf::FoundVariable& coordinate) {
  return {Code::data, cat("variable '", coordinate.name, "': an element is a fill value or NaN")};
}

/// True if the field's values are for intervals of these times, not for moments. Its attribute cell_methods
/// names dimensions, coordinates or standard names: "time1: mean (interval: 1 hour) lat: lon: point".
bool CfReader::is_statistic(const cf::FoundVariable& field, std::size_t time) const {
  std::vector<std::string_view> names{"time", cf::base_name(at(time).name)};
  for (const int each : at(time).dimensions)
    names.push_back(cf::base_name(contents_.dimensions[static_cast<std::size_t>(each)].name));
  std::istringstream in(field.text("cell_methods"));
  bool is_named = false;
  int depth = 0;
  for (std::string word; in >> word;) {
    const bool is_comment = depth > 0 || word.starts_with("(");
    depth += static_cast<int>(std::ranges::count(word, '(') - std::ranges::count(word, ')'));
    if (is_comment) continue;
    if (word.back() == ':') {
      word.pop_back();
      is_named = is_named || std::ranges::count(names, word) > 0;
      continue;
    }
    if (is_named && word != "point") return true;
    is_named = false;
  }
  return false;
}

/// Sets the roles of the dimensions of a variable. Returns false if the variable is no field: it has neither
/// points nor times.
Result<bool> CfReader::assign(const cf::FoundVariable& variable, CfField& field) const {
  std::vector<int> rest;
  for (int i = 0; i < static_cast<int>(variable.dimensions.size()); ++i) {
    const int dimension = variable.dimensions[static_cast<std::size_t>(i)];
    int* taken = nullptr;
    switch (axes_.role(dimension)) {
      case Role::corner:
        return false;
      case Role::time:
        taken = &field.time;
        break;
      case Role::level:
        taken = &field.level;
        break;
      case Role::member:
        taken = &field.member;
        break;
      case Role::unknown:
      case Role::horizontal:
        rest.push_back(i);
        continue;
    }
    if (*taken >= 0)
      return Status(
          Code::format,
          cat("variable '", variable.name, "': expected one dimension of ",
              taken == &field.time    ? "times"
              : taken == &field.level ? "levels"
                                      : "members",
              ", got ", contents_.dimensions[static_cast<std::size_t>(dimension)].name, " beside ",
              contents_
                  .dimensions[static_cast<std::size_t>(variable.dimensions[static_cast<std::size_t>(*taken)])]
                  .name));
    *taken = i;
  }
  TR_TRY(choose_levels(rest, variable, field).in(cat("variable '", variable.name, "'")));
  field.plane = std::move(rest);
  // A number of each time, as of a series at a station, is a field of one point.
  return !field.plane.empty() || field.time >= 0;
}

/// Chooses the dimension of levels among the dimensions without a role: one without coordinate that stands
/// before those of the plane. Without any coordinates the last two dimensions are the plane.
Status CfReader::choose_levels(std::vector<int>& rest, const cf::FoundVariable& variable,
                               CfField& field) const {
  for (const int each : rest)
    TR_TRY(axes_.check_no_times(variable.dimensions[static_cast<std::size_t>(each)]));
  const auto role = [&](int position) {
    return axes_.role(variable.dimensions[static_cast<std::size_t>(position)]);
  };
  const auto is_plane = [&](int position) { return role(position) == Role::horizontal; };
  const bool knows_plane = std::ranges::any_of(rest, is_plane);
  const auto may_go = [&](int position) { return !is_plane(position) && (knows_plane || rest.size() > 2); };
  // Leave out dimensions of length 1.
  for (std::size_t i = 0; i < rest.size();) {
    const bool drop = may_go(rest[i]) && length(variable.dimensions[static_cast<std::size_t>(rest[i])]) == 1;
    if (drop)
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  if (field.level >= 0) return {};
  const auto unknown = std::ranges::find_if(rest, may_go);
  if (unknown == rest.end()) return {};
  field.level = *unknown;
  rest.erase(unknown);
  return {};
}

/// Reads the numbers of a variable. An error of storage, or damage, ends the scan of the whole file; numbers
/// that are only not understood are an error of this variable.
Result<Numbers> CfReader::read_or_end(const cf::ReadNumbers& read, std::size_t variable) {
  Result<Numbers> numbers = read(variable);
  const Code code = numbers.status().code();
  if (!numbers.is_ok() && code != Code::format && code != Code::unsupported)
    ended_ = numbers.status().in(cat("variable '", at(variable).name, "'"));
  return numbers;
}

Result<const FoundTimes*> CfReader::times(std::size_t variable, bool ends) {
  const std::pair key(variable, ends && contents_.find_from(at(variable), at(variable).text("bounds")) >= 0);
  const auto known = times_.find(key);
  if (known != times_.end()) return &known->second;
  Result<FoundTimes> read = axes_.times(variable, ends);
  TR_TRY(read.status());
  return &times_.emplace(key, std::move(*read)).first->second;
}

Status CfReader::add_members(std::size_t variable, Span& span) const {
  const Result<Numbers> numbers = axes_.numbers(variable);
  TR_TRY(numbers.status());
  span.members.clear();
  for (const double each : *numbers) {
    if (!std::isnan(each) && (!(std::abs(each) < 1e9) || each != std::floor(each)))
      return {Code::format,
              cat("variable '", at(variable).name, "': expected whole numbers of members, got ", each)};
    span.members.push_back(std::isnan(each) ? untold_member : static_cast<int>(each));
  }
  if (std::ranges::count(span.members, untold_member) > 0) span.odd = no_number(at(variable));
  return {};
}

void CfReader::set_levels(std::size_t variable, Numbers numbers, Span& span) const {
  cf::FoundLevels levels = cf::levels_of(at(variable), std::move(numbers));
  span.level_type = std::move(levels.type);
  span.levels = std::move(levels.values);
  if (std::ranges::any_of(span.levels, [](double each) { return std::isnan(each); }))
    span.odd = no_number(at(variable));
}

/// Adds times, levels and members that have no dimension because there is only one of each.
Status CfReader::add_scalars(const cf::FoundVariable& variable, const CfField& field, Span& span) {
  for (const std::size_t each : axes_.scalars_of(variable)) {
    if (axes_.holds_times(each)) {
      const bool is_reference = axes_.is_reference(each);
      if (!is_reference && (field.time >= 0 || !span.valid.empty())) continue;
      const Result<const FoundTimes*> read = times(each, !is_reference && is_statistic(variable, each));
      TR_TRY(read.status());
      const Times& seconds = (*read)->seconds;
      if (seconds.size() != 1) continue;
      if (!is_reference) {
        span.valid = seconds;
        span.rests = (*read)->rests;
        span.odd = (*read)->odd;
      } else if (seconds.front() != untold_time) {
        span.reference = seconds.front();
        span.reference_rest = (*read)->rests.front();
      }
    } else if (axes_.is_member(each)) {
      if (field.member < 0) TR_TRY(add_members(each, span));
    } else if (cf::is_vertical(at(each)) && field.level < 0) {
      Result<Numbers> numbers = axes_.numbers(each);
      TR_TRY(numbers.status());
      if (numbers->size() == 1) set_levels(each, std::move(*numbers), span);
    }
  }
  return {};
}

Status CfReader::add_levels(const cf::FoundVariable& variable, const CfField& field, Span& span) {
  if (field.level < 0) return {};
  const int dimension = variable.dimensions[static_cast<std::size_t>(field.level)];
  const int coordinate = axes_.coordinate(dimension);
  span.levels.clear();
  if (coordinate < 0) {
    for (Index i = 1; i <= std::min(length(dimension), most_records); ++i)
      span.levels.push_back(static_cast<double>(i));
    return {};
  }
  Result<Numbers> numbers = axes_.numbers(static_cast<std::size_t>(coordinate));
  TR_TRY(numbers.status());
  set_levels(static_cast<std::size_t>(coordinate), std::move(*numbers), span);
  return {};
}

Status CfReader::add_times(const cf::FoundVariable& variable, const CfField& field, Span& span) {
  if (field.time >= 0) {
    const int dimension = variable.dimensions[static_cast<std::size_t>(field.time)];
    const auto coordinate = static_cast<std::size_t>(axes_.coordinate(dimension));
    const Result<const FoundTimes*> read = times(coordinate, is_statistic(variable, coordinate));
    TR_TRY(read.status());
    span.valid = (*read)->seconds;
    span.rests = (*read)->rests;
    if (!(*read)->odd.is_ok()) span.odd = (*read)->odd;
  }
  if (span.valid.empty() && field.time < 0) span.valid = {any_time};
  return {};
}

Result<CfReader::Span> CfReader::span_of(const cf::FoundVariable& variable, const CfField& field) {
  Span span;
  TR_TRY(add_scalars(variable, field, span));
  TR_TRY(add_levels(variable, field, span));
  TR_TRY(add_times(variable, field, span));
  if (field.member >= 0) {
    const int dimension = variable.dimensions[static_cast<std::size_t>(field.member)];
    TR_TRY(add_members(static_cast<std::size_t>(axes_.coordinate(dimension)), span));
  }
  return span;
}

/// Returns the index of the field's grid, and adds the grid if it is new. Grids differ in the dimensions of
/// the plane or in their grid_mapping.
Result<int> CfReader::grid_of(const cf::FoundVariable& variable, const CfField& field) {
  std::vector<int> dimensions;
  for (const int each : field.plane)
    dimensions.push_back(variable.dimensions[static_cast<std::size_t>(each)]);
  const int mapping = contents_.find_from(variable, variable.text("grid_mapping"));
  const auto [known, is_new] =
      grids_.emplace(std::pair(dimensions, mapping), static_cast<int>(grids_.size()));
  if (!is_new) return known->second;
  Grid& grid = found_.inventory.grids.emplace_back();
  for (const int each : dimensions) grid.shape.push_back(length(each));
  if (dimensions.size() != 2) return known->second;
  const int y = axes_.coordinate(dimensions[0]), x = axes_.coordinate(dimensions[1]);
  if (y < 0 || x < 0) return known->second;
  Result<codec::Keys> keys = keys_of_plane(contents_, variable, static_cast<std::size_t>(y),
                                           static_cast<std::size_t>(x), read_, has_default_fill_);
  TR_TRY(ended_);
  // Coordinates that cannot be understood only leave the grid without keys; the field stays readable.
  if (keys.is_ok()) grid.keys = std::move(*keys);
  return known->second;
}

/// Refuses a variable of more than a million records if the file does not hold at least one byte for each. A
/// few bytes of metadata could otherwise ask for memory for millions of records.
Status CfReader::check_stored(std::size_t variable, const CfField& field) {
  constexpr Index always_taken = Index{1} << 20;
  Index records = 1;
  for (const int each : {field.time, field.level, field.member}) {
    const Index count = each < 0 ? 1 : length(at(variable).dimensions[static_cast<std::size_t>(each)]);
    if (__builtin_mul_overflow(records, count, &records)) records = std::numeric_limits<Index>::max();
  }
  if (!stored_ || records <= always_taken - std::ssize(found_.inventory.records)) return {};
  const Result<Bytes> there = stored_(variable, records);
  if (!there.is_ok()) return ended_ = there.status().in(cat("variable '", at(variable).name, "'"));
  if (*there >= records) return {};
  return {Code::format,
          cat("variable '", at(variable).name, "': its metadata tell of ", records, " records, and only ",
              counted(*there, "byte"),
              " of them are there: expected at least one byte for each record; write what is to "
              "be read to a smaller array")};
}

Status CfReader::add_records(const std::string& name, const CfField& field, const Span& span) {
  Index count = 0;
  std::vector<Record>& records = found_.inventory.records;
  const bool is_beyond = __builtin_mul_overflow(std::ssize(span.valid), std::ssize(span.levels), &count) ||
                         __builtin_mul_overflow(count, std::ssize(span.members), &count);
  if (field.plane.empty()) {
    // Each number of a series is a record of some 200 bytes. Maps are read whatever series there are.
    if (is_beyond || count > most_series_records - series_records_)
      return {Code::unsupported, cat("variable '", name, "': with it the file has more than ",
                                     most_series_records, " numbers of series")};
    series_records_ += count;
  } else if (is_beyond || count > most_records - std::ssize(records)) {
    return ended_ = {Code::corrupt,
                     cat("variable '", name, "': with it the file has more than ", most_records, " records")};
  }
  // For many records, reserve the memory at once: a vector that grows holds them twice for a while.
  constexpr Index many = Index{1} << 20;
  if (count > many) records.reserve(records.size() + static_cast<std::size_t>(count));
  const auto number = static_cast<std::int64_t>(found_.fields.size());
  for (std::size_t step = 0; step < span.valid.size(); ++step) {
    for (std::size_t member = 0; member < span.members.size(); ++member) {
      for (std::size_t level = 0; level < span.levels.size(); ++level) {
        if (span.valid[step] == untold_time || span.members[member] == untold_member ||
            std::isnan(span.levels[level]))
          continue;
        Record each;
        each.field = name;
        each.level_type = span.level_type;
        each.level = span.levels[level];
        each.valid = span.valid[step];
        each.reference = span.reference == any_time ? each.valid : span.reference;
        each.member = span.members[member];
        each.grid = field.grid;
        each.place = {number, field.time < 0 ? 0 : static_cast<std::int64_t>(step),
                      static_cast<std::int64_t>(level), static_cast<std::int64_t>(member)};
        records.push_back(std::move(each));
        const std::int64_t rest = step < span.rests.size() ? span.rests[step] : 0;
        const std::int64_t of_reference = span.reference == any_time ? rest : span.reference_rest;
        if (rest != 0 || of_reference != 0) rests_.push_back({records.size() - 1, rest, of_reference});
      }
    }
  }
  return {};
}

/// True if the variable along the times is one more description of them: dates in other units, base times,
/// or leads.
bool CfReader::tells_of_times(std::size_t variable) const {
  return axes_.has_time_units(variable) || at(variable).text("standard_name") == "forecast_period";
}

/// Adds the fields with points at once, and series only if `adds_series_`.
Status CfReader::add(std::size_t number) {
  const cf::FoundVariable& variable = at(number);
  // Texts are no numbers of a grid, and readers want them also where `coordinates` names them.
  const bool is_text = variable.text_bytes > 0;
  if (variable.element_bytes() == 0 || (axes_.is_auxiliary(number) && !is_text)) return {};
  CfField field;
  field.variable = number;
  const Result<bool> is_field = assign(variable, field);
  TR_TRY(is_field.status());
  if (!*is_field) return {};
  if (field.plane.empty() && !adds_series_) {
    if (!tells_of_times(number)) series_.push_back(number);
    return {};
  }
  Result<cf::Unpacking> unpacking = cf::unpacking_of(variable, has_default_fill_);
  TR_TRY(unpacking.status());
  field.unpacking = std::move(*unpacking);
  TR_TRY(check_stored(number, field));
  const Result<Span> span = span_of(variable, field);
  TR_TRY(span.status());
  const auto check_length = [&](int position, std::size_t got, std::string_view of) -> Status {
    if (position < 0) return {};
    const Index expected = length(variable.dimensions[static_cast<std::size_t>(position)]);
    if (expected == static_cast<Index>(got)) return {};
    return {Code::corrupt,
            cat("variable '", variable.name, "': expected ", counted(expected, of), ", got ", got)};
  };
  TR_TRY(check_length(field.time, span->valid.size(), "time"));
  TR_TRY(check_length(field.level, span->levels.size(), "level"));
  TR_TRY(check_length(field.member, span->members.size(), "member"));
  const Result<int> grid = grid_of(variable, field);
  TR_TRY(grid.status());
  field.grid = *grid;
  TR_TRY(add_records(variable.name, field, *span));
  found_.fields.push_back(std::move(field));
  return span->odd;
}

/// Says what the times of records count, in the longest unit in which all of them are whole.
void CfReader::set_axis() {
  sources::Inventory& inventory = found_.inventory;
  for (const auto& [key, times] : times_)
    if (!times.inexact.is_ok() && inventory.inexact.is_ok()) inventory.inexact = times.inexact;
  if (axes_.model()) {
    inventory.time = *axes_.model();
    return;
  }
  if (rests_.empty()) return;
  const TimeUnit* unit = nullptr;
  for (const std::string_view symbol : {"ms", "us", "ns"}) {
    unit = find_time_unit(symbol);
    if (std::ranges::all_of(rests_, [&](const Rest& each) {
          return each.nanoseconds % unit->nanoseconds == 0 && each.of_reference % unit->nanoseconds == 0;
        }))
      break;
  }
  const Record& first = inventory.records[rests_.front().record];
  inventory.base = first.valid == any_time ? first.reference : first.valid;
  const std::int64_t parts = TimeAxis().nanoseconds() / unit->nanoseconds;
  const auto is_far = [&](std::int64_t seconds) {
    std::int64_t since = 0;
    return seconds != any_time && (__builtin_sub_overflow(seconds, inventory.base, &since) ||
                                   std::abs(since) > std::numeric_limits<std::int64_t>::max() / parts - 1);
  };
  const auto is_any_far = [&](const Record& each) { return is_far(each.valid) || is_far(each.reference); };
  if (std::ranges::any_of(inventory.records, is_any_far)) {
    inventory.inexact = {Code::data, cat("its times lie too far apart to be counted in ", unit->plural,
                                         ": without lead_unit= they are rounded to seconds")};
    inventory.base = 0;
    return;
  }
  inventory.time = TimeAxis::of_leads(*unit);
  inventory.is_rounded = true;
  const auto scale = [&](std::int64_t& time) {
    if (time != any_time) time = (time - inventory.base) * parts;
  };
  for (Record& each : inventory.records) {
    scale(each.valid);
    scale(each.reference);
  }
  for (const Rest& each : rests_) {
    Record& record = inventory.records[each.record];
    if (record.valid != any_time) record.valid += each.nanoseconds / unit->nanoseconds;
    if (record.reference != any_time) record.reference += each.of_reference / unit->nanoseconds;
  }
}

/// Adds all variables. A variable that is not understood goes to `unread`, and the others stay readable.
/// Series come last: there may be so many numbers in them that fields with points would find no room.
Result<CfInventory> CfReader::take() {
  std::vector<sources::Unread>& unread = found_.inventory.unread;
  const auto add_one = [&](std::size_t variable) -> Status {
    const Status added = add(variable);
    TR_TRY(ended_);
    if (!added.is_ok()) unread.push_back({at(variable).name, added});
    return {};
  };
  for (std::size_t i = 0; i < contents_.variables.size(); ++i) TR_TRY(add_one(i));
  adds_series_ = true;
  for (const std::size_t each : std::exchange(series_, {})) TR_TRY(add_one(each));
  if (found_.inventory.records.empty() && !unread.empty()) return unread.front().why;
  found_.inventory.calendar = axes_.calendar().value_or(Calendar::proleptic_gregorian);
  set_axis();
  return std::move(found_);
}

/// Rounds to millionths of a degree, as GRIB has coordinates.
double rounded(double degrees) { return std::round(degrees * 1e6) / 1e6; }

/// True if the numbers are evenly spaced, except for the last bits of float32.
bool are_even(const Numbers& numbers) {
  const double step = (numbers.back() - numbers.front()) / static_cast<double>(numbers.size() - 1);
  const double slack = 4e-7 * std::max(std::abs(numbers.front()), std::abs(numbers.back())) + 1e-9;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!(std::abs(numbers[i] - numbers.front() - static_cast<double>(i) * step) <= slack)) return false;
  }
  return step != 0;
}

/// Adds the keys of a rotated grid's south pole. Returns false if the file does not state the pole.
bool add_rotation(const cf::FoundContents& contents, const cf::FoundVariable& field, codec::Keys& keys) {
  const int mapping = contents.find_from(field, field.text("grid_mapping"));
  if (mapping < 0) return false;
  const cf::FoundVariable& pole = contents.variables[static_cast<std::size_t>(mapping)];
  const auto number = [&](std::string_view name) {
    const cf::FoundAttribute* const found = pole.find(name);
    const Numbers numbers = found == nullptr ? Numbers() : found->numbers();
    return numbers.size() == 1 ? std::optional(numbers.front()) : std::nullopt;
  };
  const auto latitude = number("grid_north_pole_latitude"), longitude = number("grid_north_pole_longitude");
  if (pole.text("grid_mapping_name") != "rotated_latitude_longitude" || !latitude || !longitude) return false;
  // CF states the north pole of the rotated grid, GRIB the south pole.
  keys.emplace_back("latitudeOfSouthernPoleInDegrees", cat(rounded(-*latitude)));
  keys.emplace_back("longitudeOfSouthernPoleInDegrees", cat(rounded(std::remainder(*longitude - 180, 360))));
  return true;
}

}  // namespace

std::vector<Index> CfField::begin(const RecordPlace& place, std::size_t dimensions) const {
  std::vector<Index> at(dimensions, 0);
  const auto set = [&](int position, std::int64_t value) {
    if (position >= 0) at[static_cast<std::size_t>(position)] = value;
  };
  set(time, place[1]);
  set(level, place[2]);
  set(member, place[3]);
  return at;
}

Status check_cf_place(const cf::FoundContents& contents, const std::vector<CfField>& fields,
                      const RecordPlace& place, const Grid& grid) {
  if (place[0] < 0 || place[0] >= std::ssize(fields))
    return {Code::corrupt,
            cat("expected a record of one of ", counted(fields.size(), "field"), ", got number ", place[0])};
  const CfField& field = fields[static_cast<std::size_t>(place[0])];
  const cf::FoundVariable& variable = contents.variables[field.variable];
  const std::vector<Index> begin = field.begin(place, variable.dimensions.size());
  const auto length = [&](std::size_t d) {
    return contents.dimensions[static_cast<std::size_t>(variable.dimensions[d])].length;
  };
  bool fits = grid.shape.size() == field.plane.size();
  for (std::size_t d = 0; d < begin.size(); ++d)
    fits = fits && begin[d] >= 0 && begin[d] < std::max<Index>(length(d), 1);
  for (std::size_t d = 0; fits && d < field.plane.size(); ++d)
    fits = grid.shape[d] == length(static_cast<std::size_t>(field.plane[d]));
  if (fits) return {};
  return {Code::corrupt,
          cat("variable '", variable.name, "' has no such record: the inventory is that of another file")};
}

Result<codec::Keys> keys_of_plane(const cf::FoundContents& contents, const cf::FoundVariable& field,
                                  std::size_t y, std::size_t x, const cf::ReadNumbers& read,
                                  bool has_default_fill) {
  const cf::FoundVariable &rows = contents.variables[y], &columns = contents.variables[x];
  const bool is_rotated = rows.text("standard_name") == "grid_latitude";
  const auto is = [](const cf::FoundVariable& axis, std::string_view name, std::string_view units) {
    return axis.text("standard_name") == name ||
           (axis.text("standard_name").empty() && lower_case(axis.text("units")).starts_with(units));
  };
  if (!is_rotated && !(is(rows, "latitude", "degrees_n") && is(columns, "longitude", "degrees_e")))
    return codec::Keys();
  const Result<Numbers> latitudes = scaled_numbers(rows, y, read, has_default_fill),
                        longitudes = scaled_numbers(columns, x, read, has_default_fill);
  TR_TRY(latitudes.status());
  TR_TRY(longitudes.status());
  codec::Keys keys;
  if (latitudes->size() < 2 || longitudes->size() < 2) return keys;
  const auto is_untold = [](double each) { return std::isnan(each); };
  if (std::ranges::any_of(*latitudes, is_untold) || std::ranges::any_of(*longitudes, is_untold)) return keys;
  if (is_rotated && !add_rotation(contents, field, keys)) return keys;
  const bool even = are_even(*longitudes) && are_even(*latitudes);
  if (even) keys.insert(keys.begin(), {"gridType", is_rotated ? "rotated_ll" : "regular_ll"});
  const auto add = [&](std::string_view key, double value) { keys.emplace_back(key, cat(rounded(value))); };
  keys.emplace_back("Ni", cat(longitudes->size()));
  keys.emplace_back("Nj", cat(latitudes->size()));
  add("latitudeOfFirstGridPointInDegrees", latitudes->front());
  add("latitudeOfLastGridPointInDegrees", latitudes->back());
  add("longitudeOfFirstGridPointInDegrees", longitudes->front());
  add("longitudeOfLastGridPointInDegrees", longitudes->back());
  if (!even) return keys;
  const auto step = [](const Numbers& of) {
    return std::abs(of.back() - of.front()) / static_cast<double>(of.size() - 1);
  };
  add("iDirectionIncrementInDegrees", step(*longitudes));
  add("jDirectionIncrementInDegrees", step(*latitudes));
  return keys;
}

Result<std::vector<double>> read_coordinate(const cf::FoundVariable& variable, std::span<const Index> shape,
                                            const ReadAll& read) {
  if (variable.type == cf::Number::none) return Status(Code::format, "expected numbers, got something else");
  layout::Box all;
  std::vector<int> plane;
  Index count = 1;
  for (const Index length : shape) {
    plane.push_back(static_cast<int>(plane.size()));
    all.lower.push_back(0);
    all.upper.push_back(length);
    if (__builtin_mul_overflow(count, length, &count) || count > most_coordinates)
      return Status(Code::format,
                    cat("expected a coordinate of at most ", most_coordinates, " numbers, got more"));
  }
  std::vector<double> numbers(static_cast<std::size_t>(count));
  cf::Unpacking as_they_are;
  as_they_are.type = variable.type;
  TR_TRY(read(all.lower, plane, as_they_are, all, reinterpret_cast<std::byte*>(numbers.data())));
  return numbers;
}

Result<CfInventory> take_inventory(const cf::FoundContents& contents, const cf::ReadNumbers& read,
                                   bool has_default_fill, const StoredBytes& stored) {
  return CfReader(contents, read, has_default_fill, stored).take();
}

}  // namespace tailrace::variables
