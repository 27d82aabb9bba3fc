// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// The most bytes that one system call is given. Linux stops at 2 GiB - 4 KiB, and other systems fail above
/// that.
inline constexpr Bytes largest_call = Bytes{1} << 30;

/// Walks over byte ranges that are apart in memory and follow one another in a file. Each step is as much as
/// one system call can take.
class Gather {
 public:
  explicit Gather(Parts parts) : parts_(parts), left_(bytes_in(parts)) {}

  [[nodiscard]] Bytes left() const { return left_; }

  /// Returns the next ranges, as many as fit into `room` and `largest_call`, without empty ranges.
  std::span<const iovec> next(std::span<iovec> room) const {
    std::size_t used = 0, skip = done_;
    Bytes budget = largest_call;
    for (std::size_t i = part_; i < parts_.size() && used < room.size() && budget > 0; ++i, skip = 0) {
      const auto rest = parts_[i].subspan(skip);
      if (rest.empty()) continue;
      const std::size_t size = std::min(rest.size(), static_cast<std::size_t>(budget));
      // The kernel only reads through the iovec of a write. The cast is needed because readv uses the same
      // type.
      room[used++] = {const_cast<std::byte*>(rest.data()), size};
      budget -= static_cast<Bytes>(size);
    }
    return room.first(used);
  }

  void advance(Bytes count) {
    left_ -= count;
    while (count > 0) {
      const Bytes rest = static_cast<Bytes>(parts_[part_].size() - done_);
      const Bytes step = std::min(rest, count);
      count -= step;
      done_ += static_cast<std::size_t>(step);
      if (step == rest) {
        ++part_;
        done_ = 0;
      }
    }
  }

 private:
  Parts parts_;
  std::size_t part_ = 0;  // first range not completely written
  std::size_t done_ = 0;  // bytes written of that range
  Bytes left_;
};

}  // namespace tailrace::storage
