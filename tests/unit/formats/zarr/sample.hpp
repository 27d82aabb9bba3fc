// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include "formats/registry/registry.hpp"

namespace tailrace::zarr {

/// Returns the codec of a stream without fields.
inline std::unique_ptr<codec::Codec> empty_codec() {
  codec::StreamDefinition stream;
  stream.format = "zarr";
  stream.base = {2026, 3, 1, 0, 0, 0};
  Result<std::unique_ptr<codec::Codec>> made = formats::make_codec(stream);
  EXPECT_TRUE(made.is_ok()) << made.status().text();
  return std::move(*made);
}

/// Returns the codec of a field with two levels and of one with a single level, on 2 x 3 points.
inline std::unique_ptr<codec::Codec> sample_codec(const std::string& name = "t") {
  std::unique_ptr<codec::Codec> made = empty_codec();
  codec::FieldDefinition field;
  field.name = name;
  field.shape = {2, 3};
  field.levels = {"isobaricInhPa", {1000, 850}, {}, {}};
  field.keys = {{"compress", "none"}};
  EXPECT_TRUE(made->define(field).is_ok());
  field.name = "ps";
  field.type = ElementType::f64;
  field.levels = {};
  field.keys = {{"compress", "gzip"}};
  EXPECT_TRUE(made->define(field).is_ok());
  return made;
}

/// Returns the bytes of a record of one value.
inline ByteVector sample_record(const codec::Codec& codec, int field, Index level, double value) {
  const std::vector<float> floats(6, static_cast<float>(value));
  const std::vector<double> doubles(6, value);
  const auto bytes = field == 0 ? std::as_bytes(std::span(floats)) : std::as_bytes(std::span(doubles));
  ByteVector values(bytes.begin(), bytes.end()), out;
  EXPECT_TRUE(codec.encoder()->encode({field, level, 0, 0}, values.data(), 6, out).is_ok());
  return out;
}

/// Returns the bytes of a step as the stages of a server write them: the extents of its records, and the
/// patches that the root adds.
inline std::vector<codec::Patch> sample_step(const codec::Codec& codec, std::int64_t step,
                                             const std::vector<std::pair<int, Index>>& put = {
                                                 {0, 0}, {0, 1}, {1, 0}}) {
  const codec::FixedPlaces places = *codec.fixed_places();
  std::vector<codec::Patch> patches;
  std::vector<codec::FinishedStep::Record> records;
  std::vector<Bytes> used(2, 0);
  for (const auto& [field, level] : put) {
    ByteVector bytes = sample_record(codec, field, level, 100.0 * static_cast<double>(step) + field);
    const auto number = static_cast<std::size_t>(field);
    const Bytes at = places.places[number].front() + used[number];
    used[number] += std::ssize(bytes);
    records.push_back({field, level, at, std::ssize(bytes)});
    patches.push_back({at, std::move(bytes), 1});
  }
  for (codec::Patch& each : codec.rest_of_step(step * 3600, (step - 1) * 3600, records))
    patches.push_back(std::move(each));
  for (codec::Patch& each : patches) each.offset += std::ssize(codec.head()) + step * places.step;
  return patches;
}

}  // namespace tailrace::zarr
