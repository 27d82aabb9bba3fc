// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "engine/operations/accumulator.hpp"
#include "engine/operations/interval.hpp"
#include "engine/operations/kept_array.hpp"
#include "faces/streams/definition/parse.hpp"
#include "faces/streams/resume/resume.hpp"
#include "ground/node/budget.hpp"

namespace tailrace::streams {

/// A field of a stream with interval=: what was accumulated of it, and which steps it was put in.
class TimedField {
 public:
  /// Returns Code::memory if the budget has no room for what the field accumulates.
  static Result<std::unique_ptr<TimedField>> make(const operations::Accumulated& what, node::Budget& budget);

  /// Begins an interval: forgets everything.
  void begin();
  /// Takes the field's array in the step at `lead`.
  void add(const layout::MemoryMap& map, const std::byte* base, std::int64_t lead);
  /// Goes on from the state that a checkpoint has kept. The kept values must be in the accumulator's memory
  /// already.
  void restore(const OpenInterval::Field& recorded);
  /// Returns what a checkpoint records of the field that `definition` describes.
  [[nodiscard]] OpenInterval::Field recorded(const codec::FieldDefinition& definition) const;
  /// Returns a number that is the same on all ranks that have put the field in the same steps. Its upper bits
  /// count these steps.
  [[nodiscard]] std::int64_t calls() const;
  [[nodiscard]] operations::Accumulator& accumulator() { return accumulator_; }

 private:
  explicit TimedField(const operations::Accumulated& what) : accumulator_(what) {}

  operations::Accumulator accumulator_;
  std::uint64_t leads_ = 0;  // checksum of the leads at which the field was put
};

/// The intervals of a stream with interval=: tells to which interval a step belongs, and if the step
/// completes it. All functions are local and give the same result on every rank that has the same steps.
class Operations {
 public:
  explicit Operations(const StreamRequest& request)
      : intervals_(*request.options.interval, request.definition.base, request.definition.calendar,
                   request.definition.time),
        time_(request.definition.time) {}

  /// Goes on behind `position`. Returns Code::state if the position fits no interval, or if its interval has
  /// another length.
  Status resume(const Position& position);
  /// Sets the statistic that follows from the field's operation. Returns Code::settings if the field's type
  /// or missing value does not suit the operation, or if the program gives another statistic.
  Status define(FieldRequest& field) const;
  /// Returns what the checkpoint has recorded of a field that continues, or nothing.
  [[nodiscard]] std::optional<OpenInterval::Field> recorded(const std::string& field) const;
  /// Returns Code::state if a field that is defined in the middle of an interval differs from the field that
  /// the checkpoint has, or if the checkpoint has no such field. `now` is what a checkpoint would record of
  /// the field.
  [[nodiscard]] Status check_recorded(const OpenInterval::Field& now) const;
  /// Notes that the field is defined, and has all that the checkpoint has of it.
  void take_recorded(const std::string& field) { awaited_.erase(field); }
  /// Returns Code::state if the program has not defined a field that the checkpoint has: the stream can write
  /// nothing then. Call it once there is a step.
  [[nodiscard]] Status check_complete() const;

  /// Begins a step. Returns an error if it does not follow the one before; its puts then count for nothing.
  Status begin(std::int64_t lead);
  /// Returns Code::order if the current step lies behind the end of an interval where there was no step. That
  /// interval is lost. The step counts in its own interval.
  [[nodiscard]] const Status& missed() const { return missed_; }
  /// Return the lead of the current step, and if it begins an interval, if its puts count, and if it
  /// completes its interval.
  [[nodiscard]] std::int64_t lead() const { return lead_; }
  [[nodiscard]] bool begins_interval() const { return begins_; }
  [[nodiscard]] bool counts() const { return counts_; }
  [[nodiscard]] bool completes() const { return counts_ && intervals_.is_end(lead_); }
  /// Returns the interval that has begun and is not complete, without its fields, or nothing. An interval
  /// whose first step was refused has begun, too: it fails.
  [[nodiscard]] std::optional<OpenInterval> open() const;
  /// Returns the lead at which the interval of the current step begins.
  [[nodiscard]] std::int64_t interval_begin() const { return begin_.value_or(0); }
  /// Returns the lead at which the interval of the current step ends.
  [[nodiscard]] std::int64_t end() const { return intervals_.end_of(last_.value_or(0)); }

 private:
  [[nodiscard]] Status check_order(std::int64_t lead) const;
  [[nodiscard]] Status check_ends(std::int64_t before) const;

  operations::Intervals intervals_;
  TimeAxis time_;
  std::int64_t lead_ = 0;
  bool begins_ = false;
  bool counts_ = false;
  bool refused_ = false;  // a step since the last interval's end was refused
  Status missed_;
  std::optional<std::int64_t> last_;   // lead of the last step that followed the one before
  std::optional<std::int64_t> begin_;  // of the interval that has step `last_`
  std::optional<OpenInterval> recorded_;
  std::set<std::string> awaited_;  // fields of `recorded_` that are not defined yet
};

}  // namespace tailrace::streams
