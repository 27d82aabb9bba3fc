// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/node_memory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/comm/switchboard.hpp"
#include "ground/node/descriptor_socket.hpp"
#include "ground/node/huge_pages.hpp"

namespace tailrace::node {

namespace {

constexpr Bytes huge_page = Bytes{2} << 20;
constexpr Bytes small_page = 65536;  // a multiple of the page size of every processor

constexpr std::string_view memory_name = "the node's staging memory";

using Clock = DescriptorSocket::Clock;

/// Keeps SIGXFSZ from the calling thread, because it would end the program without a message.
class NoSizeSignal {
 public:
  NoSizeSignal() {
    sigset_t pending;
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    was_pending_ = ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 1;
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoSizeSignal() {
    constexpr timespec at_once = {};
    if (!was_pending_) ::sigtimedwait(&signal_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t signal_ = {}, before_ = {};
  bool was_pending_ = false;
};

/// Gives the memory its size. Returns 0 or errno. The limit on the size of files applies although no file
/// grows. If the soft limit is too low, it is raised to the hard limit for the moment.
int set_size(int descriptor, Bytes size) {
  const NoSizeSignal held;
  const auto set = [&] { return ::ftruncate(descriptor, size) == 0 ? 0 : errno; };
  const int error = set();
  rlimit limit = {};
  if (error != EFBIG || ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
    return error;
  const rlimit lifted = {limit.rlim_max, limit.rlim_max};
  if (::setrlimit(RLIMIT_FSIZE, &lifted) != 0) return error;
  const int second = set();
  ::setrlimit(RLIMIT_FSIZE, &limit);
  return second;
}

constexpr std::string_view way_out =
    "set TAILRACE_STAGING lower, TAILRACE_IO_BUFFER if it is for collective files, memory= of shared files, "
    "or "
    "prefetch= of input streams";

Status no_size(Bytes size, int error) {
  rlimit limit = {};
  if (error != EFBIG || ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_max == RLIM_INFINITY)
    return io_error("ftruncate", memory_name, error);
  return {Code::memory,
          cat(counted(size, "byte"),
              " of memory that the ranks of this node share are not to be had: the limit on "
              "the size of files, which counts for memory too, is ",
              limit.rlim_max,
              " bytes. Raise it (`ulimit -f "
              "unlimited`; RLIMIT_FSIZE), or ",
              way_out),
          error};
}

Result<int> make_memory(Bytes size) {
  const int descriptor = ::memfd_create("tailrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return io_error("memfd_create", memory_name, errno);
  if (const int error = set_size(descriptor, size); error != 0) {
    ::close(descriptor);
    return no_size(size, error);
  }
  ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return descriptor;
}

Status several_users(uid_t other) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return {Code::state,
          cat("ranks on host ", static_cast<const char*>(host), " run as users ", ::geteuid(), " and ", other,
              ", and ranks of different users share no memory: start all ranks of a host as one "
              "user, and change no rank's user before tr_init")};
}

/// Gives the descriptor to all peers. Call it once all of them have connected.
Status give_to_all(DescriptorSocket& socket, int descriptor, int peers) {
  const Clock::time_point deadline = Clock::now() + DescriptorSocket::limit;
  while (socket.given() < peers) {
    const Status answered = socket.answer(descriptor, socket.other_user() ? Clock::now() : deadline);
    if (answered.code() == Code::timeout && socket.other_user()) return several_users(*socket.other_user());
    TR_TRY(answered);
  }
  return {};
}

/// Takes the descriptor from the first rank. Moves everything else on while it waits.
Result<int> take_descriptor(const DescriptorSocket& socket, comm::Switchboard& board) {
  const Clock::time_point deadline = Clock::now() + DescriptorSocket::limit;
  Status here;
  board.wait(
      [&] {
        here = socket.await(Clock::now());
        return here.code() != Code::timeout || Clock::now() >= deadline;
      },
      "the first rank of this node to hand over memory");
  TR_TRY(here);
  return socket.take();
}

constexpr const char* memory_call = "the start of memory that a node's ranks share";

/// Agrees on whether every rank of the node has connected. A rank that could not connect votes with the error
/// `mine`, and nobody waits for it. While it waits for the votes, the first rank answers the ranks that have
/// connected, because the queue of connections may be shorter than the node has ranks. If it has to stop
/// answering, for instance because a rank hung up, `answering` gets the reason.
Status all_connect(comm::Line& node, DescriptorSocket& socket, int descriptor, const Status& mine,
                   Status& answering) {
  const std::uint64_t vote = node.agreements().post({mine, memory_call, {}});
  std::optional<comm::Verdict> verdict;
  node.board().wait(
      [&] {
        if (socket.is_listening()) {
          const Status answered = socket.answer(descriptor, Clock::now());
          if (!answered.is_ok() && answered.code() != Code::timeout) {
            answering = answered;
            socket.hang_up();
          }
        }
        return (verdict = node.agreements().take(vote)).has_value();
      },
      "the other ranks of this node to share memory", [&] { return node.agreements().missing_text(vote); });
  return verdict->status;
}

/// Maps the memory at a multiple of the size of huge pages. At other addresses the kernel would map each huge
/// page as 512 small ones.
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
  DescriptorSocket socket(memory_name);
  Status made = ready;
  if (made.is_ok() && rank == 0) made = make(socket);
  const comm::Verdict first =
      node.agree({made, memory_call, rank == 0 ? Packer().put(socket.token()).take() : ByteVector()});
  TR_TRY(first.status);
  const auto token = Unpacker(first.contributions.front()).get<std::uint64_t>();
  Status mine = rank == 0 ? Status() : socket.connect(token);
  Status answering;
  const bool all = all_connect(node, socket, descriptor_, mine, answering).is_ok();
  // If a rank has an error of its own, that error is the first cause. A peer that hung up tells its error
  // itself.
  const bool hung_up = answering.error_number() == EPIPE || answering.error_number() == ECONNRESET;
  if (rank == 0 && (all || !hung_up)) mine = answering;
  if (all && mine.is_ok())
    mine = rank == 0 ? give_to_all(socket, descriptor_, static_cast<int>(bytes.size()) - 1)
                     : take_from(socket, node.board());
  socket.hang_up();
  if (all && mine.is_ok()) mine = map(rank, at_once);
  return node.agree({mine, memory_call, {}}).status;
}

Status NodeMemory::make(DescriptorSocket& socket) {
  const Result<int> made = make_memory(size());
  TR_TRY(made.status());
  descriptor_ = *made;
  return socket.listen();
}

Status NodeMemory::take_from(const DescriptorSocket& socket, comm::Switchboard& board) {
  const Result<int> taken = take_descriptor(socket, board);
  TR_TRY(taken.status());
  descriptor_ = *taken;
  return {};
}

Result<std::unique_ptr<NodeMemory>> NodeMemory::attach(int descriptor, Unpacker& told) {
  std::unique_ptr<NodeMemory> memory(new NodeMemory());
  memory->descriptor_ = descriptor;
  memory->growth_ = Growth::by_any;
  memory->huge_pages_ = told.get<bool>();
  memory->offsets_ = told.get_list<Bytes>();
  struct stat there = {};
  // An access beyond the end of the memory would raise SIGBUS.
  if (!told.ok() || memory->offsets_.size() < 2 || ::fstat(descriptor, &there) != 0 ||
      there.st_size != memory->size()) {
    return Status(Code::argument, "memory was handed over with a description that is not its own");
  }
  TR_TRY(memory->map());
  return memory;
}

void NodeMemory::tell(Packer& out) const { out.put(huge_pages_).put_list(std::span(offsets_)); }

Bytes NodeMemory::whole_pages(Bytes bytes) const {
  const Bytes page = huge_pages_ ? huge_page : small_page;
  return (bytes + page - 1) / page * page;
}

Status NodeMemory::map() {
  const auto length = static_cast<std::size_t>(size());
  void* const mapped = map_aligned(descriptor_, length);
  if (mapped == MAP_FAILED) return io_error("mmap", memory_name, errno);
  base_ = static_cast<std::byte*>(mapped);
  // A kernel without huge pages refuses: no harm is done.
  if (huge_pages_) ::madvise(mapped, length, MADV_HUGEPAGE);
  return {};
}

/// Maps the whole memory, and allocates the first bytes of this rank's part.
Status NodeMemory::map(int rank, Bytes at_once) {
  TR_TRY(map());
  const Bytes part = offsets_[static_cast<std::size_t>(rank)];
  const Bytes end = offsets_[static_cast<std::size_t>(rank) + 1];
  TR_TRY(allocate(part, at_once >= end - part ? end : std::min(part + whole_pages(at_once), end)));
  if (growth_ == Growth::none) ::close(std::exchange(descriptor_, -1));
  return {};
}

Status NodeMemory::allocate(Bytes from, Bytes to) {
  const Bytes bytes = to - from;
  if (bytes == 0) return {};
  // Also fills the page tables: a first touch inside a capture would cost as much as the capture itself.
  const auto populate = [&] {
    return ::madvise(base_ + from, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE) == 0;
  };
  // fallocate does not know of MADV_HUGEPAGE and would take small pages (shmem_is_huge in Linux' mm/shmem.c).
  if (huge_pages_ && populate()) return {};
  int error = 0;
  do error = ::posix_fallocate(descriptor_, from, bytes);
  while (error == EINTR);  // a signal came
  if (error != 0) {
    // posix_fallocate keeps the pages that it got before memory ran out, although nobody would use them.
    ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, bytes);
    return Status(Code::memory,
                  cat("memory of ", size_text(bytes), " is not to be had on this node (",
                      std::string_view(std::strerror(error)), "): ", way_out),
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
