// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/pipeline/compute/lane_writer.hpp"
#include "engine/pipeline/compute/stream_client.hpp"
#include "engine/pipeline/messages.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::pipeline {

/// A compute rank's end of the session: its votes, its streams, and the messages that come for them. It never
/// waits: session::Session does.
///
/// To agree, the session publishes fence(), calls vote(), and waits until take() returns the verdict. If the
/// verdict is an error, for example because ranks have begun different numbers of steps, the session calls
/// vote_steps(), waits for the second verdict, and publishes what compare_steps() returns.
class Client {
 public:
  /// Takes the messages of the line of all ranks, and of that of the compute ranks.
  Client(comm::Line& session, comm::Line& computes, const exchange::Roster& roster);

  /// Gives `writer`, of a lane of this kind, the room that the rank's home grants.
  void grant_to(LaneWriter& writer, node::LaneKind kind) noexcept {
    granted_[static_cast<std::size_t>(kind)] = &writer;
  }
  /// Tells all servers that the ranks have lanes of this kind. Call it on compute rank 0.
  void tell_lanes(node::LaneKind kind);
  /// Returns the kind of the lane for a descriptor of a stream.
  [[nodiscard]] node::LaneKind lane_of(const node::Descriptor& descriptor) const;
  void add(StreamClient& stream);
  void remove(std::uint32_t id) { streams_.erase(id); }

  /// Returns the fence that this rank puts into its lane when it comes to an agreement. It divides the steps
  /// before the agreement from those behind it.
  [[nodiscard]] node::Descriptor fence() {
    return {.kind = node::Descriptor::Kind::fence, .step = ++fences_};
  }
  [[nodiscard]] std::int64_t newest_fence() const { return fences_; }
  /// Returns how many failures of steps this rank has heard of, those of closed streams too.
  [[nodiscard]] std::int64_t failed_steps() const { return failed_steps_; }
  [[nodiscard]] std::uint64_t vote(comm::Vote vote);
  [[nodiscard]] std::uint64_t vote_steps();
  /// Returns the verdict of agreement `number` if it has come, and forgets it.
  [[nodiscard]] std::optional<comm::Verdict> take(std::uint64_t number) {
    return computes_.agreements().take(number);
  }
  /// Puts a stream out of step if ranks have begun different numbers of its steps, or if not all of them
  /// close it. Every rank does so with the same streams, and the same status. Returns the descriptors to
  /// publish.
  [[nodiscard]] std::vector<Told> compare_steps(const comm::Verdict& verdict) {
    return put_out_of_step(verdict, {});
  }

  /// The ranks settle once the order of calls is broken. They agree on settling_vote(), then publish
  /// last_fence() of the verdict and everything that settle() returns. settle() closes every stream that any
  /// rank has begun.
  [[nodiscard]] comm::Vote settling_vote() const { return {{}, "tr_finalize", own_counts(true)}; }
  [[nodiscard]] node::Descriptor last_fence(const comm::Verdict& verdict);
  [[nodiscard]] std::vector<Told> settle(const comm::Verdict& verdict, const Status& why) {
    return put_out_of_step(verdict, why);
  }
  /// Returns true if this rank has come to the end of the step, or has closed the stream.
  [[nodiscard]] bool has_ended(std::uint32_t stream, std::uint64_t step) const;

  /// Has the servers try whether they can append to a file together (comm::CollectiveFiles::try_appends): a
  /// new one of this name, which they remove. One trial at a time.
  void begin_trial(const std::string& path);
  /// Returns the outcome once all servers have told theirs: the first error, or none.
  [[nodiscard]] std::optional<Status> trial() const {
    return untried_ > 0 ? std::nullopt : std::optional(trial_status_);
  }

  /// Sends the counters for the report to server 0. With 0 servers the rank's own server sends them.
  void tell_statistics(const Statistics& statistics);
  [[nodiscard]] static node::Descriptor farewell() { return {.kind = node::Descriptor::Kind::farewell}; }

 private:
  struct StepCount {
    std::uint32_t stream = 0;
    std::uint32_t closing = 0;
    std::int64_t steps = 0;
  };
  using Counts = std::map<std::uint32_t, std::vector<StepCount>>;  // by stream, then by rank
  [[nodiscard]] ByteVector own_counts(bool unsettled) const;
  static Counts counts_of(const comm::Verdict& verdict);
  std::vector<Told> put_out_of_step(const comm::Verdict& verdict, const Status& why);
  [[nodiscard]] std::string steps_text() const;
  void on_verdict(Unpacker& in);
  int untried_ = 0;  // the servers that have not told the outcome of the trial
  Status trial_status_;
  static Status difference(const std::string& name, const std::vector<StepCount>& counts);

  comm::Line& session_;
  comm::Line& computes_;
  const exchange::Roster& roster_;
  std::map<std::uint32_t, StreamClient*> streams_;
  std::array<LaneWriter*, node::lane_kinds> granted_{};
  std::uint32_t next_stream_ = 1;
  std::int64_t fences_ = 0;
  std::int64_t failed_steps_ = 0;
};

}  // namespace tailrace::pipeline
