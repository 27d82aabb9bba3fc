// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Section 3 of a header: the grid of a field, from a sample message and keys.
#include <eccodes.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "formats/grib2/header.hpp"
#include "formats/grib2/sample.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"
#include "ground/base/uuid.hpp"

namespace tailrace::grib2 {

namespace {

bool given(const codec::Keys& keys, std::string_view prefix) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const auto& key) { return key.first.starts_with(prefix); });
}

// Returns the number of the round in which a grid key is set. The type of the grid comes first, because it
// decides which keys exist. The numbers of points come before pl, because they decide how long pl may be.
int turn(const std::string& key) {
  if (key == "gridDefinitionTemplateNumber" || key == "gridType") return 0;
  if (key == "N" || key == "Ni" || key == "Nj" || key == "Nx" || key == "Ny") return 1;
  return key == "pl" ? 2 : 3;
}

// Returns Code::format if the keys describe the grid only in part. ecCodes would take the numbers of its own
// sample for missing keys, and the grid would be wrong.
Status check_complete(const codec::Keys& keys, const std::string& grid_type) {
  // Each entry also stands for the longer name of the key that ends in InDegrees or InMetres.
  static const auto& needs = *new const std::map<std::string_view, std::vector<std::string_view>>{
      {"regular_ll", {"latitudeOfFirstGridPoint", "longitudeOfFirstGridPoint"}},
      {"rotated_ll",
       {"latitudeOfFirstGridPoint", "longitudeOfFirstGridPoint", "latitudeOfSouthernPole",
        "longitudeOfSouthernPole"}},
      {"lambert", {"latitudeOfFirstGridPoint", "longitudeOfFirstGridPoint", "LoV", "Latin1", "Dx", "Dy"}},
      {"polar_stereographic", {"latitudeOfFirstGridPoint", "longitudeOfFirstGridPoint", "LoV", "Dx", "Dy"}},
      {"regular_gg", {"N"}},
      {"reduced_gg", {"N"}},
  };
  const auto found = needs.find(grid_type);
  if (found == needs.end()) return {};
  for (const std::string_view key : found->second) {
    // For polar_stereographic ecCodes has two names for this key.
    const bool otherwise = key == "LoV" && given(keys, "orientationOfTheGrid");
    if (!given(keys, key) && !otherwise)
      return {Code::format, cat("grid '", grid_type, "' needs the key ", key,
                                "...; add it to the georeference, or give a sample message")};
  }
  return {};
}

Status refused(std::string_view key, std::string_view value, int error) {
  return {Code::format, cat("grid key '", key, "' = ", value, ": ", reason(error))};
}

/// Sets the keys that follow from the keys that were given. All of them are read back later.
class Completion {
 public:
  Completion(Handle& handle, const codec::FieldDefinition& field, codec::Keys& keys, int edition)
      : handle_(handle), field_(field), keys_(keys), parts_(parts_of_degree(edition)) {}

  Status run(const std::string& grid_type) {
    if (grid_type.find("_gg") != std::string::npos)
      return gaussian(grid_type.find("reduced") != std::string::npos);
    if (grid_type == "regular_ll" || grid_type == "rotated_ll") return lat_lon();
    return {};
  }

 private:
  Status add(const std::string& key, const std::string& value) {
    if (const int error = handle_.set_text(key, value); error != 0) return refused(key, value, error);
    keys_.emplace_back(key, value);
    return {};
  }
  Status add_unless_given(const std::string& key, const std::string& value) {
    return given(keys_, key) ? Status() : add(key, value);
  }
  double number(const std::string& key) const { return handle_.number(key).value_or(0); }
  double rounded(double degrees) const { return std::round(degrees * parts_) / parts_; }

  /// Adds the increment of an axis. Where thousandths of a degree do not hold it, GRIB1 says that it is not
  /// given: readers then divide the axis, as its ends and its number of points tell.
  Status add_step(const std::string& letter, double step) {
    const bool is_held = parts_ == parts_of_degree(2) || std::fabs(rounded(step) - step) < 1e-7;
    if (is_held) return add(letter + "DirectionIncrementInDegrees", cat(rounded(step)));
    TR_TRY(add(letter + "DirectionIncrement", "missing"));
    return add("ijDirectionIncrementGiven", "0");
  }

  Status extents() {
    const auto shape = field_.shape;
    if (shape.size() < 2) return {};
    if (!given(keys_, "Ni") && !given(keys_, "Nx")) TR_TRY(add("Ni", cat(shape[shape.size() - 1])));
    if (!given(keys_, "Nj") && !given(keys_, "Ny")) TR_TRY(add("Nj", cat(shape[shape.size() - 2])));
    return {};
  }

  Status lat_lon() {
    TR_TRY(extents());
    const bool last_latitude = given(keys_, "latitudeOfLastGridPoint");
    const bool last_longitude = given(keys_, "longitudeOfLastGridPoint");
    const double south_north =
        number("latitudeOfLastGridPointInDegrees") - number("latitudeOfFirstGridPointInDegrees");
    if (last_latitude && !given(keys_, "jScansPositively") && !given(keys_, "scanningMode"))
      TR_TRY(add("jScansPositively", south_north > 0 ? "1" : "0"));
    if (last_latitude && south_north != 0 && (south_north > 0) != (number("jScansPositively") > 0))
      return {Code::format,
              cat("the grid's rows go from latitude ", number("latitudeOfFirstGridPointInDegrees"), " to ",
                  number("latitudeOfLastGridPointInDegrees"), " but jScansPositively is ",
                  handle_.integer("jScansPositively").value_or(0))};
    TR_TRY(axis("latitude", "j", "Nj", last_latitude, number("jScansPositively") > 0 ? 1 : -1));
    return axis("longitude", "i", "Ni", last_longitude, number("iScansNegatively") > 0 ? -1 : 1);
  }

  // Completes one axis. From the first point and the number of points, the last point follows from the
  // increment, or the increment from the last point. If both are given, they must agree.
  Status axis(const std::string& name, const std::string& letter, const std::string& points, bool last_given,
              int sign) {
    const std::string first_key = name + "OfFirstGridPointInDegrees",
                      last_key = name + "OfLastGridPointInDegrees";
    const std::string step_key = letter + "DirectionIncrementInDegrees";
    const double steps = number(points) - 1;
    const double turn = name == "longitude" ? 360 : 0;
    const bool step_given = given(keys_, letter + "DirectionIncrement");
    if (!last_given && !step_given)
      return {Code::format,
              cat("the grid needs ", last_key, " or ", step_key, "; add one to the georeference")};
    if (!last_given) {
      double last = number(first_key) + sign * steps * number(step_key);
      if (turn > 0) last = std::fmod(std::fmod(last, turn) + turn, turn);
      return add(last_key, cat(rounded(last)));
    }
    double span = sign * (number(last_key) - number(first_key));
    if (turn > 0 && span < 0) span += turn;
    if (!step_given) return steps > 0 ? add_step(letter, span / steps) : Status();
    const double off = std::fabs(steps * number(step_key) - span);
    const double most_off = (steps + 2) / parts_;
    if (off > most_off && std::fabs(off - turn) > most_off)
      return {Code::format, cat("the grid's ", name, "s contradict themselves: ", points, " = ", steps + 1,
                                " points of ", step_key, " = ", number(step_key), " span ",
                                steps * number(step_key), " degrees, first and last ", span)};
    return {};
  }

  // Completes a global Gaussian grid, which follows from N alone.
  Status gaussian(bool reduced) {
    const long n = handle_.integer("N").value_or(0);
    if (n <= 0 || n > 100000) return {Code::format, cat("Gaussian grid with N = ", n)};
    std::vector<double> latitudes(static_cast<std::size_t>(2 * n));
    if (codes_get_gaussian_latitudes(n, latitudes.data()) != CODES_SUCCESS)
      return {Code::format, cat("ecCodes does not compute the latitudes of N = ", n)};
    TR_TRY(add_unless_given("Nj", cat(2 * n)));
    TR_TRY(add_unless_given("latitudeOfFirstGridPoint", cat(std::llround(latitudes.front() * parts_))));
    TR_TRY(add_unless_given("latitudeOfLastGridPoint", cat(std::llround(latitudes.back() * parts_))));
    TR_TRY(add_unless_given("longitudeOfFirstGridPoint", "0"));
    long longest = 4 * n;
    if (reduced) {
      TR_TRY(rows(n));
      for (const double row : handle_.numbers("pl")) longest = std::max(longest, static_cast<long>(row));
    } else {
      TR_TRY(add_unless_given("Ni", cat(longest)));
      longest = handle_.integer("Ni").value_or(longest);
      TR_TRY(add_unless_given("iDirectionIncrementInDegrees",
                              cat(rounded(360.0 / static_cast<double>(longest)))));
    }
    return add_unless_given("longitudeOfLastGridPointInDegrees",
                            cat(rounded(360.0 - 360.0 / static_cast<double>(longest))));
  }

  // Sets pl, the points of each row. ecCodes has samples of the classic reduced grids, with their rows.
  Status rows(long n) {
    if (given(keys_, "pl")) return {};
    Result<Handle> sample = Handle::from_sample(cat("reduced_gg_pl_", n, "_grib2"));
    if (!sample.is_ok())
      return {Code::format, cat("reduced Gaussian grid N = ", n,
                                " needs pl=..., the points of each row: ecCodes has no sample of it")};
    std::vector<long> points;
    for (const double row : sample->numbers("pl")) points.push_back(static_cast<long>(row));
    if (const int error = handle_.set("pl", std::span<const long>(points)); error != 0)
      return {Code::format, cat("grid key 'pl': ", reason(error))};
    return {};
  }

  Handle& handle_;
  const codec::FieldDefinition& field_;
  codec::Keys& keys_;
  double parts_;  // of a degree, in which angles are held
};

// Returns the number of points of the grid as section 3 describes it, or 0 if section 3 does not say
// (unstructured grids).
Index described_points(const Handle& handle) {
  if (handle.integer("PLPresent").value_or(0) != 0) {
    Index sum = 0;
    for (const double row : handle.numbers("pl")) sum += static_cast<Index>(row);
    return sum;
  }
  const auto ni = handle.integer("Ni"), nj = handle.integer("Nj");
  if (!ni || !nj || handle.is_missing("Ni") || handle.is_missing("Nj")) return 0;
  return static_cast<Index>(*ni) * static_cast<Index>(*nj);
}

Status check_points(const Handle& handle, const codec::FieldDefinition& field, Index points) {
  const std::string grid_type = handle.text("gridType").value_or("unknown");
  if (points != field.elements())
    return {Code::format,
            cat("the grid '", grid_type, "' has ", counted(points, "point"), ", and a record of shape ",
                extents(field.shape), " has ", counted(field.elements(), "element"),
                "; make the layout and the georeference agree")};
  std::vector<Index> sides = field.shape;
  std::erase(sides, 1);
  const Index ni = handle.integer("Ni").value_or(0), nj = handle.integer("Nj").value_or(0);
  if (sides.size() != 2 || handle.is_missing("Ni") || ni <= 1 || nj <= 1) return {};
  const bool columns_first = handle.integer("jPointsAreConsecutive").value_or(0) != 0;
  const Index slow = columns_first ? ni : nj, fast = columns_first ? nj : ni;
  if (sides[0] == slow && sides[1] == fast) return {};
  return {Code::format, cat("a record of shape ", extents(field.shape), " (", order_text(),
                            ") does not lie as the grid '", grid_type, "' does: ", extents({slow, fast}),
                            "; swap the layout's dimensions, or set jPointsAreConsecutive=1")};
}

/// Removes the dashes from UUIDs: ecCodes takes 32 digits.
Status write_uuids_as_grib_does(codec::Keys& keys) {
  for (auto& [key, value] : keys) {
    if (key != "uuidOfHGrid") continue;
    const Result<Uuid> uuid = Uuid::parse(value);
    TR_TRY(uuid.status().in("grid key 'uuidOfHGrid'"));
    value = uuid->text();
    std::erase(value, '-');
  }
  return {};
}

Status contradicts(const std::string& name, const std::string& key, const std::string& value) {
  return {Code::format,
          cat("grid key '", key, "' = ", value, " contradicts gridName=", name, ": give one of the two")};
}

/// Returns the points of each row of an octahedral grid (ECMWF's O names), from pole to pole, as a text for
/// pl.
std::string octahedral_rows(long n) {
  std::string rows;
  for (long row = 0; row < 2 * n; ++row) {
    const long from_pole = std::min(row, 2 * n - 1 - row);
    rows += cat(row == 0 ? "" : ",", 20 + 4 * from_pole);
  }
  return rows;
}

Result<codec::Keys> keys_of_name(const std::string& name) {
  constexpr long most = 16378;  // with a larger N, the points of the longest row do not fit two octets
  const std::optional<long> number = as_integer(name.substr(std::min<std::size_t>(name.size(), 1)));
  if (!number || *number < 1 || *number > most || std::string("FNOH").find(name[0]) == std::string::npos)
    return Status(Code::format, cat("gridName=", name,
                                    ": expected a regular, reduced or octahedral Gaussian "
                                    "or a HEALPix grid, as F32, N32, O32 or H32, with a number from 1 to ",
                                    most));
  const std::string n = cat(*number);
  if (name[0] == 'H') return codec::Keys{{"gridType", "healpix"}, {"Nside", n}};
  if (name[0] == 'F') return codec::Keys{{"gridType", "regular_gg"}, {"N", n}};
  codec::Keys keys{{"gridType", "reduced_gg"}, {"N", n}};
  if (name[0] == 'O') keys.emplace_back("pl", octahedral_rows(*number));
  return keys;
}

}  // namespace

bool has_grid(const codec::Keys& keys) {
  return given(keys, "gridType") || given(keys, "gridDefinitionTemplateNumber") || given(keys, "gridName");
}

Result<codec::Keys> named_grid(codec::Keys keys) {
  const auto take = [&](std::string_view key) -> std::optional<std::string> {
    const auto found = std::ranges::find(keys, key, &Wanted::first);
    if (found == keys.end()) return std::nullopt;
    std::string value = std::move(found->second);
    keys.erase(found);
    return value;
  };
  std::optional<std::string> name = take("gridName");
  const std::optional<std::string> octahedral = take("isOctahedral");
  const std::string* const n = codec::find_key(keys, "N");
  if (octahedral == "1" && !name && n != nullptr) name = "O" + *n;
  if (!name) return keys;
  if (octahedral && (*octahedral == "1") != name->starts_with("O"))
    return contradicts(*name, "isOctahedral", *octahedral);
  Result<codec::Keys> named = keys_of_name(*name);
  TR_TRY(named.status());
  for (const auto& [key, value] : *named) {
    const std::string* const same = codec::find_key(keys, key);
    if (same != nullptr && *same != value) return contradicts(*name, key, *same);
    if (same == nullptr) keys.emplace_back(key, value);
  }
  return keys;
}

codec::Keys grid_keys(const Request& request) {
  const codec::Georeference& georeference = request.field->georeference;
  if (!georeference.sample.empty() || !georeference.keys.empty()) return georeference.keys;
  for (const codec::Keys& keys : {request.field_keys, request.stream_keys}) {
    if (has_grid(keys)) return keys;
  }
  return {};
}

Status set_grid(Handle& handle, const codec::FieldDefinition& field, const codec::Keys& keys,
                bool from_sample, codec::Keys& wanted, int edition) {
  if (field.shape.empty())
    return {Code::format, "it is a scalar, and GRIB holds fields on grids alone: write it to another stream"};
  if (!from_sample && !has_grid(keys))
    return {Code::format,
            "it has no grid: call georeference on its layout, with a sample message or with keys that "
            "begin with gridType=..."};
  Result<codec::Keys> named = named_grid(keys);
  TR_TRY(named.status());
  codec::Keys ordered = std::move(*named);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return turn(a.first) < turn(b.first); });
  TR_TRY(write_uuids_as_grib_does(ordered));
  for (const auto& [key, value] : ordered) {
    const int error = handle.set_text(key, value);
    if (error != 0 && !is_absent(error)) return refused(key, value, error);
  }
  const std::string grid_type = handle.text("gridType").value_or("unknown");
  if (grid_type.ends_with("sh") || grid_type.starts_with("bifourier"))
    return {Code::format,
            cat("grid '", grid_type, "' holds spectral coefficients; only grid-point fields are written")};
  if (!from_sample) {
    TR_TRY(check_complete(ordered, grid_type));
    TR_TRY(Completion(handle, field, ordered, edition).run(grid_type));
  }
  Index points = described_points(handle);
  const bool counted = given(keys, "numberOfDataPoints") || (from_sample && points == 0);
  if (points == 0) points = counted ? handle.integer("numberOfDataPoints").value_or(0) : field.elements();
  TR_TRY(check_points(handle, field, points));
  wanted.insert(wanted.end(), ordered.begin(), ordered.end());
  if (edition == 1) return {};  // its number of points follows from the grid
  // The number of points must be set, because ecCodes corrects it only when values are set.
  if (const int error = handle.set("numberOfDataPoints", static_cast<long>(points)); error != 0)
    return {Code::format,
            cat("GRIB2 holds at most 4294967294 points a field, not ", points, ": ", reason(error))};
  wanted.emplace_back("numberOfDataPoints", cat(points));
  return {};
}

}  // namespace tailrace::grib2
