// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>

#include "faces/streams/definition/parse.hpp"

namespace tailrace::streams {
namespace {

using codec::Keys;
using codec::Process;
using Since = codec::Statistic::Since;

constexpr int kF32 = static_cast<int>(ElementType::f32);
const std::vector<Index> kShape{378, 468};

FieldRequest parsed(std::string_view options, std::string_view format = "grib2") {
  Result<FieldRequest> request = parse_field("t", kF32, kShape, options, format);
  EXPECT_TRUE(request.is_ok()) << request.status().text();
  return request.is_ok() ? *request : FieldRequest{};
}

std::string error_of(std::string_view options, std::string_view format = "grib2") {
  const Result<FieldRequest> request = parse_field("t", kF32, kShape, options, format);
  if (request.is_ok()) return "no error";
  EXPECT_EQ(request.status().code(), Code::settings);
  return request.status().text();
}

bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(parse_field, the_target_programs_options_are_taken) {
  const FieldRequest t = parsed("levels=hybrid:1-40 vertical=vcoord.txt accuracy=0.01");
  EXPECT_EQ(t.definition.name, "t");
  EXPECT_EQ(t.definition.type, ElementType::f32);
  EXPECT_EQ(t.definition.shape, kShape);
  EXPECT_EQ(t.definition.levels.type, "hybrid");
  ASSERT_EQ(t.definition.levels.values.size(), 40U);
  EXPECT_EQ(t.definition.levels.values.front(), 1);
  EXPECT_EQ(t.definition.levels.values.back(), 40);
  EXPECT_EQ(t.vertical_file, "vcoord.txt");
  EXPECT_EQ(t.definition.accuracy, 0.01);
  EXPECT_EQ(t.allocation.levels, 40);
  EXPECT_EQ(t.allocation.level_axis, 0);
  const FieldRequest tp = parsed("levels=surface accuracy=0.01 statistic=accum since=start");
  EXPECT_EQ(tp.definition.levels.type, "surface");
  EXPECT_EQ(tp.definition.levels.values, (std::vector<double>{0}));
  EXPECT_EQ(tp.definition.statistic.process, Process::accum);
  EXPECT_EQ(tp.definition.statistic.since, Since::start);
  EXPECT_TRUE(tp.definition.statistic.write_at_zero);
  EXPECT_EQ(tp.allocation.levels, 1);
  EXPECT_EQ(tp.allocation.level_axis, -1);
}

TEST(parse_field, without_options_is_one_surface_field) {
  const FieldRequest request = parsed("");
  EXPECT_EQ(request.definition.levels.type, "surface");
  EXPECT_FALSE(request.definition.accuracy || request.definition.relative_accuracy ||
               request.definition.bits || request.definition.missing);
  EXPECT_EQ(request.definition.statistic.process, Process::instant);
  EXPECT_EQ(request.allocation.level_axis, -1);
  EXPECT_EQ(request.allocation.nproma, 0);
  EXPECT_TRUE(request.allocation.halo.empty());
}

TEST(parse_field, levels_have_short_names_and_any_type) {
  const auto levels = [](const std::string& text) { return parsed("levels=" + text).definition.levels; };
  EXPECT_EQ(levels("pressure:1000,850,500").type, "isobaricInhPa");
  EXPECT_EQ(levels("pressure:1000,850,500").values, (std::vector<double>{1000, 850, 500}));
  EXPECT_EQ(levels("height:2").type, "heightAboveGround");
  EXPECT_EQ(levels("model:40-1").type, "hybrid");
  EXPECT_EQ(levels("model:40-1").values.front(), 40);
  EXPECT_EQ(levels("msl").type, "meanSea");
  EXPECT_EQ(levels("depthBelowLandLayer:0,7,28").type, "depthBelowLandLayer");
  EXPECT_EQ(levels("meanSea").values, (std::vector<double>{0}));
  EXPECT_EQ(levels("depthBelowLand:0.07").values, (std::vector<double>{0.07}));
  EXPECT_EQ(levels("hybrid:7").values, (std::vector<double>{7}));
}

TEST(parse_field, levels_without_sense_are_errors) {
  EXPECT_TRUE(mentions(error_of("levels=hybrid"), "hybrid needs its levels, as hybrid:1-40"));
  EXPECT_TRUE(mentions(error_of("levels=pressure"), "needs its levels"));
  EXPECT_TRUE(mentions(error_of("levels=:1"), "names no type of level"));
  EXPECT_TRUE(mentions(error_of("levels=hybrid:1,2,1"), "level 1 is named twice"));
  EXPECT_TRUE(mentions(error_of("levels=hybrid:"), "is no number"));
  EXPECT_TRUE(mentions(error_of("levels=hybrid:1-1000000000"), "longer than"));
  EXPECT_TRUE(mentions(error_of("levels=1-40"), "names no type of level"));
}

TEST(parse_field, one_level_has_no_axis_unless_one_is_named) {
  EXPECT_EQ(parsed("levels=height:2").allocation.level_axis, -1);
  EXPECT_EQ(parsed("levels=height:2 level_axis=0").allocation.level_axis, 0);
  EXPECT_EQ(parsed("levels=hybrid:1-3 level_axis=1").allocation.level_axis, 1);
  EXPECT_EQ(parsed("levels=hybrid:1-3 level_axis=2").allocation.level_axis, 2);
  EXPECT_TRUE(mentions(error_of("levels=hybrid:1-3 level_axis=4"),
                       "level_axis=4: 4 is out of range; it may be 0 to 3"));
  EXPECT_TRUE(mentions(error_of("level_axis=-1"), "out of range"));
}

TEST(parse_field, nproma_blocks_exclude_an_axis) {
  const FieldRequest request = parsed("levels=hybrid:1-3 nproma=16");
  EXPECT_EQ(request.allocation.nproma, 16);
  EXPECT_EQ(request.allocation.levels, 3);
  EXPECT_TRUE(mentions(error_of("nproma=0"), "out of range"));
  EXPECT_TRUE(
      mentions(error_of("levels=hybrid:1-3 nproma=16 level_axis=0"), "level_axis= has no meaning with it"));
}

TEST(parse_field, one_precision_only) {
  EXPECT_EQ(parsed("relative_accuracy=1e-4").definition.relative_accuracy, 1e-4);
  EXPECT_EQ(parsed("bits=24").definition.bits, 24);
  EXPECT_TRUE(mentions(error_of("accuracy=1 bits=16"), "exclude each other"));
  EXPECT_TRUE(mentions(error_of("accuracy=1 relative_accuracy=1"), "exclude each other"));
  for (const std::string_view wrong :
       {"accuracy=0", "accuracy=-1", "accuracy=nan", "accuracy=inf", "accuracy=x", "bits=0", "bits=33",
        "bits=1.5", "relative_accuracy=0"}) {
    EXPECT_NE(error_of(wrong), "no error") << wrong;
  }
}

TEST(parse_field, accuracy_auto_keeps_a_share_of_the_information) {
  const codec::FieldDefinition field = parsed("accuracy=auto").definition;
  EXPECT_EQ(field.information, 0.99);
  EXPECT_FALSE(field.accuracy);
  EXPECT_EQ(parsed("information=0.9 accuracy=auto").definition.information, 0.9);
  EXPECT_EQ(parsed("accuracy=auto information=1").definition.information, 1);
  EXPECT_FALSE(parsed("accuracy=0.01").definition.information);
  for (const std::string_view alone :
       {"information=0.99", "information=0.99 accuracy=0.01", "information=0.9 bits=12"})
    EXPECT_TRUE(mentions(error_of(alone), "give accuracy=auto")) << error_of(alone);
  for (const std::string_view wrong :
       {"information=0", "information=1.1", "information=-1", "information=nan", "information=x"})
    EXPECT_NE(error_of(std::string("accuracy=auto ").append(wrong)), "no error") << wrong;
  EXPECT_TRUE(mentions(error_of("accuracy=auto bits=16"), "exclude each other"));
  EXPECT_TRUE(mentions(error_of("accuracy=auto", "raw"), "accuracy= belongs to format=grib2"));
  EXPECT_TRUE(mentions(error_of("time=none accuracy=auto", "cdf5"), "leave out accuracy="));
}

TEST(parse_field, layers_have_a_bottom_for_each_level_or_one_for_all) {
  const auto bottoms = [](const std::string& text) { return parsed(text).definition.levels.bottoms; };
  EXPECT_EQ(bottoms("levels=depthBelowLandLayer:0,0.1 bottom=0.1,0.4"), (std::vector<double>{0.1, 0.4}));
  EXPECT_EQ(bottoms("bottom=0 levels=heightAboveGroundLayer:6000,3000"), (std::vector<double>{0, 0}));
  EXPECT_TRUE(bottoms("levels=height:2").empty());
  EXPECT_TRUE(mentions(error_of("levels=depthBelowLandLayer:0,0.1 bottom=1,2,3"), "each of the 2 levels"));
}

TEST(parse_field, missing_may_be_any_number) {
  EXPECT_EQ(parsed("missing=-9999").definition.missing, -9999);
  EXPECT_EQ(parsed("missing=1e20").definition.missing, 1e20);
  EXPECT_TRUE(std::isnan(*parsed("missing=nan").definition.missing));
}

TEST(parse_field, missing_of_integers_is_refused_where_it_would_be_rounded) {
  const auto of = [](std::string_view text) {
    return parse_field("t", static_cast<int>(ElementType::u64), kShape, text, "cdf5");
  };
  EXPECT_EQ(of("missing=9007199254740992")->definition.missing, 0x1p53);
  EXPECT_TRUE(mentions(of("missing=9007199254740993").status().text(), "give another number"));
  EXPECT_TRUE(mentions(of("missing=18446744073709551615").status().text(), "give another number"));
}

TEST(parse_field, statistics_and_their_intervals) {
  const auto statistic = [](std::string_view text) { return parsed(text).definition.statistic; };
  EXPECT_EQ(statistic("statistic=average since=last").process, Process::average);
  EXPECT_EQ(statistic("statistic=average since=last").since, Since::last_output);
  EXPECT_EQ(statistic("since=6h statistic=maximum").since, Since::duration);
  EXPECT_EQ(statistic("since=6h statistic=maximum").duration, 21600);
  EXPECT_EQ(statistic("statistic=minimum").since, Since::start);
  EXPECT_FALSE(statistic("statistic=accum at_zero=omit").write_at_zero);
  EXPECT_TRUE(statistic("statistic=accum at_zero=write").write_at_zero);
  EXPECT_TRUE(mentions(error_of("since=start"), "give statistic="));
  EXPECT_TRUE(mentions(error_of("statistic=instant since=start"), "no interval"));
  EXPECT_TRUE(mentions(error_of("at_zero=omit"), "at_zero is about"));
  EXPECT_TRUE(mentions(error_of("statistic=accum since=begin"), "neither start nor last nor a duration"));
  EXPECT_TRUE(mentions(error_of("statistic=accum since=0"), "neither start"));
  EXPECT_TRUE(mentions(error_of("statistic=mean"), "It may be instant, accum, average"));
  EXPECT_TRUE(mentions(error_of("statistic=accum at_zero=skip"), "It may be write, omit"));
}

TEST(parse_field, operations_over_dimensions) {
  using Operation = codec::Reduction::Operation;
  EXPECT_EQ(parsed("").definition.reduction.operation, Operation::none);
  EXPECT_EQ(parsed("over=mean:x").definition.reduction.operation, Operation::mean);
  EXPECT_EQ(parsed("over='maximum: levels, x'").definition.reduction.operation, Operation::maximum);
  EXPECT_EQ(parsed("over='maximum: levels, x'").lost, (std::vector<std::string>{"levels", "x"}));
  for (const char* wrong : {"over=x", "over=none:x", "over=median:x", "over=mean"})
    EXPECT_TRUE(mentions(error_of(wrong), "no operation over dimensions")) << wrong;
  EXPECT_TRUE(mentions(error_of("over=mean:"), "is empty"));
  EXPECT_TRUE(mentions(error_of("over=mean:x,x"), "named twice"));
  EXPECT_EQ(parsed("over=mean:x weights=area").weights, "area");
  EXPECT_EQ(parsed("weights=area over=sum:x").weights, "area");
  EXPECT_TRUE(mentions(error_of("weights=area"), "give over=, too"));
  EXPECT_TRUE(mentions(error_of("over=minimum:x weights=area"), "weights= change no minimum"));
}

TEST(parse_field, operations_and_what_the_program_says_of_the_statistic_itself) {
  EXPECT_FALSE(parsed("").operation.has_value());
  EXPECT_EQ(parsed("operation=mean").operation, operations::Operation::mean);
  EXPECT_EQ(parsed("operation=maximum").operation, operations::Operation::maximum);
  EXPECT_FALSE(parsed("operation=maximum").has_statistic);
  EXPECT_TRUE(parsed("operation=mean statistic=average").has_statistic);
  EXPECT_TRUE(parsed("operation=instant statistic=accum since=start").has_statistic);
  for (const char* own : {"operation=mean since=last", "since=6h operation=mean",
                          "operation=accum at_zero=omit", "operation=mean statistic=average since=1h"})
    EXPECT_TRUE(mentions(error_of(own), "a statistic that the program makes itself")) << own;
  EXPECT_NE(error_of("operation=average").find("operation="), std::string::npos);
}

TEST(parse_field, a_section_names_the_same_elements_in_many_ways) {
  const auto resolved = [](std::string_view options) {
    return resolve_section(parsed(options).section, {10, 7});
  };
  const layout::Section odd{{1, 0}, {8, 7}, {3, 1}};  // 1, 4 and 7
  for (const char* const text :
       {"section=1:10:3,:", "section=1:8:3,0:7:1", "section=1::3,:7", "section=1:9:3,::"})
    EXPECT_EQ(*resolved(text), odd) << text;
  EXPECT_EQ(*resolved("section=9:,2:3:5"), (layout::Section{{9, 2}, {10, 3}, {1, 1}}));
  EXPECT_EQ(*resolved("section=:,:"), std::nullopt);
  EXPECT_EQ(*resolved("section=0:10:1,::1"), std::nullopt);
  EXPECT_EQ(*resolved(""), std::nullopt);
  for (const char* const text :
       {"section=0:11,:", "section=10:,:", "section=3:3,:", "section=:", "section=:,:,:"})
    EXPECT_EQ(resolved(text).status().code(), Code::settings) << text;
  EXPECT_TRUE(
      mentions(resolved("section=0:11,:").status().text(),
               "0:11:1 of dimension 0 stops beyond its 10 elements; stop is exclusive (the array is 10 x 7"))
      << resolved("section=0:11,:").status().text();
  EXPECT_TRUE(mentions(error_of("section=5,:"), "give start:stop"));
  EXPECT_TRUE(mentions(error_of("section=-1:,:"), "below 0"));
  EXPECT_TRUE(mentions(error_of("section=::-1,:"), "stride"));
  EXPECT_TRUE(mentions(error_of("section=x:,:"), "x"));
  EXPECT_NE(error_of("section="), "no error");
}

TEST(parse_field, coefficients_belong_to_hybrid_levels_and_suffice_for_them) {
  EXPECT_EQ(parsed("levels=hybrid:1-2 coefficients=0,1,2,0,0.5,1").definition.levels.coefficients,
            (std::vector<double>{0, 1, 2, 0, 0.5, 1}));
  EXPECT_TRUE(mentions(error_of("levels=hybrid:1-2 coefficients=0,1,0,1"),
                       "there are 4 vertical coordinate coefficients; levels up to 2 need a and b at their "
                       "half levels, so at least 6"));
  EXPECT_TRUE(mentions(error_of("levels=hybrid:1-2 coefficients=0,1,2,0,1,2,3"), "there are 7"));
  EXPECT_TRUE(mentions(error_of("coefficients=0,1,0,1"), "belong to hybrid levels; these are surface"));
  EXPECT_TRUE(mentions(error_of("levels=surface vertical=x"), "belong to hybrid levels"));
  EXPECT_TRUE(mentions(error_of("levels=hybrid:1 coefficients=0,1,0,1 vertical=x"), "keep one"));
}

TEST(parse_field, a_misspelt_reserved_key_is_no_grib_key) {
  const std::string text = error_of("acuracy=0.01");
  EXPECT_TRUE(mentions(text, "field \"t\"")) << text;
  EXPECT_TRUE(mentions(text, "unknown key \"acuracy\"; did you mean \"accuracy\"?")) << text;
  EXPECT_TRUE(mentions(error_of("level=7"), "did you mean \"levels\"?"));
  EXPECT_TRUE(mentions(error_of("npromo=7"), "did you mean \"nproma\"?"));
  EXPECT_TRUE(mentions(error_of("packing=ccsds"), "\"packing\" belongs to tr_stream_create"));
}

TEST(parse_field, a_misspelt_type_of_level_is_no_axis_of_its_own) {
  EXPECT_TRUE(mentions(error_of("levels=hieght:850,500", "cdf5"),
                       "no type of level is called \"hieght\"; did you mean \"height\"?"));
  EXPECT_TRUE(mentions(error_of("levels=depthBelowland:1"), "did you mean \"depthBelowLand\"?"));
  EXPECT_EQ(parsed("levels=canopy:1,2", "cdf5").definition.levels.type, "canopy");
  EXPECT_EQ(parsed("levels=soilLayer:1", "cdf5").definition.levels.type, "soilLayer");
}

TEST(parse_field, values_and_attributes_of_other_programs_name_ours) {
  EXPECT_TRUE(mentions(error_of("statistic=mean"), "did you mean \"average\"?"));
  EXPECT_TRUE(mentions(error_of("operation=average"), "did you mean \"mean\"?"));
  EXPECT_TRUE(mentions(error_of("unit=K", "cdf5"), "did you mean \"units\"?")) << error_of("unit=K", "cdf5");
  EXPECT_TRUE(mentions(error_of("comment=dry", "cdf5"), "given as attributes=\"comment=dry\""));
  EXPECT_TRUE(mentions(error_of("fill_value=7", "cdf5"), "did you mean \"missing\"?"));
}

TEST(parse_field, usual_attributes_are_options_that_formats_without_attributes_leave_out) {
  const std::string usual = "long_name='2 m temperature' standard_name=air_temperature units=K";
  for (const std::string format : {"cdf5", "netcdf4", "zarr"})
    EXPECT_EQ(parsed(usual + " attributes=comment=dry", format).definition.attributes,
              (Keys{{"standard_name", "air_temperature"},
                    {"long_name", "2 m temperature"},
                    {"units", "K"},
                    {"comment", "dry"}}));
  for (const std::string format : {"grib2", "raw"}) {
    EXPECT_TRUE(parsed(usual, format).definition.attributes.empty());
    EXPECT_TRUE(parsed(usual, format).definition.keys.empty());
  }
  EXPECT_TRUE(mentions(error_of("units=K attributes=units=degC", "cdf5"), "\"units\" is given twice"));
}

TEST(parse_field, other_keys_are_grib_keys_in_their_order) {
  EXPECT_EQ(parsed("typeOfGeneratingProcess=2 keys=\"b=1, a=2\" c=3").definition.keys,
            (Keys{{"b", "1"}, {"a", "2"}, {"typeOfGeneratingProcess", "2"}, {"c", "3"}}));
}

TEST(parse_field, raw_fields_have_no_grib_keys) {
  EXPECT_TRUE(mentions(error_of("parameterNumber=3", "raw"), "unknown key \"parameterNumber\""));
  EXPECT_TRUE(mentions(error_of("keys=\"a=1\"", "raw"),
                       "keys= belongs to format=grib2, grib1; format=raw does not take it"));
  for (const std::string key : {"accuracy", "relative_accuracy", "bits"})
    EXPECT_TRUE(
        mentions(error_of(key + "=2", "raw"), key + "= belongs to format=grib2, grib1, cdf5, cdf2, cdf1"));
  EXPECT_EQ(parsed("levels=hybrid:1-3 level_axis=2", "raw").allocation.level_axis, 2);
}

TEST(parse_field, an_unknown_element_type_and_an_empty_name_are_arguments_that_are_wrong) {
  const Status type = parse_field("t", 77, kShape, "", "grib2").status();
  EXPECT_EQ(type.code(), Code::argument);
  EXPECT_TRUE(mentions(type.text(), "77 is no element type"));
  EXPECT_EQ(parse_field("", kF32, kShape, "", "grib2").status().code(), Code::argument);
  for (int known = 1; known <= 12; ++known) EXPECT_TRUE(parse_field("t", known, kShape, "", "grib2").is_ok());
}

codec::FieldDefinition hybrid(int levels) {
  return parsed("levels=hybrid:1-" + std::to_string(levels)).definition;
}

TEST(vertical, columns_become_all_a_and_then_all_b) {
  codec::FieldDefinition field = hybrid(2);
  const Status status = set_vertical(field, "# a  b\n0 0\n\n 100.5\t0.25 # middle\r\n0,1\n", "v.txt");
  ASSERT_TRUE(status.is_ok()) << status.text();
  EXPECT_EQ(field.levels.coefficients, (std::vector<double>{0, 100.5, 0, 0, 0.25, 1}));
}

TEST(vertical, lines_may_be_counted) {
  codec::FieldDefinition field = hybrid(2);
  ASSERT_TRUE(set_vertical(field, "0 0 0\n1 10 0.5\n2 0 1", "v.txt").is_ok());
  EXPECT_EQ(field.levels.coefficients, (std::vector<double>{0, 10, 0, 0, 0.5, 1}));
}

TEST(vertical, a_bad_line_is_named) {
  const auto error = [](std::string_view text) {
    codec::FieldDefinition field = hybrid(1);
    const Status status = set_vertical(field, text, "v.txt");
    EXPECT_EQ(status.code(), Code::settings) << text;
    return status.text();
  };
  EXPECT_TRUE(mentions(error("0 0\n# x\n1 x\n"), "vertical=v.txt, line 3: \"x\" is no number"));
  EXPECT_TRUE(mentions(error("0 0\n1\n"), "line 2: expected a and b, got 1 numbers"));
  EXPECT_TRUE(mentions(error("0 0 0\n1 1\n"), "line 2: expected n, a and b, got 2 numbers"));
  EXPECT_TRUE(mentions(error("0 0\n1 1 1\n"), "line 2: expected a and b, got 3 numbers"));
  EXPECT_TRUE(mentions(error("0 0 0\n2 1 1\n"), "line 2: level 2 does not follow level 0"));
  EXPECT_TRUE(mentions(error("0 0\n1 nan\n"), "is not finite"));
  EXPECT_TRUE(mentions(error("0 0\n"), "there are 2 vertical coordinate coefficients"));
  EXPECT_TRUE(mentions(error(""), "there are 0"));
}

}  // namespace
}  // namespace tailrace::streams
