// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "ground/base/bytes.hpp"

namespace tailrace::fuzz {

/// Returns the contents of all files of a directory, in the order of their names.
inline std::vector<ByteVector> corpus_of(const std::string& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<ByteVector> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    inputs.emplace_back(bytes.begin(), bytes.end());
  }
  return inputs;
}

/// Makes inputs by changing others near bytes that are not 0: most bytes of a small copy are zeros that no
/// code reads.
class Mutator {
 public:
  explicit Mutator(std::vector<ByteVector> inputs) : inputs_(std::move(inputs)) {}

  ByteVector next() {
    ByteVector input = inputs_[below(inputs_.size())];
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < input.size(); ++i) {
      if (input[i] != std::byte{0}) places.push_back(i);
    }
    for (std::size_t changes = 1 + below(4); changes > 0 && !input.empty() && !places.empty(); --changes) {
      const std::size_t near = places[below(places.size())] + below(9);
      change(input, near < input.size() ? near : input.size() - 1);
    }
    return input;
  }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }

  void change(ByteVector& input, std::size_t at) {
    static constexpr std::int64_t values[] = {0,  1,    -1,      2,         7,         16,       64,
                                              96, 4096, 1 << 20, 1LL << 40, INT64_MAX, INT64_MIN};
    switch (below(8)) {
      case 0:
        input.resize(at);
        return;
      case 1:
        splice(input, at);
        return;
      case 2:
      case 3:
        put(input, at / 4 * 4, static_cast<std::int32_t>(values[below(std::size(values))]));
        return;
      case 4:
      case 5:
        put(input, at / 4 * 4, values[below(std::size(values))]);
        return;
      case 6:
        input[at] = static_cast<std::byte>(std::to_integer<int>(input[at]) + (below(2) == 0 ? 1 : -1));
        return;
      default:
        input[at] ^= static_cast<std::byte>(1U << below(8));
    }
  }
  template <typename T>
  static void put(ByteVector& input, std::size_t at, T value) {
    if (at + sizeof value <= input.size()) std::memcpy(input.data() + at, &value, sizeof value);
  }
  /// Replaces some bytes of the input by bytes of another one.
  void splice(ByteVector& input, std::size_t at) {
    const ByteVector& other = inputs_[below(inputs_.size())];
    if (at >= other.size()) return;
    const std::size_t length = std::min({std::size_t{1} + below(128), input.size() - at, other.size() - at});
    std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(at), length,
                input.begin() + static_cast<std::ptrdiff_t>(at));
  }

  std::vector<ByteVector> inputs_;
  std::mt19937_64 random_{20260301};
};

}  // namespace tailrace::fuzz
