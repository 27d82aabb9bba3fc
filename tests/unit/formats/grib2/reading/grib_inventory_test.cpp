// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdlib>

#include "../../sources/messages.hpp"
#include "../../sources/samples.hpp"
#include "formats/grib2/handle.hpp"
#include "formats/grib2/reading/grib_sections.hpp"
#include "formats/grib2/sections.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/target.hpp"

// All assertions of ecCodes call this; no header of its declares it.
extern "C" void codes_assertion_failed(const char* message, const char* file, int line);
extern "C" void codes_set_codes_assertion_failed_proc(void (*handler)(const char* message));

namespace tailrace::sources {
namespace {

using test::file_of;
using test::message;
using test::small_points;
using test::wave;
using test::with;

std::int64_t seconds(const std::string& time) {
  return to_seconds(*parse_time(time, Calendar::proleptic_gregorian), Calendar::proleptic_gregorian);
}

Result<std::shared_ptr<const Source>> open_parts(const std::vector<ByteVector>& parts) {
  return open(file_of("a.grib", parts), "a.grib", "");
}

/// Returns the one record of a file with one message.
Record record_of(int edition, const codec::Keys& more) {
  const auto source = open_parts({message(edition, with(more), wave(small_points))});
  EXPECT_TRUE(source.is_ok()) << source.status().text();
  return source.is_ok() ? (*source)->inventory().records.at(0) : Record();
}

TEST(grib_inventory, tells_names_levels_times_and_members) {
  const codec::Keys time{{"dataDate", "20260301"}, {"dataTime", "0600"}};
  const auto at = [&](codec::Keys more) {
    more.insert(more.begin(), time.begin(), time.end());
    return more;
  };
  for (const int edition : {1, 2}) {
    SCOPED_TRACE(edition);
    const Record t = record_of(
        edition, at({{"shortName", "t"}, {"typeOfLevel", "isobaricInhPa"}, {"level", "850"}, {"step", "9"}}));
    EXPECT_EQ(t.field, "t");
    EXPECT_EQ(t.level_type, "isobaricInhPa");
    EXPECT_EQ(t.level, 850);
    EXPECT_EQ(t.reference, seconds("2026-03-01T06:00Z"));
    EXPECT_EQ(t.valid, seconds("2026-03-01T15:00Z"));
    EXPECT_EQ(t.member, -1);
    const Record wind = record_of(
        edition,
        at({{"typeOfLevel", "heightAboveGround"}, {"level", "10"}, {"shortName", "10u"}, {"step", "0"}}));
    EXPECT_EQ(wind.field, "10u");
    EXPECT_EQ(wind.level_type, "heightAboveGround");
    EXPECT_EQ(wind.level, 10);
    EXPECT_EQ(wind.valid, wind.reference);
    const codec::Keys accumulated{edition == 1
                                      ? codec::Keys::value_type{"stepType", "accum"}
                                      : codec::Keys::value_type{"productDefinitionTemplateNumber", "8"},
                                  {"shortName", "tp"},
                                  {"stepRange", "6-12"}};
    const Record rain = record_of(edition, at(accumulated));
    EXPECT_EQ(rain.field, "tp");
    EXPECT_EQ(rain.valid, seconds("2026-03-01T18:00Z"));
    const Record hybrid =
        record_of(edition, at({{"shortName", "q"}, {"typeOfLevel", "hybrid"}, {"level", "61"}}));
    EXPECT_EQ(hybrid.level_type, "hybrid");
    EXPECT_EQ(hybrid.level, 61);
  }
  const Record low = record_of(2, at({{"shortName", "t"}, {"typeOfLevel", "isobaricInPa"}, {"level", "50"}}));
  EXPECT_EQ(low.level_type, "isobaricInhPa");
  EXPECT_EQ(low.level, 0.5);
  const Record minutes =
      record_of(2, at({{"indicatorOfUnitOfTimeRange", "0"}, {"forecastTime", "90"}, {"shortName", "t"}}));
  EXPECT_EQ(minutes.valid - minutes.reference, 90 * 60);
  const Record member = record_of(2, at({{"productDefinitionTemplateNumber", "1"},
                                         {"shortName", "t"},
                                         {"numberOfForecastsInEnsemble", "20"},
                                         {"perturbationNumber", "7"}}));
  EXPECT_EQ(member.member, 7);
  const Record own =
      record_of(2, at({{"discipline", "0"}, {"parameterCategory", "191"}, {"parameterNumber", "77"}}));
  EXPECT_EQ(own.field, "0.191.77");
}

TEST(grib_inventory, tells_members_where_a_message_says_that_there_are_0_of_them) {
  const auto member = [](const char* stream, const char* type, int number) {
    return record_of(1, {{"centre", "98"},
                         {"setLocalDefinition", "1"},
                         {"localDefinitionNumber", "1"},
                         {"stream", stream},
                         {"type", type},
                         {"shortName", "2t"},
                         {"perturbationNumber", cat(number)},
                         {"numberOfForecastsInEnsemble", "0"}})
        .member;
  };
  for (const int number : {0, 1, 2}) EXPECT_EQ(member("enfo", "pf", number), number);
  EXPECT_EQ(member("enfo", "cf", 0), 0);
  EXPECT_EQ(member("oper", "fc", 0), -1) << "no ensemble";
  EXPECT_EQ(member("oper", "an", 0), -1) << "no ensemble";
  EXPECT_EQ(member("oper", "fc", 4), 4) << "the message says so";
  const Record of_template = record_of(2, {{"productDefinitionTemplateNumber", "1"},
                                           {"shortName", "t"},
                                           {"numberOfForecastsInEnsemble", "0"},
                                           {"perturbationNumber", "0"}});
  EXPECT_EQ(of_template.member, 0);
}

// ecCodes tells no step of more than two ranges.
TEST(grib_inventory, tells_the_end_of_any_number_of_ranges_of_time) {
  const codec::Keys statistic{{"dataDate", "20260301"},
                              {"dataTime", "0600"},
                              {"productDefinitionTemplateNumber", "8"},
                              {"shortName", "tp"},
                              {"stepRange", "0-9"}};
  for (const std::string ranges : {"1", "2", "3", "5"}) {
    codec::Keys keys = statistic;
    if (ranges != "1") keys.emplace_back("numberOfTimeRange", ranges);
    const auto source = open_parts({message(2, with(keys), wave(small_points))});
    ASSERT_TRUE(source.is_ok()) << source.status().text();
    EXPECT_EQ((*source)->inventory().records.at(0).valid, seconds("2026-03-01T15:00Z")) << ranges;
  }
  ByteVector bytes = message(2, with(statistic), wave(small_points));
  const std::size_t product = grib2::section_begin(bytes, 4);
  bytes[product + 41] = std::byte{0};   // ranges
  bytes[product + 36] = std::byte{13};  // month
  EXPECT_EQ(open_parts({bytes}).status().code(), Code::corrupt);
}

TEST(grib_inventory, failed_assertions_of_eccodes_are_errors) {
  using During = grib2::During;
  const auto fails = [](const char* source, During during = During::anything) {
    return grib2::without_assertions(
        [&] {
          codes_assertion_failed("false", source, 1);
          return 0;
        },
        during);
  };
  EXPECT_NE(fails("src/grib_accessor_class_g2end_step.c"), 0);
  EXPECT_NE(fails("src/grib_handle.c"), 0) << "again";
  EXPECT_EQ(grib2::without_assertions([] { return 0; }), 0);
  // ecCodes would keep its lock for ever.
  for (const char* const source : {"src/action_class_concept.c", "src/action/Concept.cc",
                                   "src/action/HashArray.cc", "src/grib_trie_with_rank.cc"}) {
    EXPECT_DEATH(fails(source), "assertion failed") << source;
    EXPECT_DEATH(fails(source, During::decoding), "assertion failed") << source;
  }
  // No room for a buffer.
  EXPECT_DEATH(fails("src/grib_context.cc"), "assertion failed");
  EXPECT_NE(fails("src/grib_context.cc", During::decoding), 0);
}

TEST(grib_inventory, the_handler_of_assertions_leaves_calls_of_the_program_as_they_are) {
  const auto assertion = [] { codes_assertion_failed("false", "src/grib_handle.c", 1); };
  EXPECT_EQ(grib2::without_assertions([] { return 0; }), 0);
  EXPECT_DEATH(assertion(), "assertion failed");
  ::setenv("ECCODES_NO_ABORT", "1", 1);
  assertion();
  ::unsetenv("ECCODES_NO_ABORT");
  // One that the program sets later does not take the place of ours while we call.
  codes_set_codes_assertion_failed_proc(nullptr);
  EXPECT_NE(grib2::without_assertions([&] { return assertion(), 0; }), 0);
}

TEST(grib_inventory, a_message_that_nobody_understands_leaves_the_others_readable) {
  const ByteVector good =
      message(2, with({{"shortName", "t"}, {"typeOfLevel", "surface"}}), wave(small_points));
  ByteVector odd = good, timeless = good;
  const std::size_t product = grib2::section_begin(good, 4);
  odd[product + 7] = std::byte{0x7f};
  odd[product + 8] = std::byte{0xf0};
  timeless[30] = std::byte{13};  // the month
  const auto source = open_parts({odd, good, timeless, odd, good});
  ASSERT_TRUE(source.is_ok()) << source.status().text();
  EXPECT_EQ((*source)->inventory().records.size(), 2U);
  const std::vector<Unread>& unread = (*source)->inventory().unread;
  ASSERT_EQ(unread.size(), 2U);
  EXPECT_EQ(unread[0].field, "");
  EXPECT_TRUE(unread[0].why.text().starts_with("2 fields, the first: GRIB message at byte 0: "))
      << unread[0].why.text();
  EXPECT_EQ(unread[0].why.code(), Code::unsupported);
  EXPECT_NE(unread[0].why.text().find("template 4.32752, which is unknown to ecCodes"), std::string::npos);
  EXPECT_EQ(unread[1].field, "t");
  EXPECT_TRUE(unread[1].why.text().starts_with(cat("GRIB message at byte ", 2 * good.size(), ": ")))
      << unread[1].why.text();
  EXPECT_FALSE(open_parts({odd, odd}).is_ok()) << "the file has nothing else";
}

// The first bit of a surface is its sign (regulation 92.1.5), which ecCodes takes for a number.
TEST(grib_inventory, tells_levels_below_zero) {
  const auto level = [](const std::string& type, const std::string& scale, const std::string& scaled) {
    return record_of(2, {{"shortName", "t"},
                         {"typeOfLevel", type},
                         {"scaleFactorOfFirstFixedSurface", scale},
                         {"scaledValueOfFirstFixedSurface", scaled}})
        .level;
  };
  EXPECT_EQ(level("heightAboveSea", "0", cat(0x80000005)), -5);
  EXPECT_EQ(level("heightAboveGround", "1", cat(0x80000037)), -5.5);
  EXPECT_EQ(level("potentialVorticity", "9", cat(0x80000000 + 2000)), -2);
  EXPECT_EQ(level("heightAboveSea", "0", "5"), 5);
  const ByteVector layer = message(2,
                                   with({{"shortName", "t"},
                                         {"typeOfLevel", "heightAboveGroundLayer"},
                                         {"topLevel", "2"},
                                         {"scaleFactorOfSecondFixedSurface", "0"},
                                         {"scaledValueOfSecondFixedSurface", cat(0x80000001)}}),
                                   wave(small_points));
  const auto source = open_parts({layer});
  ASSERT_TRUE(source.is_ok());
  const Record& record = (*source)->inventory().records.at(0);
  EXPECT_EQ(record.level, 2);
  const auto traits = (*source)->traits(record, {});
  ASSERT_TRUE(traits.is_ok() && *traits);
  EXPECT_EQ((*traits)->bottom, -1);
}

TEST(grib_inventory, tells_healpix_whatever_ecCodes_knows) {
  const codec::Keys keys{{"gridType", "healpix"}, {"Nside", "2"}, {"orderingConvention", "nested"}};
  codec::FieldDefinition field;
  field.name = "t";
  field.type = ElementType::f64;
  field.shape = {48};
  field.levels = {"isobaricInhPa", {850}, {}, {}};
  field.georeference.keys = keys;
  codec::StreamDefinition stream;
  stream.format = "grib2";
  stream.base = {2026, 3, 1, 0, 0, 0};
  for (const std::string packing : {"simple", "ccsds"}) {
    stream.packing = packing;
    Result<std::unique_ptr<codec::Codec>> codec = formats::make_codec(stream);
    ASSERT_TRUE(codec.is_ok() && (*codec)->define(field).is_ok());
    std::vector<double> values = wave(48);
    ByteVector bytes;
    ASSERT_TRUE((*codec)
                    ->encoder()
                    ->encode({0, 0, 3600, 0}, reinterpret_cast<std::byte*>(values.data()), 48, bytes)
                    .is_ok());
    const auto source = open_parts({bytes});
    ASSERT_TRUE(source.is_ok()) << source.status().text();
    const Record& record = (*source)->inventory().records.at(0);
    EXPECT_EQ(record.field, "t");
    EXPECT_EQ(record.level, 850);
    EXPECT_EQ(record.valid, seconds("2026-03-01T01:00Z"));
    const Grid& grid = (*source)->inventory().grids.at(0);
    EXPECT_EQ(grid.shape, std::vector<Index>{48});
    for (const auto& [key, value] : keys) {
      const std::string* const found = codec::find_key(grid.keys, key);
      EXPECT_TRUE(found != nullptr && *found == value) << key;
    }
    EXPECT_TRUE(check_grid(grid, {48}, field.georeference).is_ok());
    EXPECT_TRUE(check_grid(grid, {48}, {bytes, {}}).is_ok());
    const Status ring = check_grid(grid, {48}, {{}, {{"gridName", "H2"}}});
    EXPECT_NE(ring.text().find("says orderingConvention=ring, and the file says nested"), std::string::npos)
        << ring.text();
    const auto got = test::read_all<double>(**source, record);
    ASSERT_EQ(got.values.size(), 48U);
    EXPECT_NEAR(got.values[20], wave(48)[20], 1e-3);
    EXPECT_TRUE((*source)->traits(record, {}).is_ok());
  }
}

TEST(grib_inventory, lists_messages_of_both_editions_in_the_order_of_the_file) {
  const ByteVector first = message(1, with({{"shortName", "t"}}), wave(small_points));
  const ByteVector second = message(2, with({{"shortName", "q"}}), wave(small_points));
  const ByteVector third = message(2, {{"shortName", "t"}}, wave(496));  // another grid
  const ByteVector zeros(5000), text(80, std::byte{'x'});
  const auto found =
      open_parts({{text.begin(), text.begin() + 30}, first, zeros, second, text, third, zeros});
  ASSERT_TRUE(found.is_ok()) << found.status().text();
  const Inventory& inventory = (*found)->inventory();
  ASSERT_EQ(inventory.records.size(), 3U);
  EXPECT_EQ(inventory.format, "GRIB");
  EXPECT_EQ(inventory.records[0].place, (RecordPlace{30, static_cast<Bytes>(first.size()), 0, 0}));
  EXPECT_EQ(inventory.records[1].field, "q");
  EXPECT_EQ(inventory.records[2].place[0],
            30 + static_cast<Bytes>(first.size() + zeros.size() + second.size() + text.size()));
  ASSERT_EQ(inventory.grids.size(), 3U);  // the editions write their grids differently
  EXPECT_NE(inventory.records[1].grid, inventory.records[2].grid);
  for (const Record& record : inventory.records) {
    const auto values = test::read_all<double>(**found, record);
    EXPECT_TRUE(values.missing.is_ok()) << values.missing.status().text();
  }
}

// NDFD's files of the US weather service have 80 bytes of a bulletin's lines before the first message.
TEST(grib_inventory, finds_messages_behind_lines_of_a_bulletin) {
  const ByteVector first = message(2, with({{"shortName", "t"}}), wave(small_points));
  for (const std::size_t length : {1, 59, 60, 61, 64, 80, 8190, 65536}) {
    const auto source = open_parts({ByteVector(length, std::byte{'*'}), first});
    ASSERT_TRUE(source.is_ok()) << length << ": " << source.status().text();
    EXPECT_EQ((*source)->inventory().records.at(0).place[0], static_cast<Bytes>(length));
  }
  const auto far = open_parts({ByteVector(longest_gap + 1, std::byte{'*'}), first});
  EXPECT_EQ(far.status().code(), Code::format) << far.status().text();
}

// The four letters alone do not make a message.
TEST(grib_inventory, of_a_text_about_grib_is_refused_as_no_format_that_is_read) {
  const std::string_view words = "This directory holds GRIB2 files, and GRIB files of the first edition.";
  const auto bytes = std::as_bytes(std::span(words));
  const auto source = open_parts({{bytes.begin(), bytes.end()}});
  EXPECT_EQ(source.status().code(), Code::format) << source.status().text();
}

/// Returns the record that a message has alone in a file, where nothing is known from messages before it.
Record alone(const ByteVector& message) {
  Record record = (*open_parts({message}))->inventory().records.at(0);
  record.place = {};
  record.grid = 0;
  return record;
}

TEST(grib_inventory, tells_the_same_of_a_message_alone_and_behind_others) {
  std::vector<ByteVector> messages;
  for (const int edition : {1, 2}) {
    for (const char* const name : {"t", "q"}) {
      for (const char* const level : {"500", "850"}) {
        for (const char* const date : {"19991231", "20240229", "20260301"}) {
          for (const auto& [unit, step] :
               codec::Keys{{"1", "0"}, {"1", "27"}, {"0", "90"}, {"2", "3"}, {"11", "4"}}) {
            codec::Keys keys{
                {"dataDate", date}, {"dataTime", "1800"}, {"typeOfLevel", "isobaricInhPa"}, {"level", level}};
            keys.emplace_back("shortName", name);
            keys.emplace_back("indicatorOfUnitOfTimeRange", unit);
            keys.emplace_back(edition == 1 ? "P1" : "forecastTime", step);
            messages.push_back(message(edition, with(keys), wave(small_points)));
          }
        }
      }
    }
  }
  const auto source = open_parts(messages);
  ASSERT_TRUE(source.is_ok()) << source.status().text();
  const std::vector<Record>& records = (*source)->inventory().records;
  ASSERT_EQ(records.size(), messages.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    Record record = records[i];
    record.place = {};
    record.grid = 0;
    EXPECT_TRUE(test::same_record(record, alone(messages[i]))) << i;
  }
}

/// A message of GRIB1 without section 2: the number of its grid stands in section 1.
ByteVector on_numbered_grid(int number) {
  constexpr std::size_t product = 8;
  ByteVector bytes = message(1, {{"Ni", "37"}, {"Nj", "37"}, {"shortName", "t"}}, wave(37 * 37));
  const auto length_at = [&](std::size_t at) { return grib2::get_number(&bytes[at], 3); };
  const std::size_t grid = product + length_at(product);
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(grid);
  bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(length_at(grid)));
  bytes[product + 6] = static_cast<std::byte>(number);
  bytes[product + 7] &= std::byte{0x7f};
  grib2::put_number(&bytes[4], bytes.size(), 3);
  return bytes;
}

TEST(grib_inventory, tells_grids_without_a_section_of_their_own_by_their_numbers) {
  const auto source = open_parts({on_numbered_grid(21), on_numbered_grid(22), on_numbered_grid(21)});
  ASSERT_TRUE(source.is_ok()) << source.status().text();
  const Inventory& inventory = (*source)->inventory();
  ASSERT_EQ(inventory.records.size(), 3U);
  EXPECT_EQ(inventory.grids.size(), 2U);
  EXPECT_NE(inventory.records[0].grid, inventory.records[1].grid);
  EXPECT_EQ(inventory.records[0].grid, inventory.records[2].grid);
}

TEST(grib_inventory, refuses_other_files) {
  const auto text = open_parts({ByteVector(100, std::byte{'x'})});
  EXPECT_EQ(text.status().code(), Code::format);
  EXPECT_NE(text.status().text().find("78 78 78"), std::string::npos) << text.status().text();
  const auto none = open(storage::memory_target(), "none.grib", "");
  EXPECT_EQ(none.status().code(), Code::io);
  EXPECT_NE(none.status().text().find("none.grib"), std::string::npos) << none.status().text();
  EXPECT_EQ(open_parts({}).status().code(), Code::format);
}

}  // namespace
}  // namespace tailrace::sources
