// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/codec/plain.hpp"

#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"

namespace tailrace::codec {

namespace {

class PlainEncoder final : public Encoder {
 public:
  explicit PlainEncoder(const std::vector<PlainField>& fields) : fields_(fields) {}

  Status encode(const RecordKey& key, std::byte* values, Index count, ByteVector& out) override {
    if (key.field < 0 || key.field >= static_cast<int>(fields_.size()))
      return {Code::argument, cat("field number ", key.field, " was not defined; ", fields_.size(), " were")};
    const PlainField& field = fields_[static_cast<std::size_t>(key.field)];
    if (count != field.elements)
      return {Code::argument, cat("field '", field.name, "': a record of ", count, " elements was given, ",
                                  field.elements, " were defined")};
    const std::size_t before = out.size();
    out.resize(before + static_cast<std::size_t>(field.bytes()));
    copy_ordered(out.data() + before, values, field.bytes(), field.values().scalar, field.order);
    return {};
  }

 private:
  const std::vector<PlainField>& fields_;
};

}  // namespace

PlainValues PlainField::values() const {
  return {is_complex(type) ? size_of(type) / 2 : size_of(type), order};
}

std::unique_ptr<Encoder> plain_encoder(const std::vector<PlainField>& fields) {
  return std::make_unique<PlainEncoder>(fields);
}

}  // namespace tailrace::codec
