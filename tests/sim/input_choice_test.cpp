// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// GRIB files with several records of one name, level and time: which one an input stream takes.
#include <gtest/gtest.h>

#include "../unit/formats/sources/messages.hpp"
#include "faces/input/choice.hpp"
#include "faces/input/files.hpp"
#include "faces/input/leads.hpp"
#include "faces/input/request.hpp"
#include "formats/opening/open.hpp"
#include "ground/base/text.hpp"

namespace tailrace::input {
namespace {

using sources::test::message;

constexpr std::int64_t lead_of_records = 12 * 3600;

codec::Keys statistic(const char* type, const char* steps, const char* pdt = "8") {
  return {{"productDefinitionTemplateNumber", pdt},
          {"stepType", type},
          {"shortName", "tp"},
          {"stepRange", steps}};
}

/// A file of messages on one grid, of the base time 2026-03-01T00.
class Records {
 public:
  explicit Records(const std::vector<codec::Keys>& all, int edition = 2) {
    std::vector<ByteVector> messages;
    for (const codec::Keys& each : all) {
      codec::Keys keys = sources::test::with({{"dataDate", "20260301"}, {"dataTime", "0"}});
      keys.insert(keys.end(), each.begin(), each.end());
      const auto number = static_cast<double>(messages.size());
      messages.push_back(message(edition, keys, sources::test::wave(sources::test::small_points, 1, number)));
    }
    target_ = sources::test::file_of("in", messages);
  }

  /// Returns the number of the record that a field takes, or -1 and the error.
  int find(const std::string& options, const std::string& name = "tp", std::int64_t lead = lead_of_records) {
    error = Status();
    const Result<FieldRequest> request = parse_field(name, 6, {6, 10}, options);
    if (!request.is_ok()) return fail(request.status());
    FieldDefinition field;
    field.name = request->in_file;
    field.levels = request->levels;
    field.takes_any_level = request->takes_any_level;
    field.shape = {6, 10};
    field.cut = {{0, 0}, {6, 10}};
    field.choice = request->choice;
    Packer out;
    field.pack(out);
    const ByteVector packed = out.take();
    Unpacker in(packed);
    field = FieldDefinition::unpack(in);  // as a server has it
    FilesDefinition files;
    files.pattern = "in";
    files.base = {2026, 3, 1, 0, 0, 0};
    const auto source = sources::open(target_, "in", "");
    if (!source.is_ok()) return fail(source.status());
    const OpenFile file(files, "in", *source);
    const auto record = file.find(files, field, lead, field.levels.values.front());
    if (!record.is_ok()) return fail(record.status());
    const auto& all = (*source)->inventory().records;
    return static_cast<int>(*record - all.data());
  }
  void expect_error(const std::string& options, const std::vector<std::string>& parts,
                    const std::string& name = "tp") {
    EXPECT_EQ(find(options, name), -1) << options;
    EXPECT_EQ(error.code(), Code::argument);
    for (const std::string& part : parts)
      EXPECT_NE(error.text().find(part), std::string::npos) << part << " is not in " << error.text();
  }

  Status error;

 private:
  int fail(const Status& status) {
    error = status;
    return -1;
  }
  std::shared_ptr<storage::Target> target_;
};

TEST(input_choice, records_that_differ_in_their_interval_are_never_taken_by_chance) {
  for (const int edition : {1, 2}) {
    SCOPED_TRACE(edition);
    codec::Keys long_one = statistic("accum", "0-12"), short_one = statistic("accum", "6-12");
    if (edition == 1) {
      long_one.erase(long_one.begin());
      short_one.erase(short_one.begin());
    }
    for (const bool is_turned : {false, true}) {
      Records file(is_turned ? std::vector{short_one, long_one} : std::vector{long_one, short_one}, edition);
      const int at_long = is_turned ? 1 : 0;
      file.expect_error("", {"'tp' at lead 43200 s 2 times", "interval=12h", "interval=6h", "as interval="});
      EXPECT_EQ(file.find("interval=12h"), at_long) << file.error.text();
      EXPECT_EQ(file.find("interval=6h"), 1 - at_long) << file.error.text();
      EXPECT_EQ(file.find("statistic=accum since=start"), at_long) << file.error.text();
      EXPECT_EQ(file.find("statistic=accum since=6h"), 1 - at_long) << file.error.text();
      file.expect_error("interval=3h", {"but not with interval=3h", "interval=12h", "interval=6h"});
    }
  }
}

TEST(input_choice, records_of_a_moment_and_of_an_interval_are_told_apart) {
  const codec::Keys moment{{"shortName", "t"}, {"step", "12"}};
  codec::Keys mean = statistic("avg", "0-12");
  mean[2].second = "t";
  Records file({moment, mean});
  file.expect_error("", {"statistic=instant", "statistic=average"}, "t");
  EXPECT_EQ(file.find("statistic=instant", "t"), 0) << file.error.text();
  EXPECT_EQ(file.find("statistic=average", "t"), 1) << file.error.text();
  file.expect_error("statistic=maximum", {"but not with statistic=maximum", "statistic=average"}, "t");
}

TEST(input_choice, an_option_is_checked_where_there_is_one_record_alone) {
  Records file({statistic("accum", "6-12")});
  EXPECT_EQ(file.find(""), 0) << file.error.text();
  EXPECT_EQ(file.find("statistic=accum interval=6h since=last at_zero=omit keys=\"centre=98\""), 0)
      << file.error.text();
  file.expect_error("statistic=average", {"but not with statistic=average", "statistic=accum"});
  file.expect_error("bottom=2", {"no bottom"});
  file.expect_error("percentile=50", {"no percentile"});
  file.expect_error("keys=\"centre=7\"", {"keys=\"centre=7\"", "keys=\"centre=ecmf\""});
  file.expect_error("keys=\"derivedForecast=1\"", {"no key derivedForecast"});
  EXPECT_EQ(file.find("statistic=averge"), -1);
  EXPECT_EQ(file.error.code(), Code::settings);
}

// The first interval of since=6h may be shorter.
TEST(input_choice, an_interval_since_the_last_output_begins_at_the_base_time_at_the_earliest) {
  Records file({statistic("accum", "0-3"), statistic("accum", "2-3")});
  EXPECT_EQ(file.find("since=6h", "tp", 3 * 3600), 0) << file.error.text();
  EXPECT_EQ(file.find("since=1h", "tp", 3 * 3600), 1) << file.error.text();
}

TEST(input_choice, an_interval_may_be_a_month) {
  Records file({statistic("avg", "0-744"), statistic("avg", "360-744")});
  EXPECT_EQ(file.find("interval=1mo", "tp", 31 * 86400), 0) << file.error.text();
  EXPECT_EQ(file.find("interval=31d", "tp", 31 * 86400), 0) << file.error.text();
  EXPECT_EQ(file.find("interval=384h", "tp", 31 * 86400), 1) << file.error.text();
}

TEST(input_choice, layers_with_one_top_are_told_apart_by_their_bottoms) {
  const auto layer = [](const char* bottom) {
    return codec::Keys{{"shortName", "t"},
                       {"step", "12"},
                       {"typeOfFirstFixedSurface", "103"},
                       {"typeOfSecondFixedSurface", "103"},
                       {"scaleFactorOfFirstFixedSurface", "0"},
                       {"scaledValueOfFirstFixedSurface", "3000"},
                       {"scaleFactorOfSecondFixedSurface", "1"},
                       {"scaledValueOfSecondFixedSurface", bottom}};
  };
  Records file({layer("0"), layer("10005")});
  const std::string levels = "levels=heightAboveGroundLayer:3000";
  file.expect_error(levels, {"bottom=0", "bottom=1000.5"}, "t");
  EXPECT_EQ(file.find(levels + " bottom=0", "t"), 0) << file.error.text();
  EXPECT_EQ(file.find(levels + " bottom=1000.5", "t"), 1) << file.error.text();
  file.expect_error(levels + " bottom=7", {"not with bottom=7"}, "t");
}

TEST(input_choice, levels_are_found_as_ecCodes_prints_them) {
  const auto on = [](const codec::Keys& surface) {
    codec::Keys keys{{"shortName", "t"}, {"step", "12"}};
    keys.insert(keys.end(), surface.begin(), surface.end());
    return keys;
  };
  const codec::Keys soil{{"typeOfFirstFixedSurface", "151"},       {"typeOfSecondFixedSurface", "151"},
                         {"scaleFactorOfFirstFixedSurface", "0"},  {"scaledValueOfFirstFixedSurface", "1"},
                         {"scaleFactorOfSecondFixedSurface", "0"}, {"scaledValueOfSecondFixedSurface", "2"}};
  const codec::Keys sea{{"typeOfFirstFixedSurface", "160"},
                        {"scaleFactorOfFirstFixedSurface", "0"},
                        {"scaledValueOfFirstFixedSurface", "0"}};
  const codec::Keys vorticity{{"typeOfFirstFixedSurface", "109"},
                              {"scaleFactorOfFirstFixedSurface", "6"},
                              {"scaledValueOfFirstFixedSurface", "2"}};
  const codec::Keys pressure{{"typeOfLevel", "isobaricInPa"}, {"level", "50"}};
  Records file({on(soil), on(sea), on(vorticity), on(pressure)});
  EXPECT_EQ(file.find("levels=soilLayer:2", "t"), 0) << file.error.text();
  EXPECT_EQ(file.find("levels=depth:0", "t"), 1) << file.error.text();
  EXPECT_EQ(file.find("levels=oceanSurface", "t"), 1) << file.error.text();
  EXPECT_EQ(file.find("levels=potentialVorticity:2", "t"), 2) << file.error.text();
  EXPECT_EQ(file.find("levels=isobaricInPa:50", "t"), 3) << file.error.text();
  EXPECT_EQ(file.find("levels=pressure:0.5", "t"), 3) << file.error.text();
}

/// Percentiles have an option; the error names the keys by which the others are chosen.
TEST(input_choice, each_kind_of_product_is_told_apart) {
  const auto product = [](const char* pdt, const char* key, const char* value) {
    return codec::Keys{
        {"productDefinitionTemplateNumber", pdt}, {"shortName", "t"}, {"step", "12"}, {key, value}};
  };
  struct Kind {
    const char *pdt, *key, *first, *second, *option;
  };
  for (const Kind& kind : {Kind{"6", "percentileValue", "10", "90", "percentile="},
                           {"5", "scaledValueOfUpperLimit", "254", "1270", nullptr},
                           {"5", "probabilityType", "0", "1", nullptr},
                           {"2", "derivedForecast", "0", "4", nullptr},
                           {"48", "scaledValueOfFirstWavelength", "550", "800", nullptr},
                           {"40", "constituentType", "0", "7", nullptr},
                           {"0", "typeOfGeneratingProcess", "0", "2", nullptr},
                           {"0", "subCentre", "1", "2", nullptr}}) {
    SCOPED_TRACE(kind.key);
    Records file({product(kind.pdt, kind.key, kind.first), product(kind.pdt, kind.key, kind.second)});
    const auto choice = [&](const char* value) {
      return kind.option != nullptr ? cat(kind.option, value) : cat("keys=\"", kind.key, "=", value, "\"");
    };
    if (kind.option != nullptr || std::string(kind.key) != "constituentType")
      file.expect_error("", {choice(kind.first), choice(kind.second)}, "t");
    else
      file.expect_error("", {"constituentType"}, "t");
    EXPECT_EQ(file.find(choice(kind.first), "t"), 0) << file.error.text();
    EXPECT_EQ(file.find(choice(kind.second), "t"), 1) << file.error.text();
  }
}

TEST(input_choice, wave_spectra_are_told_apart_by_direction) {
  const auto direction = [](const char* number) {
    return codec::Keys{
        {"indicatorOfParameter", "251"}, {"table2Version", "140"},    {"P1", "12"},
        {"localDefinitionNumber", "13"}, {"directionNumber", number}, {"frequencyNumber", "1"}};
  };
  Records file({direction("3"), direction("4")}, 1);
  file.expect_error("", {"keys=\"directionNumber=3\"", "keys=\"directionNumber=4\""}, "2dfd");
  EXPECT_EQ(file.find("keys=\"directionNumber=3, frequencyNumber=1\"", "2dfd"), 0) << file.error.text();
}

TEST(input_choice, what_the_error_says_chooses) {
  codec::Keys low = statistic("accum", "0-12"), high = statistic("accum", "6-12"), other = low;
  other.emplace_back("typeOfGeneratingProcess", "4");
  Records file({low, high, other});
  EXPECT_EQ(file.find(""), -1);
  const std::string text = file.error.text();
  const std::size_t at = text.rfind(", as ");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(file.find(text.substr(at + 5)), 2) << text;
}

TEST(input_choice, lists_in_headers_make_ecCodes_print_nothing) {
  const auto model_level = [](const char* process) {
    return codec::Keys{
        {"shortName", "t"}, {"step", "12"},         {"typeOfLevel", "hybrid"},           {"level", "1"},
        {"PVPresent", "1"}, {"pv", "0,2000,1,0.5"}, {"typeOfGeneratingProcess", process}};
  };
  Records file({model_level("2"), model_level("4")});
  testing::internal::CaptureStderr();
  file.expect_error("levels=hybrid:1", {"typeOfGeneratingProcess=2", "typeOfGeneratingProcess=4"}, "t");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

/// Some centres send a message twice.
TEST(input_choice, of_records_that_say_the_same_the_last_one_counts) {
  Records file({statistic("accum", "0-12"), statistic("accum", "6-12"), statistic("accum", "0-12")});
  EXPECT_EQ(file.find("interval=12h"), 2) << file.error.text();
  EXPECT_EQ(Records({statistic("accum", "0-12"), statistic("accum", "0-12")}).find(""), 1);
}

}  // namespace
}  // namespace tailrace::input
