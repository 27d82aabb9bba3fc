// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/listings/listings.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>

#include "../../ground/storage/scratch.hpp"
#include "faces/streams/definition/parse.hpp"
#include "faces/streams/files/existing_files.hpp"
#include "faces/streams/files/file_ledger.hpp"
#include "faces/streams/files/reindex.hpp"
#include "faces/streams/resume/resume.hpp"
#include "formats/grib2/listings.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/memory.hpp"
#include "index_samples.hpp"
#include "support/crash.hpp"

// Listings tell exactly the committed steps, whatever happens to the file, and are nobody else's file.
namespace tailrace::streams {
namespace {

const std::string kPath = "fc.grib2";
const std::string kText = kPath + ".idx";
const std::string kJson = kPath + ".index";
const std::string kPickle = kPath + ".5b7b6.idx";
const std::string kAll = "index=wgrib2,ecmwf,cfgrib";

codec::FieldDefinition grib_field(const std::string& name, const std::string& level_type,
                                  std::vector<double> levels) {
  codec::FieldDefinition field;
  field.name = name;
  field.shape = {6, 10};
  field.georeference.keys = {{"gridType", "regular_ll"},
                             {"latitudeOfFirstGridPointInDegrees", "50"},
                             {"longitudeOfFirstGridPointInDegrees", "5"},
                             {"latitudeOfLastGridPointInDegrees", "45"},
                             {"longitudeOfLastGridPointInDegrees", "14"}};
  field.levels = {level_type, std::move(levels), {}, {}};
  return field;
}

std::vector<codec::FieldDefinition> usual_fields() {
  codec::FieldDefinition rain = grib_field("tp", "surface", {0});
  rain.statistic.process = codec::Process::accum;
  return {grib_field("t", "isobaricInhPa", {850, 500}), grib_field("2t", "heightAboveGround", {2}), rain};
}

struct Forecast {
  std::string options;               // beside the base time
  std::int64_t first = 1, last = 3;  // hours
  bool finishes = true;
  Uuid run = Uuid::random();
  std::vector<codec::FieldDefinition> fields = usual_fields();
  std::set<int> left_out{};           // fields that no step has
  std::int64_t behind = 0;            // continues from a checkpoint behind this hour; 0: it does not
  std::string definitions = "usual";  // runs with the same word have the same fields and keys
};

/// Writes hourly steps as the root of a stream does, as far as storage lets it.
Status write_run(const std::shared_ptr<storage::Target>& target, const Forecast& run) {
  const std::string all = cat("base=2026-03-01 manifest=off ", run.options);
  const Result<StreamRequest> request = parse_stream(kPath, all);
  TR_TRY(request.status());
  pipeline::Opening opening;
  opening.definition = request->definition;
  opening.fields = run.fields;
  const auto codec = std::move(*formats::make_codec(opening.definition));
  // Definitions cost more than all the rest of a run.
  static std::map<std::string, std::vector<ByteVector>> all_prepared;
  std::vector<ByteVector>& prepared = all_prepared[run.definitions];
  for (std::size_t i = 0; i < opening.fields.size(); ++i) {
    codec::FieldDefinition& field = opening.fields[i];
    TR_TRY(i < prepared.size() ? codec->adopt(field, prepared[i]) : codec->define(field));
    if (i == prepared.size()) prepared.push_back(codec->prepared(static_cast<int>(i)));
    field.georeference = {};
  }
  opening.prepared = prepared;
  std::optional<Position> from;
  if (run.behind > 0) from = Position{kPath, run.run, run.behind, run.behind * 3600, run.behind * 3600, {}};
  opening.ledger = pack_ledger(kPath, all, run.run, from);
  const auto ledger = std::move(*make_ledger(opening, *codec, target));
  const Result<pipeline::Begun> begun = ledger->begin_file(kPath, run.first * 3600, 1);
  TR_TRY(begun.status());
  Bytes end = begun->end;
  for (std::int64_t hour = run.first; hour <= run.last; ++hour) {
    pipeline::StepEntry entry{hour, hour * 3600, kPath, end, end, {}};
    ByteVector bytes;
    for (int field = 0; field < static_cast<int>(run.fields.size()); ++field) {
      if (run.left_out.count(field) != 0) continue;
      for (Index level = 0; level < static_cast<Index>(run.fields[field].levels.values.size()); ++level) {
        std::vector<double> values(60, 280 + static_cast<double>(level));
        values[3] += static_cast<double>(hour);
        const std::size_t before = bytes.size();
        TR_TRY(codec->encoder()->encode({field, level, hour * 3600, 0},
                                        reinterpret_cast<std::byte*>(values.data()), 60, bytes));
        entry.records.push_back(
            {field, level, end + static_cast<Bytes>(before), static_cast<Bytes>(bytes.size() - before)});
      }
    }
    entry.end = end + static_cast<Bytes>(bytes.size());
    const auto file = target->open(begun->path, storage::OpenMode::existing);
    TR_TRY(file.status());
    TR_TRY((*file)->write(bytes, end));
    TR_TRY((*file)->sync());
    TR_TRY(ledger->commit(entry));
    end = entry.end;
  }
  return run.finishes ? ledger->finish_file(kPath) : Status();
}

std::string text_of(storage::Target& target, const std::string& path) {
  return *target.exists(path) ? storage::contents_of(target, path) : "";
}

/// Returns the listing of a file that was written undisturbed with these hours.
std::string expected(const std::string& path, std::int64_t last, std::int64_t first = 1) {
  static std::map<std::string, std::string> known;
  std::string& text = known[cat(path, " ", first, " ", last)];
  if (!text.empty() || last < first) return text;
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  const Status written = write_run(target, {.options = kAll, .first = first, .last = last});
  EXPECT_TRUE(written.is_ok()) << written.text();
  return text = text_of(*target, path);
}

void expect_all(storage::Target& target, std::int64_t last, const std::string& what) {
  EXPECT_EQ(text_of(target, kText), expected(kText, last)) << what;
  EXPECT_EQ(text_of(target, kJson), expected(kJson, last)) << what;
  EXPECT_EQ(text_of(target, kPickle), expected(kPickle, last)) << what;
}

/// Returns the text behind the offset of each line.
std::vector<std::string> tails_of(const std::string& text) {
  std::vector<std::string> tails;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) tails.push_back(line.substr(line.find(':', line.find(':') + 1) + 1));
  }
  return tails;
}

TEST(listings, have_the_lines_that_wgrib2_prints) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.options = kAll, .last = 2}).is_ok());
  // As `wgrib2 -s` of version 3.4 prints them.
  EXPECT_EQ(tails_of(text_of(*target, kText)),
            (std::vector<std::string>{
                "d=2026030100:TMP:850 mb:1 hour fcst:", "d=2026030100:TMP:500 mb:1 hour fcst:",
                "d=2026030100:TMP:2 m above ground:1 hour fcst:",
                "d=2026030100:TPRATE:surface:0-1 hour acc fcst:", "d=2026030100:TMP:850 mb:2 hour fcst:",
                "d=2026030100:TMP:500 mb:2 hour fcst:", "d=2026030100:TMP:2 m above ground:2 hour fcst:",
                "d=2026030100:TPRATE:surface:0-2 hour acc fcst:"}));
  EXPECT_TRUE(text_of(*target, kText).starts_with("1:0:d="));
}

TEST(listings, have_the_objects_of_ecmwf) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.options = "index=ecmwf", .last = 1}).is_ok());
  const std::vector<std::string> lines = split(text_of(*target, kJson), '\n');
  ASSERT_EQ(lines.size(), 5U) << text_of(*target, kJson);
  const Result<IndexContents> index = load_index(*target, index_path(kPath));
  const IndexRecord second = index->steps[0].records[1];
  EXPECT_EQ(lines[1], cat(R"({"date": "20260301", "time": "0000", "step": "1", "levelist": "500", )",
                          R"("levtype": "pl", "param": "t", "_offset": )", second.offset, R"(, "_length": )",
                          second.length, "}"));
  EXPECT_NE(lines[2].find(R"("levtype": "sfc", "param": "2t", )"), std::string::npos) << lines[2];
  EXPECT_FALSE(*target->exists(kText)) << "not asked for";
}

TEST(listings, have_the_keys_of_mars_that_the_stream_gives) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  const std::string local = "setLocalDefinition=1, class=od, type=fc, stream=oper, expver=0001";
  const Status written = write_run(
      target,
      {.options = cat("index=ecmwf keys='centre=98, ", local, "'"), .last = 1, .definitions = "local"});
  ASSERT_TRUE(written.is_ok()) << written.text();
  EXPECT_TRUE(
      text_of(*target, kJson)
          .starts_with(
              R"({"domain": "g", "date": "20260301", "time": "0000", "expver": "0001", "class": "od", "type": "fc", )"
              R"("stream": "oper", "step": "1", "levelist": "850", "levtype": "pl", "param": "t", "_offset": 0, )"))
      << text_of(*target, kJson);
}

TEST(listings, tell_levels_members_and_what_is_not_in_a_table) {
  std::vector<codec::FieldDefinition> fields{grib_field("t", "hybrid", {1, 60}),
                                             grib_field("sp", "surface", {0}),
                                             grib_field("u", "heightAboveGround", {0.5})};
  fields[0].levels.coefficients = std::vector<double>(122, 0.5);
  codec::FieldDefinition own = grib_field("own", "surface", {0});
  own.keys = {{"discipline", "0"}, {"parameterCategory", "19"}, {"parameterNumber", "77"}};
  fields.push_back(own);
  own.keys = {{"discipline", "0"}, {"parameterCategory", "192"}, {"parameterNumber", "3"}};
  own.name = "local";
  fields.push_back(own);
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  const Status written = write_run(target, {.options = "index=wgrib2 centre=98 member=7 members=51",
                                            .first = 0,
                                            .last = 0,
                                            .fields = fields,
                                            .definitions = "members"});
  ASSERT_TRUE(written.is_ok()) << written.text();
  std::vector<std::string> tails = tails_of(text_of(*target, kText));
  ASSERT_EQ(tails.size(), 6U);
  for (std::string& tail : tails) tail = tail.substr(tail.find(':') + 1);
  EXPECT_EQ(tails, (std::vector<std::string>{
                       "TMP:1 hybrid level:anl:ENS=+7", "TMP:60 hybrid level:anl:ENS=+7",
                       "PRES:surface:anl:ENS=+7", "UGRD:0.5 m above ground:anl:ENS=+7",
                       "var discipline=0 master_table=4 parmcat=19 parm=77:surface:anl:ENS=+7",
                       "var discipline=0 center=98 local_table=0 parmcat=192 parm=3:surface:anl:ENS=+7"}));
}

/// An octet of section 4, from 1, and what it and those behind it become.
struct Octets {
  std::size_t first;
  std::vector<int> values;
};

using LineOf = Result<std::string> (*)(const codec::ReadBytes&, std::int64_t, Bytes);

/// Returns the line of an example of the usual field `number` with other octets in section 4.
Result<std::string> changed_line(LineOf line_of, int number, const std::vector<Octets>& changes) {
  const StreamRequest request = *parse_stream(kPath, "base=2026-03-01 centre=98");
  const auto codec = std::move(*formats::make_codec(request.definition));
  for (const codec::FieldDefinition& field : usual_fields()) EXPECT_TRUE(codec->define(field).is_ok());
  ByteVector message = codec->example(number);
  std::size_t at = 16;
  while (message[at + 4] != std::byte{4}) at += std::to_integer<std::size_t>(message[at + 3]);
  for (const Octets& each : changes) {
    for (std::size_t i = 0; i < each.values.size(); ++i)
      message[at + each.first - 1 + i] = static_cast<std::byte>(each.values[i]);
  }
  const codec::ReadBytes read = [&](std::span<std::byte> to, Bytes from) -> Result<Bytes> {
    const std::size_t size = std::min(to.size(), message.size() - static_cast<std::size_t>(from));
    std::copy_n(message.begin() + from, size, to.begin());
    return static_cast<Bytes>(size);
  };
  return line_of(read, 1, 0);
}

/// Returns wgrib2's line, from the level on.
std::string line_with(int number, const std::vector<Octets>& changes) {
  const Result<std::string> line = changed_line(grib2::wgrib2_line, number, changes);
  return line.is_ok() ? line->substr(std::string("1:0:d=2026030100:TMP:").size()) : line.status().text();
}

TEST(listings, tell_layers_and_units_of_time_as_wgrib2_does) {
  const auto first = [](int type, int scale, int value) {
    return Octets{23, {type, scale, 0, value >> 16, value >> 8 & 255, value & 255}};
  };
  const auto second = [](int type, int scale, int value) {
    return Octets{29, {type, scale, 0, value >> 16, value >> 8 & 255, value & 255}};
  };
  const auto time = [](int unit, int value) { return Octets{18, {unit, 0, 0, value >> 8, value & 255}}; };
  const auto range = [](int unit, int value) { return Octets{49, {unit, 0, 0, value >> 8, value & 255}}; };
  // Each was compared with wgrib2 3.4.0.
  EXPECT_EQ(line_with(1, {first(106, 1, 0), second(106, 1, 1)}), "0-0.1 m below ground:anl:\n");
  EXPECT_EQ(line_with(1, {first(100, 0, 100000), second(100, 0, 85000)}), "1000-850 mb:anl:\n");
  EXPECT_EQ(line_with(1, {first(100, 0, 150)}), "1.5 mb:anl:\n");
  EXPECT_EQ(line_with(1, {first(1, 0, 0), second(8, 0, 0)}), "atmos col:anl:\n");
  EXPECT_EQ(line_with(1, {first(101, 0, 0)}), "mean sea level:anl:\n");
  EXPECT_EQ(line_with(1, {first(104, 4, 9950)}), "0.995 sigma level:anl:\n");
  EXPECT_EQ(line_with(1, {first(109, 9, 2000)}), "PV=2e-06 (Km^2/kg/s) surface:anl:\n");
  EXPECT_EQ(line_with(1, {first(103, 0, 80), second(1, 0, 0)}), "80 m above ground - surface:anl:\n");
  EXPECT_EQ(line_with(1, {first(200, 0, 3)}), "local level type 200 3:anl:\n");
  EXPECT_EQ(line_with(1, {time(0, 90)}), "2 m above ground:90 min fcst:\n");
  EXPECT_EQ(line_with(1, {time(1, 240)}), "2 m above ground:240 hour fcst:\n");
  EXPECT_EQ(line_with(1, {time(11, 4)}), "2 m above ground:24 hour fcst:\n");
  EXPECT_EQ(line_with(1, {time(13, 30)}), "2 m above ground:30 sec fcst:\n");
  const auto rain = [](const std::vector<Octets>& changes) {
    const std::string line = line_with(2, changes);
    return line.substr(line.find("surface:"));
  };
  EXPECT_EQ(rain({range(1, 24)}), "surface:0-1 day acc fcst:\n");
  EXPECT_EQ(rain({time(1, 6), range(1, 6)}), "surface:6-12 hour acc fcst:\n");
  EXPECT_EQ(rain({time(1, 6), range(0, 30)}), "surface:6 hour-(6 hour+30 min) acc fcst:\n");
  EXPECT_EQ(rain({time(0, 60), range(0, 30)}), "surface:60-90 min acc fcst:\n");
  EXPECT_EQ(rain({range(1, 0)}), "surface:0-0 day acc fcst:\n");
  EXPECT_EQ(rain({{47, {2}}, range(1, 3)}), "surface:0-3 hour max fcst:\n");
}

// As ecCodes 2.50 tells the steps; 2.28 gives minutes without their letter, or prints an error of its own.
TEST(listings, tell_ecmwfs_steps_in_hours_or_with_their_unit) {
  const auto time = [](int unit, int value) { return Octets{18, {unit, 0, 0, value >> 8, value & 255}}; };
  const auto range = [](int unit, int value) { return Octets{49, {unit, 0, 0, value >> 8, value & 255}}; };
  testing::internal::CaptureStderr();
  const auto step = [](int number, const std::vector<Octets>& changes) {
    const Result<std::string> line = changed_line(grib2::ecmwf_line, number, changes);
    if (!line.is_ok()) return line.status().text();
    constexpr std::string_view before = "\"step\": \"";
    const std::size_t at = line->find(before) + before.size();
    return line->substr(at, line->find('"', at) - at);
  };
  EXPECT_EQ(step(1, {time(1, 90)}), "90");
  EXPECT_EQ(step(1, {time(0, 0)}), "0");
  EXPECT_EQ(step(1, {time(0, 15)}), "15m");
  EXPECT_EQ(step(1, {time(0, 60)}), "1");
  EXPECT_EQ(step(1, {time(0, 75)}), "75m");
  EXPECT_EQ(step(1, {time(13, 90)}), "90s");
  EXPECT_EQ(step(1, {time(13, 120)}), "2m");
  EXPECT_EQ(step(1, {time(13, 7200)}), "2");
  EXPECT_EQ(step(2, {time(1, 6), range(1, 6)}), "12");
  EXPECT_EQ(step(2, {time(0, 0), range(0, 30)}), "30m");
  EXPECT_EQ(step(2, {time(0, 30), range(0, 60)}), "90m");
  EXPECT_EQ(step(2, {time(0, 90), range(0, 630)}), "12");
  EXPECT_EQ(step(2, {time(1, 6), range(0, 30)}), "390m");
  EXPECT_EQ(step(2, {time(13, 0), range(13, 45)}), "45s");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(listings, have_no_line_for_what_was_not_put) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.options = kAll, .last = 2, .left_out = {0}}).is_ok());
  const std::vector<std::string> tails = tails_of(text_of(*target, kText));
  ASSERT_EQ(tails.size(), 4U);
  EXPECT_EQ(tails[2], "d=2026030100:TMP:2 m above ground:2 hour fcst:");
}

/// Without --all, the calls that end a run are so many apart.
std::int64_t stride() { return std::getenv("TEST_ALL") != nullptr ? 1 : 3; }

TEST(listings, tell_exactly_the_committed_steps_whatever_storage_call_is_the_last) {
  for (std::int64_t nth = 1;; nth += stride()) {
    SCOPED_TRACE(cat("call ", nth));
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    ASSERT_TRUE(write_run(target, {.options = kAll, .last = 2}).is_ok());
    const auto faulty =
        storage::faulty_target(target, {nth, storage::Fault::stopped, storage::all_calls, true});
    const bool anew = nth % 2 == 0;
    const std::string more = anew ? kAll : kAll + " existing=continue";
    static_cast<void>(write_run(faulty, {.options = more, .first = anew ? 1 : 3, .last = 4}));
    const Result<IndexContents> index = load_index(*target, index_path(kPath));
    const std::size_t steps = index.is_ok() ? index->steps.size() : 0;
    for (const std::string& path : {kText, kJson, kPickle}) {
      std::string text = text_of(*target, path);
      if (text.ends_with(grib2::cfgrib_tail)) text.resize(text.size() - grib2::cfgrib_tail.size());
      const std::string whole = expected(path, static_cast<std::int64_t>(steps));
      EXPECT_TRUE(whole.starts_with(text)) << path << ": " << text << "is ahead of " << whole;
    }
    if (steps > 0) {
      EXPECT_TRUE(write_run(target, {.options = kAll + " existing=continue",
                                     .first = static_cast<std::int64_t>(steps) + 1,
                                     .last = static_cast<std::int64_t>(steps) + 1})
                      .is_ok());
      expect_all(*target, static_cast<std::int64_t>(steps) + 1, "continued");
    }
    if (!faulty->fired()) break;
  }
}

TEST(listings, are_whole_after_a_loss_of_power_and_a_run_that_goes_on) {
  using Writes = storage::CrashPolicy::Writes;
  using Entries = storage::CrashPolicy::Entries;
  std::int64_t first = 0;
  for (const storage::CrashPolicy policy : {storage::CrashPolicy{Writes::dropped, Entries::lost},
                                            {Writes::garbage, Entries::some},
                                            {Writes::torn, Entries::kept}}) {
    ++first;
    for (std::int64_t nth = stride() > 1 ? first : 1;; nth += stride()) {
      const auto disk = storage::crash_target();
      const auto faulty =
          storage::faulty_target(disk, {nth, storage::Fault::stopped, storage::changing_calls, true});
      static_cast<void>(write_run(faulty, {.options = kAll, .last = 3}));
      const std::shared_ptr<storage::CrashTarget> after =
          disk->crash(policy, static_cast<std::uint64_t>(nth));
      const Result<IndexContents> index = load_index(*after, index_path(kPath));
      const std::int64_t next = index.is_ok() ? static_cast<std::int64_t>(index->steps.size()) + 1 : 1;
      const Status gone_on =
          write_run(after, {.options = kAll + " existing=continue", .first = next, .last = 4});
      EXPECT_TRUE(next > 4 || gone_on.is_ok()) << "call " << nth << ": " << gone_on.text();
      if (next <= 4) expect_all(*after, 4, cat("call ", nth));
      if (!faulty->fired()) break;
    }
  }
}

TEST(listings, a_failed_one_fails_no_step_and_gets_its_lines_with_the_next) {
  std::int64_t struck = 0;
  for (std::int64_t nth = 1;; ++nth) {
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    ASSERT_TRUE(write_run(target, {.options = kAll, .last = 1}).is_ok());
    const auto faulty = storage::faulty_target(
        target, {nth, storage::Fault::no_space, storage::set_of(storage::Call::write), false});
    const Status status = write_run(faulty, {.options = kAll + " existing=continue", .first = 2, .last = 4});
    if (!faulty->fired()) break;
    // A write of data or index that fails ends the run. Those of listings do not.
    if (!status.is_ok()) continue;
    ++struck;
    expect_all(*target, 4, cat("call ", nth));
  }
  EXPECT_EQ(struck, 10) << "three listings, three steps; one is written once more at the end";
}

TEST(listings, lose_the_lines_of_steps_that_are_cut_off) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.options = kAll, .last = 4}).is_ok());
  ASSERT_TRUE(recover(*target, kPath, {.through_lead = 7200}).is_ok());
  expect_all(*target, 2, "cut back");
  // A stream without index= that goes on leaves what is there, and one with it adds what is missing. cfgrib
  // compares ages: it would find its index too old, and make no other one.
  ASSERT_TRUE(write_run(target, {.options = "existing=continue", .first = 3, .last = 3}).is_ok());
  EXPECT_EQ(text_of(*target, kText), expected(kText, 2)) << "without index=";
  EXPECT_EQ(text_of(*target, kJson), expected(kJson, 2)) << "without index=";
  EXPECT_FALSE(*target->exists(kPickle)) << "without index=";
  ASSERT_TRUE(write_run(target, {.options = kAll + " existing=continue", .first = 4, .last = 4}).is_ok());
  expect_all(*target, 4, "with it again");
  ASSERT_TRUE(recover(*target, kPath, {.through_lead = 0}).is_ok());
  EXPECT_FALSE(*target->exists(kText) || *target->exists(kJson) || *target->exists(kPickle))
      << "no step is left";
}

// ecCodes' tables give the values of FILE.index, and change with its version.
TEST(listings, in_the_words_of_another_eccodes_are_cut_and_removed_as_others) {
  const auto reworded = [](std::string text, std::string_view from, std::string_view to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return text;
  };
  const std::string key = "\"levtype\": \"", length = "\"_length\": ";
  const auto other = [&](std::int64_t last) { return reworded(expected(kJson, last), key, key + "new-"); };
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.options = kAll, .last = 4}).is_ok());
  ASSERT_TRUE(storage::put_file(*target, kJson, other(4)).is_ok());
  ASSERT_TRUE(recover(*target, kPath, {.through_lead = 7200}).is_ok());
  EXPECT_EQ(text_of(*target, kJson), other(2)) << "cut back";
  ASSERT_TRUE(write_run(target, {.options = kAll + " existing=continue", .first = 3, .last = 4}).is_ok());
  expect_all(*target, 4, "in today's words");
  ASSERT_TRUE(storage::put_file(*target, kJson, other(4)).is_ok());
  ASSERT_TRUE(write_run(target, {.last = 2}).is_ok());
  EXPECT_FALSE(*target->exists(kJson)) << "replaced";
  // The first message of another file has another length.
  const std::string foreign = reworded(other(2), length, length + "1");
  for (const std::string& text : {foreign, foreign.substr(0, foreign.find(length)), std::string("\n")}) {
    ASSERT_TRUE(storage::put_file(*target, kJson, text).is_ok());
    ASSERT_TRUE(recover(*target, kPath, {.through_lead = 3600}).is_ok());
    EXPECT_EQ(text_of(*target, kJson), text);
    EXPECT_EQ(write_run(target, {.options = kAll}).code(), Code::state);
  }
}

TEST(listings, that_a_kill_left_unfinished_go_with_the_steps) {
  for (const bool is_replaced : {false, true}) {
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    ASSERT_TRUE(write_run(target, {.last = 3}).is_ok());
    ASSERT_TRUE(storage::put_file(*target, kText + ".new", expected(kText, 3)).is_ok());
    ASSERT_TRUE(storage::put_file(*target, kJson + ".new", "notes\n").is_ok());
    if (is_replaced) {
      ASSERT_TRUE(write_run(target, {.last = 2}).is_ok());
    } else {
      ASSERT_TRUE(recover(*target, kPath, {.through_lead = 7200}).is_ok());
    }
    EXPECT_FALSE(*target->exists(kText + ".new"));
    EXPECT_EQ(text_of(*target, kJson + ".new"), "notes\n");
  }
}

TEST(listings, of_a_file_that_is_replaced_go_with_it) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.options = kAll, .last = 4}).is_ok());
  ASSERT_TRUE(write_run(target, {.options = "index=wgrib2", .last = 2}).is_ok());
  EXPECT_EQ(text_of(*target, kText), expected(kText, 2));
  EXPECT_FALSE(*target->exists(kJson) || *target->exists(kPickle));
}

// Python's test reads such files with cfgrib itself.
TEST(listings, have_the_entries_of_cfgrib) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.options = "index=cfgrib", .first = 2, .last = 2}).is_ok());
  std::string text = text_of(*target, kPickle);
  ASSERT_TRUE(text.starts_with(grib2::cfgrib_head()) && text.ends_with(grib2::cfgrib_tail)) << text;
  text = text.substr(grib2::cfgrib_head().size());
  const std::string first = text.substr(0, text.find(grib2::cfgrib_entry_end));
  EXPECT_EQ(grib2::cfgrib_offset(first, 1), Bytes{0});
  EXPECT_NE(first.find("\nI20260301\nI0\n"), std::string::npos) << first;
  EXPECT_NE(first.find("\nF2\nVundef\nVregular_ll\nF850\nV"), std::string::npos) << first;
  EXPECT_NE(first.find("\nVundef\nI60\nI130\nF2\nVinstant\nI1\n"), std::string::npos) << first;
  EXPECT_NE(first.find("\nI1772323200\nVisobaricInhPa\n"), std::string::npos) << first;
  EXPECT_NE(text.find("\nF2\nVaccum\nI1\n"), std::string::npos) << "rain ends at hour 2";
  EXPECT_FALSE(*target->exists(kText)) << "not asked for";
}

TEST(listings, that_cfgrib_has_made_itself_are_replaced) {
  const std::string own =
      "\x80\x04\x95\xff\x8c\x0f"
      "cfgrib.messages\x94\x8c\tFileIndex\x94";
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.last = 3}).is_ok());
  ASSERT_TRUE(storage::put_file(*target, kPickle, own).is_ok());
  const Result<IndexContents> index = load_index(*target, index_path(kPath));
  const std::vector<storage::Range> records = ranges_of(index->steps);
  ASSERT_TRUE(listings::complete_all(*target, kPath, records).is_ok());
  EXPECT_EQ(text_of(*target, kPickle), own) << "a repair leaves it alone";
  // cfgrib was killed while it made it, and fails to load it at each open.
  ASSERT_TRUE(storage::put_file(*target, kPickle, "").is_ok());
  ASSERT_TRUE(listings::complete_all(*target, kPath, records).is_ok());
  EXPECT_EQ(text_of(*target, kPickle), expected(kPickle, 3)) << "an empty one is none";
  ASSERT_TRUE(storage::put_file(*target, kPickle, own).is_ok());
  ASSERT_TRUE(recover(*target, kPath, {.through_lead = 7200}).is_ok());
  EXPECT_FALSE(*target->exists(kPickle)) << "it tells of steps that are gone";
  ASSERT_TRUE(storage::put_file(*target, kPickle, own).is_ok());
  ASSERT_TRUE(write_run(target, {.options = kAll + " existing=continue", .first = 3, .last = 3}).is_ok());
  expect_all(*target, 3, "gone on");
  ASSERT_TRUE(storage::put_file(*target, kPickle, "notes\n").is_ok());
  EXPECT_EQ(write_run(target, {.options = "index=cfgrib", .last = 1}).code(), Code::state);
}

/// Somebody else has made cfgrib's index, in a directory where each user may remove only what is theirs.
class StickyDirectory final : public storage::MemoryTarget {
 public:
  StickyDirectory() : MemoryTarget(false) {}
  using MemoryTarget::open;
  Result<std::unique_ptr<storage::File>> open(const std::string& path, storage::OpenMode mode,
                                              unsigned permissions) override {
    const bool is_refused = mode != storage::OpenMode::read || !is_readable;
    if (is_theirs && path == kPickle && is_refused) return storage_error("open", EACCES);
    return MemoryTarget::open(path, mode, permissions);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return is_theirs && to == kPickle ? storage_error("rename", EPERM) : MemoryTarget::rename(from, to);
  }
  Status remove(const std::string& path) override {
    return is_theirs && path == kPickle ? storage_error("remove", EPERM) : MemoryTarget::remove(path);
  }
  bool is_theirs = false, is_readable = true;

 private:
  static Status storage_error(std::string_view what, int number) { return io_error(what, kPickle, number); }
};

TEST(listings, that_another_user_has_made_fail_no_stream) {
  const std::string own =
      "\x80\x04\x95\xff\x8c\x0f"
      "cfgrib.messages\x94\x8c\tFileIndex\x94";
  for (const bool is_readable : {true, false}) {
    const auto target = std::make_shared<StickyDirectory>();
    ASSERT_TRUE(write_run(target, {.last = 3}).is_ok());
    ASSERT_TRUE(storage::put_file(*target, kPickle, own).is_ok());
    target->is_theirs = true;
    target->is_readable = is_readable;
    const auto expect_ok = [&](const Status& status) { EXPECT_TRUE(status.is_ok()) << status.text(); };
    expect_ok(recover(*target, kPath, {.through_lead = 7200}).status());
    for (const char* const index : {"", "index=cfgrib"}) {
      const std::string options = index;
      expect_ok(write_run(target, {.options = options, .last = 2}));
      expect_ok(write_run(target, {.options = options + " existing=continue", .first = 3, .last = 3}));
      expect_ok(write_run(target, {.options = options + " existing=overwrite", .last = 2}));
    }
    target->is_theirs = false;
    EXPECT_EQ(text_of(*target, kPickle), own);
    // One of ours that tells of steps that go away is cut, or they stay.
    ASSERT_TRUE(write_run(target, {.options = "index=cfgrib", .last = 3}).is_ok());
    target->is_theirs = target->is_readable = true;
    EXPECT_FALSE(recover(*target, kPath, {.through_lead = 7200}).is_ok());
    EXPECT_FALSE(recover(*target, kPath, {.through_lead = 0}).is_ok());
  }
}

TEST(listings, lose_lines_when_a_file_is_indexed_again_with_fewer_steps) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.options = kAll, .last = 3}).is_ok());
  const Result<IndexContents> index = load_index(*target, index_path(kPath));
  const std::vector<IndexStep> one(index->steps.begin(), index->steps.begin() + 1);
  ASSERT_TRUE(write_index(*target, kPath, index->header, one).is_ok());
  expect_all(*target, 1, "one step");
}

TEST(listings, follow_a_closed_file_that_a_run_from_a_checkpoint_writes_again) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  const Uuid run = Uuid::random();
  ASSERT_TRUE(write_run(target, {.options = kAll, .last = 3, .run = run}).is_ok());
  // Until the second pair is complete, the first and its listings stay.
  Forecast again{.options = kAll, .first = 2, .last = 5, .finishes = false, .run = run, .behind = 1};
  ASSERT_TRUE(write_run(target, again).is_ok());
  ASSERT_TRUE(*target->exists(again_path(kPath)));
  expect_all(*target, 3, "the first pair");
  again.finishes = true;
  const Status status = write_run(target, again);
  ASSERT_TRUE(status.is_ok()) << status.text();
  EXPECT_FALSE(*target->exists(again_path(kPath)));
  expect_all(*target, 5, "the second pair");
  EXPECT_FALSE(*target->exists(again_path(kPath) + ".idx"));
}

TEST(listings, are_completed_when_a_run_from_a_checkpoint_finishes_a_file_that_was_left_open) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  const Uuid run = Uuid::random();
  ASSERT_TRUE(write_run(target, {.options = kAll, .last = 4, .finishes = false, .run = run}).is_ok());
  ASSERT_TRUE(target->remove(kText).is_ok());
  const Status status = write_run(target, {.options = kAll, .first = 3, .last = 3, .run = run, .behind = 2});
  ASSERT_TRUE(status.is_ok()) << status.text();
  expect_all(*target, 3, "cut back and finished");
}

TEST(listings, are_completed_by_a_repair) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.options = kAll, .last = 3}).is_ok());
  // A crash between the commit of a step and its lines, in the middle of a write.
  const std::string text = text_of(*target, kText);
  ASSERT_TRUE(storage::put_file(*target, kText, text.substr(0, text.size() - 60)).is_ok());
  const Result<IndexContents> index = load_index(*target, index_path(kPath));
  const std::vector<storage::Range> records = ranges_of(index->steps);
  ASSERT_TRUE(listings::complete_all(*target, kPath, records).is_ok());
  expect_all(*target, 3, "completed");
}

TEST(listings, that_say_it_in_other_words_are_left_alone_by_a_repair) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.last = 3}).is_ok());
  std::string others = expected(kText, 2);
  others.replace(others.find("TPRATE"), 6, "MYRAIN");
  ASSERT_TRUE(storage::put_file(*target, kText, others).is_ok());
  const Result<IndexContents> index = load_index(*target, index_path(kPath));
  const std::vector<storage::Range> records = ranges_of(index->steps);
  ASSERT_TRUE(listings::complete_all(*target, kPath, records).is_ok());
  EXPECT_EQ(text_of(*target, kText), others);
}

TEST(listings, never_take_the_place_of_a_file_of_somebody_else) {
  for (const std::string& foreign :
       {std::string("1:0:d=2026030100:TMP Temperature [K]:850 mb:1 hour fcst:\n"), std::string("notes\n")}) {
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    ASSERT_TRUE(storage::put_file(*target, kText, foreign).is_ok());
    Status status = write_run(target, {.options = kAll});
    EXPECT_EQ(status.code(), Code::state) << status.text();
    EXPECT_NE(status.text().find(kText), std::string::npos) << status.text();
    EXPECT_FALSE(*target->exists(kPath));
    // It stays beside a file whose stream does not ask for a listing, and beside one that goes on.
    ASSERT_TRUE(write_run(target, {.last = 2}).is_ok());
    for (const char* more : {"", " existing=continue"}) {
      status = write_run(target, {.options = kAll + more, .first = 3, .last = 3});
      EXPECT_EQ(status.code(), Code::state) << status.text();
    }
    ASSERT_TRUE(recover(*target, kPath, {.through_lead = 3600}).is_ok());
    EXPECT_EQ(text_of(*target, kText), foreign);
    ASSERT_TRUE(write_run(target, {.options = kAll + " existing=overwrite", .last = 2}).is_ok());
    expect_all(*target, 2, "overwritten");
  }
}

TEST(listings, of_somebody_else_are_refused_when_a_stream_is_created) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(storage::put_file(*target, kText, "notes\n").is_ok());
  const auto looked = [&](const std::string& options) {
    return check_existing_files(*target, *parse_stream(kPath, "base=2026-03-01 " + options), {});
  };
  EXPECT_EQ(looked("index=wgrib2").code(), Code::state);
  EXPECT_TRUE(looked("index=ecmwf").is_ok());
  EXPECT_TRUE(looked("index=wgrib2 existing=overwrite").is_ok());
}

TEST(listings, have_the_name_of_an_old_index_once_that_has_todays_name) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.last = 2}).is_ok());
  ASSERT_TRUE(target->rename(index_path(kPath), old_index_path(kPath)).is_ok());
  const StreamRequest request = *parse_stream(kPath, "base=2026-03-01 index=wgrib2");
  EXPECT_TRUE(check_existing_files(*target, request, {}).is_ok());
  const Status status = write_run(target, {.options = kAll + " existing=continue", .first = 3, .last = 3});
  ASSERT_TRUE(status.is_ok()) << status.text();
  expect_all(*target, 3, "beside an old index");
}

TEST(listings, are_written_anew_where_the_places_agree_and_the_records_do_not) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  ASSERT_TRUE(write_run(target, {.options = "index=wgrib2", .last = 2}).is_ok());
  std::string stale = text_of(*target, kText);
  stale.replace(stale.find("500 mb"), 6, "300 mb");
  ASSERT_TRUE(storage::put_file(*target, kText, stale).is_ok());
  ASSERT_TRUE(
      write_run(target, {.options = "index=wgrib2 existing=continue", .first = 3, .last = 3}).is_ok());
  EXPECT_EQ(text_of(*target, kText), expected(kText, 3));
}

TEST(listings, are_asked_for_by_words_of_their_format) {
  const auto why = [](const std::string& pattern, const std::string& options) {
    return parse_stream(pattern, "base=2026-03-01 " + options).status().text();
  };
  EXPECT_NE(why(kPath, "index=wgrib").find("wgrib2"), std::string::npos) << why(kPath, "index=wgrib");
  EXPECT_NE(why(kPath, "index=wgrib2,wgrib2").find("twice"), std::string::npos);
  EXPECT_NE(why("fc.nc", "index=wgrib2").find("format=grib2"), std::string::npos)
      << why("fc.nc", "index=wgrib2");
  EXPECT_EQ(parse_stream(kPath, "base=2026-03-01 index=ecmwf,wgrib2")->options.listings.size(), 2U);
}

// The reader's ecCodes may tell fields apart that have the same keys here.
TEST(listings, of_cfgrib_refuse_fields_that_eccodes_does_not_know) {
  const StreamRequest request = *parse_stream(kPath, "base=2026-03-01 centre=98 index=cfgrib");
  const auto codec = std::move(*formats::make_codec(request.definition));
  codec::FieldDefinition own = grib_field("own", "surface", {0});
  own.keys = {{"discipline", "0"}, {"parameterCategory", "192"}, {"parameterNumber", "3"}};
  ASSERT_TRUE(codec->define(own).is_ok());
  ASSERT_TRUE(codec->define(grib_field("t", "isobaricInhPa", {850})).is_ok());
  const Status status = listings::check_field(*codec, 0, request.options.listings);
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_NE(status.text().find("leave cfgrib out of index="), std::string::npos) << status.text();
  EXPECT_TRUE(listings::check_field(*codec, 1, request.options.listings).is_ok());
}

TEST(listings, refuse_fields_whose_line_is_not_known) {
  const StreamRequest request = *parse_stream(kPath, "base=2026-03-01 index=wgrib2,ecmwf");
  const auto codec = std::move(*formats::make_codec(request.definition));
  ASSERT_TRUE(codec->define(grib_field("t", "isobaricInhPa", {850})).is_ok());
  EXPECT_TRUE(listings::check_field(*codec, 0, request.options.listings).is_ok());
  codec::FieldDefinition ozone = grib_field("o", "surface", {0});
  ozone.keys = {{"productDefinitionTemplateNumber", "40"},
                {"discipline", "0"},
                {"parameterCategory", "20"},
                {"parameterNumber", "2"},
                {"constituentType", "0"}};
  const Status defined = codec->define(ozone);
  ASSERT_TRUE(defined.is_ok()) << defined.text();
  const Status status = listings::check_field(*codec, 1, request.options.listings);
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_NE(status.text().find("productDefinitionTemplateNumber=40"), std::string::npos) << status.text();
}

// A run whose storage fails for a moment must not be told to move its own listing away.
TEST(listings, of_a_data_file_that_cannot_be_read_are_not_taken_for_files_of_others) {
  const std::shared_ptr<storage::Target> disk = storage::memory_target();
  ASSERT_TRUE(write_run(disk, {.options = "index=wgrib2"}).is_ok());
  std::vector<codec::Listing> kinds;
  for (const codec::Listing& each : formats::listings())
    if (each.word == "wgrib2") kinds.push_back(each);
  ASSERT_EQ(kinds.size(), 1U);
  for (const storage::Fault fault : {storage::Fault::io_error, storage::Fault::no_space}) {
    for (int nth = 1;; ++nth) {
      const auto faulty = storage::faulty_target(disk, {nth, fault, storage::all_calls});
      const Status status = listings::check_ours(*faulty, kPath, kinds);
      EXPECT_EQ(status.is_ok(), !faulty->fired()) << nth << ": " << status.text();
      EXPECT_NE(status.code(), Code::state) << nth << ": " << status.text();
      if (!faulty->fired()) break;
    }
  }
}

}  // namespace
}  // namespace tailrace::streams
