// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/variables/cf_source.hpp"

#include "formats/variables/strided.hpp"
#include "ground/base/text.hpp"

namespace tailrace::variables {

Result<Index> CfSource::read(const RecordPlace& place, const Grid& grid, const layout::Box& cut,
                             ElementType type, std::byte* values, Scratch& scratch) const {
  return guarded([&]() -> Result<Index> {
    TR_TRY(check_cf_place(contents(), fields_, place, grid).in(path_));
    TR_TRY(check_cut(grid.shape, cut, type).in(path_));
    const CfField& field = fields_[static_cast<std::size_t>(place[0])];
    const cf::FoundVariable& variable = contents().variables[field.variable];
    const std::vector<Index> begin = field.begin(place, variable.dimensions.size());
    const Result<Index> missing = read_record(field, begin, cut, type, values, scratch);
    TR_TRY(missing.status().in(cat(path_, ": ", noun_, " '", variable.name, "'")));
    return missing;
  });
}

/// Returns 0 for a wrong place: read() refuses it before it uses memory.
Bytes CfSource::scratch_bound(const RecordPlace& place, const Grid& grid) const {
  if (!check_cf_place(contents(), fields_, place, grid).is_ok()) return 0;
  const CfField& field = fields_[static_cast<std::size_t>(place[0])];
  return record_bound(field, field.begin(place, contents().variables[field.variable].dimensions.size()),
                      grid.shape);
}

}  // namespace tailrace::variables
