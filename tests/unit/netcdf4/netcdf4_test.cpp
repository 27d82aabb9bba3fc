// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../cf/netcdf_file.hpp"
#include "base/text.hpp"
#include "netcdf4/codec.hpp"

namespace tailrace::netcdf4 {
namespace {

using namespace cf::netcdf_file;
using codec::Codec;
using codec::FinishedStep;
using codec::Process;
using codec::RecordKey;

using Names = std::vector<std::string>;
using Values = std::vector<double>;

std::unique_ptr<Codec> codec_of(const std::vector<FieldDefinition>& fields, const codec::Keys& keys = {}) {
  codec::StreamDefinition stream;
  stream.format = "netcdf4";
  stream.base = {2026, 3, 1, 6, 0, 0};
  stream.calendar = Calendar::no_leap;
  stream.keys = keys;
  stream.attributes = {{"title", "A test"}};
  std::unique_ptr<Codec> codec = *make(stream);
  for (const FieldDefinition& each : fields) {
    const Status defined = codec->define(each);
    EXPECT_TRUE(defined.is_ok()) << defined.text();
  }
  return codec;
}

/// A file as the library puts it together: head, records one behind the other, ending.
class File {
 public:
  File(const Codec& codec, const std::vector<FieldDefinition>& fields)
      : codec_(codec), fields_(fields), bytes_(codec.head()) {}

  /// Puts every record but those that `left_out` names by field and level.
  void add_step(const std::vector<std::pair<int, Index>>& left_out = {}) {
    const auto number = static_cast<std::int64_t>(steps_.size());
    const std::int64_t lead = number * 3600;
    FinishedStep& step = steps_.emplace_back(FinishedStep{lead, {}});
    const auto encoder = codec_.encoder();
    for (int f = 0; f < static_cast<int>(fields_.size()); ++f) {
      const FieldDefinition& field = fields_[static_cast<std::size_t>(f)];
      for (Index level = 0; level < std::ssize(field.levels.values); ++level) {
        if (std::ranges::count(left_out, std::pair(f, level)) > 0) continue;
        ByteVector values = record_of(field.type, number, f, level, field.elements());
        const RecordKey key{f, level, lead, field.statistic.interval_start(lead, lead - 3600)};
        const auto begin = std::ssize(bytes_);
        const Status encoded = encoder->encode(key, values.data(), field.elements(), bytes_);
        EXPECT_TRUE(encoded.is_ok()) << encoded.text();
        EXPECT_LE(std::ssize(bytes_) - begin, codec_.encoded_bound(f));
        step.records.push_back({f, level, begin, std::ssize(bytes_) - begin});
      }
    }
  }
  [[nodiscard]] codec::Ending ending(const Codec& by) const {
    const codec::ReadBytes read = [&](std::span<std::byte> to, Bytes offset) -> Result<Bytes> {
      std::copy_n(bytes_.begin() + offset, to.size(), to.begin());
      return std::ssize(to);
    };
    Result<std::optional<codec::Ending>> made = by.ending(read, steps_, std::ssize(bytes_));
    EXPECT_TRUE(made.is_ok()) << made.status().text();
    return made.is_ok() && *made ? **made : codec::Ending{};
  }
  [[nodiscard]] ByteVector finished() const {
    const codec::Ending end = ending(codec_);
    ByteVector bytes = bytes_;
    std::ranges::copy(end.head.bytes, bytes.begin() + end.head.offset);
    bytes.insert(bytes.end(), end.tail.begin(), end.tail.end());
    return bytes;
  }
  [[nodiscard]] const ByteVector& unfinished() const { return bytes_; }

 private:
  const Codec& codec_;
  std::vector<FieldDefinition> fields_;
  ByteVector bytes_;
  std::vector<FinishedStep> steps_;
};

TEST(netcdf4, the_netcdf_library_reads_every_type_with_and_without_compression) {
  for (const char* const level : {"0", "1", "9"}) {
    std::vector<FieldDefinition> fields;
    for (const ElementType type : {ElementType::i8, ElementType::i16, ElementType::i32, ElementType::i64,
                                   ElementType::byte, ElementType::f32, ElementType::f64})
      fields.push_back(field(std::string(name_of(type)), type, {"isobaricInhPa", {1000, 500}, {}, {}}));
    const auto codec = codec_of(fields, {{"deflate", level}});
    File file(*codec, fields);
    for (int step = 0; step < 3; ++step) file.add_step();
    const Reader reader(file.finished());
    EXPECT_EQ(reader.format(), NC_FORMAT_NETCDF4);
    for (int f = 0; f < static_cast<int>(fields.size()); ++f) {
      Values expected;
      for (std::int64_t step = 0; step < 3; ++step) {
        for (Index i = 0; i < 12; ++i) expected.push_back(value_of<double>(step, f, i / 6, i % 6));
      }
      const std::string name = fields[static_cast<std::size_t>(f)].name;
      EXPECT_EQ(reader.values(name), expected) << name;
      EXPECT_EQ(reader.dimensions(name), (Names{"time", "plev", "y", "x"}));
    }
    EXPECT_EQ(reader.values("time"), (Values{0, 3600, 7200}));
    EXPECT_EQ(reader.values("plev"), (Values{1000, 500}));
    EXPECT_EQ(reader.text("time", "units"), "seconds since 2026-03-01 06:00:00");
    EXPECT_EQ(reader.text("time", "calendar"), "noleap");
    EXPECT_EQ(reader.text("", "title"), "A test");
    EXPECT_EQ(reader.text("", "Conventions"), "CF-1.8");
  }
}

TEST(netcdf4, records_that_were_not_put_read_as_the_fill_value) {
  FieldDefinition with_missing = field("a", ElementType::f64, {"depthBelowSea", {5, 10}, {}, {}});
  with_missing.missing = -999;
  const std::vector fields{with_missing, field("b", ElementType::i64), field("c", ElementType::i8)};
  const auto codec = codec_of(fields);
  File file(*codec, fields);
  file.add_step({{0, 1}, {1, 0}, {2, 0}});
  const Reader reader(file.finished());
  EXPECT_EQ(reader.values("a"), (Values{0, 1, 2, 3, 4, 5, -999, -999, -999, -999, -999, -999}));
  EXPECT_EQ(reader.number("a", "_FillValue"), -999);
  EXPECT_EQ(reader.values("b"), Values(6, static_cast<double>(NC_FILL_INT64)));
  EXPECT_EQ(reader.values("c"), Values(6, NC_FILL_BYTE));
}

}  // namespace
}  // namespace tailrace::netcdf4
