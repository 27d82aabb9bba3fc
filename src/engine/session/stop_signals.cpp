// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/stop_signals.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "ground/base/text.hpp"

namespace tailrace::session {

namespace {

// A handler may run on any thread, so volatile is not enough. A handler may touch only lock-free atomics.
using Flag = std::atomic<std::sig_atomic_t>;
static_assert(Flag::is_always_lock_free);

std::array<Flag, NSIG> came;
// The actions that our handler has replaced, and reads. They are written before our handler is installed, and
// not again while it is.
std::array<struct sigaction, NSIG> before;

bool has_more(const struct sigaction& action) { return (action.sa_flags & SA_SIGINFO) != 0; }
bool is_default(const struct sigaction& action) { return !has_more(action) && action.sa_handler == SIG_DFL; }
bool is_ignored(const struct sigaction& action) { return !has_more(action) && action.sa_handler == SIG_IGN; }

/// A user who sends one of these signals twice wants the program to end now. The other signals may come again
/// and again: the kernel repeats XCPU every second, and batch systems USR1.
bool insists(int number) { return number == SIGTERM || number == SIGINT || number == SIGHUP; }

extern "C" void on_stop_signal(int number, siginfo_t* info, void* context) {
  const int error_number = errno;
  const struct sigaction& theirs = before[static_cast<std::size_t>(number)];
  const bool again = came[static_cast<std::size_t>(number)].exchange(1) != 0;
  if (is_default(theirs)) {
    if (again && insists(number)) {
      std::signal(number, SIG_DFL);
      ::raise(number);  // stays pending until this handler returns
    }
  } else if (has_more(theirs)) {
    theirs.sa_sigaction(number, info, context);
  } else {
    theirs.sa_handler(number);
  }
  errno = error_number;
}

bool is_ours(const struct sigaction& action) {
  return has_more(action) && action.sa_sigaction == on_stop_signal;
}

/// Returns the file from which the code at `address` was loaded. It tells MPI's code from the program's.
const void* object_of(void* address) {
  Dl_info info = {};
  return address != nullptr && ::dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

/// Returns true if MPI is a shared library and the handler lies in it. An MPI linked statically cannot be
/// told from the program, and counts as the program.
bool is_of_mpi(const struct sigaction& action) {
  void* const handler = has_more(action) ? reinterpret_cast<void*>(action.sa_sigaction)
                                         : reinterpret_cast<void*>(action.sa_handler);
  const void* const mpi = object_of(::dlsym(RTLD_DEFAULT, "PMPI_Init"));
  return mpi != nullptr && mpi != object_of(reinterpret_cast<void*>(on_stop_signal)) &&
         object_of(handler) == mpi;
}

}  // namespace

StopSignals::StopSignals(const std::vector<Signal>& wanted) {
  for (const Signal& signal : wanted) {
    const auto place = static_cast<std::size_t>(signal.number);
    struct sigaction theirs = {};
    ::sigaction(signal.number, nullptr, &theirs);
    if (!is_default(theirs) && (is_ignored(theirs) || !is_of_mpi(theirs))) {
      left_alone_.push_back(signal);
      continue;
    }
    came[place] = 0;
    before[place] = theirs;
    struct sigaction ours = {};
    ours.sa_sigaction = on_stop_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART;  // no read or write fails with EINTR because of us
    ::sigaction(signal.number, &ours, nullptr);
    taken_.push_back(signal);
  }
}

StopSignals::~StopSignals() {
  for (const Signal& signal : taken_) {
    struct sigaction now = {};
    ::sigaction(signal.number, nullptr, &now);
    if (is_ours(now) || (ignoring_ && is_ignored(now))) {
      ::sigaction(signal.number, &before[static_cast<std::size_t>(signal.number)], nullptr);
    }
  }
}

void StopSignals::ignore() {
  ignoring_ = true;
  for (const Signal& signal : taken_) {
    // Signals that MPI handles still reach its handlers, and end no process.
    if (is_default(before[static_cast<std::size_t>(signal.number)])) std::signal(signal.number, SIG_IGN);
  }
}

std::string StopSignals::received() const {
  std::string names;
  for (const Signal& signal : taken_) {
    if (came[static_cast<std::size_t>(signal.number)] == 0) continue;
    names += cat(names.empty() ? "SIG" : ", SIG", signal.name);
  }
  return names;
}

}  // namespace tailrace::session
