// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "engine/pipeline/root/stream_root.hpp"
#include "engine/pipeline/server/definitions.hpp"
#include "engine/pipeline/server/stream_server.hpp"
#include "ground/node/remote_lane.hpp"

namespace tailrace::pipeline {

/// One server of a session. It reads its lanes and drives every stream. It is a state machine that never
/// waits. The same class runs on a server rank, inside a compute rank's own calls (0 servers), and in the
/// simulated world.
class Server {
 public:
  struct Setup {
    int me = 0;
    using Receivers = std::map<int, std::unique_ptr<node::LaneReceiver>>;  // by compute rank
    std::map<int, std::unique_ptr<node::LaneReader>> lanes;  // of the usual kind, by compute rank
    std::map<node::LaneKind, Receivers> receivers;           // of lanes that the server does not map
    /// One more lane of a rank whose home is this server.
    struct MoreLane {
      std::unique_ptr<node::LaneReader> reader;
      std::unique_ptr<node::LaneReceiver> receiver;
    };
    /// Makes the ends of all lanes of one more kind whose ranks have their home here. With `onesided` blocks
    /// until all ranks have made the memory that they expose, and makes none if there is none. Called once at
    /// most for each kind.
    std::function<Result<std::map<int, MoreLane>>(node::LaneKind kind)> make_lanes;
    Bytes workspace = 0;
    std::function<Result<std::unique_ptr<Ledger>>(const Opening&, const codec::Codec&)> make_ledger;
    /// True if figures travel to server 0 during the run: those of each server and its ranks after a commit,
    /// at most once a second.
    bool reporting = false;
    /// Returns what this process has spent so far.
    std::function<Process()> process;
    /// On server 0 only, if `reporting`: `on_figures` is called with the figures of all ranks that it has
    /// heard of, about once a second, if `wants_figures` returns true. Neither may block.
    std::function<bool()> wants_figures;
    std::function<void(Figures)> on_figures;
    /// On server 0 only: called with the figures of all ranks when all have left.
    std::function<void(const std::map<int, Statistics>&)> on_statistics;
    /// Each compute rank's share of the staging memory, and the setting that gives it the `needed` bytes.
    /// There are none if ranks lend their arrays.
    std::vector<Bytes> quotas;
    std::function<std::string(Bytes needed, Bytes share)> staging_for;
    /// True if another server has read the lanes before. This one goes on with its streams. It is the
    /// session's only server, and all lanes keep their definitions.
    bool takes_over = false;
    /// Makes what servers write files with together. Called once at most.
    std::function<Result<std::unique_ptr<comm::CollectiveFiles>>()> make_collective;
    /// Makes counters to which servers add without each other's help, or returns why there are none. Called
    /// once at most, on all servers alike, if there are several.
    std::function<Result<std::unique_ptr<comm::Counters>>()> make_counters;
    /// Ends the job. Called if this server gives up, and other ranks would wait for it.
    std::function<void(const Status&)> give_up;
  };
  Server(comm::Line& line, const exchange::Roster& roster, executor::Executor& executor, OpenFiles& files,
         Statistics& statistics, Setup setup);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Makes one pass over everything that may have become possible. Returns true if something moved.
  bool advance();
  /// Returns true if all compute ranks have left and every server knows.
  [[nodiscard]] bool is_over() const { return over_; }
  /// Names, for the watchdog, the compute ranks that have not ended a step that other ranks have ended, and
  /// the servers on which a collective call is not over.
  [[nodiscard]] std::string waiting_for() const;
  /// True if what this server has taken cannot go on before another server sends something: pieces of a
  /// record that it owns, the place or the turn of a chunk, the end of a collective call.
  [[nodiscard]] bool waits_for_servers() const;
  /// True if a collective call of this server is not over.
  [[nodiscard]] bool is_in_collective_call() const { return context_.call_under_way.use_count() > 1; }
  /// True if a thread of its own makes collective calls.
  [[nodiscard]] bool has_calling_thread() const { return context_.collective != nullptr; }

 private:
  struct Stream {
    std::unique_ptr<StreamServer> server;
    std::unique_ptr<StreamRoot> root;
    /// True once the stream is open on every server. Until then no server sends anything about it.
    bool started = false;
    /// The put order has all descriptors of the reference's lane before this number. The lane's cursor may
    /// still wait at an earlier one.
    std::uint64_t reference_at = 0;
    std::vector<SequenceEntry> fresh;  // not sent yet
  };

  void take_messages();
  void give_up(const Status& why);
  void open(Opening opening);
  void on_opened(Unpacker& in);
  void on_sequence(Unpacker& in);
  void on_decided(Unpacker& in);
  Status prepare_method(const Opening& opening);
  void make_counters();
  Status make_collective();
  void try_appends(std::int64_t number);
  bool make_collective_calls();
  bool scan_lanes();
  bool scan_lane(node::LaneKind kind, int c, LaneCursor& lane);
  bool open_wanted_lanes();
  void open_lanes(node::LaneKind kind);
  bool move_lanes();
  void take_lane_message(int c, Unpacker in);
  void take_definition(int c, const LaneCursor& lane);
  Status take_over();
  [[nodiscard]] bool is_over(const node::Descriptor& descriptor) const;
  void on_reference(Stream& stream, const node::Descriptor& descriptor);
  void on_fence(node::LaneKind kind, int c, std::int64_t number);
  bool take_data(int server);
  [[nodiscard]] static std::vector<int> awaited(const Stream& stream);
  [[nodiscard]] static bool awaits(const Stream& stream, int server);
  bool poll_data();
  void send_sequence(std::uint32_t id, Stream& stream);
  bool leave();
  [[nodiscard]] Figures own_figures();
  bool report_so_far();
  void hand_over_figures();
  void on_so_far(Unpacker& in);

  exchange::Roster roster_;
  Setup setup_;  // without members that moved to the context
  Context context_;
  std::map<std::uint32_t, Stream> streams_;
  Definitions definitions_;
  // A server that takes the place of another finds these in the lanes. By stream that was not over: the
  // number of steps with a verdict, and the lead before the next step. By lane: the last definition that was
  // kept.
  std::map<std::uint32_t, std::int64_t> decided_;
  std::map<std::uint32_t, std::int64_t> lead_before_;
  std::map<int, std::uint64_t> kept_through_;
  std::uint32_t newest_stream_ = 0;
  // By stream of which this server is the root, until the stream starts: how many servers have opened it.
  std::map<std::uint32_t, int> opened_;
  // The collective calls whose turn has come: streams, and the numbers of their calls. Stream 0: trials.
  std::deque<std::pair<std::uint32_t, std::int64_t>> turns_;
  struct Trial {
    std::string path;
    int asker = 0;  // transport rank
  };
  std::map<std::int64_t, Trial> trials_;
  std::int64_t newest_trial_ = 0;
  using Fences = std::map<int, std::int64_t>;  // by lane: the agreements that its rank has come to
  std::map<node::LaneKind, Fences> fences_;
  std::set<node::LaneKind> opened_lanes_;
  std::vector<node::LaneKind> wanted_lanes_;  // of which compute rank 0 has told, and that may not be open
  std::map<int, int> senders_;  // compute ranks whose data come as messages, and their ranks in the line
  int homed_ = 0;
  int left_ = 0;  // homed ranks that said farewell
  bool said_farewell_ = false;
  int homes_ = 0;       // servers with compute ranks of their own
  int homes_left_ = 0;  // on server 0: how many homes have left
  std::int64_t streams_done_ = 0;
  std::int64_t streams_in_all_ = 0;
  bool finishing_ = false;              // server 0 has said that all ranks have left
  bool told_ = false;                   // statistics sent
  std::map<int, Statistics> gathered_;  // by transport rank
  std::int64_t next_report_ = 0;
  std::optional<std::int64_t> handed_over_at_;
  Figures so_far_;  // on server 0
  bool over_ = false;
};

}  // namespace tailrace::pipeline
