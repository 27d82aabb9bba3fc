// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <map>
#include <set>

#include "engine/pipeline/root/rounds.hpp"
#include "engine/pipeline/root/stream_files.hpp"
#include "engine/placement/placement.hpp"
#include "formats/codec/codec.hpp"

namespace tailrace::pipeline {

/// Decides about the steps of a stream on its root. A step may write once all steps before it are settled,
/// that is, written, or dropped and cut back. Settled steps are synchronised and committed one after another,
/// and get their verdicts. A state machine.
class Commits {
 public:
  /// `rounds` has the collective calls of a stream whose method makes them, or is null.
  Commits(Context& context, const Opening& opening, const codec::Codec& codec,
          placement::Placement& placement, Rounds* rounds, Result<std::unique_ptr<Ledger>> ledger);

  /// Note that the put order has come to a step's begin, to its next chunk, to its end. `failed_before` is
  /// true if the step has failed on the server that this one replaces.
  void on_begin(const SequenceEntry& begin, bool failed_before);
  void on_chunk(std::int64_t step) { ++steps_.at(step).chunks; }
  void on_end(std::int64_t step);
  /// Fails the step if the status is an error. Nothing happens if the step has its verdict already.
  void note(std::int64_t step, const Status& status);
  void on_encoded(std::int64_t step, Bytes size, bool poisoned, const Status& status);
  void on_ended(int source, Unpacker& in);
  void on_written(Unpacker& in) {
    const auto step = in.get<std::int64_t>();
    on_written(step, Status::unpack(in));
  }
  void on_written(std::int64_t step, const Status& status);
  /// Notes the outcome of a round with so many chunks of a step.
  void on_round(std::int64_t step, int chunks, const Status& status);
  void on_synced(Unpacker& in);
  void on_closed() { ++closed_; }

  /// Returns the step whose chunks may be placed now: the first one that is not settled.
  [[nodiscard]] std::int64_t turn() const { return settled_before_; }
  enum class Fate { waits, dropped, written };
  /// Returns what becomes of an encoded chunk of step turn(). Begins the file if there is none: chunks wait
  /// for it, and a file that cannot be begun fails the step. Before the first chunk that is written, tells
  /// the placement where the step begins.
  Fate fate(bool is_empty);
  /// Notes that the put order has come to a record of a step, which takes `bound` bytes at most.
  void on_record(std::int64_t step, Bytes bound) { steps_.at(step).bound += bound; }
  /// True if the put order has come to a chunk of the step that is neither written nor dropped, and may have
  /// bytes.
  [[nodiscard]] bool has_chunks(std::int64_t step) const {
    const auto found = steps_.find(step);
    return found != steps_.end() && found->second.chunks > 0 && found->second.bound > 0;
  }
  /// Adds records of step turn(). Their owner will write them, or has written them, at their offsets.
  void add(int owner, std::span<const RecordEntry> records);
  /// Returns the file of step turn().
  const StreamFiles::File& file() { return file_of(steps_.at(turn())); }

  bool advance();
  [[nodiscard]] std::string waiting_for() const;

 private:
  struct Step {
    enum class State { open, cutting, settled, checking, syncing, synced, committing };
    StepEntry entry;
    std::int64_t previous_lead = 0;
    State state = State::open;
    bool complete = false;  // its end is in the put order
    int chunks = 0;         // announced and not yet written or dropped
    Bytes bound = 0;        // most bytes that its records may take
    Bytes encoded = 0;      // size of the records that are encoded
    std::set<int> ended;    // homes whose compute ranks have all ended it (transport ranks)
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

  StreamFiles::File& file_of(const Step& step) { return files_.at(step.entry.path); }
  bool was_committed(Step& step, const StreamFiles::File& file);
  void accept(std::int64_t number, Step& step);
  void count(const Step& step, const Status& status);
  [[nodiscard]] bool program_knows_failures() const;
  bool settle();
  void check_gapless(std::int64_t number, Step& step);
  bool commit();
  void start_check(std::int64_t number, Step& step);
  void start_sync(std::int64_t number, Step& step);
  [[nodiscard]] std::vector<codec::Patch> rest_of(Step& step) const;
  void start_commit(std::int64_t number, Step& step);
  void take_back(std::int64_t number, const std::string& path, const Status& why);
  void decide(std::int64_t number, Step& step);
  bool finish();
  void warn_if_late(Step& step);
  void send_verdict(VerdictKind kind, std::int64_t step, const Status& status);

  Context& context_;
  const Opening& opening_;
  const codec::Codec& codec_;
  placement::Placement& placement_;
  Rounds* rounds_;
  StreamFiles files_;
  int homes_ = 0;                       // servers with compute ranks of their own
  std::map<std::int64_t, Step> steps_;  // all steps from the oldest one without a verdict on
  std::int64_t settled_before_ = 0;     // all steps below it are settled: later ones may be placed
  std::deque<Status> unreported_;       // failures that no accepted verdict has carried yet
  std::int64_t begun_ = -1;             // the last step that the program has begun
  std::int64_t told_ = -1;              // the last one whose accepted verdict carried a failure
  int closed_ = 0;
  bool finished_ = false;
};

}  // namespace tailrace::pipeline
