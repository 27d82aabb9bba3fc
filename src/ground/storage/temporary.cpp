// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/temporary.hpp"

#include <fcntl.h>

#include <cerrno>

#include "ground/base/text.hpp"
#include "ground/base/uuid.hpp"
#include "ground/storage/paths.hpp"
#include "ground/storage/posix.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::storage {

Result<Temporary> make_temporary(const std::string& path) {
  const std::string name = cat(path, ".tmp-", Uuid::random().text().substr(0, 18));
  const int descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) return with_missing_directory(io_error("create", name, errno), name);
  return Temporary{name, std::make_unique<PosixFile>(std::make_shared<System>(), descriptor, name),
                   cat("/proc/self/fd/", descriptor)};
}

Status take_name(Target& target, const Temporary& temporary, const std::string& path) {
  const auto take = [&]() -> Status {
    // The contents are durable before the file gets its name.
    TR_TRY(temporary.file->sync());
    TR_TRY(temporary.file->close());
    return rename_durably(target, temporary.name, path);
  };
  Status taken = take();
  // The first error is the one that is told. If the rename was done, nothing is left to remove.
  if (!taken.is_ok()) static_cast<void>(remove_if_there(target, temporary.name));
  return taken;
}

}  // namespace tailrace::storage
