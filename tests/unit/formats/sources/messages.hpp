// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/codec/definition.hpp"
#include "formats/opening/open.hpp"
#include "formats/sources/source.hpp"
#include "ground/storage/target.hpp"

// GRIB messages that ecCodes writes, and files of them in memory.
namespace tailrace::sources::test {

/// Keys of a 6 x 10 grid.
extern const codec::Keys small_grid;
inline constexpr Index small_points = 60;

/// Returns the keys of small_grid, and then `more`.
codec::Keys with(const codec::Keys& more);

/// Returns a message of one field. `keys` are set in their order, `values` last.
ByteVector message(int edition, const codec::Keys& keys, const std::vector<double>& values);
/// Returns what ecCodes decodes, with `missing` for points without a value.
std::vector<double> decoded_by_eccodes(const ByteVector& message, double missing = 9999);

/// Returns smooth values with some noise, always the same.
std::vector<double> wave(Index count, double size = 1, double offset = 0);

/// Returns a new target in memory with one file, which consists of the parts.
std::shared_ptr<storage::Target> file_of(const std::string& path, const std::vector<ByteVector>& parts);

/// Reads a part of a record as `Value`.
template <typename Value>
struct Part {
  Result<Index> missing;
  std::vector<Value> values;
};
template <typename Value>
Part<Value> read_part(const Source& source, const Record& record, const layout::Box& cut);
template <typename Value>
Part<Value> read_all(const Source& source, const Record& record);

}  // namespace tailrace::sources::test
