// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cerrno>
#include <cstdio>
#include <functional>
#include <new>
#include <string>

#include "ground/base/bytes.hpp"

namespace tailrace::files {

/// The outcome of a call of C's stdio: the same on every rank.
struct Outcome {
  std::int64_t value = 0;
  int error = 0;          // errno if the call failed, else 0
  ByteVector data;        // the bytes read, even if the call failed afterwards
  std::string text = {};  // of the error, if errno alone says too little
};

/// The error number of a Status for an array that ended early, because its file did. No errno has this value.
/// Fortran tells this error from others.
constexpr int ended_with_file = -1;

/// A function that works on C's stream. errno is 0 when the function begins.
using Operation = std::function<Outcome(std::FILE*)>;

/// Sets errno to 0, calls `body`, and returns what `body` returns. In place of std::bad_alloc it returns
/// ENOMEM, so that no rank waits for an outcome in vain.
template <typename Body>
Outcome attempted(const Body& body) {
  errno = 0;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return {-1, ENOMEM, {}};
  }
}

}  // namespace tailrace::files
