// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/pipeline/compute/outlet.hpp"
#include "engine/pipeline/compute/stream_client.hpp"
#include "engine/pipeline/messages.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::pipeline {

/// A compute rank's end of the session: its votes, its streams, and the messages that come for them. It never
/// waits: session::Session does.
///
/// An agreement is: publish fence(); vote(), and wait until take() has the verdict. If that is not OK, for
/// example because ranks have begun different numbers of steps: vote_steps(), wait for that verdict too, and
/// publish what compare_steps() returns.
class Client {
 public:
  /// Takes the messages of the line of all ranks, and of that of the compute ranks.
  Client(comm::Line& session, comm::Line& computes, const exchange::Roster& roster);

  /// Gives `outlet` the room that a server on another node grants.
  void grant_to(Outlet& outlet);
  void add(StreamClient& stream);
  void remove(std::uint32_t id) { streams_.erase(id); }

  /// Returns the descriptor for the lane of a rank that comes to an agreement: steps lie before or behind it.
  [[nodiscard]] node::Descriptor fence() {
    return {.kind = node::Descriptor::Kind::fence, .step = ++fences_};
  }
  [[nodiscard]] std::uint64_t vote(comm::Vote vote);
  [[nodiscard]] std::uint64_t vote_steps();
  /// The verdict of agreement `number`, once.
  [[nodiscard]] std::optional<comm::Verdict> take(std::uint64_t number) {
    return computes_.agreements().take(number);
  }
  /// Puts streams of which ranks have begun different numbers of steps, or which not all of them close, out
  /// of step: on every rank the same ones, with the same status.
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
  /// Returns true if this rank has come to the end of a step. A stream that it has closed counts.
  [[nodiscard]] bool has_ended(std::uint32_t stream, std::uint64_t step) const;

  /// Sends the counters for the report, unless the rank's own server tells them.
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
  static Status difference(const std::string& name, const std::vector<StepCount>& counts);

  comm::Line& session_;
  comm::Line& computes_;
  const exchange::Roster& roster_;
  std::map<std::uint32_t, StreamClient*> streams_;
  std::uint32_t next_stream_ = 1;
  std::int64_t fences_ = 0;
};

}  // namespace tailrace::pipeline
