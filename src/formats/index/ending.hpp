// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/codec/codec.hpp"
#include "formats/index/index_format.hpp"
#include "ground/storage/target.hpp"

// The ending of a data file, in formats whose files can be read only once they are finished. It is made of
// the head of the file and its index, by whoever finishes or repairs it. All functions are local, do nothing
// for other formats, and the caller holds the lock of the pair.
namespace tailrace::streams {

/// Returns the steps of an index as formats and references take them.
std::vector<codec::FinishedStep> finished_steps(const IndexContents& contents);
/// Gives the file its ending, durable on return: first what stands behind the last step, then the head that
/// leads there. Whatever else stands behind the last step is cut off. A file without steps has no ending. A
/// file that is closed and finished is left as it is, whichever HDF5 library finished it.
Status write_ending(storage::Target& target, const std::string& path, const IndexContents& contents);
/// Takes the ending away before steps follow or go: first the head says that the file is not finished, then
/// the file is cut to `data_end`. Durable on return. Returns Code::unsupported, with nothing changed, if this
/// build could not make the ending anew.
Status remove_ending(storage::Target& target, const std::string& path, std::string_view format,
                     Bytes data_end);
/// Returns Code::state if steps of a stream with the head `now` cannot follow those in the file.
Status check_goes_on(storage::Target& target, const std::string& path, const IndexHeader& header,
                     std::span<const std::byte> now);

}  // namespace tailrace::streams
