// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <utility>

#include "engine/placement/put_order.hpp"
#include "formats/codec/codec.hpp"

namespace tailrace::placement {

/// Each field has a place of its own in a step, in which its records follow one another in put order. A step
/// takes the same bytes whatever was put.
class Packed final : public InPutOrder {
 public:
  explicit Packed(codec::FixedPlaces places) : places_(std::move(places)) {}
  void begin_step(Bytes offset) override {
    begin_ = offset;
    used_.clear();
  }
  [[nodiscard]] Bytes end() const override { return begin_ + places_.step; }

 private:
  void give_place(Record& record) override {
    Bytes& used = used_[record.field];
    record.offset = begin_ + places_.places[static_cast<std::size_t>(record.field)].front() + used;
    used += record.length;
  }

  codec::FixedPlaces places_;
  std::map<int, Bytes> used_;  // by field, in the step that has begun
  Bytes begin_ = 0;
};

}  // namespace tailrace::placement
