// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/sources/front_end.hpp"

namespace tailrace::cdf {

/// Reads classic NetCDF files of any writer (CDF-1, CDF-2, CDF-5).
extern const sources::FrontEnd front_end;

}  // namespace tailrace::cdf
