// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "comm/line.hpp"
#include "comm/switchboard.hpp"
#include "executor/threads.hpp"

namespace tailrace::shared {

/// Bytes to be read from a page of another node.
struct FarRead {
  int rank = 0;  // that serves the page
  Bytes offset = 0;
  std::span<std::byte> into;
};

/// The functions through which a rank serves its node's pages to other nodes.
struct Served {
  /// Return the node's part of the file's size, make it larger, and add to it.
  std::function<Bytes()> size;
  std::function<void(Bytes size)> raise_size;
  std::function<Result<Bytes>(Bytes bytes)> add_to_size;
  /// Returns true if the page of that byte is in memory, by now.
  std::function<bool(Bytes offset)> is_here;
  /// Copy bytes to and from pages of the node. With `waits` a thread that may wait for storage calls them.
  std::function<Status(Bytes offset, std::span<std::byte> into, bool waits)> read;
  std::function<Status(Bytes offset, std::span<const std::byte> bytes, bool waits)> write;
};

/// Requests for pages of other nodes, and the answers to theirs. Writes are gathered for each rank that
/// serves them and leave when there are many, before a read of that rank, and in settle(); a rank serves
/// another one's requests in their order. Each message tells the size of the file as its sender knows it.
/// Whoever calls the library serves.
class FarPages {
 public:
  /// All arguments must outlive it. `line` is this file's.
  FarPages(comm::Line& line, executor::Threads& threads, Served served);
  ~FarPages();
  FarPages(const FarPages&) = delete;
  FarPages& operator=(const FarPages&) = delete;

  // Local. Those that wait do so for answers, and serve others meanwhile.
  /// Waits only while too many bytes are on their way.
  void write(int rank, Bytes offset, std::span<const std::byte> bytes);
  /// Fills all of them; waits.
  Status read(std::span<const FarRead> reads);
  /// Returns the size that rank 0 knows, after it has heard what this rank knows; waits.
  Result<Bytes> size();
  /// Adds to the size at rank 0, and returns the size before; waits.
  Result<Bytes> add_to_size(Bytes bytes);
  /// Waits until all writes are in their pages.
  void settle();
  /// Returns the first failure of a write, and forgets it.
  Status take_failure();
  [[nodiscard]] const Status& failure() const { return failure_; }

 private:
  static constexpr std::uint32_t request_message = 40;
  static constexpr std::uint32_t answer_message = 41;
  /// Writes leave when this many bytes have come together for one rank.
  static constexpr Bytes batch = Bytes{64} << 10;
  /// A writer waits while more bytes than these are on their way from it.
  static constexpr Bytes most_on_way = Bytes{4} << 20;
  enum class What : std::uint8_t { write, read, grow };

  /// Operations for one rank that have not left.
  struct Outgoing {
    Packer packed;
    std::int64_t operations = 0;
    Bytes bytes = 0;
  };
  struct Answer {
    Status written;
    Status read;  // and of growing
    ByteVector data;
  };
  struct Request {
    std::uint64_t number = 0;
    ByteVector operations;
  };
  struct Queue {
    std::deque<Request> requests;
    std::shared_ptr<std::atomic<bool>> done;  // of a thread that serves the first one
    Answer answer;
  };

  std::uint64_t send(int rank);
  Packer& begin_operation(int rank, What what);
  Answer wait_for(std::uint64_t number);
  void on_request(int source, Unpacker& in);
  void on_answer(Unpacker& in);
  bool serve();
  bool serve_first(int source, Queue& queue);
  [[nodiscard]] bool is_here(const Request& request) const;
  [[nodiscard]] Answer answer(const Request& request, bool waits) const;
  Status grow(Bytes bytes, std::span<std::byte> into) const;
  /// Returns true if ranks turned out to be in different collective calls: some of them may answer no more.
  [[nodiscard]] bool is_broken() const { return line_.board().order().broken().has_value(); }
  void reply(int source, std::uint64_t number, const Answer& answer);

  comm::Line& line_;
  executor::Threads& threads_;
  const executor::Key key_;  // its own: other jobs may wait for the rank that asks
  const Served served_;
  int work_ = 0;
  std::map<int, Outgoing> outgoing_;
  std::map<std::uint64_t, Bytes> on_way_;  // requests that are not answered, with the bytes that they write
  Bytes bytes_on_way_ = 0;
  std::map<std::uint64_t, Answer> answers_;  // to requests that somebody waits for
  std::set<std::uint64_t> awaited_;
  std::uint64_t next_ = 0;
  std::map<int, Queue> queues_;
  Status failure_;
};

}  // namespace tailrace::shared
