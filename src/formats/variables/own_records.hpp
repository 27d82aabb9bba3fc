// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>

#include "formats/cf/unpacking.hpp"
#include "formats/variables/names.hpp"

namespace tailrace::variables {

/// The records of a file of our own that the index beside it lists. In raw and classic NetCDF files a record
/// is its plain values. A RecordPlace holds the index of the field, offset and length of the record, and its
/// step.
struct OwnRecords {
  struct Field {
    std::string name;
    ElementType type = ElementType::f32;
    Grid grid;
    Bytes bytes = 0;  // of one record
    /// Its type is Number::none for complex numbers.
    cf::Unpacking unpacking;
    /// True once the header of the file has added to what the index says.
    bool is_described = false;
    /// The place of each level's record, if the field has no time; otherwise empty.
    std::vector<RecordPlace> always{};
  };
  std::vector<Field> fields;
  std::endian order = std::endian::little;
};

/// Returns the fields of the index, without records. Code::corrupt if a record has another size than its
/// field.
Result<OwnRecords> own_records_of(const streams::IndexContents& index, std::endian order);
/// Returns the records of all committed steps, and behind them those of fields without time, which fit each
/// time. A file without steps has none of them either: as long as no step is committed, there is nothing to
/// read. Code::corrupt if there are too many.
Result<Inventory> inventory_of_own(const streams::IndexContents& index, const OwnRecords& records,
                                   std::string format);
std::shared_ptr<const Source> source_of_own(const Opening& opening, OwnRecords records, Inventory inventory);

}  // namespace tailrace::variables
