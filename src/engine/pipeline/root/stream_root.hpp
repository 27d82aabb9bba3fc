// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>

#include "engine/pipeline/root/commits.hpp"
#include "engine/pipeline/root/rounds.hpp"
#include "engine/pipeline/root/sequencer.hpp"
#include "engine/pipeline/server/encoding.hpp"

namespace tailrace::pipeline {

/// The part of a stream that only its root does, the home of its reference rank. It turns the reference's
/// puts into the put order, deals records out to owners, gives offsets, decides about each step and commits
/// it. A state machine like StreamServer.
class StreamRoot {
 public:
  StreamRoot(Context& context, const Opening& opening, const codec::Codec& codec,
             Result<std::unique_ptr<Ledger>> ledger);
  ~StreamRoot();
  StreamRoot(const StreamRoot&) = delete;
  StreamRoot& operator=(const StreamRoot&) = delete;

  /// Takes the next descriptor or fence of the reference rank. Appends to `fresh` what it adds to the put
  /// order.
  void on_reference(const node::Descriptor& descriptor, std::vector<SequenceEntry>& fresh);
  void on_ended(int source, Unpacker& in) { commits_.on_ended(source, in); }
  void on_encoded(Unpacker& in);
  void on_written(Unpacker& in) { commits_.on_written(in); }
  /// With Method::takes_offsets: notes where a chunk stands, and what became of it.
  void on_taken(Unpacker& in);
  /// With Method::is_sent: returns the servers whose chunks have a place and have not come yet.
  [[nodiscard]] std::vector<int> awaited() const;
  [[nodiscard]] bool awaits(int server) const;
  /// Notes that the bytes of a chunk have come. Returns false if this root has given the chunk no place.
  bool on_come(std::uint64_t chunk);
  /// Notes that the bytes of a chunk were written, or have failed.
  void on_over(std::uint64_t chunk) { sent_.erase(chunk); }
  void on_synced(Unpacker& in) { commits_.on_synced(in); }
  /// With Method::is_collective: notes what became of a call on one server.
  void on_called(int source, Unpacker& in) {
    if (rounds_) rounds_->on_called(source, in);
  }
  /// Names, for the watchdog, such a call and the servers on which it is not over.
  [[nodiscard]] std::string waiting_for_call() const {
    return rounds_ ? rounds_->waiting_for() : std::string();
  }
  void on_closed() { commits_.on_closed(); }
  bool advance();
  /// Names the ranks that have not ended a step that the reference has ended. The watchdog asks for it if
  /// ranks serve themselves: a late rank cannot report itself then.
  [[nodiscard]] std::string waiting_for() const { return commits_.waiting_for(); }

 private:
  struct Chunk {
    std::int64_t step = 0;
    int owner = 0;
    Bytes size = 0;
    std::vector<RecordEntry> records{};  // once it is encoded
  };
  /// A chunk of another server that this one writes.
  struct Sent {
    int owner = 0;
    Bytes size = 0;
    bool has_come = false;
  };
  bool place();
  bool begin_step();
  void send_to_owner(std::uint64_t number, const Chunk& chunk, Commits::Fate fate);
  [[nodiscard]] bool comes_here(const Chunk& chunk) const;
  [[nodiscard]] bool has_room(const Chunk& chunk) const;

  Context& context_;
  const Opening& opening_;
  const codec::Codec& codec_;
  Sequencer sequencer_;
  const bool servers_take_offsets_;
  std::unique_ptr<placement::Placement> placement_;
  std::unique_ptr<Rounds> rounds_;  // if the method is collective
  Commits commits_;
  std::map<std::uint64_t, Chunk> chunks_;  // not placed yet
  // If servers take offsets by themselves:
  Result<int> counter_;                 // from which they take them
  std::int64_t begun_step_ = -1;        // the last one of which the servers were told
  std::map<std::uint64_t, Sent> sent_;  // placed, and not written yet
};

}  // namespace tailrace::pipeline
