// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/status.hpp"
#include "tailrace/encoders.h"

namespace tailrace::encoders {

/// An encoder of the program's own, as it was registered.
struct Registered {
  std::string name;
  tr_encoder functions{};
  void* user = nullptr;
};

/// Keeps an encoder until the process ends. Returns Code::argument if the name or the functions are none, and
/// Code::state if the name has other functions already. Any thread may call this.
Status add(std::string_view name, const tr_encoder* functions, void* user);

/// Returns the encoder of that name, which never moves, or null.
const Registered* find(std::string_view name);

/// Returns the names of all encoders, sorted.
std::vector<std::string> names();

}  // namespace tailrace::encoders
