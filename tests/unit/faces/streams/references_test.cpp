// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/references/references.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "../../ground/storage/scratch.hpp"
#include "faces/streams/definition/parse.hpp"
#include "faces/streams/files/file_ledger.hpp"
#include "faces/streams/resume/resume.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"

namespace tailrace::streams {

using references::References;
namespace {

using Text = nlohmann::json;

/// A member of a reference file that is JSON itself.
Text member_of(const Text& whole, const std::string& name) {
  return Text::parse(whole.at("refs").at(name).get<std::string>());
}

codec::FieldDefinition plain_field(std::string name) {
  codec::FieldDefinition field;
  field.name = std::move(name);
  field.shape = {2, 3};
  field.levels = {"surface", {0}, {}, {}};
  return field;
}

Text references_of(const std::vector<codec::FieldDefinition>& fields,
                   const std::vector<codec::FinishedStep>& steps, const codec::Decoding& decoding = {}) {
  const auto made = References::make(
      parse_stream("fc.raw", "base=2026-03-01 format=raw references=on")->definition, fields, decoding);
  EXPECT_TRUE(made.is_ok()) << made.status().text();
  return Text::parse((*made)->text("fc.raw", steps));
}

TEST(references, tell_where_each_record_lies_and_what_its_bytes_are) {
  codec::FieldDefinition levels = plain_field("t");
  levels.levels = {"isobaricInhPa", {1000, 850}, {}, {}};
  levels.missing = std::nan("");
  codec::FieldDefinition whole = plain_field("count");
  whole.type = ElementType::i16;
  whole.missing = -9;
  const std::vector<codec::FinishedStep> steps{{0, {{0, 0, 0, 24}, {0, 1, 24, 24}, {1, 0, 48, 12}}},
                                               {3600, {{0, 1, 60, 24}}}};
  const Text refs = references_of({levels, whole}, steps);
  EXPECT_EQ(refs.at("version"), 1);
  EXPECT_TRUE(refs.at("templates").at("f").get<std::string>().ends_with("/fc.raw"));
  EXPECT_EQ(refs["refs"]["t/0.1.0.0"], Text::parse("[\"{{f}}\", 24, 24]"));
  EXPECT_EQ(refs["refs"]["t/1.1.0.0"], Text::parse("[\"{{f}}\", 60, 24]"));
  EXPECT_FALSE(refs["refs"].contains("t/1.0.0.0")) << "the record was not put";
  EXPECT_EQ(refs["refs"]["count/0.0.0"], Text::parse("[\"{{f}}\", 48, 12]"));
  const Text t = member_of(refs, "t/.zarray");
  EXPECT_EQ(t.at("shape"), Text::parse("[2, 2, 2, 3]"));
  EXPECT_EQ(t.at("chunks"), Text::parse("[1, 1, 2, 3]"));
  EXPECT_EQ(t.at("dtype"), "<f4");
  EXPECT_EQ(t.at("fill_value"), "NaN");
  EXPECT_TRUE(t.at("filters").is_null());
  EXPECT_EQ(member_of(refs, "count/.zarray").at("dtype"), "<i2");
  EXPECT_EQ(member_of(refs, "count/.zarray").at("fill_value"), -9);
  EXPECT_EQ(member_of(refs, "count/.zattrs").at("_ARRAY_DIMENSIONS").size(), 3U);
  EXPECT_FALSE(member_of(refs, "count/.zattrs").contains("_FillValue"));
  // Two float64 of big-endian bytes: 0 and 3600.
  EXPECT_EQ(refs["refs"]["time/0"], "base64:AAAAAAAAAABArCAAAAAAAA==");
  EXPECT_EQ(member_of(refs, "time/.zarray").at("dtype"), ">f8");
}

TEST(references, tell_a_fill_value_of_integers_only_if_the_program_does_or_records_were_not_put) {
  std::vector<codec::FieldDefinition> fields{plain_field("ids"), plain_field("told"), plain_field("real")};
  fields[0].type = fields[1].type = ElementType::i64;
  fields[0].levels = {"isobaricInhPa", {1000, 850}, {}, {}};
  fields[1].missing = -9;
  const codec::FinishedStep whole{0, {{0, 0, 0, 48}, {0, 1, 48, 48}, {1, 0, 96, 48}, {2, 0, 144, 24}}};
  Text refs = references_of(fields, {whole});
  EXPECT_TRUE(member_of(refs, "ids/.zarray").at("fill_value").is_null()) << "xarray would make floats of it";
  EXPECT_EQ(member_of(refs, "told/.zarray").at("fill_value"), -9);
  EXPECT_FALSE(member_of(refs, "real/.zarray").at("fill_value").is_null());
  refs = references_of(fields, {whole, {3600, {{0, 1, 168, 48}, {0, 1, 168, 48}}}});
  EXPECT_EQ(member_of(refs, "ids/.zarray").at("fill_value"), -9223372036854775806);
}

TEST(references, name_a_filter_that_decodes_records) {
  const Text refs = references_of({plain_field("2t")}, {{0, {{0, 0, 0, 99}}}}, {false, "grib"});
  const Text array = member_of(refs, "2t/.zarray");
  EXPECT_EQ(array.at("dtype"), "<f8");
  EXPECT_EQ(array.at("filters"), Text::parse(R"([{"id": "grib", "var": "2t", "dtype": "float64"}])"));
  EXPECT_EQ(array.at("fill_value"), "NaN");
  EXPECT_EQ(member_of(refs, "2t/.zattrs").at("standard_name"), "air_temperature") << "a short name of GRIB";
}

TEST(references, tell_what_a_field_is_only_with_conventions_of_weather) {
  const std::vector<codec::FieldDefinition> fields{plain_field("w")};
  const auto attributes = [&](const std::string& options) {
    const auto stream = parse_stream("fc.raw", "base=2026-03-01 format=raw " + options)->definition;
    const auto made = References::make(stream, fields, {});
    return member_of(Text::parse((*made)->text("fc.raw", {})), "w/.zattrs");
  };
  for (const std::string name : {"standard_name", "units", "long_name"})
    EXPECT_FALSE(attributes("").contains(name)) << name;
  EXPECT_EQ(attributes("conventions=weather").at("units"), "Pa s-1");
}

TEST(references, have_bounds_of_intervals_whose_begin_the_definitions_tell) {
  codec::FieldDefinition sum = plain_field("sum");
  sum.statistic.process = codec::Process::accum;
  const std::vector<codec::FinishedStep> steps{{3600, {{0, 0, 0, 24}}}};
  const Text from_start = references_of({sum}, steps);
  const std::string bounds = member_of(from_start, "time/.zattrs").at("bounds");
  EXPECT_EQ(from_start["refs"][bounds + "/0.0"], "base64:AAAAAAAAAABArCAAAAAAAA==");
  sum.statistic.since = codec::Statistic::Since::last_output;
  const Text from_last = references_of({sum}, steps);
  EXPECT_FALSE(member_of(from_last, "time/.zattrs").contains("bounds"));
  EXPECT_FALSE(from_last["refs"].contains(bounds + "/.zarray"));
  EXPECT_TRUE(member_of(from_last, "sum/.zattrs").contains("cell_methods"));
}

TEST(references, that_get_their_fields_one_by_one_are_those_made_of_all_at_once) {
  codec::FieldDefinition levels = plain_field("t");
  levels.levels = {"isobaricInhPa", {1000, 850}, {}, {}};
  codec::FieldDefinition sum = plain_field("sum");
  sum.statistic.process = codec::Process::accum;
  const std::vector<codec::FieldDefinition> fields{plain_field("2t"), levels, sum};
  const auto stream = parse_stream("fc.raw", "base=2026-03-01 format=raw references=on")->definition;
  const auto grown = std::move(*References::make(stream, {}, {}));
  for (const codec::FieldDefinition& field : fields) EXPECT_TRUE(grown->add(field).is_ok());
  const std::vector<codec::FinishedStep> steps{{3600, {{0, 0, 0, 24}, {1, 0, 24, 24}, {2, 0, 48, 24}}}};
  EXPECT_EQ(Text::parse(grown->text("fc.raw", steps)), references_of(fields, steps));
}

TEST(references, are_refused_for_types_that_no_array_of_netcdf_has) {
  codec::FieldDefinition field = plain_field("z");
  field.type = ElementType::c64;
  const Status status = References::make({}, {field}, {}).status();
  EXPECT_FALSE(status.is_ok());
  EXPECT_NE(status.text().find("'z'"), std::string::npos) << status.text();
}

/// Writes steps of one raw field, as far as the storage lets it. `before_end` runs before the file is
/// finished; a run that it ends with false is killed there.
void write_steps(const std::shared_ptr<storage::Target>& target, const std::string& options,
                 std::int64_t first, std::int64_t last, const std::function<bool()>& before_end = {},
                 const Uuid& run = Uuid::random()) {
  const std::string all = cat("base=2026-03-01 manifest=off format=raw ", options);
  pipeline::Opening opening;
  opening.definition = parse_stream("fc.raw", all)->definition;
  opening.fields = {plain_field("t")};
  const auto codec = std::move(*formats::make_codec(opening.definition));
  ASSERT_TRUE(codec->define(opening.fields[0]).is_ok());
  opening.prepared = {codec->prepared(0)};
  opening.ledger = pack_ledger("fc.raw", all, run, {});
  const auto ledger = std::move(*make_ledger(opening, *codec, target));
  const auto begun = ledger->begin_file("fc.raw", first, 1);
  if (!begun.is_ok()) return;
  const auto file = target->open(begun->path, storage::OpenMode::existing);
  if (!file.is_ok()) return;
  Bytes end = begun->end;
  for (std::int64_t step = first; step <= last; ++step, end += 24) {
    if (!(*file)->write(ByteVector(24, std::byte{7}), end).is_ok() || !(*file)->sync().is_ok()) return;
    if (!ledger->commit({step, step, "fc.raw", end, end + 24, {{0, 0, end, 24}}}).is_ok()) return;
  }
  if (!before_end || before_end()) static_cast<void>(ledger->finish_file("fc.raw"));
}

/// Returns how many steps the reference file tells, -1 if there is none.
std::int64_t told_steps(storage::Target& target) {
  const std::string path = references_path("fc.raw");
  if (!*target.exists(path)) return -1;
  const auto file = std::move(*target.open(path, storage::OpenMode::read));
  std::string text(static_cast<std::size_t>(*file->size()), ' ');
  EXPECT_TRUE(file->read(std::as_writable_bytes(std::span(text)), 0).is_ok());
  EXPECT_TRUE(Text::accept(text)) << text;
  return member_of(Text::parse(text), "time/.zarray").at("shape")[0];
}

std::int64_t committed_steps(storage::Target& target) {
  const auto index = load_index(target, index_path("fc.raw"));
  return index.is_ok() ? static_cast<std::int64_t>(index->steps.size()) : 0;
}

TEST(references, are_never_ahead_of_the_index_whatever_storage_call_is_the_last) {
  for (std::int64_t nth = 1;; ++nth) {
    SCOPED_TRACE(cat("call ", nth));
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    write_steps(target, "references=on", 0, 2);
    ASSERT_EQ(told_steps(*target), 3);
    const auto faulty =
        storage::faulty_target(target, {nth, storage::Fault::stopped, storage::all_calls, true});
    // A job that begins anew, or goes on with the file, and is killed.
    write_steps(faulty, nth % 2 == 0 ? "references=on" : "references=on existing=continue",
                nth % 2 == 0 ? 0 : 3, 6);
    EXPECT_LE(told_steps(*target), committed_steps(*target));
    write_steps(target, "references=on existing=continue", 7, 8);
    EXPECT_EQ(told_steps(*target), committed_steps(*target));
    write_steps(target, "", 0, 1);
    EXPECT_EQ(told_steps(*target), -1) << "of a file that was replaced";
    if (!faulty->fired()) break;
  }
}

TEST(references, take_a_small_share_of_the_time_however_they_grow) {
  // Costs of a write in microseconds, for a file of no step and for each step.
  for (const auto& [fixed, each, step] :
       {std::array<std::int64_t, 3>{1500, 10, 600}, {3000, 5, 600}, {100, 1, 20'000}, {20'000, 30, 5000}}) {
    references::Pace pace;
    std::int64_t now = 0;
    std::int64_t spent = 0;
    std::int64_t written = 0;
    const auto write = [&](std::int64_t steps) {
      const std::int64_t cost = fixed + each * steps;
      pace.wrote(now, now + cost, steps, true);
      now += cost;
      spent += cost;
      ++written;
    };
    for (std::int64_t steps = 1; steps <= 8000; ++steps) {
      now += step;
      if (pace.may_write(now, steps)) write(steps);
    }
    const std::int64_t behind = 8000 - pace.told();
    write(8000);
    EXPECT_LE(spent * 20, now) << fixed << " " << each << " " << step << ": " << written << " times";
    EXPECT_GE(written, 3);
    EXPECT_LT(behind * step, 45 * (fixed + each * 8000)) << "they lag behind";
  }
}

TEST(references, that_tell_all_steps_already_are_not_written_again_at_the_end) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  const auto mark = [&] { return storage::put_file(*target, references_path("fc.raw"), "{}").is_ok(); };
  write_steps(target, "references=on", 0, 0, mark);
  EXPECT_EQ(storage::contents_of(*target, references_path("fc.raw")), "{}");
  // Without time between its steps a file lacks the last ones until it is finished.
  write_steps(target, "references=on", 0, 3, mark);
  EXPECT_EQ(told_steps(*target), 4);
}

TEST(references, leave_nothing_of_a_file_for_which_the_disk_has_no_room) {
  for (std::int64_t nth = 1;; ++nth) {
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    const auto faulty =
        storage::faulty_target(target, {nth, storage::Fault::no_space, storage::changing_calls, false});
    write_steps(faulty, "references=on", 0, 0);
    EXPECT_FALSE(*target->exists(references_path("fc.raw") + ".new")) << "call " << nth;
    if (!faulty->fired()) break;
  }
}

TEST(references, stay_as_they_are_if_a_stream_without_fields_finishes_the_file) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  const Uuid run = Uuid::random();
  write_steps(
      target, "references=on", 0, 3, [] { return false; }, run);
  const std::int64_t told = told_steps(*target);
  EXPECT_GE(told, 1);
  const std::string all = "base=2026-03-01 manifest=off format=raw references=on";
  pipeline::Opening opening;
  opening.definition = parse_stream("fc.raw", all)->definition;
  const auto codec = std::move(*formats::make_codec(opening.definition));
  opening.ledger = pack_ledger("fc.raw", all, run, Position{"fc.raw", run, 4, 3, 3, {}});
  const auto ledger = make_ledger(opening, *codec, target);
  ASSERT_TRUE(ledger.is_ok()) << ledger.status().text();
  for (const std::string& path : (*ledger)->left_open()) {
    const Status finished = (*ledger)->finish_file(path);
    EXPECT_TRUE(finished.is_ok()) << finished.text();
  }
  const auto index = load_index(*target, index_path("fc.raw"));
  ASSERT_TRUE(index.is_ok());
  EXPECT_TRUE(index->closed);
  EXPECT_EQ(index->steps.size(), 4U);
  EXPECT_EQ(told_steps(*target), told);
}

TEST(references, go_when_a_file_is_indexed_again) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  write_steps(target, "references=on", 0, 2);
  const auto index = load_index(*target, index_path("fc.raw"));
  ASSERT_TRUE(index.is_ok());
  const Status written = write_index(*target, "fc.raw", index->header, {});
  ASSERT_TRUE(written.is_ok()) << written.text();
  EXPECT_EQ(told_steps(*target), -1);
}

TEST(references, are_removed_when_steps_are_cut_off) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  write_steps(target, "references=on", 0, 2);
  ASSERT_TRUE(recover(*target, "fc.raw").is_ok());
  EXPECT_EQ(told_steps(*target), 3) << "nothing was cut";
  ASSERT_TRUE(recover(*target, "fc.raw", {.through_lead = 1}).is_ok());
  EXPECT_EQ(told_steps(*target), -1);
}

TEST(references, go_with_the_bytes_that_they_tell_of) {
  const auto disk = storage::memory_target();
  const std::string again = again_path("fc.raw");
  for (const std::string& path :
       {std::string("fc.raw"), index_path("fc.raw"), references_path("fc.raw"), again, index_path(again)})
    ASSERT_TRUE(storage::put_file(*disk, path, "of " + path).is_ok());
  const Status replaced = replace_by_again(*disk, "fc.raw");
  ASSERT_TRUE(replaced.is_ok()) << replaced.text();
  EXPECT_EQ(storage::contents_of(*disk, "fc.raw"), "of " + again);
  EXPECT_FALSE(*disk->exists(references_path("fc.raw")));
}

}  // namespace
}  // namespace tailrace::streams
