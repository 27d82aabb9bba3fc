// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "grib_input.hpp"

#include <cstdio>
#include <cstdlib>

#include "layout/shape.hpp"
#include "sources/inventory_file.hpp"
#include "sources/source.hpp"

namespace tailrace::fuzz {

namespace {

using namespace sources;

/// A constant field of 100 bytes may have 4e9 points. Programs compare grids before they read.
constexpr Index most_points = 65536;

void must(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

bool read_record(const Source& source, const Record& record) {
  const Grid& grid = source.inventory().grids.at(static_cast<std::size_t>(record.grid));
  const Index points = layout::product(grid.shape);
  if (points > most_points) return false;
  Scratch scratch;
  std::vector<double> all(static_cast<std::size_t>(points));
  layout::Box box{std::vector<Index>(grid.shape.size(), 0), grid.shape};
  const Result<Index> missing = source.read(record.place, grid, box, ElementType::f64,
                                            reinterpret_cast<std::byte*>(all.data()), scratch);
  if (!missing.is_ok()) return false;
  must(*missing >= 0 && *missing <= points, "no more values are missing than there are points");
  const auto used = static_cast<Bytes>(scratch.bytes.size() + scratch.decoded.size());
  must(used <= source.scratch_bound(grid), "a read takes no more memory than it says");
  if (points < 2) return true;
  box.lower.back() = box.upper.back() / 2;
  std::vector<float> part(static_cast<std::size_t>(points));
  const Result<Index> fewer = source.read(record.place, grid, box, ElementType::f32,
                                          reinterpret_cast<std::byte*>(part.data()), scratch);
  must(fewer.is_ok() && *fewer <= *missing, "a part is read where the whole is");
  return true;
}

}  // namespace

bool read_grib_input(std::span<const std::byte> bytes) {
  if (const Result<KeptInventory> kept = decode_inventory(bytes); kept.is_ok())
    must(decode_inventory(encode_inventory(*kept)).is_ok(),
         "an inventory that was read can be written and read");
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  const auto file = target->open("a.grib", storage::OpenMode::create);
  must(file.is_ok() && (*file)->write(bytes, 0).is_ok(), "memory takes bytes");
  const auto source = open(target, "a.grib", "");
  if (!source.is_ok()) return false;
  bool all_read = !(*source)->inventory().records.empty();
  for (const Record& record : (*source)->inventory().records)
    all_read = read_record(**source, record) && all_read;
  return all_read;
}

}  // namespace tailrace::fuzz
