// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string_view>

namespace tailrace::cf {

/// Returns true if the text is UTF-8, and surely in the normal form NFC, in which the NetCDF library looks
/// for names. Beyond ASCII, only letters and signs of the scripts in a table pass. Combining marks do not:
/// NFC may join them with the letter before.
[[nodiscard]] bool is_normal_utf8(std::string_view text);

}  // namespace tailrace::cf
