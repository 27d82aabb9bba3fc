// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "ground/base/bytes.hpp"

namespace tailrace {

/// The kind of an error. The values are the TR_ERR_* codes of the C face: append only.
enum class Code : std::int32_t {
  ok = 0,
  argument = 1,      // a value that the call does not take
  settings = 2,      // a bad key or value in TAILRACE_* or an options string
  state = 3,         // a call that makes no sense now (put outside of a step, use after close)
  order = 4,         // ranks made different calls, or in different order
  layout = 5,        // gaps, overlaps, indices out of range, an array of the wrong shape
  format = 6,        // the format cannot hold what is asked for, or a key reads back differently
  data = 7,          // NaN, Inf, or values that the packing cannot hold
  io = 8,            // storage failed; error_number() is the errno
  space = 9,         // storage or a quota is full
  memory = 10,       // the budget or the node's memory is too small
  mpi = 11,          // MPI itself failed
  timeout = 12,      // a wait reached its limit
  unsupported = 13,  // not in this build or on this system
  corrupt = 14,      // a damaged file: its bytes contradict themselves
};

/// The place where an error began. The verdict that all ranks return is the error with the lowest cause.
struct Cause {
  std::int64_t step = -1;
  std::int64_t operation = -1;
  std::int32_t rank = -1;
  friend auto operator<=>(const Cause&, const Cause&) = default;
};

/// Success, or one error with its text. Copying never throws. Success allocates nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string text, int error_number = 0);

  [[nodiscard]] bool is_ok() const { return body_ == nullptr; }
  [[nodiscard]] Code code() const { return body_ ? body_->code : Code::ok; }
  /// Returns the whole message for the user: what failed, on what, and what to do next.
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] int error_number() const { return body_ ? body_->error_number : 0; }
  [[nodiscard]] Cause cause() const { return body_ ? body_->cause : Cause{}; }
  [[nodiscard]] std::int32_t rank() const { return cause().rank; }

  /// Returns the same error with `cause` as its cause. Success stays success.
  [[nodiscard]] Status at(Cause cause) const;
  /// Returns the same error with `context` and ": " before its text. Success stays success.
  [[nodiscard]] Status in(std::string_view context) const;

  void pack(Packer& out) const;
  static Status unpack(Unpacker& in);

 private:
  struct Body {
    Code code = Code::ok;
    int error_number = 0;
    Cause cause;
    std::string text;
  };
  explicit Status(Body body);
  std::shared_ptr<const Body> body_;
};

/// Returns an I/O error from `errno`: "OPERATION PATH: strerror". ENOSPC and EDQUOT become Code::space.
Status io_error(std::string_view operation, std::string_view path, int error_number);

/// Returns the verdict of the two: an error before success, and of two errors the one with the lower cause.
const Status& first_cause(const Status& a, const Status& b);

/// A value, or the status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}
  Result(Status error) : held_(std::move(error)) {}

  [[nodiscard]] bool is_ok() const { return held_.index() == 0; }
  [[nodiscard]] Status status() const { return is_ok() ? Status() : std::get<1>(held_); }
  T& operator*() & { return std::get<0>(held_); }
  const T& operator*() const& { return std::get<0>(held_); }
  T&& operator*() && { return std::get<0>(std::move(held_)); }
  T* operator->() { return &std::get<0>(held_); }
  const T* operator->() const { return &std::get<0>(held_); }

 private:
  std::variant<T, Status> held_;
};

/// Runs `body` and turns std::bad_alloc into a Status. An exception would make this rank skip the vote that
/// follows, and the other ranks would wait for it.
template <typename Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(Code::memory, "out of memory");
  }
}

}  // namespace tailrace

/// Leaves the enclosing function with the status of `expression` if that is an error.
#define TR_TRY(expression)                                                                    \
  do {                                                                                        \
    if (::tailrace::Status tr_status_ = (expression); !tr_status_.is_ok()) return tr_status_; \
  } while (0)
