// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "messages.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/grib2/handle.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

// ecCodes leaks memory when it packs values in groups, and when headers are damaged. Without this
// LeakSanitizer would fail the tests for it.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libeccodes"; }

namespace tailrace::sources::test {

const codec::Keys small_grid{{"Ni", "10"},
                             {"Nj", "6"},
                             {"latitudeOfFirstGridPointInDegrees", "60"},
                             {"longitudeOfFirstGridPointInDegrees", "0"},
                             {"latitudeOfLastGridPointInDegrees", "55"},
                             {"longitudeOfLastGridPointInDegrees", "9"},
                             {"iDirectionIncrementInDegrees", "1"},
                             {"jDirectionIncrementInDegrees", "1"}};

codec::Keys with(const codec::Keys& more) {
  codec::Keys keys = small_grid;
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

ByteVector message(int edition, const codec::Keys& keys, const std::vector<double>& values) {
  Result<grib2::Handle> handle = grib2::Handle::from_sample(edition == 1 ? "GRIB1" : "GRIB2");
  EXPECT_TRUE(handle.is_ok()) << handle.status().text();
  for (const auto& [key, value] : keys) {
    const int error = handle->set_text(key, value);
    EXPECT_EQ(error, 0) << key << "=" << value << ": " << grib2::reason(error);
  }
  EXPECT_EQ(handle->set("values", std::span(values)), 0);
  const auto bytes = handle->message();
  return {bytes.begin(), bytes.end()};
}

std::vector<double> decoded_by_eccodes(const ByteVector& message, double missing) {
  Result<grib2::Handle> handle = grib2::Handle::from_message(message);
  EXPECT_TRUE(handle.is_ok()) << handle.status().text();
  EXPECT_EQ(handle->set("missingValue", missing), 0);
  return handle->numbers("values");
}

std::vector<double> wave(Index count, double size, double offset) {
  std::vector<double> values;
  for (Index i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i);
    values.push_back(offset + size * (std::sin(x / 7) + 0.1 * std::sin(x * x)));
  }
  return values;
}

std::shared_ptr<storage::Target> file_of(const std::string& path, const std::vector<ByteVector>& parts) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  const auto file = target->open(path, storage::OpenMode::create);
  EXPECT_TRUE(file.is_ok());
  Bytes at = 0;
  for (const ByteVector& part : parts) {
    EXPECT_TRUE((*file)->write(part, at).is_ok());
    at += static_cast<Bytes>(part.size());
  }
  return target;
}

template <typename Value>
Part<Value> read_part(const Source& source, const Record& record, const layout::Box& cut) {
  const Grid& grid = source.inventory().grids[static_cast<std::size_t>(record.grid)];
  Index count = 1;
  for (std::size_t d = 0; d < cut.lower.size(); ++d) count *= std::max<Index>(cut.upper[d] - cut.lower[d], 0);
  std::vector<Value> values(static_cast<std::size_t>(count), Value{-1234});
  Scratch scratch;
  const ElementType type = sizeof(Value) == 4 ? ElementType::f32 : ElementType::f64;
  const Result<Index> missing =
      source.read(record.place, grid, cut, type, reinterpret_cast<std::byte*>(values.data()), scratch);
  const auto used = static_cast<Bytes>(scratch.bytes.size() + scratch.decoded.size());
  EXPECT_LE(used, source.scratch_bound(record.place, grid));
  return {missing, values};
}

template <typename Value>
Part<Value> read_all(const Source& source, const Record& record) {
  const Grid& grid = source.inventory().grids[static_cast<std::size_t>(record.grid)];
  return read_part<Value>(source, record, {std::vector<Index>(grid.shape.size(), 0), grid.shape});
}

template Part<float> read_part(const Source&, const Record&, const layout::Box&);
template Part<double> read_part(const Source&, const Record&, const layout::Box&);
template Part<float> read_all(const Source&, const Record&);
template Part<double> read_all(const Source&, const Record&);

}  // namespace tailrace::sources::test
