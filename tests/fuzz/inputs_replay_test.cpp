// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Puts the corpora of files that other programs may have written, and seeded changes of them, through the
// functions that the fuzzers call. Checksums of indexes and inventories always match here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "inputs.hpp"
#include "mutator.hpp"

// An input of a few kB that makes the reader ask for this much memory has fooled it. The sanitizer tells, if
// there is one.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=64"; }

// ecCodes loses memory where it packs values in groups, and where headers are damaged.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libeccodes\nleak:libhdf5"; }

namespace tailrace::fuzz {
namespace {

using Read = bool (*)(std::span<const std::byte>);

/// A corpus, how many of its inputs are whole, and how often it is changed.
struct Corpus {
  const char* name;
  Read read;
  int whole;
  int changes;
};

const std::vector<Corpus>& corpora() {
  static const std::vector<Corpus> all{
#ifdef TAILRACE_HAVE_GRIB
      {"grib", read_source_input, 10, 1000},  // ecCodes takes a millisecond for each
      {"listing", read_listing_input, 4, 300},
#endif
#ifdef TAILRACE_HAVE_HDF5
      {"hdf5", read_source_input, 3, 100},
#endif
#ifdef TAILRACE_HAVE_ZARR
      {"zarr", read_source_input, 5, 1000},
#endif
      {"netcdf", read_source_input, 4, 1000},  {"index", read_source_input, 3, 500},
      {"times", read_times_input, 3, 1000},
  };
  return all;
}

std::vector<ByteVector> inputs_of(const Corpus& corpus) {
  return corpus_of(std::string(TAILRACE_CORPORA) + corpus.name + "_corpus");
}

TEST(inputs_replay, the_corpora_are_read) {
  for (const Corpus& corpus : corpora()) {
    const std::vector<ByteVector> inputs = inputs_of(corpus);
    EXPECT_GE(std::count_if(inputs.begin(), inputs.end(),
                            [&](const ByteVector& each) { return corpus.read(each); }),
              corpus.whole)
        << corpus.name;
  }
}

TEST(inputs_replay, every_beginning_of_an_input_is_read_or_refused) {
  for (const ByteVector& input : inputs_of(corpora().front())) {
    for (std::size_t size = 0; size < input.size(); size += 3) {
      const ByteVector beginning(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size));
      corpora().front().read(beginning);
    }
  }
}

TEST(inputs_replay, changed_inputs_are_read_or_refused_and_never_crash) {
  for (const Corpus& corpus : corpora()) {
    Mutator mutator(inputs_of(corpus));
    int whole = 0;
    const int changes = std::getenv("TEST_ALL") == nullptr ? corpus.changes : 50 * corpus.changes;
    for (int i = 0; i < changes; ++i) whole += corpus.read(mutator.next()) ? 1 : 0;
    EXPECT_GT(whole, changes / 20) << corpus.name;
    EXPECT_LT(whole, changes) << corpus.name;
    std::printf("%s: %d of %d are read\n", corpus.name, whole, changes);
  }
}

}  // namespace
}  // namespace tailrace::fuzz
