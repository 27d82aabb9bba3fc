// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>
#include <netcdf.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "formats/codec/codec.hpp"
#include "ground/base/text.hpp"

// Fields, values and a reader for the tests of NetCDF's formats.
namespace tailrace::cf::netcdf_file {

using codec::FieldDefinition;
using codec::Levels;
using codec::Statistic;

inline FieldDefinition field(const std::string& name, ElementType type = ElementType::f32,
                             const Levels& levels = {}, const Statistic& statistic = {}) {
  FieldDefinition field;
  field.name = name;
  field.type = type;
  field.shape = {2, 3};
  field.levels = levels;
  field.statistic = statistic;
  return field;
}

/// Returns the value that encode_step() puts for one element.
template <typename T>
T value_of(std::int64_t step, int field, Index level, Index element) {
  return static_cast<T>(step * 40 + field * 10 + level * 6 + element);
}

template <typename T>
ByteVector record_of(std::int64_t step, int field, Index level, Index count) {
  ByteVector bytes(static_cast<std::size_t>(count) * sizeof(T));
  for (Index i = 0; i < count; ++i) {
    const T value = value_of<T>(step, field, level, i);
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof value);
  }
  return bytes;
}

inline ByteVector record_of(ElementType type, std::int64_t step, int field, Index level, Index count) {
  switch (type) {
    case ElementType::i16:
      return record_of<std::int16_t>(step, field, level, count);
    case ElementType::i32:
      return record_of<std::int32_t>(step, field, level, count);
    case ElementType::i64:
      return record_of<std::int64_t>(step, field, level, count);
    case ElementType::u16:
      return record_of<std::uint16_t>(step, field, level, count);
    case ElementType::u32:
      return record_of<std::uint32_t>(step, field, level, count);
    case ElementType::u64:
      return record_of<std::uint64_t>(step, field, level, count);
    case ElementType::f32:
      return record_of<float>(step, field, level, count);
    case ElementType::f64:
      return record_of<double>(step, field, level, count);
    default:
      return record_of<std::int8_t>(step, field, level, count);
  }
}

/// Reads a file with Unidata's NetCDF library.
class Reader {
 public:
  explicit Reader(const ByteVector& bytes) {
    const std::string path = cat(testing::TempDir(), "netcdf_test.", ::getpid(), ".nc");
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    EXPECT_EQ(nc_open(path.c_str(), NC_NOWRITE, &id_), NC_NOERR);
    ::unlink(path.c_str());
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { nc_close(id_); }

  [[nodiscard]] int format() const {
    int kind = 0;
    nc_inq_format(id_, &kind);
    return kind;
  }
  [[nodiscard]] int variable(const std::string& name) const {
    int variable = -1;
    EXPECT_EQ(nc_inq_varid(id_, name.c_str(), &variable), NC_NOERR) << name;
    return variable;
  }
  [[nodiscard]] std::string text(const std::string& variable_name, const std::string& attribute) const {
    const int number = variable_name.empty() ? NC_GLOBAL : variable(variable_name);
    std::size_t length = 0;
    if (nc_inq_attlen(id_, number, attribute.c_str(), &length) != NC_NOERR) return "(none)";
    std::string text(length, ' ');
    nc_get_att_text(id_, number, attribute.c_str(), text.data());
    return text;
  }
  [[nodiscard]] std::vector<std::string> dimensions(const std::string& name) const {
    int count = 0, ids[NC_MAX_VAR_DIMS];
    nc_inq_varndims(id_, variable(name), &count);
    nc_inq_vardimid(id_, variable(name), ids);
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      char each[NC_MAX_NAME + 1];
      nc_inq_dimname(id_, ids[i], each);
      names.emplace_back(each);
    }
    return names;
  }
  [[nodiscard]] std::vector<double> values(const std::string& name) const {
    std::size_t size = 1;
    for (const std::string& each : dimensions(name)) {
      int dimension = 0;
      std::size_t length = 0;
      nc_inq_dimid(id_, each.c_str(), &dimension);
      nc_inq_dimlen(id_, dimension, &length);
      size *= length;
    }
    std::vector<double> values(size);
    EXPECT_EQ(nc_get_var_double(id_, variable(name), values.data()), NC_NOERR) << name;
    return values;
  }
  [[nodiscard]] std::vector<double> numbers(const std::string& name, const std::string& attribute) const {
    std::size_t length = 0;
    EXPECT_EQ(nc_inq_attlen(id_, variable(name), attribute.c_str(), &length), NC_NOERR);
    std::vector<double> numbers(length);
    EXPECT_EQ(nc_get_att_double(id_, variable(name), attribute.c_str(), numbers.data()), NC_NOERR);
    return numbers;
  }
  [[nodiscard]] double number(const std::string& name, const std::string& attribute) const {
    return numbers(name, attribute).at(0);
  }

 private:
  int id_ = -1;
};

}  // namespace tailrace::cf::netcdf_file
