// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "engine/placement/put_order.hpp"

namespace tailrace::placement {

/// The exclusive scan of encoded sizes in put order, taken as they become known.
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
