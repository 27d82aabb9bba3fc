// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <eccodes.h>

#include <cstddef>
#include <string>

namespace bench {

/// The functions of one ecCodes, so that the same loop runs with several versions. Types are those of
/// Debian's header: the functions have had them since 2.0.
struct Eccodes {
  decltype(&::codes_grib_handle_new_from_samples) new_from_samples = nullptr;
  decltype(&::codes_handle_new_from_message) new_from_message = nullptr;
  decltype(&::codes_handle_clone) clone = nullptr;
  decltype(&::codes_handle_delete) free = nullptr;
  decltype(&::codes_set_long) set_long = nullptr;
  decltype(&::codes_set_double) set_double = nullptr;
  decltype(&::codes_set_string) set_string = nullptr;
  decltype(&::codes_set_double_array) set_double_array = nullptr;
  decltype(&::codes_get_double_array) get_double_array = nullptr;
  decltype(&::codes_get_message) get_message = nullptr;
  decltype(&::codes_get_error_message) error_message = nullptr;
  decltype(&::codes_get_api_version) api_version = nullptr;

  [[nodiscard]] std::string version() const;
};

/// Returns the ecCodes that the program is linked with.
const Eccodes& linked_eccodes();
/// Loads another one. Ends the program with a message if that fails. A process that is linked with an ecCodes
/// must not load a second one: the libaec of the first would serve both.
Eccodes loaded_eccodes(const std::string& path);

}  // namespace bench
