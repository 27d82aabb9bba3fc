// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/status.hpp"
#include "tailrace/encoders.h"

namespace tailrace::encoders {

/// A registered encoder: the program's functions, and the pointer that they get.
struct Registered {
  std::string name;
  tr_encoder functions{};
  void* user = nullptr;
};

/// Registers an encoder until the process ends. Any thread may call this. Returns Code::argument if the name
/// or the functions are not valid, Code::unsupported if the program was compiled with a later header, and
/// Code::state if other functions have the name already.
Status add(std::string_view name, const tr_encoder* functions, void* user);

/// Returns the encoder with this name, or null. It never moves.
const Registered* find(std::string_view name);

/// Returns the names of all encoders, sorted.
std::vector<std::string> names();

}  // namespace tailrace::encoders
