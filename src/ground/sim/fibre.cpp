// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/sim/fibre.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define TAILRACE_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAILRACE_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TAILRACE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TAILRACE_THREAD_SANITIZER 1
#endif
#endif

#ifdef TAILRACE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TAILRACE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace tailrace::sim {

namespace {

/// Thrown where a program pauses, to end it. It is not a std::exception, so that no handler takes it for an
/// error.
struct EndsEarly {};

thread_local Fibre* entering = nullptr;

}  // namespace

Fibre::~Fibre() {
  if (stack_ == nullptr) return;
  ends_early_ = true;
  switch_in();
  free_stack();
}

void Fibre::resume() {
  if (stack_ == nullptr) make_stack();
  switch_in();
  if (is_done_) free_stack();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Fibre::pause() {
  if (!ends_early_) switch_out();
  if (ends_early_) throw EndsEarly();
}

void Fibre::make_stack() {
  const auto guard = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory = ::mmap(nullptr, guard + stack_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "mmap of a fibre's stack");
  stack_ = static_cast<std::byte*>(memory);
  ::mprotect(stack_, guard, PROT_NONE);
  ::getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_ + guard;
  inside_.uc_stack.ss_size = stack_bytes;
  inside_.uc_link = nullptr;
  ::makecontext(&inside_, &Fibre::enter, 0);
  // If uc_stack were set, address sanitizer would clear its shadow of the whole stack at each switch.
  inside_.uc_stack = {};
#ifdef TAILRACE_THREAD_SANITIZER
  inside_tag_ = __tsan_create_fiber(0);
#endif
}

void Fibre::free_stack() {
  const auto guard = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
#ifdef TAILRACE_ADDRESS_SANITIZER
  // enter() never returns and leaves marks in the sanitizer's shadow. The next mapping at this address must
  // not find them.
  __asan_unpoison_memory_region(stack_, guard + stack_bytes);
#endif
#ifdef TAILRACE_THREAD_SANITIZER
  __tsan_destroy_fiber(inside_tag_);
#endif
  ::munmap(stack_, guard + stack_bytes);
  stack_ = nullptr;
}

Fibre::Exceptions Fibre::exchange_exceptions(const Exceptions& other) {
  Exceptions mine;
  auto* const here = static_cast<void*>(abi::__cxa_get_globals());
  std::memcpy(&mine, here, sizeof mine);
  std::memcpy(here, &other, sizeof other);
  return mine;
}

void Fibre::switch_in() {
  entering = this;
  exceptions_ = exchange_exceptions(exceptions_);
#ifdef TAILRACE_ADDRESS_SANITIZER
  const auto guard = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  __sanitizer_start_switch_fiber(&outside_tag_, stack_ + guard, stack_bytes);
#endif
#ifdef TAILRACE_THREAD_SANITIZER
  outside_tag_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(inside_tag_, 0);
#endif
  ::swapcontext(&outside_, &inside_);
#ifdef TAILRACE_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(outside_tag_, nullptr, nullptr);
#endif
  exceptions_ = exchange_exceptions(exceptions_);
}

void Fibre::switch_out() {
#ifdef TAILRACE_ADDRESS_SANITIZER
  // A program that has ended never runs again: nullptr makes the sanitizer drop its state.
  __sanitizer_start_switch_fiber(is_done_ ? nullptr : &inside_tag_, outside_stack_, outside_stack_bytes_);
#endif
#ifdef TAILRACE_THREAD_SANITIZER
  __tsan_switch_to_fiber(outside_tag_, 0);
#endif
  ::swapcontext(&inside_, &outside_);
#ifdef TAILRACE_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(inside_tag_, &outside_stack_, &outside_stack_bytes_);
#endif
}

void Fibre::enter() {
  Fibre& fibre = *entering;
#ifdef TAILRACE_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &fibre.outside_stack_, &fibre.outside_stack_bytes_);
#endif
  try {
    fibre.program_();
  } catch (const EndsEarly&) {
  } catch (...) {
    fibre.failure_ = std::current_exception();
  }
  fibre.is_done_ = true;
  fibre.switch_out();
}

}  // namespace tailrace::sim
