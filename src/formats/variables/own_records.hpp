// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>

#include "formats/cf/unpacking.hpp"
#include "formats/variables/names.hpp"

namespace tailrace::variables {

/// Records of our own files that are their values, as the index beside the file tells them: raw and classic
/// NetCDF. A Place has the number of the field in the index, and offset and
/// length of the record.
struct OwnRecords {
  struct Field {
    std::string name;
    ElementType type = ElementType::f32;
    Grid grid;
    Bytes bytes = 0;            // of a record
    cf::Unpacking unpacking;    // its type is Number::none for complex numbers
    bool is_described = false;  // by more than the index
  };
  std::vector<Field> fields;
  std::endian order = std::endian::little;
};

/// Code::corrupt if a record has another size than its field.
Result<OwnRecords> own_records_of(const streams::IndexContents& index, std::endian order);
/// Returns the records of all committed steps. Code::corrupt if there are too many.
Result<Inventory> inventory_of_own(const streams::IndexContents& index, const OwnRecords& records,
                                   std::string format);
std::shared_ptr<const Source> source_of_own(const Opening& opening, OwnRecords records, Inventory inventory);

// Raw files of our own streams, as FrontEnd says. Without the index nothing tells what they hold.
bool fits_raw(const Opening& opening);
Result<Inventory> scan_raw(const Opening& opening);
Result<std::shared_ptr<const Source>> make_raw(const Opening& opening, Inventory inventory);

}  // namespace tailrace::variables
