// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Cases that pass, fail and hang on purpose. mpi_harness_test.sh runs them and checks what the harness
// prints.
#include <stdexcept>

#include "support/captured_stderr.hpp"

using namespace tailrace::mpi_test;

MPI_TEST(good, passes) {
  CHECK(any_rank(rank() == 0));
  CHECK(!any_rank(false));
  CHECK(same_on_all_ranks("one text"));
  CHECK(size() == 1 || !same_on_all_ranks(std::string(static_cast<std::size_t>(rank()), 'x')));
  CHECK_EQ(-1, std::int64_t{-1});
}

MPI_TEST(good, may_be_skipped) { skip("there is no moon"); }

MPI_TEST(bad, fails_on_the_last_rank) {
  CHECK(rank() + 1 < size());
  CHECK_EQ(std::string("got"), "got");
}

MPI_TEST(bad, compares_signs_rightly) { CHECK_EQ(-1, ~std::uint64_t{0}); }

MPI_TEST(thrown, is_a_failure) {
  if (rank() == 0) throw std::runtime_error("thrown on purpose");
}

MPI_TEST(stuck, in_the_body_of_rank_0) {
  while (rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

MPI_TEST(captured, text_is_kept_from_who_reads_a_case_that_passes) {
  CapturedStderr captured;
  std::fprintf(stderr, "said in vain\n");
  CHECK_EQ(captured.text(), "said in vain\n");
}

MPI_TEST(captured, text_appears_when_a_check_fails_meanwhile) {
  const CapturedStderr captured;
  std::fprintf(stderr, "said before\n");
  CHECK(rank() + 1 < size());
}

MPI_TEST(captured, text_appears_when_a_check_of_it_fails) {
  CapturedStderr captured;
  std::fprintf(stderr, "said something else\n");
  CHECK_EQ(captured.text(), "what was expected");
}

MPI_TEST(captured, is_what_a_rank_says_that_hangs) {
  const CapturedStderr captured;
  std::fprintf(stderr, "said before the hang\n");
  while (rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

MPI_TEST_MAIN
