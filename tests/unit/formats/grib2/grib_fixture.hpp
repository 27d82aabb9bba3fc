// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "formats/grib2/handle.hpp"
#include "formats/registry/registry.hpp"

// Helpers for tests of GRIB2: definitions to start from, encoding in one call, and decoding by ecCodes.
namespace tailrace::codec::test {

inline constexpr std::int64_t hour = 3600;

Keys small_grid();  // 6 rows of 10
StreamDefinition stream_of(const std::string& packing = "simple");
FieldDefinition field_of(const std::string& name, const std::string& level_type = "surface",
                         std::vector<double> levels = {0});

std::unique_ptr<Codec> codec_of(const StreamDefinition& stream);
/// Defines the one field of a stream, and returns the codec's Status.
Status define(const StreamDefinition& stream, const FieldDefinition& field);

/// Encodes one record of one field, by a codec of its own.
Result<ByteVector> encode(const StreamDefinition& stream, const FieldDefinition& field, const RecordKey& key,
                          std::vector<double> values);
/// Encodes a record with arbitrary values, and opens it with ecCodes.
grib2::Handle open_record(const StreamDefinition& stream, const FieldDefinition& field, const RecordKey& key);
std::vector<double> decode(const ByteVector& message, double missing = 9999);
std::vector<double> wave(Index count, double size = 1, double offset = 0);

}  // namespace tailrace::codec::test
