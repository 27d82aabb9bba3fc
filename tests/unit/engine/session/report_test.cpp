// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// What a session tells of itself: where the time of its processes went, the line at the end, the report that
// is replaced while the session runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include "engine/pipeline/method.hpp"
#include "engine/session/reports/reporter.hpp"
#include "engine/session/reports/routines.hpp"
#include "engine/session/reports/trace.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/end_job.hpp"

namespace tailrace::session {
namespace {

using comm::Routine;
using pipeline::Counters;
using pipeline::Statistics;

constexpr std::int64_t second = 1'000'000'000;

/// Two compute ranks and a server, or two ranks that serve themselves.
exchange::Roster roster_of(bool self_served) {
  exchange::Roster roster;
  roster.compute_transport = {0, 1};
  roster.server_transport = self_served ? std::vector{0, 1} : std::vector{2};
  roster.compute_node = {0, 0};
  roster.server_node = self_served ? std::vector{0, 0} : std::vector{0};
  roster.home = self_served ? std::vector{0, 1} : std::vector{0, 0};
  roster.shares_node = {1, 1};
  roster.self_served = self_served;
  return roster;
}

ReportFacts facts_of(bool self_served) {
  return {roster_of(self_served), std::vector<int>(self_served ? 2 : 3, 0), Bytes{512} << 20, 1'796'000'000,
          "this-session"};
}

std::int64_t number_of_method(std::string_view name) {
  return *pipeline::find_method(name) - pipeline::methods().data();
}

/// A process that has spent 1 s, 2 s, 4 s, ... in its routines.
Statistics spent_everywhere() {
  Statistics statistics;
  std::int64_t next = second;
  for (std::int64_t& each : statistics.process.spent.nanoseconds) {
    each = next;
    statistics.process.elapsed += std::exchange(next, 2 * next);
  }
  return statistics;
}

std::int64_t sum_of(const RoutineTimes& times) {
  return std::accumulate(times.begin(), times.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& each) { return sum + each.second; });
}

std::int64_t in(const RoutineTimes& times, std::string_view name) {
  const auto found = std::ranges::find(times, name, &RoutineTimes::value_type::first);
  return found == times.end() ? -1 : found->second;
}

TEST(report, the_routines_of_each_role_sum_to_the_elapsed_time) {
  for (const Role role : {Role::compute, Role::server, Role::compute_and_server}) {
    Statistics statistics = spent_everywhere();
    if (role == Role::server) statistics.process.threads = 3;
    const RoutineTimes times = own_routines(role, statistics);
    EXPECT_EQ(sum_of(times), statistics.process.elapsed) << name_of(role);
    EXPECT_EQ(in(times, "model") >= 0, role != Role::server) << name_of(role);
    EXPECT_EQ(in(times, "idle") >= 0, role == Role::server) << name_of(role);
    EXPECT_EQ(in(times, "encode") >= 0, role == Role::compute_and_server) << name_of(role);
    EXPECT_EQ(in(times, "barrier"), statistics.process.spent[Routine::barrier]);
    EXPECT_EQ(in(times, "wait_for_storage"), statistics.process.spent[Routine::wait_for_storage]);
  }
}

TEST(report, jobs_inside_the_calls_are_told_apart_and_the_rest_of_them_are_messages) {
  Statistics statistics;
  statistics.process.spent[Routine::model] = 5 * second;
  statistics.process.spent[Routine::work] = 10 * second;
  statistics.process.elapsed = 15 * second;
  Counters& counters = statistics.streams["fc"];
  counters.encode = 4 * second;
  counters.assemble = second;
  counters.write = 2 * second;
  counters.sync = second / 2;
  counters.commit = second / 2;
  const RoutineTimes times = own_routines(Role::compute_and_server, statistics);
  EXPECT_EQ(in(times, "encode"), 4 * second);
  EXPECT_EQ(in(times, "assemble"), second);
  EXPECT_EQ(in(times, "write"), 2 * second);
  EXPECT_EQ(in(times, "fsync"), second / 2);
  EXPECT_EQ(in(times, "message"), 2 * second);
  EXPECT_EQ(sum_of(times), 15 * second);
  EXPECT_EQ(threads_of(statistics), 0);
}

TEST(report, the_times_of_workers_sum_to_the_threads_times_the_elapsed_time) {
  Statistics statistics;
  statistics.process.threads = 3;
  statistics.process.encoders = 1;
  statistics.process.elapsed = 100 * second;
  for (const std::string stream : {"a", "b"}) {
    Counters& counters = statistics.streams[stream];
    counters.encode = 10 * second;
    counters.write = 20 * second;
    counters.wait = second;
  }
  const RoutineTimes times = thread_routines(statistics);
  EXPECT_EQ(sum_of(times), 300 * second);
  EXPECT_EQ(in(times, "idle"), (300 - 62) * second);
  EXPECT_EQ(in(times, "wait"), 2 * second);
}

TEST(report, a_thread_of_collective_calls_counts_beside_jobs_inside_the_calls) {
  Statistics statistics;
  statistics.process.makes_calls = 1;
  statistics.process.elapsed = 10 * second;
  statistics.process.spent[Routine::work] = 3 * second;
  Counters& counters = statistics.streams["fc"];
  counters.method = number_of_method("mpiio");
  counters.encode = 3 * second;
  counters.write = 4 * second;
  const RoutineTimes own = own_routines(Role::compute_and_server, statistics);
  EXPECT_EQ(in(own, "write"), 0);
  EXPECT_EQ(in(own, "encode"), 3 * second);
  const RoutineTimes threads = thread_routines(statistics);
  EXPECT_EQ(in(threads, "write"), 4 * second);
  EXPECT_EQ(in(threads, "encode"), 0);
  EXPECT_EQ(in(threads, "idle"), 6 * second);
}

/// The figures of a session that has written a stream. The first rank has waited 0.4 s of 312 s.
std::map<int, Statistics> written() {
  std::map<int, Statistics> all;
  for (const int rank : {0, 1}) {
    pipeline::Process& process = all[rank].process;
    process.elapsed = 312 * second;
    process.spent[Routine::barrier] = rank == 0 ? second * 4 / 10 : 0;
    process.spent[Routine::capture] = 2 * second;
    process.spent[Routine::model] = process.elapsed - process.spent[Routine::barrier] - 2 * second;
    all[rank].streams["fc"].steps = 4;
    all[rank].streams["fc"].captured_bytes = 4'000'000;
  }
  Counters& counters = all[2].streams["fc"];
  counters.files = 4;
  counters.durable_steps = 4;
  counters.durable_bytes = 3'900'000'000;
  all[2].last_durable["fc"] = "lead 21600 s";
  all[2].process.elapsed = 312 * second;
  all[2].process.spent[Routine::idle] = 312 * second;
  all[2].process.threads = 2;
  return all;
}

pipeline::Figures shared(const std::map<int, Statistics>& all) {
  pipeline::Figures figures;
  for (const auto& [rank, statistics] : all) figures[rank] = std::make_shared<const Statistics>(statistics);
  return figures;
}

TEST(report, the_line_says_durable_only_if_all_is) {
  const exchange::Roster roster = roster_of(false);
  std::map<int, Statistics> all = written();
  EXPECT_EQ(summary_of(roster, all), "4 files, 3.9 GB, durable; the model waited 0.4 s of 312 s");
  all[2].streams["fc"].failed_steps = 2;
  all[2].failed["fc"] = "no space";
  EXPECT_EQ(summary_of(roster, all),
            "4 files, 3.9 GB durable, but 2 of 6 steps failed; the model waited 0.4 s of 312 s");
  EXPECT_EQ(error_of(roster, all), "no space");
  all[2].streams["fc"].durable_steps = all[2].streams["fc"].durable_bytes = 0;
  all[2].streams["fc"].files = 0;
  EXPECT_EQ(summary_of(roster, all),
            "0 files durable, but 2 of 2 steps failed; the model waited 0.4 s of 312 s");
}

TEST(report, the_line_tells_of_an_end_with_an_error) {
  std::map<int, Statistics> all = written();
  all[1].error = "close failed";
  EXPECT_EQ(summary_of(roster_of(false), all),
            "4 files, 3.9 GB durable, but with an error; the model waited 0.4 s of 312 s");
}

TEST(report, the_line_tells_what_was_read_and_is_empty_if_nothing_was_done) {
  const exchange::Roster roster = roster_of(true);
  std::map<int, Statistics> all;
  all[0].process.elapsed = all[1].process.elapsed = 2 * second;
  all[0].process.spent[Routine::model] = all[1].process.spent[Routine::model] = 2 * second;
  EXPECT_EQ(summary_of(roster, all), "");
  for (const int rank : {0, 1}) {
    all[rank].streams["in\ninput"].records_read = 6;
    all[rank].streams["in\ninput"].read_bytes = 600;
  }
  EXPECT_EQ(summary_of(roster, all), "read 12 records, 1.2 kB; the model waited 0.0 s of 2.0 s");
}

TEST(report, figures_travel_whole) {
  Statistics told = written()[2];
  told.error = "why";
  told.stopped = "SIGTERM";
  told.failed["fc"] = "no space";
  told.tracing = true;
  told.add_span("encode", 1, 10, 20, [] { return pipeline::Span::About{"fc", "t", 850, 21600, 1}; });
  told.add_span("fsync", 2, 20, 30);
  Packer out;
  told.pack(out);
  Unpacker in(out.bytes());
  const Statistics heard = Statistics::unpack(in);
  EXPECT_TRUE(in.ok() && in.rest().empty());
  EXPECT_EQ(heard.error, "why");
  EXPECT_EQ(heard.stopped, "SIGTERM");
  EXPECT_EQ(heard.last_durable, told.last_durable);
  EXPECT_EQ(heard.failed, told.failed);
  EXPECT_EQ(heard.process.threads, 2);
  ASSERT_EQ(heard.spans.size(), 2U);
  EXPECT_EQ(heard.spans[0].about.field, "t");
  EXPECT_EQ(heard.spans[0].about.lead, 21600);
  EXPECT_EQ(heard.spans[1].about.records, 0);
  EXPECT_TRUE(told.so_far().spans.empty());
  EXPECT_EQ(told.so_far().failed, told.failed);
  for (int step = 0; step < 1000; ++step) told.durable["fc"].push_back(step);
  EXPECT_EQ(std::ssize(told.so_far().durable["fc"]), Statistics::most_durable_so_far);
  EXPECT_EQ(told.so_far().durable["fc"].back(), 999);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A directory of its own, with the name of a report in it. Jobs of the reporter run when the test says so.
class ReportFile : public testing::Test {
 protected:
  ReportFile() : directory_(cat("report-", ::getpid())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    settings_.report = directory_ + "/run.json";
    if (!has_reports()) skip_ = true;
  }
  ~ReportFile() override {
    set_log_level(LogLevel::warn);
    std::filesystem::remove_all(directory_);
  }
  std::unique_ptr<Reporter> reporter() {
    return std::make_unique<Reporter>(settings_, facts_of(false), [this](std::function<void()> job) {
      ++submitted_;
      jobs_.push_back(std::move(job));
    });
  }
  /// Hands figures over as soon as the reporter takes some: it pauses, so as to cost little.
  void hand_over(Reporter& reporter) {
    for (const int before = submitted_; submitted_ == before;
         std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      reporter.on_figures(shared(written()));
  }
  void run_jobs() {
    for (const auto& job : std::exchange(jobs_, {})) job();
  }
  [[nodiscard]] std::string report() const { return text_of(settings_.report); }
  [[nodiscard]] auto files() const {
    return std::distance(std::filesystem::directory_iterator(directory_), {});
  }

  const std::string directory_;
  Settings settings_;
  std::vector<std::function<void()>> jobs_;
  int submitted_ = 0;
  bool skip_ = false;
};

TEST_F(ReportFile, is_running_and_then_ended) {
  if (skip_) GTEST_SKIP();
  set_log_level(LogLevel::error);
  const auto reporter = this->reporter();
  hand_over(*reporter);
  EXPECT_EQ(report(), "") << "the caller writes nothing itself";
  EXPECT_FALSE(reporter->wants_figures());
  reporter->on_figures(shared(written()));
  EXPECT_EQ(submitted_, 1) << "one report at a time";
  run_jobs();
  EXPECT_TRUE(is_running(report()));
  EXPECT_TRUE(has(report(), "\"state\": \"running\""));
  EXPECT_TRUE(has(report(), "\"staging_bytes\": 536870912"));
  EXPECT_TRUE(has(report(), "\"last_durable\": \"lead 21600 s\""));
  EXPECT_TRUE(has(report(), "\"bytes_staged_per_step\": 2000000"));
  EXPECT_TRUE(has(report(), "\"begun\": \"2026-11-30T00:53:20Z\"")) << report();
  hand_over(*reporter);
  reporter->on_end(written());
  EXPECT_TRUE(has(report(), "\"state\": \"ended\""));
  run_jobs();
  EXPECT_TRUE(has(report(), "\"state\": \"ended\"")) << "a late job leaves the last report alone";
  EXPECT_EQ(files(), 1) << "nothing temporary is left";
}

TEST_F(ReportFile, has_failed_if_a_step_or_the_end_has) {
  if (skip_) GTEST_SKIP();
  set_log_level(LogLevel::error);
  std::map<int, Statistics> all = written();
  all[2].streams["fc"].failed_steps = 1;
  all[2].failed["fc"] = "step at lead 0 s: no space left";
  all[0].stopped = "compute rank 0 received SIGTERM";
  reporter()->on_end(all);
  EXPECT_TRUE(has(report(), "\"state\": \"failed\""));
  EXPECT_TRUE(has(report(), "\"error\": \"step at lead 0 s: no space left\""));
  EXPECT_TRUE(has(report(), "\"stopped\": \"compute rank 0 received SIGTERM\""));
  EXPECT_TRUE(has(report(), "\"failed_steps\": 1"));
}

TEST_F(ReportFile, that_a_rank_has_marked_as_failed_stays_so) {
  if (skip_) GTEST_SKIP();
  const auto reporter = this->reporter();
  mark_failed(settings_.report, "this-session", "nothing to mark");
  EXPECT_EQ(files(), 0);
  hand_over(*reporter);
  run_jobs();
  mark_failed(settings_.report, "this-session", "compute rank 1 gives up");
  mark_failed(settings_.report, "this-session", "a later error");
  hand_over(*reporter);
  run_jobs();
  EXPECT_TRUE(has(report(), "\"state\": \"failed\""));
  EXPECT_TRUE(has(report(), "\"error\": \"compute rank 1 gives up\""));
  EXPECT_EQ(files(), 1);
}

TEST_F(ReportFile, is_marked_again_if_the_writer_replaces_the_mark) {
  if (skip_) GTEST_SKIP();
  const std::string running = report_text(facts_of(false), written(), State::running);
  // The writer has looked at the file before the mark, and renames its own over it.
  for (int i = 0; i < 3; ++i) {
    std::ofstream(settings_.report, std::ios::binary) << running;
    std::thread marking([&] { mark_failed(settings_.report, "this-session", "rank 1 gives up"); });
    while (is_running(report())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::ofstream(settings_.report + ".new", std::ios::binary) << running;
    std::filesystem::rename(settings_.report + ".new", settings_.report);
    marking.join();
    EXPECT_TRUE(has(report(), "\"error\": \"rank 1 gives up\"")) << report();
  }
}

TEST_F(ReportFile, is_marked_by_one_of_many_ranks) {
  if (skip_) GTEST_SKIP();
  std::ofstream(settings_.report, std::ios::binary)
      << report_text(facts_of(false), written(), State::running);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 8; ++rank)
    ranks.emplace_back([&, rank] { mark_failed(settings_.report, "this-session", cat("rank ", rank)); });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_TRUE(has(report(), "\"state\": \"failed\"")) << report();
  EXPECT_EQ(files(), 1) << "nothing temporary is left";
}

TEST_F(ReportFile, of_another_session_is_not_marked) {
  if (skip_) GTEST_SKIP();
  std::ofstream(settings_.report, std::ios::binary)
      << report_text(facts_of(false), written(), State::running);
  mark_failed(settings_.report, "another-session", "why");
  EXPECT_TRUE(is_running(report(), "this-session"));
  EXPECT_FALSE(is_running(report(), "another-session"));
  EXPECT_EQ(files(), 1);
}

TEST_F(ReportFile, keeps_its_place_when_the_program_changes_its_directory) {
  fix_places(settings_);
  EXPECT_TRUE(std::filesystem::path(settings_.report).is_absolute()) << settings_.report;
  EXPECT_EQ(settings_.trace, "");
}

TEST_F(ReportFile, is_made_again_after_a_job_could_not_be_queued) {
  if (skip_) GTEST_SKIP();
  bool fails = true;
  Reporter reporter(settings_, facts_of(false), [&fails](const std::function<void()>& job) {
    if (std::exchange(fails, false)) throw std::bad_alloc();
    job();
  });
  reporter.on_figures(shared(written()));
  EXPECT_EQ(report(), "");
  reporter.on_figures(shared(written()));
  EXPECT_TRUE(is_running(report()));
  EXPECT_EQ(files(), 1);
}

TEST_F(ReportFile, replaces_what_a_killed_job_has_left) {
  if (skip_) GTEST_SKIP();
  set_log_level(LogLevel::error);
  std::ofstream(settings_.report + ".tmp", std::ios::binary) << "half";
  reporter()->on_end(written());
  EXPECT_TRUE(has(report(), "\"state\": \"ended\""));
  EXPECT_EQ(files(), 1);
}

TEST_F(ReportFile, of_somebody_else_is_left_alone) {
  if (skip_) GTEST_SKIP();
  for (const std::string other : {"", "{", "[1]", "{\"state\": 1}", "{\"state\": \"ended\"}"}) {
    std::ofstream(settings_.report, std::ios::binary) << other;
    mark_failed(settings_.report, "this-session", "why");
    EXPECT_EQ(report(), other);
    EXPECT_FALSE(is_running(other)) << other;
  }
}

TEST_F(ReportFile, has_names_that_are_no_utf_8) {
  if (skip_) GTEST_SKIP();
  set_log_level(LogLevel::error);
  std::map<int, Statistics> all = written();
  all[2].streams["fc-\xff"].files = 1;
  all[2].tracing = true;
  all[2].add_span("write", 1, 1, 2, [] { return pipeline::Span::About{"fc-\xff", "t", 0, 0, 1}; });
  all[2].add_span("write", 1, 1, 2, [] { return pipeline::Span::About{"fc", "gr\xfc", 0, 0, 1}; });
  all[2].failed["fc"] = "put of \"gr\xfc\xdf\": no such field";
  settings_.trace = directory_ + "/trace.json";
  std::ofstream(settings_.report, std::ios::binary) << report_text(facts_of(false), all, State::running);
  mark_failed(settings_.report, "this-session", "put of \"gr\xfc\xdf\"");
  EXPECT_TRUE(has(report(), "put of \\\"gr\xef\xbf\xbd")) << report();
  reporter()->on_end(all);
  EXPECT_TRUE(has(report(), "put of \\\"gr\xef\xbf\xbd")) << report();
  EXPECT_TRUE(has(text_of(settings_.trace), "gr\xef\xbf\xbd"));
  EXPECT_TRUE(has(report(), "\"fc-\xef\xbf\xbd\""));
  EXPECT_TRUE(has(text_of(settings_.trace), "\"fc-\xef\xbf\xbd\""));
}

TEST_F(ReportFile, has_failed_if_the_session_is_destroyed_before_its_end) {
  if (skip_) GTEST_SKIP();
  auto reporter = this->reporter();
  hand_over(*reporter);
  run_jobs();
  reporter.reset();
  EXPECT_TRUE(has(report(), "\"error\": \"the session ended without tr_finalize\""));
}

TEST_F(ReportFile, that_cannot_be_written_is_a_warning_once) {
  if (skip_) GTEST_SKIP();
  const auto reporter = this->reporter();
  std::filesystem::remove_all(directory_);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    hand_over(*reporter);
    run_jobs();
  }
  const std::string warned = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(warned, '\n'), 1) << warned;
  EXPECT_TRUE(has(warned, "warning: the report of the running job: ")) << warned;
}

TEST_F(ReportFile, is_marked_before_the_job_ends) {
  if (skip_) GTEST_SKIP();
  const auto reporter = this->reporter();
  hand_over(*reporter);
  run_jobs();
  comm::before_job_ends(this,
                        [this](std::string_view why) { mark_failed(settings_.report, "this-session", why); });
  EXPECT_EXIT(comm::end_job("rank 3 has lost its mind"), testing::ExitedWithCode(1), "lost its mind");
  comm::before_job_ends(this, nullptr);
  EXPECT_TRUE(has(report(), "\"error\": \"rank 3 has lost its mind\"")) << report();
}

TEST(report, a_job_ends_though_nobody_can_be_told_why) {
  comm::before_job_ends(nullptr, [](std::string_view) { throw std::bad_alloc(); });
  EXPECT_EXIT(comm::end_job("out of memory"), testing::ExitedWithCode(1), "out of memory");
  comm::before_job_ends(nullptr, nullptr);
}

TEST(report, a_server_tells_its_threads_that_encode) {
  if (!has_reports()) GTEST_SKIP();
  std::map<int, Statistics> all = written();
  all[2].process.encoders = 1;
  const std::string text = report_text(facts_of(false), all, State::ended);
  EXPECT_TRUE(has(text, "\"threads\": 2,\n      \"encoders\": 1,")) << text;
}

TEST(report, the_line_is_printed_unless_the_log_is_of_errors_alone) {
  Settings settings;
  Reporter reporter(settings, facts_of(false), [](const std::function<void()>&) {});
  testing::internal::CaptureStderr();
  reporter.on_end(written());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "tailrace: 4 files, 3.9 GB, durable; the model waited 0.4 s of 312 s\n");
  set_log_level(LogLevel::error);
  testing::internal::CaptureStderr();
  reporter.on_end(written());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  set_log_level(LogLevel::warn);
}

TEST(report, a_trace_names_threads_fields_levels_and_leads) {
  if (!has_reports()) GTEST_SKIP();
  std::map<int, Statistics> all = written();
  all[2].process.encoders = 1;
  all[2].tracing = all[0].tracing = true;
  all[2].add_span("encode", 1, 10, 20, [] { return pipeline::Span::About{"fc", "t", 850, 21600, 1}; });
  all[2].add_span("write", 2, 20, 30, [] { return pipeline::Span::About{"fc", "t", 850, 21600, 3}; });
  all[2].add_span("write", pipeline::calling_thread, 20, 30);
  all[0].add_span("tr_stream_put", 0, 1, 2);
  const std::string trace = trace_text(roster_of(false), all);
  const std::string about = R"("args":{"stream":"fc","field":"t","level":850.0,"lead":21600)";
  EXPECT_TRUE(has(trace, about + "}")) << trace;
  EXPECT_TRUE(has(trace, about + R"(,"records":3})")) << trace;
  for (const std::string name : {"encoder 1", "storage 1", "collective calls", "messages", "server, rank 2"})
    EXPECT_EQ(has(trace, "{\"name\":\"" + name + "\"}"), name != "messages") << name;
  EXPECT_TRUE(has(trace, R"("name":"thread_name","pid":0,"tid":0)")) << trace;
}

}  // namespace
}  // namespace tailrace::session
