// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// One rank's n-th storage call fails during a save, for n = 1, 2, ... until none does. Every rank is told the
// same, a load gives the save that was reported committed, and the next save succeeds.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "files/fixture.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::files_test;

namespace {

constexpr tr_index rows = 20;
constexpr tr_index columns = 9;
constexpr tr_index points = 101;

/// Collective. Returns true as soon as an attempt has been good on every rank. A rank that a busy machine
/// holds up may miss it, but not `most` times in a row.
template <typename Attempt>
bool one_of(int most, Attempt attempt) {
  for (int i = 0; i < most; ++i) {
    if (!any_rank(!attempt())) return true;
  }
  return false;
}

/// A block with halo, and elements that are dealt out. The generation decides all values.
class Model {
 public:
  Model() {
    const tr_index shape[] = {rows, columns}, halo[] = {1, 2};
    for (tr_index e = rank(); e < points; e += size()) mine_.push_back(e);
    CHECK_EQ(tr_layout_block(2, shape, halo, &blocks_), TR_OK);
    CHECK_EQ(tr_layout_indexed(1, &points, static_cast<tr_index>(mine_.size()), mine_.data(), 0, &dealt_),
             TR_OK);
    CHECK_EQ(tr_layout_bounds(blocks_, 0, lower_, upper_), TR_OK);
    t_.resize(static_cast<std::size_t>((upper_[0] - lower_[0] + 2) * pitch()));
    u_.resize(mine_.size());
  }
  ~Model() {
    tr_layout_free(&blocks_);
    tr_layout_free(&dealt_);
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void fill(std::int64_t generation) {
    step_ = generation;
    each([&](double& value, double expected) { value = expected; });
  }
  /// Returns true if all of it is what fill() would have made.
  [[nodiscard]] bool holds(std::int64_t generation) {
    bool right = step_ == generation;
    step_ = generation;
    each([&](double& value, double expected) { right = right && value == expected; });
    return right;
  }
  int save(tr_checkpoint* cp) {
    const int begun = tr_checkpoint_begin(cp, TR_SAVE, nullptr);
    name_items(cp);
    const int ended = tr_checkpoint_end(cp);
    return begun != TR_OK ? begun : ended;
  }
  /// Returns the generation that was loaded, the same on every rank; 0: nothing, -1: an error, -2: other
  /// values.
  std::int64_t load(tr_checkpoint* cp) {
    int found = 0;
    fill(-5);
    const int begun = tr_checkpoint_begin(cp, TR_LOAD, &found);
    if (begun == TR_OK && found != 0) name_items(cp);
    const int ended = tr_checkpoint_end(cp);
    load_code_ = begun != TR_OK ? begun : ended;
    if (load_code_ != TR_OK) {
      std::fprintf(stderr, "  %s\n", tr_error());
      return -1;
    }
    if (found == 0) return 0;
    const std::int64_t loaded = step_;
    CHECK(same_on_all_ranks(std::to_string(loaded)));
    return any_rank(!holds(loaded)) ? -2 : loaded;
  }

  /// Returns the code of the last load.
  [[nodiscard]] int load_code() const { return load_code_; }

 private:
  [[nodiscard]] tr_index pitch() const { return upper_[1] - lower_[1] + 4; }
  void name_items(tr_checkpoint* cp) {
    tr_checkpoint_item(cp, "step", &step_, TR_I64, nullptr);
    tr_checkpoint_item(cp, "t", t_.data(), TR_F64, blocks_);
    tr_checkpoint_item(cp, "u", u_.data(), TR_F64, dealt_);
  }
  template <typename Action>
  void each(const Action& action) {
    const auto salt = static_cast<double>(step_) * 1e6;
    for (tr_index y = lower_[0]; y < upper_[0]; ++y) {
      for (tr_index x = lower_[1]; x < upper_[1]; ++x) {
        const tr_index place = (y - lower_[0] + 1) * pitch() + x - lower_[1] + 2;
        action(t_[static_cast<std::size_t>(place)], salt + static_cast<double>(y * columns + x));
      }
    }
    for (std::size_t i = 0; i < u_.size(); ++i) action(u_[i], -salt - static_cast<double>(mine_[i]));
  }

  tr_layout* blocks_ = nullptr;
  tr_layout* dealt_ = nullptr;
  tr_index lower_[2] = {}, upper_[2] = {};
  std::vector<tr_index> mine_;
  std::int64_t step_ = 0;
  int load_code_ = TR_OK;
  std::vector<double> t_, u_;
};

tr_checkpoint* create(const std::string& name, const std::string& options) {
  tr_checkpoint* cp = nullptr;
  if (!CHECK_EQ(tr_checkpoint_create(name.c_str(), options.c_str(), &cp), TR_OK))
    std::fprintf(stderr, "  %s\n", tr_error());
  return cp;
}

/// Saves this generation in a session without faults.
void save_alone(const std::string& name, const std::string& options, std::int64_t generation) {
  const Session session;
  tr_checkpoint* cp = create(name, options);
  Model model;
  model.fill(generation);
  CHECK_EQ(model.save(cp), TR_OK);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
}

std::int64_t load_alone(const std::string& name, const std::string& options) {
  const Session session;
  tr_checkpoint* cp = create(name, options);
  Model model;
  const std::int64_t loaded = model.load(cp);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  return loaded;
}

struct Outcome {
  bool struck = false;
  int code = TR_OK;  // the code that the program got
  std::string text;
};

/// Saves generation 2 under this plan.
Outcome save_with(const std::string& fault, const std::string& name, const std::string& options) {
  Outcome outcome;
  CapturedStderr captured;
  {
    Session session("fault=\"" + fault + "\"");
    tr_checkpoint* cp = nullptr;
    outcome.code = tr_checkpoint_create(name.c_str(), options.c_str(), &cp);
    if (outcome.code == TR_OK) {
      Model model;
      model.fill(2);
      CHECK_EQ(model.save(cp), TR_OK);
      model.fill(-1);  // captured: the data may change
      outcome.code = tr_checkpoint_wait(cp);
      if (outcome.code != TR_OK) outcome.text = tr_error();
      CHECK_EQ(tr_checkpoint_status(cp), outcome.code == TR_OK ? TR_SAVE_COMMITTED : TR_SAVE_FAILED);
      CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);  // told once
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    } else {
      outcome.text = tr_error();
    }
    CHECK_EQ(session.finish(), TR_OK);
  }
  outcome.struck = any_rank(mentions(captured.text(), "it struck\n"));
  CHECK(same_on_all_ranks(std::to_string(outcome.code) + outcome.text));
  return outcome;
}

/// Tries all n for one victim, until none strikes.
void every_call(const std::string& directory, const std::string& options, int victim, const std::string& kind,
                int code) {
  for (int n = 1;; ++n) {
    const std::string fault =
        "rank=" + std::to_string(victim) + " nth=" + std::to_string(n) + " fault=" + kind;
    const std::int64_t failures = state().failures;
    const std::string name = directory + "/run";
    save_alone(name, options, 1);
    const Outcome outcome = save_with(fault, name, options);
    CHECK_EQ(outcome.code == TR_OK, outcome.text.empty());
    // A struck call on which no data depends need not fail a save. A save without a struck call must not
    // fail.
    if (!outcome.struck) CHECK_EQ(outcome.code, TR_OK);
    if (outcome.code != TR_OK) CHECK_EQ(outcome.code, code);
    CHECK_EQ(load_alone(name, options), outcome.code == TR_OK ? 2 : 1);
    save_alone(name, options, 3);
    CHECK_EQ(load_alone(name, options), 3);
    if (any_rank(state().failures > failures) && rank() == 0)
      std::fprintf(stderr, "  %s, %s: code %d, \"%s\"\n", options.c_str(), fault.c_str(), outcome.code,
                   outcome.text.c_str());
    MPI_Barrier(state().comm);
    if (rank() == 0) std::filesystem::remove_all(directory);
    MPI_Barrier(state().comm);
    if (!outcome.struck) {
      CHECK(n > 3);  // each victim writes and synchronises something
      return;
    }
    if (!CHECK(n < 100)) return;
  }
}

struct Loading {
  Outcome outcome;
  bool created = false;
  std::int64_t generation = -1;
};

/// Loads under this plan.
Loading load_with(const std::string& fault, const std::string& name, const std::string& options) {
  Loading loading;
  CapturedStderr captured;
  {
    Session session("fault=\"" + fault + "\"");
    tr_checkpoint* cp = nullptr;
    loading.outcome.code = tr_checkpoint_create(name.c_str(), options.c_str(), &cp);
    loading.created = loading.outcome.code == TR_OK;
    if (!loading.created) {
      loading.outcome.text = tr_error();
    } else {
      Model model;
      loading.generation = model.load(cp);
      loading.outcome.code = model.load_code();
      if (loading.outcome.code != TR_OK) loading.outcome.text = tr_error();
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    }
    CHECK_EQ(session.finish(), TR_OK);
  }
  loading.outcome.struck = any_rank(mentions(captured.text(), "it struck\n"));
  CHECK(same_on_all_ranks(std::to_string(loading.outcome.code) + loading.outcome.text));
  return loading;
}

/// Tries all reads of one victim, until none is struck, while generations 1 and 2 are whole. A rank that can
/// read nothing any more loads nothing; one that fails once may load the copy before.
void every_read(const std::string& name, const std::string& options, int victim, bool for_good) {
  for (int n = 1;; ++n) {
    const std::string fault = "rank=" + std::to_string(victim) + " nth=" + std::to_string(n) +
                              " fault=eio calls=read for=" + (for_good ? "good" : "once");
    const std::int64_t failures = state().failures;
    const Loading loading = load_with(fault, name, options);
    const auto& [struck, code, text] = loading.outcome;
    if (!struck) {
      CHECK_EQ(loading.generation, 2);
      CHECK(n > 1);  // each victim has read something
      return;
    }
    if (for_good || !loading.created) CHECK_EQ(code, TR_ERR_IO);
    if (for_good && loading.created) CHECK(mentions(text, "one may be whole"));
    if (!for_good && loading.created) CHECK(loading.generation == 1 || loading.generation == 2);
    if (any_rank(state().failures > failures) && rank() == 0)
      std::fprintf(stderr, "  %s, %s: code %d, \"%s\"\n", options.c_str(), fault.c_str(), code, text.c_str());
    if (!CHECK(n < 200)) return;
  }
}

/// Runs a session in which the second save fails while nobody waits for it; `after` gets the checkpoint.
template <typename After>
void fail_unheard(const std::string& name, const After& after) {
  save_alone(name, "", 1);
  const CapturedStderr captured;
  Session session("fault=\"rank=" + std::to_string(size() - 1) + " nth=1 fault=enospc calls=write\"");
  tr_checkpoint* cp = create(name, "");
  Model model;
  model.fill(2);
  CHECK_EQ(model.save(cp), TR_OK);
  after(session, cp, model);
}

void told_of_full_disk(int code) {
  CHECK_EQ(code, TR_ERR_SPACE);
  CHECK(same_on_all_ranks(std::to_string(code) + tr_error()));
  CHECK(mentions(tr_error(), "run"));
}

}  // namespace

MPI_TEST(checkpoint_fault, any_call_of_the_first_rank) {
  const std::string directory = fresh_directory("fault-first");
  for (const char* options : {"mode=parallel", "mode=local"}) {
    every_call(directory, options, 0, "eio", TR_ERR_IO);
    every_call(directory, options, 0, "enospc", TR_ERR_SPACE);
  }
}

MPI_TEST(checkpoint_fault, any_call_of_the_last_rank) {
  const std::string directory = fresh_directory("fault-last");
  for (const char* options : {"mode=parallel", "mode=local"}) {
    every_call(directory, options, size() - 1, "eio", TR_ERR_IO);
    every_call(directory, options, size() - 1, "edquot", TR_ERR_SPACE);
  }
}

MPI_TEST(checkpoint_fault, a_copy_that_cannot_be_opened_is_not_taken_for_none) {
  const std::string directory = fresh_directory("fault-unreadable");
  const std::string name = directory + "/run";
  save_alone(name, "", 1);
  const Outcome outcome = save_with("rank=0 nth=1 fault=eio calls=open for=good", name, "");
  CHECK(outcome.struck);
  CHECK_EQ(outcome.code, TR_ERR_IO);
  CHECK(mentions(outcome.text, "run.0 cannot be read"));
  save_alone(name, "", 2);
  CHECK_EQ(load_alone(name, ""), 2);
  remove_directory(directory);
}

MPI_TEST(checkpoint_fault, a_copy_that_cannot_be_read_is_not_taken_for_damaged) {
  const std::string directory = fresh_directory("fault-read");
  for (const char* options : {"mode=parallel", "mode=local"}) {
    const std::string name = directory + "/" + (options + 5);
    save_alone(name, options, 1);
    save_alone(name, options, 2);
    for (const bool for_good : {false, true}) {
      every_read(name, options, 0, for_good);
      if (size() > 1) every_read(name, options, size() - 1, for_good);
    }
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint_fault, copies_are_told_to_be_damaged_only_where_all_are) {
  const std::string directory = fresh_directory("fault-damage");
  const std::string name = directory + "/run";
  const auto cut = [&](const char* slot) {
    if (rank() == 0) std::filesystem::resize_file(name + slot, 5000);
    MPI_Barrier(state().comm);
  };
  // A killed run has left its lock. Who goes on takes it away, and who cannot load leaves it.
  const std::string lock = name + ".lock";
  const auto leave_lock = [&] {
    if (rank() == 0) std::ofstream(lock).close();
    MPI_Barrier(state().comm);
  };
  const auto is_left = [&] {
    MPI_Barrier(
        state().comm);  // the first rank has ended its calls, and those of the next test have not begun
    const bool found = std::filesystem::exists(lock);
    MPI_Barrier(state().comm);
    return found;
  };
  save_alone(name, "", 1);
  leave_lock();
  save_alone(name, "", 2);
  CHECK(!is_left());
  leave_lock();
  CHECK_EQ(load_alone(name, ""), 2);
  CHECK(!is_left());
  leave_lock();
  cut(".1");
  // The other copy is whole, and nobody can read it.
  const std::string victim = std::to_string(size() - 1);
  const Loading one = load_with("rank=" + victim + " nth=1 fault=eio calls=read for=good", name, "");
  CHECK_EQ(one.outcome.code, TR_ERR_IO);
  CHECK(is_left());
  cut(".0");
  const Loading none = load_with("rank=0 nth=100000 fault=eio", name, "");
  CHECK_EQ(none.outcome.code, TR_ERR_CORRUPT);
  CHECK(is_left());
  CHECK(mentions(none.outcome.text, "run.0") && mentions(none.outcome.text, "run.1"));
  remove_directory(directory);
}

MPI_TEST(checkpoint_fault, interrupted_and_short_calls_are_nobodys_business) {
  const std::string directory = fresh_directory("fault-hidden");
  for (const char* kind : {"nth=1 fault=eintr for=good", "nth=1 fault=short for=good"}) {
    for (const char* options : {"mode=parallel", "mode=local"}) {
      const std::string name = directory + "/" + (options + 5) + kind[12];
      save_alone(name, options, 1);
      const Outcome outcome = save_with(kind, name, options);
      CHECK(outcome.struck);
      CHECK_EQ(outcome.code, TR_OK);
      CHECK_EQ(load_alone(name, options), 2);
    }
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint_fault, nobody_waited_and_the_next_save_tells) {
  const std::string directory = fresh_directory("fault-begin");
  fail_unheard(directory + "/run", [](Session& session, tr_checkpoint* cp, Model& model) {
    model.fill(3);
    told_of_full_disk(model.save(cp));  // by its begin: the new save has begun all the same
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    CHECK_EQ(model.load(cp), 3);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  });
  CHECK_EQ(load_alone(directory + "/run", ""), 3);
  remove_directory(directory);
}

MPI_TEST(checkpoint_fault, nobody_waited_and_close_tells) {
  const std::string directory = fresh_directory("fault-close");
  fail_unheard(directory + "/run", [](Session& session, tr_checkpoint* cp, Model&) {
    told_of_full_disk(tr_checkpoint_close(&cp));
    CHECK(cp == nullptr);
    CHECK_EQ(session.finish(), TR_OK);
  });
  CHECK_EQ(load_alone(directory + "/run", ""), 1);
  remove_directory(directory);
}

MPI_TEST(checkpoint_fault, nobody_asked_at_all_and_finalize_tells) {
  const std::string directory = fresh_directory("fault-finalize");
  fail_unheard(directory + "/run",
               [](Session& session, tr_checkpoint*, Model&) { told_of_full_disk(session.finish()); });
  CHECK_EQ(load_alone(directory + "/run", ""), 1);
  remove_directory(directory);
}

MPI_TEST(checkpoint_fault, a_save_that_has_failed_on_one_rank_keeps_no_checkpoint_from_the_next) {
  const std::string directory = fresh_directory("fault-next");
  const CapturedStderr captured;
  for (const int victim : {0, size() - 1}) {
    Session session("fault=\"rank=" + std::to_string(victim) + " nth=1 fault=enospc calls=write\"");
    const std::string place = directory + "/of" + std::to_string(victim);
    if (rank() == 0) std::filesystem::create_directories(place);
    MPI_Barrier(state().comm);
    tr_checkpoint* first = create(place + "/run-first", "");
    tr_checkpoint* second = create(place + "/run-second", "");
    Model model;
    model.fill(1);
    CHECK_EQ(model.save(first), TR_OK);
    told_of_full_disk(tr_checkpoint_wait(first));
    for (int generation = 2; generation < 5; ++generation) {
      model.fill(generation);
      CHECK_EQ(model.save(first), TR_OK);
      model.fill(10 * generation);
      CHECK_EQ(model.save(second), TR_OK);
      // If it is refused, it is refused on all ranks, and no rank's numbers differ afterwards.
      tr_checkpoint* refused = nullptr;
      CHECK(tr_checkpoint_create(place.c_str(), rank() == victim ? "copies=none" : "", &refused) != TR_OK);
      CHECK(same_on_all_ranks(tr_error()));
      CHECK(refused == nullptr);
      CHECK_EQ(tr_checkpoint_wait(second), TR_OK);
      CHECK_EQ(tr_checkpoint_wait(first), TR_OK);
      CHECK_EQ(model.load(second), 10 * generation);
      CHECK_EQ(model.load(first), generation);
      tr_checkpoint* third = create(place + "/run-third" + std::to_string(generation), "");
      model.fill(generation);
      CHECK_EQ(model.save(third), TR_OK);
      CHECK_EQ(tr_checkpoint_wait(third), TR_OK);
      CHECK_EQ(model.load(third), generation);
      CHECK_EQ(tr_checkpoint_close(&third), TR_OK);
    }
    CHECK_EQ(tr_checkpoint_close(&first), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&second), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
    CHECK_EQ(load_alone(place + "/run-first", ""), 4);
  }
  remove_directory(directory);
}

namespace {

/// A stream with a server beside it. Its second step fails, since somebody has removed its file.
class FailingStream {
 public:
  FailingStream(const Session& session, const std::string& directory, tr_checkpoint* cp) : cp_(cp) {
    int ranks = 0;
    MPI_Comm_size(session.compute(), &ranks);
    MPI_Comm_rank(session.compute(), &rank_);
    const tr_index shape[] = {ranks};
    ok(tr_layout_block(1, shape, nullptr, &layout_), "layout");
    ok(tr_stream_create((directory + "/fc.raw").c_str(), "format=raw base=2026-03-01T00:00Z", &stream_),
       "stream");
    ok(tr_stream_define(stream_, "t", layout_, TR_F64, nullptr), "define");
    take_step();
    ok(tr_stream_wait(stream_, TR_DURABLE), "a good step");
    ok(save(), "a good save");
    ok(tr_checkpoint_wait(cp), "a good save");
    if (rank_ == 0) std::filesystem::remove(directory + "/fc.raw");
    MPI_Barrier(session.compute());
    take_step();
    ok(save(), "the save behind the failed step");
  }
  ~FailingStream() { tr_layout_free(&layout_); }
  FailingStream(const FailingStream&) = delete;
  FailingStream& operator=(const FailingStream&) = delete;

  int save() {
    const int begun = tr_checkpoint_begin(cp_, TR_SAVE, nullptr);
    tr_checkpoint_item(cp_, "step", &step_, TR_I64, nullptr);
    const int ended = tr_checkpoint_end(cp_);
    return begun != TR_OK ? begun : ended;
  }
  int wait() { return tr_stream_wait(stream_, TR_DURABLE); }
  int close() { return tr_stream_close(&stream_); }
  void take_step() {
    const double value = 1.5;
    ok(tr_stream_begin(stream_, 3600 * step_++), "begin");
    ok(tr_stream_put(stream_, "t", &value), "put");
    const int ended = tr_stream_end(stream_);  // it may tell of the step before
    if (step_ < 3) ok(ended, "end");
  }

 private:
  tr_checkpoint* cp_;
  int rank_ = 0;
  std::int64_t step_ = 0;
  tr_layout* layout_ = nullptr;
  tr_stream* stream_ = nullptr;
};

/// Runs `after` on the compute ranks of a session in which a save has begun behind a step that fails.
template <typename After>
void fail_step(const std::string& directory, const After& after) {
  const CapturedStderr captured;
  Session session("servers=1");
  if (session.compute() == MPI_COMM_NULL) return;
  tr_checkpoint* cp = create(directory + "/run", "");
  FailingStream stream(session, directory, cp);
  after(session, stream, cp);
}

/// Returns the step of the newest copy; 0 if there is none.
std::int64_t step_of(const std::string& directory) {
  const Session session;
  tr_checkpoint* cp = create(directory + "/run", "");
  std::int64_t step = 0;
  int found = 0;
  ok(tr_checkpoint_begin(cp, TR_LOAD, &found), "begin of the load");
  if (found != 0) tr_checkpoint_item(cp, "step", &step, TR_I64, nullptr);
  ok(tr_checkpoint_end(cp), "end of the load");
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  return step;
}

void told_of_the_lost_step(int code) {
  CHECK(code != TR_OK);
  CHECK(mentions(tr_error(), "can go on before a step that has failed"));
  CHECK(mentions(tr_error(), "lacks the step at lead 3600 s"));
}

}  // namespace

MPI_TEST(checkpoint_fault, a_save_behind_a_failed_step_fails_until_the_program_goes_on_knowing_it) {
  const std::string directory = fresh_directory("fault-known");
  fail_step(directory, [](Session& session, FailingStream& stream, tr_checkpoint* cp) {
    told_of_the_lost_step(tr_checkpoint_wait(cp));
    ok(stream.save(), "a save of a program that goes on");
    ok(tr_checkpoint_wait(cp), "a save of a program that goes on");
    // Further failures do not hold up a program that does not stop for them.
    stream.take_step();
    ok(stream.save(), "a save behind another failed step");
    ok(tr_checkpoint_wait(cp), "a save behind another failed step");
    CHECK(stream.close() != TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  });
  CapturedStderr captured;
  CHECK_EQ(step_of(directory), 3);
  if (rank() == 0) CHECK(mentions(captured.text(), "lacks the step at lead 3600 s"));
  remove_directory(directory);
}

MPI_TEST(checkpoint_fault, a_save_behind_a_failed_step_counts_if_the_stream_told_of_it_before) {
  const std::string directory = fresh_directory("fault-told");
  fail_step(directory, [](Session& session, FailingStream& stream, tr_checkpoint* cp) {
    CHECK(stream.wait() != TR_OK);
    told_of_the_lost_step(tr_checkpoint_wait(cp));  // it was begun before
    ok(stream.save(), "a save with the program's knowledge");
    ok(tr_checkpoint_wait(cp), "a save with the program's knowledge");
    CHECK(stream.close() != TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  });
  const CapturedStderr captured;
  CHECK_EQ(step_of(directory), 2);
  remove_directory(directory);
}

MPI_TEST(checkpoint_fault, a_save_behind_a_failed_step_never_counts_if_the_program_closes_its_stream) {
  const std::string directory = fresh_directory("fault-closed");
  fail_step(directory, [](Session& session, FailingStream& stream, tr_checkpoint* cp) {
    CHECK(stream.close() != TR_OK);
    told_of_the_lost_step(tr_checkpoint_close(&cp));
    CHECK_EQ(session.finish(), TR_OK);
  });
  const CapturedStderr captured;
  CHECK_EQ(step_of(directory), 1);
  remove_directory(directory);
}

MPI_TEST(checkpoint_fault, a_save_behind_a_failed_step_never_counts_if_the_program_ends) {
  const std::string directory = fresh_directory("fault-ended");
  for (const bool is_told : {false, true}) {
    fail_step(directory, [is_told](Session& session, FailingStream& stream, tr_checkpoint*) {
      if (is_told) CHECK(stream.wait() != TR_OK);
      CHECK(session.finish() != TR_OK);
    });
    const CapturedStderr captured;
    CHECK_EQ(step_of(directory), 1);
  }
  remove_directory(directory);
}

namespace {

/// Returns the statuses of a save of these values that this rank sees, from tr_checkpoint_end on.
std::vector<int> statuses_of_a_save(tr_checkpoint* cp, std::vector<double>& values, const tr_layout* layout) {
  CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
  tr_checkpoint_item(cp, "a", values.data(), TR_F64, layout);
  CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
  std::vector<int> seen = {tr_checkpoint_status(cp)};
  while (seen.back() != TR_SAVE_COMMITTED && seen.back() != TR_SAVE_FAILED) {
    const int now = tr_checkpoint_status(cp);
    if (now != seen.back()) seen.push_back(now);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK_EQ(seen.back(), TR_SAVE_COMMITTED);
  CHECK(std::is_sorted(seen.begin(), seen.end() - 1) && seen.size() <= 3);
  return seen;
}

}  // namespace

MPI_TEST(checkpoint_fault, slow_storage_does_not_hold_up_an_asynchronous_save) {
  const std::string directory = fresh_directory("fault-slow");
  for (const char* options : {"mode=parallel", "mode=local"}) {
    // The last rank has nearly everything, 400 kB: the others finish writing long before it does.
    const Session session("throttle=500kB/s");
    const tr_index shape = 50'000 + size() - 1, none = 0;
    const bool last = rank() == size() - 1;
    const tr_index lower = rank(), upper = last ? shape : rank() + 1;
    tr_layout* layout = nullptr;
    CHECK_EQ(tr_layout_box(1, &shape, &none, &lower, &upper, &layout), TR_OK);
    std::vector<double> values(static_cast<std::size_t>(upper - lower), 1.5);
    tr_checkpoint* cp = create(directory + "/" + (options + 5), options);
    CHECK_EQ(tr_checkpoint_status(cp), TR_SAVE_NONE);
    // A rank that the machine holds up misses a status, but not every time.
    CHECK(one_of(10, [&] {
      const std::vector<int> seen = statuses_of_a_save(cp, values, layout);
      return last ? seen.front() == TR_SAVE_CAPTURED
                  : seen.size() > 1 && seen[seen.size() - 2] == TR_SAVE_WRITTEN;
    }));
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    tr_layout_free(&layout);
  }
  remove_directory(directory);
}

MPI_TEST_MAIN
