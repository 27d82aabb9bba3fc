// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ground/base/status.hpp"

namespace tailrace::storage {

/// Returns the number of letters in the prefix that chooses the target of this name (TargetKind::prefix) or
/// the kind of the place (PlaceKind::prefix), or 0 if the name has none.
std::size_t prefix_length(std::string_view path);

/// Returns the path without "//", "/./", "x/.." and a "/" at the end, or "." for the empty path. Does not
/// follow links. A prefix stays as it is, and the rest counts from the root that the prefix is:
/// "memory:///a//b/" -> "memory://a/b".
std::string tidy_path(const std::string& path);

/// Returns the directory that holds a tidy path: "/a" -> "/", "a" -> ".", "/" -> "/", "memory://a" ->
/// "memory://".
std::string parent_of(const std::string& tidy);

/// Local. Adds advice to `status`, which comes from a call that should have made a file at `path`. If the
/// directory is missing, the text says so and how to make it. If something else has the directory's name, it
/// says what.
Status with_missing_directory(const Status& status, const std::string& path);

/// Returns Code::argument unless both paths lie in one directory.
Status check_one_directory(const std::string& from, const std::string& to);

/// Returns Code::argument unless `offset` and `offset + count` are valid file offsets.
Status check_range(const char* operation, const std::string& path, std::int64_t offset, std::int64_t count);

}  // namespace tailrace::storage
