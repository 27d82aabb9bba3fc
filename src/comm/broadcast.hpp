// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "comm/transport.hpp"

namespace tailrace::comm {

/// What rank 0 of a group tells all of it, down a binomial tree. A state machine like Agreements: every rank
/// opens broadcasts in the same order; only rank 0 need not wait for one.
class Broadcasts {
 public:
  static constexpr std::uint32_t broadcast_message = 3;

  /// `size` ranks with transport ranks 0 .. size-1; `me`: the caller's.
  Broadcasts(Transport& transport, int size, int me) : transport_(transport), size_(size), me_(me) {}

  /// Local. The number of the next broadcast; rank 0 sends `bytes` with it, which the others leave empty.
  std::uint64_t post(ByteVector bytes);
  /// True if the message was one of ours. `kind` was already taken from `in`.
  bool on_message(std::uint32_t kind, Unpacker& in);
  /// What rank 0 said in broadcast `number`, once; nothing while it has not arrived.
  std::optional<ByteVector> take(std::uint64_t number);

 private:
  void pass_on(std::uint64_t number, const ByteVector& bytes);

  Transport& transport_;
  int size_;
  int me_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, ByteVector> arrived_;
};

}  // namespace tailrace::comm
