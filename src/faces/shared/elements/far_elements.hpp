// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <mutex>
#include <span>

#include "engine/exchange/requests.hpp"
#include "faces/shared/elements/node_elements.hpp"

namespace tailrace::shared {

/// An operation on elements of another node.
enum class Work : std::uint8_t { get, put, add, add_locked };

/// Elements by their numbers in their node: each one, or runs of a first one and a count.
struct Named {
  enum class Form : std::uint8_t { each, runs };
  Form form = Form::each;
  std::span<const Index> numbers;
};

/// Does the work for another rank. Work::get appends the values to `answer`. It must not wait.
using DoWork = std::function<Status(Work work, const Named& named, std::span<const std::byte> values,
                                    ByteVector& answer)>;

/// Does work of another rank on the elements of this node. Returns Code::argument, and does nothing, if they
/// are not all here.
Status work_on(NodeElements& elements, Work work, const Named& named, std::span<const std::byte> values,
               ByteVector& answer);

/// Work on elements of other nodes, as requests to the ranks that own them.
class FarElements {
 public:
  /// Local; see exchange::Requests.
  FarElements(exchange::RequestDesk& desk, exchange::Requests::Place place, std::uint64_t epoch,
              executor::Threads& threads, DoWork do_work);
  [[nodiscard]] exchange::Requests& requests() { return requests_; }

  // Local. Calls that wait do the work of other ranks meanwhile.
  /// Puts or adds; waits only while too many bytes are on their way.
  void change(int rank, Work work, const Named& named, std::span<const std::byte> values);
  /// Asks for elements, and returns the number of the question.
  std::uint64_t ask(int rank, const Named& named);
  /// Returns the values that were asked for; waits.
  Result<ByteVector> answer_to(std::uint64_t question) { return requests_.answer_to(question); }
  /// Waits until all changes have been made.
  void settle() { requests_.settle(); }
  /// Returns the first failure of a change since the last call.
  Status take_failure() { return requests_.take_failure(); }
  /// Keeps this rank from working for others as long as it is held.
  [[nodiscard]] std::unique_lock<std::mutex> alone() { return requests_.alone(); }

 private:
  void serve(Unpacker& pieces, exchange::Requests::Answer& answer) const;

  const DoWork do_work_;
  exchange::Requests requests_;
};

}  // namespace tailrace::shared
