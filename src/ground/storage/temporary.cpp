// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/temporary.hpp"

#include <fcntl.h>

#include <cerrno>

#include "ground/base/text.hpp"
#include "ground/base/uuid.hpp"
#include "ground/storage/paths.hpp"
#include "ground/storage/posix.hpp"

namespace tailrace::storage {

Result<Temporary> make_temporary(const std::string& path) {
  const std::string name = cat(path, ".tmp-", Uuid::random().text().substr(0, 18));
  const int descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) return with_missing_directory(io_error("create", name, errno), name);
  return Temporary{name, std::make_unique<PosixFile>(std::make_shared<System>(), descriptor, name),
                   cat("/proc/self/fd/", descriptor)};
}

}  // namespace tailrace::storage
