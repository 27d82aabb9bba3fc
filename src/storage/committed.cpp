// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "storage/committed.hpp"

#include "base/text.hpp"

namespace tailrace::storage {

Status check_holds(Target& target, const std::string& path, Bytes end) {
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  Bytes size = 0;
  if (*exists) {
    Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
    TR_TRY(file.status());
    const Result<Bytes> found = (*file)->size();
    TR_TRY(found.status());
    size = *found;
  }
  if (*exists && size >= end) return {};
  const char* const unit = size == 1 ? " byte" : " bytes";
  return {Code::corrupt,
          cat(path, *exists ? cat(": has ", size, unit) : std::string(": is missing"), ", but ", end,
              " were written: something else has ", *exists ? "cut" : "removed",
              " the file; put it back as it was, or begin from a checkpoint before its steps")};
}

}  // namespace tailrace::storage
