// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "formats/codec/codec.hpp"

namespace tailrace::raw {

Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream);

}  // namespace tailrace::raw
