// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "ground/base/status.hpp"
#include "ground/storage/objects/object_service.hpp"

namespace tailrace::storage {

/// Takes a lock that is an object with the name of its holder, put only if there is none. The destructor of
/// what this returns removes the object. A holder that was killed leaves it: on the same machine whoever
/// comes next sees that the process is gone, and takes the lock over. Of a process on another machine, in
/// another container, or of which the system tells nothing, nobody can tell whether it runs: Code::state,
/// with the name of the object that the user removes. Does not wait. Code::state also if the lock is taken,
/// and Code::argument if an object of this name is no lock.
Result<std::shared_ptr<void>> lock_object(const std::shared_ptr<ObjectService>& service,
                                          const std::string& name);

}  // namespace tailrace::storage
