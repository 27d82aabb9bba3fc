// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ground/base/bytes.hpp"

namespace tailrace::comm {

class Line;

/// Broadcasts from rank 0 of a line to all its ranks, down a binomial tree. Like Agreements, this is a state
/// machine that never waits. Every rank posts broadcasts, and takes them, in the same order; rank 0 does not
/// need to wait for the others. A large broadcast stays with its sender, which only announces it, until the
/// receiver takes the bytes.
class Broadcasts {
 public:
  static constexpr std::uint32_t broadcast_message = 3;
  /// The most bytes that travel together with the announcement of a broadcast.
  static constexpr std::size_t most_announced = 16384;

  explicit Broadcasts(Line& line);

  /// Local. Starts the next broadcast and returns its number. Rank 0 sends `bytes`; the other ranks pass
  /// none.
  std::uint64_t post(ByteVector bytes);
  /// Returns the bytes that rank 0 sent in broadcast `number`, once. Returns nothing while they have not
  /// arrived.
  std::optional<ByteVector> take(std::uint64_t number);
  [[nodiscard]] bool has_posted(std::uint64_t number) const { return number < next_; }
  /// True if rank 0 has sent the broadcast, and its announcement, at least, has arrived here.
  [[nodiscard]] bool is_coming(std::uint64_t number) const { return arrived_.count(number) != 0; }

  /// True if the message announces a large broadcast, whose bytes its sender still holds.
  static bool announces(const ByteVector& message);
  /// Returns the ranks that hold broadcasts which this rank has not taken yet, once for each broadcast.
  [[nodiscard]] std::vector<int> holders() const;

 private:
  struct Said {
    ByteVector bytes;
    std::optional<int> holder;  // the rank that still has the bytes
  };
  void on_message(int source, Unpacker& in);
  void pass_on(std::uint64_t number, const ByteVector& bytes);
  void send_large(int destination, std::uint64_t number, ByteVector bytes);
  std::optional<ByteVector> receive_large(int source, std::uint64_t number);

  Line& line_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Said> arrived_;
};

}  // namespace tailrace::comm
