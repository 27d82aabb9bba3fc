// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <ranges>
#include <set>

#include "codec/codec.hpp"
#include "pipeline/context.hpp"

namespace tailrace::pipeline {

/// One stream on one server. It matches what the lanes bring with the announced put order, gathers the
/// records that this server owns, encodes them on the workers and writes them where the root says. It is a
/// state machine: every method returns at once, and `advance` moves on what has become possible.
class StreamServer {
 public:
  /// `fences` are the agreements to which each compute rank whose lane is read here has come so far.
  static Result<std::unique_ptr<StreamServer>> create(Context& context, Opening opening,
                                                      const std::map<int, std::int64_t>& fences);

  [[nodiscard]] const Opening& opening() const { return opening_; }
  [[nodiscard]] const codec::Codec& codec() const { return *codec_; }
  [[nodiscard]] const exchange::RecordPlan& plan(int field) const {
    return *plans_[static_cast<std::size_t>(opening_.layout_of[static_cast<std::size_t>(field)])];
  }
  /// Takes the next descriptor of compute rank `c`. Returns false if the put order is not known that far yet.
  bool on_descriptor(int c, const node::Descriptor& descriptor);
  /// Notes that compute rank `c` has come to agreement `number`. It has begun the steps that the put order
  /// has before the agreement, or never will.
  void on_fence(int c, std::int64_t number);
  /// Returns true if the lane of `c` has passed the stream's end.
  [[nodiscard]] bool has_closed(int c) const { return lanes_.at(c).closed; }
  void on_sequence(std::span<const SequenceEntry> entries);
  /// Takes pieces of one record from a server that sees lanes which this one does not.
  void on_pieces(std::uint64_t record, Unpacker& in);
  /// Returns the servers whose data is awaited by records that could be encoded with it.
  [[nodiscard]] std::set<int> waits_for() const;
  void on_place(Unpacker& in);
  void on_sync(Unpacker& in);
  void on_verdict(VerdictKind kind, std::int64_t step, const Status& status);
  bool advance();
  /// Returns true if nothing comes any more: the verdict is known, and every lane that is read here has
  /// passed the stream's end.
  [[nodiscard]] bool is_closed() const {
    return finished_ && std::ranges::all_of(lanes_ | std::views::values, &LaneProgress::closed);
  }
  /// For the watchdog. Names the compute ranks seen here that have not ended a step which others have.
  [[nodiscard]] std::string waiting_for() const;

 private:
  struct Step {
    std::int64_t lead = 0;
    std::int64_t previous_lead = 0;
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
  struct Piece {
    int rank = 0;
    std::uint64_t number = 0;  // descriptor, for pieces in a lane
    bool in_lane = false;
    ByteVector bytes;  // for pieces that arrived as a message
  };
  struct Record {
    SequenceEntry entry;
    std::int64_t operation = 0;  // number within its step
    int unmatched = 0;           // visible lanes with a share whose ranks have not come to it
    int missing = 0;             // pieces that must still come before it can be encoded or sent
    std::set<int> senders;       // servers whose pieces are still to come
    std::vector<Piece> pieces;
    bool poisoned = false;
    bool started = false;
    bool done = false;
  };
  struct Encoded {
    std::uint64_t record = 0;
    SequenceEntry entry;
    ByteVector bytes;
    int worker = 0;
    std::int64_t began = 0, assemble = 0, encode = 0;  // time and durations
  };
  struct Chunk {
    std::int64_t step = 0;
    std::vector<std::shared_ptr<Encoded>> records;
    int open = 0;  // records not encoded yet
    bool closed = false;
    bool reported = false;
    bool poisoned = false;
    Status status;
    Bytes held = 0;  // bytes that count against the workspace
  };

  StreamServer(Context& context, Opening opening) : context_(context), opening_(std::move(opening)) {}
  Status prepare();
  Record& record(std::uint64_t number) { return records_[static_cast<std::size_t>(number - first_record_)]; }
  [[nodiscard]] std::uint64_t end_record() const { return first_record_ + records_.size(); }
  void announce(const SequenceEntry& entry);
  void check_staging(const Step& step);
  bool on_begin(int c, LaneProgress& lane, const node::Descriptor& descriptor);
  bool on_piece(int c, LaneProgress& lane, const node::Descriptor& descriptor);
  bool on_end(int c, LaneProgress& lane, const node::Descriptor& descriptor);
  bool on_close(int c, LaneProgress& lane);
  bool catch_up(int c);
  void enter(LaneProgress& lane, LaneProgress::State state, std::int64_t step);
  void leave_step(int c, LaneProgress& lane, const Status& status, std::int64_t stamp);
  void outrun(int c, LaneProgress& lane);
  void tell(int c, VerdictKind kind, std::int64_t step, const Status& status);
  void tell_both(int c, std::int64_t step, const Status& status);
  bool pass(int c);
  void forget_if_over(std::int64_t step);
  bool seek_own_record(int c, LaneProgress& lane, const Step& step);
  bool come_to(int c, Record& record);
  void disagree(int c, LaneProgress& lane, std::string text);
  void skip(int c, LaneProgress& lane, const Status& why);
  void skip_announced(int c, LaneProgress& lane);
  [[nodiscard]] bool needs_piece(const Record& record, int c) const;
  [[nodiscard]] std::string call_text(int c, int field, int level) const;
  bool start_work();
  bool send_pieces(std::uint64_t number);
  void encode(std::uint64_t number);
  Status assemble_and_encode(int worker, const Record& record, Encoded& out);
  void finish_pieces(Record& record);
  void on_encoded(std::uint64_t number, const std::shared_ptr<Encoded>& encoded, const Status& status);
  void report(std::uint64_t number, Chunk& chunk);
  void retire();
  Counters& counters() { return context_.statistics.streams[opening_name_]; }
  void say(Message message, std::int64_t number, const Status& status);

  Context& context_;
  Opening opening_;
  std::string opening_name_;
  std::unique_ptr<codec::Codec> codec_;
  std::vector<std::shared_ptr<const exchange::RecordPlan>> plans_;
  std::vector<std::unique_ptr<codec::Encoder>> encoders_;  // per worker
  std::vector<ByteVector> assembled_;                      // per worker, reused
  std::vector<int> homed_;
  std::map<int, LaneProgress> lanes_;
  // The root has announced so many records of its last step, by layout and element size.
  std::map<std::pair<int, Bytes>, Index> step_records_;
  bool told_of_staging_ = false;
  std::int64_t fences_ = 0;  // number of agreements in the put order
  std::set<int> fenced_;     // ranks that may be further than the put order: their lanes wait
  std::map<std::int64_t, Step> steps_;
  std::deque<Record> records_;
  std::uint64_t first_record_ = 0;
  std::uint64_t next_work_ = 0;            // first record not started here
  std::map<std::uint64_t, Chunk> chunks_;  // owned here, until written
  // Pieces that came before their record was announced.
  std::map<std::uint64_t, std::vector<ByteVector>> early_;
  // Before the first write of a step this server looks whether a file is whole. Each file opened here has the
  // last step whose look found it so.
  std::map<std::string, std::int64_t> written_;
  Bytes held_ = 0;
  int encoding_ = 0;
  bool finished_ = false;
  node::KeptDefinitions::Progress* progress_ = nullptr;  // set where another server may take the lanes over
};

}  // namespace tailrace::pipeline
