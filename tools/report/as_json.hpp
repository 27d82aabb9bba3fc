// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "run.hpp"

namespace tailrace::reports {

/// Returns the tables and the advice of a report as JSON.
std::string report_json(const Run& run, bool processes);
/// Returns a comparison as JSON.
std::string comparison_json(const Run& before, const Run& after);

}  // namespace tailrace::reports
