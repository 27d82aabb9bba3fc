// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "faces/files/group.hpp"
#include "ground/comm/communicators.hpp"

namespace tailrace::files {

/// The groups of this process, one for each communicator that has opened files. A group is forgotten when
/// the program frees its communicator; its files keep it alive.
class Groups {
 public:
  /// `compute` is the communicator of the compute ranks.
  Groups(Service& service, MPI_Comm compute)
      : service_(service), communicators_(compute, service.session().computes()) {}

  /// Returns the group of `comm`. The first call for `comm` is collective over it, and blocks until all of
  /// its ranks have made it; later calls are local. Returns the same Status on every rank. `call` is the
  /// program's call, for the watchdog.
  Result<std::shared_ptr<Group>> of(MPI_Comm comm, const std::string& call) {
    if (const std::shared_ptr<void> kept = communicators_.find(comm))
      return std::static_pointer_cast<Group>(kept);
    Result<std::unique_ptr<comm::Line>> line = communicators_.open_line(comm, call);
    TR_TRY(line.status());
    auto group = std::make_shared<Group>(service_, std::move(*line));
    communicators_.keep(comm, group);
    return group;
  }

 private:
  Service& service_;
  comm::Communicators communicators_;
};

}  // namespace tailrace::files
