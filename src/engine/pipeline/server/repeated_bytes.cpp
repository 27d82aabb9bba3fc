// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/repeated_bytes.hpp"

#include <algorithm>

namespace tailrace::pipeline {

void Runs::append(Bytes offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (list.empty() || offset != end) list.push_back({offset, {}});
  list.back().parts.push_back(bytes);
  end = offset + std::ssize(bytes);
  size += std::ssize(bytes);
}

bool RepeatedBytes::Less::operator()(std::span<const std::byte> one, std::span<const std::byte> other) const {
  return std::ranges::lexicographical_compare(one, other);
}

RepeatedBytes::RepeatedBytes(std::span<const codec::Patch> patches) {
  std::map<std::span<const std::byte>, std::int64_t, Less> times;
  for (const codec::Patch& each : patches) {
    if (each.times <= 1 || each.bytes.empty()) continue;  // written from where they are
    std::int64_t& most_times = times[each.bytes];
    most_times = std::max(most_times, each.times);
  }
  if (times.empty()) return;
  const Bytes share = std::clamp(most / std::ssize(times), Bytes{16} << 10, most_of_one);
  for (const auto& [bytes, most_times] : times) {
    const std::int64_t at_once = std::min(share / std::ssize(bytes), most_times);
    if (at_once <= 1) continue;
    ByteVector& buffer = buffers_[bytes];
    buffer.reserve(static_cast<std::size_t>(at_once) * bytes.size());
    for (std::int64_t i = 0; i < at_once; ++i) buffer.insert(buffer.end(), bytes.begin(), bytes.end());
  }
}

void RepeatedBytes::append(Runs& runs, const codec::Patch& patch) const {
  const auto size = std::ssize(patch.bytes);
  if (size == 0) return;
  const auto buffer = buffers_.find(patch.bytes);
  const std::span<const std::byte> repeated = buffer != buffers_.end() ? buffer->second : patch.bytes;
  const std::int64_t at_once = std::ssize(repeated) / size;
  for (std::int64_t done = 0; done < patch.times; done += at_once) {
    const std::int64_t times = std::min(at_once, patch.times - done);
    runs.append(patch.offset + done * size, repeated.first(static_cast<std::size_t>(times * size)));
  }
}

Bytes RepeatedBytes::memory() const {
  Bytes sum = 0;
  for (const auto& [bytes, buffer] : buffers_) sum += std::ssize(buffer);
  return sum;
}

}  // namespace tailrace::pipeline
