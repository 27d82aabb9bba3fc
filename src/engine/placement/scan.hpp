// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "engine/placement/put_order.hpp"

namespace tailrace::placement {

/// Places records one behind another in put order, as their sizes become known: an exclusive scan of the
/// sizes.
class Scan final : public InPutOrder {
 public:
  void begin_step(Bytes offset) override { end_ = offset; }
  [[nodiscard]] Bytes end() const override { return end_; }

 private:
  void give_place(Record& record) override {
    record.offset = end_;
    end_ += record.length;
  }

  Bytes end_ = 0;
};

}  // namespace tailrace::placement
