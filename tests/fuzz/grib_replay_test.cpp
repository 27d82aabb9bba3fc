// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Puts the corpus of GRIB files and kept inventories, and seeded changes of it, through the function that the
// fuzzer calls. Checksums of inventories always match here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "grib_input.hpp"
#include "mutator.hpp"

// An input of a few kB that makes the reader ask for this much memory has fooled it. The sanitizer tells, if
// there is one.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=64"; }

// ecCodes loses memory where it packs values in groups, and where headers are damaged.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libeccodes"; }

namespace tailrace::fuzz {
namespace {

/// ecCodes takes a millisecond for each.
int mutations() { return std::getenv("TEST_ALL") == nullptr ? 1000 : 50'000; }

TEST(grib_replay, the_corpus_is_read) {
  const std::vector<ByteVector> inputs = corpus_of(TAILRACE_GRIB_CORPUS);
  ASSERT_GE(inputs.size(), 10U);
  EXPECT_GE(std::count_if(inputs.begin(), inputs.end(),
                          [](const ByteVector& each) { return read_grib_input(each); }),
            10);
}

TEST(grib_replay, every_beginning_of_a_file_is_read_or_refused) {
  for (const ByteVector& input : corpus_of(TAILRACE_GRIB_CORPUS)) {
    for (std::size_t size = 0; size < input.size(); size += 3) {
      const ByteVector beginning(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size));
      read_grib_input(beginning);
    }
  }
}

TEST(grib_replay, changed_files_are_read_or_refused_and_never_crash) {
  Mutator mutator(corpus_of(TAILRACE_GRIB_CORPUS));
  int whole = 0;
  const int inputs = mutations();
  for (int i = 0; i < inputs; ++i) whole += read_grib_input(mutator.next()) ? 1 : 0;
  EXPECT_GT(whole, inputs / 20);
  EXPECT_LT(whole, inputs);
  std::printf("%d of %d are read\n", whole, inputs);
}

}  // namespace
}  // namespace tailrace::fuzz
