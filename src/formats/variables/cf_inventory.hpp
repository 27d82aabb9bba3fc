// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include "formats/cf/found.hpp"
#include "formats/cf/unpacking.hpp"
#include "formats/variables/names.hpp"

namespace tailrace::variables {

/// A variable whose records are the fields of a file, and what its dimensions are. Positions are among the
/// dimensions of the variable; -1: there is none.
struct CfField {
  std::size_t variable = 0;
  int time = -1, level = -1, member = -1;
  std::vector<int> plane;  // the dimensions of a record, slowest first
  int grid = 0;            // in Inventory::grids
  cf::Unpacking unpacking;

  /// Returns the position of a record along each dimension of its variable.
  [[nodiscard]] std::vector<Index> begin(const Place& place, std::size_t dimensions) const;
};

/// The inventory of a file with CF metadata. A Place has the number of the field here, and the record's
/// positions along the dimensions of time, level and member.
struct CfInventory {
  Inventory inventory;
  std::vector<CfField> fields;
};

/// Returns Code::corrupt unless the place is one of a record with this grid. It may come from another
/// process, or from an inventory of a file that has changed since.
Status check_cf_place(const cf::FoundContents& contents, const std::vector<CfField>& fields,
                      const Place& place, const Grid& grid);

/// The most numbers of a coordinate.
inline constexpr Index most_coordinates = Index{1} << 22;
/// The most records of a file.
using sources::most_records;

/// Returns how many bytes of a variable's elements the file holds, or `enough` if it has that many or more.
using StoredBytes = std::function<Result<Bytes>(std::size_t variable, Bytes enough)>;

/// Local. Finds the records of a file, and blocks only in `read` and `stored`. It calls the former for
/// coordinates, and the latter for a variable of more records than a few bytes of metadata may ask memory
/// for. `has_default_fill`: elements that were never written hold the fill value of the NetCDF library. A
/// variable of which the conventions leave open when or where it is, or tell it in a way that is not read, is
/// in Inventory::unread; a file that has nothing else is the error of its first one. Code::corrupt if the
/// bytes of the file contradict themselves.
Result<CfInventory> take_inventory(const cf::FoundContents& contents, const cf::ReadNumbers& read,
                                   bool has_default_fill, const StoredBytes& stored = {});
/// Returns the keys of a grid whose slower dimension has the coordinate `y`, and the faster one `x`: those of
/// GRIB for a grid of latitudes and longitudes, plain or rotated, and none for others.
Result<codec::Keys> keys_of_plane(const cf::FoundContents& contents, const cf::FoundVariable& field,
                                  std::size_t y, std::size_t x, const cf::ReadNumbers& read,
                                  bool has_default_fill);

}  // namespace tailrace::variables
