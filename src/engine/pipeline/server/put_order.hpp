// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "engine/pipeline/server/gathering.hpp"

namespace tailrace::pipeline {

/// The first stage. It compares the put order, which the root announces, with the descriptors in the lanes
/// that this server reads. It hands on each record of the put order. Then, for each rank with a share in the
/// record, it hands on the piece in the rank's lane, or says that the piece will not come. It also knows
/// which ranks have ended each step, and with which errors. It passes the verdicts on to the ranks.
class PutOrder {
 public:
  PutOrder(OpenStream& stream, Gathering& gathering);

  /// Takes the next entry of the put order.
  void on_entry(const SequenceEntry& entry);
  /// Takes the next descriptor of compute rank `c`. Returns false if the put order is not known that far yet.
  bool on_descriptor(int c, const node::Descriptor& descriptor);
  /// Notes that compute rank `c` has come to agreement `number`. Each step that the put order has before the
  /// agreement was begun by the rank, or never will be.
  void on_fence(int c, std::int64_t number);
  void on_verdict(VerdictKind kind, std::int64_t step, const Status& status);
  /// Moves the lanes of ranks that have come to a fence forward in the put order, at most to the fence.
  /// Returns true if something moved.
  bool advance();
  /// Returns true if the lane of `c` has passed the stream's end.
  [[nodiscard]] bool has_closed(int c) const { return lanes_.at(c).closed; }
  /// True if nothing comes any more: the verdict on the stream is known, and every lane that is read here has
  /// passed the stream's end.
  [[nodiscard]] bool is_closed() const {
    return finished_ && std::ranges::all_of(lanes_ | std::views::values, &LaneProgress::closed);
  }
  /// Names, for the watchdog, the compute ranks seen here that have not ended a step that other ranks have
  /// ended.
  [[nodiscard]] std::string waiting_for() const;

 private:
  struct Step {
    std::int64_t lead = 0;
    std::uint64_t first_record = 0;
    std::uint64_t end_record = 0;  // valid once `complete`
    bool complete = false;
    std::int64_t fences_at_begin = 0;    // number of fences that the put order had before it
    std::int64_t fences_at_end = 0;      // valid once `complete`
    Status status;                       // first error of the compute ranks homed here
    int lanes_ended = 0;                 // number of lanes read here that have ended it
    bool durable = false;                // its last verdict is known
    std::map<int, std::int64_t> stamps;  // when each homed rank ended it
  };
  struct LaneProgress {
    enum class State {
      outside,  // outside of any step
      inside,
      absent,  // inside of a step that the rank skipped as a whole
      extra    // inside of a step that the reference rank never began
    };
    State state = State::outside;
    std::int64_t step = -1;
    std::int64_t next = 0;    // the next step of the put order
    std::int64_t lead = 0;    // of an extra step
    std::int64_t fences = 0;  // number of agreements that the rank has come to
    bool told = false;        // the rank alone was told the step's verdict
    bool closed = false;
    std::uint64_t cursor = 0;  // the next record to match
    bool skipping = false;     // after an error: later descriptors of this step are not used
    Status status;
  };

  void check_staging(const Step& step);
  bool on_begin(int c, LaneProgress& lane, const node::Descriptor& descriptor);
  bool on_piece(int c, LaneProgress& lane, const node::Descriptor& descriptor);
  bool on_end(int c, LaneProgress& lane, const node::Descriptor& descriptor);
  bool on_close(int c, LaneProgress& lane);
  bool pass(int c);
  bool catch_up(int c);
  void enter(LaneProgress& lane, LaneProgress::State state, std::int64_t step);
  void leave_step(int c, LaneProgress& lane, const Status& status, std::int64_t stamp);
  void outrun(int c, LaneProgress& lane);
  void on_durable(std::int64_t step, const Status& status);
  void tell(int c, VerdictKind kind, std::int64_t step, const Status& status);
  void tell_both(int c, std::int64_t step, const Status& status);
  void forget_if_over(std::int64_t step);
  bool seek_own_record(int c, LaneProgress& lane, const Step& step);
  void disagree(int c, LaneProgress& lane, std::string text);
  void skip(int c, LaneProgress& lane, const Status& why);
  void skip_announced(int c, LaneProgress& lane);
  [[nodiscard]] std::string call_text(int c, int field, int level) const;

  [[nodiscard]] const TimeAxis& times() const { return opening_.definition.time; }

  OpenStream& stream_;
  Context& context_;
  const Opening& opening_;
  Gathering& gathering_;
  std::vector<int> homed_;
  std::map<int, LaneProgress> lanes_;
  // The number of records that the root has announced of its last step, by layout and element size.
  std::map<std::pair<int, Bytes>, Index> step_records_;
  bool told_of_staging_ = false;
  std::int64_t fences_ = 0;  // number of agreements in the put order
  std::set<int> fenced_;     // ranks that may be further than the put order: their lanes wait
  std::map<std::int64_t, Step> steps_;
  bool finished_ = false;
  node::KeptDefinitions::Progress* progress_ = nullptr;  // set if another server may take the lanes over
};

}  // namespace tailrace::pipeline
