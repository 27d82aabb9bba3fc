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

/// Elements by their numbers in their node. In the form `each`, `numbers` has one number for each element. In
/// the form `runs` it has two for each run: the number of its first element, and the run's length.
struct Named {
  enum class Form : std::uint8_t { each, runs };
  Form form = Form::each;
  std::span<const Index> numbers;
};

/// Does work for another rank. With Work::get it appends the values to `answer`. It must not wait.
using DoWork = std::function<Status(Work work, const Named& named, std::span<const std::byte> values,
                                    ByteVector& answer)>;

/// Does work for another rank on elements of this node. Returns Code::argument, and does nothing, if one of
/// the elements does not belong to this node, or if `values` are too few or too many.
Status work_on(NodeElements& elements, Work work, const Named& named, std::span<const std::byte> values,
               ByteVector& answer);

/// Asks other nodes to work on their elements, by requests to the ranks that own the elements or to their
/// servers, and does such work for other nodes.
class FarElements {
 public:
  /// Local; see exchange::Requests.
  FarElements(exchange::ProgressEngine& progress, exchange::Requests::Peers peers, std::uint64_t epoch,
              executor::Threads& threads, DoWork do_work);
  [[nodiscard]] exchange::Requests& requests() { return requests_; }

  // Local. While a call waits, it does the work that other ranks ask for.
  /// Asks `rank` to put or add values. Waits only while too many bytes are on their way. settle() waits until
  /// it is done.
  void change(int rank, Work work, const Named& named, std::span<const std::byte> values);
  /// Asks `rank` for values of elements, and returns the number of the question for answer_to(). Does not
  /// wait for the answer.
  std::uint64_t ask(int rank, const Named& named);
  /// Waits for the answer to a question, and returns its values. Call it once for each question.
  Result<ByteVector> answer_to(std::uint64_t question) { return requests_.answer_to(question); }
  /// Waits until all changes that this rank has asked for have been made.
  void settle() { requests_.settle(); }
  /// Returns the first failure of a change since the last call.
  Status take_failure() { return requests_.take_failure(); }
  /// Returns a lock. As long as the caller holds it, this rank does no work for other ranks.
  [[nodiscard]] std::unique_lock<std::mutex> alone() { return requests_.alone(); }

 private:
  void serve(Unpacker& pieces, exchange::Requests::Answer& answer) const;

  const DoWork do_work_;
  exchange::Requests requests_;
};

}  // namespace tailrace::shared
