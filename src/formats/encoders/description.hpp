// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "formats/codec/codec.hpp"
#include "tailrace/encoders.h"

namespace tailrace::encoders {

/// A field of a stream in the words of the C face. It keeps everything to which its records point, and must
/// not move while they are used.
class Description {
 public:
  /// `number` is the field's number in the stream.
  Description(const codec::StreamDefinition& stream, const codec::FieldDefinition& field, int number);
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  [[nodiscard]] const codec::FieldDefinition& field() const { return field_; }
  /// Returns what is known of the field before anything was put, with its first level.
  [[nodiscard]] const tr_record& unput() const { return record_; }
  /// Returns a record with its values.
  [[nodiscard]] tr_record record(const codec::RecordKey& key, const std::byte* values) const;

 private:
  const codec::FieldDefinition field_;
  const std::string stream_, base_time_, calendar_;
  codec::Keys options_;
  std::vector<const char*> keys_;
  tr_record record_{};
};

}  // namespace tailrace::encoders
