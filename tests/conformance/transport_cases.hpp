// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ground/comm/transport.hpp"

namespace tailrace::comm {

/// One rank's end of a transport, with further functions of its world. Each case of the suite is a program
/// that all ranks run: as processes under MPI, as fibres in the simulated world.
class End {
 public:
  virtual ~End() = default;
  [[nodiscard]] virtual Transport& transport() = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Blocks until all ranks have called it. No message of the transport is needed for that.
  virtual void meet() = 0;
  /// Notes a failure unless `holds`, and goes on: if one rank left a case, the others would hang.
  virtual void check(bool holds, const std::string& what) = 0;
};

struct TransportCase {
  std::string name;
  void (*run)(End& end);
};

/// Return the cases of the suite. The large ones take gigabytes of memory.
const std::vector<TransportCase>& transport_cases();
const std::vector<TransportCase>& large_transport_cases();

}  // namespace tailrace::comm
