// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/codec/plain.hpp"

#include <algorithm>
#include <iterator>

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
    copy_ordered(out.data() + before, values, field.bytes(), scalar_size_of(field.type), field.order);
    if (is_text(field.type)) end_texts(std::span(out).subspan(before), size_of(field.type));
    return {};
  }

 private:
  const std::vector<PlainField>& fields_;
};

}  // namespace

std::optional<PlainValues> PlainField::plain() const {
  if (is_text(type)) return std::nullopt;
  return PlainValues{scalar_size_of(type), order};
}

void end_texts(std::span<std::byte> texts, Bytes bytes) {
  const auto length = static_cast<std::size_t>(bytes);
  for (std::size_t at = 0; at + length <= texts.size(); at += length) {
    const std::span<std::byte> text = texts.subspan(at, length);
    auto end = std::ranges::find(text, std::byte{0});
    while (end != text.begin() && *std::prev(end) == std::byte{' '}) --end;
    std::fill(end, text.end(), std::byte{0});
  }
}

std::unique_ptr<Encoder> plain_encoder(const std::vector<PlainField>& fields) {
  return std::make_unique<PlainEncoder>(fields);
}

}  // namespace tailrace::codec
