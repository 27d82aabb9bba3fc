// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ground/base/types.hpp"

namespace tailrace {

using ByteVector = std::vector<std::byte>;

/// Appends values to a byte vector. Every message and definition that one rank sends to another is written
/// with it. Uses native byte order, because both ends are ranks of one job.
class Packer {
 public:
  Packer() = default;
  /// Uses the memory of `bytes` and discards its content.
  explicit Packer(ByteVector bytes) : bytes_(std::move(bytes)) { bytes_.clear(); }
  template <typename T>
  requires std::is_trivially_copyable_v<T> Packer& put(const T& value) {
    const std::size_t size = bytes_.size();
    bytes_.resize(size + sizeof value);
    std::memcpy(bytes_.data() + size, &value, sizeof value);
    return *this;
  }
  Packer& put_text(std::string_view text) { return put_bytes(std::as_bytes(std::span(text))); }
  Packer& put_bytes(std::span<const std::byte> data) {
    put(static_cast<std::int64_t>(data.size()));
    bytes_.insert(bytes_.end(), data.begin(), data.end());
    return *this;
  }
  /// Puts `size` bytes as put_bytes() does, and returns where they are to be written.
  std::span<std::byte> put_room(std::size_t size) {
    put(static_cast<std::int64_t>(size));
    bytes_.resize(bytes_.size() + size);
    return std::span(bytes_).last(size);
  }
  template <typename T>
  requires std::is_trivially_copyable_v<T> Packer& put_list(std::span<const T> values) {
    return put_bytes(std::as_bytes(values));
  }

  [[nodiscard]] const ByteVector& bytes() const { return bytes_; }
  [[nodiscard]] ByteVector take() { return std::move(bytes_); }

 private:
  ByteVector bytes_;
};

/// Reads back what a Packer wrote. Never reads past the end: after the first value that does not fit, `ok()`
/// is false and every further value is zero or empty.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T> T get() {
    T value{};
    const auto part = take(sizeof value);
    if (ok_) std::memcpy(&value, part.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> get_bytes() {
    return take(static_cast<std::size_t>(get<std::int64_t>()));  // a negative size never fits
  }
  std::string get_text() {
    const auto part = get_bytes();
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  template <typename T>
  requires std::is_trivially_copyable_v<T> std::vector<T> get_list() {
    const auto part = get_bytes();
    std::vector<T> values(part.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), part.data(), values.size() * sizeof(T));
    return values;
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> take(std::size_t size) {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return {};
    const auto part = rest_.first(size);
    rest_ = rest_.subspan(size);
    return part;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace tailrace
