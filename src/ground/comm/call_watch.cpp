// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/call_watch.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"

namespace tailrace::comm {

namespace {

/// Programs and MPI libraries do not use this signal, and it does not end a process without a handler for it.
constexpr int look_signal = SIGURG;
constexpr int most_frames = 128;
constexpr int own_frames = 2;  // the handler's, and the kernel's return from it

std::array<void*, most_frames> frames;
std::atomic<int> depth{0};

void on_look(int) {
  const int before = errno;
  depth.store(::backtrace(frames.data(), most_frames), std::memory_order_release);
  errno = before;
}

/// The call of MPI in which the program is, and the code that made the call. Outside of MPI both are empty.
struct CallSite {
  std::string call;
  std::string caller;
  friend bool operator==(const CallSite&, const CallSite&) = default;
};

/// Returns "MPI_Barrier" for all names under which the MPI libraries have it: PMPI_Barrier, mpi_barrier_,
/// mpi_barrier_f08_, pompi_barrier_f. Returns "" for names of other functions.
std::string call_of(std::string_view symbol) {
  std::string name(symbol);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view prefix : {"pompi_", "ompi_", "pmpi_", "mpi_"}) {
    if (!name.starts_with(prefix)) continue;
    name.erase(0, prefix.size());
    while (name.ends_with('_')) name.pop_back();
    for (const std::string_view ending : {"_f08ts", "_f08", "_f"}) {
      if (name.ends_with(ending)) name.erase(name.size() - ending.size());
    }
    if (name.empty()) return {};
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    return "MPI_" + name;
  }
  return {};
}

std::string_view file_name(const char* path) {
  const std::string_view all(path == nullptr ? "" : path);
  return all.substr(all.rfind('/') + 1);
}

/// Returns the place of a call as text that addr2line accepts. `address` is the return address, which lies
/// behind the call.
std::string code_text(void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "code of no file";
  auto at = reinterpret_cast<std::uintptr_t>(address) - 1;
  const auto* const head = static_cast<const ElfW(Ehdr)*>(info.dli_fbase);
  if (head->e_type == ET_DYN) at -= reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (; at != 0; at /= 16) hex.insert(hex.begin(), digits[at % 16]);
  const std::string_view in = info.dli_sname == nullptr ? std::string_view() : info.dli_sname;
  return cat(in.empty() ? "" : cat(in, " in "), info.dli_fname, " (addr2line -fe ", info.dli_fname, " 0x",
             hex, " tells the line)");
}

/// Returns the call of MPI in which `stack` is. It is the outermost function of an MPI library: the program
/// called that one. A stack inside a call of this library counts as outside of MPI.
CallSite site_of(std::span<void* const> stack) {
  CallSite site;
  for (std::size_t i = own_frames; i < stack.size(); ++i) {
    Dl_info info{};
    if (::dladdr(stack[i], &info) == 0 || info.dli_sname == nullptr) continue;
    if (std::string_view(info.dli_sname).starts_with("tr_")) return {};
    if (file_name(info.dli_fname).find("mpi") == std::string_view::npos) continue;
    const std::string call = call_of(info.dli_sname);
    if (call.empty()) continue;
    site = {call, i + 1 < stack.size() ? code_text(stack[i + 1]) : "unknown code"};
  }
  return site;
}

/// Returns where `thread` is, or nothing if the thread does not answer: it may have blocked the signal.
std::optional<CallSite> site_of(pthread_t thread) {
  struct sigaction look = {};
  struct sigaction before = {};
  look.sa_handler = on_look;
  look.sa_flags = SA_RESTART;
  if (::sigaction(look_signal, &look, &before) != 0) return std::nullopt;
  depth.store(0, std::memory_order_relaxed);
  int found = 0;
  if (::pthread_kill(thread, look_signal) == 0) {
    for (int i = 0; i < 1000 && found == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      found = depth.load(std::memory_order_acquire);
    }
  }
  // If the handler runs later than this, the buffers are still there, and nobody reads them.
  ::sigaction(look_signal, &before, nullptr);
  if (found == 0) return std::nullopt;
  return site_of(std::span<void* const>(frames.data(), static_cast<std::size_t>(found)));
}

}  // namespace

Result<std::unique_ptr<CallWatch>> CallWatch::create(std::int64_t patience,
                                                     std::function<void(const std::string&)> tell) {
  // The first call of backtrace() loads a library, which a signal handler must not do.
  ::backtrace(frames.data(), most_frames);
  std::unique_ptr<CallWatch> watch(new CallWatch(patience, std::move(tell)));
  Result<std::thread> thread = start_thread([&watched = *watch] { watched.run(); });
  TR_TRY(thread.status());
  watch->thread_ = std::move(*thread);
  return watch;
}

CallWatch::CallWatch(std::int64_t patience, std::function<void(const std::string&)> tell)
    : watched_(::pthread_self()), patience_(patience), tell_(std::move(tell)) {}

CallWatch::~CallWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

/// Sleeps. Returns false if the watch has to end.
bool CallWatch::sleep_for(std::int64_t nanoseconds) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::nanoseconds(nanoseconds), [this] { return ends_; });
}

void CallWatch::run() {
  std::uint64_t seen = 0;
  std::int64_t silent = 0;
  const std::int64_t interval = patience_ / 4;
  while (sleep_for(interval)) {
    const std::uint64_t now = calls_.load(std::memory_order_relaxed);
    silent = now == std::exchange(seen, now) ? silent + interval : 0;
    if (silent >= patience_ && look_twice(silent)) return;
  }
}

/// Looks twice, a moment apart: a program that computes calls MPI too, but is hardly in the same call both
/// times. Returns true if it has told.
bool CallWatch::look_twice(std::int64_t silent) {
  constexpr std::int64_t between = 200'000'000;
  const std::uint64_t calls = calls_.load(std::memory_order_relaxed);
  const std::optional<CallSite> first = site_of(watched_);
  if (!first || first->call.empty() || !sleep_for(between)) return false;
  const std::optional<CallSite> second = site_of(watched_);
  if (!second || !(*second == *first) || calls_.load(std::memory_order_relaxed) != calls) return false;
  tell_(cat("has not called the library for ", silent / 1'000'000'000, " s, and is in ", first->call,
            ", called from ", first->caller,
            ". If its communicator is MPI_COMM_WORLD, the call waits for the servers: give it the "
            "communicator that tr_init has returned"));
  return true;
}

}  // namespace tailrace::comm
