// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "formats/cdf/classic.hpp"
#include "formats/codec/codec.hpp"
#include "formats/codec/options.hpp"

namespace tailrace::cdf {

/// Makes the codec of classic NetCDF files of this version. Code::argument if an attribute is not for users
/// to set.
Result<std::unique_ptr<codec::Codec>> make_codec(Version version, const codec::StreamDefinition& stream);
/// Returns Code::state if steps of a stream with the head `now` cannot follow the steps in a file with the
/// head `own`, because the coordinates in the two heads differ.
Status check_goes_on(std::span<const std::byte> own, std::span<const std::byte> now);
/// Returns the bytes with which a file of this version says how many steps it holds, and their place.
std::optional<codec::Patch> step_count(Version version, std::int64_t steps);

// make_codec() and step_count() as functions of one version each, for the registry of formats.
template <Version version>
Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream) {
  return make_codec(version, stream);
}
template <Version version>
std::optional<codec::Patch> count(std::int64_t steps) {
  return step_count(version, steps);
}

/// Returns the options of classic NetCDF. accuracy=, relative_accuracy= and bits= are taken and change
/// nothing, because files keep the values as they are.
inline codec::FormatOptions options() { return codec::options_of_variables(); }

}  // namespace tailrace::cdf
