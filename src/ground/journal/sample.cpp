// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/sample.hpp"

#include <algorithm>

#include "ground/base/checksum.hpp"

namespace tailrace::journal {

namespace {

constexpr Bytes sample_bytes = Bytes{64} << 10;

}  // namespace

Sampled::Sampled(Bytes size)
    : size_(size), part_(std::min(size, sample_bytes)), bytes_(static_cast<std::size_t>(2 * part_)) {}

Status Sampled::read(storage::File& file) {
  const auto length = static_cast<std::size_t>(part_);
  const Result<Bytes> first = file.read(std::span(bytes_).first(length), 0);
  TR_TRY(first.status());
  const Result<Bytes> last = file.read(std::span(bytes_).last(length), size_ - part_);
  return last.status();
}

void Sampled::put(Bytes offset, std::span<const std::byte> bytes) {
  const auto put_into = [&](Bytes from, Bytes place) {
    const Bytes begin = std::max(offset, from);
    const Bytes end = std::min(offset + std::ssize(bytes), from + part_);
    if (begin >= end) return;
    std::copy_n(bytes.begin() + (begin - offset), end - begin, bytes_.begin() + (place + begin - from));
  };
  put_into(0, 0);
  put_into(size_ - part_, part_);
}

std::uint64_t Sampled::sum() const { return checksum(bytes_); }

Result<std::uint64_t> sample_of(storage::File& file, Bytes size) {
  Sampled sampled(size);
  TR_TRY(sampled.read(file));
  return sampled.sum();
}

}  // namespace tailrace::journal
