// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/calendar.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::codec {

using Keys = std::vector<std::pair<std::string, std::string>>;  // in the order given

/// Returns the text of a key, or null.
const std::string* find_key(const Keys& keys, std::string_view name);

/// The key of a stream by which its fields have the names that weather and climate models give them, and its
/// word. Without it a name says nothing about its field.
inline constexpr std::string_view conventions_key = "conventions", weather_conventions = "weather";

/// No cell has more corners.
inline constexpr Index most_corners = 64;

/// The program tells where the points of a layout lie if no keys describe the grid: their latitudes and
/// longitudes. It may also tell the corners of the cells around the points.
struct Coordinates {
  std::vector<Index> shape;    // of the points, slowest dimension first
  Index corners = 0;           // of each cell; 0: none were told
  std::uint64_t checksum = 0;  // of all values
  /// Big-endian float64 in C order: all latitudes, all longitudes, and then the latitudes of all corners and
  /// their longitudes, those of one cell side by side. Only ranks that write heads of files have them.
  ByteVector values;

  [[nodiscard]] Index points() const;
  /// Returns the number of bytes that `values` has where it is there, or none beyond 2^63.
  [[nodiscard]] std::optional<Bytes> bytes() const;
  /// Returns the same without the values.
  [[nodiscard]] Coordinates facts() const { return {shape, corners, checksum, {}}; }
  /// Returns true if the values are the same, wherever they are.
  [[nodiscard]] bool are_those_of(const Coordinates& other) const {
    return shape == other.shape && corners == other.corners && checksum == other.checksum;
  }
  void pack(Packer& out) const;
  /// Packs what stands before the values.
  void pack_front(Packer& out) const;
  static Result<Coordinates> unpack(Unpacker& in);
};

/// The grid of the records, given by a sample message, by keys or by both (keys win), and for formats that
/// have coordinates also by these.
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
  std::int64_t duration_seconds = 0;
  bool write_at_zero = true;  // at lead 0: written as an empty interval, or omitted

  /// Returns the lead at which the interval of the step at `lead` begins.
  [[nodiscard]] std::int64_t interval_start(std::int64_t lead, std::int64_t previous_lead) const;
};

/// Everything that fixes the header of a field's records, except the step and the level.
struct FieldDefinition {
  std::string name;  // shortName, or a raw field's name
  ElementType type = ElementType::f32;
  std::vector<Index> shape;  // of one record, slowest dimension first
  Georeference georeference;
  Levels levels;
  Statistic statistic;
  std::optional<double> accuracy;           // absolute: |decoded - given| <= accuracy
  std::optional<double> relative_accuracy;  // as a share of the record's largest magnitude
  std::optional<int> bits;        // bits per value; at most one of the three is given, the default is 16 bits
  std::optional<double> missing;  // the value that means "no value"
  Keys keys;                      // extra keys, set last and read back
  Keys attributes;                // of the field's variable, in formats that have variables

  [[nodiscard]] Index elements() const;  // Returns the number of elements of one record.
  void pack(Packer& out) const;
  static Result<FieldDefinition> unpack(Unpacker& in);
};

struct StreamDefinition {
  std::string format;  // a name in the registry of formats
  std::string name;    // the pattern of its files, for people
  DateTime base;       // reference time of all leads
  Calendar calendar = Calendar::proleptic_gregorian;
  std::optional<int> member;       // ensemble member; with it the ensemble templates are chosen
  std::optional<int> members;      // size of the ensemble
  std::string packing = "simple";  // or "ccsds"
  Keys keys;                       // e.g. {"centre","98"}; set before field keys
  Keys attributes;                 // of each file, in formats that have attributes; e.g. {"title","..."}

  void pack(Packer& out) const;
  static Result<StreamDefinition> unpack(Unpacker& in);
};

}  // namespace tailrace::codec
