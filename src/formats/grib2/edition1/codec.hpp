// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "formats/codec/codec.hpp"
#include "formats/codec/options.hpp"
#include "formats/grib2/codec.hpp"

namespace tailrace::grib2::edition1 {

/// The name of the format in streams and indexes.
inline constexpr std::string_view format_name = "grib1";

// A build without ecCodes has neither `make` nor `check_keys`.
/// Makes the codec. Returns Code::format for a calendar that GRIB1 does not have, and Code::settings for an
/// unknown packing.
Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream);
/// Returns Code::settings if ecCodes does not know one of these keys, as grib2::check_keys.
Status check_keys(const codec::StreamDefinition& stream, std::span<const std::string> keys);

inline codec::FormatOptions options() {
  codec::FormatOptions all = grib2::options();
  for (codec::FormatOption& option : all.stream)
    if (option.key == "packing") option.words = {"simple", "second_order"};
  return all;
}

}  // namespace tailrace::grib2::edition1
