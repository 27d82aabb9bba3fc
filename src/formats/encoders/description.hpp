// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "formats/codec/codec.hpp"
#include "tailrace/encoders.h"

namespace tailrace::encoders {

/// A field of a stream as the C face describes it: a tr_record. The Description owns everything to which its
/// records point. It must outlive its records, and must not move.
class Description {
 public:
  /// `number` is the field's number in the stream.
  Description(const codec::StreamDefinition& stream, const codec::FieldDefinition& field, int number);
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  [[nodiscard]] const codec::FieldDefinition& field() const { return field_; }
  /// Returns the record of the field's first level at lead 0, without values: nothing was put yet.
  [[nodiscard]] const tr_record& unput() const { return record_; }
  /// Returns the record for `key`. It points to `values`, which the caller owns.
  [[nodiscard]] tr_record record(const codec::RecordKey& key, const std::byte* values) const;

 private:
  const codec::FieldDefinition field_;
  const std::string stream_, base_time_, calendar_, time_units_;
  const TimeAxis axis_;
  codec::Keys options_;
  std::vector<const char*> keys_;
  tr_record record_{};
};

}  // namespace tailrace::encoders
