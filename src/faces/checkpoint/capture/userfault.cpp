// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/capture/userfault.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "ground/base/text.hpp"

// Headers of Linux 5.7 suffice. For features of newer kernels the values of the names in newer headers stand
// here.
#if __has_include(<linux/userfaultfd.h>)
#include <linux/userfaultfd.h>
#endif
#if defined(UFFDIO_WRITEPROTECT) && defined(SYS_userfaultfd)
#define TAILRACE_HAVE_WRITE_PROTECTION 1
#endif

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14
#endif

namespace tailrace::capture {

#ifdef TAILRACE_HAVE_WRITE_PROTECTION

namespace {

constexpr std::uint64_t needed_features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_REMOVE;
constexpr std::uint64_t untouched_feature = std::uint64_t{1} << 13;  // WP_UNPOPULATED, Linux 6.4

std::uint64_t kernel_number(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }
const std::byte* address_of(std::uint64_t number) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel tells addresses as numbers
  return reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(number));
}
uffdio_range range_of(const std::byte* begin, Bytes bytes) {
  return {kernel_number(begin), static_cast<std::uint64_t>(bytes)};
}

/// Opens a descriptor with which the kernel's own writes wait, too. A process without privileges could get
/// one for the writes of threads alone (UFFD_USER_MODE_ONLY), but then read(2) into protected memory would
/// fail with EFAULT.
int open_descriptor() {
  const long made = ::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  if (made >= 0) return static_cast<int>(made);
#ifdef USERFAULTFD_IOC_NEW
  const int why = errno;
  const int device = ::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (device >= 0) {
    const int descriptor = ::ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
    ::close(device);
    return descriptor;
  }
  errno = why;
#endif
  return -1;
}

}  // namespace

Result<Userfault> Userfault::open() {
  // Features can be agreed only once for each descriptor.
  for (const bool marks_untouched : {true, false}) {
    const int descriptor = open_descriptor();
    if (descriptor < 0) {
      const int why = errno;
      return Status(
          Code::unsupported,
          cat("this process may not protect its memory against the kernel's writes (userfaultfd: ",
              std::strerror(why),
              "): it takes CAP_SYS_PTRACE, read and write access to /dev/userfaultfd, or the setting "
              "vm.unprivileged_userfaultfd=1"),
          why);
    }
    Userfault made(descriptor, marks_untouched);
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = needed_features | (marks_untouched ? untouched_feature : 0);
    if (::ioctl(descriptor, UFFDIO_API, &api) == 0) return made;
  }
  return Status(Code::unsupported,
                "this kernel does not protect memory against writes (userfaultfd of Linux 5.7)");
}

Userfault::~Userfault() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status Userfault::protect(const std::byte* begin, Bytes bytes) {
  const auto refused = [](const char* what) {
    const int why = errno;
    return Status(Code::unsupported, cat("memory cannot be protected (", what, ": ", std::strerror(why), ")"),
                  why);
  };
  if (!marks_untouched_ &&
      ::madvise(const_cast<std::byte*>(begin), static_cast<std::size_t>(bytes), MADV_POPULATE_READ) != 0)
    return refused("madvise");
  uffdio_register made{range_of(begin, bytes), UFFDIO_REGISTER_MODE_WP, 0};
  if (::ioctl(descriptor_, UFFDIO_REGISTER, &made) != 0) return refused("userfaultfd");
  uffdio_writeprotect protection{range_of(begin, bytes), UFFDIO_WRITEPROTECT_MODE_WP};
  if (::ioctl(descriptor_, UFFDIO_WRITEPROTECT, &protection) == 0) return {};
  const Status why = refused("write protection");
  release(begin, bytes);
  return why;
}

Userfault::Lifted Userfault::lift(const std::byte* begin, Bytes bytes) {
  uffdio_writeprotect protection{range_of(begin, bytes), 0};
  if (::ioctl(descriptor_, UFFDIO_WRITEPROTECT, &protection) == 0) return Lifted::yes;
  return errno == EAGAIN ? Lifted::busy : Lifted::no;
}

void Userfault::release(const std::byte* begin, Bytes bytes) {
  uffdio_range range = range_of(begin, bytes);
  if (::ioctl(descriptor_, UFFDIO_UNREGISTER, &range) != 0) {
    // The program has mapped something else in between. The rest of the range is still protected.
    const Bytes page = ::sysconf(_SC_PAGESIZE);
    for (Bytes at = 0; at < bytes; at += page) {
      uffdio_range one = range_of(begin + at, page);
      ::ioctl(descriptor_, UFFDIO_UNREGISTER, &one);
    }
  }
  // Lifting the protection alone does not wake the threads that wait already.
  ::ioctl(descriptor_, UFFDIO_WAKE, &range);
}

std::optional<Userfault::Event> Userfault::next() {
  uffd_msg message;
  while (::read(descriptor_, &message, sizeof message) == static_cast<ssize_t>(sizeof message)) {
    if (message.event == UFFD_EVENT_PAGEFAULT) {
      const std::byte* const at = address_of(message.arg.pagefault.address);
      return Event{Event::Kind::write, at, at + 1};
    }
    if (message.event == UFFD_EVENT_REMOVE)
      return Event{Event::Kind::discard, address_of(message.arg.remove.start),
                   address_of(message.arg.remove.end)};
  }
  return std::nullopt;
}

#else

Result<Userfault> Userfault::open() {
  return Status(Code::unsupported, "this build has no write protection of memory (userfaultfd of Linux 5.7)");
}
Userfault::~Userfault() = default;
Status Userfault::protect(const std::byte*, Bytes) { return {Code::unsupported, "no write protection"}; }
Userfault::Lifted Userfault::lift(const std::byte*, Bytes) { return Lifted::no; }
void Userfault::release(const std::byte*, Bytes) {}
std::optional<Userfault::Event> Userfault::next() { return std::nullopt; }

#endif

Userfault::Userfault(Userfault&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), marks_untouched_(other.marks_untouched_) {}

}  // namespace tailrace::capture
