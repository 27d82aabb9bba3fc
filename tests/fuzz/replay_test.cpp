// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Puts the corpus, and seeded changes of it, through the function that the fuzzer calls. Built twice: as the
// library is, where checksums stop nearly all of it, and with checksums that always match.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "copy_input.hpp"

#ifdef TAILRACE_FUZZING
#define REPLAY CheckpointReplayUnchecked
#else
#define REPLAY CheckpointReplay
#endif

// An input of a few kB that makes the reader ask for this much memory has fooled it. The sanitizer tells, if
// there is one.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=64"; }

namespace tailrace::fuzz {
namespace {

constexpr int mutations = 20'000;

std::vector<ByteVector> corpus() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(TAILRACE_CORPUS))
    paths.push_back(entry.path());
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

/// Changes inputs where the bytes mean something: most of a small copy are zeros that nobody looks at.
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
  /// Puts some bytes of another input in place of its own.
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

TEST(REPLAY, the_corpus_is_read) {
  const std::vector<ByteVector> inputs = corpus();
  ASSERT_GE(inputs.size(), 5U);
  EXPECT_GE(
      std::count_if(inputs.begin(), inputs.end(), [](const ByteVector& each) { return read_input(each); }),
      5);
}

TEST(REPLAY, changed_copies_are_read_or_refused_and_never_crash) {
  Mutator mutator(corpus());
  int whole = 0;
  for (int i = 0; i < mutations; ++i) whole += read_input(mutator.next()) ? 1 : 0;
  // Changed elements and block checksums leave a copy whole: this many have come to the elements.
  EXPECT_GT(whole, mutations / 20);
  EXPECT_LT(whole, mutations);
  std::printf("%d of %d are whole copies\n", whole, mutations);
}

}  // namespace
}  // namespace tailrace::fuzz
