// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/resume/resume.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>

#include "faces/streams/definition/parse.hpp"
#include "faces/streams/files/existing_files.hpp"
#include "faces/streams/files/manifest.hpp"
#include "formats/references/references.hpp"
#include "formats/registry/registry.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/forwarding.hpp"
#include "index_samples.hpp"
#include "resume_samples.hpp"
#include "support/crash.hpp"

namespace tailrace::streams {
namespace {

using storage::Target;

/// Storage that has forgotten the locks of a run, as a server that was started anew.
class WithoutLocks final : public storage::ForwardingTarget {
 public:
  using ForwardingTarget::ForwardingTarget;
  Result<std::shared_ptr<void>> lock(const std::string&) override {
    return std::shared_ptr<void>(std::make_shared<int>());
  }
};

/// A run is stopped for a time, and another one writes the file meanwhile. When the first one wakes, its
/// steps fail, and it cuts, ends and removes nothing.
TEST(lost_index, of_a_run_whose_file_another_one_has_taken_keeps_it_from_the_data) {
  for (const int steps : {0, 1}) {
    for (const std::string more : {"existing=continue", "existing=replace"}) {
      SCOPED_TRACE(cat(more, " behind ", steps));
      const auto disk = make_disk();
      const auto ledger =
          make_sample_ledger(std::make_shared<WithoutLocks>(disk), {}, "t", "existing=replace");
      const std::string path = path_of(0);
      const Result<pipeline::Begun> begun = ledger->begin_file(path, lead_of(0), 1);
      ASSERT_TRUE(begun.is_ok()) << begun.status().text();
      const auto file = *disk->open(path, storage::OpenMode::existing);
      ASSERT_TRUE(file->write(ByteVector(100), 0).is_ok() && file->sync().is_ok());
      if (steps > 0) ASSERT_TRUE(ledger->commit({0, lead_of(0), path, 0, 100, {{0, 0, 0, 100}}}).is_ok());
      Plan other;
      other.first = steps;
      other.until = 2;
      other.options = more;
      const Outcome outcome = forecast(std::make_shared<WithoutLocks>(disk), other);
      ASSERT_TRUE(outcome.status.is_ok()) << outcome.status.text();
      const auto theirs = files_of(*disk);
      const Bytes end = steps * 100;
      EXPECT_EQ(ledger->cut(path, end).code(), Code::state);
      EXPECT_EQ(ledger->check_owner(path).code(), Code::state);
      EXPECT_EQ(ledger->commit({1, lead_of(1), path, end, end + 50, {{0, 0, end, 50}}}).code(), Code::state);
      EXPECT_EQ(ledger->finish_file(path).code(), Code::state);
      expect_files(*disk, theirs, "behind the run that woke");
    }
  }
}

Position sample_position() {
  Position position = position_behind(4);
  position.failed = {{1, 43200, "no space"}, {3, 129600, "too late"}};
  return position;
}

Position position_within() {
  Position position = sample_position();
  position.interval = OpenInterval{
      129600,
      130500,
      {{"t", 1, 3, 77, "float32", {3, 4}, "hybrid:1,2", "-9"}, {"pr", 2, 0, 0, "int16", {}, "surface:0", ""}},
      {3600, 0},
      OpenInterval::Failure{Code::argument, -1, 2, "a null pointer"}};
  return position;
}

TEST(position, is_what_was_packed) {
  for (const Position& position :
       {sample_position(), position_behind(0), position_behind(6), position_within()}) {
    const Result<Position> back = Position::unpack(position.pack());
    ASSERT_TRUE(back.is_ok()) << back.status().text();
    EXPECT_EQ(*back, position);
  }
}

TEST(position, between_intervals_is_packed_as_before_there_were_intervals) {
  EXPECT_EQ(sample_position().pack().front(), std::byte{1});
  EXPECT_EQ(position_within().pack().front(), std::byte{2});
}

void expect_others_refused(const ByteVector& whole) {
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(Position::unpack(std::span(whole).first(size)).status().code(), Code::corrupt) << size;
  }
  ByteVector longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_EQ(Position::unpack(longer).status().code(), Code::corrupt);
  ByteVector later = whole;
  later[0] = std::byte{99};
  EXPECT_EQ(Position::unpack(later).status().code(), Code::unsupported);
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    ByteVector bytes = whole;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const Result<Position> back = Position::unpack(bytes);
    if (!back.is_ok()) continue;
    EXPECT_GE(back->steps, 1);
    EXPECT_LE(back->failed.size(), 2U);
    for (const OpenInterval::Field& field : back->interval.value_or(OpenInterval()).fields)
      EXPECT_LE(field.operation, 4);
  }
}

TEST(position, of_other_bytes_is_refused) {
  expect_others_refused(sample_position().pack());
  expect_others_refused(position_within().pack());
}

TEST(resume, a_run_that_continues_without_a_loss_ends_like_one_that_never_stopped) {
  for (int stop = 0; stop <= kSteps; ++stop) {
    const auto disk = make_disk();
    Outcome first = forecast(disk, {.until = stop, .stays_open = true});
    ASSERT_TRUE(first.status.is_ok()) << first.status.text();
    const Outcome second = forecast(disk, {.from = position_behind(stop)});
    ASSERT_TRUE(second.status.is_ok()) << stop << ": " << second.status.text();
    expect_truth(*disk, cat("stopped behind step ", stop));
  }
}

TEST(resume, a_whole_run_is_done_once_more_behind_any_position) {
  for (int stop = 0; stop <= kSteps; ++stop) {
    const auto disk = make_disk();
    ASSERT_TRUE(forecast(disk, {}).status.is_ok());
    const auto lines = read_manifest(*disk, "out/manifest.jsonl")->size();
    const Outcome second = forecast(disk, {.from = position_behind(stop)});
    ASSERT_TRUE(second.status.is_ok()) << stop << ": " << second.status.text();
    expect_truth(*disk, cat("done again behind step ", stop));
    EXPECT_EQ(read_manifest(*disk, "out/manifest.jsonl")->size(), lines);
  }
}

TEST(resume, steps_that_the_checkpoint_has_are_refused) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 3, .stays_open = true}).status.is_ok());
  const auto ledger = make_sample_ledger(disk, position_behind(3));
  for (const int step : {0, 1, 2}) EXPECT_EQ(ledger->path_of(lead_of(step)).status().code(), Code::order);
  EXPECT_TRUE(ledger->path_of(lead_of(3)).is_ok());
}

Status status_of_continuing(const std::shared_ptr<Target>& disk, int behind) {
  return forecast(disk, {.from = position_behind(behind)}).status;
}

void do_harm(Target& target, const std::string& path, const std::string& harm, int last) {
  if (harm == "data") ASSERT_TRUE(target.remove(path).is_ok());
  if (harm == "index") ASSERT_TRUE(target.remove(index_path(path)).is_ok());
  if (harm == "bytes") ASSERT_TRUE((*target.open(path, storage::OpenMode::existing))->truncate(9).is_ok());
  if (harm == "step") {
    Reopen reopen;
    reopen.through_lead = lead_of(last) - 1;
    ASSERT_TRUE(recover(target, path, reopen).is_ok());
  }
}

// The run is killed, or stopped in good order. It is continued in the same file, in the next one, or with no
// step at all.
TEST(resume, what_was_durable_and_is_not_there_is_an_error_that_says_so) {
  for (const bool stopped : {false, true}) {
    for (const int behind : {3, 4, kSteps}) {
      for (const std::string harm : {"data", "index", "step", "bytes"}) {
        // A program that waits for finished files may move them.
        if (stopped && harm == "data" && behind != 3) continue;
        const auto disk = make_disk();
        ASSERT_TRUE(forecast(disk, {.until = behind, .stays_open = !stopped}).status.is_ok());
        const std::string path = path_of(behind - 1);
        ASSERT_NO_FATAL_FAILURE(do_harm(*disk, path, harm, behind - 1));
        const Status status = status_of_continuing(disk, behind);
        EXPECT_EQ(status.code(), Code::corrupt)
            << harm << " behind " << behind << (stopped ? ", stopped: " : ", killed: ") << status.text();
        EXPECT_TRUE(mentions(status.text(), path)) << status.text();
        EXPECT_TRUE(mentions(status.text(), "checkpoint")) << status.text();
      }
    }
  }
}

// Zeros in the gap would hide the loss.
TEST(resume, taking_a_failed_step_back_never_makes_a_file_longer) {
  const auto disk = make_disk();
  const auto ledger = make_sample_ledger(disk, {});
  const std::string path = path_of(0);
  const Result<pipeline::Begun> begun = ledger->begin_file(path, 0, 1);
  ASSERT_TRUE(begun.is_ok()) << begun.status().text();
  put_bytes(*disk, path, ByteVector(700));
  ASSERT_TRUE(ledger->cut(path, 900).is_ok());
  EXPECT_EQ(get_bytes(*disk, path).size(), 700U);
  ASSERT_TRUE(ledger->cut(path, 300).is_ok());
  EXPECT_EQ(get_bytes(*disk, path).size(), 300U);
}

TEST(resume, a_step_that_failed_need_not_be_there) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 2, .stays_open = true}).status.is_ok());
  Position position = position_behind(3);
  position.failed = {{2, lead_of(2), "no space"}};
  Outcome second = forecast(disk, {.from = position});
  EXPECT_TRUE(second.status.is_ok()) << second.status.text();
  const Result<IndexContents> index = load_index(*disk, index_path(path_of(2)));
  ASSERT_TRUE(index.is_ok());
  ASSERT_EQ(index->steps.size(), 1U);
  EXPECT_EQ(index->steps[0].lead, lead_of(3));
}

/// The index is made before the head of the data. A job may fail between them, in its only step of the file.
TEST(resume, a_file_without_steps_may_lack_its_head) {
  const auto disk = make_disk();
  const std::string format = "format=cdf5";
  ASSERT_TRUE(forecast(disk, {.until = 3, .stays_open = true, .options = format}).status.is_ok());
  const std::string path = path_of(2);
  Reopen reopen;
  reopen.through_lead = lead_of(1);
  ASSERT_TRUE(recover(*disk, path, reopen).is_ok());
  ASSERT_TRUE((*disk->open(path, storage::OpenMode::existing))->truncate(0).is_ok());
  Position position = position_behind(3);
  position.failed = {{2, lead_of(2), "no space"}};
  const Outcome second = forecast(disk, {.from = position, .options = format});
  ASSERT_TRUE(second.status.is_ok()) << second.status.text();
  const Result<IndexContents> index = load_index(*disk, index_path(path));
  ASSERT_TRUE(index.is_ok()) << index.status().text();
  EXPECT_EQ(index->steps.size(), 1U);
  const auto bytes = get_bytes(*disk, path);
  ASSERT_GE(std::ssize(bytes), index->data_end());
  EXPECT_EQ(std::memcmp(bytes.data(), "CDF\5", 4), 0);
}

TEST(resume, files_of_another_run_are_refused) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 3, .stays_open = true}).status.is_ok());
  Position position = position_behind(3);
  position.run = Uuid::random();
  const Status status = forecast(disk, {.from = position}).status;
  EXPECT_EQ(status.code(), Code::state);
  EXPECT_TRUE(mentions(status.text(), position.run.text())) << status.text();
}

// The run of the checkpoint began in place of a killed run, and could not write to that run's file.
TEST(resume, a_file_of_another_run_that_no_recorded_step_is_in_is_replaced) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 4, .stays_open = true}).status.is_ok());
  Position position = position_behind(3);
  position.run = Uuid::random();
  position.failed = {{2, lead_of(2), "no space"}};
  position.put_lead = lead_of(1);
  const Result<StreamRequest> request = parse_stream(position.pattern, "format=raw base=2026-03-01");
  ASSERT_TRUE(request.is_ok()) << request.status().text();
  EXPECT_TRUE(check_existing_files(*disk, *request, position).is_ok());
  const Outcome second = forecast(disk, {.from = position});
  EXPECT_TRUE(second.status.is_ok()) << second.status.text();
  const Result<IndexContents> index = load_index(*disk, index_path(path_of(3)));
  ASSERT_TRUE(index.is_ok());
  EXPECT_EQ(index->header.run, position.run);
  ASSERT_EQ(index->steps.size(), 1U);
  EXPECT_EQ(index->steps[0].lead, lead_of(3));
}

TEST(resume, a_stream_that_is_closed_at_once_leaves_the_file_of_another_run_as_it_is) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 4, .stays_open = true}).status.is_ok());
  const auto before = files_of(*disk);
  Position position = position_behind(4);
  position.run = Uuid::random();
  position.failed = {{2, lead_of(2), "no space"}, {3, lead_of(3), "no space"}};
  position.put_lead = lead_of(1);
  const Outcome second = forecast(disk, {.from = position, .until = 4});
  EXPECT_TRUE(second.status.is_ok()) << second.status.text();
  EXPECT_TRUE(files_of(*disk) == before);
}

TEST(resume, a_stream_defined_in_another_way_is_refused) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 3, .stays_open = true}).status.is_ok());
  const Status status = forecast(disk, {.from = position_behind(3), .field = "u"}).status;
  EXPECT_EQ(status.code(), Code::state);
  EXPECT_TRUE(mentions(status.text(), "was begun with field 't', which")) << status.text();
}

TEST(resume, a_finished_file_may_have_been_taken_away) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 4, .stays_open = true, .finishes = true}).status.is_ok());
  ASSERT_TRUE(disk->remove(path_of(3)).is_ok());
  EXPECT_TRUE(status_of_continuing(disk, 4).is_ok());
  EXPECT_FALSE(*disk->exists(path_of(3)));
}

TEST(resume, a_published_file_is_whole_while_its_steps_are_put_once_more) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {}).status.is_ok());
  Position position = position_behind(1);
  for (int until = 1; until <= kSteps; ++until) {
    ASSERT_TRUE(forecast(disk, {.from = position, .until = until, .stays_open = true}).status.is_ok());
    for (int step = 0; step < kSteps; step += 2) {
      EXPECT_TRUE(*disk->exists(path_of(step) + ".ready"));
      EXPECT_EQ(get_bytes(*disk, path_of(step)), truth().at(path_of(step)));
      EXPECT_EQ(get_bytes(*disk, index_path(path_of(step))), truth().at(index_path(path_of(step))));
    }
  }
}

// Gives the files of `disk`, also those of second pairs, the names under which an earlier Tailrace has left
// them.
void give_old_names(storage::Target& disk) {
  const auto names = disk.list("out");
  for (const std::string& name : *names) {
    if (!name.ends_with(index_path(""))) continue;
    const std::string data_path = "out/" + name.substr(0, name.size() - index_path("").size());
    ASSERT_TRUE(disk.rename(index_path(data_path), old_index_path(data_path)).is_ok());
  }
}

TEST(resume, a_run_goes_on_with_indexes_under_their_old_names) {
  for (const bool published : {false, true}) {
    for (int until = 1; until <= kSteps; ++until) {
      for (int behind = published ? 1 : until; behind <= until; ++behind) {
        const auto disk = make_disk();
        if (published) {
          ASSERT_TRUE(forecast(disk, {}).status.is_ok());
          const Plan again{.from = position_behind(1), .until = until, .stays_open = true};
          ASSERT_TRUE(forecast(disk, again).status.is_ok());
        } else {
          ASSERT_TRUE(forecast(disk, {.until = until, .stays_open = true}).status.is_ok());
        }
        give_old_names(*disk);
        const Position from = position_behind(behind);
        // Looks before the first step, when nothing may be changed yet.
        const Resuming resuming{from, path_of(behind - 1), from.lead};
        if (!*disk->exists(again_path(resuming.path)))
          EXPECT_TRUE(check_first_pair(*disk, resuming.path, resuming).is_ok());
        const Status status = status_of_continuing(disk, behind);
        ASSERT_TRUE(status.is_ok()) << status.text();
        // Files before the position are not looked at.
        for (int step = 0; lead_of(step) < lead_of(behind) - lead_of(1); step += 2)
          EXPECT_TRUE(rename_old_index(*disk, path_of(step)).is_ok());
        expect_truth(*disk, cat("until ", until, ", behind ", behind));
      }
    }
  }
}

TEST(resume, a_crash_between_the_renames_of_an_earlier_tailrace_is_ended) {
  for (const bool second_renamed : {false, true}) {
    const auto disk = make_disk();
    ASSERT_TRUE(forecast(disk, {.differs_from = 0}).status.is_ok());
    const std::string path = path_of(kSteps - 1);
    put_bytes(*disk, path, truth().at(path));
    put_bytes(*disk, index_path(again_path(path)), truth().at(index_path(path)));
    give_old_names(*disk);
    if (second_renamed) ASSERT_TRUE(rename_old_index(*disk, again_path(path)).is_ok());
    ASSERT_TRUE(end_replacing(*disk, path).is_ok());
    EXPECT_EQ(get_bytes(*disk, index_path(path)), truth().at(index_path(path)));
    for (const std::string& gone :
         {old_index_path(path), old_index_path(again_path(path)), index_path(again_path(path))})
      EXPECT_FALSE(*disk->exists(gone)) << gone;
  }
}

TEST(resume, an_index_whose_data_somebody_has_removed_takes_no_other_ones_place) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = kSteps - 1}).status.is_ok());
  const std::string path = path_of(kSteps - 1);
  const ByteVector index = get_bytes(*disk, index_path(path));
  put_bytes(*disk, index_path(again_path(path)), truth().at(index_path(path)));  // tells of one step more
  ASSERT_TRUE(end_replacing(*disk, path).is_ok());
  EXPECT_EQ(get_bytes(*disk, index_path(path)), index);
  EXPECT_TRUE(status_of_continuing(disk, kSteps - 1).is_ok());
  expect_truth(*disk, "behind the index that was left");
}

TEST(resume, text_inventories_beside_the_files_stay_as_they_are) {
  constexpr std::string_view kInventory = "1:0:d=2026030100:TMP:2 m above ground:6 hour fcst:\n";
  for (const int behind : {0, 3, 4, kSteps}) {
    const auto disk = make_disk();
    ASSERT_TRUE(forecast(disk, {}).status.is_ok());
    for (int step = 0; step < kSteps; step += 2)
      put_bytes(*disk, old_index_path(path_of(step)), std::as_bytes(std::span(kInventory)));
    EXPECT_TRUE(status_of_continuing(disk, behind).is_ok());
    for (int step = 0; step < kSteps; step += 2) {
      EXPECT_EQ(size_of_file(*disk, old_index_path(path_of(step))), static_cast<Bytes>(kInventory.size()));
      EXPECT_EQ(get_bytes(*disk, index_path(path_of(step))), truth().at(index_path(path_of(step))));
    }
  }
}

#if TAILRACE_HAVE_JSON

// A line that a loss of power has torn may hold anything, ends of lines too.
std::unique_ptr<pipeline::Ledger> take_over(const std::shared_ptr<Target>& disk, int decided) {
  return make_sample_ledger(disk, {}, "t", "", decided);
}

/// Whoever may write to the directory can know these names.
TEST(resume, links_that_others_put_at_names_of_the_library_lead_nowhere) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::string scratch = (before / "links-XXXXXX").string();
  ASSERT_NE(::mkdtemp(scratch.data()), nullptr);
  std::filesystem::current_path(scratch);
  const std::shared_ptr<Target> target = storage::posix_target();
  EXPECT_TRUE(target->make_directories("out").is_ok());
  put_bytes(*target, "victim", ByteVector(8, std::byte{'x'}));
  const auto plant = [](const std::string& suffix) {
    for (const int step : {0, 2}) {
      const bool is_there = step == 0;
      std::filesystem::create_symlink(is_there ? "../victim" : "../none", path_of(step) + suffix);
    }
  };
  for (const char* const suffix : {".trx.new", ".refs.json.new"}) plant(suffix);
  const std::string options = references::available().is_ok() ? "references=on" : "";
  EXPECT_TRUE(forecast(target, {.until = 3, .options = options}).status.is_ok());
  // The published file of steps 2 and 3 is written once more.
  for (const char* const suffix : {".again", ".again.trx.new"}) plant(suffix);
  const Status status = forecast(target, {.from = position_behind(3), .options = options}).status;
  EXPECT_TRUE(status.is_ok()) << status.text();
  EXPECT_EQ(get_bytes(*target, "victim"), ByteVector(8, std::byte{'x'}));
  EXPECT_FALSE(std::filesystem::exists("none"));
  for (const int step : {0, 2, 4})
    EXPECT_TRUE(get_bytes(*target, path_of(step)) == truth().at(path_of(step))) << path_of(step);
  std::filesystem::current_path(before);
  std::filesystem::remove_all(scratch);
}

TEST(look, refuses_what_is_no_file_before_the_model_runs) {
  std::string name = (std::filesystem::temp_directory_path() / "tailrace-look-XXXXXX").string();
  const std::string directory = ::mkdtemp(name.data());
  const std::shared_ptr<Target> target = stores::with_stores(storage::posix_target());
  const auto look = [&](const std::string& file, const std::string& options) {
    const auto request = parse_stream(directory + "/" + file, "base=2026-03-01 " + options);
    EXPECT_TRUE(request.is_ok()) << request.status().text();
    return check_existing_files(*target, *request, {});
  };
  ASSERT_EQ(::mkfifo((directory + "/pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", directory + "/link");
  std::filesystem::create_directories(directory + "/directory");
  std::filesystem::create_directories(directory + "/somebodys.zarr/else");
  put_bytes(*target, directory + "/file", ByteVector(8));
  for (const char* const existing : {"replace", "continue", "overwrite"}) {
    const std::string options = cat("format=raw existing=", existing);
    for (const char* const file : {"pipe", "link"}) {
      const Status status = look(file, options);
      EXPECT_TRUE(mentions(status.text(), "it is a pipe")) << existing << ": " << status.text();
    }
    EXPECT_EQ(look("directory", options).error_number(), EISDIR) << existing;
    for (const char* const file : {"none", "file"})
      EXPECT_TRUE(look(file, options).is_ok()) << existing << ": " << look(file, options).text();
    const auto zarr = formats::find("zarr");
    if (!zarr.is_ok() || (*zarr)->make == nullptr) continue;
    const Status status = look("somebodys.zarr", cat("format=zarr existing=", existing));
    EXPECT_TRUE(mentions(status.text(), "no stream has written")) << existing << ": " << status.text();
  }
  std::filesystem::remove_all(directory);
}

TEST(take_over, goes_on_behind_the_last_step_that_another_server_has_committed) {
  for (const int decided : {0, 1}) {
    const auto disk = make_disk();
    ASSERT_TRUE(forecast(disk, {.until = 1, .stays_open = true}).status.is_ok());
    const auto before = files_of(*disk).at(path_of(0));
    Result<std::unique_ptr<storage::File>> file = disk->open(path_of(0), storage::OpenMode::existing);
    ASSERT_TRUE(file.is_ok());
    // Of a step that was not committed.
    ASSERT_TRUE((*file)->write(ByteVector(50), static_cast<Bytes>(before.size())).is_ok());
    ASSERT_TRUE((*file)->close().is_ok());
    const auto ledger = take_over(disk, decided);
    const Result<pipeline::Begun> begun = ledger->begin_file(path_of(decided), lead_of(decided), 1);
    ASSERT_TRUE(begun.is_ok()) << begun.status().text();
    EXPECT_EQ(begun->leads, std::vector<std::int64_t>{lead_of(0)});
    EXPECT_EQ(begun->end, static_cast<Bytes>(before.size()));
    EXPECT_FALSE(begun->is_finished);
    EXPECT_EQ(files_of(*disk).at(path_of(0)), before);
  }
}

TEST(take_over, leaves_a_file_that_another_server_has_finished_as_it_is) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 2}).status.is_ok());
  const auto before = files_of(*disk);
  const auto lines = read_manifest(*disk, "out/manifest.jsonl")->size();
  const auto ledger = take_over(disk, 1);
  const Result<pipeline::Begun> begun = ledger->begin_file(path_of(1), lead_of(1), 1);
  ASSERT_TRUE(begun.is_ok()) << begun.status().text();
  EXPECT_TRUE(begun->is_finished);
  EXPECT_EQ(begun->leads, (std::vector<std::int64_t>{lead_of(0), lead_of(1)}));
  EXPECT_TRUE(ledger->finish_file(path_of(1)).is_ok());
  EXPECT_TRUE(ledger->announce(path_of(1)).is_ok());
  EXPECT_TRUE(files_of(*disk) == before);
  EXPECT_EQ(read_manifest(*disk, "out/manifest.jsonl")->size(), lines);
}

TEST(take_over, finishes_a_file_to_which_no_step_comes_any_more) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 2, .stays_open = true}).status.is_ok());
  const auto ledger = take_over(disk, 2);
  ASSERT_EQ(ledger->left_open(), std::vector<std::string>{path_of(1)});
  EXPECT_TRUE(ledger->finish_file(path_of(1)).is_ok());
  EXPECT_TRUE(ledger->announce(path_of(1)).is_ok());
  const Result<IndexContents> index = load_index(*disk, index_path(path_of(1)));
  ASSERT_TRUE(index.is_ok());
  EXPECT_TRUE(index->closed);
  EXPECT_EQ(index->steps.size(), 2U);
  EXPECT_EQ(read_manifest(*disk, "out/manifest.jsonl")->size(), 1U);
}

TEST(resume, a_torn_manifest_is_cut_and_gets_what_lacks) {
  for (const std::string_view torn :
       {std::string_view("{\"path\":\"fc_2026"), std::string_view("\0\0\0\n", 4),
        std::string_view("\xfe\n{\"path\n\0x\n", 12), std::string_view("\n")}) {
    const auto disk = make_disk();
    ASSERT_TRUE(forecast(disk, {.until = 4, .stays_open = true, .finishes = true}).status.is_ok());
    ByteVector bytes = get_bytes(*disk, "out/manifest.jsonl");
    const auto* first_end = std::find(bytes.data(), bytes.data() + bytes.size(), std::byte{'\n'});
    bytes.resize(static_cast<std::size_t>(first_end - bytes.data()) + 1);
    for (const char c : torn) bytes.push_back(static_cast<std::byte>(c));
    put_bytes(*disk, "out/manifest.jsonl", bytes);
    ASSERT_EQ(read_manifest(*disk, "out/manifest.jsonl")->size(), 1U);
    const Status status = status_of_continuing(disk, 4);
    ASSERT_TRUE(status.is_ok()) << status.text();
    expect_truth(*disk, "torn manifest");
    EXPECT_EQ(read_manifest(*disk, "out/manifest.jsonl")->size(), 3U);
  }
}

#endif

}  // namespace
}  // namespace tailrace::streams
