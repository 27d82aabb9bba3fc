// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// What finding the bits that carry information costs (accuracy=auto), on one thread: records of smooth waves
// with noise that lie in memory, counted by pairs in each way that this processor has, and encoded by codecs
// of the library with accuracy=auto and without. The number of bits is also chosen for records whose
// neighbours are often equal, which are looked at again, one of them in short rows. It uses modules of the
// library: no public call encodes alone.
//   --rows N  --turns N
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "clocks.hpp"
#include "formats/information/choose.hpp"
#include "formats/information/pairs.hpp"
#include "formats/registry/registry.hpp"

namespace {

using namespace tailrace;
using entropy::Way;

constexpr Index row = 1000;
constexpr Index short_row = 3;  // as the components of a vector
constexpr struct {
  Way way;
  const char* name;
} ways[] = {{Way::portable, "portable"}, {Way::avx2, "avx2"}, {Way::avx512, "avx512"}};

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "information_rate: %s\n", why.c_str());
  std::exit(1);
}

std::vector<float> waves(Index count) {
  std::vector<float> values;
  std::uint64_t random = 1;
  for (Index i = 0; i < count; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const double noise = std::ldexp(static_cast<double>(random >> 33), -31);
    values.push_back(static_cast<float>(288 +
                                        10 * std::sin(0.004 * static_cast<double>(i % row)) *
                                            std::cos(0.003 * static_cast<double>(i / row)) +
                                        0.03 * noise));
  }
  return values;
}

/// The same, where a fifth of each row is an area of one value.
std::vector<float> with_area(std::vector<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % row < row / 5) values[i] = 273.15F;
  return values;
}

/// The same, rounded to multiples of a coarse step.
std::vector<float> with_steps(std::vector<float> values) {
  for (float& value : values) value = std::round(value * 64) / 64;
  return values;
}

double seconds_of_choosing(const std::vector<float>& values, Index in_row = row) {
  int bits = 0;
  const double seconds =
      bench::timed([&] { bits = information::kept_of(values, std::nullopt, in_row, 0.99).bits; }).cpu;
  if (bits == 0) give_up("no bits were chosen");
  return seconds;
}

template <typename Word>
double seconds_of_counting(const std::vector<Word>& words, Way way) {
  const information::Reading<Word> reading{.row = row};
  std::int64_t pairs = 0;
  const double seconds = bench::timed([&] {
                           pairs =
                               information::count_pairs(words.data(), std::ssize(words), reading, way).count;
                         }).cpu;
  if (pairs == 0) give_up("there are no pairs");
  return seconds;
}

/// A codec with one field of the values' shape.
struct Contender {
  std::string name;
  std::unique_ptr<codec::Codec> codec;
  std::unique_ptr<codec::Encoder> encoder;
  std::vector<double> seconds{};
  std::size_t bytes = 0;
  int kept = 0;
};

Contender contender(const std::string& format, const std::string& packing, bool is_auto, Index rows) {
  codec::StreamDefinition stream;
  stream.format = format;
  stream.base = {2026, 3, 1, 0, 0, 0};
  stream.packing = packing;
  codec::FieldDefinition field;
  field.name = "t";
  field.shape = {rows, row};
  field.georeference.keys = {{"gridType", "regular_ll"},
                             {"latitudeOfFirstGridPointInDegrees", "0"},
                             {"longitudeOfFirstGridPointInDegrees", "0"},
                             {"latitudeOfLastGridPointInDegrees", "50"},
                             {"longitudeOfLastGridPointInDegrees", "50"}};
  if (is_auto) field.information = 0.99;
  Result<std::unique_ptr<codec::Codec>> made = formats::make_codec(stream);
  if (!made.is_ok()) give_up(made.status().text());
  if (const Status defined = (*made)->define(field); !defined.is_ok()) give_up(defined.text());
  const std::string name = format == "grib2" ? packing : format;
  return {name + (is_auto ? ".auto" : ".whole"), std::move(*made), nullptr};
}

void encode(Contender& one, const std::vector<float>& values) {
  if (one.encoder == nullptr) one.encoder = one.codec->encoder();
  std::vector<float> given = values;
  ByteVector out;
  out.reserve(static_cast<std::size_t>(one.codec->encoded_bound(0)));
  Status status;
  one.seconds.push_back(bench::timed([&] {
                          status =
                              one.encoder->encode({0, 0, 0, 0}, reinterpret_cast<std::byte*>(given.data()),
                                                  std::ssize(given), out);
                        }).cpu);
  if (!status.is_ok()) give_up(status.text());
  one.bytes = out.size();
  one.kept = one.encoder->kept_bits().value_or(codec::KeptBits{}).bits;
}

void print_list(const std::string& name, const std::vector<double>& values) {
  std::printf(", \"%s\": [", name.c_str());
  for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%.9f", i == 0 ? "" : ", ", values[i]);
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv);
  const Index rows = arguments.number("--rows", 1000);
  const long turns = arguments.number("--turns", 8);
  const std::vector<float> values = waves(rows * row);
  std::vector<std::uint32_t> words(values.size());
  std::memcpy(words.data(), values.data(), values.size() * sizeof(float));
  std::vector<std::uint64_t> wide;
  for (const float value : values)
    wide.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(value) / 3));
  std::vector<Contender> contenders;
  for (const bool is_auto : {false, true}) {
    contenders.push_back(contender("grib2", "simple", is_auto, rows));
    contenders.push_back(contender("grib2", "ccsds", is_auto, rows));
    for (const char* format : {"netcdf4", "zarr"}) {
      const Result<const formats::Format*> found = formats::find(format);
      if (found.is_ok() && (*found)->make != nullptr)
        contenders.push_back(contender(format, "simple", is_auto, rows));
    }
  }
  const std::vector<float> area = with_area(values), steps = with_steps(values);
  std::vector<double> counting[std::size(ways)], counting_wide[std::size(ways)], choosing, in_area, in_steps,
      in_short_rows;
  for (long turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < std::size(ways); ++i) {
      if (!entropy::has(ways[i].way)) continue;
      counting[i].push_back(seconds_of_counting(words, ways[i].way));
      counting_wide[i].push_back(seconds_of_counting(wide, ways[i].way));
    }
    choosing.push_back(seconds_of_choosing(values));
    in_area.push_back(seconds_of_choosing(area));
    in_steps.push_back(seconds_of_choosing(steps));
    in_short_rows.push_back(seconds_of_choosing(steps, short_row));
    for (Contender& each : contenders) encode(each, values);
  }
  std::printf("{\"values\": %zu", values.size());
  for (std::size_t i = 0; i < std::size(ways); ++i) {
    print_list(std::string("float32.") + ways[i].name, counting[i]);
    print_list(std::string("float64.") + ways[i].name, counting_wide[i]);
  }
  print_list("choosing.waves", choosing);
  print_list("choosing.area", in_area);
  print_list("choosing.steps", in_steps);
  print_list("choosing.short_rows", in_short_rows);
  for (const Contender& each : contenders) {
    print_list(each.name, each.seconds);
    std::printf(", \"%s.bytes\": %zu, \"%s.kept\": %d", each.name.c_str(), each.bytes, each.name.c_str(),
                each.kept);
  }
  std::printf("}\n");
  return 0;
}
