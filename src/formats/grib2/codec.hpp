// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "formats/codec/codec.hpp"
#include "formats/codec/options.hpp"

namespace tailrace::grib2 {

/// The name of the format in streams and indexes.
inline constexpr std::string_view format_name = "grib2";

// A build without ecCodes has neither `make` nor `check_keys`.
/// Makes the codec. Returns Code::format for a calendar that GRIB2 does not have, and Code::settings for an
/// unknown packing.
Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream);
/// Returns Code::settings if ecCodes does not know one of these keys. It is asked with the stream's other
/// keys set (the centre decides which keys exist), in the templates of forecasts, ensembles and statistics.
Status check_keys(const codec::StreamDefinition& stream, std::span<const std::string> keys);

inline codec::FormatOptions options() {
  return {
      .stream = {{"packing", {"simple", "ccsds"}}, {"keys", {}}, {"index", {}}},
      .field = {{"accuracy", {}}, {"information", {}}, {"relative_accuracy", {}}, {"bits", {}}, {"keys", {}}},
      .keys = "GRIB",
      .has_short_names = true};
}

}  // namespace tailrace::grib2
