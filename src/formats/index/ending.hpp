// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/codec/codec.hpp"
#include "formats/index/bytes/index_format.hpp"
#include "ground/storage/target.hpp"

// The ending of a data file, in formats whose files can be read only once they are finished. The process that
// finishes or repairs a file makes its ending from the file's head and its index. All functions are local,
// block on storage, and do nothing for other formats. The caller holds the lock of data file and index.
namespace tailrace::streams {

/// Returns the steps of an index in the form that formats and references use.
std::vector<codec::FinishedStep> finished_steps(const IndexContents& contents);
/// Writes the ending, durable on return: first the part behind the last step, then the head that points to
/// it. Cuts off all other bytes behind the last step. Does nothing for a file without steps, or one that is
/// closed and finished, by whichever version of the HDF5 library. Code::unsupported if this build cannot make
/// the ending.
Status write_ending(storage::Target& target, const std::string& path, const IndexContents& contents);
/// Returns true if readers of the format find all that they need: the file has its ending, or no step, or its
/// format has no endings.
Result<bool> has_ending(storage::Target& target, const std::string& path, const IndexContents& contents);
/// Removes the ending, before steps are added or cut: first writes into the head that the file is unfinished,
/// then cuts the file to `data_end`. Durable on return. Code::unsupported, with nothing changed, if this
/// build could not make the ending again.
Status remove_ending(storage::Target& target, const std::string& path, std::string_view format,
                     Bytes data_end);
/// Returns success if a stream with the head `now` may add steps to the file, otherwise Code::state, with
/// `advice` behind the reason. Code::unsupported if this build cannot make the file's ending.
Status check_goes_on(storage::Target& target, const std::string& path, const IndexHeader& header,
                     std::span<const std::byte> now, std::string_view advice);

}  // namespace tailrace::streams
