// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ground/base/status.hpp"

namespace tailrace::encoders {

/// The encoders that the servers of a session had registered when the session began. Servers work inside of
/// tr_init, so they cannot register more later.
class OfServers {
 public:
  /// Packs the names of this rank's encoders, to be sent to the other ranks. Empty if it has none.
  static ByteVector told();
  /// Takes the bytes of told() from each rank of the world, and the ranks of the servers.
  void take(const std::vector<ByteVector>& told, const std::vector<int>& servers);
  /// Returns Code::settings if `format` is an encoder on this rank that a server lacks.
  [[nodiscard]] Status check(const std::string& format) const;

 private:
  std::map<int, std::set<std::string>> names_;  // by rank in the world
};

}  // namespace tailrace::encoders
