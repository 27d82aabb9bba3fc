// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "../cf/netcdf_file.hpp"
#include "formats/netcdf4/chunks.hpp"
#include "formats/netcdf4/codec.hpp"
#include "formats/netcdf4/head.hpp"
#include "formats/netcdf4/image.hpp"
#include "formats/netcdf4/superblock.hpp"
#include "ground/base/text.hpp"

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

codec::ReadBytes reader_of(const ByteVector& bytes) {
  return [&bytes](std::span<std::byte> to, Bytes offset) -> Result<Bytes> {
    const Bytes there = std::clamp<Bytes>(std::ssize(bytes) - offset, 0, std::ssize(to));
    std::copy_n(bytes.begin() + offset, there, to.begin());
    return there;
  };
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
  /// Puts a record of the last step once more, with the values of another step.
  void put_again(int f, Index level, std::int64_t values_of) {
    const FieldDefinition& field = fields_[static_cast<std::size_t>(f)];
    ByteVector values = record_of(field.type, values_of, f, level, field.elements());
    const auto begin = std::ssize(bytes_);
    EXPECT_TRUE(codec_.encoder()
                    ->encode({f, level, steps_.back().lead, 0}, values.data(), field.elements(), bytes_)
                    .is_ok());
    steps_.back().records.push_back({f, level, begin, std::ssize(bytes_) - begin});
  }
  [[nodiscard]] Result<std::optional<codec::Ending>> try_ending(const Codec& by) const {
    return by.ending(reader_of(bytes_), steps_, std::ssize(codec_.head()), std::ssize(bytes_));
  }
  [[nodiscard]] codec::Ending ending(const Codec& by) const {
    Result<std::optional<codec::Ending>> made = try_ending(by);
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
  [[nodiscard]] Bytes data_end() const { return std::ssize(bytes_); }
  [[nodiscard]] FinishedStep::Record& last_record() { return steps_.back().records.back(); }

 private:
  const Codec& codec_;
  std::vector<FieldDefinition> fields_;
  ByteVector bytes_;
  std::vector<FinishedStep> steps_;
};

TEST(netcdf4, the_netcdf_library_reads_every_type_with_and_without_compression) {
  for (const char* const level : {"none", "deflate", "deflate:9"}) {
    std::vector<FieldDefinition> fields;
    for (const ElementType type :
         {ElementType::i8, ElementType::i16, ElementType::i32, ElementType::i64, ElementType::byte,
          ElementType::u16, ElementType::u32, ElementType::u64, ElementType::f32, ElementType::f64})
      fields.push_back(field(std::string(name_of(type)), type, {"isobaricInhPa", {1000, 500}, {}, {}}));
    const auto codec = codec_of(fields, {{"compress", level}});
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

TEST(netcdf4, integers_tell_a_fill_value_only_if_the_program_does) {
  FieldDefinition told = field("told", ElementType::i64);
  told.missing = -9;
  const std::vector fields{told, field("id", ElementType::i64), field("mask", ElementType::byte),
                           field("real", ElementType::f32)};
  const auto codec = codec_of(fields);
  File file(*codec, fields);
  file.add_step();
  const Reader reader(file.finished());
  EXPECT_EQ(reader.number("told", "_FillValue"), -9);
  for (const char* const name : {"id", "mask"})
    EXPECT_EQ(reader.text(name, "_FillValue"), "(none)") << "xarray would make floats of " << name;
  EXPECT_NE(reader.text("real", "_FillValue"), "(none)");
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

/// The older kind cannot be asked for by the newer function.
TEST(netcdf4, the_program_s_handler_of_hdf5_errors_stays_whichever_kind_it_is) {
  const std::vector fields{field("t")};
  const auto codec = codec_of(fields);
  File file(*codec, fields);
  file.add_step();
  int data = 0;
  const H5E_auto1_t older = [](void*) -> herr_t { return 0; };
  ASSERT_GE(H5Eset_auto1(older, &data), 0);
  EXPECT_FALSE(file.ending(*codec).tail.empty());
  H5E_auto1_t older_now = nullptr;
  void* data_now = nullptr;
  EXPECT_GE(H5Eget_auto1(&older_now, &data_now), 0);
  EXPECT_EQ(older_now, older);
  EXPECT_EQ(data_now, &data);
  const H5E_auto2_t newer = [](hid_t, void*) -> herr_t { return 0; };
  ASSERT_GE(H5Eset_auto2(H5E_DEFAULT, newer, &data), 0);
  EXPECT_FALSE(file.ending(*codec).tail.empty());
  H5E_auto2_t newer_now = nullptr;
  EXPECT_GE(H5Eget_auto2(H5E_DEFAULT, &newer_now, &data_now), 0);
  EXPECT_EQ(newer_now, newer);
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
  for (const char* const level : {"none", "deflate:3"}) {
    FieldDefinition cut = field("a", ElementType::i16, {"depthBelowSea", {5, 10}, {}, {}},
                                {Process::average, Statistic::Since::last_output});
    cut.shape = {5, 7};
    cut.keys = {{"chunks", "2x3"}};
    const auto codec = codec_of({cut}, {{"compress", level}});
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
    smooth.keys = {{"compress", level}};
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
  EXPECT_EQ(bytes("none", {}), 40000U);
  EXPECT_LT(bytes("deflate", {}), 35000U);
  EXPECT_LT(bytes("deflate", 0.05), 12000U);
}

TEST(netcdf4, the_share_of_information_is_told_by_the_variable_and_stays) {
  FieldDefinition smooth = field("a");
  smooth.shape = {100, 100};
  smooth.information = 0.99;
  const auto codec = codec_of({smooth});
  EXPECT_FALSE(codec->plain(0));
  const auto encoder = codec->encoder();
  std::vector<float> values(10000);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 280 + 10 * std::sin(static_cast<float>(i) / 50) + static_cast<float>(i * i % 1009) * 1e-4F;
  std::vector<float> kept = values;
  ByteVector out;
  ASSERT_TRUE(encoder->encode({0, 0, 0, 0}, reinterpret_cast<std::byte*>(kept.data()), 10000, out).is_ok());
  ASSERT_TRUE(encoder->kept_bits());
  EXPECT_FALSE(encoder->kept_bits()->is_whole);
  EXPECT_LT(encoder->kept_bits()->bits, 16);
  EXPECT_LE(std::ssize(out), codec->encoded_bound(0));
  const ByteVector own = codec->head();
  EXPECT_TRUE(check_goes_on(own, codec->head()).is_ok());
  FieldDefinition other = smooth;
  other.information = 0.9;
  EXPECT_EQ(check_goes_on(own, codec_of({other})->head()).code(), Code::state);
  other.information.reset();
  EXPECT_EQ(check_goes_on(own, codec_of({other})->head()).code(), Code::state);
  other.attributes = {{"quantization_information", "1"}};
  EXPECT_EQ(codec_of({})->define(other).code(), Code::argument);
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
    cut.keys = {{"compress", level}, {"chunks", chunks}};
    return codec_of({cut})->head();
  };
  EXPECT_TRUE(check_goes_on(head("deflate", "2x3"), head("deflate:9", "2x3")).is_ok());
  EXPECT_EQ(check_goes_on(head("deflate", "2x3"), head("none", "2x3")).code(), Code::state);
  EXPECT_EQ(check_goes_on(head("deflate", "2x3"), head("deflate", "1x3")).code(), Code::state);
}

TEST(netcdf4, a_file_does_not_go_on_with_what_its_metadata_do_not_tell) {
  FieldDefinition before = field("a");
  before.statistic = {Process::average, Statistic::Since::duration, 3600};
  before.missing = -1;
  before.accuracy = 0.05;
  const ByteVector own = codec_of({before})->head();
  const auto refused = [&](const char* text, auto change) {
    FieldDefinition now = before;
    change(now);
    const Status status = check_goes_on(own, codec_of({now})->head());
    EXPECT_EQ(status.code(), Code::state) << text;
    EXPECT_NE(status.text().find(text), std::string::npos) << status.text();
    EXPECT_NE(status.text().find("'a'"), std::string::npos) << status.text();
  };
  refused("another statistic", [](FieldDefinition& now) { now.statistic.process = Process::maximum; });
  refused("another statistic", [](FieldDefinition& now) { now.statistic.duration = 7200; });
  refused("another missing value", [](FieldDefinition& now) { now.missing = -2; });
  refused("another missing value", [](FieldDefinition& now) { now.missing.reset(); });
  refused("another accuracy", [](FieldDefinition& now) { now.accuracy = 0.06; });
  refused("another accuracy", [](FieldDefinition& now) { now.accuracy.reset(); });
  refused("another accuracy", [](FieldDefinition& now) { now.accuracy.reset(), now.information = 0.95; });
  refused("another shape", [](FieldDefinition& now) { now.shape = {3, 2}; });
  refused("another grid", [](FieldDefinition& now) {
    now.georeference.keys = {{"gridType", "regular_ll"},
                             {"Ni", "3"},
                             {"Nj", "2"},
                             {"latitudeOfFirstGridPointInDegrees", "0"},
                             {"longitudeOfFirstGridPointInDegrees", "0"},
                             {"latitudeOfLastGridPointInDegrees", "1"},
                             {"longitudeOfLastGridPointInDegrees", "2"}};
  });
  EXPECT_TRUE(check_goes_on(own, codec_of({before})->head()).is_ok());
  EXPECT_EQ(check_goes_on(own, codec_of({before, field("b")})->head()).code(), Code::state);
  FieldDefinition renamed = before;
  renamed.name = "c";
  const Status status = check_goes_on(own, codec_of({renamed})->head());
  EXPECT_NE(status.text().find("field 1 of the file is 'a', and of the stream 'c'"), std::string::npos)
      << status.text();
}

TEST(netcdf4, a_file_goes_on_with_the_coordinates_of_its_dimensions_alone) {
  const auto head = [](const std::vector<double>& values, bool has_bounds = false) {
    FieldDefinition a = field("a");
    a.shape = {3};
    a.dimensions = {"x"};
    const auto bytes = std::as_bytes(std::span(values));
    const ByteVector of_x(bytes.begin(), bytes.end());
    ByteVector bounds = of_x;
    bounds.insert(bounds.end(), of_x.begin(), of_x.end());
    if (!values.empty())
      a.axes = {{"x", ElementType::f64, of_x, has_bounds ? bounds : ByteVector(), {{"units", "km"}}}};
    return codec_of({a})->head();
  };
  const ByteVector own = head({0.5, 1.5, 2.5});
  EXPECT_TRUE(check_goes_on(own, head({0.5, 1.5, 2.5 + 1e-15})).is_ok());
  EXPECT_NE(check_goes_on(own, head({500, 1500, 2500})).text().find("'x' has other values in the file"),
            std::string::npos);
  EXPECT_EQ(check_goes_on(own, head({})).code(), Code::state);
  EXPECT_EQ(check_goes_on(head({}), own).code(), Code::state);
  EXPECT_EQ(check_goes_on(own, head({0.5, 1.5, 2.5}, true)).code(), Code::state);
}

/// Another C library may compute other last bits of a projection.
TEST(netcdf4, a_file_goes_on_with_a_grid_whose_last_bits_differ) {
  const auto head = [](const char* latitude) {
    FieldDefinition u = field("u");
    u.georeference.keys = {{"gridType", "lambert"},   {"latitudeOfFirstGridPointInDegrees", latitude},
                           {"LoVInDegrees", "10"},    {"longitudeOfFirstGridPointInDegrees", "11"},
                           {"LaDInDegrees", "50"},    {"Latin1InDegrees", "45"},
                           {"Latin2InDegrees", "55"}, {"DxInMetres", "1000"},
                           {"DyInMetres", "2000"}};
    return codec_of({u})->head();
  };
  EXPECT_NE(head("50"), head("50.0000000000001"));
  EXPECT_TRUE(check_goes_on(head("50"), head("50.0000000000001")).is_ok());
  EXPECT_NE(check_goes_on(head("50"), head("50.0001")).text().find("another grid"), std::string::npos);
}

/// A grid that is known has the dimensions lat and lon, whatever the shape of the program's array is.
TEST(netcdf4, fields_of_every_shape_are_finished_with_the_dimensions_of_their_grid) {
  using Shape = std::vector<Index>;
  for (const bool known : {true, false}) {
    for (const Shape& shape : {Shape{6}, Shape{2, 3}, Shape{1, 2, 3}, Shape{2, 1, 3}}) {
      for (const Values& levels : {Values{500}, Values{1000, 500}}) {
        FieldDefinition each = field("a", ElementType::f32, {"isobaricInhPa", levels, {}, {}});
        each.shape = shape;
        if (known)
          each.georeference.keys = {{"gridType", "regular_ll"},
                                    {"Ni", "3"},
                                    {"Nj", "2"},
                                    {"latitudeOfFirstGridPointInDegrees", "1"},
                                    {"longitudeOfFirstGridPointInDegrees", "0"},
                                    {"latitudeOfLastGridPointInDegrees", "0"},
                                    {"longitudeOfLastGridPointInDegrees", "2"}};
        const auto codec = codec_of({each});
        File file(*codec, {each});
        file.add_step();
        const Reader reader(file.finished());
        Names dimensions = known               ? Names{"lat", "lon"}
                           : shape.size() == 1 ? Names{"cell"}
                           : shape.size() == 2 ? Names{"y", "x"}
                                               : Names{"z", "y", "x"};
        if (levels.size() > 1) dimensions.insert(dimensions.begin(), "plev");
        dimensions.insert(dimensions.begin(), "time");
        EXPECT_EQ(reader.dimensions("a"), dimensions);
        Values expected;
        for (Index i = 0; i < 6 * std::ssize(levels); ++i)
          expected.push_back(value_of<double>(0, 0, i / 6, i % 6));
        EXPECT_EQ(reader.values("a"), expected) << shape.size() << " dimensions";
      }
    }
  }
}

TEST(netcdf4, a_field_that_is_refused_leaves_the_codec_as_it_was) {
  const FieldDefinition good = field("a", ElementType::f32, {"heightAboveGround", {2}, {}, {}});
  FieldDefinition bad = field("b", ElementType::f32, {"isobaricInhPa", {1000, 500}, {}, {}});
  bad.attributes = {{"valid_min", "not a number"}};
  FieldDefinition too_many = field("c");
  too_many.shape = std::vector<Index>(32, 1);  // HDF5 has 32 dimensions, time included
  FieldDefinition last = field("d", ElementType::f32, {"isobaricInhPa", {850, 500}, {}, {}}), lost = bad;
  last.attributes = {{"coordinates", "a"}};  // a field before it
  lost.attributes = {{"coordinates", "b"}};
  const auto codec = codec_of({good});
  EXPECT_FALSE(codec->define(bad).is_ok());
  EXPECT_EQ(codec->define(lost).code(), Code::argument) << "nobody knows b";
  const Status refused = codec->define(too_many);
  EXPECT_EQ(refused.code(), Code::format) << "what the HDF5 library does not take is refused at once";
  EXPECT_NE(refused.text().find("'c'"), std::string::npos) << refused.text();
  EXPECT_EQ(codec->define(good).code(), Code::argument) << "it is there already";
  EXPECT_TRUE(codec->define(last).is_ok());
  const auto other = codec_of({good, last});
  EXPECT_EQ(codec->head(), other->head());
  File one(*codec, {good, last}), another(*other, {good, last});
  one.add_step();
  another.add_step();
  EXPECT_EQ(one.finished(), another.finished());
  FieldDefinition mended = bad;
  mended.attributes.clear();
  EXPECT_FALSE(codec->adopt(bad, codec_of({mended})->prepared(0)).is_ok());
  EXPECT_EQ(codec->head(), other->head()) << "nor does adopt";
}

TEST(netcdf4, of_records_that_were_put_twice_the_last_counts) {
  const std::vector fields{field("a", ElementType::f64, {"depthBelowSea", {5, 10}, {}, {}})};
  const auto codec = codec_of(fields);
  File file(*codec, fields);
  file.add_step();
  file.put_again(0, 0, 3);
  EXPECT_EQ(Reader(file.finished()).values("a"), (Values{120, 121, 122, 123, 124, 125, 6, 7, 8, 9, 10, 11}));
}

TEST(netcdf4, an_index_that_names_bytes_outside_of_the_data_makes_no_ending) {
  using Record = FinishedStep::Record;
  for (const char* const chunks : {"2x3", "1x3"}) {  // without and with a trailer
    FieldDefinition cut = field("a");
    cut.keys = {{"chunks", chunks}};
    const auto codec = codec_of({cut});
    const auto code = [&](auto change) {
      File file(*codec, {cut});
      file.add_step();
      change(file.last_record(), file.data_end());
      return file.try_ending(*codec).status().code();
    };
    EXPECT_EQ(code([](Record&, Bytes) {}), Code::ok);
    EXPECT_EQ(code([](Record& each, Bytes) { each.offset = 8; }), Code::corrupt) << "within the head";
    EXPECT_EQ(code([](Record& each, Bytes) { each.length = 0; }), Code::corrupt) << "less than its trailer";
    EXPECT_EQ(code([](Record& each, Bytes end) { each.offset = end; }), Code::corrupt);
    EXPECT_EQ(code([](Record& each, Bytes) { each.offset = std::numeric_limits<Bytes>::max() - 2; }),
              Code::corrupt);
  }
}

TEST(netcdf4, a_record_is_cut_into_so_many_chunks_and_no_more) {
  RecordShape record{{{1 << 10, 1 << 10}, {4, 4}, 4}};
  EXPECT_EQ(record.count(), cf::most_chunks);
  EXPECT_TRUE(check(record).is_ok());
  record.chunk = {4, 3};
  EXPECT_EQ(check(record).code(), Code::argument);
  record = {{{Index{1} << 62, 1}, {1, 1}, 1}};
  EXPECT_EQ(check(record).code(), Code::argument);
}

/// The bytes of the head are those of the messages between ranks: who changes these gives the head another
/// version (src/formats/netcdf4/head.cpp).
TEST(netcdf4, the_head_has_the_bytes_that_it_always_had) {
  if constexpr (std::endian::native != std::endian::little) GTEST_SKIP() << "numbers are the machine's";
  FieldDefinition all = field("t", ElementType::f64, {"isobaricInhPa", {1000, 500}, {}, {}},
                              {Process::average, Statistic::Since::duration, 3600});
  all.missing = -1;
  all.accuracy = 0.5;
  all.keys = {{"chunks", "1x3"}};
  all.attributes = {{"comment", "x"}};
  all.georeference.keys = {{"gridType", "regular_ll"},
                           {"latitudeOfFirstGridPointInDegrees", "1"},
                           {"longitudeOfFirstGridPointInDegrees", "0"},
                           {"latitudeOfLastGridPointInDegrees", "0"},
                           {"longitudeOfLastGridPointInDegrees", "2"}};
  const ByteVector head = codec_of({all}, {{"compress", "deflate:9"}})->head();
  std::string text;
  for (std::size_t i = 64; i < head.size(); ++i) {
    constexpr const char* digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(head[i]);
    text += {digits[byte >> 4], digits[byte & 15]};
  }
  text.erase(text.find_last_not_of('0') + 1);
  EXPECT_EQ(text,
            "54524c4e433444327561ad15da97782edc0100000000000007000000000000006e6574636466340000000000000000ea"
            "070000000000000300000001000000060000000000000000000000020000000000000000000000000006000000000000"
            "0073696d706c650000000000000000010000000000000005000000000000007469746c65060000000000000041207465"
            "737401000000000000000100000000000000740600000010000000000000000200000000000000030000000000000000"
            "0000000000000000000000000000000d0000000000000069736f6261726963496e685061100000000000000000000000"
            "00408f400000000000407f40000000000000000000000000000000000200000002000000100e00000000000001010000"
            "00000000e03f000000000000000000000000000001000000000000f0bf02000000000000000600000000000000636875"
            "6e6b7303000000000000003178330800000000000000636f6d707265737309000000000000006465666c6174653a3901"
            "000000000000000700000000000000636f6d6d656e740100000000000000784d00000000000000010000000000000074"
            "01000000000000000000f03f000000000000000002000000000000000000000000000000000000000000004003000000"
            "0000000000000000008056c");
  EXPECT_EQ(head.size(), 1024U);
  EXPECT_TRUE(reopen(head).is_ok());
}

TEST(netcdf4, a_head_of_another_version_is_unsupported_and_one_with_a_rest_damaged) {
  const ByteVector head = codec_of({field("a")})->head();
  ByteVector other = head;
  other.at(71) = std::byte{'4'};
  const Status status = reopen(other).status();
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.text().find("version '4'"), std::string::npos) << status.text();
  ByteVector with_rest = head;
  with_rest.back() = std::byte{1};
  EXPECT_EQ(reopen(with_rest).status().code(), Code::corrupt);
}

TEST(netcdf4, only_heads_with_other_times_or_names_of_dimensions_have_version_3) {
  const auto version_of = [](const ByteVector& head) { return static_cast<char>(head.at(71)); };
  EXPECT_EQ(version_of(codec_of({field("a")})->head()), '2');
  FieldDefinition named = field("a");
  named.dimensions.assign(named.shape.size(), "x");
  for (std::size_t i = 0; i < named.shape.size(); ++i) named.dimensions[i] += std::to_string(i);
  named.axes = {{"x0",
                 ElementType::f64,
                 ByteVector(static_cast<std::size_t>(named.shape[0]) * 8),
                 {},
                 {{"units", "m"}}}};
  const ByteVector head = codec_of({named, field("b")})->head();
  EXPECT_EQ(version_of(head), '3');
  EXPECT_TRUE(reopen(head).is_ok()) << reopen(head).status().text();
}

TEST(netcdf4, a_finished_file_is_told_by_its_superblock) {
  const std::vector fields{field("a")};
  const auto codec = codec_of(fields);
  File file(*codec, fields);
  file.add_step();
  const ByteVector whole = file.finished();
  const auto finished = [&](ByteVector bytes) {
    return *is_finished(reader_of(bytes), file.data_end(), std::ssize(bytes));
  };
  EXPECT_TRUE(finished(whole));
  for (const std::size_t at : {0, 8, 20, 30, 40, 46}) {
    ByteVector damaged = whole;
    damaged.at(at) ^= std::byte{1};
    EXPECT_FALSE(finished(damaged)) << at;
  }
  ByteVector other = whole;
  other.pop_back();
  EXPECT_FALSE(finished(other)) << "it was cut";
  other = whole;
  std::ranges::copy(unfinished().bytes, other.begin());
  EXPECT_FALSE(finished(other));
  EXPECT_FALSE(finished({}));
}

TEST(netcdf4, an_image_remembers_what_it_has_refused) {
  Image image(512, 4096);
  const hid_t access = image.access();
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
  const hid_t file = H5Fcreate("in memory", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const hsize_t size = 16;
  const hid_t space = H5Screate_simple(1, &size, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 1, &size);
  const hid_t dataset = H5Dcreate2(file, "a", H5T_STD_I8LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  ASSERT_GE(dataset, 0);
  EXPECT_FALSE(image.has_failed());
  image.expect_chunk(512, 15);  // not what the library will ask for
  const hsize_t offset = 0;
  const char bytes[16] = {};
  H5E_BEGIN_TRY { EXPECT_LT(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &offset, 16, bytes), 0); }
  H5E_END_TRY;
  EXPECT_TRUE(image.has_failed());
  H5Dclose(dataset);
  H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
  H5Pclose(access);
  EXPECT_TRUE(image.has_failed());
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
