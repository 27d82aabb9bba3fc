// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "formats/opening/open.hpp"
#include "formats/variables/names.hpp"
#include "ground/storage/target.hpp"

// Functions by which tests open files and read their records.
namespace tailrace::variables::test {

inline void write_bytes(storage::Target& target, const std::string& path, const ByteVector& bytes) {
  const auto file = *target.open(path, storage::OpenMode::create);
  ASSERT_TRUE(file->write(bytes, 0).is_ok());
  ASSERT_TRUE(file->close().is_ok());
}

inline std::shared_ptr<storage::Target> target_with(const std::string& path, const ByteVector& bytes) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  write_bytes(*target, path, bytes);
  return target;
}

/// Opens a file of any format. After an error the test fails, and the result is nullptr.
inline std::shared_ptr<const Source> opened(const std::shared_ptr<storage::Target>& target,
                                            const std::string& path) {
  Result<std::shared_ptr<const Source>> source = sources::open(target, path, "");
  EXPECT_TRUE(source.is_ok()) << source.status().text();
  return source.is_ok() ? *source : nullptr;
}
inline std::shared_ptr<const Source> opened(const ByteVector& bytes) {
  return opened(target_with("a.nc", bytes), "a.nc");
}

/// The number that stands for missing values, so that lists of values can be compared.
inline constexpr double absent = -1e99;

/// The part of a record that was read, or the error. Missing values are `absent`.
struct PartRead {
  std::vector<double> values;
  Index missing = 0;
  Status status;
};

inline Bytes bound_of(const Source& source, const Record& record) {
  return source.scratch_bound(record.place,
                              source.inventory().grids.at(static_cast<std::size_t>(record.grid)));
}

template <typename Value>
PartRead part_of(const Source& source, const Record& record, const layout::Box& cut) {
  Index count = 1;
  for (std::size_t d = 0; d < cut.lower.size(); ++d) count *= cut.upper[d] - cut.lower[d];
  std::vector<Value> values(static_cast<std::size_t>(count), Value{-77});
  Scratch scratch;
  const Result<Index> missing =
      source.read(record.place, source.inventory().grids.at(static_cast<std::size_t>(record.grid)), cut,
                  sizeof(Value) == 4 ? ElementType::f32 : ElementType::f64,
                  reinterpret_cast<std::byte*>(values.data()), scratch);
  EXPECT_LE(std::ssize(scratch.bytes) + std::ssize(scratch.decoded), bound_of(source, record));
  PartRead part;
  part.status = missing.status();
  if (missing.is_ok()) part.missing = *missing;
  for (const Value each : values)
    part.values.push_back(std::isnan(each) ? absent : static_cast<double>(each));
  return part;
}

template <typename Value = double>
PartRead all_of(const Source& source, const Record& record) {
  const Grid& grid = source.inventory().grids.at(static_cast<std::size_t>(record.grid));
  return part_of<Value>(source, record, {std::vector<Index>(grid.shape.size(), 0), grid.shape});
}

/// Returns the records of one field, in their order.
inline std::vector<Record> records_of(const Source& source, const std::string& field) {
  std::vector<Record> records;
  for (const Record& each : source.inventory().records) {
    if (each.field == field) records.push_back(each);
  }
  return records;
}

inline std::string time_text(const Source& source, std::int64_t seconds) {
  return seconds == any_time ? "any" : format_time(from_seconds(seconds, source.inventory().calendar));
}

inline std::string key_of(const Source& source, const Record& record, const std::string& key) {
  const std::string* const found =
      codec::find_key(source.inventory().grids.at(static_cast<std::size_t>(record.grid)).keys, key);
  return found == nullptr ? "(none)" : *found;
}

}  // namespace tailrace::variables::test
