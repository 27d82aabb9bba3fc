// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/sources/front_end.hpp"

namespace tailrace::raw {

/// Reads raw files of our own streams. Only the index says what they hold.
extern const sources::FrontEnd front_end;

}  // namespace tailrace::raw
