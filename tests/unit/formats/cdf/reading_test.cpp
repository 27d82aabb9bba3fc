// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cdf/reading.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "../variables/nc_file.hpp"

namespace tailrace::cdf {
namespace {

using nc_file::Writer;

codec::ReadBytes reader_of(const ByteVector& bytes) {
  return [&bytes](std::span<std::byte> to, Bytes offset) -> Result<Bytes> {
    const Bytes there = std::clamp<Bytes>(std::ssize(bytes) - offset, 0, std::ssize(to));
    if (there > 0) std::memcpy(to.data(), bytes.data() + offset, static_cast<std::size_t>(there));
    return there;
  };
}

Result<ReadHeader> header_of(const ByteVector& bytes) {
  return read_header(reader_of(bytes), std::ssize(bytes));
}

/// A file with dimensions, attributes of all kinds, variables with records and without.
ByteVector sample(int mode) {
  Writer file(mode);
  const int time = file.dimension("time", NC_UNLIMITED), x = file.dimension("x", 3);
  file.text(NC_GLOBAL, "title", "a title");
  file.number(NC_GLOBAL, "numbers", NC_SHORT, {1, 2, 3});
  const int fixed = file.variable("fixed", NC_INT, {x}), bytes = file.variable("bytes", NC_BYTE, {time, x});
  const int values = file.variable("values", NC_DOUBLE, {time, x}),
            letters = file.variable("letters", NC_CHAR, {x});
  file.text(values, "units", "K");
  file.number(values, "scale_factor", NC_DOUBLE, {0.5});
  file.put(fixed, {7, 8, 9});
  file.put(bytes, {0, 0}, {2, 3}, {1, 2, 3, 4, 5, 6});
  file.put(values, {0, 0}, {2, 3}, {10, 20, 30, 40, 50, 60});
  (void)letters;
  return file.bytes();
}

TEST(cdf_reading, headers_of_the_netcdf_library_are_read) {
  for (const int mode : {0, NC_64BIT_OFFSET, NC_64BIT_DATA}) {
    const ByteVector bytes = sample(mode);
    EXPECT_TRUE(is_classic(bytes));
    const Result<ReadHeader> header = header_of(bytes);
    ASSERT_TRUE(header.is_ok()) << header.status().text();
    EXPECT_EQ(header->records, 2);
    EXPECT_EQ(header->record_size, 4 + 24) << "bytes are padded beside another variable";
    const cf::FoundContents& contents = header->contents;
    ASSERT_EQ(contents.dimensions.size(), 2U);
    EXPECT_EQ(contents.dimensions[0].name, "time");
    EXPECT_EQ(contents.dimensions[0].length, 2);
    EXPECT_EQ(contents.attributes[0].text, "a title");
    EXPECT_EQ(contents.attributes[1].numbers(), (std::vector<double>{1, 2, 3}));
    const int values = contents.find("values");
    ASSERT_GE(values, 0);
    const cf::FoundVariable& variable = contents.variables[static_cast<std::size_t>(values)];
    EXPECT_EQ(variable.type, cf::Number::float64);
    EXPECT_EQ(variable.dimensions, (std::vector<int>{0, 1}));
    EXPECT_EQ(variable.text("units"), "K");
    EXPECT_EQ(variable.find("scale_factor")->numbers(), std::vector<double>{0.5});
    const ReadHeader::VariablePlace& place = header->of_variables[static_cast<std::size_t>(values)];
    EXPECT_TRUE(place.has_records);
    EXPECT_EQ(bytes[static_cast<std::size_t>(place.begin + header->record_size)], std::byte{0x40})
        << "40. in record 1";
    EXPECT_EQ(contents.variables[static_cast<std::size_t>(contents.find("letters"))].type, cf::Number::none);
  }
}

TEST(cdf_reading, a_single_variable_with_records_has_no_padding) {
  Writer file(0);
  const int time = file.dimension("time", NC_UNLIMITED), x = file.dimension("x", 3);
  const int only = file.variable("only", NC_BYTE, {time, x});
  file.put(only, {0, 0}, {5, 3}, nc_file::sequence(15));
  const Result<ReadHeader> header = header_of(file.bytes());
  ASSERT_TRUE(header.is_ok()) << header.status().text();
  EXPECT_EQ(header->record_size, 3);
  EXPECT_EQ(header->records, 5);
}

TEST(cdf_reading, a_file_that_does_not_tell_its_records_has_as_many_as_fit) {
  for (const int mode : {0, NC_64BIT_DATA}) {
    ByteVector bytes = sample(mode);
    std::fill_n(bytes.begin() + 4, mode == 0 ? 4 : 8, std::byte{0xff});
    const Result<ReadHeader> header = header_of(bytes);
    ASSERT_TRUE(header.is_ok()) << header.status().text();
    EXPECT_EQ(header->records, 2);
  }
}

TEST(cdf_reading, a_file_that_is_cut_anywhere_is_refused) {
  const ByteVector bytes = sample(NC_64BIT_DATA);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Result<ReadHeader> header =
        header_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_EQ(header.status().code(), Code::corrupt) << "at " << size;
    EXPECT_NE(header.status().text().find("expected"), std::string::npos) << header.status().text();
  }
}

// Every number of a header at the ends of its range: nothing is read beyond the file, or allocated without
// bounds.
TEST(cdf_reading, hostile_numbers_are_refused_or_harmless) {
  const ByteVector bytes = sample(0);
  int refused = 0;
  for (std::size_t at = 4; at + 4 <= bytes.size(); at += 4) {
    for (const std::uint32_t value : {0U, 1U, 0x7fffffffU, 0xffffffffU, 0x80000000U, 0x10000000U}) {
      ByteVector changed = bytes;
      for (std::size_t i = 0; i < 4; ++i) changed[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
      const Result<ReadHeader> header = header_of(changed);
      if (!header.is_ok()) {
        EXPECT_EQ(header.status().code(), Code::corrupt);
        ++refused;
        continue;
      }
      for (std::size_t i = 0; i < header->of_variables.size(); ++i)
        EXPECT_LE(header->of_variables[i].begin + header->of_variables[i].size, std::ssize(bytes) + 24);
    }
  }
  EXPECT_GT(refused, 100);
}

// A sparse file may be as long as its attributes and names say, and takes no room.
TEST(cdf_reading, attributes_and_names_longer_than_any_are_refused) {
  constexpr Bytes longest = 16 << 20;
  for (const bool is_name : {true, false}) {
    for (const Bytes length : {longest, longest + 1}) {
      ByteVector begin;
      const auto put = [&](Bytes value, int width) {
        for (int i = width - 1; i >= 0; --i) begin.push_back(static_cast<std::byte>(value >> (8 * i)));
      };
      put(0x43444605, 4);                               // CDF-5
      for (const int width : {8, 4, 8}) put(0, width);  // no records and no dimensions
      put(12, 4);
      put(1, 8);
      put(is_name ? length : 0, 8);
      if (!is_name) {
        put(2, 4);  // a text
        put(length, 8);
      } else {
        begin.resize(begin.size() + static_cast<std::size_t>((length + 3) / 4 * 4));
        put(2, 4);
        put(0, 8);
      }
      const codec::ReadBytes sparse = [&](std::span<std::byte> to, Bytes offset) -> Result<Bytes> {
        for (std::size_t i = 0; i < to.size(); ++i) {
          const std::size_t at = static_cast<std::size_t>(offset) + i;
          to[i] = at < begin.size() ? begin[at] : std::byte{0};
        }
        return std::ssize(to);
      };
      const Result<ReadHeader> header = read_header(sparse, Bytes{1} << 40);
      EXPECT_EQ(header.status().code(), length == longest ? Code::ok : Code::corrupt)
          << header.status().text();
      if (length > longest)
        EXPECT_NE(header.status().text().find("at most 16777216"), std::string::npos)
            << header.status().text();
    }
  }
}

TEST(cdf_reading, errors_of_storage_are_returned) {
  const codec::ReadBytes broken = [](std::span<std::byte>, Bytes) -> Result<Bytes> {
    return Status(Code::io, "read x: I/O error", 5);
  };
  EXPECT_EQ(read_header(broken, 1000).status().code(), Code::io);
}

}  // namespace
}  // namespace tailrace::cdf
