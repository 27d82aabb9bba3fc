// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "engine/placement/arrival.hpp"
#include "engine/placement/fixed.hpp"
#include "engine/placement/packed.hpp"
#include "engine/placement/scan.hpp"
#include "formats/codec/sample_codec.hpp"

namespace tailrace::placement {
namespace {

constexpr int fields = 4, levels = 6, begin_of_file = 100;

Bytes length_of(int field, Index level) { return 5 + 7 * field + (field == 2 ? level : 0); }

/// A step is its time in 8 bytes, and all records with 3 bytes behind each.
codec::FixedPlaces sample_places() {
  codec::FixedPlaces sample;
  sample.step = 8;
  for (int field = 0; field < fields; ++field) {
    auto& places = sample.places.emplace_back();
    for (Index level = 0; level < levels; ++level) {
      places.push_back(sample.step);
      sample.step += length_of(field, level) + 3;
    }
  }
  return sample;
}

struct Step {
  std::vector<Record> put;  // in put order
  bool fails = false;       // nothing of it stays
  Bytes begin = 0, end = 0;
};

struct Chunk {
  std::size_t step = 0, first = 0, count = 0;
  bool dropped = false;

  std::span<Record> records(std::vector<Step>& steps) const {
    return std::span(steps[step].put).subspan(first, count);
  }
};

/// Steps with some of all records each, none of them twice.
std::vector<Step> some_steps(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Step> steps(1 + random() % 4);
  for (Step& step : steps) {
    for (int field = 0; field < fields; ++field) {
      for (Index level = 0; level < levels; ++level) {
        if (random() % 4 != 0) step.put.push_back({field, level, 0, length_of(field, level)});
      }
    }
    std::ranges::shuffle(step.put, random);
  }
  return steps;
}

std::vector<Chunk> cut(const std::vector<Step>& steps, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Chunk> chunks;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (std::size_t first = 0, count = 0; first < steps[step].put.size(); first += count) {
      count = std::min<std::size_t>(1 + random() % 7, steps[step].put.size() - first);
      chunks.push_back({step, first, count});
    }
  }
  return chunks;
}

struct Candidate {
  std::string name;
  std::optional<codec::FixedPlaces> (*places)();
  std::unique_ptr<Placement> (*make)(const codec::Codec&) = make_placement;
  bool is_ordered = true;  // offsets follow from the put order alone
};

class PlacementConformance : public testing::TestWithParam<Candidate> {
 protected:
  [[nodiscard]] std::unique_ptr<Placement> make() const {
    return GetParam().make(codec::SampleCodec(GetParam().places()));
  }
  [[nodiscard]] Bytes size_of_step(const Step& step) const {
    if (const auto places = GetParam().places()) return places->step;
    return std::accumulate(step.put.begin(), step.put.end(), Bytes{0},
                           [](Bytes sum, const Record& record) { return sum + record.length; });
  }

  /// Places the steps as a stream's root does. Chunks are encoded in the order `seed`, and step by step in
  /// put order without one.
  std::vector<Step> placed(std::vector<Step> steps, const std::vector<Chunk>& chunks,
                           std::optional<unsigned> seed = {}) const {
    std::vector<std::size_t> order(chunks.size());
    std::iota(order.begin(), order.end(), 0);
    if (seed) std::ranges::shuffle(order, std::mt19937(*seed));
    const auto placement = make();
    std::size_t turn = 0, announced = 0, left = 0;
    const auto count_left = [&] {
      left = static_cast<std::size_t>(
          std::ranges::count_if(chunks, [&](const Chunk& each) { return each.step == turn; }));
    };
    count_left();
    Bytes end = begin_of_file;
    bool begun = false;
    for (const std::size_t encoded : order) {
      for (; announced <= encoded; ++announced) placement->announce(announced);
      placement->on_encoded(encoded, static_cast<std::int64_t>(chunks[encoded].step));
      while (const auto next = placement->next(static_cast<std::int64_t>(turn))) {
        const Chunk& chunk = chunks.at(*next);
        EXPECT_EQ(chunk.step, turn);
        Step& step = steps[turn];
        // A step that fails does so in the middle of being placed.
        if (chunk.dropped || (step.fails && left == 1)) {
          placement->drop(*next);
        } else {
          if (!begun) placement->begin_step(step.begin = end);
          begun = true;
          placement->place(*next, chunk.records(steps));
        }
        if (--left > 0) continue;
        step.end = begun ? placement->end() : end;
        if (!step.fails) end = step.end;
        begun = false;
        ++turn;
        count_left();
      }
    }
    EXPECT_EQ(turn, steps.size()) << "some chunks were never placed";
    return steps;
  }
};

void expect_same(const std::vector<Step>& some, const std::vector<Step>& others) {
  ASSERT_EQ(some.size(), others.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    EXPECT_EQ(some[i].end, others[i].end);
    EXPECT_TRUE(some[i].fails ||
                std::ranges::equal(some[i].put, others[i].put, {}, &Record::offset, &Record::offset))
        << "step " << i;
  }
}

TEST_P(PlacementConformance, offsets_do_not_depend_on_the_order_in_which_sizes_become_known) {
  if (!GetParam().is_ordered) GTEST_SKIP() << "the order is that of arrival";
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::vector<Step> steps = some_steps(seed);
    const std::vector<Chunk> chunks = cut(steps, seed);
    expect_same(placed(steps, chunks), placed(steps, chunks, seed));
  }
}

TEST_P(PlacementConformance, offsets_do_not_depend_on_how_records_are_dealt_out_to_owners) {
  if (!GetParam().is_ordered) GTEST_SKIP() << "the order is that of arrival";
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::vector<Step> steps = some_steps(seed);
    expect_same(placed(steps, cut(steps, 1), seed), placed(steps, cut(steps, seed), seed + 1));
  }
}

TEST_P(PlacementConformance, records_lie_within_their_step_and_do_not_overlap) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::vector<Step> steps = some_steps(seed);
    std::vector<Record> all;
    for (const Step& step : placed(steps, cut(steps, seed), seed)) {
      for (const Record& record : step.put) {
        EXPECT_GE(record.offset, step.begin);
        EXPECT_LE(record.offset + record.length, step.end);
        all.push_back(record);
      }
    }
    std::ranges::sort(all, {}, &Record::offset);
    for (std::size_t i = 1; i < all.size(); ++i)
      EXPECT_GE(all[i].offset, all[i - 1].offset + all[i - 1].length) << "seed " << seed;
  }
}

TEST_P(PlacementConformance, a_step_begins_where_the_one_before_ends) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::vector<Step> steps = some_steps(seed);
    Bytes end = begin_of_file;
    for (const Step& step : placed(steps, cut(steps, seed), seed)) {
      EXPECT_EQ(step.begin, end);
      EXPECT_EQ(step.end, step.begin + size_of_step(step));
      end = step.end;
    }
  }
}

TEST_P(PlacementConformance, dropped_chunks_leave_the_others_as_if_nobody_had_put_them) {
  if (!GetParam().is_ordered) GTEST_SKIP() << "the order is that of arrival";
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::vector<Step> steps = some_steps(seed);
    std::vector<Chunk> chunks = cut(steps, seed);
    std::vector<Step> fewer(steps.size());
    for (Chunk& chunk : chunks) {
      // One chunk of each step stays: a step without any is not written.
      chunk.dropped = chunk.first > 0 && random() % 3 == 0;
      const auto first = steps[chunk.step].put.begin() + static_cast<std::ptrdiff_t>(chunk.first);
      auto& put = fewer[chunk.step].put;
      if (!chunk.dropped) put.insert(put.end(), first, first + static_cast<std::ptrdiff_t>(chunk.count));
    }
    std::vector<Step> with = placed(steps, chunks, seed);
    for (Step& step : with) step.put.clear();
    std::vector<Step> all = placed(steps, chunks, seed);
    for (const Chunk& chunk : chunks) {
      const auto records = chunk.records(all);
      if (!chunk.dropped)
        with[chunk.step].put.insert(with[chunk.step].put.end(), records.begin(), records.end());
    }
    expect_same(placed(fewer, cut(fewer, seed)), with);
  }
}

TEST_P(PlacementConformance, a_failed_step_leaves_its_begin_to_the_next) {
  if (!GetParam().is_ordered) GTEST_SKIP() << "the order is that of arrival";
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::vector<Step> steps = some_steps(seed);
    std::vector<Step> good;
    std::mt19937 random(seed);
    for (Step& step : steps) {
      step.fails = random() % 2 == 0;
      if (!step.fails) good.push_back(step);
    }
    std::vector<Step> left = placed(steps, cut(steps, seed), seed);
    std::erase_if(left, [](const Step& step) { return step.fails; });
    expect_same(placed(good, cut(good, seed)), left);
  }
}

TEST_P(PlacementConformance, nothing_of_a_later_step_is_placed_early) {
  const auto placement = make();
  placement->announce(0);
  placement->announce(1);
  EXPECT_EQ(placement->next(0), std::nullopt);
  placement->on_encoded(1, 1);
  EXPECT_EQ(placement->next(0), std::nullopt);
  placement->on_encoded(0, 0);
  EXPECT_EQ(placement->next(0), 0u);
  EXPECT_EQ(placement->next(1), std::nullopt);
  placement->drop(0);
  EXPECT_EQ(placement->next(0), std::nullopt);
  EXPECT_EQ(placement->next(1), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    All, PlacementConformance,
    testing::Values(Candidate{"scan", []() -> std::optional<codec::FixedPlaces> { return {}; }},
                    Candidate{"fixed", []() -> std::optional<codec::FixedPlaces> { return sample_places(); }},
                    Candidate{"packed",
                              []() -> std::optional<codec::FixedPlaces> {
                                codec::FixedPlaces places = sample_places();
                                places.are_packed = true;
                                return places;
                              }},
                    Candidate{"arrival", []() -> std::optional<codec::FixedPlaces> { return {}; },
                              make_placement_by_arrival, false},
                    Candidate{"arrival_with_places",
                              []() -> std::optional<codec::FixedPlaces> { return sample_places(); },
                              make_placement_by_arrival}),
    [](const auto& candidate) { return candidate.param.name; });

TEST(Scan, waits_for_the_sizes_before_and_takes_a_record_twice) {
  Scan scan;
  for (const std::uint64_t chunk : {0, 1}) scan.announce(chunk);
  scan.on_encoded(1, 0);
  EXPECT_EQ(scan.next(0), std::nullopt);
  scan.on_encoded(0, 0);
  scan.begin_step(10);
  std::vector<Record> records{{0, 0, 0, 5}, {0, 0, 0, 6}};
  scan.place(*scan.next(0), records);
  EXPECT_EQ(records[0].offset, 10);
  EXPECT_EQ(records[1].offset, 15);
  EXPECT_EQ(scan.end(), 21);
}

TEST(Arrival, places_chunks_as_their_sizes_become_known) {
  Arrival arrival;
  for (const std::uint64_t chunk : {0, 1}) arrival.announce(chunk);
  arrival.on_encoded(1, 0);
  ASSERT_EQ(arrival.next(0), 1u);
  arrival.begin_step(10);
  std::vector<Record> second{{0, 1, 0, 5}}, first{{0, 0, 0, 7}};
  arrival.place(1, second);
  arrival.on_encoded(0, 0);
  arrival.place(*arrival.next(0), first);
  EXPECT_EQ(second[0].offset, 10);
  EXPECT_EQ(first[0].offset, 15);
  EXPECT_EQ(arrival.end(), 22);
}

TEST(Taken, leaves_offsets_as_they_are_and_ends_behind_all_lengths) {
  const auto taken = make_placement_of_taken();
  taken->announce(0);
  taken->on_encoded(0, 0);
  EXPECT_EQ(taken->next(0), std::nullopt) << "nothing waits for a place";
  EXPECT_EQ(taken->least_step(9), 9);
  taken->begin_step(10);
  std::vector<Record> second{{0, 1, 17, 5}}, first{{0, 0, 10, 7}};
  taken->place(1, second);
  taken->place(0, first);
  EXPECT_EQ(second[0].offset, 17);
  EXPECT_EQ(first[0].offset, 10);
  EXPECT_EQ(taken->end(), 22);
  taken->begin_step(22);
  EXPECT_EQ(taken->end(), 22);
}

TEST(Fixed, places_a_chunk_before_those_before_it_are_encoded) {
  Fixed fixed(sample_places());
  for (const std::uint64_t chunk : {0, 1}) fixed.announce(chunk);
  fixed.on_encoded(1, 0);
  ASSERT_EQ(fixed.next(0), 1u);
  fixed.begin_step(10);
  std::vector<Record> records{{0, 1, 0, 5}};
  fixed.place(1, records);
  EXPECT_EQ(records[0].offset, 10 + 8 + 5 + 3);
  EXPECT_EQ(fixed.end(), 10 + sample_places().step);
}

TEST(Packed, puts_the_levels_of_a_field_behind_one_another_from_its_place_on) {
  Packed packed(sample_places());
  for (const std::uint64_t chunk : {0, 1}) packed.announce(chunk);
  packed.on_encoded(1, 0);
  EXPECT_EQ(packed.next(0), std::nullopt);
  packed.on_encoded(0, 0);
  packed.begin_step(10);
  // Levels 3 and 0 of field 0, and level 5 of field 1 between them.
  std::vector<Record> records{{0, 3, 0, 2}, {1, 5, 0, 9}, {0, 0, 0, 4}};
  packed.place(*packed.next(0), records);
  EXPECT_EQ(records[0].offset, 10 + 8);
  EXPECT_EQ(records[1].offset, 10 + 8 + levels * (5 + 3));
  EXPECT_EQ(records[2].offset, 10 + 8 + 2);
  EXPECT_EQ(packed.end(), 10 + sample_places().step);
}

}  // namespace
}  // namespace tailrace::placement
