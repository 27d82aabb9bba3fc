// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "ground/base/status.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

/// Turn the arguments of C calls, each of which may be a null pointer, into the types of the library.
namespace tailrace::capi {

inline constexpr int most_dimensions = static_cast<int>(layout::max_dimensions);

inline std::string text_of(const char* text) { return text == nullptr ? "" : text; }

/// Returns the text in quotes, for texts of errors.
inline std::string quoted(const char* text) { return text == nullptr ? "NULL" : cat("\"", text, "\""); }

inline Status null_pointer(const char* name) {
  return {Code::argument, cat("`", std::string_view(name), "` is a null pointer")};
}

template <typename T>
std::vector<T> list_of(const T* values, int count) {
  return values == nullptr ? std::vector<T>() : std::vector<T>(values, values + count);
}

}  // namespace tailrace::capi
