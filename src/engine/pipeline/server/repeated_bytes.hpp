// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <span>
#include <vector>

#include "formats/codec/codec.hpp"
#include "ground/comm/collective/collective_files.hpp"

namespace tailrace::pipeline {

/// The runs of bytes that a server writes in one collective call.
struct Runs {
  std::vector<comm::CollectiveFiles::Run> list;
  Bytes end = 0;   // of the last run
  Bytes size = 0;  // of all runs

  /// Appends bytes at an offset. Those that follow the last run's bytes join it.
  void append(Bytes offset, std::span<const std::byte> bytes);
};

/// The bytes of a step's patches in memory. Patches of the same bytes, as the fill value of all fields of one
/// type, share one buffer, which holds the bytes a number of times and to which runs refer again and again.
class RepeatedBytes {
 public:
  /// The most bytes of all buffers together, and of one, unless there are very many different patches.
  static constexpr Bytes most = Bytes{16} << 20;
  static constexpr Bytes most_of_one = Bytes{1} << 20;

  /// `patches`, and this object, must stay as they are while the runs are used.
  explicit RepeatedBytes(std::span<const codec::Patch> patches);
  /// Appends the bytes of one of the patches as often as it says.
  void append(Runs& runs, const codec::Patch& patch) const;
  /// Returns the number of bytes of all buffers.
  [[nodiscard]] Bytes memory() const;

 private:
  struct Less {
    bool operator()(std::span<const std::byte> one, std::span<const std::byte> other) const;
  };
  std::map<std::span<const std::byte>, ByteVector, Less> buffers_;  // by the bytes that they repeat
};

}  // namespace tailrace::pipeline
