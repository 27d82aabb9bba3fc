// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "exchange/group.hpp"
#include "files/outcome.hpp"
#include "files/service.hpp"

namespace tailrace::files {

/// The ranks that open files together. An epoch tells the files apart, so that thousands of them share one
/// line.
class Group final : public exchange::Group {
 public:
  Group(Service& service, std::unique_ptr<comm::Line> line);

  [[nodiscard]] Service& service() { return service_; }
  std::uint64_t new_epoch() { return next_epoch_++; }

  /// Collective. Returns the I/O rank's bytes on every rank. Blocks until it has sent them.
  Result<ByteVector> broadcast(ByteVector bytes, const std::string& call);
  /// Collective. Returns the I/O rank's outcome on every rank.
  Outcome share(Outcome mine, const std::string& call);

 private:
  Service& service_;
  std::uint64_t next_epoch_ = 0;
};

}  // namespace tailrace::files
