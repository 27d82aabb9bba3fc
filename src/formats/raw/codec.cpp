// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/raw/codec.hpp"

#include "formats/codec/plain.hpp"
#include "ground/base/text.hpp"

namespace tailrace::raw {

namespace {

/// The codec of raw files: a record is its elements, little-endian, with nothing around them.
class RawCodec final : public codec::Codec {
 public:
  Status define(const codec::FieldDefinition& field) override {
    TR_TRY(codec::check_field(field));
    if (field.bits || field.accuracy || field.information || field.relative_accuracy)
      return {Code::format,
              cat("field '", field.name, "': raw records keep every bit of ", name_of(field.type),
                  "; drop accuracy and bits, or choose a format that packs")};
    Bytes length = 0;
    if (__builtin_mul_overflow(field.elements(), size_of(field.type), &length))
      return {Code::argument, cat("field '", field.name, "': a record has more than 2^63 bytes")};
    fields_.push_back({field.name, field.type, field.elements(), std::endian::little});
    return {};
  }
  std::optional<codec::Decoding> decoding() const override { return codec::Decoding{}; }
  std::unique_ptr<codec::Encoder> encoder() const override { return codec::plain_encoder(fields_); }
  std::optional<codec::PlainValues> plain(int field) const override { return at(field).plain(); }
  ElementType assembled_type(int field) const override { return at(field).type; }
  double cost(int field) const override { return 500.0 + 0.1 * static_cast<double>(encoded_bound(field)); }
  Bytes encoded_bound(int field) const override { return at(field).bytes(); }
  Bytes working_bytes(int) const override { return 0; }

 private:
  const codec::PlainField& at(int field) const { return fields_[static_cast<std::size_t>(field)]; }
  std::vector<codec::PlainField> fields_;
};

}  // namespace

Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition&) {
  return std::unique_ptr<codec::Codec>(std::make_unique<RawCodec>());
}

}  // namespace tailrace::raw
