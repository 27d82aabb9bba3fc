// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "codec/codec.hpp"

namespace tailrace::formats {

/// Returns a codec of the stream's format. Returns Code::unsupported if this build lacks the format's
/// library, and Code::settings with the nearest name for another format.
Result<std::unique_ptr<codec::Codec>> make_codec(const codec::StreamDefinition& stream);

}  // namespace tailrace::formats

namespace tailrace::codec {
using formats::make_codec;  // for pipeline
}
