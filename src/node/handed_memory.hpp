// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "comm/line.hpp"
#include "node/handover.hpp"
#include "node/node_memory.hpp"

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

  comm::Line& line_;
  std::map<std::uint64_t, Given> given_;
  std::uint64_t next_ = 0;
};

/// The server's end: maps memory that is handed to it, and lets others work on it. No function waits.
class MemoryTaker {
 public:
  /// Works on memory that was handed over.
  class Work {
   public:
    virtual ~Work() = default;
    /// The owners want their memory back. Called until it returns what it has to tell them; then it is
    /// destroyed, and only then do they hear of it.
    virtual std::optional<ByteVector> end() = 0;
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
  /// Drops all memory that is here, and takes none any more.
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
    bool is_ending = false;
  };
  void on_hand(int source, Unpacker& in);
  void on_take_back(int source, Unpacker& in);
  bool move_on(const Name& name, Taken& taken);
  static Result<int> receive(Handover& handover, Unpacker& in);
  Status begin(int giver, int descriptor, Unpacker& in, std::unique_ptr<Work>& work);

  comm::Line& line_;
  std::map<Handed, Begin> begins_;
  std::map<Name, Taken> taken_;
};

}  // namespace tailrace::node
