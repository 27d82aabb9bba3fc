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

TEST(netcdf4, the_ending_is_made_of_the_head_alone_and_always_the_same) {
  FieldDefinition turned = field("u");
  turned.georeference.keys = {{"gridType", "rotated_ll"},
                              {"latitudeOfFirstGridPointInDegrees", "-1"},
                              {"longitudeOfFirstGridPointInDegrees", "0"},
                              {"latitudeOfLastGridPointInDegrees", "1"},
                              {"longitudeOfLastGridPointInDegrees", "2"},
                              {"latitudeOfSouthernPoleInDegrees", "-30"},
                              {"longitudeOfSouthernPoleInDegrees", "10"}};
  const std::vector fields{turned, field("t", ElementType::f32, {"heightAboveGround", {2}, {}, {}})};
  const auto codec = codec_of(fields);
  File file(*codec, fields);
  for (int step = 0; step < 5; ++step) file.add_step();
  const auto other = reopen(codec->head());
  ASSERT_TRUE(other.is_ok()) << other.status().text();
  const codec::Ending one = file.ending(*codec), again = file.ending(**other);
  EXPECT_EQ(one.tail, again.tail);
  EXPECT_EQ(one.head.bytes, again.head.bytes);
  const Reader reader(file.finished());
  EXPECT_EQ(reader.text("u", "coordinates"), "lat lon");
  EXPECT_EQ(reader.text("u", "grid_mapping"), "rotated_pole");
  EXPECT_NEAR(reader.values("lat")[0], 59, 1e-9);
  EXPECT_EQ(reader.dimensions("lat"), (Names{"rlat", "rlon"}));
  EXPECT_EQ(reader.dimensions("u"), (Names{"time", "rlat", "rlon"}));
  EXPECT_EQ(reader.values("height"), Values{2});
}

TEST(netcdf4, a_head_that_was_damaged_is_refused) {
  ByteVector head = codec_of({field("a")})->head();
  head[200] ^= std::byte{1};
  EXPECT_EQ(reopen(head).status().code(), Code::corrupt);
  for (std::size_t size = 0; size < 300; size += 20)
    EXPECT_EQ(reopen(std::span(head).first(size)).status().code(), Code::corrupt) << size;
}

TEST(netcdf4, intervals_since_the_last_output_keep_their_begin_wherever_the_output_before_lies) {
  using Since = Statistic::Since;
  const std::vector fields{field("tp", ElementType::f32, {}, {Process::accum, Since::start}),
                           field("max", ElementType::f32, {}, {Process::maximum, Since::last_output}),
                           field("mean", ElementType::f32, {}, {Process::average, Since::duration, 7200})};
  const auto codec = codec_of(fields);
  File file(*codec, fields);
  for (int step = 0; step < 4; ++step) file.add_step();
  const Reader reader(file.finished());
  EXPECT_EQ(reader.text("tp", "cell_methods"), "time: sum");
  EXPECT_EQ(reader.values("time_bnds"), (Values{0, 0, 0, 3600, 0, 7200, 0, 10800}));
  EXPECT_EQ(reader.text("max", "coordinates"), "time_2");
  EXPECT_EQ(reader.values("time_2_bnds"), (Values{-3600, 0, 0, 3600, 3600, 7200, 7200, 10800}));
  EXPECT_EQ(reader.values("time_3_bnds"), (Values{0, 0, 0, 3600, 0, 7200, 3600, 10800}));
}

TEST(netcdf4, levels_may_be_cut_into_chunks_that_do_not_fit_their_edges) {
  for (const char* const level : {"0", "3"}) {
    FieldDefinition cut = field("a", ElementType::i16, {"depthBelowSea", {5, 10}, {}, {}},
                                {Process::average, Statistic::Since::last_output});
    cut.shape = {5, 7};
    cut.keys = {{"chunks", "2x3"}};
    const auto codec = codec_of({cut}, {{"deflate", level}});
    File file(*codec, {cut});
    for (int step = 0; step < 2; ++step) file.add_step();
    const Reader reader(file.finished());
    Values expected;
    for (std::int64_t step = 0; step < 2; ++step) {
      for (Index i = 0; i < 70; ++i) expected.push_back(value_of<double>(step, 0, i / 35, i % 35));
    }
    EXPECT_EQ(reader.values("a"), expected);
  }
}

TEST(netcdf4, compression_and_rounding_make_files_smaller) {
  const auto bytes = [](const char* level, std::optional<double> accuracy) {
    FieldDefinition smooth = field("a");
    smooth.shape = {100, 100};
    smooth.accuracy = accuracy;
    smooth.keys = {{"deflate", level}};
    const auto codec = codec_of({smooth});
    std::vector<float> values(10000);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 280 + 10 * std::sin(static_cast<float>(i) / 50);
    ByteVector out;
    const Status status =
        codec->encoder()->encode({0, 0, 0, 0}, reinterpret_cast<std::byte*>(values.data()), 10000, out);
    EXPECT_TRUE(status.is_ok()) << status.text();
    return out.size();
  };
  EXPECT_EQ(bytes("0", {}), 40000U);
  EXPECT_LT(bytes("1", {}), 35000U);
  EXPECT_LT(bytes("1", 0.05), 12000U);
}

TEST(netcdf4, what_the_format_cannot_hold_is_refused_by_name) {
  const auto refused = [](const FieldDefinition& field, std::string_view text) {
    const Status status = codec_of({})->define(field);
    EXPECT_FALSE(status.is_ok());
    EXPECT_NE(status.text().find(text), std::string::npos) << status.text();
  };
  refused(field("a", ElementType::c64), "two fields");
  FieldDefinition large = field("a");
  large.shape = {50000, 50000};
  refused(large, "less than 4 GiB");
  large.keys = {{"chunks", "1000x1000"}};
  EXPECT_TRUE(codec_of({})->define(large).is_ok());
  large.keys = {{"chunks", "1000"}};
  refused(large, "1 number");
}

TEST(netcdf4, a_file_goes_on_with_the_same_chunks_and_filters_alone) {
  const auto head = [](const char* level, const char* chunks) {
    FieldDefinition cut = field("a");
    cut.keys = {{"deflate", level}, {"chunks", chunks}};
    return codec_of({cut})->head();
  };
  EXPECT_TRUE(check_goes_on(head("1", "2x3"), head("9", "2x3")).is_ok());
  EXPECT_EQ(check_goes_on(head("1", "2x3"), head("0", "2x3")).code(), Code::state);
  EXPECT_EQ(check_goes_on(head("1", "2x3"), head("1", "1x3")).code(), Code::state);
}

TEST(netcdf4, attributes_that_the_file_has_by_itself_are_refused_when_they_are_defined) {
  for (const char* name : {"_NCProperties", "DIMENSION_LIST", "CLASS", "quantization_step"}) {
    codec::StreamDefinition stream;
    stream.format = "netcdf4";
    stream.base = {2026, 3, 1, 6, 0, 0};
    FieldDefinition field;
    field.name = "t";
    field.shape = {2, 3};
    field.attributes = {{name, "x"}};
    const Status defined = (*make(stream))->define(field);
    EXPECT_EQ(defined.code(), Code::argument) << name;
    EXPECT_NE(defined.text().find(name), std::string::npos) << defined.text();
    stream.attributes = {{name, "x"}};
    EXPECT_EQ(make(stream).status().code(), Code::argument) << name;
  }
}

}  // namespace
}  // namespace tailrace::netcdf4
