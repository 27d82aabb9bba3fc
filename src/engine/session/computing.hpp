// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/pipeline/compute/client.hpp"
#include "engine/pipeline/compute/lane_writer.hpp"
#include "ground/comm/exposed/exposed_memory.hpp"
#include "ground/comm/line.hpp"
#include "ground/node/budget.hpp"
#include "ground/node/handed_memory.hpp"

namespace tailrace::session {

class Session;

/// The part of a session that compute ranks have: their line, agreements that keep streams in step, and this
/// rank's lane writer. Collective functions are collective over the compute ranks.
class Computing {
 public:
  /// `session` must outlive this.
  explicit Computing(Session& session);

  /// Local. Makes the lane writer, and the header of this rank's lane.
  void open_lane();
  [[nodiscard]] comm::Line& line() { return line_; }
  [[nodiscard]] pipeline::LaneWriter& lane_writer(node::LaneKind kind = node::LaneKind::usual) {
    return kind == node::LaneKind::usual ? *lane_writer_ : *more_.at(kind).writer;
  }
  /// Collective, before a stream with this handoff is told. Makes the lane that it needs, if the rank has
  /// none of its kind yet, and draws its memory on the budget. Blocks until all ranks have called it; with
  /// `onesided` also until the servers have made and tested the window. Returns the handoff that the stream
  /// gets: `messages` where the MPI has no one-sided gets; compute rank 0 warns of that once. Returns
  /// Code::memory on every rank if a node lacks memory. `call` is the program's call.
  Result<pipeline::Handoff> open_handoff(pipeline::Handoff handoff, const std::string& call);
  /// With 0 servers: returns the lane of arrays that the rank lends to its own server. Otherwise nullptr.
  [[nodiscard]] const std::shared_ptr<pipeline::LentLane>& lent() const { return lent_; }
  void announce() {
    if (lane_writer_) lane_writer_->announce();
    for (const auto& [kind, lane] : more_) lane.writer->announce();
  }
  /// Returns a question for threads, which hear no messages. The answer is true once all steps that this rank
  /// had ended before its last agreement are durable, but for failures of which the rank has heard by now. It
  /// is false once any other step has failed: the rank itself must look. Until then there is none. Returns an
  /// empty function if this rank's server shares no memory with it, or the rank has more lanes.
  [[nodiscard]] std::function<std::optional<bool>()> settled() const;
  /// Moves the lane on. Returns true if something moved.
  bool advance() {
    bool moved = lane_writer_ && lane_writer_->advance();
    for (const auto& [kind, lane] : more_) moved = lane.writer->advance() || moved;
    return moved;
  }

  /// Collective. Hands in the caller's vote and returns the verdict, whose Status is the same on every rank.
  /// Blocks until all have voted. After an error, streams of which the ranks have begun different numbers of
  /// steps are out of step.
  comm::Verdict agree(comm::Vote vote);
  /// Collective. Returns true if the program is to save and stop. The Status is the same on every rank.
  /// Blocks until all have asked. Rank 0 logs the reason, once.
  Result<bool> should_stop();
  /// Collective. Blocks until `done` returns true, which it does once all ranks have ended step `step` of
  /// `stream`. Returns false if the order of calls is broken before that.
  /// The wait counts as `routine`.
  bool wait_for_step(const pipeline::StreamClient& stream, std::int64_t step, std::string_view call,
                     comm::Routine routine, const std::function<bool()>& done, const std::string& what);
  /// Returns the error of the broken order, once ranks turned out to be in different collective calls. All
  /// ranks return it from then on.
  [[nodiscard]] const std::optional<Status>& broken() const;
  /// Local. Calls `attempt`, which publishes in the lane of this kind, until it returns true. Waits while the
  /// lane is full. Returns the nanoseconds waited.
  std::int64_t publish(const std::function<bool()>& attempt, node::LaneKind kind = node::LaneKind::usual);
  /// Collective. Blocks until all have come to tr_finalize. Ranks that are in other calls meanwhile get an
  /// error there, and may come here next. Returns the first error on the way.
  Status meet_in_finalize();
  /// Collective, when nothing is open any more. Blocks until the servers have taken everything that was put,
  /// and takes leave of them. `ended` is what tr_finalize returns.
  void leave(const Status& ended = {});
  [[nodiscard]] bool has_left() const { return has_left_; }

  /// Local, at the end of tr_init. From now on note_call() sends this rank's server a sign, at most one in
  /// `nanoseconds`.
  void begin_signs(std::int64_t nanoseconds);
  /// Local. Notes that the program makes a call at `now`, and sends this rank's server a sign now and then.
  /// Servers see only calls about streams. Without the signs a model that makes no such call would seem to
  /// hang.
  void note_call(std::int64_t now) {
    if (now >= next_sign_) send_sign(now);
  }

  /// Prints the error of a collective call once for all ranks. Each rank whose call has failed calls this
  /// before it ends its process. Rank 0 prints its `text`; while it waits in another call, it prints the text
  /// of another rank. If rank 0 is in no call for seconds, the next rank has its turn. Blocks until the text
  /// is out.
  void print_once(const std::string& text);
  /// Notes that this rank has printed an error of its own. Others may hear of the same error in another call:
  /// this rank does not print it again for them.
  void note_printed() { has_printed_at_ = line_.now(); }
  /// Returns how long `rank` waits for the ranks before it to print.
  [[nodiscard]] static std::chrono::milliseconds turn_of(int rank);
  /// How long a rank lives on after it has printed. The launcher kills the processes that forward the ranks'
  /// output together with the ranks (seen with MPICH's hydra): they need this time to read the text.
  static constexpr std::chrono::milliseconds until_launchers_read{300};
  /// Returns what this process has spent, for the end of a step, if a report is written during the run.
  [[nodiscard]] std::optional<pipeline::Process> spent_so_far() const;

  void add_stream(pipeline::StreamClient& stream) { client_.add(stream); }
  void begin_trial(const std::string& path) { client_.begin_trial(path); }
  [[nodiscard]] std::optional<Status> trial() const { return client_.trial(); }
  void remove_stream(std::uint32_t id) {
    client_.remove(id);
    if (lane_writer_) lane_writer_->drop(id);
  }

 private:
  static constexpr std::uint32_t print_message = 50;    // to rank 0: a text
  static constexpr std::uint32_t printed_message = 51;  // to all others: a rank has printed
  static_assert(node::last_handed_message < print_message);
  /// A lane that streams have asked for.
  struct MoreLane {
    std::unique_ptr<node::Draw> drawn;
    std::unique_ptr<comm::ExposedMemory> exposed;
    std::unique_ptr<pipeline::LaneWriter> writer;
  };
  std::unique_ptr<pipeline::LaneWriter> writer_to_home(std::unique_ptr<node::PrivateLane> lane,
                                                       node::LaneKind kind, comm::ExposedMemory* exposed);
  Status agree_on_lane(node::LaneKind kind, pipeline::Handoff handoff, const std::string& call);
  bool expose(const std::string& call);
  Status make_writer(node::LaneKind kind);
  void publish_fence(const node::Descriptor& fence);
  void print(std::string_view text);
  void send_sign(std::int64_t now);
  void settle(const Status& why);
  comm::Verdict verdict_of(std::uint64_t agreement, const std::string& call);
  void tell(const std::vector<pipeline::Told>& all);

  Session& session_;
  comm::Line line_;
  pipeline::Client client_;
  std::unique_ptr<pipeline::LaneWriter> lane_writer_;
  std::map<node::LaneKind, MoreLane> more_;
  std::map<node::LaneKind, MoreLane> unready_;  // of which some rank has no writer yet
  std::optional<Status> no_onesided_;           // why the MPI has no one-sided gets; the same on all ranks
  std::shared_ptr<pipeline::LentLane> lent_;
  const node::LaneHeader* shared_lane_ = nullptr;  // set if the servers of this node read the lane in place
  bool has_left_ = false;                          // or is about to
  bool printed_ = false;                           // some rank has printed why the program ends
  bool announced_ = false;                         // this rank has told the others that a rank has printed
  std::optional<std::int64_t> has_printed_at_;
  std::int64_t sign_period_ = 0;
  std::int64_t next_sign_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace tailrace::session
