// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "run.hpp"

namespace tailrace::reports {

/// Returns a page of HTML that holds all it shows: advice, charts and their tables.
std::string page_of(const Run& run);
/// Returns such a page of two runs.
std::string page_of(const Run& before, const Run& after);

}  // namespace tailrace::reports
