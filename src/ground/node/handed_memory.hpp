// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ground/comm/doorbell.hpp"
#include "ground/comm/line.hpp"
#include "ground/node/handover.hpp"
#include "ground/node/node_memory.hpp"

namespace tailrace::node {

/// The kinds of memory that compute ranks hand to a server of their node, which then works on it.
enum class Handed : std::uint32_t { pages = 1, elements = 2, input = 3 };

/// Hands memory that ranks of a node share to a server of the node, and takes it back. The server sits in its
/// loop and joins no collective call: it gets the descriptor over a socket, and a description of what lies in
/// the memory as a message. One of the ranks that have the memory does this for all of them. All functions
/// are local, and move everything else on while they wait for the server.
class MemoryGiver {
 public:
  /// `line` is that of all ranks of the session, and must outlive this.
  explicit MemoryGiver(comm::Line& line);
  MemoryGiver(const MemoryGiver&) = delete;
  MemoryGiver& operator=(const MemoryGiver&) = delete;

  /// Messages wake no server: `bell` wakes the one of this node to which memory goes. nullptr: nothing does.
  void ring_by(comm::Doorbell* bell) { bell_ = bell; }
  /// Blocks until rank `server` of the line has mapped the memory and answered. Returns a number for
  /// take_back(), or the reason why the server has not got the memory. The memory was made with
  /// Growth::by_any.
  Result<std::uint64_t> hand(int server, Handed kind, const NodeMemory& memory, ByteVector description);
  /// Blocks until the server has let go of the memory. Returns what it tells at the end.
  ByteVector take_back(std::uint64_t number);
  /// Tells the server to let go, and does not wait for it.
  void abandon(std::uint64_t number);

 private:
  struct Given {
    int server = 0;
    std::optional<Status> taken;
    std::optional<ByteVector> ended;
  };
  Status give(Handover& handover, const NodeMemory& memory, Given& given);
  void on_taken(Unpacker& in);
  void on_ended(Unpacker& in);

  void ring() const {
    if (bell_ != nullptr) bell_->ring();
  }

  comm::Line& line_;
  comm::Doorbell* bell_ = nullptr;
  std::map<std::uint64_t, Given> given_;
  std::uint64_t next_ = 0;
};

/// The server's end: maps memory that is handed to it, and lets others work on it. Only drop_all() waits.
class MemoryTaker {
 public:
  /// Works on memory that was handed over.
  class Work {
   public:
    virtual ~Work() = default;
    /// Called until it returns whether the work has begun: whatever may wait for storage, a thread does. Work
    /// that could not begin is destroyed, and the owners hear why.
    virtual std::optional<Status> begun() { return Status(); }
    /// The owners want their memory back. Called until it returns what it has to tell them; then it is
    /// destroyed, and only then do they hear of it: if `does_hear` is false, not even then.
    virtual std::optional<ByteVector> end(bool does_hear) = 0;
  };
  /// Begins to work on memory of one kind, or says why not. `giver` is the rank of the line that has handed
  /// it over. The description is gone afterwards.
  using Begin = std::function<Result<std::unique_ptr<Work>>(int giver, std::unique_ptr<NodeMemory> memory,
                                                            Unpacker description)>;

  /// `line` is that of all ranks of the session, and must outlive this.
  explicit MemoryTaker(comm::Line& line);
  MemoryTaker(const MemoryTaker&) = delete;
  MemoryTaker& operator=(const MemoryTaker&) = delete;

  /// Memory of this kind is taken from now on.
  void on(Handed kind, Begin begin) { begins_[kind] = std::move(begin); }
  /// Drops all memory that is here, and takes none any more. Blocks until no thread works on it.
  void drop_all();
  /// Moves on what is being handed over, or given back. Returns true if something moved.
  bool advance();
  /// Returns true if there is any memory of others here.
  [[nodiscard]] bool has_any() const { return !taken_.empty(); }

 private:
  /// Memory is known by the rank that hands it over, and by its number there.
  using Name = std::pair<int, std::uint64_t>;
  struct Taken {
    // Until the descriptor has come:
    std::unique_ptr<Handover> handover;
    Handover::Clock::time_point deadline;
    ByteVector message;
    // Afterwards:
    std::unique_ptr<Work> work;
    bool has_begun = false;
    bool is_ending = false;
    bool does_giver_hear = true;  // of the end
  };
  void on_hand(int source, Unpacker& in);
  void on_take_back(int source, Unpacker& in);
  bool move_on(const Name& name, Taken& taken);
  static Result<int> receive(Handover& handover, Unpacker& in);
  Status begin(int giver, int descriptor, Unpacker& in, std::unique_ptr<Work>& work);
  void answer(const Name& name, const Status& status);

  comm::Line& line_;
  std::map<Handed, Begin> begins_;
  std::map<Name, Taken> taken_;
};

}  // namespace tailrace::node
