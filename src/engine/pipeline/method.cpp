// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/method.hpp"

#include <array>

namespace tailrace::pipeline {

namespace {

/// A new method is a row here (src/engine/README.md). The first row is the default.
constexpr std::array method_rows{
    Method{.name = "scan",
           .make_placement = placement::make_placement,
           .make_writer = storage::open_file_writer},
};

}  // namespace

std::span<const Method> methods() { return method_rows; }

const Method& default_method() { return method_rows.front(); }

}  // namespace tailrace::pipeline
