// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/pipeline/compute/own_definitions.hpp"
#include "engine/pipeline/compute/step_verdicts.hpp"
#include "engine/pipeline/statistics.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::pipeline {

/// A compute rank's end of one stream: the number of each step, the errors kept for its end, the verdicts
/// that came, and what each call returns. It never waits. Its owner, streams::Stream, publishes what is to be
/// told, and waits until what a call needs is known.
class StreamClient {
 public:
  StreamClient(const comm::Line& line, const exchange::Roster& roster, int me, std::string name)
      : line_(line), roster_(roster), me_(me), name_(std::move(name)), definitions_(roster, me) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t id() const { return definitions_.stream(); }
  [[nodiscard]] OwnDefinitions& definitions() { return definitions_; }
  [[nodiscard]] const OwnDefinitions& definitions() const { return definitions_; }
  [[nodiscard]] StepVerdicts& verdicts() { return verdicts_; }
  [[nodiscard]] const StepVerdicts& verdicts() const { return verdicts_; }
  /// Says that the stream continues: no step may lie at `lead` or before.
  void continue_behind(std::int64_t lead) { behind_ = last_lead_ = lead; }

  // Steps.
  /// Keeps an error for the end of the step.
  void latch(const Status& status);
  /// Returns true if the step's beginning is to be told.
  [[nodiscard]] bool begin(std::int64_t lead);
  [[nodiscard]] bool in_step() const { return in_step_; }
  /// Begins a step of which the servers never hear: it lies within an interval. Returns false if the rank is
  /// in a step already or the stream is out of step.
  [[nodiscard]] bool begin_within();
  void end_within() { in_step_ = is_within_ = false; }
  /// Says, behind begin(), that the interval of the step begins at `lead`, where that lies behind the step
  /// before: no step was at its end.
  void note_interval(std::int64_t lead) { lead_before_ = std::max(lead_before_, lead); }
  /// Return the error that is kept for the step that completes the interval, and forget it.
  [[nodiscard]] const Status& kept() const { return latched_; }
  [[nodiscard]] Status drop_kept() { return std::exchange(latched_, Status()); }
  /// Keeps the error with which another run had come to its checkpoint, for the first step. Its operation and
  /// rank stay its cause.
  void keep(const Status& status);
  /// Says that the errors of the step so far come before all of its records: those follow from what the
  /// program has put in several steps, and differ where one of its calls has failed. begin_records() ends
  /// that.
  void put_off_records() { operation_ = -1; }
  void begin_records() { operation_ = 0; }
  /// Returns true in a step that begin_within() has begun.
  [[nodiscard]] bool is_within() const { return is_within_; }
  [[nodiscard]] std::int64_t lead() const { return lead_; }
  [[nodiscard]] node::Descriptor descriptor(node::Descriptor::Kind kind) const;
  /// Returns the descriptor for one level of a field. It counts as the next operation once was_put() is
  /// called. `calls` must be equal on all ranks that put the level.
  [[nodiscard]] node::Descriptor piece(int field, Index level, std::int64_t calls) const {
    return {.kind = node::Descriptor::Kind::piece,
            .stream = id(),
            .step = step_,
            .lead = calls,
            .field = field,
            .level = static_cast<std::int32_t>(level)};
  }
  void was_put() { ++operation_; }
  /// Closes the step. Returns what its end tells the servers.
  [[nodiscard]] Told end(const Counters& counters);
  /// Return whether the verdict that the end of the step returns has come, and that verdict.
  [[nodiscard]] bool end_is_known() const { return is_known(awaited_step(), roster_.self_served); }
  [[nodiscard]] Status end_verdict() { return verdict(awaited_step(), roster_.self_served); }
  /// Returns the step whose verdict end() waits for, for the watchdog.
  [[nodiscard]] std::int64_t awaited_step() const { return roster_.self_served ? step_ : step_ - 1; }
  [[nodiscard]] bool wait_is_known(bool durable) const { return is_known(step_, durable); }
  [[nodiscard]] Status wait_verdict(bool durable) { return verdict(step_, durable); }

  // The end of the stream.
  /// Returns the vote with which the stream is closed.
  [[nodiscard]] Status closing_vote();
  [[nodiscard]] bool is_closing() const { return closing_; }
  /// Makes the servers hear of the end of a stream that was never begun: they have something to finish.
  void finish_without_steps() { told_closed_ = true; }
  /// Returns true if servers know of the stream, so that its end is to be told and waited for.
  [[nodiscard]] bool must_finish() const { return steps() > 0 || told_closed_; }
  /// Returns the result of closing: `misuse` if there was any, or the first failure not told yet.
  [[nodiscard]] Status close_verdict(const Status& misuse);

  // Ranks whose numbers of steps differ.
  [[nodiscard]] std::int64_t steps() const { return step_ + 1; }
  /// Returns the number of steps that this rank has ended.
  [[nodiscard]] std::int64_t ended() const { return in_step_ && !is_within_ ? step_ : steps(); }
  /// Set if the ranks' calls differ: nothing more is written, and every call returns this from now on.
  [[nodiscard]] const std::optional<Status>& out_of_step() const { return out_of_step_; }
  /// Puts the stream out of step. Returns what servers that know it are to be told: it is closed.
  [[nodiscard]] std::vector<Told> put_out_of_step(const Status& why, bool servers_know);
  /// Called between steps. Puts the stream out of step, but leaves it open towards the servers until the
  /// ranks have settled what they began.
  void stop(const Status& why) {
    out_of_step_ = why;
    unsettled_ = true;
  }
  /// Returns true if stop() was called, and put_out_of_step() not yet.
  [[nodiscard]] bool is_unsettled() const { return unsettled_; }

 private:
  [[nodiscard]] bool is_known(std::int64_t step, bool durable) const;
  [[nodiscard]] Status verdict(std::int64_t step, bool durable);

  const comm::Line& line_;
  const exchange::Roster& roster_;
  int me_;
  std::string name_;
  OwnDefinitions definitions_;
  StepVerdicts verdicts_;
  bool in_step_ = false;
  bool is_within_ = false;
  std::int64_t step_ = -1;  // number of the current or last step
  std::int64_t lead_ = 0;
  std::int64_t lead_before_ = 0;  // of the step before
  std::optional<std::int64_t> last_lead_;
  std::optional<std::int64_t> behind_;  // the lead behind which the stream continues
  std::int64_t operation_ = 0;
  Status latched_;
  bool closing_ = false;
  bool told_closed_ = false;
  std::optional<Status> out_of_step_;
  bool unsettled_ = false;
};

}  // namespace tailrace::pipeline
