// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <utility>

#include "formats/codec/codec.hpp"

namespace tailrace::codec {

/// A codec that encodes nothing, for tests of code that only asks a codec for places, costs and bounds.
class SampleCodec final : public Codec {
 public:
  explicit SampleCodec(std::optional<FixedPlaces> places) : places_(std::move(places)) {}
  Status define(const FieldDefinition&) override { return {}; }
  std::optional<FixedPlaces> fixed_places() const override { return places_; }
  Status check_lead(const RecordKey&) const override { return {}; }
  std::unique_ptr<Encoder> encoder() const override { return nullptr; }
  ElementType assembled_type(int) const override { return ElementType::byte; }
  double cost(int) const override { return 1; }
  Bytes encoded_bound(int) const override { return 1; }
  Bytes working_bytes(int) const override { return 0; }

 private:
  std::optional<FixedPlaces> places_;
};

}  // namespace tailrace::codec
