// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string_view>

#include "formats/registry/registry.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::stores {

/// Returns the format whose stores have names like this, or null if it is not the name of a store.
const formats::Format* format_of(std::string_view path);
/// True if the name is that of a store: a directory of objects, which streams write like a file.
inline bool is_store(std::string_view path) { return format_of(path) != nullptr; }

/// True if a stream has begun a store of any format in the directory. False if nothing or a file has this
/// name.
Result<bool> has_begun(const std::shared_ptr<storage::Target>& target, const std::string& directory);

/// Returns a target that presents stores as files. The bytes of a store are its objects in one row: the head,
/// and then the steps in order. Other names, and stores of formats that this build cannot open, go to `below`
/// unchanged.
std::shared_ptr<storage::Target> with_stores(std::shared_ptr<storage::Target> below);

}  // namespace tailrace::stores
