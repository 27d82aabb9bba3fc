// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "api/c/arguments.hpp"
#include "api/c/state.hpp"
#include "formats/registry/registry.hpp"

using namespace tailrace;
using namespace tailrace::capi;

int tr_encoder_register(const char* name, const tr_encoder* functions, void* user) {
  const Status status = guarded([&] { return formats::register_encoder(text_of(name), functions, user); });
  return result(status.in("tr_encoder_register"));
}
