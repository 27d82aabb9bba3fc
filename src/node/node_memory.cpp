// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "node/node_memory.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <utility>

#include "base/text.hpp"
#include "comm/switchboard.hpp"
#include "node/huge_pages.hpp"

namespace tailrace::node {

namespace {

constexpr Bytes huge_page = Bytes{2} << 20;
constexpr Bytes small_page = 65536;  // a multiple of the page size of every processor

/// Makes an address in the abstract namespace: it is no file and vanishes with its socket (unix(7)).
socklen_t abstract_address(std::uint64_t token, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string name = cat("tailrace-", token);
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

constexpr std::string_view memory_name = "the node's staging memory";

/// A message of one byte with room for a descriptor. The descriptor travels only with at least one byte
/// (unix(7)).
struct DescriptorMessage {
  DescriptorMessage() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;

  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
};

Status send_descriptor(int socket, int descriptor) {
  DescriptorMessage message;
  cmsghdr* header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  if (::sendmsg(socket, &message.header, MSG_NOSIGNAL) < 0) return io_error("sendmsg", memory_name, errno);
  return {};
}

using Clock = std::chrono::steady_clock;

/// The longest time for which a rank waits for another one while the memory is handed round.
constexpr std::chrono::seconds handover_limit{60};

/// Waits until there is something to take from `socket`.
Status wait_for_input(int socket, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry{socket, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return io_error("poll", memory_name, errno);
    if (Clock::now() < deadline) continue;
    return Status(Code::timeout, cat("no rank of this node has handed over ", memory_name, " within ",
                                     handover_limit.count(), " s"));
  }
}

Result<int> receive_descriptor(int socket) {
  DescriptorMessage message;
  const ssize_t received = ::recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC);
  if (received < 0) return io_error("recvmsg", memory_name, errno);
  if (received == 0) {
    return Status(Code::io, cat("the node's first rank gave up before it had handed over ", memory_name));
  }
  const cmsghdr* header = CMSG_FIRSTHDR(&message.header);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) {
    // The kernel leaves out a descriptor if the process has no room for it (MSG_CTRUNC in recvmsg(2)).
    return (message.header.msg_flags & MSG_CTRUNC) != 0
               ? io_error("take the descriptor of", memory_name, EMFILE)
               : Status(Code::memory, cat("no descriptor of ", memory_name, " arrived"));
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return descriptor;
}

/// Returns the next process that has connected, or -1 if there is none now. The first rank's socket accepts
/// only processes of its own user: abstract addresses have no permissions. `other_user` is that of a process
/// that it has turned away.
Result<int> accept_own(int listener, std::optional<uid_t>& other_user) {
  for (;;) {
    const int peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return -1;
    if (peer < 0) return io_error("accept", memory_name, errno);
    ucred who{};
    socklen_t length = sizeof who;
    if (::getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == ::geteuid())
      return peer;
    if (length == sizeof who) other_user = who.uid;
    ::close(peer);
  }
}

Status several_users(uid_t other) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return {Code::state,
          cat("ranks on host ", static_cast<const char*>(host), " run as users ", ::geteuid(), " and ", other,
              ", and ranks of different users share no memory: start all ranks of a host as one "
              "user, and change no rank's user before tr_init")};
}

/// The memfd, and its way from the node's first rank to the others.
struct Handover {
  int descriptor = -1;
  int listener = -1;  // of the first rank
  int socket = -1;    // of the others
  int given = 0;      // ranks that have got the descriptor
  std::optional<uid_t> other_user;
  std::uint64_t token = 0;

  Handover() = default;
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;
  ~Handover() {
    hang_up();
    if (descriptor >= 0) ::close(descriptor);
  }

  /// Every rank that still waits for this one learns that nothing comes.
  void hang_up() {
    if (listener >= 0) ::close(std::exchange(listener, -1));
    if (socket >= 0) ::close(std::exchange(socket, -1));
  }

  Status make(Bytes size) {
    descriptor = ::memfd_create("tailrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) return io_error("memfd_create", memory_name, errno);
    if (::ftruncate(descriptor, size) != 0) return io_error("ftruncate", memory_name, errno);
    ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    std::random_device random;
    token = (std::uint64_t{random()} << 32) | random();
    sockaddr_un address;
    const socklen_t length = abstract_address(token, address);
    listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || ::bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::listen(listener, 4096) != 0) {
      return io_error("listen", memory_name, errno);
    }
    return {};
  }

  /// Waits only if more ranks have connected, and not been answered yet, than the system queues (somaxconn).
  Status connect() {
    sockaddr_un address;
    const socklen_t length = abstract_address(token, address);
    socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{handover_limit.count(), 0};
    if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0)
      return io_error("connect", memory_name, errno);
    // With a limit of time, a signal interrupts connect(2) even if SA_RESTART is set (signal(7)).
    for (int interrupted = 0; interrupted < 10'000; ++interrupted) {
      if (::connect(socket, reinterpret_cast<sockaddr*>(&address), length) == 0) return {};
      if (errno != EINTR) break;
    }
    return io_error("connect", memory_name, errno);
  }

  /// Gives the descriptor to the ranks that have connected, after waiting until `deadline` for the first.
  Status answer(Clock::time_point deadline) {
    TR_TRY(wait_for_input(listener, deadline));
    for (;;) {
      const Result<int> peer = accept_own(listener, other_user);
      TR_TRY(peer.status());
      if (*peer < 0) return {};
      const Status sent = send_descriptor(*peer, descriptor);
      ::close(*peer);
      TR_TRY(sent);
      ++given;
    }
  }

  /// Call it when all of them have connected. A rank that was turned away does not come again.
  Status give(int peers) {
    const Clock::time_point deadline = Clock::now() + handover_limit;
    while (given < peers) {
      const Status answered = answer(other_user ? Clock::now() : deadline);
      if (answered.code() == Code::timeout && other_user) return several_users(*other_user);
      TR_TRY(answered);
    }
    return {};
  }

  /// Moves everything else on while it waits for the first rank.
  Status take(comm::Switchboard& board) {
    const Clock::time_point deadline = Clock::now() + handover_limit;
    Status here;
    board.wait(
        [&] {
          here = wait_for_input(socket, Clock::now());
          return here.code() != Code::timeout || Clock::now() >= deadline;
        },
        "the first rank of this node to hand over memory");
    TR_TRY(here);
    Result<int> received = receive_descriptor(socket);
    TR_TRY(received.status());
    descriptor = *received;
    return {};
  }
};

constexpr const char* memory_call = "the start of memory that a node's ranks share";

/// Returns success if every rank of the node has connected. The first rank answers meanwhile: a queue of
/// connections may be shorter than the node has ranks. A rank that cannot go on says so here, and nobody
/// waits for it. `answering` is the reason why the first rank stopped answering; a rank may have hung up.
Status all_connect(comm::Line& node, Handover& handover, const Status& mine, Status& answering) {
  const std::uint64_t vote = node.agreements().post({mine, memory_call, {}});
  std::optional<comm::Verdict> verdict;
  node.board().wait(
      [&] {
        if (handover.listener >= 0) {
          const Status answered = handover.answer(Clock::now());
          if (!answered.is_ok() && answered.code() != Code::timeout) {
            answering = answered;
            handover.hang_up();
          }
        }
        return (verdict = node.agreements().take(vote)).has_value();
      },
      "the other ranks of this node to share memory", [&] { return node.agreements().missing_text(vote); });
  return verdict->status;
}

/// Maps at a multiple of the size of huge pages: elsewhere the kernel would map each of them as 512 small
/// ones.
void* map_aligned(int descriptor, std::size_t length) {
  const std::size_t room = length + huge_page;
  void* const reserved = ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return MAP_FAILED;
  auto* const begin = static_cast<std::byte*>(reserved);
  const std::size_t ahead = (huge_page - reinterpret_cast<std::uintptr_t>(begin) % huge_page) % huge_page;
  void* const mapped =
      ::mmap(begin + ahead, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    ::munmap(reserved, room);
    errno = error;
    return MAP_FAILED;
  }
  if (ahead > 0) ::munmap(begin, ahead);
  ::munmap(begin + ahead + length, huge_page - ahead);
  return mapped;
}

}  // namespace

Result<std::unique_ptr<NodeMemory>> NodeMemory::create(comm::Line& node, std::span<const Bytes> bytes,
                                                       bool huge_pages, Bytes at_once, const Status& ready,
                                                       Growth growth) {
  std::unique_ptr<NodeMemory> memory(new NodeMemory());
  memory->growth_ = growth;
  memory->huge_pages_ = huge_pages;
  if (const Status status = memory->open(node, bytes, at_once, ready); !status.is_ok()) return status;
  return memory;
}

NodeMemory::~NodeMemory() {
  if (base_ != nullptr) ::munmap(base_, static_cast<std::size_t>(size()));
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status NodeMemory::open(comm::Line& node, std::span<const Bytes> bytes, Bytes at_once, const Status& ready) {
  const int rank = node.rank();
  offsets_.assign(1, 0);
  for (const Bytes part : bytes) offsets_.push_back(offsets_.back() + whole_pages(part));
  Handover handover;
  const Status made = ready.is_ok() && rank == 0 ? handover.make(size()) : ready;
  Packer told;
  told.put(handover.token);
  const comm::Verdict first = node.agree({made, memory_call, rank == 0 ? told.take() : ByteVector()});
  TR_TRY(first.status);
  Unpacker in(first.contributions.front());
  handover.token = in.get<std::uint64_t>();
  Status mine = rank == 0 ? Status() : handover.connect();
  Status answering;
  const bool all = all_connect(node, handover, mine, answering).is_ok();
  // If a rank has a cause of its own, it is the first cause. Peers that hung up tell theirs themselves.
  const bool hung_up = answering.error_number() == EPIPE || answering.error_number() == ECONNRESET;
  if (rank == 0 && (all || !hung_up)) mine = answering;
  if (all && mine.is_ok())
    mine = rank == 0 ? handover.give(static_cast<int>(bytes.size()) - 1) : handover.take(node.board());
  handover.hang_up();
  descriptor_ = std::exchange(handover.descriptor, -1);
  if (all && mine.is_ok()) mine = map(rank, at_once);
  return node.agree({mine, memory_call, {}}).status;
}

Bytes NodeMemory::whole_pages(Bytes bytes) const {
  const Bytes page = huge_pages_ ? huge_page : small_page;
  return (bytes + page - 1) / page * page;
}

/// Maps the whole, and allocates the first bytes of this rank's part.
Status NodeMemory::map(int rank, Bytes at_once) {
  const auto length = static_cast<std::size_t>(size());
  void* const mapped = map_aligned(descriptor_, length);
  if (mapped == MAP_FAILED) return io_error("mmap", memory_name, errno);
  base_ = static_cast<std::byte*>(mapped);
  if (huge_pages_)
    ::madvise(mapped, length, MADV_HUGEPAGE);  // a kernel without huge pages refuses: nothing is lost
  const Bytes part = offsets_[static_cast<std::size_t>(rank)];
  end_ = offsets_[static_cast<std::size_t>(rank) + 1];
  begin_ = at_once >= end_ - part ? end_ : part + whole_pages(at_once);
  TR_TRY(allocate(part, begin_));
  if (left() == 0 && growth_ == Growth::by_owner) ::close(std::exchange(descriptor_, -1));
  return {};
}

Status NodeMemory::allocate() {
  if (left() == 0) return {};
  TR_TRY(allocate(begin_, end_));
  begin_ = end_;
  ::close(std::exchange(descriptor_, -1));
  return {};
}

Status NodeMemory::allocate(Bytes from, Bytes to) {
  const Bytes bytes = to - from;
  if (bytes == 0) return {};
  // Page tables are made too: a first touch inside a capture would cost as much as the capture itself.
  const auto populate = [&] {
    return ::madvise(base_ + from, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE) == 0;
  };
  // fallocate does not know of the advice and would take small pages (shmem_is_huge in Linux' mm/shmem.c).
  if (huge_pages_ && populate()) return {};
  int error = 0;
  do error = ::posix_fallocate(descriptor_, from, bytes);
  while (error == EINTR);  // a signal came
  if (error != 0) {
    // posix_fallocate keeps the pages that it got before the memory ran out, and nobody would use them.
    ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, bytes);
    const std::string_view way_out =
        growth_ == Growth::by_any ? "): give the shared file less with memory="
                                  : "): set TAILRACE_STAGING lower, or TAILRACE_IO_BUFFER if it is for "
                                    "collective files";
    return Status(
        Code::memory,
        cat(growth_ == Growth::by_any ? "memory" : "staging memory", " of ", bytes,
            " bytes is not to be had on this node (", std::string_view(std::strerror(error)), way_out),
        error);
  }
  if (populate()) return {};
  for (Bytes at = from; at < to; at += 4096) base_[at] = std::byte{0};
  return {};
}

void NodeMemory::map_all() { ::madvise(base_, static_cast<std::size_t>(size()), MADV_POPULATE_WRITE); }

Bytes NodeMemory::huge_bytes() const {
  std::ifstream smaps("/proc/self/smaps");
  const auto from = reinterpret_cast<std::uintptr_t>(base_);
  return huge_bytes_in(smaps, from, from + static_cast<std::uintptr_t>(size()));
}

}  // namespace tailrace::node
