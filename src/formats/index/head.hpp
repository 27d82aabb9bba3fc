// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/codec/codec.hpp"
#include "formats/index/index_format.hpp"
#include "ground/storage/target.hpp"

// The head of a data file, in formats that have one: what stands before the first step, and in it the number
// of steps. All functions are local, and the caller holds the lock of the pair.
namespace tailrace::streams {

/// Writes the head of a file without steps, durable on return.
Status write_head(storage::Target& target, const std::string& path, std::span<const std::byte> head);
/// Returns true if the file begins with this head, its number of steps aside. Looks at 64 KiB at most, which
/// hold names and attributes; coordinates behind them may be computed differently by another machine.
Result<bool> begins_with(storage::Target& target, const std::string& path, std::string_view format,
                         std::span<const std::byte> head);
/// Returns Code::state if the steps of a file that goes on have not the places that the stream gives to
/// records now.
Status check_places(const std::string& path, const IndexContents& contents,
                    const std::optional<codec::FixedPlaces>& places);
/// Makes the head say that the file holds so many steps, which are durable. Does nothing if it says so
/// already, or if the format has no place for the number. It is not durable itself, except with `sync`: the
/// index counts, and who opens the file again mends the number.
Status tell_steps(storage::File& file, std::string_view format, std::int64_t steps, bool sync = false);
Status tell_steps(storage::Target& target, const std::string& path, std::string_view format,
                  std::int64_t steps, bool sync = false);
/// Returns true if a reader of the file finds at least so many steps.
Result<bool> tells_steps(storage::File& file, std::string_view format, std::int64_t steps);

}  // namespace tailrace::streams
