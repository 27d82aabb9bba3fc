// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <map>
#include <set>

#include "codec/codec.hpp"
#include "pipeline/context.hpp"
#include "placement/placement.hpp"

namespace tailrace::pipeline {

/// The part of a stream that only one server does, the home of its reference rank. It turns that rank's puts
/// into the put order, deals records out to owners, gives offsets, decides about each step and commits it. A
/// state machine like StreamServer.
class StreamRoot {
 public:
  StreamRoot(Context& context, const Opening& opening, const codec::Codec& codec,
             Result<std::unique_ptr<Ledger>> ledger);

  /// Takes the next descriptor or fence of the reference rank. Appends what it adds to the put order.
  void on_reference(const node::Descriptor& descriptor, std::vector<SequenceEntry>& fresh);
  void on_ended(int source, Unpacker& in);
  void on_encoded(Unpacker& in);
  void on_written(Unpacker& in);
  void on_synced(Unpacker& in);
  void on_closed() { ++closed_; }
  bool advance();
  /// For the watchdog if ranks serve themselves, which cannot tell of their own lateness. Names the ranks
  /// that have not ended a step which the reference has.
  [[nodiscard]] std::string waiting_for() const;

 private:
  struct Chunk {
    std::int64_t step = 0;
    int owner = 0;
    bool poisoned = false;
    Status status;
    Bytes size = 0;
    std::vector<RecordEntry> records;
  };
  struct Step {
    enum class State { open, cutting, settled, syncing, synced, committing };
    StepEntry entry;
    State state = State::open;
    bool complete = false;  // its end is in the put order
    int chunks = 0;         // announced and not yet written or dropped
    std::set<int> ended;    // transport ranks of servers all of whose ranks have ended it
    bool accepted = false;
    bool reported = false;  // its failure went out with its own accepted verdict
    bool poisoned = false;
    bool has_writes = false;
    bool was_committed = false;  // by another server: nothing of it is written
    std::set<int> writers;
    int syncs = 0;
    Status status;
    std::int64_t ended_at = 0;
    bool warned = false;

    void note(const Status& more) { status = first_cause(status, more); }
  };
  struct File {
    bool begun = false;
    bool beginning = false;
    bool left_open = false;  // the run that this one continues has left it: to be finished, begun or not
    Begun start;             // what the ledger said of it when it was begun
    bool cutting = false;    // nothing is placed meanwhile
    Bytes end = 0;           // behind the last step that was not dropped
    Bytes committed = 0;     // behind the last step in the index
    int steps = 0;           // number of steps without a verdict yet
    Status broken;           // why nothing may be written into it any more
  };

  /// A file that failed when it was finished. It is tried again: before each step that follows if the file is
  /// not whole, otherwise with the next file and when the stream is closed.
  struct Unfinished {
    Status why;
    bool is_whole = false;  // true: it only was not announced
    bool try_now = false;
  };

  void begin_step(const node::Descriptor& descriptor, std::vector<SequenceEntry>& fresh);
  void add_record(const node::Descriptor& descriptor, std::vector<SequenceEntry>& fresh);
  void close_chunk(std::vector<SequenceEntry>& fresh);
  bool place();
  bool file_is_ready(Step& step);
  bool was_committed(Step& step, const File& file);
  void accept(std::int64_t number, Step& step);
  bool settle();
  bool commit();
  void start_sync(std::int64_t number, Step& step);
  void start_commit(std::int64_t number, Step& step);
  void take_back(std::int64_t number, const std::string& path, const Status& why);
  void decide(std::int64_t number, Step& step);
  bool finish_files();
  void start_finish(const std::string& path, bool begun);
  void on_finished(const std::string& path, bool begun, bool is_whole, const Status& status);
  bool try_unfinished(std::int64_t number);
  [[nodiscard]] Status not_whole() const;
  [[nodiscard]] bool is_closing() const { return closed_ == homes_ && steps_.empty(); }
  [[nodiscard]] bool is_complete(const std::string& path, const File& file) const;
  [[nodiscard]] bool finishes_files() const;
  void cut(const std::string& path, Bytes size, std::function<void()> done);
  void run_on_ledger(const std::string& path, std::function<Status(Ledger&)> job,
                     std::function<void(const Status&)> done);
  void warn_if_late(Step& step);
  void send_verdict(VerdictKind kind, std::int64_t step, const Status& status);

  Context& context_;
  const Opening& opening_;
  const codec::Codec& codec_;
  Status broken_;  // why no step can succeed: there may be no ledger
  std::unique_ptr<Ledger> ledger_;
  int homes_ = 0;         // servers with compute ranks of their own
  double step_cost_ = 0;  // predicted, all fields
  double chunk_cost_ = 0;
  double open_cost_ = 0;
  Bytes open_bound_ = 0;
  bool chunk_open_ = false;
  std::uint64_t chunk_number_ = 0;
  int next_owner_ = 0;
  int current_owner_ = 0;
  std::int64_t current_step_ = -1;
  std::int64_t previous_lead_ = 0;
  std::unique_ptr<placement::Placement> placement_;
  std::map<std::uint64_t, Chunk> chunks_;
  std::map<std::int64_t, Step> steps_;  // all steps from the oldest one without a verdict on
  std::int64_t settled_before_ = 0;     // all steps below it are settled: later ones may be placed
  std::map<std::string, File> files_;
  std::string current_path_;
  std::deque<Status> unreported_;  // failures that no accepted verdict has carried yet
  bool finishing_ = false;         // a file is being finished, on the ledger
  std::map<std::string, Unfinished> unfinished_;
  std::int64_t tried_for_ = -1;  // the last step before which files were tried again
  int closed_ = 0;
  bool tried_last_ = false;
  bool finished_ = false;
};

}  // namespace tailrace::pipeline
