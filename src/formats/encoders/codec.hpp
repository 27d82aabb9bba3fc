// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "formats/codec/codec.hpp"

namespace tailrace::encoders {

/// Makes a codec of the encoder that is registered as the stream's format. Code::settings if there is none.
Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream);

}  // namespace tailrace::encoders
