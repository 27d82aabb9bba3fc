// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "engine/exchange/record_plan.hpp"
#include "engine/pipeline/handoff_lanes.hpp"
#include "engine/pipeline/ledger.hpp"
#include "engine/pipeline/messages.hpp"
#include "engine/pipeline/statistics.hpp"
#include "ground/comm/collective/collective_files.hpp"
#include "ground/comm/counters/counters.hpp"
#include "ground/comm/line.hpp"
#include "ground/comm/switchboard.hpp"
#include "ground/executor/executor.hpp"
#include "ground/node/lane.hpp"
#include "ground/storage/writer.hpp"

namespace tailrace::pipeline {

/// The files that this process has open for writing. A job calls these methods only for the path whose key it
/// has. The methods wait for storage. If too many files are open, a method first closes the oldest one, and
/// then waits for the storage of that file too.
class OpenFiles {
 public:
  /// At most `most_open` files stay open. There may be more, up to `most_unsynced`, while the oldest files
  /// hold bytes that no sync has covered.
  static constexpr std::size_t most_open = 16;
  static constexpr std::size_t most_unsynced = 128;

  explicit OpenFiles(std::shared_ptr<storage::Target> target) : target_(std::move(target)) {}
  /// Writes one round (storage::Writer::round). The next sync() of the path answers for its bytes, even if
  /// the file was closed in between. If the file is not open, `make` opens it: all calls for a path give the
  /// same one.
  Status write(const std::string& path, storage::MakeWriter make, std::int64_t epoch,
               std::span<const storage::Extent> extents);
  /// Begins one round (storage::Writer::begin), which a job of the path's key ends by finish().
  Result<std::unique_ptr<storage::Round>> begin(const std::string& path, storage::MakeWriter make,
                                                std::int64_t epoch, std::span<const storage::Extent> extents);
  /// Waits until the round is over, and returns what became of it. Its file may be closed by now.
  Status finish(const std::string& path, storage::Round& round);
  /// Synchronises the bytes written to the path by `how`, which calls Writer::sync(), maybe more than once.
  /// After a failure the next write() opens the file anew.
  Status sync(const std::string& path, storage::MakeWriter make,
              const std::function<Status(storage::Writer&)>& how);
  /// Makes the next write() open the file anew.
  void forget(const std::string& path);
  [[nodiscard]] storage::Target& target() const { return *target_; }

 private:
  struct Open {
    std::unique_ptr<storage::Writer> writer;
    bool unsynced = false;
    bool used = false;  // a job uses it; that job alone touches the other members
  };
  using Entry = std::pair<const std::string, Open>;
  Status with(const std::string& path, storage::MakeWriter make, const std::function<Status(Open&)>& body);
  Entry& take(const std::string& path);
  void give_back(Entry& entry, bool keep);
  Status open(Entry& entry, storage::MakeWriter make);
  void make_room();

  std::shared_ptr<storage::Target> target_;
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::map<std::string, Open> files_;
  std::deque<std::string> order_;       // oldest first
  std::map<std::string, Status> lost_;  // failures of files that were closed before their sync
};

/// One lane as a server reads it: how far it has looked, and which descriptors it still needs.
class LaneCursor {
 public:
  explicit LaneCursor(std::unique_ptr<node::LaneReader> reader)
      : reader_(std::move(reader)), scanned_(reader_->position().first), released_(scanned_) {}
  [[nodiscard]] node::LaneReader& reader() const { return *reader_; }
  /// Returns the first descriptor not looked at yet, or nullptr if there is none.
  [[nodiscard]] const node::Descriptor* front() const {
    return scanned_ < reader_->head() ? &reader_->at(scanned_) : nullptr;
  }
  [[nodiscard]] std::uint64_t number() const { return scanned_; }
  /// Passes the descriptor in front, and returns its number.
  std::uint64_t pass() {
    needs_.push_back(Need::yes);
    return scanned_++;
  }
  /// Notes that nobody needs descriptor `number` any more. The lane gets its memory back once nobody needs
  /// the descriptors before it either.
  void finish(std::uint64_t number);
  /// Notes that this server has used up descriptor `number` of a step. If another server may take the lane
  /// over, the descriptor stays in the lane until its step has a verdict.
  void use_up(std::uint64_t number);
  /// Finishes the used-up descriptors of a stream's steps up to `step`; with `all`, also the stream's end.
  void finish_steps(std::uint32_t stream, std::int64_t step, bool all);
  /// Notes in the lane that the ranks will hear of a step's failure. A server that takes the lane over must
  /// not write the step.
  void mark_failed(std::uint32_t stream, std::int64_t step);
  /// If the lane's rank waits for room in the middle of the oldest step, releases the used-up descriptors of
  /// this step. Until the step has its verdict, no other server can then take the lane over. Returns true if
  /// it released something.
  bool make_room();

  // The server at which the rank is at home calls these. Threads of the rank hear no messages, so they read
  // in the lane's header what these write there.
  /// Notes that the rank has ended the step.
  void await_verdict(std::uint32_t stream, std::int64_t step);
  /// Notes the last verdict on a step, which is about to be sent to the rank.
  void note_verdict(std::uint32_t stream, std::int64_t step, bool has_failed);
  /// Notes that the rank has come to the fence.
  void pass_fence(std::int64_t number);
  /// Notes that no more verdicts come of the stream.
  void forget_verdicts(std::uint32_t stream);

 private:
  enum class Need : char { no, for_another_server, yes };
  Need& need(std::uint64_t number) { return needs_[static_cast<std::size_t>(number - released_)]; }
  void release();
  void tell_settled();

  /// A step that the rank has ended, or a fence to which it has come.
  struct Passed {
    std::uint32_t stream = 0;  // 0: a fence
    std::int64_t number = 0;   // of the step or the fence
    bool settled = false;      // a fence, or a step that has its last verdict
  };

  std::unique_ptr<node::LaneReader> reader_;
  std::uint64_t scanned_ = 0;
  std::uint64_t released_ = 0;
  std::deque<Need> needs_;                        // released_ .. scanned_-1
  std::map<std::uint32_t, std::int64_t> torn_{};  // by stream: the step of which a part is gone
  std::deque<Passed> passed_{};  // from the first step on that has no last verdict, in the rank's order
  std::set<std::pair<std::uint32_t, std::int64_t>> early_{};  // verdicts that came before the rank's end
};

/// The lanes of one kind that a server reads, by compute rank.
using Lanes = std::map<int, LaneCursor>;

/// Everything that the parts of one server share.
struct Context {
  comm::Line& line;  // the line of all ranks of the session
  const exchange::Roster& roster;
  int me = 0;  // server number
  executor::Executor& executor;
  OpenFiles& files;
  Lanes lanes;          // of the usual kind
  Bytes workspace = 0;  // bytes for assembly, encoders and messages
  int streams = 0;      // open streams, which share the workspace
  Statistics& statistics;
  std::function<Result<std::unique_ptr<Ledger>>(const Opening&, const codec::Codec&)> make_ledger;
  // By homed compute rank: its figures of each stream, and of the process, that came with the rank's last
  // end of a step.
  struct Said {
    std::shared_ptr<Statistics> figures;
    bool is_lent = false;  // a thread may read them: they change no more
  };
  std::map<int, Said> said{};
  /// By path: what this server, as a stream's root, has counted of a file.
  struct Written {
    Counters* of = nullptr;
    std::int64_t bytes = 0;  // of durable records
    Bytes end = 0;           // behind the last one
  };
  std::map<std::string, Written> written{};
  bool news = false;  // a step became durable since the last report
  // Per compute rank: its share of the staging memory; empty if ranks lend their arrays.
  std::vector<Bytes> quotas{};
  /// Returns the setting that gives a rank the `needed` bytes if its share is `share` now.
  std::function<std::string(Bytes needed, Bytes share)> staging_for{};
  /// The files that all servers write together; made for the first stream whose method does so.
  std::unique_ptr<comm::CollectiveFiles> collective{};
  /// The counters from which servers take offsets. make_offsets() makes them for the first stream whose
  /// servers do so.
  std::unique_ptr<comm::Counters> offsets{};
  std::function<void()> make_offsets{};
  std::vector<Message> taken{};                  // the kinds of messages that this server takes
  std::map<node::LaneKind, Lanes> more_lanes{};  // of kinds that streams have asked for
  exchange::Roster apart{};                      // with more_lanes: each of them is read by one server alone

  [[nodiscard]] Lanes& lanes_of(node::LaneKind kind) {
    return kind == node::LaneKind::usual ? lanes : more_lanes[kind];
  }
  /// Returns the roster that says which servers see a rank's lane of this kind.
  [[nodiscard]] const exchange::Roster& roster_of(node::LaneKind kind) const {
    return kind == node::LaneKind::usual ? roster : apart;
  }

  [[nodiscard]] Bytes workspace_per_stream() const { return workspace / (streams > 0 ? streams : 1); }
  [[nodiscard]] int home_of(int c) const { return roster.home[static_cast<std::size_t>(c)]; }
  [[nodiscard]] bool is_home(int c) const { return home_of(c) == me; }
  /// Returns the number of servers with compute ranks of their own.
  [[nodiscard]] int homes() const {
    return static_cast<int>(std::set<int>(roster.home.begin(), roster.home.end()).size());
  }
  [[nodiscard]] int rank_of_compute(int c) const {
    return roster.compute_transport[static_cast<std::size_t>(c)];
  }
  [[nodiscard]] int rank_of_server(int server) const {
    return roster.server_transport[static_cast<std::size_t>(server)];
  }
  /// Returns the figures of a homed rank, to be changed.
  Statistics& said_by(int c) {
    Said& its = said[c];
    if (!its.figures || its.is_lent)
      its = {its.figures ? std::make_shared<Statistics>(*its.figures) : std::make_shared<Statistics>(),
             false};
    return *its.figures;
  }
  /// Counts a file of the stream `name` whose next step goes to `end`. If the session has counted the file
  /// before, it counts once, and bytes that are replaced count no more.
  void count_file(const std::string& name, const std::string& path, Bytes end);
  /// Queues a job of a file of the stream `name` that begins it, commits to it or closes it, and counts its
  /// time.
  void commit(const std::string& name, const std::string& path, executor::Executor::Job job,
              executor::Executor::Done done);
  /// Returns the part of a collective call's time that no call before it has: the calls of all streams are
  /// made by one thread, which has begun the next one when this server hears that one is over.
  [[nodiscard]] std::int64_t time_of_call(std::int64_t begin, std::int64_t end) {
    begin = std::max(begin, calls_until);
    calls_until = std::max(calls_until, end);
    return std::max<std::int64_t>(end - begin, 0);
  }
  std::int64_t calls_until = 0;
  /// Held by what waits for a collective call to end. Nobody else has it while none is under way.
  std::shared_ptr<const char> call_under_way = std::make_shared<const char>();
  /// Returns where the time of this server's own thread goes.
  [[nodiscard]] comm::Account& account() const { return line.board().account(); }
  void on(Message kind, comm::Line::Receiver receiver) {
    taken.push_back(kind);
    line.on(static_cast<std::uint32_t>(kind), std::move(receiver));
  }
  void send_to_server(int server, const Packer& message) { send_to_server(server, message.bytes()); }
  void send_to_server(int server, ByteVector message) {
    line.send(rank_of_server(server), std::move(message));
  }
  void send_to_servers(const Packer& message) {
    for (int server = 0; server < roster.servers(); ++server) send_to_server(server, message);
  }
};

}  // namespace tailrace::pipeline
