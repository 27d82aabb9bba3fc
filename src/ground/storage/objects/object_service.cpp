// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/objects/object_service.hpp"

#include <cerrno>

namespace tailrace::storage {

Status ObjectService::copy(const std::string& from, const std::string& to) {
  const Result<std::optional<Whole>> whole = get(from);
  TR_TRY(whole.status());
  if (!whole->has_value()) return io_error("copy", from, ENOENT);
  const Object object{to, (*whole)->bytes};
  return put({&object, 1});
}

std::string names_below(const std::string& tidy) { return tidy.ends_with('/') ? tidy : tidy + "/"; }

}  // namespace tailrace::storage
