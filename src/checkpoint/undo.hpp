// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/copy.hpp"

namespace tailrace::checkpoint {

/// Local. Returns the undo files of checkpoint `name` that none of its copies needs: those of generations
/// before the oldest one that a copy still needs. `oldest` tells for a copy how far back it needs them; the
/// copy that it gets has no tables. Returns none if storage does not tell what a copy is.
Result<std::vector<journal::UndoName>> useless_undo_files(
    storage::Target& target, const std::string& name, const std::vector<std::string>& copies,
    const std::function<std::int64_t(const Copy&)>& oldest);

}  // namespace tailrace::checkpoint
