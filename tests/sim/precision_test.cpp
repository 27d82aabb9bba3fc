// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The bits that a record keeps with accuracy=auto follow from its values alone: the bytes of a file are the
// same for any ranks, servers and threads.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/session/session.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

constexpr Index precision_rows = 40, precision_columns = 60;

/// A smooth value with noise in its last bits, the same for whoever asks.
float noisy_value(Index level, std::int64_t step, Index element) {
  const auto x = static_cast<double>(element % precision_columns),
             y = static_cast<double>(element) / static_cast<double>(precision_columns);
  const auto hash =
      static_cast<std::uint32_t>(element * 2654435761 + level * 40503 + step * 977) * 2246822519U;
  return static_cast<float>(270 +
                            10 * std::sin(0.05 * x + 0.1 * static_cast<double>(step)) * std::cos(0.07 * y) +
                            std::ldexp(static_cast<double>(hash), -32 - static_cast<int>(level)));
}

constexpr float absent = -99;

/// The array of a field of which some elements are missing if its definition names such a value.
std::vector<float> noisy_array(const StreamPlan::Field& field, Index levels, int rank, std::int64_t step) {
  const bool has_missing = field.definition.missing.has_value();
  std::vector<float> array;
  for (Index level = 0; level < levels; ++level)
    for (const layout::Rows& rows : field.layout.rows(rank))
      for (Index row = 0; row < rows.rows; ++row)
        for (Index k = 0; k < rows.count; ++k) {
          const Index element = rows.global + row * rows.stride + k;
          array.push_back(has_missing && element % 7 == 3 ? absent : noisy_value(level, step, element));
        }
  array.reserve(1);  // an array of no elements has an address, too
  return array;
}

struct Precise {
  std::string pattern, stream_options, field_options;
};

/// Returns the file that these nodes write, and checks that nobody has changed the arrays of the program:
/// without servers they are lent to the encoders.
ByteVector precise_file(const Precise& what, const std::vector<NodeShape>& nodes, int ranks,
                        std::uint64_t seed) {
  const layout::Layout layout = *layout::Layout::block({precision_rows, precision_columns}, ranks);
  const std::vector<Variable> variables{
      {"t", layout, cat("levels=pressure:850,500 ", what.field_options)},
      {"u", layout, cat("levels=pressure:850 missing=-99 ", what.field_options)}};
  const auto plan = StreamPlan::make(what.pattern, cat("base=2026-03-01 ", what.stream_options), variables);
  EXPECT_TRUE(plan.is_ok()) << plan.status().text();
  if (!plan.is_ok()) return {};
  Job job;
  job.nodes = nodes;
  job.seed = seed;
  job.threads = 1 + static_cast<int>(seed % 3);
  job.staging = Bytes{4} << 20;  // ecCodes packs second order in some memory
  SessionWorld world(job);
  std::vector<std::map<std::pair<std::int64_t, int>, std::vector<float>>> arrays(
      static_cast<std::size_t>(world.ranks()));
  const Texts stuck = world.run([&](SessionRank& rank) {
    PlannedStream stream(rank, *plan);
    EXPECT_TRUE(stream.create().is_ok());
    for (std::int64_t step = 0; step < 3; ++step) {
      stream.begin(step * 3600);
      for (const int field : {0, 1}) {
        std::vector<float>& array = arrays[static_cast<std::size_t>(rank.rank())][{step, field}];
        array = noisy_array((*plan)->fields[static_cast<std::size_t>(field)], (*plan)->levels(field),
                            rank.rank(), step);
        stream.put(field, reinterpret_cast<const std::byte*>(array.data()));
      }
      EXPECT_TRUE(stream.end().is_ok());
    }
    EXPECT_TRUE(stream.wait(true).is_ok());
    EXPECT_TRUE(stream.close().is_ok());
  });
  EXPECT_TRUE(stuck.empty()) << text_of(stuck);
  for (int rank = 0; rank < world.ranks(); ++rank)
    for (const auto& [key, array] : arrays[static_cast<std::size_t>(rank)]) {
      const StreamPlan::Field& field = (*plan)->fields[static_cast<std::size_t>(key.second)];
      EXPECT_EQ(array, noisy_array(field, (*plan)->levels(key.second), rank, key.first))
          << "rank " << rank << ", field " << key.second << ", step " << key.first;
    }
  return read_file(world.storage(), what.pattern);
}

std::vector<Precise> precise_files() {
  std::vector<Precise> all;
  const std::string grid =
      "keys=\"gridType=regular_ll, latitudeOfFirstGridPointInDegrees=50, "
      "longitudeOfFirstGridPointInDegrees=5, "
      "latitudeOfLastGridPointInDegrees=30.5, longitudeOfLastGridPointInDegrees=34.5\"";
  for (const formats::Format& format : formats::all()) {
    if (format.make == nullptr) continue;
    if (format.name == "netcdf4") all.push_back({"fc.nc4", "", ""});
    if (format.name == "zarr") all.push_back({"fc.zarr", "", ""});
    if (format.name == "grib1") {
      all.push_back({"fc.grib1", cat("centre=98 ", grid), ""});
      all.push_back({"fc.grib1", cat("packing=second_order centre=98 ", grid), ""});
    }
    if (format.name != "grib2") continue;
    all.push_back({"fc.grib2", cat("packing=simple ", grid), ""});
    all.push_back({"fc.grib2", cat("packing=ccsds ", grid), ""});
  }
  return all;
}

TEST(sim_precision, bytes_follow_from_the_values_for_any_ranks_and_servers) {
  for (const Precise& each : precise_files()) {
    SCOPED_TRACE(each.pattern + " " + each.stream_options);
    Precise automatic = each;
    automatic.field_options = "accuracy=auto";
    const ByteVector alone = precise_file(automatic, {{1, 0}}, 1, 1);
    ASSERT_GT(alone.size(), 1000U);
    EXPECT_EQ(precise_file(automatic, {{2, 0}}, 2, 2), alone);
    EXPECT_EQ(precise_file(automatic, {{3, 1}}, 3, 3), alone);
    EXPECT_EQ(precise_file(automatic, {{2, 1}, {3, 2}}, 5, 4), alone);
    EXPECT_NE(
        precise_file({each.pattern, each.stream_options, "accuracy=auto information=0.9"}, {{2, 1}}, 2, 5),
        alone);
    constexpr std::string_view second_order = "packing=second_order ";
    if (each.stream_options.starts_with(second_order)) {
      Precise simple = automatic;
      simple.stream_options.erase(0, second_order.size());
      EXPECT_NE(precise_file(simple, {{2, 1}}, 2, 6), alone) << "nothing was packed in second order";
    }
    if (each.pattern == "fc.nc4") {
      EXPECT_LT(alone.size(), precise_file(each, {{2, 1}}, 2, 6).size());
    }
  }
}

}  // namespace
}  // namespace tailrace::sim
