// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "ground/base/text.hpp"
#include "ground/base/types.hpp"

namespace tailrace {

/// Returns what errors and tools call a type: "float64", or "text of 20 bytes". Two types have two texts.
inline std::string type_text(ElementType type) {
  if (is_text(type)) return cat("text of ", counted(size_of(type), "byte"));
  return std::string(name_of(type));
}

}  // namespace tailrace
