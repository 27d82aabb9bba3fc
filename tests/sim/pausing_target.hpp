// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "fibre_world.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::sim {

/// Returns storage whose calls on open files take time: the rank's program stops in the middle of a call,
/// with all locks that it holds, and other ranks run. Only the rank's program may use the storage, no other
/// thread. `rank` must outlive the storage.
std::shared_ptr<storage::Target> pausing_target(std::shared_ptr<storage::Target> below, FibreRank& rank,
                                                Scheduler& dice);

}  // namespace tailrace::sim
