// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "ground/base/status.hpp"
#include "ground/comm/counters/blocking_call.hpp"
#include "ground/comm/exposed/exposed_memory.hpp"
#include "ground/comm/transport.hpp"

namespace tailrace::comm {

/// A window of MPI with memory of each process (MPI_Win_allocate), and the one call that is made with it:
/// MPI_Get of bytes that follow one another.
class ExposedWindow {
 public:
  /// How long a process that only computes waits in the self-test until others have got from its memory.
  static constexpr std::chrono::milliseconds patience{500};

  /// Which part a process has in the gets: `from` are the processes from which it gets.
  struct Part {
    Bytes bytes = 0;        // of memory that it exposes
    bool is_asked = false;  // one other process gets from it
    std::vector<int> from{};
  };

  /// Collective over `comm`, which must outlive the object and is used for nothing else. Blocks until all
  /// processes have called it. Makes the window and tests it: each process gets from those of its part, while
  /// these are outside of MPI, at last as much as it ever gets at once. Returns Code::unsupported on all
  /// processes if what they get is wrong, or comes only when its process calls MPI. On a loaded machine a
  /// process may get too late only because it had no core: each part of the test has a second chance.
  static Result<std::unique_ptr<ExposedWindow>> create(MPI_Comm comm, const Part& part,
                                                       std::chrono::nanoseconds limit = patience);
  /// Collective. Blocks until all processes have called it. Frees the window; nothing may use it any more.
  void free();
  ExposedWindow(const ExposedWindow&) = delete;
  ExposedWindow& operator=(const ExposedWindow&) = delete;

  [[nodiscard]] std::span<std::byte> own() const { return own_; }
  /// Local. Does ExposedMemory::show().
  void show();
  /// Local. Blocks as long as the network takes. An error ends the job.
  void get(int process, std::span<const ExposedMemory::Range> ranges);

 private:
  explicit ExposedWindow(MPI_Comm comm) : comm_(comm) {}
  Status allocate(Bytes bytes);
  enum class Outcome { right, late, wrong };
  Status test(const Part& part, std::chrono::nanoseconds limit);
  Outcome test_round(int round, const Part& part, const std::vector<Bytes>& lengths,
                     std::chrono::nanoseconds limit);
  bool get_and_tell(int process, int round, Bytes length);
  [[nodiscard]] bool is_told(int round, std::chrono::nanoseconds limit) const;
  Outcome same_everywhere(bool is_right, bool has_come);
  int try_get(int process, std::span<const ExposedMemory::Range> ranges);

  const MPI_Comm comm_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::span<std::byte> own_;
  int rank_ = 0;
};

/// Exposed memory by one-sided gets. A get is over when get() returns: the self-test of the window has shown
/// that the MPI needs nothing of the other process.
class MpiExposed final : public ExposedMemory {
 public:
  /// Local. The calls are made on the calling thread, when no other thread uses the transport. Both must
  /// outlive the object. `watch` is nullptr, or watches the gets.
  MpiExposed(ExposedWindow& window, Transport& transport, std::unique_ptr<RepeatedCall> watch = nullptr)
      : window_(window), transport_(transport), watch_(std::move(watch)) {}
  [[nodiscard]] std::span<std::byte> own() const override { return window_.own(); }
  void show() override {
    transport_.exclusively([this] { window_.show(); });
  }
  void get(int process, std::vector<Range> ranges, std::function<void()> done) override {
    transport_.exclusively([&] {
      if (watch_) watch_->begin();
      window_.get(process, ranges);
      if (watch_) watch_->end();
    });
    done();
  }

 private:
  ExposedWindow& window_;
  Transport& transport_;
  std::unique_ptr<RepeatedCall> watch_;
};

}  // namespace tailrace::comm
