// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "eccodes.hpp"

namespace bench {

const Eccodes& linked_eccodes() {
  static constexpr Eccodes linked{.new_from_samples = ::codes_grib_handle_new_from_samples,
                                  .new_from_message = ::codes_handle_new_from_message,
                                  .clone = ::codes_handle_clone,
                                  .free = ::codes_handle_delete,
                                  .set_long = ::codes_set_long,
                                  .set_double = ::codes_set_double,
                                  .set_string = ::codes_set_string,
                                  .set_double_array = ::codes_set_double_array,
                                  .get_double_array = ::codes_get_double_array,
                                  .get_message = ::codes_get_message,
                                  .error_message = ::codes_get_error_message,
                                  .api_version = ::codes_get_api_version};
  return linked;
}

}  // namespace bench
