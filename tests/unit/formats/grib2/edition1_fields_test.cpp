// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Grids of GRIB1 beside those of GRIB2 for the same georeference, and fields that GRIB1 barely tells apart.
#include <algorithm>

#include "grib_fixture.hpp"

namespace tailrace::codec::test {
namespace {

using grib2::Handle;

StreamDefinition stream_in(const std::string& format, Keys keys = {}) {
  StreamDefinition stream = stream_of();
  stream.format = format;
  stream.keys = std::move(keys);
  return stream;
}

FieldDefinition on_grid(Keys keys) {
  FieldDefinition field = field_of("t");
  field.georeference.keys = std::move(keys);
  return field;
}

std::string why_not(const FieldDefinition& field) {
  const Status status = define(stream_in("grib1"), field);
  EXPECT_FALSE(status.is_ok()) << field.name;
  return status.text();
}

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* const word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

/// ecCodes has no name for this bit on a polar grid of GRIB2.
bool has_grid_components(const Handle& handle) {
  return (handle.integer("resolutionAndComponentFlags").value_or(0) & 0x08) != 0;
}

/// Expects that ecCodes reads the same grid from both.
void expect_same_grid(const Handle& one, const Handle& two, const std::string& what) {
  ASSERT_EQ(one.integer("edition"), 1) << what;
  ASSERT_EQ(two.integer("edition"), 2) << what;
  EXPECT_EQ(one.text("gridType"), two.text("gridType")) << what;
  EXPECT_EQ(has_grid_components(one), has_grid_components(two)) << what;
  for (const std::string key : {"Ni",
                                "Nj",
                                "latitudeOfFirstGridPointInDegrees",
                                "longitudeOfFirstGridPointInDegrees",
                                "latitudeOfLastGridPointInDegrees",
                                "longitudeOfLastGridPointInDegrees",
                                "iDirectionIncrementInDegrees",
                                "jDirectionIncrementInDegrees",
                                "latitudeOfSouthernPoleInDegrees",
                                "longitudeOfSouthernPoleInDegrees",
                                "angleOfRotationInDegrees",
                                "DxInMetres",
                                "DyInMetres",
                                "LaDInDegrees",
                                "LoVInDegrees",
                                "Latin1InDegrees",
                                "Latin2InDegrees",
                                "orientationOfTheGridInDegrees",
                                "southPoleOnProjectionPlane",
                                "iScansNegatively",
                                "jScansPositively",
                                "jPointsAreConsecutive"}) {
    if (!two.has(key) || two.is_missing(key)) continue;
    const std::optional<double> wanted = two.number(key), got = one.number(key);
    ASSERT_TRUE(wanted && got) << what << " " << key;
    EXPECT_NEAR(*got, *wanted, 0.5000001e-3) << what << " " << key;
  }
}

void expect_same_grid_in_both(const Keys& keys, const std::string& what) {
  const FieldDefinition field = on_grid(keys);
  expect_same_grid(open_record(stream_in("grib1"), field, {0, 0, 0, 0}),
                   open_record(stream_in("grib2"), field, {0, 0, 0, 0}), what);
}

Keys with_keys(Keys keys, const Keys& others) {
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

Keys corner_keys() {
  return {{"latitudeOfFirstGridPointInDegrees", "10"},
          {"longitudeOfFirstGridPointInDegrees", "20"},
          {"Ni", "10"},
          {"Nj", "6"}};
}

Keys cylinder_keys(const std::string& true_at) {
  return with_keys(corner_keys(), {{"gridType", "mercator"},
                                   {"latitudeOfLastGridPointInDegrees", "30"},
                                   {"longitudeOfLastGridPointInDegrees", "50"},
                                   {"jScansPositively", "1"},
                                   {"LaDInDegrees", true_at}});
}

Keys pole_keys() {
  return with_keys(corner_keys(), {{"gridType", "polar_stereographic"},
                                   {"LoV", "10000000"},
                                   {"DxInMetres", "5000"},
                                   {"DyInMetres", "6000"}});
}

Keys turned_keys() {
  return with_keys(small_grid(),
                   {{"latitudeOfSouthernPoleInDegrees", "-40"}, {"longitudeOfSouthernPoleInDegrees", "10"}});
}

TEST(grib1_fields, mercator_keeps_its_latitude_and_lengths) {
  for (const char* const true_at : {"20", "60", "0"}) {
    expect_same_grid_in_both(
        with_keys(cylinder_keys(true_at), {{"DiInMetres", "12500"}, {"DjInMetres", "13000"}}), true_at);
    expect_same_grid_in_both(with_keys(cylinder_keys(true_at), {{"Di", "12500000"}, {"Dj", "13000000"}}),
                             true_at);
  }
  const Handle handle = open_record(
      stream_in("grib1"), on_grid(with_keys(cylinder_keys("60"), {{"Di", "12500000"}, {"Dj", "13000000"}})),
      {0, 0, 0, 0});
  EXPECT_EQ(handle.integer("Latin"), 60000);
  EXPECT_EQ(handle.integer("DiInMetres"), 12500);
  EXPECT_EQ(handle.integer("DjInMetres"), 13000);
}

TEST(grib1_fields, grids_have_the_numbers_of_grib2) {
  expect_same_grid_in_both(small_grid(), "regular_ll");
  expect_same_grid_in_both({{"gridType", "regular_ll"},
                            {"latitudeOfFirstGridPoint", "50000000"},
                            {"longitudeOfFirstGridPoint", "5000000"},
                            {"iDirectionIncrement", "1000000"},
                            {"jDirectionIncrement", "1000000"}},
                           "regular_ll in whole numbers");
  Keys turned = turned_keys();
  turned.front().second = "rotated_ll";
  for (const Keys& more :
       {Keys{}, Keys{{"uvRelativeToGrid", "1"}}, Keys{{"angleOfRotation", "15"}},
        Keys{{"angleOfRotationInDegrees", "15"}}, Keys{{"angleOfRotationOfProjection", "15"}}})
    expect_same_grid_in_both(with_keys(turned, more), more.empty() ? "rotated_ll" : more.front().first);
  const Keys cone = with_keys(corner_keys(), {{"gridType", "lambert"},
                                              {"LoV", "10000000"},
                                              {"LaD", "50000000"},
                                              {"Latin1", "50000000"},
                                              {"Latin2", "50000000"},
                                              {"Dx", "2500000"},
                                              {"Dy", "3500000"},
                                              {"uvRelativeToGrid", "1"}});
  expect_same_grid_in_both(cone, "lambert");
  for (const Keys& more :
       {Keys{{"LaDInDegrees", "60"}}, Keys{{"LaDInDegrees", "60"}, {"resolutionAndComponentFlags", "8"}},
        Keys{{"LaD", "60000000"}, {"scanningMode", "64"}}})
    expect_same_grid_in_both(with_keys(pole_keys(), more), "polar_stereographic " + more.back().first);
}

TEST(grib1_fields, a_polar_grid_lies_in_one_hemisphere) {
  expect_words(why_not(on_grid(with_keys(pole_keys(), {{"LaDInDegrees", "-60"}}))),
               {"LaDInDegrees", "north pole", "projectionCentreFlag=128"});
  expect_words(
      why_not(on_grid(with_keys(pole_keys(), {{"LaDInDegrees", "-60"}, {"projectionCentreFlag", "0"}}))),
      {"projectionCentreFlag=128"});
  expect_words(why_not(on_grid(with_keys(pole_keys(), {{"LaDInDegrees", "70"}}))), {"60 degrees"});
  const Handle south =
      open_record(stream_in("grib1"),
                  on_grid(with_keys(pole_keys(), {{"LaDInDegrees", "-60"}, {"projectionCentreFlag", "128"}})),
                  {0, 0, 0, 0});
  EXPECT_EQ(south.integer("southPoleOnProjectionPlane"), 1);
}

TEST(grib1_fields, flags_that_grib1_does_not_have_are_refused) {
  for (const char* const mode : {"16", "80", "1"})
    expect_words(why_not(on_grid(with_keys(small_grid(), {{"scanningMode", mode}}))), {"scanningMode", mode});
  expect_words(why_not(on_grid(with_keys(small_grid(), {{"resolutionAndComponentFlags", "64"}}))),
               {"resolutionAndComponentFlags", "64"});
  EXPECT_TRUE(define(stream_in("grib1"), on_grid(with_keys(small_grid(), {{"scanningMode", "0"}}))).is_ok());
}

/// A field on the grid of a sample of ecCodes, of which some keys are set before.
FieldDefinition on_sample(const std::string& name, const Keys& keys) {
  Handle sample = std::move(*Handle::from_sample(name));
  for (const auto& [key, value] : keys) EXPECT_EQ(sample.set_text(key, value), 0) << name << " " << key;
  FieldDefinition field = field_of("t");
  const auto message = sample.message();
  field.georeference = {ByteVector(message.begin(), message.end()), {}};
  field.shape = {*sample.integer("numberOfDataPoints")};
  return field;
}

TEST(grib1_fields, samples_keep_the_reference_of_winds_and_the_angle_of_rotation) {
  for (const std::string edition : {"grib1", "grib2"}) {
    for (const Keys& keys : {Keys{{"uvRelativeToGrid", "1"}, {"angleOfRotationInDegrees", "15"}},
                             Keys{{"uvRelativeToGrid", "0"}, {"angleOfRotationInDegrees", "0"}}}) {
      const FieldDefinition field = on_sample("rotated_ll_pl_" + edition, keys);
      const Handle handle = open_record(stream_in("grib1"), field, {0, 0, 0, 0});
      for (const auto& [key, value] : keys) EXPECT_EQ(handle.text(key), value) << edition << " " << key;
      if (edition == "grib2")
        expect_same_grid(handle, open_record(stream_in("grib2"), field, {0, 0, 0, 0}), edition);
    }
    const Keys polar_keys = edition == "grib1"
                                ? Keys{{"resolutionAndComponentFlags", "136"}}
                                : Keys{{"resolutionAndComponentFlags", "8"}, {"LaDInDegrees", "60"}};
    const FieldDefinition field = on_sample("polar_stereographic_pl_" + edition, polar_keys);
    EXPECT_TRUE(has_grid_components(open_record(stream_in("grib1"), field, {0, 0, 0, 0}))) << edition;
  }
  // A key of the georeference goes before the sample's.
  FieldDefinition field =
      on_sample("rotated_ll_pl_grib2", {{"uvRelativeToGrid", "1"}, {"angleOfRotationInDegrees", "15"}});
  field.georeference.keys = {{"uvRelativeToGrid", "0"}, {"angleOfRotation", "5"}};
  const Handle handle = open_record(stream_in("grib1"), field, {0, 0, 0, 0});
  EXPECT_EQ(handle.integer("uvRelativeToGrid"), 0);
  EXPECT_EQ(handle.number("angleOfRotationInDegrees"), 5);
}

TEST(grib1_fields, keys_of_the_stream_and_of_fields_give_grids_in_the_units_of_grib2) {
  const Keys whole{{"gridType", "regular_ll"},
                   {"latitudeOfFirstGridPoint", "5000000"},
                   {"longitudeOfFirstGridPoint", "7000000"},
                   {"iDirectionIncrement", "500000"},
                   {"jDirectionIncrement", "250000"},
                   {"shapeOfTheEarth", "6"}};
  FieldDefinition field = on_grid({});
  const RecordKey first{0, 0, 0, 0};
  const Handle theirs = open_record(stream_in("grib2", whole), field, first);
  expect_same_grid(open_record(stream_in("grib1", with_keys(whole, {{"centre", "98"}})), field, first),
                   theirs, "the stream's");
  field.keys = whole;
  const Handle own = open_record(stream_in("grib1", {{"centre", "98"}}), field, first);
  expect_same_grid(own, theirs, "the field's");
  EXPECT_EQ(own.integer("latitudeOfFirstGridPoint"), 5000);
  EXPECT_EQ(own.integer("centre"), 98);
}

TEST(grib1_fields, a_bitmap_has_at_most_16_megabytes) {
  FieldDefinition field = on_grid(small_grid());
  field.shape = {12000, 11185};
  EXPECT_TRUE(define(stream_in("grib1"), field).is_ok());
  field.missing = -99;
  field.bits = 1;
  expect_words(why_not(field), {"missing=", "134220000", "format=grib2"});
  // The longest bitmap is 16777214 octets long, since sections have an even number of them.
  field.shape = {1, 134217665};
  EXPECT_NE(why_not(field).find("missing="), std::string::npos);
  field.shape = {1, 134217664};
  EXPECT_EQ(why_not(field).find("missing="), std::string::npos) << "GRIB1 has no room for the row's points";
}

FieldDefinition statistic_in(const std::string& name, Process process, const Keys& keys) {
  FieldDefinition field = field_of(name);
  field.statistic.process = process;
  field.statistic.since = Statistic::Since::last_output;
  field.keys = keys;
  return field;
}

TEST(grib1_fields, fields_that_differ_in_their_statistic_alone_are_found_again) {
  const Keys temperature{{"paramId", "130"}};
  const auto codec = codec_of(stream_in("grib1", {{"centre", "98"}}));
  for (const auto& [name, process] :
       {std::pair("tmax", Process::maximum), std::pair("t", Process::instant),
        std::pair("tmean", Process::average), std::pair("tsum", Process::accum)}) {
    const Status status = codec->define(statistic_in(name, process, temperature));
    ASSERT_TRUE(status.is_ok()) << status.text();
  }
  const auto encoder = codec->encoder();
  const auto finder = codec->finder();
  for (int field = 0; field < 4; ++field) {
    const RecordKey key{field, 0, 12 * hour, field == 1 ? 0 : 6 * hour};
    std::vector<double> values = wave(60);
    ByteVector message;
    ASSERT_TRUE(encoder->encode(key, reinterpret_cast<std::byte*>(values.data()), 60, message).is_ok());
    const ReadBytes read = [&](std::span<std::byte> to, Bytes offset) -> Result<Bytes> {
      const auto there = std::clamp<Bytes>(std::ssize(message) - offset, 0, std::ssize(to));
      std::copy_n(message.begin() + offset, there, to.begin());
      return there;
    };
    const Result<FoundRecord> found = finder->find(read, 0, std::ssize(message));
    ASSERT_TRUE(found.is_ok()) << found.status().text();
    EXPECT_EQ(found->state, FoundRecord::State::whole) << field;
    ASSERT_TRUE(found->has_key) << field;
    EXPECT_EQ(found->key.field, field);
    EXPECT_EQ(found->key.lead, 12 * hour);
    EXPECT_EQ(found->key.interval_start, key.interval_start) << field;
    EXPECT_EQ(found->length, std::ssize(message));
  }
}

TEST(grib1_fields, fields_that_records_do_not_tell_apart_are_refused) {
  const Keys temperature{{"paramId", "130"}};
  const auto codec = codec_of(stream_in("grib1", {{"centre", "98"}}));
  ASSERT_TRUE(codec->define(statistic_in("tmax", Process::maximum, temperature)).is_ok());
  const Status same = codec->define(statistic_in("tmin", Process::minimum, temperature));
  EXPECT_EQ(same.code(), Code::format);
  expect_words(same.text(), {"'tmin'", "'tmax'", "mn2t", "another stream"});
  // The refused field has left nothing behind: others go on with its number.
  FieldDefinition higher = statistic_in("tmin", Process::minimum, temperature);
  higher.levels = {"isobaricInhPa", {850, 500}, {}, {}};
  EXPECT_TRUE(codec->define(higher).is_ok());
  FieldDefinition overlaps = higher;
  overlaps.levels.values = {300, 500};
  EXPECT_FALSE(codec->define(overlaps).is_ok()) << "one level of two is the same";
  overlaps.levels.values = {300, 200};
  EXPECT_TRUE(codec->define(overlaps).is_ok());
  // A field that was adopted counts, too.
  const auto other = codec_of(stream_in("grib1", {{"centre", "98"}}));
  const FieldDefinition first = statistic_in("tmax", Process::maximum, temperature);
  ASSERT_TRUE(other->adopt(first, codec->prepared(0)).is_ok());
  EXPECT_FALSE(other->define(statistic_in("tmin", Process::minimum, temperature)).is_ok());
}

}  // namespace
}  // namespace tailrace::codec::test
