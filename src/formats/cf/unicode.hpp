// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string_view>

namespace tailrace::cf {

/// Returns true if the text is UTF-8 that is its own normal form NFC, for sure: the NetCDF library looks for
/// names under this form. Characters beyond ASCII are letters and signs of the scripts in a table; among
/// others combining marks are refused, which NFC may join with the letter before them.
[[nodiscard]] bool is_normal_utf8(std::string_view text);

}  // namespace tailrace::cf
