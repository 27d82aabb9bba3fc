// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/exchange/stripe_cut.hpp"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tailrace;
using exchange::Stripe;
using exchange::StripeCut;

namespace {

TEST(stripe_cut, cover_an_array_once_in_contiguous_shares_that_begin_with_the_first_aggregator) {
  constexpr Bytes size = 64;
  for (int aggregators = 1; aggregators <= 4; ++aggregators) {
    for (const Bytes position : {0, 1, 63, 64, 100}) {
      for (const Bytes bytes : {0, 1, 63, 64, 65, 200, 1000}) {
        std::vector<std::uint64_t> numbers(static_cast<std::size_t>(aggregators), 7);
        const StripeCut cut(position, bytes, size, numbers, aggregators);
        Bytes at = 0;
        for (int a = 0; a < aggregators; ++a) {
          for (std::int64_t round = 0; round < cut.count(a); ++round) {
            const Stripe stripe = cut.stripe(a, round);
            EXPECT_EQ(stripe.begin, at);
            EXPECT_GT(stripe.end, stripe.begin);
            EXPECT_LE(stripe.end - stripe.begin, size);
            if (stripe.end < bytes) EXPECT_EQ((position + stripe.end) % size, 0);
            EXPECT_EQ(stripe.number, 7 + static_cast<std::uint64_t>(round));
            at = stripe.end;
          }
          EXPECT_EQ(numbers[static_cast<std::size_t>(a)], 7 + static_cast<std::uint64_t>(cut.count(a)));
          EXPECT_LE(cut.count(a), cut.rounds());
        }
        EXPECT_EQ(at, bytes);
        // Markers in front of an array go with its first stripe. The I/O rank corrects them.
        if (bytes > 0) EXPECT_GT(cut.count(0), 0) << bytes << " bytes, " << aggregators << " aggregators";
      }
    }
  }
}

TEST(stripe_cut, a_round_has_the_stripes_of_the_aggregators_that_have_so_many) {
  std::vector<std::uint64_t> numbers(3, 0);
  const StripeCut cut(0, 4 * 64, 64, numbers, 3);  // two stripes, one and one
  std::vector<Stripe> list;
  for (std::int64_t round = 0; round < cut.rounds(); ++round) {
    cut.stripes(round, list);
    std::size_t at = 0;
    for (int a = 0; a < 3; ++a) {
      if (round >= cut.count(a)) continue;
      ASSERT_LT(at, list.size());
      EXPECT_EQ(list[at].aggregator, a);
      EXPECT_EQ(list[at++].begin, cut.stripe(a, round).begin);
    }
    EXPECT_EQ(list.size(), at) << "round " << round;
  }
}

}  // namespace
