// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "grib_fixture.hpp"

#include <cmath>

namespace tailrace::codec::test {

Keys small_grid() {
  return {{"gridType", "regular_ll"},
          {"latitudeOfFirstGridPointInDegrees", "50"},
          {"longitudeOfFirstGridPointInDegrees", "5"},
          {"latitudeOfLastGridPointInDegrees", "45"},
          {"longitudeOfLastGridPointInDegrees", "14"}};
}

StreamDefinition stream_of(const std::string& packing) {
  StreamDefinition stream;
  stream.format = "grib2";
  stream.base = {2026, 3, 1, 0, 0, 0};
  stream.packing = packing;
  return stream;
}

FieldDefinition field_of(const std::string& name, const std::string& level_type, std::vector<double> levels) {
  FieldDefinition field;
  field.name = name;
  field.type = ElementType::f64;  // the type of all values in these tests
  field.shape = {6, 10};
  field.georeference.keys = small_grid();
  field.levels = {level_type, std::move(levels), {}, {}};
  return field;
}

std::unique_ptr<Codec> codec_of(const StreamDefinition& stream) {
  Result<std::unique_ptr<Codec>> codec = formats::make_codec(stream);
  if (!codec.is_ok()) {
    ADD_FAILURE() << codec.status().text();
    return nullptr;
  }
  return std::move(*codec);
}

Status define(const StreamDefinition& stream, const FieldDefinition& field) {
  Result<std::unique_ptr<Codec>> codec = formats::make_codec(stream);
  if (!codec.is_ok()) return codec.status();
  return (*codec)->define(field);
}

Result<ByteVector> encode(const StreamDefinition& stream, const FieldDefinition& field, const RecordKey& key,
                          std::vector<double> values) {
  Result<std::unique_ptr<Codec>> codec = formats::make_codec(stream);
  if (!codec.is_ok()) return codec.status();
  TR_TRY((*codec)->define(field));
  TR_TRY((*codec)->check_lead(key));
  ByteVector out;
  const auto count = static_cast<Index>(values.size());
  TR_TRY((*codec)->encoder()->encode(key, reinterpret_cast<std::byte*>(values.data()), count, out));
  return out;
}

grib2::Handle open_record(const StreamDefinition& stream, const FieldDefinition& field,
                          const RecordKey& key) {
  const Result<ByteVector> message = encode(stream, field, key, wave(field.elements()));
  EXPECT_TRUE(message.is_ok()) << message.status().text();
  Result<grib2::Handle> handle =
      message.is_ok() ? grib2::Handle::from_message(*message) : grib2::Handle::from_sample("GRIB2");
  return std::move(*handle);
}

std::vector<double> decode(const ByteVector& message, double missing) {
  Result<grib2::Handle> handle = grib2::Handle::from_message(message);
  if (!handle.is_ok()) {
    ADD_FAILURE() << handle.status().text();
    return {};
  }
  EXPECT_EQ(handle->set("missingValue", missing), 0);
  return handle->numbers("values");
}

std::vector<double> wave(Index count, double size, double offset) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = offset + size * std::sin(0.37 * static_cast<double>(i));
  return values;
}

}  // namespace tailrace::codec::test
