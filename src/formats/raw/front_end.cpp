// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/raw/front_end.hpp"

#include "formats/variables/own_records.hpp"

namespace tailrace::raw {

using namespace variables;

namespace {

bool fits(const Opening& opening) {
  return opening.index != nullptr && opening.index->header.format == "raw";
}

Result<Inventory> scan(const Opening& opening) {
  const Result<OwnRecords> records = own_records_of(*opening.index, std::endian::little);
  TR_TRY(records.status().in(opening.path));
  const Result<Inventory> taken = inventory_of_own(*opening.index, *records, "raw");
  TR_TRY(taken.status().in(opening.path));
  return taken;
}

Result<std::shared_ptr<const Source>> make_source(const Opening& opening, Inventory inventory) {
  Result<OwnRecords> records = own_records_of(*opening.index, std::endian::little);
  TR_TRY(records.status().in(opening.path));
  return source_of_own(opening, std::move(*records), std::move(inventory));
}

}  // namespace

constinit const sources::FrontEnd front_end{
    .name = "raw", .sign = sources::Sign::index, .fits = fits, .scan = scan, .make = make_source};

}  // namespace tailrace::raw
