// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codec/codec.hpp"
#include "storage/target.hpp"
#include "streams/index_format.hpp"

// What a data file tells about itself where its index is gone. How records are told from other bytes, and
// when a last step counts as whole: docs/formats/index.md.
namespace tailrace::streams {

/// The records of a file that has no index.
struct FoundSteps {
  std::vector<IndexStep> steps;  // by their leads, in the order of the file
  bool torn = false;             // behind them lies what was never finished
  bool last_is_whole = false;    // what is torn shows that the last of them was finished
};

/// Local. Code::state naming the first byte that is none of a stream with these fields; `finder` may be null,
/// then nothing is. Code::corrupt if whole records of a later lead stand behind what is torn.
Result<FoundSteps> find_steps(storage::Target& target, const std::string& path,
                              const std::vector<IndexField>& fields, const codec::Finder* finder);

/// Takes the last step off if it was not finished. Code::state if nobody can tell whether it was, or if no
/// step is left.
Status keep_whole_steps(const std::string& path, const std::vector<IndexField>& fields, FoundSteps& found);

/// Local; the caller holds the lock. The index that these steps have, durable on return. It gets its name
/// when it is complete.
Status write_index(storage::Target& target, const std::string& data_path, const IndexHeader& header,
                   const std::vector<IndexStep>& steps);

/// Whether the file can be emptied without a loss of what somebody else has written: it has no bytes, or an
/// index of any run beside it.
Result<bool> is_empty_or_indexed(storage::Target& target, const std::string& data_path);

}  // namespace tailrace::streams
