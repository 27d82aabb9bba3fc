// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/codec/codec.hpp"
#include "formats/index/bytes/index_format.hpp"
#include "ground/storage/target.hpp"

// The head of a data file, in formats that have one: the bytes before the first step, which include the
// number of steps. All functions are local and block on storage. The caller holds the lock of data file and
// index.
namespace tailrace::streams {

/// Writes the head of a file without steps, durable on return.
Status write_head(storage::Target& target, const std::string& path, std::span<const std::byte> head);
/// True if the file begins with `head`, whatever number of steps is in it. Compares at most 64 KiB, which
/// hold names and attributes: another machine may compute the coordinates behind them with other rounding.
Result<bool> begins_with(storage::Target& target, const std::string& path, std::string_view format,
                         std::span<const std::byte> head);
/// Returns success if the last step of the file has its records at the places that the stream would give them
/// now, otherwise Code::state.
Status check_places(const std::string& path, const IndexContents& contents,
                    const std::optional<codec::FixedPlaces>& places);
/// Writes the number of steps into the head. These steps must be durable. Does nothing if the number is there
/// already, or if the format has no place for it. Only with `sync` is the number durable on return: without
/// it a crash may lose the number, and the next process that opens the file corrects it from the index.
Status tell_steps(storage::File& file, std::string_view format, std::int64_t steps, bool sync = false);
Status tell_steps(storage::Target& target, const std::string& path, std::string_view format,
                  std::int64_t steps, bool sync = false);
/// True if the head says that the file has at least `steps` steps.
Result<bool> tells_steps(storage::File& file, std::string_view format, std::int64_t steps);

}  // namespace tailrace::streams
