// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "storage/target.hpp"

namespace tailrace::storage {

/// Local. Returns Code::corrupt, saying what became of the file, if fewer than `end` bytes lie under its
/// name: something else has cut or removed it. The name is looked up anew because a descriptor stays good for
/// a removed file, and because a network file system asks for the size anew when a file is opened.
Status check_holds(Target& target, const std::string& path, Bytes end);

}  // namespace tailrace::storage
