// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "formats/codec/codec.hpp"

namespace tailrace::encoders {

/// Makes a codec from the encoder with the name of the stream's format. Code::settings if no encoder has this
/// name.
Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream);

}  // namespace tailrace::encoders
