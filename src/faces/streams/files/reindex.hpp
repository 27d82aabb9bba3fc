// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "formats/codec/codec.hpp"
#include "formats/index/bytes/index_format.hpp"
#include "ground/storage/target.hpp"

// Reads from a data file what its lost index said. docs/formats/index.md says how records are told from other
// bytes, and when a last step counts as whole.
namespace tailrace::streams {

/// The records of a file that has no index.
struct FoundSteps {
  std::vector<IndexStep> steps;  // by their leads, in the order of the file
  bool torn = false;             // behind them lies a record that was never finished
  bool last_is_whole = false;    // the torn record shows that the last of the steps was finished
};

/// Local. Finds the steps in a data file. Returns Code::state, naming the first byte that is not of a stream
/// with the header's fields; without a `finder` that is any byte. Returns Code::corrupt if whole records of a
/// later lead stand behind a torn one.
Result<FoundSteps> find_steps(storage::Target& target, const std::string& path, const IndexHeader& header,
                              const codec::Finder* finder);

/// Removes the last step from `found` if it was not finished. Returns Code::state if nobody can tell if it
/// was, or if no step is left.
Status keep_whole_steps(const std::string& path, const IndexHeader& header, FoundSteps& found);

/// Local; the caller holds the lock. Writes an index of these steps, durable on return. The index gets its
/// name when it is complete. After a failure no part of it is left, which gives its space back on a full
/// disk.
Status write_index(storage::Target& target, const std::string& data_path, const IndexHeader& header,
                   const std::vector<IndexStep>& steps);

/// Returns true if the file can be emptied without a loss of somebody else's data: it has no bytes, or an
/// index of any run beside it.
Result<bool> is_empty_or_indexed(storage::Target& target, const std::string& data_path);

}  // namespace tailrace::streams
