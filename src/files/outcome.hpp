// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "base/bytes.hpp"

namespace tailrace::files {

/// What a call of C's stdio gave: the same on every rank.
struct Outcome {
  std::int64_t value = 0;
  int error = 0;    // errno if the call failed, else 0
  ByteVector data;  // what was read, for the arguments that the call fills in
};

ByteVector pack(const Outcome& outcome);
Outcome unpack_outcome(const ByteVector& bytes);

}  // namespace tailrace::files
