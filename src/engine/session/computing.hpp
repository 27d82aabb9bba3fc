// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/pipeline/compute/client.hpp"
#include "engine/pipeline/compute/outlet.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::session {

class Session;

/// The part of a session that compute ranks have: their line, agreements that keep streams in step, and this
/// rank's outlet. Collective functions are so over compute ranks.
class Computing {
 public:
  /// `session` must outlive this.
  explicit Computing(Session& session);

  /// Local. Makes the outlet, and the header of this rank's lane.
  void open_outlet();
  [[nodiscard]] comm::Line& line() { return line_; }
  [[nodiscard]] pipeline::Outlet& outlet() { return *outlet_; }
  /// Returns the arrays that the rank lends to its own server, if there are no others.
  [[nodiscard]] const std::shared_ptr<pipeline::LentLane>& lent() const { return lent_; }
  void announce() {
    if (outlet_) outlet_->announce();
  }
  /// Makes one step. Returns true if something moved.
  bool advance() { return outlet_ && outlet_->advance(); }

  /// Collective. Hands in the caller's vote and returns the verdict, whose Status is the same on every rank.
  /// Blocks until all have voted. After an error, streams of which the ranks have begun different numbers of
  /// steps are out of step.
  comm::Verdict agree(comm::Vote vote);
  /// Collective. Returns true if the program is to save and stop. The Status is the same on every rank.
  /// Blocks until all have asked. Rank 0 logs the reason, once.
  Result<bool> should_stop();
  /// Collective. Blocks until `done`, which is known once all ranks have ended step `step` of `stream`.
  /// Returns false if the ranks turn out to be in different calls, and it is not `done`.
  bool wait_for_step(const pipeline::StreamClient& stream, std::int64_t step, std::string_view call,
                     const std::function<bool()>& done, const std::string& what);
  /// Returns the error that is set if ranks turned out to be in different collective calls. All ranks return
  /// it from then on.
  [[nodiscard]] const std::optional<Status>& broken() const;
  /// Local. Publishes in the outlet; waits while it is full. Returns the nanoseconds waited.
  std::int64_t publish(const std::function<bool()>& attempt);
  /// Collective. Blocks until all have come to tr_finalize. Ranks that are in other calls meanwhile get an
  /// error there, and may come here next. Returns the first error on the way.
  Status meet_in_finalize();
  /// Collective. Says that nothing is open any more.
  void leave();

  /// Local, at the end of tr_init. Lets note_call() tell this rank's server of calls every `nanoseconds`.
  void begin_signs(std::int64_t nanoseconds);
  /// Local. Says that the program is in a call at `now`. The servers hear of it now and then: they see no
  /// calls but those about streams, and a model that makes none may hang.
  void note_call(std::int64_t now) {
    if (now >= next_sign_) send_sign(now);
  }

  /// Called by each rank whose collective call has failed, before it ends its process. One rank prints its
  /// `text`: rank 0, which also prints that of another rank while it waits in a call itself. If it is in no
  /// call for seconds, the next rank has its turn. Blocks until the text is out.
  void print_once(const std::string& text);
  /// Says that this rank has printed an error of its own, of which others may hear in another call.
  void note_printed() { has_printed_at_ = line_.now(); }
  /// Returns how long `rank` waits for the ranks before it to print.
  [[nodiscard]] static std::chrono::milliseconds turn_of(int rank);
  /// The launcher kills the ranks' forwarders with the ranks (seen with MPICH's hydra): they get this time to
  /// read what was printed.
  static constexpr std::chrono::milliseconds until_launchers_read{300};

  void add_stream(pipeline::StreamClient& stream) { client_.add(stream); }
  void remove_stream(std::uint32_t id) {
    client_.remove(id);
    if (outlet_) outlet_->drop(id);
  }

 private:
  // pipeline::Message and HandedMessage have lower numbers.
  static constexpr std::uint32_t print_message = 50;    // to rank 0: a text
  static constexpr std::uint32_t printed_message = 51;  // to all others
  void print(std::string_view text);
  void send_sign(std::int64_t now);
  void settle(const Status& why);
  comm::Verdict verdict_of(std::uint64_t agreement, const std::string& call);
  void tell(const std::vector<pipeline::Told>& all);

  Session& session_;
  comm::Line line_;
  pipeline::Client client_;
  std::unique_ptr<pipeline::Outlet> outlet_;
  std::shared_ptr<pipeline::LentLane> lent_;
  bool printed_ = false;    // some rank has printed why the program ends
  bool announced_ = false;  // this one, and has told the others
  std::optional<std::int64_t> has_printed_at_;
  std::int64_t sign_period_ = 0;
  std::int64_t next_sign_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace tailrace::session
