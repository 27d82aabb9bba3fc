// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ground/storage/target.hpp"

namespace tailrace::stores {

/// The ending of the names of stores.
inline constexpr std::string_view ending = ".zarr";

/// Returns true if what has this name is a directory of objects that streams write as if it were a file.
bool is_store(std::string_view path);

/// Returns a target on which stores are files. A store's bytes are its objects in one row (zarr::Layout): its
/// head, and then one step after another. Other names go to `below` unchanged. A build without Zarr returns
/// `below`.
std::shared_ptr<storage::Target> with_stores(std::shared_ptr<storage::Target> below);

}  // namespace tailrace::stores
