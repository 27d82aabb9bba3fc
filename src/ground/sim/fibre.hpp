// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <exception>
#include <functional>

namespace tailrace::sim {

/// A program on a stack of its own, in the thread of its owner. It may stop anywhere, also deep inside
/// blocking calls of the library, and go on later. Only those pages of the stack that it uses take memory.
class Fibre {
 public:
  explicit Fibre(std::function<void()> program) : program_(std::move(program)) {}
  /// Ends a program that has not ended: pause() throws in it, so that the program's destructors run. None of
  /// them may wait.
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  /// Runs the program until it pauses or ends. Rethrows exceptions of the program.
  void resume();
  /// Called by the program: stops it and returns to the caller of resume().
  void pause();
  [[nodiscard]] bool is_done() const { return is_done_; }

  static constexpr std::size_t stack_bytes = std::size_t{256} << 10;

 private:
  /// The C++ runtime keeps, for each thread, the exceptions that are being handled (__cxa_eh_globals of the
  /// Itanium C++ ABI). A program may pause while it handles one, so each fibre keeps its own.
  struct Exceptions {
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  static Exceptions exchange_exceptions(const Exceptions& other);
  static void enter();
  void make_stack();
  void free_stack();
  void switch_in();
  void switch_out();

  std::function<void()> program_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  std::byte* stack_ = nullptr;  // its lowest page is a guard
  Exceptions exceptions_;       // exceptions of the side that does not run
  std::exception_ptr failure_;
  bool is_done_ = false;
  bool ends_early_ = false;
  // For the sanitizers, which must be told of stacks.
  void* inside_tag_ = nullptr;
  void* outside_tag_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_stack_bytes_ = 0;
};

}  // namespace tailrace::sim
