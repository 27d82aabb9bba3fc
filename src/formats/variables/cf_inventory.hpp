// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "formats/cf/found.hpp"
#include "formats/cf/unpacking.hpp"
#include "formats/variables/names.hpp"

namespace tailrace::variables {

/// A variable with records, and the roles of its dimensions. A dimension is given by its position among the
/// dimensions of the variable; -1: the variable has none of the role.
struct CfField {
  std::size_t variable = 0;
  int time = -1, level = -1, member = -1;
  std::vector<int> plane;  // the dimensions of a record, slowest first
  int grid = 0;            // index into Inventory::grids
  cf::Unpacking unpacking;

  /// Returns the first index of a record along each of the variable's `dimensions` dimensions.
  [[nodiscard]] std::vector<Index> begin(const RecordPlace& place, std::size_t dimensions) const;
};

/// The inventory of a file with CF metadata. A RecordPlace holds four numbers here: the index in `fields`,
/// and the record's indices along the dimensions of time, level and member.
struct CfInventory {
  Inventory inventory;
  std::vector<CfField> fields;
};

/// Returns success if the place is that of a record with this grid, otherwise Code::corrupt. Check every
/// place: it may come from another process, or from the inventory of a file that has changed since.
Status check_cf_place(const cf::FoundContents& contents, const std::vector<CfField>& fields,
                      const RecordPlace& place, const Grid& grid);

/// The largest number of elements that a coordinate may have.
inline constexpr Index most_coordinates = Index{1} << 22;
/// Reads elements as float64 to `numbers`: all of a variable, without unpacking them.
using ReadAll = std::function<Status(std::span<const Index> begin, std::span<const int> plane,
                                     const cf::Unpacking& how, const layout::Box& all, std::byte* numbers)>;
/// Local. Returns the elements of a variable with this shape. Blocks in `read`. Code::format if they are no
/// numbers, or too many.
Result<std::vector<double>> read_coordinate(const cf::FoundVariable& variable, std::span<const Index> shape,
                                            const ReadAll& read);

/// The largest number of records that a file may have.
using sources::most_records;

/// Returns the number of bytes that the file holds of a variable's elements, or `enough` once it has counted
/// so many.
using StoredBytes = std::function<Result<Bytes>(std::size_t variable, Bytes enough)>;

/// Local. Returns the records of a file. Blocks only in `read`, which it calls for coordinates, and in
/// `stored`, which it calls for variables of more than a million records: they must take up at least a byte
/// each. `has_default_fill`: elements that were never written hold the NetCDF library's fill value. A
/// variable goes to Inventory::unread if the conventions leave its times or levels open, or if they are
/// stated in a way that is not read. If this leaves no record at all, the error of the first such variable is
/// returned. Code::corrupt if the bytes of the file contradict themselves.
Result<CfInventory> take_inventory(const cf::FoundContents& contents, const cf::ReadNumbers& read,
                                   bool has_default_fill, const StoredBytes& stored = {});
/// Returns GRIB's keys of a grid of latitudes and longitudes, plain or rotated, and no keys for other grids.
/// `y` is the coordinate of the slower dimension, `x` that of the faster one.
Result<codec::Keys> keys_of_plane(const cf::FoundContents& contents, const cf::FoundVariable& field,
                                  std::size_t y, std::size_t x, const cf::ReadNumbers& read,
                                  bool has_default_fill);

}  // namespace tailrace::variables
