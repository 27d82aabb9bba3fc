// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/objects/object_lock.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <fstream>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

#include "ground/base/log.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/base/uuid.hpp"

namespace tailrace::storage {

namespace {

constexpr std::string_view lock_mark = "tailrace lock: ";

/// Stands for what the system does not tell.
constexpr std::string_view untold = "-";

/// The process that holds a lock, as the object tells it: "HOST BOOT PROCESSES PID STARTED TOKEN". A process
/// has another token for each lock, and so knows a lock that it has left behind from one that it holds.
struct LockHolder {
  std::string host;       // for people: machines may have the same name, and containers that of their machine
  std::string boot;       // of the machine; another machine, or the same one started anew, has another
  std::string processes;  // the namespace in which the number counts: each container may have its own
  std::int64_t pid = 0;
  std::string started;  // of the process; another process that has the same number has another time
  std::string token;
  [[nodiscard]] std::string name() const { return cat("host ", host, " pid ", pid); }
  [[nodiscard]] std::string text() const {
    return cat(lock_mark, host, " ", boot, " ", processes, " ", pid, " ", started, " ", token, "\n");
  }
  /// True if a number of a process means the same process to both.
  [[nodiscard]] bool shares_processes(const LockHolder& other) const {
    return boot != untold && boot == other.boot && processes != untold && processes == other.processes;
  }
};

/// The tokens of the locks that this process holds.
struct HeldTokens {
  std::mutex mutex;
  std::set<std::string> all;
};

HeldTokens& held_tokens() {
  static HeldTokens& held = *new HeldTokens;
  return held;
}

/// Returns when the process began, in ticks since the machine did (proc_pid_stat(5), field 22), or "-" if
/// the system does not tell, or there is no such process. A process that has ended, and whose parent has not
/// asked for it yet, began never.
std::string start_of(std::int64_t pid) {
  std::ifstream file(cat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');  // the name may have spaces and parentheses
  if (name_end == std::string::npos) return std::string(untold);
  const std::vector<std::string> fields = split(line.substr(name_end + 1), ' ');
  // Behind the name: an empty word, then field 3.
  constexpr std::size_t state_field = 1, threads_field = 18, start_field = 20;
  if (fields.size() <= start_field) return std::string(untold);
  const bool has_ended =
      fields[state_field] == "Z" && fields[threads_field].size() == 1 && fields[threads_field] < "2";
  return has_ended ? "never" : fields[start_field];
}

/// Returns the process without a token. What it reads of the system is kept, as a process that is short of
/// descriptors still has to know its own locks; a forked child reads its own.
LockHolder this_process() {
  static std::mutex& mutex = *new std::mutex;
  static LockHolder& known = *new LockHolder;
  const std::lock_guard guard(mutex);
  const auto pid = static_cast<std::int64_t>(::getpid());
  const bool is_whole = known.boot != untold && known.processes != untold && known.started != untold;
  if (known.pid == pid && is_whole) return known;
  std::array<char, 256> host{}, processes{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  if (!(file >> boot)) boot = untold;
  if (::readlink("/proc/self/ns/pid", processes.data(), processes.size() - 1) <= 0) processes[0] = '-';
  known = {host.data(), boot, processes.data(), pid, start_of(pid), {}};
  return known;
}

LockHolder this_holder() {
  LockHolder mine = this_process();
  mine.token = Uuid::random().text();
  return mine;
}

Result<LockHolder> parse_holder(const std::string& name, const ByteVector& bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Status foreign(Code::argument, cat("lock ", name,
                                           ": the object exists and is no lock; it is left untouched, "
                                           "choose another name or remove it"));
  if (!text.starts_with(lock_mark) || !text.ends_with('\n')) return foreign;
  const std::vector<std::string> words =
      split(text.substr(lock_mark.size(), text.size() - lock_mark.size() - 1), ' ');
  if (words.size() != 6) return foreign;
  LockHolder holder{words[0], words[1], words[2], 0, words[4], words[5]};
  const auto parsed = std::from_chars(words[3].data(), words[3].data() + words[3].size(), holder.pid);
  return parsed.ec == std::errc() && holder.pid > 0 ? Result<LockHolder>(holder) : foreign;
}

/// True if nobody holds the lock any more for certain. /proc may hide processes of other users, or be
/// missing, and this process may have no descriptor left to read it.
bool is_gone(const LockHolder& holder, const LockHolder& mine) {
  if (!holder.shares_processes(mine)) return false;
  if (holder.pid == mine.pid && holder.started == mine.started) {
    const std::lock_guard guard(held_tokens().mutex);
    return !held_tokens().all.contains(holder.token);
  }
  if (::kill(static_cast<pid_t>(holder.pid), 0) != 0 && errno == ESRCH) return true;
  const std::string started = start_of(holder.pid);
  return holder.started != untold && started != untold && started != holder.started;
}

Status is_held(const std::string& name, const LockHolder& holder, const LockHolder& mine) {
  if (holder.shares_processes(mine) && holder.pid == mine.pid)
    return {Code::state, cat("lock ", name, ": held by this process itself, ", holder.name(),
                             "; close what it has open under this name first")};
  if (holder.shares_processes(mine))
    return {Code::state, cat("lock ", name, ": held by ", holder.name(), "; wait until it ends or stop it")};
  return {Code::state, cat("lock ", name, ": held by ", holder.name(),
                           "; wait until it ends or stop it; if it was killed, remove the object")};
}

class ObjectLock {
 public:
  ObjectLock(std::shared_ptr<ObjectService> service, std::string name, LockHolder holder)
      : service_(std::move(service)), name_(std::move(name)), holder_(std::move(holder)), pid_(::getpid()) {
    const std::lock_guard guard(held_tokens().mutex);
    held_tokens().all.insert(holder_.token);
  }
  ObjectLock(const ObjectLock&) = delete;
  ObjectLock& operator=(const ObjectLock&) = delete;
  /// Removes the object, unless somebody has removed it by hand and holds the lock now. In a forked child the
  /// lock is still its parent's.
  ~ObjectLock() {
    if (pid_ != ::getpid()) return;
    Status removed = remove();
    for (int tries = 1; tries < 3 && !removed.is_ok(); ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5) * tries);
      removed = remove();
    }
    if (!removed.is_ok())
      log(LogLevel::warn, cat("lock ", name_, ": is given back, and its object stays: ", removed.text()));
    const std::lock_guard guard(held_tokens().mutex);
    held_tokens().all.erase(holder_.token);
  }

 private:
  Status remove() {
    const Result<std::optional<ObjectService::Whole>> found = service_->get(name_);
    TR_TRY(found.status());
    if (!found->has_value()) return {};
    const Result<LockHolder> now = parse_holder(name_, (*found)->bytes);
    return now.is_ok() && now->token == holder_.token ? service_->remove(name_) : Status();
  }

  const std::shared_ptr<ObjectService> service_;
  const std::string name_;
  const LockHolder holder_;
  const pid_t pid_;
};

}  // namespace

Result<std::shared_ptr<void>> lock_object(const std::shared_ptr<ObjectService>& service,
                                          const std::string& name) {
  const LockHolder mine = this_holder();
  const std::string text = mine.text();
  // Each round that takes nothing has seen another holder come or go.
  for (int rounds = 0; rounds < 5; ++rounds) {
    const Result<std::optional<ObjectService::Whole>> found = service->get(name);
    TR_TRY(found.status());
    std::string version;
    if (found->has_value()) {
      const Result<LockHolder> holder = parse_holder(name, (*found)->bytes);
      TR_TRY(holder.status());
      if (!is_gone(*holder, mine)) return is_held(name, *holder, mine);
      version = (*found)->version;
    }
    // From here on: if the put is made and fails all the same, the next call must find that nobody holds it.
    auto lock = std::make_shared<ObjectLock>(service, name, mine);
    const Result<std::optional<std::string>> taken =
        service->put_if({name, std::as_bytes(std::span(text))}, version);
    TR_TRY(taken.status());
    if (*taken) return std::shared_ptr<void>(std::move(lock));
  }
  return Status(Code::state, cat("lock ", name, ": others take it and give it back all the time; try again"));
}

}  // namespace tailrace::storage
