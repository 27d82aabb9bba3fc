// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/objects/object_lock.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <mutex>
#include <set>
#include <string_view>

#include "ground/base/log.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/base/uuid.hpp"

namespace tailrace::storage {

namespace {

constexpr std::string_view lock_mark = "tailrace lock: ";

/// The process that holds a lock, as the object tells it: "HOST PID STARTED TOKEN". A process has another
/// token for each lock, and so knows a lock that it has left behind from one that it holds.
struct LockHolder {
  std::string host;
  std::int64_t pid = 0;
  std::string started;  // of the process; another process that has the same number has another time
  std::string token;
  [[nodiscard]] std::string name() const { return cat("host ", host, " pid ", pid); }
  [[nodiscard]] std::string text() const {
    return cat(lock_mark, host, " ", pid, " ", started, " ", token, "\n");
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
/// there is no such process or the system does not tell. A process that has ended, and whose parent has not
/// asked for it yet, began never.
std::string start_of(std::int64_t pid) {
  std::ifstream file(cat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');  // the name may have spaces and parentheses
  if (name_end == std::string::npos) return "-";
  const std::vector<std::string> fields = split(line.substr(name_end + 1), ' ');
  // Behind the name: an empty word, then field 3.
  constexpr std::size_t state_field = 1, threads_field = 18, start_field = 20;
  if (fields.size() <= start_field) return "-";
  const bool has_ended =
      fields[state_field] == "Z" && fields[threads_field].size() == 1 && fields[threads_field] < "2";
  return has_ended ? "never" : fields[start_field];
}

LockHolder this_holder() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  const auto pid = static_cast<std::int64_t>(::getpid());
  return {host.data(), pid, start_of(pid), Uuid::random().text()};
}

Result<LockHolder> parse_holder(const std::string& name, const ByteVector& bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Status foreign(Code::argument, cat("lock ", name,
                                           ": the object exists and is no lock; it is left untouched, "
                                           "choose another name or remove it"));
  if (!text.starts_with(lock_mark) || !text.ends_with('\n')) return foreign;
  const std::vector<std::string> words =
      split(text.substr(lock_mark.size(), text.size() - lock_mark.size() - 1), ' ');
  if (words.size() != 4) return foreign;
  LockHolder holder{words[0], 0, words[2], words[3]};
  const auto parsed = std::from_chars(words[1].data(), words[1].data() + words[1].size(), holder.pid);
  return parsed.ec == std::errc() && holder.pid > 0 ? Result<LockHolder>(holder) : foreign;
}

/// True if nobody holds the lock any more.
bool is_gone(const LockHolder& holder, const LockHolder& mine) {
  if (holder.host != mine.host) return false;
  if (holder.pid == mine.pid && holder.started == mine.started) {
    const std::lock_guard guard(held_tokens().mutex);
    return !held_tokens().all.contains(holder.token);
  }
  if (::kill(static_cast<pid_t>(holder.pid), 0) != 0 && errno == ESRCH) return true;
  return holder.started != "-" && start_of(holder.pid) != holder.started;
}

Status is_held(const std::string& name, const LockHolder& holder, const LockHolder& mine) {
  if (holder.host == mine.host && holder.pid == mine.pid)
    return {Code::state, cat("lock ", name, ": held by this process itself, ", holder.name(),
                             "; close what it has open under this name first")};
  if (holder.host == mine.host)
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
    const Result<std::optional<ObjectService::Whole>> found = service_->get(name_);
    Status removed = found.status();
    if (found.is_ok() && found->has_value()) {
      const Result<LockHolder> now = parse_holder(name_, (*found)->bytes);
      if (now.is_ok() && now->token == holder_.token) removed = service_->remove(name_);
    }
    if (!removed.is_ok())
      log(LogLevel::warn, cat("lock ", name_, ": is given back, and its object stays: ", removed.text()));
    const std::lock_guard guard(held_tokens().mutex);
    held_tokens().all.erase(holder_.token);
  }

 private:
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
    const Result<bool> taken = service->put_if({name, std::as_bytes(std::span(text))}, version);
    TR_TRY(taken.status());
    if (*taken) return std::shared_ptr<void>(std::move(lock));
  }
  return Status(Code::state, cat("lock ", name, ": others take it and give it back all the time; try again"));
}

}  // namespace tailrace::storage
