// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <span>

#include "engine/exchange/requests.hpp"

namespace tailrace::shared {

/// Bytes to be read from a page of another node.
struct FarRead {
  int rank = 0;  // that serves the page
  Bytes offset = 0;
  std::span<std::byte> into;
};

/// The functions through which a rank serves its node's pages to other nodes.
struct Served {
  /// Return the file's size as the node knows it, make it larger, and add to it (returns the size before).
  std::function<Bytes()> size;
  std::function<void(Bytes size)> raise_size;
  std::function<Result<Bytes>(Bytes bytes)> add_to_size;
  /// Returns true if the page of that byte is in memory at this moment.
  std::function<bool(Bytes offset)> is_here;
  /// Copy bytes to and from pages of the node. With `waits` a thread that may wait for storage calls them.
  std::function<Status(Bytes offset, std::span<std::byte> into, bool waits)> read;
  std::function<Status(Bytes offset, std::span<const std::byte> bytes, bool waits)> write;
  /// Returns true if this failure means that the same is to be tried again later.
  std::function<bool(const Status& failure)> is_to_wait = [](const Status&) { return false; };
  /// Called now and then, by whoever serves. Returns true if it has done something for others.
  std::function<bool()> help = [] { return false; };
  /// How many threads may wait for storage at a time, and the function that each of them calls at the end.
  int at_once = 1;
  std::function<void()> wake = [] {};
};

/// Reads and writes of pages of other nodes, as requests to the ranks that serve them. Each message tells the
/// size of the file as its sender knows it.
class FarPages {
 public:
  /// Local; see exchange::Requests.
  FarPages(exchange::RequestDesk& desk, exchange::Requests::Place place, std::uint64_t epoch,
           executor::Threads& threads, Served served);
  [[nodiscard]] exchange::Requests& requests() { return requests_; }

  // Local. Those that wait do so for answers, and serve others meanwhile.
  /// Waits only while too many bytes are on their way.
  void write(int rank, Bytes offset, std::span<const std::byte> bytes);
  /// Fills all of them; waits.
  Status read(std::span<const FarRead> reads);
  /// Returns the size that rank 0 knows, after it has heard what this rank knows; waits.
  Result<Bytes> size() { return add_to_size(0); }
  /// Adds to the size at rank 0, and returns the size before; waits.
  Result<Bytes> add_to_size(Bytes bytes);
  /// Waits until all writes are in their pages.
  void settle() { requests_.settle(); }
  /// Returns the first failure of a write, and forgets it.
  Status take_failure() { return requests_.take_failure(); }
  [[nodiscard]] Status failure() const { return requests_.failure(); }

 private:
  enum class What : std::uint8_t { write, read, grow };
  [[nodiscard]] bool are_here(Unpacker pieces) const;
  bool serve(Unpacker& pieces, bool waits, exchange::Requests::Answer& answer) const;
  Status serve_read(What what, Bytes offset, Bytes bytes, bool waits, ByteVector& values) const;

  const Served served_;
  exchange::Requests requests_;
};

}  // namespace tailrace::shared
