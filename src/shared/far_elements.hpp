// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "comm/line.hpp"
#include "comm/switchboard.hpp"

namespace tailrace::shared {

/// An operation on elements of another node.
enum class Work : std::uint8_t { get, put, add, add_locked };

/// Elements by their numbers in their node: each one, or runs of a first one and a count.
struct Named {
  enum class Form : std::uint8_t { each, runs };
  Form form = Form::each;
  std::span<const Index> numbers;
};

/// Does the work for another rank. The values that are got are put behind `answer`. It must not wait.
using DoWork = std::function<Status(Work work, const Named& named, std::span<const std::byte> values,
                                    ByteVector& answer)>;

/// Work on elements of other nodes, and the answers to theirs. What changes elements is gathered for each
/// rank that owns them and leaves when it is much, before elements are got from that rank, and in settle(). A
/// rank does another one's work in the order in which it was asked for. Whoever calls the library does it.
class FarElements {
 public:
  /// `line` is this array's, and outlives it.
  FarElements(comm::Line& line, DoWork do_work);

  // Local. Those that wait do work for others meanwhile.
  /// Puts or adds; waits only while too many bytes are on their way.
  void change(int rank, Work work, const Named& named, std::span<const std::byte> values);
  /// Asks for elements, and returns the number of the question.
  std::uint64_t ask(int rank, const Named& named);
  /// Returns the values that were asked for; waits.
  Result<ByteVector> answer_to(std::uint64_t question);
  /// Waits until all changes have been made.
  void settle();
  /// Returns the first failure of a change since the last call.
  Status take_failure();

 private:
  static constexpr std::uint32_t request_message = 44;
  static constexpr std::uint32_t answer_message = 45;
  /// Changes leave when this many bytes have come together for one rank.
  static constexpr Bytes batch = Bytes{64} << 10;
  /// A rank waits while more bytes than these are on their way from it.
  static constexpr Bytes most_on_way = Bytes{8} << 20;

  /// A message for one rank that has not left: its number is in it.
  struct Outgoing {
    std::uint64_t number = 0;
    Packer message;
  };
  struct Answer {
    Status status;
    ByteVector values;
  };

  Outgoing& begin_work(int rank, Work work, const Named& named);
  std::uint64_t send(int rank);
  void on_request(int source, Unpacker& in);
  void on_answer(Unpacker& in);
  /// Returns true if ranks turned out to be in different collective calls: some of them may answer no more.
  [[nodiscard]] bool is_broken() const { return line_.board().order().broken().has_value(); }

  comm::Line& line_;
  const DoWork do_work_;
  std::map<int, Outgoing> outgoing_;
  std::map<std::uint64_t, Bytes> on_way_;  // messages that are not answered, with their sizes
  Bytes bytes_on_way_ = 0;
  std::set<std::uint64_t> questions_;
  std::map<std::uint64_t, Answer> answers_;
  std::uint64_t next_ = 0;
  Status failure_;
};

}  // namespace tailrace::shared
