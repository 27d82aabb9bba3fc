// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Puts the corpus, and seeded changes of it, through the function that the fuzzer calls. Built twice: as the
// library is, where checksums stop nearly all of it, and with checksums that always match.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "copy_input.hpp"
#include "mutator.hpp"

#ifdef TAILRACE_FUZZING
#define REPLAY CheckpointReplayUnchecked
#else
#define REPLAY CheckpointReplay
#endif

// An input of a few kB that makes the reader ask for this much memory has fooled it. The sanitizer tells, if
// there is one.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=64"; }

namespace tailrace::fuzz {
namespace {

constexpr int mutations = 20'000;

TEST(REPLAY, the_corpus_is_read) {
  const std::vector<ByteVector> inputs = corpus_of(TAILRACE_CORPUS);
  ASSERT_GE(inputs.size(), 5U);
  EXPECT_GE(
      std::count_if(inputs.begin(), inputs.end(), [](const ByteVector& each) { return read_input(each); }),
      5);
}

TEST(REPLAY, changed_copies_are_read_or_refused_and_never_crash) {
  Mutator mutator(corpus_of(TAILRACE_CORPUS));
  int whole = 0;
  for (int i = 0; i < mutations; ++i) whole += read_input(mutator.next()) ? 1 : 0;
  // Changed elements and block checksums leave a copy whole: this many have come to the elements.
  EXPECT_GT(whole, mutations / 20);
  EXPECT_LT(whole, mutations);
  std::printf("%d of %d are whole copies\n", whole, mutations);
}

}  // namespace
}  // namespace tailrace::fuzz
