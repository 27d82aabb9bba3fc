// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ground/storage/target.hpp"

namespace tailrace::stores {

/// The ending of the names of stores.
inline constexpr std::string_view ending = ".zarr";

/// True if the name is that of a store: a directory of objects, which streams write like a file.
bool is_store(std::string_view path);

/// Returns a target that presents stores as files. The bytes of a store are its objects in one row
/// (zarr::Layout): the head, and then the steps in order. Other names go to `below` unchanged. A build
/// without Zarr returns `below`.
std::shared_ptr<storage::Target> with_stores(std::shared_ptr<storage::Target> below);

}  // namespace tailrace::stores
