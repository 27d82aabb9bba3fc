// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <span>

#include "engine/exchange/requests.hpp"

namespace tailrace::shared {

class NodePages;

/// Bytes to be read from a page of another node.
struct FarRead {
  int rank = 0;  // the one that is asked
  Bytes offset = 0;
  std::span<std::byte> into;
};

/// The functions through which a rank or a server gives other nodes the pages of its node.
struct Served {
  /// size() returns the file's size as the node knows it. raise_size() makes it at least `size`.
  /// add_to_size() adds `bytes`, and returns the size before.
  std::function<Bytes()> size;
  std::function<void(Bytes size)> raise_size;
  std::function<Result<Bytes>(Bytes bytes)> add_to_size;
  /// Returns true if the page of that byte is in memory at this moment.
  std::function<bool(Bytes offset)> is_here;
  /// Copy bytes from and to a page of the node. With `waits` the calling thread may wait for storage.
  std::function<Status(Bytes offset, std::span<std::byte> into, bool waits)> read;
  std::function<Status(Bytes offset, std::span<const std::byte> bytes, bool waits)> write;
  /// Returns true if a read or write with this failure is to be tried again later.
  std::function<bool(const Status& failure)> is_to_wait = [](const Status&) { return false; };
  /// The progress engine calls it in each pass. Returns true if it has done work for others.
  std::function<bool()> help = [] { return false; };
  /// At most `at_once` threads wait for storage at a time. Each calls wake() when its work is done.
  int at_once = 1;
  std::function<void()> wake = [] {};
};

/// Returns the functions that give other nodes these pages, of `page` bytes each, which must outlive them.
/// The caller adds is_to_wait, help, at_once and wake.
Served served_from(NodePages& pages, Bytes page);

/// Reads and writes pages of other nodes, by requests to their owners or servers, and serves pages of this
/// node to others. Each message tells the size of the file as its sender knows it.
class FarPages {
 public:
  /// Local; see exchange::Requests.
  FarPages(exchange::ProgressEngine& progress, exchange::Requests::Peers peers, std::uint64_t epoch,
           executor::Threads& threads, Served served);
  [[nodiscard]] exchange::Requests& requests() { return requests_; }

  // Local. While a call waits for answers, it serves other ranks.
  /// Asks `rank` to write the bytes. Waits only while too many bytes are on their way. settle() waits until
  /// they are written.
  void write(int rank, Bytes offset, std::span<const std::byte> bytes);
  /// Fills all of `reads`; waits for the answers.
  Status read(std::span<const FarRead> reads);
  /// Tells rank 0 the size that this rank knows, waits for the answer, and returns the size that rank 0
  /// knows.
  Result<Bytes> size() { return add_to_size(0); }
  /// Adds to the size at rank 0, waits for the answer, and returns the size before.
  Result<Bytes> add_to_size(Bytes bytes);
  /// Waits until all bytes that this rank has written are in their pages.
  void settle() { requests_.settle(); }
  /// Returns the first failure of a write since the last call.
  Status take_failure() { return requests_.take_failure(); }
  /// Returns what take_failure() would return, and does not forget it.
  [[nodiscard]] Status failure() const { return requests_.failure(); }

 private:
  enum class What : std::uint8_t { write, read, grow };
  bool is_here(Unpacker& pieces) const;
  bool serve(Unpacker& pieces, bool waits, exchange::Requests::Answer& answer) const;
  Status serve_read(What what, Bytes offset, Bytes bytes, bool waits, ByteVector& values) const;

  const Served served_;
  exchange::Requests requests_;
};

}  // namespace tailrace::shared
