// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "engine/placement/placement.hpp"
#include "ground/storage/writer.hpp"

namespace tailrace::pipeline {

/// How the records of a stream get their offsets, and how their bytes come to its files: a row of the table
/// in method.cpp.
struct Method {
  std::string_view name;
  std::unique_ptr<placement::Placement> (*make_placement)(const codec::Codec& codec);
  storage::MakeWriter make_writer;
};
std::span<const Method> methods();
/// Returns the method that counts where nobody has chosen one.
const Method& default_method();

}  // namespace tailrace::pipeline
