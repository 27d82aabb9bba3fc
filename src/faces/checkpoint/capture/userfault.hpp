// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::capture {

/// Memory of this process whose writers wait until they are let on: userfaultfd(2) in write-protect mode.
/// Stores wait, and so do the kernel's writes for a system call (read(2), a message from another process).
/// Devices do not wait.
///
/// While memory is protected, the thread that lets the writers on must take no lock that one of them may
/// hold, above all not that of malloc. The calls that it needs, next() and lift(), allocate nothing.
class Userfault {
 public:
  /// Returns Code::unsupported, saying what is missing.
  static Result<Userfault> open();
  ~Userfault();
  Userfault(Userfault&& other) noexcept;
  Userfault& operator=(Userfault&&) = delete;

  /// From here on a write to the range, of whole pages, waits for lift(). Returns Code::unsupported if the
  /// kernel does not do that for this memory.
  Status protect(const std::byte* begin, Bytes bytes);
  /// The result of letting the writers on. no: the range is not protected any more, since the program has
  /// unmapped it. busy: an event has to be taken first.
  enum class Lifted { yes, no, busy };
  [[nodiscard]] Lifted lift(const std::byte* begin, Bytes bytes);
  /// Makes the range as if it had never been protected: nobody waits any more.
  void release(const std::byte* begin, Bytes bytes);

  struct Event {
    enum class Kind { write, discard };
    Kind kind = Kind::write;
    const std::byte* begin = nullptr;  // where somebody waits to write, or the begin of what is about to be
                                       // discarded
    const std::byte* end = nullptr;
  };
  /// Returns what has happened since the last call; never waits. The contents of discarded memory may change
  /// as soon as this has returned.
  std::optional<Event> next();

 private:
  Userfault(int descriptor, bool marks_untouched)
      : descriptor_(descriptor), marks_untouched_(marks_untouched) {}

  int descriptor_ = -1;
  bool marks_untouched_ = false;  // memory that was never touched is protected as well
};

}  // namespace tailrace::capture
