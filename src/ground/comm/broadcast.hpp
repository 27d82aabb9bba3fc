// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ground/base/bytes.hpp"

namespace tailrace::comm {

class Line;

/// Broadcasts from rank 0 of a line to all its ranks, down a binomial tree. It is a state machine that never
/// waits, like Agreements. Every rank posts broadcasts and takes them in the same order; rank 0 need not wait
/// for any. A rank only announces a large broadcast, and keeps its bytes until the receiver takes them.
class Broadcasts {
 public:
  static constexpr std::uint32_t broadcast_message = 3;
  /// A broadcast of at most this many bytes travels with its announcement.
  static constexpr std::size_t most_announced = 16384;

  explicit Broadcasts(Line& line);

  /// Local. Returns the number of the next broadcast. Rank 0 sends `bytes` with it; the others leave them
  /// empty.
  std::uint64_t post(ByteVector bytes);
  /// Returns what rank 0 said in broadcast `number`, once, or nothing while it has not arrived.
  std::optional<ByteVector> take(std::uint64_t number);
  [[nodiscard]] bool has_posted(std::uint64_t number) const { return number < next_; }
  /// Returns true if rank 0 has said it, and its bytes are here or on their way.
  [[nodiscard]] bool is_coming(std::uint64_t number) const { return arrived_.count(number) != 0; }

  /// Returns true if the message says that its sender holds a large broadcast.
  static bool announces(const ByteVector& message);
  /// Returns the ranks that hold broadcasts which this rank has not taken, one for each broadcast.
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
