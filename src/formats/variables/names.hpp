// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/sources/front_end.hpp"

namespace tailrace::variables {

using sources::any_time;
using sources::Grid;
using sources::Inventory;
using sources::Opening;
using sources::Record;
using sources::RecordPlace;
using sources::Scratch;
using sources::Source;

}  // namespace tailrace::variables
