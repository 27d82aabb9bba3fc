// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string_view>

namespace tailrace::comm {

/// Prints `why` on standard error and ends the whole job, where there is no other way. Does not return.
[[noreturn]] void end_job(std::string_view why);

}  // namespace tailrace::comm
