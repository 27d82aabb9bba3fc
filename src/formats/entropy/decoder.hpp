// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>

#include "formats/entropy/entropy.hpp"
#include "ground/base/status.hpp"

namespace tailrace::entropy {

/// Local; does not block. Decompresses the first `count` codes of `stream` into `codes`. `parameters` must be
/// covered; `Number` is as `Code` in Encoder::encode. Returns Code::corrupt for a stream that ends before the
/// last code or holds what no encoder writes; the filling of the last block may be missing. Reads nothing
/// outside of `stream`, and writes at most `count` codes.
template <typename Number>
Status decode(const Parameters& parameters, std::span<const std::byte> stream, Index count, Number* codes,
              Way way = best_way());

}  // namespace tailrace::entropy
