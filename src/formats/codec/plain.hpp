// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/codec/codec.hpp"

namespace tailrace::codec {

/// A field whose encoded records are their values and nothing else.
struct PlainField {
  std::string name;
  ElementType type = ElementType::f32;
  Index elements = 0;  // of one record
  std::endian order = std::endian::little;

  [[nodiscard]] Bytes bytes() const { return elements * size_of(type); }
  /// Returns the form of a record's numbers, or nothing for texts, whose ends the encoder sets. A complex
  /// value counts as two numbers.
  [[nodiscard]] std::optional<PlainValues> plain() const;
};

/// Fills texts of `bytes` bytes each with zeros behind their ends, as files have them. A text ends at its
/// first zero, as in C, and before the blanks at its end, as in Fortran.
void end_texts(std::span<std::byte> texts, Bytes bytes);

/// Returns an encoder for these fields. It refers to `fields`, which must outlive it.
std::unique_ptr<Encoder> plain_encoder(const std::vector<PlainField>& fields);

}  // namespace tailrace::codec
