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
#include "ground/node/remote_lane.hpp"

namespace tailrace::pipeline {

/// A compute rank's end of one stream. It numbers the steps, keeps the errors of each step until its end,
/// holds the verdicts that have come, and decides what each call returns. It never waits. Its owner,
/// streams::Stream, and the stream's streams::Fields publish the descriptors that this class returns. The
/// owner waits until the verdict that a call needs is known.
class StreamClient {
 public:
  StreamClient(const comm::Line& line, const exchange::Roster& roster, int me, std::string name,
               TimeAxis time)
      : line_(line),
        roster_(roster),
        me_(me),
        name_(std::move(name)),
        time_(std::move(time)),
        definitions_(roster, me) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t id() const { return definitions_.stream(); }
  [[nodiscard]] OwnDefinitions& definitions() { return definitions_; }
  [[nodiscard]] const OwnDefinitions& definitions() const { return definitions_; }
  [[nodiscard]] StepVerdicts& verdicts() { return verdicts_; }
  [[nodiscard]] const StepVerdicts& verdicts() const { return verdicts_; }
  /// Says that the stream continues: no step may lie at `lead` or before.
  void continue_behind(std::int64_t lead) { behind_ = last_lead_ = lead_ = lead; }

  /// Sets the kind of the lane in which the rank puts the stream's data. Call it before anything is told.
  void put_in(node::LaneKind kind) { lane_kind_ = kind; }
  /// Returns the kind of the lane for a descriptor of the stream. All definitions travel in the usual lane.
  [[nodiscard]] node::LaneKind lane_of(const node::Descriptor& descriptor) const {
    return descriptor.kind == node::Descriptor::Kind::define ? node::LaneKind::usual : lane_kind_;
  }
  [[nodiscard]] node::LaneKind lane_kind() const { return lane_kind_; }

  // Steps.
  /// Keeps an error for the end of the step.
  void latch(const Status& status);
  /// Begins the step at `lead`. Returns true if the servers must be told: not inside of a step, and not out
  /// of step.
  /// With `is_lost` the program has told no time, and the step fails: later steps may lie before `lead`.
  [[nodiscard]] bool begin(std::int64_t lead, bool is_lost = false);
  [[nodiscard]] bool in_step() const { return in_step_; }
  /// Begins a step that lies within an interval: the servers never hear of it. Returns false if the rank is
  /// in a step already or the stream is out of step.
  [[nodiscard]] bool begin_within();
  void end_within() { in_step_ = is_within_ = false; }
  /// Call it after begin(). Says that the interval of the step begins at `lead`. That is later than the step
  /// before if no step was at the end of the interval before.
  void note_interval(std::int64_t lead) { lead_before_ = std::max(lead_before_, lead); }
  /// kept() returns the error that is kept for the step that completes the interval. drop_kept() also forgets
  /// it.
  [[nodiscard]] const Status& kept() const { return latched_; }
  [[nodiscard]] Status drop_kept() { return std::exchange(latched_, Status()); }
  /// Keeps, for the first step, the error that the checkpoint of another run has kept. Its operation and rank
  /// stay its cause.
  void keep(const Status& status);
  /// Between put_off_records() and begin_records() an error counts as earlier than all records of the step.
  /// The records at the end of an interval follow from puts in several steps: if one of these puts has failed
  /// on a rank, the rank's records differ from the others', and the error must count before the difference.
  void put_off_records() { operation_ = -1; }
  void begin_records() { operation_ = 0; }
  /// Returns true in a step that begin_within() has begun.
  [[nodiscard]] bool is_within() const { return is_within_; }
  [[nodiscard]] std::int64_t lead() const { return lead_; }
  /// Returns the lead of the last step that went forward in time, or nothing.
  [[nodiscard]] const std::optional<std::int64_t>& last_lead() const { return last_lead_; }
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
  /// Ends the step. Returns the descriptor of its end for the servers, with the step's error, `counters`, and
  /// for a report of the running job what the process has spent.
  [[nodiscard]] Told end(const Counters& counters, const std::optional<Process>& process = {});
  /// end_is_known() is true if the verdict has come that tr_stream_end returns. end_verdict() returns this
  /// verdict.
  [[nodiscard]] bool end_is_known() const { return is_known(awaited_step(), roster_.self_served); }
  [[nodiscard]] Status end_verdict() { return verdict(awaited_step(), roster_.self_served); }
  /// Returns the step whose verdict end() waits for, for the watchdog.
  [[nodiscard]] std::int64_t awaited_step() const { return roster_.self_served ? step_ : step_ - 1; }
  [[nodiscard]] bool wait_is_known(bool durable) const { return is_known(step_, durable); }
  [[nodiscard]] Status wait_verdict(bool durable) { return verdict(step_, durable); }

  // The end of the stream.
  /// Begins to close the stream. Returns this rank's vote: the error that was kept, or OK.
  [[nodiscard]] Status closing_vote();
  [[nodiscard]] bool is_closing() const { return closing_; }
  /// Says that the servers must hear of the stream's end although it has no step: they have something to
  /// finish.
  void finish_without_steps() { told_closed_ = true; }
  /// True if the servers know of the stream: they must hear of its end, and the rank waits until they have
  /// finished.
  [[nodiscard]] bool must_finish() const { return steps() > 0 || told_closed_; }
  /// Returns the result of closing: `misuse` if it is an error, otherwise the first failure that the program
  /// was not told.
  [[nodiscard]] Status close_verdict(const Status& misuse);

  // Ranks whose numbers of steps differ.
  /// Returns true once a step has begun, also one within an interval.
  [[nodiscard]] bool has_begun() const { return has_begun_; }
  [[nodiscard]] std::int64_t steps() const { return step_ + 1; }
  /// Returns the number of steps that this rank has ended.
  [[nodiscard]] std::int64_t ended() const { return in_step_ && !is_within_ ? step_ : steps(); }
  /// Set if the ranks' calls differ: nothing more is written, and every call returns this from now on.
  [[nodiscard]] const std::optional<Status>& out_of_step() const { return out_of_step_; }
  /// Puts the stream out of step. Returns the descriptors that close it on the servers; none unless
  /// `servers_know` it.
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
  TimeAxis time_;
  OwnDefinitions definitions_;
  node::LaneKind lane_kind_ = node::LaneKind::usual;
  StepVerdicts verdicts_;
  bool in_step_ = false;
  bool has_begun_ = false;
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
