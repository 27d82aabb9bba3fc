// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/outofcore/options.hpp"

namespace tailrace::outofcore {

namespace {

constexpr OptionRow<Bytes> window_rows[] = {
    {{"offset", "`0`", "bytes", "offset=1KiB", "where in the file the array begins"},
     [](auto& offset, auto& t) { return take(parse_bytes(t), offset); }},
};

}  // namespace

constexpr OptionTable<Bytes> window_options(window_rows);

}  // namespace tailrace::outofcore
