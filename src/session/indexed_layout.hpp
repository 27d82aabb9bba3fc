// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "layout/layout.hpp"
#include "session/session.hpp"

namespace tailrace::session {

/// Compute ranks, collective; the same Status on every rank. Blocks until all have come to it. The layout of
/// an array of `shape` of which each rank knows its own indices: `given`, or why it has none. Each element is
/// checked by the rank that watches it (layout::Directory): it has to be owned once.
Result<layout::Layout> make_indexed(Session& session, const std::string& call, std::vector<Index> shape,
                                    const Result<std::vector<Index>>& given);

}  // namespace tailrace::session
