// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "base/uuid.hpp"
#include "pipeline/ledger.hpp"
#include "pipeline/messages.hpp"
#include "storage/target.hpp"

namespace tailrace::streams {

/// What Opening::ledger holds: the pattern and the options as the user wrote them, and the run.
std::string pack_ledger(const std::string& pattern, const std::string& options, const Uuid& run);

/// The files of a stream: each with its index and lock, and for streams that roll over a manifest, ready
/// markers and a hook.
Result<std::unique_ptr<pipeline::Ledger>> make_ledger(const pipeline::Opening& opening,
                                                      std::shared_ptr<storage::Target> target);

}  // namespace tailrace::streams
