// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "storage/committed.hpp"

#include "base/text.hpp"

namespace tailrace::storage {

Status check_holds(Target& target, const std::string& path, Bytes end) {
  const Result<std::optional<Bytes>> size = size_if_there(target, path);
  TR_TRY(size.status());
  if (*size && **size >= end) return {};
  return {Code::corrupt,
          cat(path, *size ? cat(": has ", counted(**size, "byte")) : std::string(": is missing"), ", but ",
              end, " were written: something else has ", *size ? "cut" : "removed",
              " the file; put it back as it was, or begin from a checkpoint before its steps")};
}

}  // namespace tailrace::storage
