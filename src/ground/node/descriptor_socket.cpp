// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/descriptor_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "ground/base/text.hpp"

namespace tailrace::node {

namespace {

/// Makes an address in the abstract namespace. It is no file, and vanishes with its socket (unix(7)).
socklen_t abstract_address(std::uint64_t token, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string name = cat("tailrace-", token);
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

/// A message of one byte with room for a descriptor, because a descriptor travels only with at least one byte
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

Status wait_for_input(int socket, DescriptorSocket::Clock::time_point deadline, std::string_view name) {
  using Clock = DescriptorSocket::Clock;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry{socket, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return io_error("poll", name, errno);
    if (Clock::now() < deadline) continue;
    return Status(Code::timeout, cat("no rank of this node has handed over ", name, " within ",
                                     DescriptorSocket::limit.count(), " s"));
  }
}

}  // namespace

void DescriptorSocket::hang_up() {
  if (listener_ >= 0) ::close(std::exchange(listener_, -1));
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

Status DescriptorSocket::listen() {
  std::random_device random;
  token_ = (std::uint64_t{random()} << 32) | random();
  sockaddr_un address;
  const socklen_t length = abstract_address(token_, address);
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener_, 4096) != 0) {
    return io_error("listen", name_, errno);
  }
  return {};
}

Status DescriptorSocket::connect(std::uint64_t token) {
  sockaddr_un address;
  const socklen_t length = abstract_address(token, address);
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval time{limit.count(), 0};
  if (socket_ < 0 || ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) != 0)
    return io_error("connect", name_, errno);
  // On a socket with a time limit, a signal interrupts connect(2) even if SA_RESTART is set (signal(7)).
  for (int interrupted = 0; interrupted < 10'000; ++interrupted) {
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), length) == 0) return {};
    if (errno != EINTR) break;
  }
  return io_error("connect", name_, errno);
}

/// Returns the socket of the next process that has connected, or -1 if there is none now. Turns processes of
/// other users away, because abstract addresses have no permissions.
Result<int> DescriptorSocket::accept_own() {
  for (;;) {
    const int peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return -1;
    if (peer < 0) return io_error("accept", name_, errno);
    ucred who{};
    socklen_t length = sizeof who;
    if (::getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == ::geteuid())
      return peer;
    if (length == sizeof who) other_user_ = who.uid;
    ::close(peer);
  }
}

Status DescriptorSocket::send(int socket, int descriptor) const {
  DescriptorMessage message;
  cmsghdr* header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  if (::sendmsg(socket, &message.header, MSG_NOSIGNAL) < 0) return io_error("sendmsg", name_, errno);
  return {};
}

Status DescriptorSocket::answer(int descriptor, Clock::time_point deadline) {
  TR_TRY(wait_for_input(listener_, deadline, name_));
  for (;;) {
    const Result<int> peer = accept_own();
    TR_TRY(peer.status());
    if (*peer < 0) return {};
    const Status sent = send(*peer, descriptor);
    ::close(*peer);
    TR_TRY(sent);
    ++given_;
  }
}

Status DescriptorSocket::await(Clock::time_point deadline) const {
  return wait_for_input(socket_, deadline, name_);
}

Result<int> DescriptorSocket::take() const {
  DescriptorMessage message;
  const ssize_t received = ::recvmsg(socket_, &message.header, MSG_CMSG_CLOEXEC);
  if (received < 0) return io_error("recvmsg", name_, errno);
  if (received == 0)
    return Status(Code::io, cat("the rank that has ", name_, " gave up before it had handed it over"));
  const cmsghdr* header = CMSG_FIRSTHDR(&message.header);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) {
    // The kernel drops the descriptor if this process has no room for one more (MSG_CTRUNC in recvmsg(2)).
    return (message.header.msg_flags & MSG_CTRUNC) != 0
               ? io_error("take the descriptor of", name_, EMFILE)
               : Status(Code::memory, cat("no descriptor of ", name_, " arrived"));
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return descriptor;
}

}  // namespace tailrace::node
