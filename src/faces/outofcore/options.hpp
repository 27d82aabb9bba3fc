// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "ground/base/option_table.hpp"

namespace tailrace::outofcore {

/// An array begins here in its file if the options have no offset=.
inline constexpr Bytes default_offset = 0;

/// The keys of tr_window_open. They store where in the file the array begins.
extern const OptionTable<Bytes> window_options;

}  // namespace tailrace::outofcore
