// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "formats/codec/codec.hpp"

namespace tailrace::raw {

/// Makes the codec of raw files: a record is its elements, little-endian, with nothing around them.
Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream);

}  // namespace tailrace::raw
