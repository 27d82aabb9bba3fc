// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>

#include "../cf/netcdf_file.hpp"
#include "formats/cdf/codec.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cdf {
namespace {

using namespace cf::netcdf_file;
using codec::Codec;
using codec::FieldDefinition;
using codec::Levels;
using codec::Process;
using codec::RecordKey;
using codec::Statistic;

constexpr int default_kind[] = {0, NC_FORMAT_CLASSIC, NC_FORMAT_64BIT_OFFSET, 0, 0, NC_FORMAT_64BIT_DATA};

const codec::Keys weather{{"conventions", "weather"}};

std::unique_ptr<Codec> codec_of(const std::vector<FieldDefinition>& fields, Version version = Version::cdf5,
                                const codec::Keys& keys = weather) {
  codec::StreamDefinition stream;
  stream.keys = keys;
  stream.base = {2026, 3, 1, 6, 0, 0};
  stream.calendar = Calendar::no_leap;
  std::unique_ptr<Codec> codec = *make_codec(version, stream);
  for (const FieldDefinition& each : fields) {
    const Status defined = codec->define(each);
    EXPECT_TRUE(defined.is_ok()) << defined.text();
  }
  return codec;
}

/// A file as the library puts it together: head, steps of an hour, number of steps.
class File {
 public:
  File(const Codec& codec, Version version) : codec_(codec), version_(version), bytes_(codec.head()) {}

  /// Puts every record but those that `left_out` names by field and level.
  void add_step(const std::vector<std::pair<int, Index>>& left_out = {}) {
    const codec::FixedPlaces places = *codec_.fixed_places();
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + static_cast<std::size_t>(places.step), std::byte{0xee});
    const auto encoder = codec_.encoder();
    std::vector<codec::FinishedStep::Record> put;
    for (int field = 0; field < static_cast<int>(places.places.size()); ++field) {
      for (Index level = 0; level < static_cast<Index>(places.places[field].size()); ++level) {
        if (std::ranges::count(left_out, std::pair(field, level)) > 0) continue;
        const Bytes at = places.places[static_cast<std::size_t>(field)][static_cast<std::size_t>(level)];
        put.push_back({field, level, at, codec_.encoded_bound(field)});
        ByteVector values = record_of(codec_.assembled_type(field), steps_, field, level, 6);
        ByteVector out;
        EXPECT_TRUE(encoder->encode({field, level, steps_ * 3600, 0}, values.data(), 6, out).is_ok());
        EXPECT_EQ(static_cast<Bytes>(out.size()), codec_.encoded_bound(field));
        place(begin, at, out);
      }
    }
    for (const codec::Patch& each : codec_.rest_of_step(steps_ * 3600, (steps_ - 1) * 3600, put)) {
      for (std::int64_t i = 0; i < each.times; ++i)
        place(begin, each.offset + i * static_cast<Bytes>(each.bytes.size()), each.bytes);
    }
    ++steps_;
    place(0, 4, encode_records(version_, steps_));
  }
  [[nodiscard]] const ByteVector& bytes() const { return bytes_; }

 private:
  void place(std::size_t begin, Bytes offset, const ByteVector& part) {
    ASSERT_LE(begin + static_cast<std::size_t>(offset) + part.size(), bytes_.size());
    std::ranges::copy(part, bytes_.begin() + static_cast<std::ptrdiff_t>(begin) + offset);
  }

  const Codec& codec_;
  Version version_;
  ByteVector bytes_;
  std::int64_t steps_ = 0;
};

using Names = std::vector<std::string>;
using Values = std::vector<double>;

TEST(cdf, the_netcdf_library_reads_every_type_in_every_version) {
  for (const Version version : {Version::cdf1, Version::cdf2, Version::cdf5}) {
    std::vector<ElementType> types{ElementType::i8, ElementType::i16, ElementType::i32, ElementType::f32,
                                   ElementType::f64};
    if (version == Version::cdf5)
      types.insert(types.end(), {ElementType::i64, ElementType::byte, ElementType::u16, ElementType::u32,
                                 ElementType::u64});
    std::vector<FieldDefinition> fields;
    for (const ElementType type : types)
      fields.push_back(field(std::string(name_of(type)), type, {"isobaricInhPa", {1000, 500}, {}, {}}));
    const auto codec = codec_of(fields, version);
    File file(*codec, version);
    for (int step = 0; step < 2; ++step) file.add_step();
    const Reader reader(file.bytes());
    EXPECT_EQ(reader.format(), default_kind[static_cast<int>(version)]);
    for (int f = 0; f < static_cast<int>(fields.size()); ++f) {
      Values expected;
      for (std::int64_t step = 0; step < 2; ++step) {
        for (Index i = 0; i < 12; ++i) expected.push_back(value_of<double>(step, f, i / 6, i % 6));
      }
      EXPECT_EQ(reader.values(fields[static_cast<std::size_t>(f)].name), expected);
    }
    EXPECT_EQ(reader.values("time"), (Values{0, 3600}));
    EXPECT_EQ(reader.text("time", "units"), "seconds since 2026-03-01 06:00:00");
    EXPECT_EQ(reader.text("time", "calendar"), "noleap");
  }
}

TEST(cdf, records_that_were_not_put_hold_the_fill_value) {
  FieldDefinition with_missing = field("a", ElementType::f64, {"depthBelowSea", {5, 10}, {}, {}});
  with_missing.missing = -999;
  const auto codec = codec_of({with_missing, field("b", ElementType::i64), field("c", ElementType::i8),
                               field("d", ElementType::u16), field("e", ElementType::u64)});
  File file(*codec, Version::cdf5);
  file.add_step({{0, 1}, {1, 0}, {2, 0}, {3, 0}, {4, 0}});
  const Reader reader(file.bytes());
  EXPECT_EQ(reader.values("a"), (Values{0, 1, 2, 3, 4, 5, -999, -999, -999, -999, -999, -999}));
  EXPECT_EQ(reader.number("a", "_FillValue"), -999);
  EXPECT_EQ(reader.values("b"), Values(6, static_cast<double>(NC_FILL_INT64)));
  EXPECT_EQ(reader.values("c"), Values(6, NC_FILL_BYTE));
  EXPECT_EQ(reader.values("d"), Values(6, NC_FILL_USHORT));
  EXPECT_EQ(reader.values("e"), Values(6, static_cast<double>(NC_FILL_UINT64)));
  EXPECT_EQ(std::ranges::count(file.bytes(), std::byte{0xee}), 0) << "every byte of a step is written";
}

TEST(cdf, integers_tell_a_fill_value_only_if_the_program_does) {
  FieldDefinition told = field("told", ElementType::i64);
  told.missing = -9;
  const std::vector fields{told, field("id", ElementType::i64), field("mask", ElementType::byte),
                           field("real", ElementType::f32)};
  const auto codec = codec_of(fields);
  File file(*codec, Version::cdf5);
  file.add_step();
  const Reader reader(file.bytes());
  EXPECT_EQ(reader.number("told", "_FillValue"), -9);
  for (const char* const name : {"id", "mask"})
    EXPECT_EQ(reader.text(name, "_FillValue"), "(none)") << "xarray would make floats of " << name;
  EXPECT_NE(reader.text("real", "_FillValue"), "(none)");
}

TEST(cdf, levels_and_points_are_dimensions_that_fields_share) {
  const Levels levels{"isobaricInhPa", {1000, 500}, {}, {}};
  const auto codec = codec_of({field("t", ElementType::f32, levels), field("u", ElementType::f32, levels),
                               field("sst"), field("t", ElementType::f32, {"heightAboveGround", {2}, {}, {}}),
                               field("st", ElementType::f32, {"depthBelowLandLayer", {0, 7}, {7, 28}, {}})});
  File file(*codec, Version::cdf5);
  file.add_step();
  const Reader reader(file.bytes());
  EXPECT_EQ(reader.dimensions("t"), (Names{"time", "plev", "y", "x"}));
  EXPECT_EQ(reader.dimensions("u"), (Names{"time", "plev", "y", "x"}));
  EXPECT_EQ(reader.dimensions("sst"), (Names{"time", "y", "x"}));
  EXPECT_EQ(reader.dimensions("t_heightAboveGround"), (Names{"time", "y", "x"}));
  EXPECT_EQ(reader.text("t_heightAboveGround", "coordinates"), "height");
  EXPECT_EQ(reader.values("height"), Values{2});
  EXPECT_EQ(reader.values("plev"), (Values{1000, 500}));
  EXPECT_EQ(reader.text("plev", "units"), "hPa");
  EXPECT_EQ(reader.text("depth_below_land", "bounds"), "depth_below_land_bnds");
  EXPECT_EQ(reader.values("depth_below_land_bnds"), (Values{0, 7, 7, 28}));
  EXPECT_EQ(reader.text("sst", "standard_name"), "sea_surface_temperature");
  EXPECT_EQ(reader.text("", "Conventions"), "CF-1.8");
}

FieldDefinition on_dimensions(const std::string& name, const std::vector<std::string>& dimensions,
                              const std::vector<Index>& shape) {
  FieldDefinition made = field(name);
  made.dimensions = dimensions;
  made.shape = shape;
  return made;
}

TEST(cdf, dimensions_that_the_program_names_are_shared_by_their_names) {
  const auto codec =
      codec_of({on_dimensions("theta", {"z", "x"}, {5, 8}), on_dimensions("u", {"z", "xu"}, {5, 9}),
                on_dimensions("w", {"zw", "x"}, {6, 8}), on_dimensions("x_of_all", {"x"}, {8}),
                on_dimensions("y_2d", {}, {5, 8})});
  const Reader reader(codec->head());
  EXPECT_EQ(reader.dimensions("theta"), (Names{"time", "z", "x"}));
  EXPECT_EQ(reader.dimensions("u"), (Names{"time", "z", "xu"}));
  EXPECT_EQ(reader.dimensions("w"), (Names{"time", "zw", "x"}));
  EXPECT_EQ(reader.dimensions("x_of_all"), (Names{"time", "x"}));
  EXPECT_EQ(reader.dimensions("y_2d"), (Names{"time", "y", "x_2"}));
}

TEST(cdf, the_coordinates_of_a_map_have_the_names_of_its_dimensions) {
  FieldDefinition map = on_dimensions("t", {"latitude", "longitude"}, {2, 3});
  map.georeference.keys = {{"gridType", "regular_ll"},
                           {"latitudeOfFirstGridPointInDegrees", "1"},
                           {"longitudeOfFirstGridPointInDegrees", "0"},
                           {"latitudeOfLastGridPointInDegrees", "0"},
                           {"longitudeOfLastGridPointInDegrees", "2"}};
  FieldDefinition other = map;
  other.name = "q";
  const auto codec = codec_of({map, other});
  const Reader reader(codec->head());
  EXPECT_EQ(reader.dimensions("q"), (Names{"time", "latitude", "longitude"}));
  EXPECT_EQ(reader.values("latitude"), (Values{1, 0}));
  EXPECT_EQ(reader.text("longitude", "units"), "degrees_east");
  other.name = "r";
  other.georeference.keys[1].second = "2";  // another grid
  EXPECT_NE(codec->define(other).text().find("belongs to another grid"), std::string::npos);
}

TEST(cdf, dimensions_have_the_coordinates_that_the_program_gives) {
  const auto bytes_of = [](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return ByteVector(bytes.begin(), bytes.end());
  };
  FieldDefinition theta = on_dimensions("theta", {"z", "x"}, {2, 3});
  theta.axes = {{"x",
                 ElementType::f32,
                 bytes_of(std::array{0.5F, 1.5F, 2.5F}),
                 bytes_of(std::array{0.F, 1.F, 1.F, 2.F, 2.F, 3.F}),
                 {{"units", "km"}, {"axis", "X"}}}};
  FieldDefinition w = on_dimensions("w", {"z"}, {2});
  w.axes = {{"z", ElementType::i32, bytes_of(std::array{10, -20}), {}, {}}};
  const auto codec = codec_of({theta, w});
  const Reader reader(codec->head());
  EXPECT_EQ(reader.dimensions("x"), Names{"x"});
  EXPECT_EQ(reader.values("x"), (Values{0.5, 1.5, 2.5}));
  EXPECT_EQ(reader.text("x", "units"), "km");
  EXPECT_EQ(reader.text("x", "bounds"), "x_bnds");
  EXPECT_EQ(reader.dimensions("x_bnds"), (Names{"x", "bnds"}));
  EXPECT_EQ(reader.values("x_bnds"), (Values{0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(reader.values("z"), (Values{10, -20}));
}

TEST(cdf, a_name_of_a_dimension_that_stands_for_something_else_is_refused) {
  const auto refused = [](const FieldDefinition& second, std::string_view text) {
    const Status status = codec_of({on_dimensions("theta", {"z", "x"}, {5, 8})})->define(second);
    EXPECT_EQ(status.code(), Code::argument);
    EXPECT_NE(status.text().find(text), std::string::npos) << status.text();
  };
  refused(on_dimensions("u", {"z", "x"}, {5, 9}),
          "dimension 'x' has 9 elements here, and 8 in a field before");
  refused(on_dimensions("u", {"time", "x"}, {5, 8}),
          "dimension 'time' has the name of another variable or dimension");
  refused(on_dimensions("u", {"theta"}, {5}), "dimension 'theta' has the name of another variable");
  refused(on_dimensions("x", {"z", "xu"}, {5, 9}), "a dimension has its name");
  refused(on_dimensions("u", {"u"}, {5}), "a dimension has its name");
  refused(on_dimensions("u", {"a/b"}, {5}), "no such name");
  FieldDefinition levels = on_dimensions("u", {"plev", "x"}, {5, 8});
  levels.levels = {"isobaricInhPa", {1000, 500}, {}, {}};
  refused(levels, "dimension 'plev' has the name of another variable or dimension");
}

TEST(cdf, hybrid_levels_have_their_formula_wherever_the_pressure_is_defined) {
  const Levels levels{"hybrid", {1, 2}, {}, {0, 100, 300, 1, 0.5, 0}};
  for (const bool first : {true, false}) {
    const FieldDefinition t = field("t", ElementType::f32, levels), sp = field("sp");
    const auto codec = codec_of(first ? std::vector{sp, t} : std::vector{t, sp});
    const Reader reader(codec->head());
    EXPECT_EQ(reader.text("lev", "formula_terms"), "ap: lev_ap b: lev_b ps: sp");
    EXPECT_EQ(reader.values("lev_ap"), (Values{50, 200}));
    EXPECT_EQ(reader.values("lev_b"), (Values{0.75, 0.25}));
    EXPECT_EQ(reader.text("lev", "bounds"), "lev_bnds");
    EXPECT_EQ(reader.text("lev_bnds", "formula_terms"), "ap: lev_ap_bnds b: lev_b_bnds ps: sp");
    EXPECT_EQ(reader.values("lev_bnds"), (Values{0.5, 1.5, 1.5, 2.5}));
    EXPECT_EQ(reader.values("lev_ap_bnds"), (Values{0, 100, 100, 300}));
  }
  const auto codec = codec_of({field("t", ElementType::f32, levels)});
  EXPECT_EQ(Reader(codec->head()).text("lev", "formula_terms"), "(none)");
}

TEST(cdf, a_name_tells_nothing_about_its_field_unless_the_stream_has_conventions_of_weather) {
  const Levels levels{"hybrid", {1, 2}, {}, {0, 100, 300, 1, 0.5, 0}};
  const std::vector<FieldDefinition> fields{field("w"), field("u", ElementType::f32, levels), field("sp"),
                                            field("rainfall")};
  const Reader plain(codec_of(fields, Version::cdf5, {})->head());
  for (const std::string name : {"w", "u", "sp", "rainfall"}) {
    for (const std::string attribute : {"standard_name", "units", "long_name"})
      EXPECT_EQ(plain.text(name, attribute), "(none)") << name << ": " << attribute;
  }
  EXPECT_EQ(plain.text("lev", "formula_terms"), "(none)");
  EXPECT_EQ(plain.text("time", "standard_name"), "time");
  EXPECT_EQ(plain.text("lev", "standard_name"), "atmosphere_hybrid_sigma_pressure_coordinate");
  const Reader asked(codec_of(fields)->head());
  EXPECT_EQ(asked.text("w", "standard_name"), "lagrangian_tendency_of_air_pressure");
  EXPECT_EQ(asked.text("w", "units"), "Pa s-1");
  EXPECT_EQ(asked.text("rainfall", "long_name"), "rainfall");
  EXPECT_EQ(asked.text("lev", "formula_terms"), "ap: lev_ap b: lev_b ps: sp");
}

TEST(cdf, intervals_that_begin_differently_have_bounds_of_their_own) {
  using Since = Statistic::Since;
  const auto codec =
      codec_of({field("tp", ElementType::f32, {}, {Process::accum, Since::start}),
                field("max", ElementType::f32, {}, {Process::maximum, Since::last_output}),
                field("min", ElementType::f32, {}, {Process::minimum, Since::last_output}),
                field("mean", ElementType::f32, {}, {Process::average, Since::duration, 7200})});
  File file(*codec, Version::cdf5);
  for (int step = 0; step < 4; ++step) file.add_step();
  const Reader reader(file.bytes());
  EXPECT_EQ(reader.text("tp", "cell_methods"), "time: sum");
  EXPECT_EQ(reader.text("time", "bounds"), "time_bnds");
  EXPECT_EQ(reader.values("time_bnds"), (Values{0, 0, 0, 3600, 0, 7200, 0, 10800}));
  EXPECT_EQ(reader.text("max", "coordinates"), "time_2");
  EXPECT_EQ(reader.text("min", "coordinates"), "time_2");
  EXPECT_EQ(reader.values("time_2_bnds"), (Values{-3600, 0, 0, 3600, 3600, 7200, 7200, 10800}));
  EXPECT_EQ(reader.values("time_3_bnds"), (Values{0, 0, 0, 3600, 0, 7200, 3600, 10800}));
  EXPECT_EQ(reader.values("time_3"), (Values{0, 3600, 7200, 10800}));
}

TEST(cdf, a_server_that_adopts_what_a_rank_has_prepared_makes_the_same_head) {
  FieldDefinition turned = field("u");
  turned.georeference.keys = {{"gridType", "rotated_ll"},
                              {"latitudeOfFirstGridPointInDegrees", "-1"},
                              {"longitudeOfFirstGridPointInDegrees", "0"},
                              {"latitudeOfLastGridPointInDegrees", "1"},
                              {"longitudeOfLastGridPointInDegrees", "2"},
                              {"latitudeOfSouthernPoleInDegrees", "-30"},
                              {"longitudeOfSouthernPoleInDegrees", "10"}};
  const auto codec = codec_of({turned, field("b")});
  const auto other = codec_of({});
  FieldDefinition without = turned;
  without.georeference = {};
  ASSERT_TRUE(other->adopt(without, codec->prepared(0)).is_ok());
  ASSERT_TRUE(other->adopt(field("b"), codec->prepared(1)).is_ok());
  EXPECT_EQ(other->head(), codec->head());
  const Reader reader(codec->head());
  EXPECT_EQ(reader.text("u", "standard_name"), "x_wind");
  EXPECT_EQ(reader.text("u", "coordinates"), "lat lon");
  EXPECT_NEAR(reader.values("lat")[0], 59, 1e-9);
  EXPECT_EQ(reader.text("rotated_pole", "grid_mapping_name"), "rotated_latitude_longitude");
  without.shape = {4, 4};
  EXPECT_EQ(other->adopt(without, codec->prepared(0)).code(), Code::corrupt);
}

TEST(cdf, a_projection_has_its_coordinates_its_mapping_and_its_earth) {
  FieldDefinition u = field("u");
  u.georeference.keys = {{"gridType", "lambert"},   {"latitudeOfFirstGridPointInDegrees", "50"},
                         {"LoVInDegrees", "10"},    {"longitudeOfFirstGridPointInDegrees", "10"},
                         {"LaDInDegrees", "50"},    {"Latin1InDegrees", "45"},
                         {"Latin2InDegrees", "55"}, {"DxInMetres", "1000"},
                         {"DyInMetres", "2000"},    {"jScansPositively", "1"},
                         {"shapeOfTheEarth", "4"}};
  FieldDefinition polar = field("t");
  polar.georeference.keys = {{"gridType", "polar_stereographic"},
                             {"latitudeOfFirstGridPointInDegrees", "70"},
                             {"LoV", "-45000000"},
                             {"longitudeOfFirstGridPointInDegrees", "-45"},
                             {"LaD", "60000000"},
                             {"DxInMetres", "1000"},
                             {"DyInMetres", "2000"},
                             {"shapeOfTheEarth", "6"}};
  const auto codec = codec_of({u, polar});
  const Reader reader(codec->head());
  EXPECT_EQ(reader.dimensions("u"), (Names{"time", "y", "x"}));
  EXPECT_EQ(reader.text("u", "standard_name"), "x_wind");
  EXPECT_EQ(reader.text("u", "grid_mapping"), "lambert_conformal_conic");
  EXPECT_EQ(reader.text("u", "coordinates"), "lat lon");
  EXPECT_EQ(reader.text("y", "standard_name"), "projection_y_coordinate");
  EXPECT_EQ(reader.text("x", "units"), "m");
  EXPECT_NEAR(reader.values("y")[1] - reader.values("y")[0], 2000, 1e-6);
  EXPECT_NEAR(reader.values("x")[0], 0, 1e-6);
  EXPECT_NEAR(reader.values("lat")[0], 50, 1e-9);
  EXPECT_NEAR(reader.values("lon")[0], 10, 1e-9);
  EXPECT_EQ(reader.numbers("lambert_conformal_conic", "standard_parallel"), (Values{45, 55}));
  EXPECT_EQ(reader.number("lambert_conformal_conic", "longitude_of_central_meridian"), 10);
  EXPECT_EQ(reader.number("lambert_conformal_conic", "semi_major_axis"), 6378137);
  EXPECT_EQ(reader.number("lambert_conformal_conic", "semi_minor_axis"), 6356752.314);
  EXPECT_EQ(reader.dimensions("t"), (Names{"time", "y_2", "x_2"}));
  EXPECT_EQ(reader.number("polar_stereographic", "straight_vertical_longitude_from_pole"), -45);
  EXPECT_EQ(reader.number("polar_stereographic", "latitude_of_projection_origin"), 90);
  EXPECT_EQ(reader.number("polar_stereographic", "standard_parallel"), 60);
  EXPECT_EQ(reader.number("polar_stereographic", "earth_radius"), 6371229);
  const auto other = codec_of({});
  u.georeference = polar.georeference = {};
  ASSERT_TRUE(other->adopt(u, codec->prepared(0)).is_ok());
  ASSERT_TRUE(other->adopt(polar, codec->prepared(1)).is_ok());
  EXPECT_EQ(other->head(), codec->head());
}

TEST(cdf, the_parallel_of_a_plane_at_a_pole_has_the_sign_of_the_pole) {
  for (const bool south : {true, false}) {
    for (const char* const parallel : {"-70", "70"}) {
      FieldDefinition polar = field("t");
      polar.georeference.keys = {{"gridType", "polar_stereographic"},
                                 {"latitudeOfFirstGridPointInDegrees", south ? "-70" : "70"},
                                 {"LoVInDegrees", "0"},
                                 {"longitudeOfFirstGridPointInDegrees", "-45"},
                                 {"LaDInDegrees", parallel},
                                 {"southPoleOnProjectionPlane", south ? "1" : "0"},
                                 {"DxInMetres", "1000"},
                                 {"DyInMetres", "2000"}};
      const auto codec = codec_of({polar});
      const Reader reader(codec->head());
      EXPECT_EQ(reader.number("polar_stereographic", "latitude_of_projection_origin"), south ? -90 : 90);
      EXPECT_EQ(reader.number("polar_stereographic", "standard_parallel"), south ? -70 : 70) << parallel;
      EXPECT_NEAR(reader.values("lat")[0], south ? -70 : 70, 1e-9);
    }
  }
}

TEST(cdf, a_cone_with_one_standard_parallel_has_its_origin_there) {
  FieldDefinition u = field("u");
  u.georeference.keys = {{"gridType", "lambert"},   {"latitudeOfFirstGridPointInDegrees", "50"},
                         {"LoVInDegrees", "10"},    {"longitudeOfFirstGridPointInDegrees", "10"},
                         {"LaDInDegrees", "52"},    {"Latin1InDegrees", "45"},
                         {"Latin2InDegrees", "45"}, {"DxInMetres", "1000"},
                         {"DyInMetres", "2000"}};
  const auto codec = codec_of({u});
  const Reader reader(codec->head());
  EXPECT_EQ(reader.numbers("lambert_conformal_conic", "standard_parallel"), Values{45});
  EXPECT_EQ(reader.number("lambert_conformal_conic", "latitude_of_projection_origin"), 45);
}

std::shared_ptr<const codec::Coordinates> told_places(const std::vector<Index>& shape, Index corners,
                                                      double shift) {
  codec::Coordinates told{shape, corners, 0, {}};
  for (Index i = 0; i < told.points() * 2 * (1 + corners); ++i)
    cf::put_number(told.values, cf::Type::float64, shift + static_cast<double>(i));
  told.checksum = static_cast<std::uint64_t>(shift);
  return std::make_shared<const codec::Coordinates>(std::move(told));
}

TEST(cdf, coordinates_that_the_program_has_told_have_their_bounds) {
  FieldDefinition map = field("a"), again = field("b"), cells = field("c"), other = field("d");
  cells.shape = {2};
  map.georeference = again.georeference = {{}, {}, told_places({2, 3}, 3, 0)};
  cells.georeference.coordinates = told_places({2}, 0, 50);
  other.georeference.coordinates = told_places({2, 3}, 0, 100);
  const auto codec = codec_of({map, again, cells, other});
  const Reader reader(codec->head());
  EXPECT_EQ(reader.dimensions("a"), (Names{"time", "y", "x"}));
  EXPECT_EQ(reader.dimensions("lat_bnds"), (Names{"y", "x", "vertices"}));
  EXPECT_EQ(reader.text("a", "coordinates"), "lat lon");
  EXPECT_EQ(reader.text("b", "coordinates"), "lat lon") << "fields share them";
  EXPECT_EQ(reader.text("lat", "bounds"), "lat_bnds");
  EXPECT_EQ(reader.text("lon", "standard_name"), "longitude");
  EXPECT_EQ(reader.values("lat"), (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(reader.values("lon"), (Values{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(reader.values("lat_bnds")[17], 29);
  EXPECT_EQ(reader.values("lon_bnds")[0], 30);
  EXPECT_EQ(reader.dimensions("lat_2"), Names{"cell"});
  EXPECT_EQ(reader.values("lon_2"), (Values{52, 53}));
  EXPECT_EQ(reader.text("lat_2", "bounds"), "(none)");
  EXPECT_EQ(reader.text("d", "coordinates"), "lat_3 lon_3");
  // A server that writes no heads gets the fields without the values.
  const auto server = codec_of({});
  FieldDefinition there = map;
  there.georeference = {};
  ASSERT_TRUE(server->adopt(there, codec->prepared(0)).is_ok());
  EXPECT_EQ(server->fixed_places()->step, codec_of({map})->fixed_places()->step);
  there.georeference.coordinates = map.georeference.coordinates;
  const auto root = codec_of({});
  ASSERT_TRUE(root->adopt(there, codec->prepared(0)).is_ok());
  EXPECT_EQ(root->head(), codec_of({map})->head());
}

TEST(cdf, winds_along_a_turned_grid_stay_so_where_the_program_tells_its_places) {
  FieldDefinition turned = field("u"), plain = field("v");
  turned.georeference = {{}, {{"gridType", "rotated_ll"}}, told_places({2, 3}, 0, 0)};
  plain.georeference = {{}, {{"gridType", "regular_ll"}}, told_places({2, 3}, 0, 50)};
  const auto codec = codec_of({turned, plain});
  const Reader reader(codec->head());
  EXPECT_EQ(reader.text("u", "standard_name"), "x_wind");
  EXPECT_EQ(reader.text("v", "standard_name"), "northward_wind");
  const auto other = codec_of({});
  turned.georeference.keys = plain.georeference.keys = {};
  ASSERT_TRUE(other->adopt(turned, codec->prepared(0)).is_ok());
  ASSERT_TRUE(other->adopt(plain, codec->prepared(1)).is_ok());
  EXPECT_EQ(other->head(), codec->head());
}

TEST(cdf, an_unstructured_grid_is_named_as_icon_names_it) {
  FieldDefinition one = field("a"), same = field("b"), other = field("c");
  one.shape = same.shape = other.shape = {6};
  one.georeference.keys = {{"gridType", "unstructured_grid"},
                           {"numberOfGridUsed", "42"},
                           {"uuidOfHGrid", "A60BD5BE123456789ABCDEF012345678"}};
  same.georeference = one.georeference;
  one.georeference.coordinates = told_places({6}, 3, 0);
  other.georeference.keys = {{"gridType", "unstructured_grid"}, {"numberOfGridUsed", "43"}};
  const auto codec = codec_of({one, same, other});
  const Reader reader(codec->head());
  EXPECT_EQ(reader.text("", "uuidOfHGrid"), "a60bd5be-1234-5678-9abc-def012345678");
  EXPECT_EQ(reader.number("c", "number_of_grid_used"), 43)
      << "the second grid of a file is that of its fields";
  EXPECT_EQ(reader.text("b", "uuidOfHGrid"), "(none)");
  EXPECT_EQ(reader.text("a", "coordinates"), "lat lon");
  const auto there = codec_of({});
  FieldDefinition without = one;
  without.georeference = {{}, {}, one.georeference.coordinates};
  ASSERT_TRUE(there->adopt(without, codec->prepared(0)).is_ok());
  same.georeference = other.georeference = {};
  ASSERT_TRUE(there->adopt(same, codec->prepared(1)).is_ok());
  ASSERT_TRUE(there->adopt(other, codec->prepared(2)).is_ok());
  EXPECT_EQ(there->head(), codec->head());
  other.georeference.keys = {{"gridType", "unstructured_grid"}, {"uuidOfHGrid", "none"}};
  EXPECT_NE((*make_codec(Version::cdf5, {}))->define(other).text().find("is no UUID"), std::string::npos);
}

TEST(cdf, a_file_goes_on_with_its_own_coordinates_alone) {
  FieldDefinition own = field("a");
  own.georeference.coordinates = told_places({2, 3}, 3, 0);
  for (const Version version : {Version::cdf1, Version::cdf2, Version::cdf5}) {
    const ByteVector head = codec_of({own}, version)->head();
    const auto goes_on = [&](const FieldDefinition& now) {
      return check_goes_on(head, codec_of({now}, version)->head());
    };
    EXPECT_TRUE(goes_on(own).is_ok());
    FieldDefinition now = own;
    now.attributes = {{"comment", "attributes may change"}};
    EXPECT_TRUE(goes_on(now).is_ok());
    now.georeference.coordinates = told_places({2, 3}, 3, 1e-12);
    EXPECT_TRUE(goes_on(now).is_ok()) << "another machine may compute other last bits";
    now.georeference.coordinates = told_places({2, 3}, 3, 1);
    EXPECT_NE(goes_on(now).text().find("'lat' has other values in the file"), std::string::npos);
    now.georeference.coordinates = told_places({2, 3}, 0, 0);
    EXPECT_EQ(goes_on(now).code(), Code::state) << "without bounds";
    now.georeference = {};
    EXPECT_NE(goes_on(now).text().find("'lat' is in the file"), std::string::npos);
    EXPECT_EQ(check_goes_on(codec_of({now}, version)->head(), head).code(), Code::state);
  }
  EXPECT_EQ(check_goes_on(ByteVector(20), ByteVector(20)).code(), Code::corrupt);
}

TEST(cdf, what_a_version_or_the_format_cannot_hold_is_refused_by_name) {
  const auto refused = [](const FieldDefinition& field, Version version, std::string_view text) {
    const Status status = codec_of({}, version)->define(field);
    EXPECT_FALSE(status.is_ok());
    EXPECT_NE(status.text().find(text), std::string::npos) << status.text();
  };
  refused(field("a", ElementType::i64), Version::cdf2, "64 bits");
  refused(field("a", ElementType::c64), Version::cdf5, "two fields");
  refused(field("a/b"), Version::cdf5, "no such name");
  FieldDefinition large = field("a", ElementType::f64);
  large.shape = {1 << 15, 1 << 15};
  refused(large, Version::cdf2, "4 GiB");
  EXPECT_TRUE(codec_of({}, Version::cdf5)->define(large).is_ok());
  FieldDefinition missing = field("a", ElementType::i8);
  missing.missing = 300;
  refused(missing, Version::cdf5, "missing=300");
  missing = field("a", ElementType::i64);
  missing.missing = 9223372036854775807.0;
  refused(missing, Version::cdf5, "missing=");
  refused(field(std::string(300, 'a')), Version::cdf5, "256 bytes");
  // The second variable begins behind the 2 GiB that a version 1 header can tell.
  large.shape = {1 << 14, 1 << 14};
  const auto codec = codec_of({large}, Version::cdf1);
  EXPECT_NE(codec->define(field("b")).text().find("2 GiB"), std::string::npos);
  EXPECT_NE(codec_of({field("a")})->define(field("a")).text().find("defined twice"), std::string::npos);
}

TEST(cdf, attributes_of_users_come_beside_the_conventions_and_in_their_place) {
  codec::StreamDefinition stream;
  stream.attributes = {{"title", "a test"}, {"Conventions", "CF-1.10"}};
  const auto codec = *make_codec(Version::cdf5, stream);
  FieldDefinition zos = field("zos");
  zos.attributes = {{"long_name", "height of the sea"}, {"units", "cm"}, {"valid_min", "-5"}};
  ASSERT_TRUE(codec->define(zos).is_ok());
  const Reader reader(codec->head());
  EXPECT_EQ(reader.text("", "title"), "a test");
  EXPECT_EQ(reader.text("", "Conventions"), "CF-1.10");
  EXPECT_EQ(reader.text("zos", "units"), "cm");
  EXPECT_EQ(reader.text("zos", "long_name"), "height of the sea");
  EXPECT_EQ(reader.number("zos", "valid_min"), -5);
  // The last ones are Latin-1, o with a combining mark, a byte too few and a / in two bytes.
  for (const std::string name : {"_FillValue", "coordinates", "scale_factor", "a/b", "", "gr\xf6",
                                 "o\xcc\x88", "\xe2\x82", "a\xc0\xaf"}) {
    FieldDefinition refused = field("b");
    refused.attributes = {{name, "1"}};
    EXPECT_EQ(codec->define(refused).code(), Code::argument) << name;
    stream.attributes = refused.attributes;
    EXPECT_EQ(make_codec(Version::cdf5, stream).status().code(), Code::argument) << name;
  }
}

TEST(cdf, fields_name_other_fields_as_their_coordinates) {
  FieldDefinition place = field("place"), cells = field("a"), more = field("more"), refused = field("b");
  place.shape = cells.shape = {2};
  place.has_time = false;
  cells.georeference.coordinates = told_places({2}, 0, 0);
  place.dimensions = cells.dimensions = {"cell"};
  refused.shape = {3};
  cells.attributes = {{"coordinates", "place"}};
  more = cells;
  more.name = "more";
  more.attributes = {{"coordinates", "place  lon place"}};
  const auto codec = codec_of({place, cells, more});
  const Reader reader(codec->head());
  EXPECT_EQ(reader.text("a", "coordinates"), "lat lon place");
  EXPECT_EQ(reader.text("more", "coordinates"), "lat lon place") << "each once, those of the layout first";
  for (const std::string name : {"place", "none", "a"}) {
    refused.attributes = {{"coordinates", name}};
    const Status status = codec->define(refused);
    EXPECT_EQ(status.code(), Code::argument) << name;
    EXPECT_NE(status.text().find(cat("names '", name, "', which")), std::string::npos) << status.text();
  }
  cells.name = "c";
  cells.has_time = false;
  cells.attributes = {{"coordinates", "a"}};
  EXPECT_NE(codec->define(cells).text().find("has the dimension 'time'; 'c' does not"), std::string::npos);
}

TEST(cdf, names_may_be_in_utf8) {
  for (const std::string name :
       {"temp\xc3\xa9rature", "\xe6\xb0\x97\xe6\xb8\xa9", "\xce\xb8", "\xec\x98\xa8"}) {
    FieldDefinition named = field(name);
    named.attributes = {{name, "1"}};
    const auto codec = codec_of({named});
    const Reader reader(codec->head());
    EXPECT_EQ(reader.text(name, name), "1") << name;
  }
}

TEST(cdf, attributes_that_stand_beside_values_have_their_type) {
  FieldDefinition mask = field("mask", ElementType::i16);
  mask.attributes = {{"flag_values", "0, 1, 300"}, {"flag_meanings", "sea land lake"}};
  const auto codec = codec_of({mask});
  const Reader reader(codec->head());
  EXPECT_EQ(reader.numbers("mask", "flag_values"), (Values{0, 1, 300}));
  EXPECT_EQ(reader.text("mask", "flag_meanings"), "sea land lake");
  mask.name = "b";
  mask.attributes = {{"valid_max", "100000"}};
  EXPECT_EQ(codec->define(mask).code(), Code::argument);
}

TEST(cdf, a_field_may_have_the_name_of_a_coordinate) {
  FieldDefinition latitude = field("lat");
  latitude.georeference.keys = {{"gridType", "regular_ll"},
                                {"latitudeOfFirstGridPointInDegrees", "1"},
                                {"longitudeOfFirstGridPointInDegrees", "0"},
                                {"latitudeOfLastGridPointInDegrees", "0"},
                                {"longitudeOfLastGridPointInDegrees", "2"}};
  const auto codec = codec_of({latitude, field("depth", ElementType::f32, {"depthBelowSea", {1, 2}, {}, {}}),
                               field("time"), field("x")});
  const Reader reader(codec->head());
  EXPECT_EQ(reader.dimensions("lat"), Names{"lat"});
  EXPECT_EQ(reader.dimensions("lat_surface"), (Names{"time", "lat", "lon"}));
  EXPECT_EQ(reader.dimensions("depth"), Names{"depth"});
  EXPECT_EQ(reader.dimensions("depth_depthBelowSea").front(), "time");
  EXPECT_EQ(reader.dimensions("time_surface").front(), "time");
  EXPECT_EQ(reader.dimensions("x"), (Names{"time", "y", "x_2"}));
}

TEST(cdf, coefficients_of_levels_that_they_do_not_have_are_never_read) {
  for (const double level : {0.0, 0.5, 1.7, -1.0, 3.0}) {
    const FieldDefinition t = field("t", ElementType::f32, {"hybrid", {level}, {}, {0, 100, 300, 1, 0.5, 0}});
    EXPECT_EQ(codec_of({})->define(t).code(), Code::argument) << level;
  }
}

TEST(cdf, fields_of_one_name_on_several_levels_get_names_of_their_own) {
  std::vector<FieldDefinition> fields{field("a")};
  for (const double height : {2.0, 10.0})
    fields.push_back(field("a", ElementType::f32, {"heightAboveGround", {height}, {}, {}}));
  const Reader reader(codec_of(fields)->head());
  EXPECT_EQ(reader.text("a_heightAboveGround", "coordinates"), "height");
  EXPECT_EQ(reader.text("a_heightAboveGround_2", "coordinates"), "height_2");
}

}  // namespace
}  // namespace tailrace::cdf
