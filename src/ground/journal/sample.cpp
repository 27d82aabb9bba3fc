// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/sample.hpp"

#include <algorithm>

#include "ground/base/checksum.hpp"

namespace tailrace::journal {

namespace {

constexpr Bytes sample_bytes = Bytes{64} << 10;

}  // namespace

Result<std::uint64_t> sample_of(storage::File& file, Bytes size) {
  const Bytes part = std::min(size, sample_bytes);
  ByteVector bytes(static_cast<std::size_t>(2 * part));
  const Result<Bytes> first = file.read(std::span(bytes).first(static_cast<std::size_t>(part)), 0);
  TR_TRY(first.status());
  const Result<Bytes> last = file.read(std::span(bytes).last(static_cast<std::size_t>(part)), size - part);
  TR_TRY(last.status());
  return checksum(bytes);
}

}  // namespace tailrace::journal
