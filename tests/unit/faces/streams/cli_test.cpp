// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "faces/streams/files/manifest.hpp"
#include "ground/settings/settings.hpp"
#include "index_samples.hpp"

// The command `tailrace` as a shell sees it: its output and its exit codes.
namespace tailrace::streams {
namespace {

struct Outcome {
  int exit = -1;
  std::string output;  // standard output and standard error
};

Outcome run(const std::string& arguments) {
  Outcome outcome;
  std::FILE* pipe = ::popen((std::string(TAILRACE_CLI) + " " + arguments + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  outcome.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return outcome;
}

class Cli : public ::testing::Test {
 protected:
  Cli() {
    std::string name = (std::filesystem::temp_directory_path() / "tailrace-cli-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    data_ = directory_ + "/fc_2026030100+006h.grib2";
  }
  ~Cli() override { std::filesystem::remove_all(directory_); }

  void make(int steps, Bytes loose = 0, bool closed = false) {
    put_bytes(*target_, data_, ByteVector(static_cast<std::size_t>(steps * kSampleStepBytes + loose)));
    put_bytes(*target_, index_path(data_), encode_index(sample_header(), sample_steps(steps), closed));
  }
  std::string wait_command(const std::string& lead) const {
    return "wait '" + directory_ + "/fc_{base:%Y%m%d%H}+006h.grib2' --base 2026-03-01T00:00Z --lead " + lead;
  }

  std::unique_ptr<storage::Target> target_ = storage::posix_target();
  std::string directory_;
  std::string data_;
};

TEST_F(Cli, help_of_each_command_has_examples) {
  EXPECT_EQ(run("--help").exit, 0);
  for (const std::string command : {"wait", "index", "repair", "run", "settings", "options", "verify"}) {
    const Outcome outcome = run(command + " --help");
    EXPECT_EQ(outcome.exit, 0);
    EXPECT_TRUE(mentions(outcome.output, "Examples:\n  tailrace " + command)) << outcome.output;
    EXPECT_TRUE(mentions(run("--help").output, command));
  }
}

TEST_F(Cli, a_command_line_without_sense_is_usage) {
  for (const std::string arguments :
       {"", "nonsense", "wait", "wait x", "index", "repair", "settings --nonsense", "wait x --lead 5",
        "wait '{lead}' --lead 6h", "wait '{base}' --lead 6h", "wait x --lead 6h --timeout soon",
        "wait '{base}' --base yesterday --lead 6h", "wait '{lead:03h}' --lead 90m",
        "wait x --lead 6h --run 12", "wait x --lead 6h --calendar mayan", "wait '{member}' --lead 6h",
        "repair x --through-lead soon"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit, 2) << arguments << ": " << outcome.output;
    EXPECT_FALSE(outcome.output.empty());
  }
}

TEST_F(Cli, errors_and_counts_are_told_as_people_say_them) {
  EXPECT_TRUE(mentions(run("idnex x").output, "unknown command 'idnex'; did you mean 'index'?"));
  const Outcome plan = run("plan --ranks 0");
  EXPECT_EQ(plan.exit, 2);
  EXPECT_LT(plan.output.size(), 120U) << plan.output;
  make(1);
  EXPECT_TRUE(mentions(run("index " + data_).output, "\n1 step, 46 bytes")) << run("index " + data_).output;
  EXPECT_TRUE(mentions(run("repair " + data_).output, "1 whole step kept"));
}

TEST_F(Cli, settings_prints_the_table) {
  EXPECT_EQ(run("settings").output, settings_text());
  EXPECT_EQ(run("settings --markdown").output, settings_markdown());
}

TEST_F(Cli, options_prints_the_tables_that_the_pages_have) {
  const std::string mark = "<!-- Written by `tailrace options ";
  std::string names;
  for (const auto& entry : std::filesystem::directory_iterator(TAILRACE_DOCS)) {
    if (entry.path().extension() != ".md") continue;
    std::ifstream file(entry.path());
    const std::string page(std::istreambuf_iterator<char>(file), {});
    for (std::size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
      const std::size_t begin = at + mark.size();
      const std::string name = page.substr(begin, page.find(" --markdown`", begin) - begin);
      const std::size_t table = page.find("\n\n", at) + 2;
      EXPECT_EQ(run("options " + name + " --markdown").output,
                page.substr(table, page.find("\n\n", table) + 1 - table))
          << entry.path() << ": ./dev docs";
      names += name + " ";
    }
  }
  for (const std::string name : {"stream", "field", "georeference", "input", "input_field", "checkpoint",
                                 "shared", "global", "window"})
    EXPECT_TRUE(mentions(names, name + " ")) << names;
  EXPECT_TRUE(mentions(run("options --markdown").output,
                       "field: options of tr_stream_define\n\n| option | default |"));
  EXPECT_EQ(run("options nonsense").exit, 2);
}

TEST_F(Cli, options_prints_plain_tables_for_people) {
  const std::string text = run("options").output;
  EXPECT_TRUE(
      mentions(text, "window: options of tr_window_open\n\noption  default  means\noffset  0        "));
  EXPECT_EQ(text.find_first_of("`|["), std::string::npos) << text;
  EXPECT_TRUE(mentions(text, run("options window").output));
}

TEST_F(Cli, wait_returns_at_once_when_the_step_is_durable) {
  make(3);
  const Outcome outcome = run(wait_command("6h"));
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_EQ(outcome.output, data_ + "\n");
  EXPECT_EQ(run(wait_command("6h --quiet")).output, "");
  EXPECT_EQ(run(wait_command("0")).exit, 0);
}

TEST_F(Cli, wait_refuses_a_file_with_another_base_time) {
  make(3);
  const Outcome outcome = run("wait " + data_ + " --base 2026-03-02 --lead 6h --timeout 0");
  EXPECT_EQ(outcome.exit, 1);
  EXPECT_TRUE(mentions(outcome.output, "its base time is 2026-03-01T00:00:00Z, and --base is 2026-03-02"))
      << outcome.output;
}

TEST_F(Cli, wait_times_out_and_names_what_it_waited_for) {
  make(2);
  const Outcome outcome = run(wait_command("6h --timeout 1s"));
  EXPECT_EQ(outcome.exit, 3);
  EXPECT_TRUE(mentions(outcome.output, "lead 6h was not durable within 1s")) << outcome.output;
  std::filesystem::remove(index_path(data_));
  EXPECT_EQ(run(wait_command("6h --timeout 0")).exit, 3);
}

TEST_F(Cli, wait_sees_the_step_of_a_program_that_still_writes) {
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    put_bytes(*target_, data_, ByteVector(3 * kSampleStepBytes));
    Result<IndexWriter> index = IndexWriter::create(*target_, index_path(data_), sample_header());
    for (const IndexStep& step : sample_steps(3)) {
      EXPECT_TRUE(index->append(step).is_ok() && index->sync().is_ok());
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const Outcome outcome = run(wait_command("6h --timeout 30s"));
  writer.join();
  EXPECT_EQ(outcome.exit, 0) << outcome.output;
}

TEST_F(Cli, wait_does_not_wait_for_a_closed_file) {
  make(2, 0, true);
  const Outcome outcome = run(wait_command("6h"));
  EXPECT_EQ(outcome.exit, 5);
  EXPECT_TRUE(mentions(outcome.output, "closed without lead 6h")) << outcome.output;
}

TEST_F(Cli, wait_tells_a_corrupt_file_from_an_unfinished_one) {
  make(3);
  std::filesystem::resize_file(data_, 100);
  EXPECT_EQ(run(wait_command("6h")).exit, 4) << "the index promises more than the file has";
  make(3);
  put_bytes(*target_, index_path(data_), std::as_bytes(std::span(std::string_view("not an index"))));
  EXPECT_EQ(run(wait_command("6h --timeout 1s")).exit, 4);
  make(2);
  std::filesystem::resize_file(index_path(data_), std::filesystem::file_size(index_path(data_)) - 5);
  EXPECT_EQ(run(wait_command("3h --timeout 0")).exit, 3) << "a record that is being written";
}

TEST_F(Cli, wait_passes_over_what_another_run_left) {
  make(3);
  EXPECT_EQ(run(wait_command("6h --timeout 0 --run " + sample_header().run.text())).exit, 0);
  EXPECT_EQ(run(wait_command("6h --timeout 0 --run 00000000-0000-4000-8000-000000000000")).exit, 3);
}

TEST_F(Cli, wait_takes_dates_and_as_many_digits_as_are_given) {
  make(3);
  const std::string dated = "wait '" + data_ + "' --timeout 0 --base 2026-03-01 --time ";
  EXPECT_EQ(run(dated + "2026-03-01T06").exit, 0) << run(dated + "2026-03-01T06").output;
  EXPECT_EQ(run(dated + "2026-03-01T06:00Z").exit, 0);
  EXPECT_EQ(run(dated + "2026-03-01T07").exit, 3);
  EXPECT_EQ(run(dated + "2026-02-01").exit, 2);
  EXPECT_TRUE(mentions(run("wait x --time 2026-03-01T06").output, "give the stream's base time"));
  IndexHeader header = sample_header();
  header.time = TimeAxis::of_model();
  std::vector<IndexStep> steps = sample_steps(1);
  steps[0].lead = *TimeAxis::code_of(0.1 + 0.2);
  put_bytes(*target_, index_path(data_), encode_index(header, steps));
  const std::string timed = "wait '" + data_ + "' --timeout 0 --time ";
  for (const std::string time : {"0.3", "0.30", "3e-1", "0.30000000000000004"})
    EXPECT_EQ(run(timed + time).exit, 0) << time;
  for (const std::string time : {"0.31", "0.30000000000000001", "1", "0.2", "1.5e-3"})
    EXPECT_EQ(run(timed + time).exit, 3) << time;
  // Until a nearer step may come, one that rounds to the time is not the one.
  steps = sample_steps(2);
  steps[0].lead = *TimeAxis::code_of(0.5);
  steps[1].lead = *TimeAxis::code_of(0.75);
  put_bytes(*target_, index_path(data_), encode_index(header, steps));
  EXPECT_EQ(run(timed + "1").exit, 3);
  EXPECT_EQ(run(timed + "0.8").exit, 3);
  EXPECT_EQ(run(timed + "0.75").exit, 0);
  EXPECT_EQ(run(timed + "0.7").exit, 3);  // 0.75 rounds to 0.8
}

TEST_F(Cli, index_prints_the_steps) {
  make(2, 0, true);
  const Outcome outcome = run("index --records '" + data_ + "'");
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_TRUE(mentions(outcome.output, "2 steps, 92 bytes, closed")) << outcome.output;
  EXPECT_TRUE(mentions(outcome.output, "step 1  lead 3h  bytes 46..92  4 records")) << outcome.output;
  EXPECT_TRUE(mentions(outcome.output, "t  hybrid 2  bytes 56+11")) << outcome.output;
  EXPECT_EQ(run("index '" + index_path(data_) + "' --records").output, outcome.output);
}

TEST_F(Cli, index_without_one_fails_and_a_damaged_one_is_corrupt) {
  EXPECT_EQ(run("index " + directory_ + "/none").exit, 1);
  make(3);
  ByteVector bytes = get_bytes(*target_, index_path(data_));
  bytes[static_cast<std::size_t>(decode_index(bytes)->marks[1].position) + 50] ^= std::byte{1};
  put_bytes(*target_, index_path(data_), bytes);
  const Outcome outcome = run("index " + data_);
  EXPECT_EQ(outcome.exit, 4);
  EXPECT_TRUE(mentions(outcome.output, "damaged tail")) << outcome.output;
}

TEST_F(Cli, an_index_under_its_old_name_is_read_and_a_text_inventory_there_is_not) {
  make(3, 7);
  const std::string old_path = old_index_path(data_);
  std::filesystem::rename(index_path(data_), old_path);
  EXPECT_EQ(run(wait_command("6h --timeout 0")).exit, 0);
  for (const std::string& file : {data_, old_path}) {
    const Outcome outcome = run("index " + file);
    EXPECT_TRUE(mentions(outcome.output, "3 steps, 138 bytes, open")) << outcome.output;
  }
  EXPECT_EQ(run("repair " + old_path).exit, 0);
  EXPECT_FALSE(std::filesystem::exists(old_path));

  constexpr std::string_view kInventory = "1:0:d=2026030100:TMP:2 m above ground:6 hour fcst:\n";
  put_bytes(*target_, old_path, std::as_bytes(std::span(kInventory)));
  EXPECT_EQ(run("index " + old_path).exit, 0) << "that of the file is meant";
  EXPECT_EQ(run("repair " + old_path).exit, 0);
  EXPECT_EQ(run(wait_command("6h --timeout 0")).exit, 0);
  EXPECT_EQ(size_of_file(*target_, old_path), static_cast<Bytes>(kInventory.size()));
  std::filesystem::remove(index_path(data_));
  const Outcome outcome = run("index " + data_);
  EXPECT_EQ(outcome.exit, 1);
  EXPECT_TRUE(mentions(outcome.output, index_path(data_))) << outcome.output;
}

TEST_F(Cli, of_two_indexes_the_one_that_is_named_is_printed) {
  make(3);
  put_bytes(*target_, old_index_path(data_), encode_index(sample_header(), sample_steps(2), false));
  EXPECT_TRUE(mentions(run("index " + index_path(data_)).output, "3 steps"));
  EXPECT_TRUE(mentions(run("index " + old_index_path(data_)).output, "2 steps"));
  for (const std::string& command : {"index " + data_, "repair " + data_, wait_command("6h --timeout 0")}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.exit, 1) << outcome.output;
    EXPECT_TRUE(mentions(outcome.output, "has two indexes")) << outcome.output;
  }
}

#if TAILRACE_HAVE_JSON
TEST_F(Cli, index_prints_json) {
  make(1);
  const Outcome outcome = run("index --json " + data_);
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_TRUE(mentions(outcome.output, "\"data_end\": 46")) << outcome.output;
  EXPECT_TRUE(mentions(outcome.output, "\"name\": \"t\"")) << outcome.output;
  EXPECT_EQ(std::system(
                ("'" TAILRACE_CLI "' index --json " + data_ + " | python3 -m json.tool > /dev/null").c_str()),
            0);
}
#endif

TEST_F(Cli, repair_cuts_both_back_and_says_what_went) {
  make(2, 1000);
  std::filesystem::resize_file(index_path(data_), std::filesystem::file_size(index_path(data_)) + 7);
  const Outcome outcome = run("repair " + data_);
  EXPECT_EQ(outcome.exit, 0) << outcome.output;
  EXPECT_TRUE(mentions(
      outcome.output,
      "2 whole steps kept (last: step 1 at lead 3h), 0 whole steps dropped, 1000 bytes cut off the data, 7"))
      << outcome.output;
  EXPECT_EQ(size_of_file(*target_, data_), 2 * kSampleStepBytes);
  EXPECT_FALSE(std::filesystem::exists(lock_path(data_)));
}

TEST_F(Cli, repair_leaves_a_whole_closed_file_closed) {
  make(2, 0, true);
  const ByteVector index = get_bytes(*target_, index_path(data_));
  for (const char* const more : {"", "--through-lead 3h ", "--force "}) {
    const Outcome outcome = run("repair " + std::string(more) + data_);
    EXPECT_EQ(outcome.exit, 0) << outcome.output;
    EXPECT_TRUE(mentions(outcome.output, ", closed")) << outcome.output;
    EXPECT_TRUE(get_bytes(*target_, index_path(data_)) == index) << more;
  }
  EXPECT_EQ(run(wait_command("6h") + " --timeout 1s").exit, 5);
  EXPECT_EQ(run("repair --through-lead 1h " + data_).exit, 0);
  EXPECT_FALSE(load_index(*target_, index_path(data_))->closed);
}

// A run that is killed between the renames of a second pair leaves new data with the old index.
TEST_F(Cli, repair_ends_the_replacement_of_a_file_before_it_cuts_anything) {
  make(3);
  put_bytes(*target_, index_path(data_), encode_index(sample_header(), sample_steps(2), true));
  put_bytes(*target_, index_path(data_ + ".again"), encode_index(sample_header(), sample_steps(3), false));
  const Outcome outcome = run("repair " + data_);
  EXPECT_EQ(outcome.exit, 0) << outcome.output;
  EXPECT_TRUE(mentions(outcome.output, "3 whole steps kept")) << outcome.output;
  EXPECT_EQ(size_of_file(*target_, data_), 3 * kSampleStepBytes);
  EXPECT_FALSE(*target_->exists(index_path(data_ + ".again")));
}

TEST_F(Cli, repair_of_a_second_pair_asks_for_the_lock_of_the_file) {
  make(2);
  std::filesystem::copy_file(data_, data_ + ".again");
  std::filesystem::copy_file(index_path(data_), index_path(data_ + ".again"));
  const Result<std::shared_ptr<void>> lock = target_->lock(lock_path(data_));
  ASSERT_TRUE(lock.is_ok());
  EXPECT_EQ(run("repair " + data_ + ".again").exit, 1);
}

TEST_F(Cli, repair_refuses_while_the_file_is_locked) {
  make(2, 1000);
  const Result<std::shared_ptr<void>> lock = target_->lock(lock_path(data_));
  ASSERT_TRUE(lock.is_ok());
  const Outcome outcome = run("repair " + data_);
  EXPECT_EQ(outcome.exit, 1);
  EXPECT_TRUE(mentions(outcome.output, "held by")) << outcome.output;
  EXPECT_EQ(size_of_file(*target_, data_), 2 * kSampleStepBytes + 1000);
}

TEST_F(Cli, repair_gives_up_committed_steps_only_by_force) {
  make(3);
  std::filesystem::resize_file(data_, 2 * kSampleStepBytes + 3);
  const Outcome refused = run("repair " + data_);
  EXPECT_EQ(refused.exit, 4);
  EXPECT_TRUE(mentions(refused.output, "--force")) << refused.output;
  EXPECT_EQ(run("repair --force " + data_).exit, 0);
  EXPECT_EQ(size_of_file(*target_, data_), 2 * kSampleStepBytes);
  EXPECT_EQ(run("repair --through-lead 0 " + data_).exit, 0);
  EXPECT_EQ(size_of_file(*target_, data_), kSampleStepBytes);
}

/// Opening a pipe waits for its other end.
TEST_F(Cli, no_command_waits_for_a_pipe) {
  ASSERT_EQ(::mkfifo(data_.c_str(), 0600), 0);
  std::vector<std::string> commands{wait_command("6h") + " --timeout 1s"};
  for (const std::string command :
       {"index", "repair", "verify", "inventory", "checkpoint show", "checkpoint verify"})
    commands.push_back(command + " '" + data_ + "'");
  for (const bool has_index : {false, true}) {
    if (has_index) ASSERT_EQ(::mkfifo(index_path(data_).c_str(), 0600), 0);
    for (const std::string& command : commands) {
      std::FILE* const output = ::popen(("timeout 20 " TAILRACE_CLI " " + command + " 2>&1").c_str(), "r");
      ASSERT_NE(output, nullptr);
      std::array<char, 4096> buffer{};
      while (std::fread(buffer.data(), 1, buffer.size(), output) > 0) continue;
      const int exit = WEXITSTATUS(::pclose(output));
      EXPECT_NE(exit, 124) << command << " waits";
      EXPECT_NE(exit, 0) << command;
    }
  }
  EXPECT_NE(run("index '" + data_ + "'").output.find("it is a pipe"), std::string::npos);
}

TEST_F(Cli, verify_tells_a_file_without_its_ending) {
  make(3, 0, true);
  IndexHeader header = sample_header();
  header.format = "netcdf4";
  put_bytes(*target_, index_path(data_), encode_index(header, sample_steps(3), true));
  const Outcome closed = run("verify " + data_);
  EXPECT_EQ(closed.exit, 4) << closed.output;
  EXPECT_TRUE(mentions(closed.output, "its ending is missing")) << closed.output;
  EXPECT_TRUE(mentions(closed.output, "`tailrace repair " + data_ + "` writes it")) << closed.output;
  put_bytes(*target_, index_path(data_), encode_index(header, sample_steps(3)));
  const Outcome open = run("verify " + data_);
  EXPECT_EQ(open.exit, 0) << open.output;
  EXPECT_TRUE(mentions(open.output, "the file is open")) << open.output;
  EXPECT_TRUE(mentions(open.output, "has no ending")) << open.output;
}

TEST_F(Cli, verify_tells_a_file_that_was_cut_or_removed) {
  make(3, 0, true);
  const Outcome whole = run("verify " + data_);
  EXPECT_EQ(whole.exit, 0) << whole.output;
  EXPECT_TRUE(mentions(whole.output, "no manifest has a digest")) << whole.output;
  ASSERT_TRUE(
      (*target_->open(data_, storage::OpenMode::existing))->truncate(3 * kSampleStepBytes - 1).is_ok());
  const Outcome cut = run("verify " + index_path(data_));
  EXPECT_EQ(cut.exit, 4) << cut.output;
  EXPECT_TRUE(mentions(cut.output, data_)) << cut.output;
  ASSERT_TRUE(target_->remove(data_).is_ok());
  EXPECT_EQ(run("verify " + data_).exit, 4);
  EXPECT_EQ(run("verify " + directory_ + "/none.grib2").exit, 1);
}

#if TAILRACE_HAVE_JSON

TEST_F(Cli, verify_tells_any_changed_byte_of_a_file_that_the_manifest_lists) {
  make(3, 0, true);
  ManifestEntry entry = manifest_entry(data_, *load_index(*target_, index_path(data_)));
  entry.digest = *digest_file(*target_, data_);
  ASSERT_TRUE(append_to_manifest(*target_, manifest_path(data_), entry).is_ok());
  const Outcome whole = run("verify " + data_);
  EXPECT_EQ(whole.exit, 0) << whole.output;
  EXPECT_TRUE(mentions(whole.output, "whole: 3 steps")) << whole.output;
  for (const Bytes at : {Bytes{0}, Bytes{kSampleStepBytes}, Bytes{3 * kSampleStepBytes - 1}}) {
    ByteVector bytes = get_bytes(*target_, data_);
    bytes[static_cast<std::size_t>(at)] ^= std::byte{0x40};
    put_bytes(*target_, data_, bytes);
    const Outcome changed = run("verify " + data_);
    EXPECT_EQ(changed.exit, 4) << at << ": " << changed.output;
    bytes[static_cast<std::size_t>(at)] ^= std::byte{0x40};
    put_bytes(*target_, data_, bytes);
  }
}

#endif

}  // namespace
}  // namespace tailrace::streams
