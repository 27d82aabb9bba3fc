// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ground/comm/transport.hpp"

namespace tailrace::comm {

/// One rank's end of a transport, with what its world offers beside it. Each case of the suite is a program
/// that all ranks run: processes under MPI, fibres in the simulated world.
class End {
 public:
  virtual ~End() = default;
  [[nodiscard]] virtual Transport& transport() = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Blocks until all ranks have called it. No message of the transport is needed for that.
  virtual void meet() = 0;
  /// Notes a failure, and goes on: a rank that left a case would hang the others.
  virtual void check(bool holds, const std::string& what) = 0;
};

struct TransportCase {
  std::string name;
  void (*run)(End& end);
};

/// Returns the cases of the suite. `thorough`: also those that take gigabytes.
const std::vector<TransportCase>& transport_cases();
const std::vector<TransportCase>& large_transport_cases();

}  // namespace tailrace::comm
