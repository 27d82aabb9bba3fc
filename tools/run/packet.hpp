// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstring>

namespace tailrace::run {

/// A packet as sendmsg(2) and recvmsg(2) want it, with one descriptor or room for one (unix(7), SCM_RIGHTS).
class Packet {
 public:
  /// A packet to send, with `descriptor` unless that is below 0.
  Packet(const void* bytes, std::size_t length, int descriptor) : Packet(const_cast<void*>(bytes), length) {
    if (descriptor < 0) {
      message_.msg_control = nullptr;
      message_.msg_controllen = 0;
      return;
    }
    cmsghdr* const header = CMSG_FIRSTHDR(&message_);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  /// An empty packet, to be filled by recvmsg(2).
  Packet(void* bytes, std::size_t length) : part_{bytes, length} {
    message_.msg_iov = &part_;
    message_.msg_iovlen = 1;
    message_.msg_control = control_;
    message_.msg_controllen = sizeof(control_);
  }
  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;

  [[nodiscard]] msghdr* message() { return &message_; }
  /// Returns the descriptor that has come with the packet, or -1.
  [[nodiscard]] int descriptor() const {
    int descriptor = -1;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message_);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS)
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
    return descriptor;
  }

 private:
  alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(int))] = {};
  iovec part_;
  msghdr message_ = {};
};

}  // namespace tailrace::run
