// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ground/base/status.hpp"

namespace tailrace::encoders {

/// The encoders that the servers of a session had registered when it began. They work inside of tr_init and
/// get no more.
class OfServers {
 public:
  /// Returns what a server tells of its own encoders. Nothing if it has none.
  static ByteVector told();
  /// Takes what each rank of the world has told, and the servers' ranks.
  void take(const std::vector<ByteVector>& told, const std::vector<int>& servers);
  /// Returns Code::settings if `format` is a registered encoder and a server lacks it.
  [[nodiscard]] Status check(const std::string& format) const;

 private:
  std::map<int, std::set<std::string>> names_;  // by rank in the world
};

}  // namespace tailrace::encoders
