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
#include "ground/base/types.hpp"
#include "ground/layout/layout.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::sources {

/// The place of a record's values in its file. Each format has its own meaning of the numbers (GRIB: offset
/// and length of the message; NetCDF and Zarr: variable, step and level). Processes hand a place to each
/// other as it is.
using Place = std::array<std::int64_t, 4>;

/// Record::valid of a field that a file without any time holds: it fits each time.
inline constexpr std::int64_t any_time = std::numeric_limits<std::int64_t>::min();

/// The grid that records of a file share.
struct Grid {
  std::vector<Index> shape;  // of one record, slowest dimension first, as the file stores it
  codec::Keys keys;          // what the file says of the grid (GRIB: gridType, Ni, Nj, first point, ...)
};

/// One level of one field at one time, in a file of any writer.
struct Record {
  std::string field;           // GRIB: shortName; other formats: name of the variable
  std::string level_type;      // GRIB's typeOfLevel; "" = the file does not tell
  double level = 0;            // hPa for isobaricInhPa; if the file has no values: position, from 1 on
  std::int64_t valid = 0;      // seconds since 1970 in Inventory::calendar; for statistics the interval's end
  std::int64_t reference = 0;  // base time, likewise; equal to `valid` if the file does not tell
  int member = -1;             // of an ensemble; -1 = none
  int grid = 0;                // in Inventory::grids
  Place place{};
};

/// A part of a file that cannot be read. The other records of the file are read all the same.
struct Unread {
  std::string field;  // name of the variable, which may have other records; "" = the file does not tell
  Status why;         // without the name of the file
};

/// The traits of a record that its headers tell beside what Record has. Several records of a file may have
/// one field, level and time, and differ in their traits.
struct Traits {
  /// "instant", "accum", "average", "maximum" or "minimum"; "" = another one, which only `keys` tell.
  std::string statistic;
  std::optional<std::int64_t> begin;  // of the statistic's interval, which ends at Record::valid
  std::optional<double> bottom;       // of a layer, in the unit of Record::level
  std::optional<double> percentile;   // from 0 to 100
  codec::Keys keys;                   // all that the headers hold, in their order, without grid and packing
  std::uint64_t checksum = 0;         // of the same octets
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
  std::vector<Record> records;   // in the order of the file
  std::vector<Unread> unread{};  // told when it is asked for, and by `tailrace index`
};

/// Memory that a thread keeps from one read to the next.
struct Scratch {
  ByteVector bytes;    // as they lie in the file
  ByteVector decoded;  // a whole record
};

/// A file that is open for reading, with its inventory. Immutable. Any thread may read.
class Source {
 public:
  virtual ~Source() = default;
  [[nodiscard]] const Inventory& inventory() const { return inventory_; }
  /// Local. Reads and decodes a record of this grid, and stores the part inside `cut` at `values`, in C
  /// order, as `type` (f32 or f64). Missing values become NaN. Returns how many of the part are missing.
  /// Code::corrupt if the bytes contradict themselves or the inventory; Code::io with the errno's text if
  /// storage fails.
  virtual Result<Index> read(const Place& place, const Grid& grid, const layout::Box& cut, ElementType type,
                             std::byte* values, Scratch& scratch) const = 0;
  /// Returns true if values of the record are float32 in the file, and not scaled: what stands for "no value"
  /// among them is the nearest float32.
  [[nodiscard]] virtual bool holds_float32(const Place&) const { return false; }
  /// Local. Blocks on storage. Returns what the headers of a record say beside the inventory, and whether its
  /// keys have the values that `asked` names; nothing if the format has no such headers. Any thread may call
  /// it. Code::corrupt and Code::io as `read`.
  virtual Result<std::optional<Traits>> traits(const Record& record, const codec::Keys& asked) const {
    static_cast<void>(record);
    static_cast<void>(asked);
    return std::optional<Traits>();
  }
  /// Returns an upper bound of the bytes that `read` takes in Scratch for this record.
  [[nodiscard]] virtual Bytes scratch_bound(const Place& place, const Grid& grid) const = 0;

 protected:
  Inventory inventory_;
};

/// Local. Opens a file of any format that this build reads, told by its first bytes, and finds its records:
/// by the index beside it (index_path) if there is one, and then only those of committed steps; by an
/// inventory that was kept in `cache` and fits the file; or by reading the file's headers, and then keeps the
/// inventory in `cache` ("" = nowhere). Code::io if there is no such file, Code::format if no format fits,
/// Code::corrupt if it contradicts itself.
Result<std::shared_ptr<const Source>> open(const std::shared_ptr<storage::Target>& target,
                                           const std::string& path, const std::string& cache);

/// Returns success if `grid` is the one that `georeference` describes, as far as both tell, and has this
/// shape. Code::layout names the first difference, expected and got.
Status check_grid(const Grid& grid, const std::vector<Index>& shape, const codec::Georeference& georeference);

}  // namespace tailrace::sources
