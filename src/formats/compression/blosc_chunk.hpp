// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>

#include "formats/compression/compression.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

namespace tailrace::compression {

/// Returns Code::unsupported if the c-blosc of this process was built without the method, and Code::argument
/// if blosc takes no chunk of `raw` bytes.
Status check_blosc(Method method, Bytes raw);
/// Returns the most bytes that a chunk of `raw` bytes may become.
Bytes bound_of_blosc(Bytes raw);
/// Compresses `bytes` into `out`, which has room for bound_of_blosc() bytes. Returns the size of the chunk.
/// The chunk does not depend on the mode that the program has set with blosc_set_splitmode.
Result<std::size_t> by_blosc(const Compression& how, std::span<const std::byte> bytes, Bytes element_size,
                             std::span<std::byte> out);

}  // namespace tailrace::compression
