// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "ground/comm/exposed/exposed_memory.hpp"
#include "ground/sim/scheduler.hpp"

namespace tailrace::sim {

/// The memory that simulated processes expose. It outlives them, as pinned memory of a real process does
/// until its job ends. With Scheduler::costs() a process's adapter sends the bytes of one get after another.
class SharedExposed {
 public:
  SharedExposed(Scheduler& scheduler, std::size_t processes)
      : scheduler_(scheduler), memory_(processes), free_at_(processes, 0) {}
  SharedExposed(const SharedExposed&) = delete;
  SharedExposed& operator=(const SharedExposed&) = delete;
  /// Returns one process's end, with `bytes` of its own. `wake` is called when a get of the process is over.
  std::unique_ptr<comm::ExposedMemory> join(std::size_t process, Bytes bytes, std::function<void()> wake);
  /// Returns how many gets have been made, and how many bytes they have brought.
  [[nodiscard]] std::int64_t gets() const { return gets_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  /// Returns how many bytes one get has brought at most.
  [[nodiscard]] Bytes most_bytes() const { return most_bytes_; }

 private:
  friend class SimExposed;
  /// Returns how long it takes until the bytes have left their process.
  [[nodiscard]] Nanoseconds time_of(int process, Bytes bytes);

  Scheduler& scheduler_;
  std::vector<ByteVector> memory_;    // by process
  std::vector<Nanoseconds> free_at_;  // by process, with costs: when its adapter has sent all bytes
  std::int64_t gets_ = 0;
  Bytes bytes_ = 0;
  Bytes most_bytes_ = 0;
};

/// One simulated process's end of exposed memory. A get copies some time after it was asked for, and is over
/// later still; the process whose memory it is does nothing for it.
class SimExposed final : public comm::ExposedMemory {
 public:
  SimExposed(SharedExposed& shared, std::size_t process, std::function<void()> wake)
      : shared_(shared), process_(process), wake_(std::move(wake)) {}
  [[nodiscard]] std::span<std::byte> own() const override { return shared_.memory_[process_]; }
  void show() override {}
  void get(int process, std::vector<Range> ranges, std::function<void()> done) override;
  bool poll() override;

 private:
  using Over = std::deque<std::function<void()>>;
  SharedExposed& shared_;
  const std::size_t process_;
  const std::function<void()> wake_;
  std::shared_ptr<Over> over_ = std::make_shared<Over>();  // gone with the process: later gets copy nothing
};

}  // namespace tailrace::sim
