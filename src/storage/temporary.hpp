// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "base/status.hpp"

namespace tailrace::storage {

/// Local. Makes a new, empty file beside `path`, to be renamed to it once its contents are whole; its name.
/// In a directory that others write to, nobody can have put a link or a file there before: the name cannot be
/// known, and nothing that exists is opened.
Result<std::string> make_temporary(const std::string& path);

}  // namespace tailrace::storage
