// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/time_axis.hpp"

namespace tailrace::input {

/// The versions of the files' steps of which a rank has got values since its step was begun. A writer that
/// takes a step back and writes it once more gives it another version. All functions are local.
class StepVersions {
 public:
  void clear() { versions_.clear(); }
  /// Notes the version of a record of the files' step at `lead`. Returns Code::state if other records of the
  /// step had another: it was written again meanwhile.
  Status note(std::int64_t lead, std::uint64_t version, const TimeAxis& time = {});
  /// Returns all versions, for check() on another rank. Nothing was got: it is empty.
  [[nodiscard]] ByteVector packed() const;
  /// Takes what packed() has returned on each rank. Returns Code::state if two nodes have got different
  /// versions of a step, or have interpolated between different steps because files came in another order
  /// than their steps. Ranks that got nothing are left out.
  static Status check(const std::vector<ByteVector>& of_ranks, const TimeAxis& time = {});

 private:
  std::map<std::int64_t, std::uint64_t> versions_;  // by lead
};

}  // namespace tailrace::input
