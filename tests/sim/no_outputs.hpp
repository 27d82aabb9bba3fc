// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "faces/checkpoint/context.hpp"

namespace tailrace::sim {

/// The outputs of a job that has no streams and no files.
class NoOutputs final : public checkpoint::Outputs {
 public:
  Result<Standing> stand(const std::string&, journal::Overwritten) override { return Standing(); }
  [[nodiscard]] Status check(const std::vector<ByteVector>&, const std::vector<ByteVector>&,
                             journal::Overwritten) const override {
    return {};
  }
  ByteVector positions(const std::vector<ByteVector>&, const std::vector<ByteVector>&) override { return {}; }
  [[nodiscard]] bool are_settled(const ByteVector&) const override { return true; }
  [[nodiscard]] ByteVector with_failures(const ByteVector& positions) const override { return positions; }
  [[nodiscard]] Status unknown_failure(const ByteVector&) const override { return {}; }
  void note_told() override {}
  void note_going_on() override {}
  void keep_since(const std::string&, std::int64_t, const ByteVector&) override {}
  [[nodiscard]] std::int64_t oldest_undo(const checkpoint::Copy& copy) const override {
    return copy.generation();
  }
  Status resume() override { return {}; }
};

}  // namespace tailrace::sim
