// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/codec/definition.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/calendar.hpp"
#include "ground/base/status.hpp"
#include "ground/base/time_axis.hpp"
#include "ground/base/types.hpp"
#include "ground/layout/layout.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::sources {

/// The place of a record's values in its file. Each format gives the numbers its own meaning (GRIB: offset
/// and length of the message, number of the field in it; NetCDF and Zarr: variable, step and level). A place
/// means the same in every process, so processes may send it to each other.
using RecordPlace = std::array<std::int64_t, 4>;

/// Record::valid of a field from a file that states no time. Such a record is used for every time.
inline constexpr std::int64_t any_time = std::numeric_limits<std::int64_t>::min();

/// The grid that records of a file share.
struct Grid {
  std::vector<Index> shape;  // of one record, slowest dimension first, as the file stores it
  codec::Keys keys;          // the file's description of the grid (GRIB: gridType, Ni, Nj, first point, ...)
};

/// One level of one field at one time, in a file of any writer.
struct Record {
  std::string field;           // GRIB: shortName; other formats: name of the variable
  std::string level_type;      // GRIB's typeOfLevel; "" = the file does not tell
  double level = 0;            // hPa for isobaricInhPa; if the file states no levels: the position, from 1 on
  std::int64_t valid = 0;      // lead on Inventory::time; for statistics the interval's end
  std::int64_t reference = 0;  // base time on the same axis; equal to `valid` if the file does not tell
  int member = -1;             // of an ensemble; -1 = none
  int grid = 0;                // index into Inventory::grids
  RecordPlace place{};
};

/// A part of a file that cannot be read. The other records of the file are read all the same.
struct Unread {
  std::string field;  // name of the variable, which may have other records; "" = the file does not tell
  Status why;         // without the name of the file
};

/// The facts about a record that its headers state and Record lacks. Several records of a file may have the
/// same field, level and time, and differ only in their traits.
struct Traits {
  /// "instant", "accum", "average", "maximum" or "minimum"; "" = another statistic, which only `keys` shows.
  std::string statistic;
  std::optional<std::int64_t> begin;  // of the statistic's interval, which ends at Record::valid
  std::optional<double> bottom;       // of a layer, in the unit of Record::level
  std::optional<double> percentile;   // from 0 to 100
  codec::Keys keys;                   // all keys of the headers, in their order, without grid and packing
  std::uint64_t checksum = 0;         // of the octets that `keys` was read from
  /// The answers to the keys that were asked for.
  struct Answer {
    std::string text;  // "missing" if the key has no value
    bool fits = false;
  };
  std::vector<Answer> answers;
};

/// The records and grids of a file.
struct Inventory {
  std::string format;
  Calendar calendar = Calendar::proleptic_gregorian;
  std::vector<Grid> grids;
  std::vector<Record> records;  // in the order in which the file holds them
  /// The parts that were not read. The error of a get that finds no record names them; `tailrace index` lists
  /// them.
  std::vector<Unread> unread{};
  /// The axis on which the records' times are numbers. In most files they are seconds since 1970, in
  /// `calendar`.
  TimeAxis time{};
  std::int64_t base = 0;  // seconds since 1970 at which the lead of a time is 0
  /// The file's numbers are rounded to whole seconds unless the program names a unit, as programs expect of
  /// files of other writers.
  bool is_rounded = false;
  /// The reason why a time of the file was rounded to seconds: it is no whole number of any unit of leads.
  /// Success: no time was.
  Status inexact{};

  /// Returns the last whole second since 1970 up to a time of a record. Only if `time` has a base time.
  [[nodiscard]] std::int64_t seconds(std::int64_t valid) const { return base + time.floor_seconds(valid); }
};

/// Memory that a thread keeps from one read to the next.
struct Scratch {
  ByteVector bytes;    // the record as it lies in the file
  ByteVector decoded;  // the values of a whole record
};

/// A file that is open for reading, with its inventory. Immutable. Any thread may read.
class Source {
 public:
  virtual ~Source() = default;
  [[nodiscard]] const Inventory& inventory() const { return inventory_; }
  /// Local. Blocks on storage. Reads and decodes a record that lies on `grid`, and stores the part inside
  /// `cut` at `values`, in C order, as `type`: f32 or f64, and of exact_type() also any type that has all
  /// their values. Missing values become NaN; of integers, what stands at their place in `values` stays.
  /// Returns the number of missing values in the part. Code::corrupt if the bytes contradict themselves or
  /// the inventory; Code::io with the errno's text if storage fails.
  virtual Result<Index> read(const RecordPlace& place, const Grid& grid, const layout::Box& cut,
                             ElementType type, std::byte* values, Scratch& scratch) const = 0;
  /// True if the file stores this record's values as unscaled float32. A marker for "no value" that the
  /// program gives as float64 then appears among the values as the nearest float32.
  [[nodiscard]] virtual bool holds_float32(const RecordPlace&) const { return false; }
  /// Returns the type of the record's values if the file stores them as unscaled integers, or as texts.
  [[nodiscard]] virtual std::optional<ElementType> exact_type(const RecordPlace&) const {
    return std::nullopt;
  }
  /// Local. Blocks on storage. Any thread may call it. Returns the traits of a record, with one answer for
  /// each key of `asked`: its value, and whether the value is the one in `asked`. Returns nothing if the
  /// format has no such headers. Errors as of `read`.
  virtual Result<std::optional<Traits>> traits(const Record& record, const codec::Keys& asked) const {
    static_cast<void>(record);
    static_cast<void>(asked);
    return std::optional<Traits>();
  }
  /// Returns an upper bound of the bytes that `read` uses in Scratch for this record.
  [[nodiscard]] virtual Bytes scratch_bound(const RecordPlace& place, const Grid& grid) const = 0;

 protected:
  Inventory inventory_;
};

}  // namespace tailrace::sources
