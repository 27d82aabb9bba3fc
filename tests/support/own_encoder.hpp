// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstring>
#include <string>

#include "formats/registry/registry.hpp"

/// An encoder such as a program may register. Its records have different sizes, and its files have a head.
namespace tailrace::test {

/// Encodes a record. For each value appends the number of bytes that follow, and then the value's bytes
/// without its low bytes that are zero.
inline int encode_own(const tr_record* record, tr_encoded* out, void*, void*) {
  const auto put = [&](const void* bytes, std::int64_t count) { tr_encoded_append(out, bytes, count); };
  put(record->field, static_cast<std::int64_t>(std::strlen(record->field)) + 1);
  put(&record->level, sizeof record->level);
  put(&record->lead, sizeof record->lead);
  put(&record->interval_start, sizeof record->interval_start);
  const auto size = static_cast<std::int64_t>(size_of(static_cast<ElementType>(record->type)));
  const auto* value = static_cast<const unsigned char*>(record->values);
  for (std::int64_t i = 0; i < record->count; ++i, value += size) {
    std::int64_t zeros = 0;
    while (zeros < size && value[zeros] == 0) ++zeros;
    const auto left = static_cast<unsigned char>(size - zeros);
    put(&left, 1);
    if (tr_encoded_append(out, value + zeros, left) != 0) return 1;
  }
  return 0;
}

inline int own_head(const tr_record* const* fields, std::int32_t count, tr_encoded* out, void*) {
  std::string head = "own:";
  for (std::int32_t i = 0; i < count; ++i) head += std::string(fields[i]->field) + ";";
  return tr_encoded_append(out, head.data(), static_cast<std::int64_t>(head.size()));
}

/// Registers the encoder as the format "own", once in a process.
inline bool register_own() {
  tr_encoder functions = TR_ENCODER;
  functions.encode = encode_own;
  functions.head = own_head;
  return formats::register_encoder("own", &functions, nullptr).is_ok();
}

}  // namespace tailrace::test
