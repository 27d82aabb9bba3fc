// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cerrno>
#include <new>
#include <string>

#include "base/bytes.hpp"

namespace tailrace::files {

/// What a call of C's stdio gave: the same on every rank.
struct Outcome {
  std::int64_t value = 0;
  int error = 0;          // errno if the call failed, else 0
  ByteVector data;        // what was read, also by a call that failed then
  std::string text = {};  // of the error, where errno alone says too little
};

/// What `body` says; ENOMEM in place of std::bad_alloc, so that no rank waits for an outcome in vain.
template <typename Body>
Outcome attempted(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return {-1, ENOMEM, {}};
  }
}

ByteVector pack(const Outcome& outcome);
Outcome unpack_outcome(const ByteVector& bytes);

}  // namespace tailrace::files
