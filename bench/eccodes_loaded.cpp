// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <dlfcn.h>

#include "eccodes.hpp"
#include "give_up.hpp"

namespace bench {

namespace {

template <typename Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) give_up(name, ::dlerror());
}

}  // namespace

Eccodes loaded_eccodes(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr) give_up(path.c_str(), ::dlerror());
  Eccodes loaded;
  look_up(library, "codes_grib_handle_new_from_samples", loaded.new_from_samples);
  look_up(library, "codes_handle_new_from_message", loaded.new_from_message);
  look_up(library, "codes_handle_clone", loaded.clone);
  look_up(library, "codes_handle_delete", loaded.free);
  look_up(library, "codes_set_long", loaded.set_long);
  look_up(library, "codes_set_double", loaded.set_double);
  look_up(library, "codes_set_string", loaded.set_string);
  look_up(library, "codes_set_double_array", loaded.set_double_array);
  look_up(library, "codes_get_double_array", loaded.get_double_array);
  look_up(library, "codes_get_message", loaded.get_message);
  look_up(library, "codes_get_error_message", loaded.error_message);
  look_up(library, "codes_get_api_version", loaded.api_version);
  return loaded;
}

}  // namespace bench
