// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <bit>

#include "base/text.hpp"
#include "raw/codec.hpp"

namespace tailrace::raw {

namespace {

// On a big-endian machine the two parts of a complex number are swapped each, not the number as a whole.
Bytes scalar_size(ElementType type) {
  switch (type) {
    case ElementType::c64:
      return 4;
    case ElementType::c128:
      return 8;
    default:
      return size_of(type);
  }
}

class RawEncoder final : public codec::Encoder {
 public:
  explicit RawEncoder(const std::vector<codec::FieldDefinition>& fields) : fields_(fields) {}

  Status encode(const codec::RecordKey& key, std::byte* values, Index count, ByteVector& out) override {
    if (key.field < 0 || key.field >= static_cast<int>(fields_.size()))
      return {Code::argument, cat("field number ", key.field, " was not defined; ", fields_.size(), " were")};
    const codec::FieldDefinition& field = fields_[static_cast<std::size_t>(key.field)];
    if (count != field.elements())
      return {Code::argument, cat("field '", field.name, "': a record of ", count, " elements was given, ",
                                  field.elements(), " were defined")};
    const Bytes length = count * size_of(field.type);
    if constexpr (std::endian::native == std::endian::big) {
      const Bytes step = scalar_size(field.type);
      for (Bytes at = 0; at < length; at += step) std::reverse(values + at, values + at + step);
    }
    out.insert(out.end(), values, values + length);
    return {};
  }

 private:
  const std::vector<codec::FieldDefinition>& fields_;
};

/// A record is its elements, little-endian, with nothing around them.
class RawCodec final : public codec::Codec {
 public:
  Status define(const codec::FieldDefinition& field) override {
    TR_TRY(codec::check_field(field));
    if (field.bits || field.accuracy || field.relative_accuracy)
      return {Code::format,
              cat("field '", field.name, "': raw records keep every bit of ", name_of(field.type),
                  "; drop accuracy and bits, or choose a format that packs")};
    Bytes length = 0;
    if (__builtin_mul_overflow(field.elements(), size_of(field.type), &length))
      return {Code::argument, cat("field '", field.name, "': a record has more than 2^63 bytes")};
    fields_.push_back(field);
    return {};
  }
  Status check_lead(const codec::RecordKey& key) const override {
    if (key.lead >= 0) return {};
    return {Code::argument, cat("lead ", key.lead, " s is before the base time")};
  }
  std::unique_ptr<codec::Encoder> encoder() const override { return std::make_unique<RawEncoder>(fields_); }
  ElementType assembled_type(int field) const override { return at(field).type; }
  double cost(int field) const override { return 500.0 + 0.1 * static_cast<double>(encoded_bound(field)); }
  Bytes encoded_bound(int field) const override { return at(field).elements() * size_of(at(field).type); }
  Bytes working_bytes(int) const override { return 0; }

 private:
  const codec::FieldDefinition& at(int field) const { return fields_[static_cast<std::size_t>(field)]; }
  std::vector<codec::FieldDefinition> fields_;
};

}  // namespace

Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition&) {
  return std::unique_ptr<codec::Codec>(std::make_unique<RawCodec>());
}

}  // namespace tailrace::raw
