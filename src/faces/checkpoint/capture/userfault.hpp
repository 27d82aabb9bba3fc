// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::capture {

/// Protects memory of this process against writes by userfaultfd(2) in write-protect mode: a write waits
/// until lift() lets it happen. Threads that store wait, and so does the kernel when it writes for a system
/// call (read(2), a message from another process). Devices do not wait.
///
/// While memory is protected, the thread that calls next() and lift() must take no lock that a waiting thread
/// may hold, above all not that of malloc. Both calls allocate nothing.
class Userfault {
 public:
  /// Returns Code::unsupported if the system does not allow it; the text says what is missing.
  static Result<Userfault> open();
  ~Userfault();
  Userfault(Userfault&& other) noexcept;
  Userfault& operator=(Userfault&&) = delete;

  /// Protects a range of whole pages: from now on a write to it waits for lift(). Returns Code::unsupported
  /// if the kernel cannot protect this memory.
  Status protect(const std::byte* begin, Bytes bytes);
  /// The result of lift(). no: the range is not protected any more, since the program has unmapped it. busy:
  /// next() has to take an event first.
  enum class Lifted { yes, no, busy };
  /// Ends the protection of the range, and lets its waiting writers go on.
  [[nodiscard]] Lifted lift(const std::byte* begin, Bytes bytes);
  /// Makes the range as if it had never been protected, and lets all of its waiting writers go on.
  void release(const std::byte* begin, Bytes bytes);

  struct Event {
    enum class Kind { write, discard };
    Kind kind = Kind::write;
    const std::byte* begin = nullptr;  // write: the address to which a thread waits to write
    const std::byte* end = nullptr;
  };
  /// Returns the next event, or nothing if there is none; never waits. write: a thread waits to write to
  /// `begin`. discard: the program is about to discard [begin, end), and its contents may change as soon as
  /// next() has returned.
  std::optional<Event> next();

 private:
  Userfault(int descriptor, bool marks_untouched)
      : descriptor_(descriptor), marks_untouched_(marks_untouched) {}

  int descriptor_ = -1;
  bool marks_untouched_ = false;  // memory that was never touched is protected as well
};

}  // namespace tailrace::capture
