// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <random>
#include <string>
#include <string_view>

#include "formats/index/index.hpp"
#include "ground/storage/target.hpp"

// Small indexes and data files for the tests of this folder.
namespace tailrace::streams {

inline IndexHeader sample_header() {
  IndexHeader header;
  header.run = *Uuid::parse("123e4567-e89b-42d3-a456-426614174000");
  header.format = "grib2";
  header.base = {2026, 3, 1, 0, 0, 0};
  header.member = 7;
  header.data_begin = 0;
  header.fields = {{"t", ElementType::f32, {378, 468}, "hybrid", {1, 2, 3}},
                   {"sp", ElementType::f64, {378, 468}, "surface", {0}}};
  return header;
}

/// Step `number` of the sample: four records of 10 to 13 bytes, three hours after the one before.
inline IndexStep sample_step(std::int64_t number, Bytes begin) {
  IndexStep step;
  step.step = number;
  step.lead = number * 10800;
  step.begin = begin;
  Bytes offset = begin;
  for (std::int32_t i = 0; i < 4; ++i) {
    step.records.push_back({i < 3 ? 0 : 1, i < 3 ? i : 0, offset, 10 + i});
    offset += 10 + i;
  }
  step.end = offset;
  return step;
}
constexpr Bytes kSampleStepBytes = 46;

inline std::vector<IndexStep> sample_steps(int count) {
  std::vector<IndexStep> steps;
  for (int i = 0; i < count; ++i) steps.push_back(sample_step(i, i * kSampleStepBytes));
  return steps;
}

inline ByteVector encode_index(const IndexHeader& header, const std::vector<IndexStep>& steps,
                               bool closed = false) {
  ByteVector bytes = encode_header(header);
  IndexChain chain = first_chain(bytes);
  const auto add = [&](const ByteVector& record) {
    chain = next_chain(chain, record);
    bytes.insert(bytes.end(), record.begin(), record.end());
  };
  for (const IndexStep& step : steps) add(encode_step(step, chain));
  if (closed) add(encode_closed(steps.empty() ? header.data_begin : steps.back().end, chain));
  return bytes;
}

inline void put_bytes(storage::Target& target, const std::string& path, std::span<const std::byte> bytes) {
  auto file = target.open(path, storage::OpenMode::create);
  if (file.is_ok()) static_cast<void>((*file)->write(bytes, 0).is_ok());
}

inline ByteVector get_bytes(storage::Target& target, const std::string& path) {
  auto file = target.open(path, storage::OpenMode::read);
  if (!file.is_ok()) return {};
  ByteVector bytes(static_cast<std::size_t>(*(*file)->size()));
  static_cast<void>((*file)->read(bytes, 0).is_ok());
  return bytes;
}

inline Bytes size_of_file(storage::Target& target, const std::string& path) {
  auto file = target.open(path, storage::OpenMode::read);
  return file.is_ok() ? *(*file)->size() : -1;
}

inline bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tailrace::streams
