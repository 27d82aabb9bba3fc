// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "keeper.hpp"

#include "packet.hpp"
#include "pid_namespace.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tailrace::run {

namespace {

/// How long the keeper keeps a description that no process holds. A program takes less time from its start
/// until it tells which descriptions it has inherited, also on a node that is short of memory.
constexpr std::chrono::seconds inheritance_time{60};
constexpr std::size_t most_left = 1000;

/// The data of an event is the number of the peer. With this bit its process has ended, without it its socket
/// has a packet or is closed.
constexpr std::uint64_t process_event = std::uint64_t{1} << 63;

std::string link_of(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

/// Returns a descriptor that keeps a file for heirs, also if the file is removed, or -1. The kernel runs no
/// program file that any process has open for writing (ETXTBSY). So the descriptor is one that can neither
/// read nor write (O_PATH), unless the file's mode would not let the keeper open the file again.
int spare_of(const KeptFile& file) {
  const std::string link = link_of(file.descriptor);
  const int access = file.is_writable ? R_OK | W_OK : R_OK;
  if (faccessat(AT_FDCWD, link.c_str(), access, AT_EACCESS) == 0) {
    const int spare = ::open(link.c_str(), O_PATH | O_CLOEXEC);
    if (spare >= 0) return spare;
  }
  return fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0);
}

bool is_out_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

/// Raises the keeper's limit on the size of files, which counts for the shared memory and for all bytes that
/// the keeper stores. The library in each program applies the program's own limit.
void raise_file_limit() {
  const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
  rlimit limit = {};
  if (setrlimit(RLIMIT_FSIZE, &none) == 0 || getrlimit(RLIMIT_FSIZE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_FSIZE, &limit);
}

void tell_no_memory(int error) {
  rlimit limit = {};
  if (error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0) {
    std::fprintf(stderr,
                 "tailrace run: no memory for pages: the limit on the size of files (ulimit -f, "
                 "RLIMIT_FSIZE) is %llu bytes, and counts for the memory that processes share: raise it, or "
                 "give --page a smaller one\n",
                 static_cast<unsigned long long>(limit.rlim_cur));
    return;
  }
  std::fprintf(stderr, "tailrace run: no memory for pages (%s); --memory takes less\n", std::strerror(error));
}

}  // namespace

Keeper::~Keeper() {
  if (waiter_ >= 0) ::close(waiter_);
  if (reserve_ >= 0) ::close(reserve_);
  ::close(listener_);
}

int Keeper::start() {
  for (std::uint32_t number = 0; number < most_descriptions; ++number) unused_.push_back(number);
  for (std::uint32_t number = most_processes; number-- > 0;) counters_unused_.push_back(number);
  // The keeper needs two descriptors for each process, and some for each file: more than the usual limit.
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    most_left_ = std::min<std::size_t>(most_left, limit.rlim_cur / 8);
  }
  raise_file_limit();
  if (const int error = pages_.make(plan_.memory, plan_.page); error != 0) return error;
  reserve_ = fcntl(listener_, F_DUPFD_CLOEXEC, 0);
  waiter_ = epoll_create1(EPOLL_CLOEXEC);
  if (waiter_ < 0) return errno;
  const auto own = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  own_numbers_ = numbers_of(getpid(), own);
  if (own >= 0) ::close(own);
  epoll_event event = {};
  event.events = EPOLLIN;
  return epoll_ctl(waiter_, EPOLL_CTL_ADD, listener_, &event) == 0 ? 0 : errno;
}

int Keeper::serve() {
  if (const int error = start(); error != 0) {
    tell_no_memory(error);
    return 1;
  }
  while (!has_served_ || members() > 0) {
    epoll_event events[64];
    // While a launcher waits for the answer to `leave`, the keeper does not sleep: it answers once no event
    // is left.
    const int wait_ms = !leaving_.empty() ? 0 : left_.empty() ? -1 : 500;
    const Clock::time_point asked = Clock::now();
    const int found = epoll_wait(waiter_, events, 64, wait_ms);
    if (found < 0 && errno != EINTR) break;
    for (int each = 0; each < found; ++each) {
      const std::uint64_t about = events[each].data.u64;
      if (about == 0) {
        accept_peer();
        continue;
      }
      const auto peer = peers_.find(about & ~process_event);
      if (peer == peers_.end()) continue;
      if ((about & process_event) != 0) {
        ended(*peer->second);
      } else {
        (void)receive(*peer->second);
      }
    }
    erase_forgotten();
    // Only after all requests: a program may have told in one of them that it has inherited a description. If
    // requests never end, the keeper frees only descriptions that were past their time before it asked for
    // events.
    free_descriptions(found <= 0 ? most_left_ : left_.size(), asked);
    if (found <= 0) finish_leaving();
  }
  if (!has_printed_) print_summary();
  return failures_ == 0 ? 0 : 1;
}

void Keeper::accept_peer() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) {
    if (is_out_of_descriptors(errno)) turn_away(errno);
    return;
  }
  ucred who = {};
  socklen_t length = sizeof(who);
  // Otherwise another user could make this keeper write to files of its user.
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 || who.uid != geteuid()) {
    ::close(socket);
    return;
  }
  auto peer = std::make_unique<Peer>();
  peer->socket = socket;
  peer->process = who.pid;
  peer->is_foreign = who.pid == 0;
  if (who.pid != 0) {
    peer->process_descriptor = static_cast<int>(syscall(SYS_pidfd_open, who.pid, 0));
    const bool is_watched = peer->process_descriptor >= 0 || !is_out_of_descriptors(errno);
    // Locks find out by the thread's number whether their holder goes on, and the keeper by the process's
    // number whether it has ended. So all processes must be in one PID namespace, where they have the same
    // numbers. The number of a process that cannot be seen from here is 0.
    const int numbers = is_watched ? numbers_of(who.pid, peer->process_descriptor) : -1;
    if (numbers < 0 && is_out_of_descriptors(errno)) {
      tell_full(errno);
      ::close(socket);
      if (peer->process_descriptor >= 0) ::close(peer->process_descriptor);
      return;
    }
    peer->is_foreign = numbers > own_numbers_;
  }
  const std::uint64_t number = next_peer_++;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = number;
  epoll_ctl(waiter_, EPOLL_CTL_ADD, socket, &event);
  if (peer->process_descriptor >= 0) {
    event.data.u64 = number | process_event;
    epoll_ctl(waiter_, EPOLL_CTL_ADD, peer->process_descriptor, &event);
  }
  if (!peer->is_foreign) has_served_ = true;
  peers_.emplace(number, std::move(peer));
}

std::size_t Keeper::members() const {
  return static_cast<std::size_t>(
      std::count_if(peers_.begin(), peers_.end(), [](const auto& peer) { return !peer.second->is_foreign; }));
}

/// Closes the connection of a process that the keeper cannot serve for lack of descriptors, so that the
/// process does not wait for an answer.
void Keeper::turn_away(int error) {
  if (reserve_ >= 0) ::close(reserve_);
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket >= 0) ::close(socket);
  reserve_ = fcntl(listener_, F_DUPFD_CLOEXEC, 0);
  tell_full(error);
}

void Keeper::tell_full(int error) {
  ++failures_;
  if (has_turned_away_) return;
  has_turned_away_ = true;
  std::fprintf(stderr,
               "tailrace run: the keeper cannot serve another process with %zu (%s): raise the hard limit of "
               "open files (ulimit -Hn), or start fewer\n",
               peers_.size(), std::strerror(error));
}

/// Handles one request of a peer. Returns false if there was none.
bool Keeper::receive(Peer& peer) {
  Request request;
  Packet packet(&request, sizeof(request));
  if (peer.socket < 0) return false;
  const ssize_t got = recvmsg(peer.socket, packet.message(), MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (got < static_cast<ssize_t>(offsetof(Request, text))) {
    lost(peer);
    return true;
  }
  request.text[sizeof(request.text) - 1] = '\0';
  handle(peer, request, packet.descriptor());
  return true;
}

void Keeper::handle(Peer& peer, const Request& request, int descriptor) {
  if (peer.is_foreign) {
    Answer answer;
    answer.error = EXDEV;
    reply(peer, answer, -1);
    if (descriptor >= 0) ::close(descriptor);
    return;
  }
  if (request.op == Op::leave) {
    leaving_.push_back(&peer);
    return;
  }
  Answer answer;
  int lent = -1;
  if (request.op == Op::hello) {
    answer.error = hello(peer, request.a != 0, answer);
    lent = pages_.descriptor();
  } else {
    answer.error = perform(peer, request, descriptor, answer);
    if (request.op == Op::lend && answer.error == 0) lent = pages_.kept(request.file).descriptor;
    if (request.op == Op::lend_lock) answer.error = lend_lock(peer, request, lent);
  }
  if (descriptor >= 0) ::close(descriptor);
  reply(peer, answer, lent);
}

int Keeper::perform(Peer& peer, const Request& request, int& descriptor, Answer& answer) {
  const bool names_file = request.op != Op::open && request.op != Op::attach && request.op != Op::close &&
                          request.op != Op::join && request.op != Op::lend_lock;
  if (names_file && (request.file >= most_files || !pages_.arena().files[request.file].is_open)) return EBADF;
  switch (request.op) {
    case Op::join:
      if (plan_.group.substr(0, sizeof(request.text) - 1) != request.text) return EEXIST;
      peer.is_launcher = true;
      return 0;
    case Op::open:
      return open(peer, request, descriptor, answer);
    case Op::attach:
      return attach(peer, static_cast<std::uint64_t>(request.b), answer);
    case Op::close:
      return close(peer, request.file);
    case Op::bring_in:
      return retried([&] {
        const auto page = static_cast<std::uint64_t>(request.a);
        return pages_.bring_in(request.file, page, {request.from, request.to}, request.b != 0,
                               request.c != 0);
      });
    case Op::cut:
      return pages_.cut(request.file, request.a);
    case Op::sync:
      return retried([&] { return request.a != 0 ? pages_.sync(request.file) : pages_.store(request.file); });
    case Op::reserve:
      return retried([&] { return pages_.reserve(request.file, request.a, request.b); });
    case Op::unlock:
      unlock(peer, request.file);
      return 0;
    default:
      return 0;
  }
}

void Keeper::reply(const Peer& peer, const Answer& answer, int descriptor) {
  Packet packet(&answer, sizeof(answer), descriptor);
  // If the answer cannot be sent, the process has gone: an event of its socket tells it next.
  (void)sendmsg(peer.socket, packet.message(), MSG_NOSIGNAL);
}

int Keeper::hello(Peer& peer, bool is_first, Answer& answer) {
  if (is_first) has_started_ = true;
  if (peer.counters == nobody) {
    if (counters_unused_.empty()) return EAGAIN;
    peer.counters = counters_unused_.back();
    counters_unused_.pop_back();
  }
  // The program that this process ran before has ended by exec: the new program inherits its descriptors.
  for (auto& [number, other] : peers_) {
    if (other.get() == &peer || other->process != peer.process || other->socket >= 0 || other->is_launcher)
      continue;
    peer.descriptions.insert(other->descriptions.begin(), other->descriptions.end());
    other->descriptions.clear();
    peer.locks.merge(other->locks);
    forget(*other);
  }
  answer.process = peer.counters;
  answer.bytes = pages_.arena().total_bytes;
  return 0;
}

/// Does work that needs room on storage. If the disk is full, frees room of removed files, if there are any,
/// and does the work again.
template <class Work>
int Keeper::retried(const Work& work) {
  const int error = work();
  if ((error != ENOSPC && error != EDQUOT) || !free_removed()) return error;
  return work();
}

int Keeper::open(Peer& peer, const Request& request, int& descriptor, Answer& answer) {
  if (descriptor < 0) return EMFILE;  // the program has sent one, but the keeper had no number left for it
  if (unused_.empty()) free_descriptions(left_.size() / 2, Clock::now());
  if (unused_.empty()) return ENFILE;
  std::uint32_t file = nobody;
  const int error = pages_.open(descriptor, request.text, file);
  if (error != 0) return error;
  descriptor = -1;
  if ((request.a & O_TRUNC) != 0) {
    if (const int failed = pages_.cut(file, 0); failed != 0) {
      if (pages_.kept(file).descriptions == 0) (void)pages_.close(file);
      return failed;
    }
  }
  ++pages_.kept(file).descriptions;
  const std::uint32_t number = unused_.front();
  unused_.pop_front();
  kept_[number] = {};
  kept_[number].holders = 1;
  kept_[number].path = request.text;
  Description& description = pages_.arena().descriptions[number];
  description.file = file;
  description.flags = static_cast<int>(request.a);
  description.offset.set(0);
  description.inode = static_cast<std::uint64_t>(request.b);
  peer.descriptions.insert(number);
  paths_.insert(request.text);
  answer.file = file;
  answer.description = number;
  return 0;
}

/// Returns a descriptor for locks, for which it opens the file of the description again. Locks of an open
/// file description end with its last descriptor, and those of a process as soon as it closes any descriptor
/// of the file. So the keeper's other descriptors of the file do not do.
int Keeper::lend_lock(Peer& peer, const Request& request, int& lent) {
  if (!peer.descriptions.contains(request.file)) return EBADF;
  const std::uint32_t file = pages_.arena().descriptions[request.file].file;
  int& own = request.a != 0 ? peer.locks.try_emplace(file, -1).first->second : kept_[request.file].lock;
  const std::string link = link_of(pages_.kept(file).descriptor);
  if (own < 0) own = ::open(link.c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0) own = ::open(link.c_str(), O_RDONLY | O_CLOEXEC);
  lent = own;
  return own < 0 ? errno : 0;
}

void Keeper::unlock(Peer& peer, std::uint32_t file) {
  const auto found = peer.locks.find(file);
  if (found == peer.locks.end()) return;
  if (found->second >= 0) ::close(found->second);
  peer.locks.erase(found);
}

int Keeper::close(Peer& peer, std::uint32_t number) {
  if (peer.descriptions.erase(number) == 0) return EBADF;
  unlock(peer, pages_.arena().descriptions[number].file);
  return let_go(number);
}

/// Makes a program a holder of the description with this placeholder, which the program has inherited.
int Keeper::attach(Peer& peer, std::uint64_t inode, Answer& answer) {
  for (std::uint32_t number = 0; number < most_descriptions; ++number) {
    Description& description = pages_.arena().descriptions[number];
    if (description.inode != inode || inode == 0) continue;
    Kept& kept = kept_[number];
    if (kept.holders == 0) {
      std::uint32_t file = nobody;
      if (const int error = reopen(kept, file); error != 0) return error;
      std::erase(left_, number);
      description.file = file;
      ++pages_.kept(file).descriptions;
    }
    if (peer.descriptions.insert(number).second) ++kept.holders;
    answer.file = description.file;
    answer.description = number;
    return 0;
  }
  return ENOENT;
}

/// Opens the file of a description again that no process has held for a while.
int Keeper::reopen(Kept& kept, std::uint32_t& file) {
  int descriptor = kept.spare;
  if ((fcntl(kept.spare, F_GETFL) & O_PATH) != 0)
    descriptor = ::open(link_of(kept.spare).c_str(), (kept.is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int error = pages_.open(descriptor, kept.path, file);
  if (descriptor != kept.spare) ::close(error == 0 ? kept.spare : descriptor);
  if (error == 0) kept.spare = -1;
  return error;
}

/// Counts one holder less of a description. With the last holder of a file's last description the file's
/// changed pages are stored, and it is closed.
int Keeper::let_go(std::uint32_t number) {
  Kept& kept = kept_[number];
  if (--kept.holders > 0) return 0;
  if (kept.lock >= 0) ::close(kept.lock);
  kept.lock = -1;
  const std::uint32_t file = pages_.arena().descriptions[number].file;
  // Before this description is in left_: retried() could give its room back. close() reports an error.
  if (pages_.kept(file).descriptions == 1) (void)retried([&] { return pages_.store(file); });
  kept.is_writable = pages_.kept(file).is_writable;
  kept.spare = spare_of(pages_.kept(file));
  left_.push_back(number);
  int error = 0;
  const std::string path = pages_.kept(file).path;
  if (--pages_.kept(file).descriptions == 0) error = pages_.close(file);
  // The time begins only now: storing may have taken long.
  kept.left = Clock::now();
  // Also here, so that left descriptions do not take all descriptors while requests never end.
  if (left_.size() > 2 * most_left_) free_descriptions(most_left_, kept.left);
  if (error != 0) failed(path, "cannot be stored", error);
  return error;
}

void Keeper::free_description(std::uint32_t number) {
  Kept& kept = kept_[number];
  if (kept.spare >= 0) ::close(kept.spare);
  kept.spare = -1;
  pages_.arena().descriptions[number].inode = 0;
  unused_.push_back(number);
}

/// Frees the left descriptions that no program has inherited in time by `now`, and the oldest of the others
/// if they are more than `most`.
void Keeper::free_descriptions(std::size_t most, Clock::time_point now) {
  while (!left_.empty()) {
    if (left_.size() <= most && now - kept_[left_.front()].left < inheritance_time) break;
    free_description(left_.front());
    left_.pop_front();
  }
}

/// Frees the left descriptions of removed files, which gives their room back to storage. Returns false if
/// there are none.
bool Keeper::free_removed() {
  const auto is_removed = [&](std::uint32_t number) {
    struct stat status = {};
    if (fstat(kept_[number].spare, &status) != 0 || status.st_nlink != 0) return false;
    free_description(number);
    return true;
  };
  return std::erase_if(left_, is_removed) > 0;
}

/// Handles the end of a peer's socket: the process has ended, or exec has begun another program in it, which
/// connects with a socket of its own.
void Keeper::lost(Peer& peer) {
  ::close(peer.socket);
  peer.socket = -1;
  std::erase(leaving_, &peer);
  count(peer.counters);
  peer.counters = nobody;
  if (peer.process_descriptor < 0 || peer.is_launcher || peer.descriptions.empty()) forget(peer);
}

void Keeper::ended(Peer& peer) {
  // The keeper hears the last request of the process first.
  if (peer.socket >= 0 && receive(peer)) return;
  if (peer.socket >= 0) lost(peer);
  forget(peer);
}

void Keeper::forget(Peer& peer) {
  while (!peer.locks.empty()) unlock(peer, peer.locks.begin()->first);
  for (const std::uint32_t number : peer.descriptions) (void)let_go(number);
  peer.descriptions.clear();
  if (peer.process_descriptor >= 0) ::close(peer.process_descriptor);
  peer.process_descriptor = -1;
  peer.is_forgotten = true;
}

void Keeper::erase_forgotten() {
  std::erase_if(peers_, [](const auto& peer) { return peer.second->is_forgotten; });
}

void Keeper::finish_leaving() {
  if (leaving_.empty()) return;
  const bool is_last = leaving_.size() == members();
  if (is_last) print_summary();
  has_printed_ = is_last;
  for (Peer* peer : leaving_) {
    Answer answer;
    answer.error = failures_ != 0 ? EIO : 0;
    answer.file = has_started_ ? 1 : 0;
    reply(*peer, answer, -1);
    ::close(peer->socket);
    peer->socket = -1;
    forget(*peer);
  }
  leaving_.clear();
  erase_forgotten();
}

void Keeper::count(std::uint32_t number) {
  if (number == nobody) return;
  Counters& counters = pages_.arena().processes[number];
  reads_ += counters.reads.exchange(0);
  writes_ += counters.writes.exchange(0);
  read_bytes_ += counters.read_bytes.exchange(0);
  written_bytes_ += counters.written_bytes.exchange(0);
  others_ += counters.others.exchange(0);
  locks_refused_ += counters.locks_refused.exchange(0);
  maps_refused_ += counters.maps_refused.exchange(0);
  others_refused_ += counters.others_refused.exchange(0);
  // With a new epoch, locks that the process has left behind have a holder that has ended.
  ++counters.epoch;
  counters_unused_.push_back(number);
}

void Keeper::failed(const std::string& path, const char* what, int error) {
  ++failures_;
  std::fprintf(stderr, "tailrace run: %s %s: %s\n", path.c_str(), what, std::strerror(error));
}

}  // namespace tailrace::run
