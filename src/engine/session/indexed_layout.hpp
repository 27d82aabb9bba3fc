// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "engine/session/session.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::session {

/// Collective over compute ranks. Makes the layout of an array of `shape` of which each rank knows only its
/// own indices. `given` has this rank's indices, or the error that kept it from having any. The rank that
/// watches an element (layout::Directory) checks that it is owned exactly once. Blocks until all compute
/// ranks have called it. The Status is the same on every rank.
Result<layout::Layout> make_indexed(Session& session, const std::string& call, std::vector<Index> shape,
                                    const Result<std::vector<Index>>& given);

}  // namespace tailrace::session
