// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "ground/comm/doorbell.hpp"
#include "ground/comm/line.hpp"
#include "ground/node/descriptor_socket.hpp"
#include "ground/node/node_memory.hpp"

namespace tailrace::node {

/// The kinds of memory that compute ranks hand to a server of their node. The server then works on it.
enum class Handed : std::uint32_t { pages = 1, elements = 2, input = 3 };

/// The first words of the messages of MemoryGiver and MemoryTaker. Nothing else on their line has them.
inline constexpr std::uint32_t first_handed_message = 44, last_handed_message = 47;

/// Hands memory that ranks of a node share to a server of the node, and takes it back. The server sits in its
/// loop and joins no collective call: it gets the descriptor over a socket, and a message that describes what
/// lies in the memory. One of the ranks that share the memory does this for all of them. All functions are
/// local, and move everything else on while they wait for the server.
class MemoryGiver {
 public:
  /// `line` is the line of all ranks of the session. It must outlive this object.
  explicit MemoryGiver(comm::Line& line);
  MemoryGiver(const MemoryGiver&) = delete;
  MemoryGiver& operator=(const MemoryGiver&) = delete;

  /// Sets the bell that wakes the server of this node to which memory goes, because messages do not wake
  /// servers. nullptr: no bell rings.
  void ring_by(comm::Doorbell* bell) { bell_ = bell; }
  /// Hands `memory` to rank `server` of the line. Blocks until the server has mapped it and answered. Returns
  /// a number for take_back(), or the reason why the server does not have the memory. The memory must have
  /// been made with Growth::by_any.
  Result<std::uint64_t> hand(int server, Handed kind, const NodeMemory& memory, ByteVector description);
  /// Takes the memory back. Blocks until the server has let go of it. Returns what the server tells at the
  /// end.
  ByteVector take_back(std::uint64_t number);
  /// Tells the server to let go of the memory, and does not wait until it has.
  void abandon(std::uint64_t number);

 private:
  struct Given {
    int server = 0;
    std::optional<Status> taken;
    std::optional<ByteVector> ended;
  };
  Status give(DescriptorSocket& socket, const NodeMemory& memory, Given& given);
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

/// The server's end: maps memory that is handed to it, and lets a Work work on it. Only drop_all() waits.
class MemoryTaker {
 public:
  /// Does the server's work on memory that was handed over.
  class Work {
   public:
    virtual ~Work() = default;
    /// Called repeatedly until it returns a status: OK once the work has begun. It must not wait for storage;
    /// a thread does that. If it returns an error, the work is destroyed, and the owners of the memory get
    /// the error.
    virtual std::optional<Status> begun() { return Status(); }
    /// Called repeatedly, once the owners want their memory back, until it returns what it has to tell them.
    /// Then the work is destroyed, and after that the owners are told. If `does_hear` is false, they are not
    /// told.
    virtual std::optional<ByteVector> end(bool does_hear) = 0;
  };
  /// Begins to work on memory of one kind, or returns the reason why not. `giver` is the rank of the line
  /// that has handed it over. `description` is valid only during the call.
  using Begin = std::function<Result<std::unique_ptr<Work>>(int giver, std::unique_ptr<NodeMemory> memory,
                                                            Unpacker description)>;

  /// `line` is the line of all ranks of the session. It must outlive this object.
  explicit MemoryTaker(comm::Line& line);
  MemoryTaker(const MemoryTaker&) = delete;
  MemoryTaker& operator=(const MemoryTaker&) = delete;

  /// Accepts memory of this kind from now on, and begins work on it by `begin`.
  void on(Handed kind, Begin begin) { begins_[kind] = std::move(begin); }
  /// Drops all memory that is here, and accepts none from now on. Blocks until no thread works on it.
  void drop_all();
  /// Moves on memory that is being handed over, work that begins, and work that ends. Returns true if
  /// something moved.
  bool advance();
  /// True if memory of other ranks is here.
  [[nodiscard]] bool has_any() const { return !taken_.empty(); }

 private:
  /// The name of handed memory: the rank that hands it over, and its number there.
  using Name = std::pair<int, std::uint64_t>;
  struct Taken {
    // Until the descriptor has come:
    std::unique_ptr<DescriptorSocket> socket;
    DescriptorSocket::Clock::time_point deadline;
    ByteVector message;
    // Afterwards:
    std::unique_ptr<Work> work;
    bool has_begun = false;
    bool is_ending = false;
    bool does_giver_hear = true;  // wants to hear of the end
  };
  void on_hand(int source, Unpacker& in);
  void on_take_back(int source, Unpacker& in);
  bool move_on(const Name& name, Taken& taken);
  static Result<int> receive(DescriptorSocket& socket, Unpacker& in);
  Status begin(int giver, int descriptor, Unpacker& in, std::unique_ptr<Work>& work);
  void answer(const Name& name, const Status& status);

  comm::Line& line_;
  std::map<Handed, Begin> begins_;
  std::map<Name, Taken> taken_;
};

}  // namespace tailrace::node
