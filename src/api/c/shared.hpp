// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "faces/shared/shared_file.hpp"
#include "tailrace.h"

namespace tailrace::capi {

/// Makes a handle for an open file. The session's end closes it at the latest.
tr_shared* keep_shared(std::unique_ptr<shared::SharedFile> file);

}  // namespace tailrace::capi
