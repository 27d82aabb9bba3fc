// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include "ground/storage/target.hpp"

namespace tailrace::files {

/// Returns the name of a rank's own file. `%d` in the pattern becomes the rank, `%4d` and `%04d` with that
/// width as in printf(3), `%%` a percent sign. Any other conversion is refused, and so is a pattern that
/// gives several ranks one file.
Result<std::string> local_name(std::string_view pattern, int rank, int ranks);

/// Removes the files that `pattern` gives to any rank, and their sidecars. Returns Code::io with ENOENT if
/// there is no such file. The conversion must be in the name of the file, not in that of a directory.
Status remove_local(storage::Target& target, const std::string& pattern);

}  // namespace tailrace::files
