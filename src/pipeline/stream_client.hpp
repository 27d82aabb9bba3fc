// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "comm/line.hpp"
#include "exchange/roster.hpp"
#include "layout/layout.hpp"
#include "node/lane.hpp"
#include "pipeline/messages.hpp"
#include "pipeline/statistics.hpp"

namespace tailrace::pipeline {

/// A descriptor on its way into a lane.
struct Told {
  node::Descriptor descriptor;
  ByteVector bytes;
};

/// A compute rank's end of one stream: the number of each step, the errors kept for its end, the verdicts
/// that came, and what each call returns. It never waits. Its owner, streams::Stream, publishes what is to be
/// told, and waits until what a call needs is known.
class StreamClient {
 public:
  /// One field as the servers must know it. Fields on the same layout have the same `layout_id`.
  struct Field {
    const codec::FieldDefinition* definition = nullptr;
    ByteVector prepared;                     // codec::Codec::prepared; needed on compute rank 0 alone
    const layout::Layout* layout = nullptr;  // lasts as long as the stream
    std::int64_t layout_id = 0;
    bool in_parts = false;               // each rank knows its own indices alone
    std::span<const Index> own_indices;  // where the layout is in parts
  };

  StreamClient(const comm::Line& line, const exchange::Roster& roster, int me, std::string name)
      : line_(line), roster_(roster), me_(me), name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t id() const { return id_; }
  void set_id(std::uint32_t id) { id_ = id; }

  // Definition.
  /// Returns the entries that tell the servers of the stream; none but on compute rank 0. `head` lacks the
  /// stream's number and what its fields add.
  [[nodiscard]] std::vector<Told> define(Opening head) const;
  /// Returns the entries that tell them of its next field, which all ranks have agreed on.
  [[nodiscard]] std::vector<Told> define(const Field& field);
  /// Returns the entry that tells them that the stream ends and was never begun.
  [[nodiscard]] Told forget() const;
  /// The compute rank whose puts are the put order: the first that has a share in every field.
  [[nodiscard]] int reference() const { return reference_; }
  /// Says that the stream continues: no step may lie at `lead` or before.
  void continue_behind(std::int64_t lead) { behind_ = last_lead_ = lead; }

  // Steps.
  /// Keeps an error for the end of the step.
  void latch(const Status& status);
  /// Returns true if the step's beginning is to be told.
  [[nodiscard]] bool begin(std::int64_t lead);
  [[nodiscard]] bool in_step() const { return in_step_; }
  [[nodiscard]] std::int64_t lead() const { return lead_; }
  [[nodiscard]] node::Descriptor descriptor(node::Descriptor::Kind kind) const;
  /// Returns the descriptor for one level of a field. It counts as the next operation once was_put() is
  /// called.
  [[nodiscard]] node::Descriptor piece(int field, Index level) const;
  void was_put() { ++operation_; }
  /// Closes the step. Returns what its end tells the servers.
  [[nodiscard]] Told end(const Counters& counters);
  /// end_is_known() is true if the verdict that the end of the step returns has come; end_verdict() returns
  /// it.
  [[nodiscard]] bool end_is_known() const;
  [[nodiscard]] Status end_verdict();
  /// Returns true if the program was told that the step failed, or may be told so.
  [[nodiscard]] bool has_failed(std::int64_t step) const {
    return durable_.count(step) != 0 || reported_.count(step) != 0;
  }
  /// Returns the step whose verdict end() waits for, for the watchdog.
  [[nodiscard]] std::int64_t awaited_step() const { return roster_.self_served ? step_ : step_ - 1; }
  [[nodiscard]] bool wait_is_known(bool durable) const;
  [[nodiscard]] Status wait_verdict(bool durable);
  void on_verdict(VerdictKind kind, std::int64_t step, const Status& status);

  // The end of the stream.
  /// Returns the vote with which the stream is closed.
  [[nodiscard]] Status closing_vote();
  [[nodiscard]] bool is_closing() const { return closing_; }
  /// Makes the end of the stream known to the servers though it never was begun: they have something to
  /// finish.
  void finish_without_steps() { told_closed_ = true; }
  /// Returns true if servers know of the stream, so that its end is to be told and waited for.
  [[nodiscard]] bool must_finish() const { return steps() > 0 || told_closed_; }
  [[nodiscard]] bool is_finished() const { return finished_.has_value(); }
  /// Returns the result of closing: `misuse` if there was any, or the first failure not told yet.
  [[nodiscard]] Status close_verdict(const Status& misuse);

  // Ranks whose numbers of steps differ.
  [[nodiscard]] std::int64_t steps() const { return step_ + 1; }
  /// Returns the number of steps that this rank has ended.
  [[nodiscard]] std::int64_t ended() const { return in_step_ ? step_ : steps(); }
  /// Set if the ranks' calls differ: nothing more is written, and every call returns this from now on.
  [[nodiscard]] const std::optional<Status>& out_of_step() const { return out_of_step_; }
  /// Puts the stream out of step, and closes it towards the servers if they know it. Returns what is to be
  /// told them.
  [[nodiscard]] std::vector<Told> put_out_of_step(const Status& why, bool servers_know);
  /// Called between steps. Puts the stream out of step, but leaves it open towards the servers until the
  /// ranks have settled what they began.
  void stop(const Status& why) {
    out_of_step_ = why;
    unsettled_ = true;
  }
  /// Returns true if stop() was called, and put_out_of_step() not yet.
  [[nodiscard]] bool is_unsettled() const { return unsettled_; }

  [[nodiscard]] std::int64_t durable_through() const { return durable_through_; }
  /// Returns the steps that failed, by number.
  [[nodiscard]] const std::map<std::int64_t, Status>& failures() const { return durable_; }

 private:
  [[nodiscard]] Told entry(Packer& packed) const;
  void add_layout(const Field& field, std::vector<Told>& told);
  void choose_reference();
  Status report(const Status& status);
  Status first_unreported(std::int64_t through);

  const comm::Line& line_;
  const exchange::Roster& roster_;
  int me_;
  std::string name_;
  std::uint32_t id_ = 0;
  std::vector<std::pair<std::int64_t, const layout::Layout*>> layouts_;  // with their layout_ids
  bool has_parts_ = false;
  int fields_ = 0;
  int reference_ = 0;
  bool in_step_ = false;
  std::int64_t step_ = -1;  // number of the current or last step
  std::int64_t lead_ = 0;
  std::int64_t lead_before_ = 0;  // of the step before
  std::optional<std::int64_t> last_lead_;
  std::optional<std::int64_t> behind_;  // the lead behind which the stream continues
  std::int64_t operation_ = 0;
  Status latched_;
  std::map<std::int64_t, Status> accepted_;
  std::map<std::int64_t, Status> durable_;  // failures only
  std::set<std::int64_t> settled_;          // durable or failed, while an earlier step is not yet
  std::int64_t durable_through_ = -1;
  std::set<std::int64_t> reported_;  // steps whose failure was returned
  std::optional<Status> finished_;
  bool closing_ = false;
  bool told_closed_ = false;
  std::optional<Status> out_of_step_;
  bool unsettled_ = false;
};

}  // namespace tailrace::pipeline
