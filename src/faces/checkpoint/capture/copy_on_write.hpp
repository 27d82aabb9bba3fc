// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "faces/checkpoint/capture/userfault.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::capture {

/// Memory of the program, and the place to which it is copied.
struct CopiedRange {
  const std::byte* begin = nullptr;  // both multiples of CopyOnWrite::unit
  Bytes bytes = 0;
  std::byte* copy = nullptr;
};

/// Copies memory as it is at the moment of begin(), while the program goes on. A thread of the library, the
/// copier, copies one unit after another. If a thread of the program writes to a unit that is not copied yet,
/// it waits: the copier copies this unit next, and then lets the thread go on.
///
/// The memory must stay mapped until wait() has returned. Otherwise wait() returns an error, and the copy
/// does not count.
class CopyOnWrite {
 public:
  /// The first write to each unit costs a page fault. Units of this size leave huge pages whole; smaller
  /// units would cost up to 100 times more faults if the program rewrites everything.
  static constexpr Bytes unit = Bytes{2} << 20;

  /// Returns Code::unsupported if the system does not allow it; the text says what is missing.
  static Result<std::unique_ptr<CopyOnWrite>> create();
  ~CopyOnWrite();
  CopyOnWrite(const CopyOnWrite&) = delete;
  CopyOnWrite& operator=(const CopyOnWrite&) = delete;

  /// Protects the ranges and starts the copier. Returns Code::unsupported, with nothing protected, if memory
  /// of this kind cannot be protected or a device might write to it. Call it only after wait() has returned
  /// for the ranges before.
  Status begin(std::vector<CopiedRange> ranges);
  /// Blocks until everything is copied, or a part of the memory is lost. Any thread may call it.
  Status wait();

 private:
  enum class State { idle, protecting, copying, giving_up, copied, lost };
  explicit CopyOnWrite(Userfault faults) : faults_(std::move(faults)) {}

  Status protect();
  void join();
  void run();
  bool serve();
  bool note(const Userfault::Event& event);
  bool copy(std::size_t number);

  Userfault faults_;
  std::vector<CopiedRange> ranges_;
  std::vector<std::size_t> first_units_;  // number of each range's first unit
  std::vector<char> is_copied_;           // of each unit
  std::size_t left_ = 0;
  std::size_t cursor_ = 0;  // the unit that is copied next if nobody waits for another
  std::atomic<State> state_{State::idle};
  std::thread copier_;
};

}  // namespace tailrace::capture
