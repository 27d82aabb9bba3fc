// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/storage/target.hpp"

namespace tailrace::files {

/// Returns the name of a rank's own file. `%d` in the pattern becomes the rank, `%4d` and `%04d` with that
/// width as in printf(3), `%%` a percent sign. Any other conversion is refused. A pattern without the rank
/// gets it behind its end if there are several ranks: "DATA.DAT" of rank 3 is "DATA.DAT.0003". This does not
/// depend on whether the ranks share the directory, which they could not find out without waiting for each
/// other.
Result<std::string> local_name(std::string_view pattern, int rank, int ranks);

/// A file of the local mode that storage has, and the rank that its name has.
struct LocalFile {
  std::string path;
  std::optional<std::int64_t> rank;  // nothing: a file of a job of one rank, by a pattern without the rank
};
/// Returns the files that `pattern` gives to any rank, as far as this rank sees them. The conversion must be
/// in the name of the file, not in that of a directory.
Result<std::vector<LocalFile>> local_files(storage::Target& target, const std::string& pattern);
/// Returns the file that `pattern` gives to `rank`, if it is there.
Result<std::vector<LocalFile>> local_file_of(storage::Target& target, const std::string& pattern, int rank,
                                             int ranks);
/// Returns the name under `pattern` of a file that local_files() has found under another one.
Result<std::string> local_name_as(const LocalFile& file, const std::string& pattern);
/// Removes a file and its sidecar. A file that is not there any more is no error.
Status remove_local(storage::Target& target, const LocalFile& file);

}  // namespace tailrace::files
