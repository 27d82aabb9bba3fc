// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "ground/storage/target.hpp"

namespace tailrace::journal {

/// Local; waits for storage. Returns a checksum of the first and the last 64 KiB within the first `size`
/// bytes of a file. It finds most files that were begun anew or replaced, at the price of a short read.
Result<std::uint64_t> sample_of(storage::File& file, Bytes size);

/// The bytes that sample_of() looks at, for a content that no file has as a whole.
class Sampled {
 public:
  explicit Sampled(Bytes size);
  /// Takes them from the file. Bytes that it lacks are zeros.
  Status read(storage::File& file);
  /// Puts bytes that the content has at `offset` over them.
  void put(Bytes offset, std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t sum() const;

 private:
  Bytes size_;
  Bytes part_;
  ByteVector bytes_;  // the first `part_` bytes, and the last
};

}  // namespace tailrace::journal
