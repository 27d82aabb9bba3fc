// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "files/groups.hpp"

namespace tailrace::files {

Result<std::shared_ptr<Group>> Groups::of(MPI_Comm comm, const std::string& call) {
  if (const std::shared_ptr<void> kept = communicators_.find(comm))
    return std::static_pointer_cast<Group>(kept);
  Result<std::unique_ptr<comm::Line>> line = communicators_.open_line(comm, call);
  TR_TRY(line.status());
  auto group = std::make_shared<Group>(service_, std::move(*line));
  communicators_.keep(comm, group);
  return group;
}

}  // namespace tailrace::files
