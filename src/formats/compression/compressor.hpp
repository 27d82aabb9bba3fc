// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>

#include "formats/compression/compression.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

namespace tailrace::compression {

struct Tables;

/// Compresses chunks. Each thread has a compressor of its own. The result depends on the arguments alone.
class Compressor {
 public:
  Compressor();
  ~Compressor();
  Compressor(Compressor&&) noexcept;
  /// Compresses `bytes`, which are whole elements, and appends the result to `out`; appends nothing if it
  /// fails. check() must have succeeded for `how` and the size of the chunk.
  Status compress(const Compression& how, std::span<const std::byte> bytes, Bytes element_size,
                  ByteVector& out);

 private:
  std::unique_ptr<Tables> tables_;
};

}  // namespace tailrace::compression
