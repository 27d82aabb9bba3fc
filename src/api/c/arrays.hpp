// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>

#include "api/c/files.hpp"
#include "engine/arrays/array.hpp"
#include "tailrace.h"

namespace tailrace::capi {

/// Local. Describes a whole array, as its layout says.
inline tr_array whole_array(const void* data, int type, const tr_layout* layout) {
  return {const_cast<void*>(data), type, layout, nullptr, nullptr, nullptr};
}
/// Local. Turns a caller's description of an array into an Array. Without a layout, `layout` of the result is
/// nullptr.
arrays::Array array_of(const tr_array& given);

/// Moves arrays, for the array calls of all faces. Returns the number of elements moved, and settles a
/// failure. `mine` is an error that the caller found in its arguments; it becomes the verdict on every rank.
std::size_t move_arrays(const char* call, const tr_array* arrays, int count, tr_file* handle,
                        arrays::Direction direction, const Status& mine = {},
                        Failures failures = Failures::returned);

/// Moves an array for tr_fwrite and tr_fread, if `data` is registered by tr_distribute. Returns the number of
/// items moved, or nothing if it is not registered.
std::optional<std::size_t> move_distributed(const char* call, const void* data, std::size_t size,
                                            std::size_t items, tr_file* handle, arrays::Direction direction,
                                            Failures failures = Failures::returned);

/// As move_distributed(). An array that is not registered is an error on every rank.
std::size_t move_registered(const char* call, const void* data, std::size_t size, std::size_t items,
                            tr_file* handle, arrays::Direction direction,
                            Failures failures = Failures::returned);

/// Local. True if the address lies in the memory of an array that tr_distribute has registered, but not at
/// its beginning. The caller refuses it: a serial program's loop over rows would write one rank's part as if
/// it were the whole.
bool is_within_distributed(const void* data);

}  // namespace tailrace::capi
