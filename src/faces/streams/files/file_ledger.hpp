// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/pipeline/ledger.hpp"
#include "engine/pipeline/messages.hpp"
#include "faces/streams/files/existing_files.hpp"
#include "faces/streams/resume/resume.hpp"
#include "ground/base/uuid.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::streams {

/// Packs the contents of Opening::ledger: the pattern and the options as the user wrote them, the run, where
/// it continues, and the files that runs before may not have finished.
std::string pack_ledger(const std::string& pattern, const std::string& options, const Uuid& run,
                        const std::optional<Position>& resume = {},
                        const std::vector<LeftBehind>& left_behind = {});

/// Makes the ledger for the files of a stream: each with its index and lock, and for streams that roll over a
/// manifest, ready markers and a hook. `opening` must outlive the ledger;
/// `codec` knows its fields.
Result<std::unique_ptr<pipeline::Ledger>> make_ledger(const pipeline::Opening& opening,
                                                      const codec::Codec& codec,
                                                      std::shared_ptr<storage::Target> target);

}  // namespace tailrace::streams
