// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Parts of input streams by themselves: the ring of a field, and the steps and records of files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <new>
#include <thread>

#include "../unit/ground/storage/scratch.hpp"
#include "faces/input/leads.hpp"
#include "faces/input/loader.hpp"
#include "faces/input/ring.hpp"
#include "formats/index/index.hpp"
#include "formats/registry/registry.hpp"
#include "ground/comm/transport.hpp"
#include "ground/storage/forwarding.hpp"

namespace tailrace::input {
namespace {

constexpr std::int64_t an_hour = 3600;

/// A process that is alone.
class Silent final : public comm::Transport {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  void send(int, comm::LineNumber, comm::Traffic, ByteVector) override {}
  bool progress() override { return false; }
  std::optional<comm::Envelope> receive() override { return {}; }
  std::optional<comm::Envelope> receive_request() override { return {}; }
  std::optional<ByteVector> receive_from(int, comm::LineNumber, comm::Traffic) override { return {}; }
  [[nodiscard]] Bytes unsent(comm::LineNumber, comm::Traffic) const override { return 0; }
  [[nodiscard]] bool all_sent() const override { return true; }
};

FieldDefinition small_field() {
  FieldDefinition field;
  field.name = "t";
  field.levels.type = "surface";
  field.levels.values = {0};
  field.shape = {2, 3};
  field.cut = {{0, 0}, {2, 3}};
  return field;
}

/// A ring in memory of its own.
struct OwnRing {
  explicit OwnRing(const FilesDefinition& files)
      : memory(static_cast<std::size_t>(Ring::bytes_for(files, small_field()) / 64 + 1)),
        ring((Ring::make(bytes(), files, small_field()), bytes()), transport) {}
  std::byte* bytes() { return memory.data()->bytes; }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory;
  Silent transport;
  Ring ring;
};

using Leads = std::vector<std::int64_t>;

TEST(input_ring, the_steps_that_make_an_open_step_stay_though_one_between_them_comes) {
  FilesDefinition files;
  files.follows = files.is_linear = true;
  files.leads = {0, 6 * an_hour};
  OwnRing own(files);
  Ring& ring = own.ring;
  EXPECT_EQ(ring.begin(0, 3 * an_hour), 3 * an_hour);
  EXPECT_EQ(*ring.around(3 * an_hour), (Leads{0, 6 * an_hour}));
  ring.add_steps(Leads{0, 3 * an_hour, 6 * an_hour});
  EXPECT_EQ(*ring.around(3 * an_hour), (Leads{0, 6 * an_hour})) << "another rank of the node comes later";
  EXPECT_TRUE(ring.find(0) && ring.find(6 * an_hour)) << "a rank copies from these slots";
  EXPECT_EQ(ring.begin(1, 3 * an_hour), 3 * an_hour);
  EXPECT_EQ(*ring.around(3 * an_hour), Leads{3 * an_hour});
}

TEST(input_ring, a_missing_step_is_not_interpolated_over_unless_that_is_asked_for) {
  FilesDefinition files;
  files.pattern = "a_{lead:03h}";
  files.is_linear = true;
  const auto at = [&](std::int64_t hours, const Leads& in_hours) {
    Leads there = in_hours;
    for (std::int64_t& each : there) each *= an_hour;
    return files.around(there, hours * an_hour);
  };
  const auto is_missing = [&](std::int64_t hours, const Leads& there) {
    return at(hours, there).status().code() == Code::argument;
  };
  const Leads hole{0, 3, 6, 12, 15};
  const Status told = at(7, hole).status();
  EXPECT_EQ(told.code(), Code::argument);
  for (const char* const part : {"a_009", "32400", "each 10800 s", "between=bridge"})
    EXPECT_NE(told.text().find(part), std::string::npos) << part << " is not in " << told.text();
  EXPECT_NE(at(4, {0, 3, 18, 24}).status().text().find("21600 s (a_006) is missing"), std::string::npos);
  EXPECT_EQ(*at(4, hole), (Leads{3 * an_hour, 6 * an_hour})) << "elsewhere nothing is missing";
  EXPECT_EQ(*at(12, hole), Leads{12 * an_hour});
  EXPECT_TRUE(is_missing(1, {0, 6, 9}) && is_missing(7, {0, 3, 6, 12}) && is_missing(4, {0, 3, 18, 24}));
  EXPECT_FALSE(is_missing(7, {0, 3, 6, 12, 18})) << "steps come less often from 6 hours on";
  EXPECT_FALSE(is_missing(5, {0, 24})) << "nothing tells how often steps come";
  EXPECT_FALSE(is_missing(40 * 24, {0, 31 * 24, 59 * 24, 90 * 24})) << "months";
  files.follows = true;
  EXPECT_FALSE(is_missing(7, {0, 3, 6, 12})) << "the next step may come as late";
  EXPECT_TRUE(is_missing(7, hole));
  files.bridges = true;
  EXPECT_EQ(*at(7, hole), (Leads{6 * an_hour, 12 * an_hour}));
  const auto request = parse_open("a", "between=bridge");
  ASSERT_TRUE(request.is_ok());
  EXPECT_TRUE(request->is_linear && request->bridges);
}

TEST(input_files, an_index_is_looked_at_while_its_file_is_opened) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  FilesDefinition definition;
  definition.pattern = "in";
  definition.follows = true;
  bool has_looked = false;
  Files* files = nullptr;
  std::future<bool> look;
  const Opener opener = [&](const std::string&) -> Result<std::shared_ptr<const sources::Source>> {
    look = std::async(std::launch::async, [&] { return files->commits(0).is_ok(); });
    has_looked = look.wait_for(std::chrono::seconds(2)) == std::future_status::ready;
    return Status(Code::io, "no file");
  };
  Files all(definition, opener, target.get());
  files = &all;
  EXPECT_FALSE(all.at(0).is_ok());
  EXPECT_TRUE(has_looked);
  EXPECT_TRUE(look.get());
}

/// The clock of file times stands still for some milliseconds: a change of the index in them does not show.
TEST(input_files, an_index_that_has_just_been_written_is_not_taken_for_unchanged) {
  const storage::ScratchDirectory scratch;
  const std::unique_ptr<storage::Target> target = storage::posix_target();
  const std::string path = scratch / "in";
  streams::IndexHeader header;
  header.format = "raw";
  header.fields.push_back({"t", ElementType::f32, {2, 3}, "surface", {0}});
  ASSERT_TRUE(streams::IndexWriter::create(*target, path + ".trx", header).is_ok());
  bool has_seen = false;
  for (int tries = 0; tries < 100 && !has_seen; ++tries) {
    const auto begin = std::chrono::steady_clock::now();
    std::filesystem::last_write_time(path + ".trx", std::filesystem::file_time_type::clock::now());
    const Result<CommittedSteps> fresh = CommittedSteps::read(*target, path);
    ASSERT_TRUE(fresh.is_ok() && fresh->has_index()) << fresh.status().text();
    if (std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(30)) continue;
    has_seen = true;
    EXPECT_FALSE(*fresh->is_current(*target));
  }
  EXPECT_TRUE(has_seen);
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  const Result<CommittedSteps> later = CommittedSteps::read(*target, path);
  ASSERT_TRUE(later.is_ok());
  EXPECT_TRUE(*later->is_current(*target));
}

TEST(input_ring, another_field_says_which_steps_make_the_open_one) {
  FilesDefinition files;
  files.follows = true;
  files.leads = {0};
  OwnRing own(files);
  Ring& ring = own.ring;
  ring.begin(0, 3 * an_hour);
  EXPECT_FALSE(ring.find(3 * an_hour)) << "this ring has not heard of it";
  ring.make_of(Leads{3 * an_hour});
  EXPECT_TRUE(ring.find(3 * an_hour));
  EXPECT_EQ(ring.steps(), (Leads{0, 3 * an_hour}));
}

TEST(input_ring, a_step_that_is_tried_again_leaves_the_direction_as_it_is) {
  FilesDefinition files;
  files.prefetch = 1;
  for (std::int64_t hour = 0; hour < 6; ++hour) files.leads.push_back(hour * an_hour);
  OwnRing own(files);
  Ring& ring = own.ring;
  ring.begin(0, 4 * an_hour);
  ring.begin(1, 3 * an_hour);
  ring.begin(2, 3 * an_hour);
  EXPECT_TRUE(ring.find(2 * an_hour)) << "leads fall";
  EXPECT_FALSE(ring.find(4 * an_hour));
  ring.begin(3, 5 * an_hour);
  ring.begin(4, 4 * an_hour);
  ring.begin(5, 5 * an_hour);
  EXPECT_FALSE(ring.find(4 * an_hour)) << "leads rise";
}

TEST(input_ring, steps_are_read_ahead_from_where_the_program_seeks) {
  FilesDefinition files;
  files.prefetch = 1;
  for (std::int64_t hour = 0; hour < 9; ++hour) files.leads.push_back(hour * an_hour);
  OwnRing own(files);
  Ring& ring = own.ring;
  ring.begin(0, 0);
  ring.seek(1, 6 * an_hour);
  EXPECT_TRUE(ring.find(6 * an_hour) && ring.find(7 * an_hour));
  EXPECT_EQ(ring.claim(1)->lead, 6 * an_hour);
  ring.begin(1, 6 * an_hour);
  ring.seek(1, 2 * an_hour);
  EXPECT_FALSE(ring.find(2 * an_hour)) << "another rank has begun the step";
}

TEST(input_ring, the_first_step_that_has_a_task_is_told) {
  FilesDefinition files;
  files.prefetch = 2;
  files.leads = {0, an_hour, 2 * an_hour};
  OwnRing own(files);
  Ring& ring = own.ring;
  EXPECT_FALSE(ring.soonest()) << "nothing is planned yet";
  ring.begin(0, 0);
  for (Index ahead = 0; ahead < 3; ++ahead) {
    EXPECT_EQ(ring.soonest(), ahead);
    const auto claim = ring.claim(2);
    ASSERT_TRUE(claim);
    EXPECT_EQ(claim->lead, ahead * an_hour);
  }
  EXPECT_FALSE(ring.soonest());
  EXPECT_FALSE(ring.claim(2));
}

/// A file with nothing but an inventory. Its first read fails if `fails` says so.
class Listed final : public sources::Source {
 public:
  explicit Listed(sources::Inventory inventory, bool fails = false, Bytes bound = 0)
      : fails_(fails), bound_(bound) {
    inventory_ = std::move(inventory);
  }
  Result<Index> read(const sources::RecordPlace&, const sources::Grid& grid, const layout::Box& cut,
                     ElementType, std::byte*, sources::Scratch&) const override {
    EXPECT_EQ(cut.lower.size(), grid.shape.size());
    for (std::size_t d = 0; d < std::min(cut.upper.size(), grid.shape.size()); ++d)
      EXPECT_LE(cut.upper[d], grid.shape[d]);
    if (fails_) return io_error("read", "it", EIO);
    return Index{0};
  }
  [[nodiscard]] Bytes scratch_bound(const sources::RecordPlace&, const sources::Grid&) const override {
    return bound_;
  }

 private:
  bool fails_;
  Bytes bound_;
};

sources::Record record_at(std::int64_t valid, std::int64_t reference = 0) {
  sources::Record record;
  record.field = "t";
  record.level_type = "surface";
  record.valid = valid;
  record.reference = reference;
  return record;
}

/// Files of a made-up directory, and an input stream's look at them.
struct Directory {
  std::shared_ptr<storage::Target> target = storage::memory_target();
  std::map<std::string, sources::Inventory> files;

  sources::Inventory& file(const std::string& path, std::vector<sources::Record> records) {
    EXPECT_TRUE(target->open(path, storage::OpenMode::create).is_ok());
    files[path].records = std::move(records);
    return files[path];
  }
  [[nodiscard]] Opener opener() const {
    return [this](const std::string& path) -> Result<std::shared_ptr<const sources::Source>> {
      if (!files.contains(path)) return io_error("open", path, EIO);
      return std::shared_ptr<const sources::Source>(std::make_shared<Listed>(files.at(path)));
    };
  }
  Result<FilesDefinition> find(const std::string& pattern, const std::string& options) {
    const Result<OpenRequest> request = parse_open(pattern, options);
    EXPECT_TRUE(request.is_ok()) << request.status().text();
    return find_steps(*target, *request, "", opener());
  }
  /// Returns the status of looking for the record of `field` at a lead.
  Result<const sources::Record*> record(const Result<FilesDefinition>& found, std::int64_t lead,
                                        const FieldDefinition& field = small_field()) {
    EXPECT_TRUE(found.is_ok()) << found.status().text();
    Files all(*found, opener());
    kept = *all.at(lead);
    return kept->find(*found, field, lead, 0);
  }
  std::shared_ptr<const OpenFile> kept;
};

/// A directory cannot be listed.
class Closed final : public storage::ForwardingTarget {
 public:
  Closed(std::shared_ptr<storage::Target> below, std::string directory, int error_number)
      : ForwardingTarget(std::move(below)), directory_(std::move(directory)), error_number_(error_number) {}
  Result<std::vector<std::string>> list(const std::string& directory) override {
    if (directory == directory_) return io_error("list", directory, error_number_);
    return below_->list(directory);
  }

 private:
  std::string directory_;
  int error_number_;
};

void expect_text(const Status& status, Code code, const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), code) << status.text();
  for (const std::string& part : parts)
    EXPECT_NE(status.text().find(part), std::string::npos) << part << " is not in " << status.text();
}

TEST(input_files, times_of_another_calendar_are_refused) {
  Directory all;
  all.file("a_000", {record_at(0)}).calendar = Calendar::no_leap;
  const auto named = all.find("a_{lead:03h}", "base=1970-01-01");
  expect_text(all.record(named, 0).status(), Code::settings, {"a_000", "calendar=noleap"});
  EXPECT_TRUE(all.record(all.find("a_{lead:03h}", "base=1970-01-01 calendar=noleap"), 0).is_ok());
  expect_text(all.find("a_000", "base=1970-01-01").status(), Code::settings, {"calendar=noleap"});
  EXPECT_TRUE(all.record(all.find("a_000", ""), 0).is_ok()) << "the file tells";
  all.file("a_000.ready", {});
  expect_text(all.find("a_{lead:03h}", "base=1970-01-01 follow=on").status(), Code::settings,
              {"calendar=noleap"});
}

TEST(input_files, say_why_a_field_that_is_there_is_not_read) {
  Directory all;
  sources::Record other = record_at(0);
  other.field = "u";
  all.file("a_000", {other}).unread = {{"t", {Code::format, "variable 'time': the units are odd"}}};
  const auto found = all.find("a_{lead:03h}", "base=1970-01-01");
  expect_text(all.record(found, 0).status(), Code::format,
              {"a_000: 't' is not read", "variable 'time': the units are odd"});
  // Some of its records are read.
  all.file("a_000", {record_at(0)}).unread = {{"t", {Code::data, "element 3 of 3 is NaN"}}};
  EXPECT_TRUE(all.record(found, 0).is_ok());
  expect_text(all.record(all.find("a_000", "base=1970-01-01"), an_hour).status(), Code::argument,
              {"no 't' at lead 3600 s", "Not all of it is read: element 3 of 3 is NaN"});
  // Nobody knows of which field the rest is.
  all.file("a_000", {record_at(0)}).unread = {{"", {Code::corrupt, "2 messages"}}};
  FieldDefinition unknown = small_field();
  unknown.name = "other";
  expect_text(all.record(found, 0, unknown).status(), Code::argument,
              {"no field 'other'", "Not all of the file is read: 2 messages"});
}

TEST(input_files, a_record_without_a_time_fits_each) {
  Directory all;
  const sources::Record mask = record_at(sources::any_time, sources::any_time);
  all.file("mask", {mask});
  const auto alone = all.find("mask", "");
  ASSERT_TRUE(alone.is_ok()) << alone.status().text();
  EXPECT_EQ(alone->leads, Leads{0}) << "it has one step";
  EXPECT_TRUE(all.record(alone, 0).is_ok());
  all.file("a_000", {mask});
  all.file("a_003", {mask});
  const auto named = all.find("a_{lead:03h}", "");
  EXPECT_EQ(named->leads, (Leads{0, 3 * an_hour}));
  EXPECT_TRUE(all.record(named, 3 * an_hour).is_ok());
  sources::Record other = record_at(3 * an_hour);
  other.field = "u";
  all.file("both", {mask, other});
  const auto both = all.find("both", "base=1970-01-01");
  EXPECT_EQ(both->leads, Leads{3 * an_hour});
  EXPECT_TRUE(all.record(both, 3 * an_hour).is_ok());
}

/// Has a file of another writer count milliseconds after a base time in seconds.
void count_ms(sources::Inventory& inventory, std::int64_t base = 0) {
  inventory.time = TimeAxis::of_leads(*find_time_unit("ms"));
  inventory.base = base;
  inventory.is_rounded = true;
}

TEST(input_files, times_that_are_rounded_to_seconds_are_rounded_for_the_base_time_too) {
  Directory all;
  // 0.958333, 1 and 1.041667 days.
  count_ms(all.file("days", {record_at(971, 971), record_at(1000, 1000), record_at(3601029, 3601029)}),
           82799);
  const auto days = all.find("days", "");
  ASSERT_TRUE(days.is_ok()) << days.status().text();
  EXPECT_EQ(days->leads, (Leads{0, 3600}));
  count_ms(all.file("runs", {record_at(667, 667), record_at(1334, 1334)}));
  EXPECT_TRUE(all.record(all.find("runs", "base=1970-01-01"), 1).is_ok()) << "both are at one second";
}

TEST(input_files, an_index_says_for_all_files_what_is_not_rounded) {
  Directory all;
  streams::IndexHeader header;
  header.format = "cdf5";
  header.base = {1970, 1, 1, 0, 0, 0};
  header.time = TimeAxis::of_leads(*find_time_unit("ms"));
  const auto index = *all.target->open("y_00.trx", storage::OpenMode::create);
  ASSERT_TRUE(index->write(streams::encode_header(header), 0).is_ok());
  ASSERT_TRUE(index->close().is_ok());
  count_ms(all.file("y_00", {record_at(0), record_at(667)}));
  count_ms(all.file("y_01", {record_at(1334)}));  // has lost its index
  const auto found = all.find("y_{valid:%S}", "base=1970-01-01");
  ASSERT_TRUE(found.is_ok()) << found.status().text();
  EXPECT_EQ(found->leads, (Leads{0, 667, 1334}));
}

TEST(input_files, names_of_leads_between_seconds_need_their_unit) {
  Directory all;
  for (const char* const name : {"y_00000", "y_00667"}) all.file(name, {record_at(0)});
  expect_text(all.find("y_{lead:05ms}", "base=1970-01-01").status(), Code::settings,
              {"y_00667 has a lead between two seconds", "give lead_unit=ms"});
  EXPECT_EQ(all.find("y_{lead:05ms}", "base=1970-01-01 lead_unit=ms")->leads, (Leads{0, 667}));
  FilesDefinition files;
  files.time = TimeAxis::of_leads(*find_time_unit("ns"));
  constexpr std::int64_t long_time = 1'000'000'000'000'000'000;
  EXPECT_EQ(files.missing_step(Leads{0, long_time, 4 * long_time, 5 * long_time}, 3 * long_time),
            2 * long_time);
}

TEST(input_files, a_file_of_times_from_no_date_has_its_fields_without_time) {
  Directory all;
  sources::Record other = record_at(*TimeAxis::code_of(1));
  other.field = "u";
  const sources::Record mask = record_at(sources::any_time, sources::any_time);
  sources::Inventory& inventory = all.file("months", {other, mask});
  inventory.time = TimeAxis::of_model();
  for (const char* const follow : {"", "base=1970-01-01 follow=on"}) {
    all.file("months.ready", {});
    const auto found = all.find("months", follow);
    ASSERT_TRUE(found.is_ok()) << found.status().text();
    EXPECT_EQ(found->leads, Leads{0});
    EXPECT_TRUE(all.record(found, 0).is_ok());
    FieldDefinition field = small_field();
    field.name = "u";
    expect_text(all.record(found, 0, field).status(), Code::settings, {"give time=model"});
  }
  EXPECT_EQ(all.find("months", "time=model")->leads, Leads{other.valid});
  inventory.records = {other};
  expect_text(all.find("months", "").status(), Code::settings, {"give time=model"});
}

TEST(input_files, one_of_several_members_or_runs_is_never_taken_by_chance) {
  Directory all;
  sources::Record second = record_at(0);
  second.member = 2;
  sources::Record first = record_at(0);
  first.member = 1;
  all.file("members", {first, second});
  expect_text(all.record(all.find("members", ""), 0).status(), Code::argument, {"members 1, 2", "member=2"});
  const auto chosen = all.record(all.find("members", "member=1"), 0);
  ASSERT_TRUE(chosen.is_ok());
  EXPECT_EQ((*chosen)->member, 1);
  all.file("runs", {record_at(6 * an_hour, 0), record_at(6 * an_hour, 3 * an_hour)});
  const auto at_base = all.record(all.find("runs", "base=1970-01-01"), 6 * an_hour);
  ASSERT_TRUE(at_base.is_ok());
  EXPECT_EQ((*at_base)->reference, 0);
  expect_text(all.record(all.find("runs", "base=1970-01-01T01"), 5 * an_hour).status(), Code::argument,
              {"runs of", "1970-01-01T03:00:00Z", "base="});
}

TEST(input_files, a_level_that_is_alone_needs_no_name) {
  Directory all;
  sources::Record wind = record_at(0);
  wind.level_type = "heightAboveGround";
  wind.level = 10;
  all.file("wind", {wind});
  const auto found = all.find("wind", "");
  FieldDefinition field = small_field();
  expect_text(all.record(found, 0, field).status(), Code::argument, {"heightAboveGround:10"});
  field.takes_any_level = parse_field("t", 5, {2, 3}, "")->takes_any_level;
  EXPECT_TRUE(all.record(found, 0, field).is_ok());
  EXPECT_FALSE(parse_field("t", 5, {2, 3}, "levels=surface")->takes_any_level);
  sources::Record higher = wind;
  higher.level = 100;
  all.file("winds", {wind, higher});
  expect_text(all.record(all.find("winds", ""), 0, field).status(), Code::argument,
              {"heightAboveGround:10, heightAboveGround:100"});
}

/// CF files mostly have their levels as float32. Programs give them as people write them.
TEST(input_files, a_level_that_its_file_has_rounded_to_float32_is_found_by_its_decimal_number) {
  const double shallow = 0.494025;
  sources::Record record = record_at(0);
  record.level_type = "depthBelowSea";
  record.level = static_cast<float>(shallow);
  Directory all;
  all.file("rounded", {record});
  FieldDefinition field = small_field();
  field.levels.type = "depthBelowSea";
  field.levels.values = {shallow};
  const auto level_of = [&](const std::string& name, double level) -> double {
    const auto found = all.find(name, "");
    EXPECT_TRUE(found.is_ok()) << found.status().text();
    all.kept = *Files(*found, all.opener()).at(0);
    const auto got = all.kept->find(*found, field, 0, level);
    return got.is_ok() ? (*got)->level : -1;
  };
  EXPECT_EQ(level_of("rounded", shallow), record.level);
  EXPECT_EQ(level_of("rounded", 0.49403), -1);
  const double exact = 1, close = 1 + 1e-8;
  ASSERT_EQ(static_cast<float>(exact), static_cast<float>(close));
  sources::Record other = record;
  record.level = exact;
  other.level = close;
  all.file("doubles", {record, other});
  field.levels.values = {exact, close};
  EXPECT_EQ(level_of("doubles", exact), exact);
  EXPECT_EQ(level_of("doubles", close), close);
}

TEST(input_files, a_pressure_is_found_in_hPa_and_in_Pa) {
  for (const auto& [type, level] :
       std::map<std::string, double>{{"isobaricInhPa", 0.7}, {"isobaricInPa", 70}}) {
    sources::Record record = record_at(0);
    record.level_type = type;
    record.level = level;
    Directory all;
    all.file("in", {record});
    const auto found = all.find("in", "");
    for (const char* const levels : {"levels=pressure:0.7", "levels=isobaricInPa:70"}) {
      FieldDefinition field = small_field();
      field.levels = parse_field("t", 5, {2, 3}, levels)->levels;
      all.kept = *Files(*found, all.opener()).at(0);
      EXPECT_TRUE(all.kept->find(*found, field, 0, field.levels.values.front()).is_ok())
          << type << " " << levels;
    }
  }
}

TEST(input_files, files_of_times_before_the_base_time_have_negative_leads) {
  Directory all;
  all.file("bd_1970010100", {record_at(0)});
  all.file("bd_1969123121", {record_at(-3 * an_hour)});  // of an earlier run
  all.file("bd_1970010103", {record_at(3 * an_hour)});
  for (const char* const marker : {"bd_1970010100.ready", "bd_1970010103.ready"}) all.file(marker, {});
  for (const char* const follow : {"", " follow=on"}) {
    const auto found =
        all.find("bd_{valid:%Y%m%d%H}", std::string("base=1970-01-01T01 between=linear") + follow);
    ASSERT_TRUE(found.is_ok()) << found.status().text();
    Follower follower(*found);
    const auto there = found->follows ? *follower.look(*all.target, all.opener(), 0) : found->leads;
    EXPECT_EQ(there, (Leads{-an_hour, 2 * an_hour}));
    const auto around = found->around(there, 0);
    ASSERT_TRUE(around.is_ok()) << around.status().text();
    EXPECT_EQ(*around, (Leads{-an_hour, 2 * an_hour}));
    EXPECT_TRUE(all.record(found, -an_hour).is_ok());
  }
}

/// They have any quality, and may be being removed.
TEST(input_files, what_earlier_runs_have_left_holds_up_nobody) {
  Directory all;
  ASSERT_TRUE(all.target->open("day_19691230", storage::OpenMode::create).is_ok());  // not to be opened
  ASSERT_TRUE(all.target->open("day_19691231", storage::OpenMode::create).is_ok());
  all.file("day_19700101", {record_at(0)});
  all.file("day_19700101.ready", {});
  for (const char* const follow : {"", " follow=on"}) {
    const auto found = all.find("day_{valid:%Y%m%d}", std::string("base=1970-01-01") + follow);
    ASSERT_TRUE(found.is_ok()) << found.status().text();
    Follower follower(*found);
    EXPECT_EQ(found->follows ? *follower.look(*all.target, all.opener(), 0) : found->leads, Leads{0});
  }
}

/// Looks as often as a file without a marker needs.
Leads followed(Directory& all, const std::string& pattern, Status* failure = nullptr) {
  const auto files = all.find(pattern, "base=1970-01-01 follow=on");
  EXPECT_TRUE(files.is_ok()) << files.status().text();
  if (!files.is_ok()) return {};
  Follower follower(*files);
  EXPECT_TRUE(follower.look(*all.target, all.opener(), 0).is_ok());
  const auto there = follower.look(*all.target, all.opener(), 2'000'000'000);
  if (failure != nullptr) *failure = follower.last_failure();
  return there.is_ok() ? *there : Leads{-1};
}

TEST(input_files, a_directory_that_is_closed_to_this_user_is_passed_over) {
  Directory all;
  for (const char* const name : {"d/19700101", "d/lost+found"})
    ASSERT_TRUE(all.target->make_directories(name).is_ok());
  all.file("d/19700101/a", {record_at(0)});
  const auto find = [&](const std::string& closed, int error_number) {
    Closed target(all.target, closed, error_number);
    return find_steps(target, *parse_open("d/{valid:%Y%m%d}/a", "base=1970-01-01"), "", all.opener());
  };
  const auto found = find("d/lost+found/", EACCES);
  ASSERT_TRUE(found.is_ok()) << found.status().text();
  EXPECT_EQ(found->leads, Leads{0});
  EXPECT_EQ(find("d/lost+found/", EIO).status().error_number(), EIO);
  EXPECT_EQ(find("d/", EACCES).status().error_number(), EACCES);
}

/// Reads the field of one step through a loader, and returns the state of its task.
Ring::State loaded(const FieldDefinition& field, const Opener& opener, int tries = 1, bool follows = false) {
  FilesDefinition files;
  files.follows = follows;
  files.pattern = "a";
  files.leads = {0};
  std::vector<OwnRing::Line> memory(static_cast<std::size_t>(Ring::bytes_for(files, field) / 64 + 1));
  Ring::make(memory.data()->bytes, files, field);
  Silent transport;
  LoadCounts counts;
  Loader loader(memory.data()->bytes, transport, std::make_shared<Files>(files, opener), counts);
  node::Budget budget;
  DrawnScratch scratch(budget);
  for (int step = 0; step < tries; ++step) {
    loader.ring().begin(step, 0);
    for (std::size_t level = 0; level < field.levels.values.size(); ++level)
      EXPECT_TRUE(loader.work_once(0, scratch));
  }
  return loader.ring().state(0, 0);
}

TEST(input_loader, dimensions_of_one_point_may_differ_between_layout_and_file) {
  for (const std::vector<Index>& in_file : {std::vector<Index>{2, 3}, {1, 2, 3}, {2, 1, 3}, {2, 3, 1}}) {
    for (const std::vector<Index>& in_layout : {std::vector<Index>{2, 3}, {1, 2, 3}, {2, 1, 3, 1}}) {
      sources::Inventory inventory;
      inventory.grids.push_back({in_file, {}});
      inventory.records = {record_at(0)};
      FieldDefinition field = small_field();
      field.shape = in_layout;
      field.cut = {std::vector<Index>(in_layout.size()), in_layout};
      const Opener opener = [&](const std::string&) -> Result<std::shared_ptr<const sources::Source>> {
        return std::shared_ptr<const sources::Source>(std::make_shared<Listed>(inventory));
      };
      EXPECT_EQ(loaded(field, opener), Ring::State::ready) << in_file.size() << " " << in_layout.size();
    }
  }
}

TEST(input_loader, a_file_whose_read_failed_is_opened_anew) {
  sources::Inventory inventory;
  inventory.grids.push_back({{2, 3}, {}});
  inventory.records = {record_at(0)};
  int opened = 0;
  const Opener opener = [&](const std::string&) -> Result<std::shared_ptr<const sources::Source>> {
    return std::shared_ptr<const sources::Source>(std::make_shared<Listed>(inventory, ++opened == 1));
  };
  EXPECT_EQ(loaded(small_field(), opener, 1), Ring::State::failed);
  opened = 0;
  EXPECT_EQ(loaded(small_field(), opener, 2), Ring::State::ready);
  EXPECT_EQ(opened, 2);
}

TEST(input_loader, a_file_that_lacks_a_field_is_opened_anew_once_for_all_its_levels) {
  sources::Inventory inventory;
  inventory.records = {record_at(0)};
  int opened = 0;
  const Opener opener = [&](const std::string&) -> Result<std::shared_ptr<const sources::Source>> {
    ++opened;
    return std::shared_ptr<const sources::Source>(std::make_shared<Listed>(inventory));
  };
  FieldDefinition field = small_field();
  field.name = "u";
  field.levels.values = {1, 2, 3, 4};
  EXPECT_EQ(loaded(field, opener, 1, true), Ring::State::failed);
  EXPECT_EQ(opened, 2);
  opened = 0;
  EXPECT_EQ(loaded(field, opener, 2, true), Ring::State::failed);
  EXPECT_EQ(opened, 3) << "the program tries the step again";
}

/// A record that takes 600 of 1000 bytes to decode.
struct LittleRoom {
  LittleRoom() {
    inventory.grids.push_back({{2, 3}, {}});
    inventory.records = {record_at(0)};
    loader.ring().begin(0, 0);
  }
  static FilesDefinition one_file() {
    FilesDefinition files;
    files.pattern = "a";
    files.leads = {0};
    return files;
  }
  sources::Inventory inventory;
  Opener opener = [this](const std::string&) -> Result<std::shared_ptr<const sources::Source>> {
    return std::shared_ptr<const sources::Source>(std::make_shared<Listed>(inventory, false, 600));
  };
  OwnRing own{one_file()};
  LoadCounts counts;
  Loader loader{own.bytes(), own.transport, std::make_shared<Files>(one_file(), opener), counts};
  node::Budget::Account account;
  node::Budget budget{account, 1000};
};

TEST(input_loader, a_record_without_room_to_decode_it_is_left_to_others) {
  LittleRoom scene;
  node::Budget& budget = scene.budget;
  Loader& loader = scene.loader;
  DrawnScratch first(budget), second(budget);
  ASSERT_TRUE(first.reserve(600, "a").is_ok());
  first.make_way();
  EXPECT_EQ(budget.left(), 400) << "nobody needs it";
  EXPECT_FALSE(loader.work_once(0, second));
  expect_text(second.refused(), Code::memory, {"a: decoding a record takes up to 600", "TAILRACE_MEMORY"});
  EXPECT_EQ(loader.ring().state(0, 0), Ring::State::wanted) << "another worker may have room";
  EXPECT_TRUE(second.is_anyone_decoding()) << "wherever that is";
  first.make_way();
  EXPECT_FALSE(second.is_anyone_decoding());
  EXPECT_TRUE(loader.work_once(0, second));
  EXPECT_EQ(loader.ring().state(0, 0), Ring::State::ready);
  EXPECT_EQ(budget.left(), 400) << "it keeps its room for the next record";
  second.release();
  EXPECT_EQ(budget.left(), 1000);
  EXPECT_EQ(budget.decoders(), 0);
}

TEST(input_loader, a_thread_that_has_no_room_goes_on_once_there_is_some) {
  LittleRoom scene;
  node::Budget& budget = scene.budget;
  Loader& loader = scene.loader;
  DrawnScratch scratch(budget);
  node::Draw captures(budget, node::Use::captures);
  ASSERT_TRUE(captures.take(600).is_ok());
  std::atomic<bool> is_over{false};
  const auto all = [&] { return std::vector<Loader*>{&loader}; };
  std::thread reader([&] { EXPECT_TRUE(work_on_all(all, is_over, scratch).is_ok()); });
  while (budget.refusals() == 0) std::this_thread::yield();
  captures.give_back();
  reader.join();
  EXPECT_EQ(loader.ring().state(0, 0), Ring::State::ready);
  EXPECT_EQ(budget.left(), 1000);
  loader.ring().begin(1, 0);
  ASSERT_TRUE(scratch.reserve(600, "a").is_ok());
  const auto none = []() -> std::vector<Loader*> { throw std::bad_alloc(); };
  EXPECT_EQ(work_on_all(none, is_over, scratch).code(), Code::memory);
  EXPECT_EQ(budget.left(), 1000) << "nobody would give it back";
}

TEST(input_request, takes_the_keys_that_output_takes) {
  const auto field = [](const std::string& options) { return parse_field("t", 5, {2, 3}, options).status(); };
  EXPECT_TRUE(field("keys=a=b accuracy=1").is_ok()) << field("keys=a=b accuracy=1").text();
  const bool has_open_keys =
      std::ranges::any_of(formats::all(), [](const auto& each) { return !each.options.keys.empty(); });
  EXPECT_EQ(field("typeOfGeneratingProcess=4").is_ok(), has_open_keys);
  expect_text(field("levls=surface"), Code::settings, {"levls", "levels"});
  expect_text(field("nme=tp"), Code::settings, {"nme", "\"name\""});
  expect_text(field("a-b=c"), Code::settings, {"a-b"});
}

TEST(input_request, a_timeout_has_room_in_nanoseconds) {
  const std::string follow = "base=1970-01-01 follow=on timeout=";
  EXPECT_TRUE(parse_open("a", follow + "100000d").is_ok());
  expect_text(parse_open("a", follow + "300000d").status(), Code::settings,
              {"timeout=300000d", "100000 days"});
}

TEST(input_follower, a_file_has_only_the_steps_of_its_name) {
  Directory all;
  all.file("a_000", {record_at(0), record_at(3 * an_hour)});
  EXPECT_EQ(followed(all, "a_{lead:03h}"), Leads{0});
  all.file("b_000", {record_at(3 * an_hour)});
  Status failure;
  EXPECT_EQ(followed(all, "b_{lead:03h}", &failure), Leads());
  expect_text(failure, Code::argument, {"b_000", "base="});
}

TEST(input_follower, a_directory_counts_once_it_is_marked) {
  Directory all;
  all.files["z_000"].records = {record_at(0)};
  ASSERT_TRUE(all.target->make_directories("z_000").is_ok());
  Status failure;
  EXPECT_EQ(followed(all, "z_{lead:03h}", &failure), Leads());
  EXPECT_TRUE(failure.is_ok()) << failure.text();
  all.file("z_000.ready", {});
  EXPECT_EQ(followed(all, "z_{lead:03h}"), Leads{0});
}

TEST(input_follower, a_file_that_grows_is_left_alone_until_it_rests_for_two_seconds) {
  constexpr std::int64_t millisecond = 1'000'000;
  Directory all;
  all.file("a_000", {record_at(0)});
  const auto files = all.find("a_{lead:03h}", "base=1970-01-01 follow=on");
  Follower follower(*files);
  const auto at = [&](std::int64_t now) {
    return *follower.look(*all.target, all.opener(), now * millisecond);
  };
  EXPECT_EQ(at(1), Leads());
  EXPECT_EQ(at(2000), Leads());
  const auto file = all.target->open("a_000", storage::OpenMode::existing);
  ASSERT_TRUE((*file)->write(ByteVector(10), 0).is_ok());
  EXPECT_EQ(at(2500), Leads()) << "it has grown";
  EXPECT_EQ(at(4499), Leads());
  EXPECT_EQ(at(4500), Leads{0});
}

TEST(input_follower, a_failed_look_is_remembered_until_the_next) {
  Directory all;
  all.file("a_000", {record_at(0)});
  const auto files = all.find("a_{lead:03h}", "base=1970-01-01 follow=on");
  Follower follower(*files);
  Closed closed(all.target, ".", EIO);
  EXPECT_FALSE(follower.look(closed, all.opener(), 0).is_ok());
  EXPECT_EQ(follower.last_failure().code(), Code::io) << follower.last_failure().text();
  EXPECT_TRUE(follower.look(*all.target, all.opener(), 0).is_ok());
  EXPECT_TRUE(follower.last_failure().is_ok());
}

}  // namespace
}  // namespace tailrace::input
