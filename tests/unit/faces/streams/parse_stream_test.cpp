// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>

#include "faces/streams/definition/parse.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "support/bucket_service.hpp"

namespace tailrace::streams {
namespace {

using codec::Keys;

StreamRequest parsed(std::string_view options, std::string_view pattern = "fc+{lead:03h}") {
  Result<StreamRequest> request = parse_stream(pattern, options);
  EXPECT_TRUE(request.is_ok()) << request.status().text();
  return request.is_ok() ? *request : StreamRequest{};
}

std::string error_of(std::string_view options, std::string_view pattern = "fc+{lead:03h}") {
  const Result<StreamRequest> request = parse_stream(pattern, options);
  if (request.is_ok()) return "no error";
  EXPECT_EQ(request.status().code(), Code::settings);
  return request.status().text();
}

bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Returns one text of each format of the registry, as errors list them: "a, b or c". Formats for which
/// `of` returns nothing are left out, as are the names of formats that are not here.
template <typename Of>
std::string list_of_formats(Of&& of) {
  std::vector<std::string> each;
  for (const formats::Format& format : formats::all()) {
    if (format.asked_as.empty() && !of(format).empty()) each.push_back(of(format));
  }
  std::string list = each.front();
  for (std::size_t i = 1; i < each.size(); ++i) list += (i + 1 < each.size() ? ", " : " or ") + each[i];
  return list;
}

TEST(parse_stream, the_target_programs_options_are_taken) {
  const StreamRequest request =
      parsed("base=2026-03-01T00:00Z packing=ccsds centre=98", "fc_{base:%Y%m%d%H}+{lead:03h}.grib2");
  EXPECT_EQ(request.definition.base, (DateTime{2026, 3, 1, 0, 0, 0}));
  EXPECT_EQ(request.definition.packing, "ccsds");
  EXPECT_EQ(request.definition.format, "grib2");
  EXPECT_EQ(request.definition.keys, (Keys{{"centre", "98"}}));
  EXPECT_EQ(*request.pattern.expand(3600, request.context()), "fc_2026030100+001.grib2");
}

TEST(parse_stream, times_may_have_another_unit_or_be_those_of_the_model) {
  const StreamRequest fine =
      parsed("lead_unit=ms time_units=s time_name=Times base=2026-03-01 interval=500ms", "a.nc");
  EXPECT_EQ(fine.definition.time.number(667), 0.667);
  EXPECT_EQ(fine.definition.time.name(), "Times");
  EXPECT_EQ(fine.options.interval->leads, 500);
  const StreamRequest model = parsed("time=model", "a{time:06.1f}.nc");
  EXPECT_TRUE(model.definition.time.is_model());
  EXPECT_EQ(model.definition.time.units(model.definition.base), "s");
  EXPECT_EQ(parsed("base=2026-03-01 time_units=days time=model", "a.nc").definition.time.units({2026, 3, 1}),
            "days since 2026-03-01 00:00:00");
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 lead_unit=fortnight"), "ns, us, ms, s, min, h, d"));
  EXPECT_TRUE(mentions(error_of("time=model lead_unit=ms", "a.nc"), "time_units="));
  EXPECT_TRUE(mentions(error_of("time=model interval=1h", "a.nc"), "lead_unit="));
  EXPECT_TRUE(
      mentions(error_of("time=model time_units='Alfven times' base=2026-03-01", "a.nc"), "no unit of time"));
  EXPECT_TRUE(mentions(error_of("time=model", "a{lead:h}.nc"), "{time:08.3f}"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01", "a{time}.nc"), "time=model"));
  EXPECT_TRUE(mentions(error_of("time_name=' ' base=2026-03-01", "a.nc"), "empty"));
  EXPECT_TRUE(mentions(error_of("time=model calendar=noleap", "a.nc"), "calendar="));
}

TEST(parse_stream, without_options_has_its_defaults) {
  const StreamRequest request = parsed("base=2026-03-01");
  EXPECT_EQ(request.definition.packing, "simple");
  EXPECT_EQ(request.definition.calendar, Calendar::proleptic_gregorian);
  EXPECT_FALSE(request.definition.member.has_value());
  EXPECT_FALSE(request.definition.members.has_value());
  EXPECT_EQ(request.options.existing, Existing::replace);
  EXPECT_EQ(request.options.policy.wait_for_space_seconds, 0);
  EXPECT_EQ(request.options.policy.deadline_seconds, 0);
  EXPECT_EQ(request.options.ready_suffix, "");
  EXPECT_EQ(request.options.hook, "");
  EXPECT_FALSE(request.options.manifest.has_value());
}

TEST(parse_stream, every_documented_option_is_taken) {
  const StreamRequest request = parsed(
      "base=\"2026-02-30 06\" calendar=360_day format=grib2 packing=ccsds member=7 members=51 "
      "existing=continue on_full=wait:10m "
      "deadline=90s ready=.ready hook='mail -s \"done\" me' manifest=on same_lead=keep empty_step=keep "
      "method=mpiio mpiio_hints=\"cb_nodes=2, romio_cb_write=enable\" "
      "keys=\"centre=98, subCentre=1\" "
      "tablesVersion=27");
  EXPECT_EQ(request.definition.calendar, Calendar::day_360);
  EXPECT_EQ(request.definition.base, (DateTime{2026, 2, 30, 6, 0, 0}));
  EXPECT_EQ(request.definition.member, 7);
  EXPECT_EQ(request.definition.members, 51);
  EXPECT_EQ(request.options.existing, Existing::resume);
  EXPECT_EQ(request.options.policy.wait_for_space_seconds, 600);
  EXPECT_EQ(request.options.policy.deadline_seconds, 90);
  EXPECT_EQ(request.options.ready_suffix, ".ready");
  EXPECT_EQ(request.options.hook, "mail -s \"done\" me");
  EXPECT_EQ(request.options.manifest, true);
  EXPECT_TRUE(request.options.keeps_same_lead);
  EXPECT_TRUE(request.options.keeps_empty_steps);
  EXPECT_EQ(request.options.method, "mpiio");
  EXPECT_EQ(request.options.hints, "cb_nodes=2, romio_cb_write=enable");
  EXPECT_EQ(request.definition.keys, (Keys{{"centre", "98"}, {"subCentre", "1"}, {"tablesVersion", "27"}}));
  EXPECT_EQ(parsed("base=2026-03-01 existing=fail on_full=fail").options.existing, Existing::fail);
  EXPECT_EQ(parsed("base=2026-03-01 existing=overwrite").options.existing, Existing::overwrite);
}

TEST(parse_stream, an_interval_is_a_duration_or_months_of_a_day_that_each_month_has) {
  EXPECT_FALSE(parsed("base=2026-03-31").options.interval.has_value());
  EXPECT_EQ(parsed("base=2026-03-31 interval=1h").options.interval->leads, 3600);
  EXPECT_EQ(parsed("base=2026-03-28 interval=1mo").options.interval->months, 1);
  EXPECT_TRUE(mentions(error_of("base=2026-03-31 interval=1mo"),
                       "2026-03-31T00:00:00Z is on a day that some months lack"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 interval=soon"), "months and years are 1mo and 1y"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 interval=0"), "an interval of 0 s"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 interval=1h same_lead=keep"), "exclude each other"));
}

TEST(parse_stream, the_calendar_holds_for_the_base_wherever_it_stands) {
  EXPECT_EQ(parsed("base=2026-02-30 calendar=360_day").definition.base.day, 30);
  EXPECT_TRUE(mentions(error_of("base=2026-02-30"),
                       "base=2026-02-30: \"2026-02-30\" does not exist in the calendar"));
}

TEST(parse_stream, a_missing_base_is_an_error_that_shows_one) {
  EXPECT_TRUE(mentions(error_of(""), "base= is missing; give the base time, as base=2026-03-01T00:00Z"));
}

TEST(parse_stream, errors_name_the_stream) {
  EXPECT_TRUE(mentions(error_of(""), "stream \"fc+{lead:03h}\""));
}

TEST(parse_stream, conventions_are_taken_by_all_formats_and_are_no_key_of_grib) {
  EXPECT_EQ(parsed("base=2026-03-01 conventions=weather format=cdf5").definition.keys,
            (Keys{{"conventions", "weather"}}));
  EXPECT_TRUE(parsed("base=2026-03-01 conventions=weather format=grib2").definition.keys.empty());
  EXPECT_TRUE(parsed("base=2026-03-01 conventions=none format=raw").definition.keys.empty());
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 conventions=CF"), "may be none, weather"));
}

TEST(parse_stream, a_misspelt_reserved_key_is_no_grib_key) {
  const std::string text = error_of("base=2026-03-01 exsiting=fail");
  EXPECT_TRUE(mentions(text, "unknown key \"exsiting\"; did you mean \"existing\"?")) << text;
  EXPECT_TRUE(mentions(text, "write keys=\"exsiting=fail\"")) << text;
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 pakcing=ccsds"), "did you mean \"packing\"?"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 number=7"), "did you mean \"member\"?"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 Base=1"), "did you mean \"base\"?"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 key=1"), "did you mean \"keys\"?"));
  EXPECT_EQ(parsed("base=2026-03-01 keys=\"number=7\"").definition.keys, (Keys{{"number", "7"}}));
}

TEST(parse_stream, a_key_of_tr_stream_define_is_sent_there) {
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 accuracy=1"), "\"accuracy\" belongs to tr_stream_define"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 acuracy=1"),
                       "did you mean \"accuracy\", which belongs to tr_stream_define?"));
}

TEST(parse_stream, an_unknown_key_names_the_option_that_was_meant_and_who_has_it) {
  const auto error = [](const std::string& option, const char* name = "x.nc") {
    return error_of("base=2026-03-01 " + option, name);
  };
  EXPECT_TRUE(
      mentions(error("compres=deflate"), "did you mean \"compress\", which belongs to format=netcdf4?"));
  EXPECT_TRUE(mentions(error("compres=deflate", "x.nc4"), "did you mean \"compress\"?"));
  EXPECT_TRUE(mentions(error("compres=deflate", "x.grib2"), "did you mean \"compress\""));
  EXPECT_TRUE(
      mentions(error("statistc=mean"), "did you mean \"statistic\", which belongs to tr_stream_define?"));
  EXPECT_TRUE(mentions(error("existing=append"), "did you mean \"continue\"?"));
  EXPECT_FALSE(mentions(error("shuffle=on"), "did you mean")) << error("shuffle=on");
  EXPECT_TRUE(mentions(error("method=writr"), "unknown method \"writr\"; did you mean \"writer\"?"));
  EXPECT_TRUE(mentions(error("method=outo"), "did you mean \"auto\"?"));
  EXPECT_EQ(parsed("base=2026-03-01 format=raw method=auto").options.method, "auto");
  EXPECT_TRUE(mentions(error("mpiio_hints=cb_nodes"), "\"cb_nodes\", which is no hint"));
  EXPECT_TRUE(mentions(error("mpiio_hints=\"\""), "there is no hint"));
  EXPECT_TRUE(mentions(error("units=K"), "\"units\" belongs to tr_stream_define")) << error("units=K");
  EXPECT_TRUE(mentions(error("comment=dry"), "given as attributes=\"comment=dry\"")) << error("comment=dry");
}

TEST(parse_stream, keys_that_stand_by_themselves_and_a_format_that_nobody_asked_for_are_known) {
  const StreamRequest bare = parsed("base=2026-03-01 centr=98 keys=\"number=7\" packing=ccsds", "out.dat");
  EXPECT_EQ(bare.open_keys, std::vector<std::string>{"centr"});
  EXPECT_TRUE(bare.has_default_format);
  EXPECT_TRUE(mentions(with_default_format(bare, {Code::format, "no grid"}).text(),
                       "no grid (the stream writes grib2, since \"out.dat\" promises no format"));
  EXPECT_FALSE(parsed("base=2026-03-01", "out.grib2").has_default_format);
  EXPECT_FALSE(parsed("base=2026-03-01 format=grib2", "out.dat").has_default_format);
}

TEST(parse_stream, grib_keys_of_daily_use_pass) {
  for (const std::string_view key : {"centre",
                                     "subCentre",
                                     "date",
                                     "step",
                                     "stream",
                                     "type",
                                     "class",
                                     "expver",
                                     "edition",
                                     "Ni",
                                     "tablesVersion",
                                     "localTablesVersion",
                                     "productionStatusOfProcessedData",
                                     "packingType",
                                     "bitsPerValue",
                                     "generatingProcessIdentifier",
                                     "year",
                                     "hour",
                                     "typeOfProcessedData",
                                     "unit"}) {
    const std::string options = "base=2026-03-01 " + std::string(key) + "=1";
    EXPECT_EQ(parsed(options).definition.keys, (Keys{{std::string(key), "1"}})) << key;
  }
}

TEST(parse_stream, raw_files_have_no_grib_keys_and_no_packing) {
  EXPECT_EQ(parsed("base=2026-03-01 format=raw").definition.format, "raw");
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 format=raw centre=98"), "unknown key \"centre\""));
  EXPECT_TRUE(
      mentions(error_of("base=2026-03-01 format=raw centre=98"), "GRIB keys are taken with format=grib2"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 format=raw keys=\"a=1\""),
                       "keys= belongs to format=grib2, grib1; format=raw"));
  EXPECT_TRUE(
      mentions(error_of("base=2026-03-01 format=raw packing=simple"), "packing= belongs to format=grib2"));
}

TEST(parse_stream, bad_values_name_their_key) {
  const auto error = [](const std::string& option) { return error_of("base=2026-03-01 " + option); };
  EXPECT_TRUE(
      mentions(error("format=grib3"), "format=grib3: unknown value \"grib3\"; did you mean \"grib2\"?"));
  EXPECT_TRUE(mentions(error("packing=cssds"), "did you mean \"ccsds\"?"));
  EXPECT_TRUE(mentions(error("packing=second_order"),
                       "belongs to format=grib1; format=grib2 takes packing=simple or ccsds"));
  EXPECT_TRUE(mentions(error("packing=ccsds format=grib1"),
                       "belongs to format=grib2; format=grib1 takes packing=simple or second_order"));
  EXPECT_TRUE(
      mentions(error("index=wgrib2 format=grib1"), "format=grib2 alone; format=grib1 takes ecmwf or cfgrib"));
  EXPECT_TRUE(mentions(error("existing=append"), "It may be replace, continue, fail"));
  EXPECT_TRUE(mentions(error("on_full=wait"), "wait:DURATION"));
  EXPECT_TRUE(mentions(error("on_full=wait:"), "is no duration"));
  EXPECT_TRUE(mentions(error("on_full=wait:0"), "0 s"));
  EXPECT_TRUE(mentions(error("deadline=5"), "deadline=5: \"5\" is no duration"));
  EXPECT_TRUE(mentions(error("ready=a/b"), "no suffix"));
  EXPECT_TRUE(mentions(error("ready=\"\""), "no suffix"));
  EXPECT_TRUE(mentions(error("hook=' '"), "the command is empty"));
  EXPECT_TRUE(mentions(error("member=-1"), "member=-1: -1 is out of range"));
  EXPECT_TRUE(mentions(error("member=8 members=7"), "does not exist"));
  EXPECT_TRUE(mentions(error("members=7"), "members= without member="));
  EXPECT_TRUE(mentions(error("members=0 member=0"), "out of range"));
  EXPECT_TRUE(mentions(error("calendar=gregorain"), "did you mean \"gregorian\"?"));
  EXPECT_TRUE(mentions(error("keys=\"a=1, a=2\""), "given twice"));
  EXPECT_TRUE(mentions(error("keys=\"a=1\" a=2"), "\"a\" is given twice"));
  EXPECT_TRUE(mentions(error("keys=a"), "expected key=value"));
  EXPECT_TRUE(mentions(error("manifest=x"), "neither on nor off"));
  EXPECT_TRUE(mentions(error("a/b=1"), "is no name of a key"));
  EXPECT_TRUE(mentions(error("base=2026-03-02"), "given twice"));
}

TEST(parse_stream, a_format_that_is_not_there_is_named_in_options_and_in_names) {
  EXPECT_TRUE(
      mentions(error_of("base=2026-03-01 format=netcdf"), "format=netcdf: NetCDF is called cdf5 here"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 format=nc4"),
                       "NetCDF-4 is called netcdf4 here: streams are written in " +
                           list_of_formats([](const auto& format) { return std::string(format.name); })));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 format=hdf5"), "called netcdf4 here"));
  for (const char* const name : {"fc.NC4", "out/fc.h5", "fc.hdf5"})
    EXPECT_EQ(parsed("base=2026-03-01", name).definition.format, "netcdf4");
  EXPECT_EQ(parsed("base=2026-03-01", "fc_{lead:03h}.NC").definition.format, "cdf5");
  for (const char* const name : {"fc.grb1", "fc.GRIB1"})
    EXPECT_EQ(parsed("base=2026-03-01", name).definition.format, "grib1");
  for (const char* const name : {"fc.grb", "fc.grib"})
    EXPECT_EQ(parsed("base=2026-03-01", name).definition.format, "grib2");
  const std::string error = error_of("base=2026-03-01", "fc.ncdf");
  const std::string endings = list_of_formats([](const auto& format) {
    return format.endings.empty() ? std::string() : std::string(format.endings.front());
  });
  const std::string options =
      list_of_formats([](const auto& format) { return "format=" + std::string(format.name); });
  EXPECT_TRUE(mentions(error, "end it in " + endings + ", or say " + options + " if")) << error;
  EXPECT_TRUE(mentions(error_of("base=2026-03-01", "out.ncdf"),
                       "ends in .ncdf promises NetCDF, which is called cdf5"));
  EXPECT_TRUE(
      mentions(error_of("base=2026-03-01", "out.netcdf4"), "promises NetCDF-4, which is called netcdf4"));
  EXPECT_EQ(parsed("base=2026-03-01 format=raw", "fc.grb1").definition.format, "raw");
  EXPECT_EQ(parsed("base=2026-03-01", "fc.nc.grib2").definition.format, "grib2");
  EXPECT_EQ(parsed("base=2026-03-01", "fc_{lead:03h}.zarr").definition.format, "zarr");
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 format=raw", "fc.zarr"), "promises a directory"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01 format=zarr", "fc"), "whose name ends in .zarr"));
  EXPECT_TRUE(mentions(error_of("base=2026-03-01", "OCEAN.ZARR"),
                       "ends in .zarr in small letters, since other readers look for these: name it "
                       "\"OCEAN.zarr\""));
  EXPECT_EQ(parsed("base=2026-03-01", "fc").definition.format, "grib2");
}

TEST(parse_stream, names_of_whole_objects_are_for_formats_that_write_stores) {
  storage::keyed_places();
  EXPECT_EQ(parsed("base=2026-03-01", "keyed://run/fc_{valid:%Y%m}.zarr").definition.format, "zarr");
  for (const formats::Format& format : formats::all()) {
    if (format.store != nullptr || !format.asked_as.empty()) continue;
    const std::string text = error_of(cat("base=2026-03-01 format=", format.name), "keyed://run/fc.data");
    EXPECT_TRUE(mentions(text, cat("format=", format.name, " writes files piece by piece"))) << text;
    EXPECT_TRUE(mentions(text, "choose format=zarr, or a name in a file system")) << text;
  }
}

TEST(parse_stream, options_that_only_some_formats_have_are_explained_with_the_others) {
  const auto explains = [](const std::vector<OptionInfo>& infos, std::string_view key) {
    return std::ranges::count(infos, key, &OptionInfo::key) == 1;
  };
  for (const formats::Format& format : formats::all()) {
    for (const codec::FormatOption& option : format.options.stream)
      EXPECT_TRUE(explains(stream_option_infos(), option.key)) << format.name << ": " << option.key;
    for (const codec::FormatOption& option : format.options.field)
      EXPECT_TRUE(explains(field_option_infos(), option.key)) << format.name << ": " << option.key;
  }
}

TEST(parse_stream, the_option_format_explains_the_formats_as_the_registry_does) {
  const std::vector<OptionInfo> infos = stream_option_infos();
  const std::string text(std::ranges::find(infos, "format", &OptionInfo::key)->meaning);
  EXPECT_EQ(text.find(formats::about_formats() + "; or the name of [an encoder of your own]"), 0U) << text;
  EXPECT_TRUE(mentions(text, "the end of the pattern decides: " + formats::about_endings() + ".")) << text;
}

TEST(parse_stream, a_pattern_with_member_needs_one) {
  EXPECT_TRUE(mentions(error_of("base=2026-03-01", "fc_{member:02}"), "no member= is given"));
  EXPECT_EQ(parsed("base=2026-03-01 member=0", "fc_{member:02}").definition.member, 0);
}

TEST(parse_stream, a_bad_pattern_is_reported_first) {
  EXPECT_TRUE(mentions(error_of("nonsense", "fc_{lead}"), "needs its unit"));
}

TEST(parse_georeference, takes_a_sample_and_keys) {
  const Result<GeoreferenceRequest> sample = parse_georeference("sample=climate.grib2 Ni=468");
  ASSERT_TRUE(sample.is_ok()) << sample.status().text();
  EXPECT_EQ(sample->sample_file, "climate.grib2");
  EXPECT_EQ(sample->keys, (Keys{{"Ni", "468"}}));
  const Result<GeoreferenceRequest> keys = parse_georeference("keys=\"gridType=rotated_ll, Ni=10\"");
  ASSERT_TRUE(keys.is_ok());
  EXPECT_EQ(keys->keys, (Keys{{"gridType", "rotated_ll"}, {"Ni", "10"}}));
}

TEST(parse_georeference, nothing_and_a_slip_are_errors) {
  EXPECT_TRUE(mentions(parse_georeference("").status().text(), "give sample=FILE"));
  EXPECT_TRUE(mentions(parse_georeference("smaple=x").status().text(), "did you mean \"sample\"?"));
  EXPECT_FALSE(parse_georeference("sample=\"\"").is_ok());
}

}  // namespace
}  // namespace tailrace::streams
