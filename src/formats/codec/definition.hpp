// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/calendar.hpp"
#include "ground/base/status.hpp"
#include "ground/base/time_axis.hpp"
#include "ground/base/types.hpp"

namespace tailrace::codec {

using Keys = std::vector<std::pair<std::string, std::string>>;  // in the order given

/// Returns the text of a key, or null.
const std::string* find_key(const Keys& keys, std::string_view name);

/// With conventions=weather a stream's fields have the names that weather and climate models give them, so a
/// name tells the standard_name and the units. Without this key a name says nothing about its field.
inline constexpr std::string_view conventions_key = "conventions", weather_conventions = "weather";

/// No cell has more corners.
inline constexpr Index most_corners = 64;

/// The latitudes and longitudes of a layout's points, which the program gives if no keys describe the grid.
/// The program may also give the corners of the cells around the points.
struct Coordinates {
  std::vector<Index> shape;    // of the points, slowest dimension first
  Index corners = 0;           // of each cell; 0: the program gave none
  std::uint64_t checksum = 0;  // of all values
  /// Big-endian float64 in C order: the latitudes of all points, their longitudes, the latitudes of all
  /// corners, and their longitudes. The corners of one cell stand side by side. Empty on ranks that write no
  /// heads of files.
  ByteVector values;

  [[nodiscard]] Index points() const;
  /// Returns the size of `values` on a rank that has them, or nothing if it is beyond 2^63 bytes.
  [[nodiscard]] std::optional<Bytes> bytes() const;
  /// Returns a copy without the values.
  [[nodiscard]] Coordinates facts() const { return {shape, corners, checksum, {}}; }
  /// Returns true if the checksums say that both have the same values. Neither side needs to hold them.
  [[nodiscard]] bool are_those_of(const Coordinates& other) const {
    return shape == other.shape && corners == other.corners && checksum == other.checksum;
  }
  void pack(Packer& out) const;
  /// Packs all that `pack` writes before the bytes of the values, their size included.
  void pack_front(Packer& out) const;
  static Result<Coordinates> unpack(Unpacker& in);
};

/// The coordinate of a dimension that the program has named.
struct Axis {
  std::string dimension;
  ElementType type = ElementType::f64;
  ByteVector values;  // one of `type` for each element of the dimension
  ByteVector bounds;  // two for each, or empty
  Keys attributes;    // e.g. {"units","m"}
  friend bool operator==(const Axis&, const Axis&) = default;

  void pack(Packer& out) const;
  static Axis unpack(Unpacker& in);
};

/// An attribute that the program has given with its type.
struct GivenAttribute {
  std::string of;  // a field, or a dimension that has a coordinate; empty: the file
  std::string name;
  std::optional<ElementType> type;  // none: a text
  ByteVector values;                // numbers in the host's byte order, or UTF-8
  friend bool operator==(const GivenAttribute&, const GivenAttribute&) = default;

  void pack(Packer& out) const;
  static GivenAttribute unpack(Unpacker& in);
};

/// The grid of the records: a sample message, keys, or both. Where both tell something, the keys win. In
/// formats that have coordinates, the program's coordinates may give the grid.
struct Georeference {
  ByteVector sample;  // a whole GRIB message, already read from its file; empty = none
  Keys keys;          // e.g. {"gridType","rotated_ll"}, {"Ni","468"}, ...
  std::shared_ptr<const Coordinates> coordinates = nullptr;  // never packed with a field
  friend bool operator==(const Georeference&, const Georeference&) = default;
};

struct Levels {
  std::string type = "surface";  // any typeOfLevel, or "pressure" (hPa), "height" (m above ground)
  std::vector<double> values{
      0};  // one per level, in the order of the array's level dimension; hPa for isobaricInhPa
  std::vector<double> bottoms;  // second surface of each level, for types that are layers; otherwise empty
  std::vector<double> coefficients;  // vertical coordinate (pv): a(0..n), b(0..n); hybrid only
};

enum class Process { instant, accum, average, maximum, minimum };
struct Statistic {
  Process process = Process::instant;
  enum class Since { start, last_output, duration } since = Since::start;
  std::int64_t duration = 0;  // in the unit of leads
  bool write_at_zero = true;  // at lead 0 the field is written, as an empty interval; false: it is left out

  /// Returns the lead at which the interval of the step at `lead` begins.
  [[nodiscard]] std::int64_t interval_start(std::int64_t lead, std::int64_t previous_lead) const;
};

/// How many elements of what the program puts become one element of a record (over=): along the dimensions
/// that are lost.
struct Reduction {
  /// Heads of files hold the numbers of the enum: append only.
  enum class Operation : std::int32_t { none = 0, mean = 1, sum = 2, minimum = 3, maximum = 4 };
  Operation operation = Operation::none;
  std::vector<Index> shape;  // of one level as it is put, slowest dimension first
  /// Their names, as the program gives them, or none. A lost one that is none of a map has the standard_name
  /// of its coordinate, if there is one.
  std::vector<std::string> dimensions;
  std::vector<std::int8_t> is_lost;  // by dimension of `shape`
  std::string level_type;            // of the levels that became one; empty: the field keeps its levels
  /// The field without time whose values are the weights of elements (weights=); empty: all count alike.
  std::string weights{};
  /// The distances in its values from one index of a dimension of `shape` to the next: 0 along a dimension
  /// that it lacks. Empty if it has the weights of levels, which are one already in what is put.
  std::vector<Index> weight_strides{};
  Index weight_level = 0;  // the distance from one level to the next; 0: all have the same weights
  friend bool operator==(const Reduction&, const Reduction&) = default;

  /// Returns true if elements of one level become one.
  [[nodiscard]] bool is_within_level() const;
  /// Returns true if elements of one level become one, each with its weight.
  [[nodiscard]] bool is_weighted() const { return !weight_strides.empty(); }
  void pack(Packer& out) const;
  static Reduction unpack(Unpacker& in);
};
inline constexpr std::array<std::string_view, 5> reduction_names{"none", "mean", "sum", "minimum", "maximum"};
[[nodiscard]] constexpr std::string_view name_of(Reduction::Operation operation) {
  return reduction_names[static_cast<std::size_t>(operation)];
}

/// The part of an array that the records of a field hold (section=): of each dimension the elements start,
/// start + stride, ..., the last of them before `stop`. Slowest dimension first.
struct Section {
  std::vector<Index> whole;  // shape of the array; empty: the records hold all of it
  std::vector<Index> start;
  std::vector<Index> stop;  // right behind the last element. Records over dimensions do not tell it
  std::vector<Index> stride;
  /// Why no keys of GRIB describe the grid of the part. Empty if the georeference is that of the part, or if
  /// there is none. Known where fields are defined: pack() leaves it out.
  std::string no_grid{};

  [[nodiscard]] bool is_given() const { return !whole.empty(); }
  /// Returns true if both have the same elements of arrays of one shape.
  friend bool operator==(const Section& one, const Section& other) {
    return one.whole == other.whole && one.start == other.start && one.stop == other.stop &&
           one.stride == other.stride;
  }
  void pack(Packer& out) const;
  static Section unpack(Unpacker& in);
};

/// Returns the number of elements that lie in a row along the fastest dimension of a shape that has more than
/// one.
[[nodiscard]] Index row_of(std::span<const Index> shape);

/// Everything that the headers of a field's records need, except the step and the number of the level.
struct FieldDefinition {
  std::string name;  // shortName, or a raw field's name
  ElementType type = ElementType::f32;
  std::vector<Index> shape;  // of one record, slowest dimension first
  Georeference georeference;
  Levels levels;
  Statistic statistic;
  std::optional<double> accuracy;           // absolute: |decoded - given| <= accuracy
  std::optional<double> information;        // accuracy=auto: the share of its information that a record keeps
  std::optional<double> relative_accuracy;  // as a share of the record's largest magnitude
  std::optional<int> bits;        // per value; at most one of the four is given (none: the format's default)
  std::optional<double> missing;  // the value that means "no value"
  Keys keys;                      // extra keys; GRIB2 sets them last and reads them back
  Keys attributes;                // of the field's variable, in formats that have variables
  std::vector<std::string> dimensions{};  // the names of the dimensions of `shape`, or none
  std::vector<Axis> axes{};               // coordinates of `dimensions` that no field before has
  bool has_time = true;  // false: the field is in each file once, and no step has a record of it
  /// The values of all levels of a field without time, big-endian. Only ranks that write heads of files have
  /// them, and all servers those that are weights of other fields. pack() leaves them out.
  std::shared_ptr<const ByteVector> values = nullptr;
  /// How a record comes of what is put. `shape`, `dimensions` and `levels` are those of the records.
  Reduction reduction{};
  /// Which part of the program's array a record is. `shape` is that of the part.
  Section section{};

  [[nodiscard]] Index elements() const;  // Returns the elements of one record, or -1 beyond 2^63.
  /// Returns the elements of one level as it is put, or -1 beyond 2^63.
  [[nodiscard]] Index elements_put() const;
  /// Returns the bytes of all levels as the program has them, or -1 beyond 2^63.
  [[nodiscard]] Bytes whole_bytes() const;
  void pack(Packer& out) const;
  static Result<FieldDefinition> unpack(Unpacker& in);
};

struct StreamDefinition {
  std::string format;  // a name in the registry of formats
  std::string name;    // the pattern of the names of its files, for error texts
  DateTime base;       // reference time of all leads
  Calendar calendar = Calendar::proleptic_gregorian;
  std::optional<int> member;            // number in the ensemble; GRIB2 then takes the ensemble templates
  std::optional<int> members;           // size of the ensemble
  std::string packing = "simple";       // or "ccsds"
  Keys keys;                            // e.g. {"centre","98"}; set before field keys
  Keys attributes;                      // of each file, in formats that have attributes; e.g. {"title","..."}
  TimeAxis time{};                      // what leads count, and the variable of time in files
  std::vector<GivenAttribute> given{};  // in the order of the calls, all of them behind the last field

  /// Heads of NetCDF-4 files hold what this packs (formats/netcdf4/head.cpp), and the Python package reads it
  /// by position: an option that says nothing of a file's content belongs to pipeline::Policy.
  void pack(Packer& out) const;
  static Result<StreamDefinition> unpack(Unpacker& in);
};

}  // namespace tailrace::codec
