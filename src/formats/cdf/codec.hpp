// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "formats/cdf/classic.hpp"
#include "formats/codec/codec.hpp"
#include "formats/codec/options.hpp"

namespace tailrace::cdf {

/// Makes the codec of classic NetCDF files of this version.
Result<std::unique_ptr<codec::Codec>> make_codec(Version version, const codec::StreamDefinition& stream);
/// Returns Code::state if steps of a stream with the head `now` cannot follow those in a file with the head
/// `own`: its coordinates are others.
Status check_goes_on(std::span<const std::byte> own, std::span<const std::byte> now);
/// Returns where a file of this version says how many steps it holds, and what it says then.
std::optional<codec::Patch> step_count(Version version, std::int64_t steps);

// The same, as the registry of formats takes them.
template <Version version>
Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream) {
  return make_codec(version, stream);
}
template <Version version>
std::optional<codec::Patch> count(std::int64_t steps) {
  return step_count(version, steps);
}

/// Values are kept as they are, which is as accurate as anybody may ask for.
inline codec::FormatOptions options() {
  return {.stream = {{"attributes", {}}},
          .field = {{"attributes", {}}, {"accuracy", {}}, {"relative_accuracy", {}}, {"bits", {}}},
          .keys = ""};
}

}  // namespace tailrace::cdf
