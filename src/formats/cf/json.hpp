// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "formats/cf/indexed_map.hpp"
#include "formats/cf/model.hpp"

// The data model of NetCDF in JSON, as the formats of Zarr have it. For builds with nlohmann-json.
namespace tailrace::cf {

/// JSON whose objects keep the order of their members, and find one of very many at once.
using Json = nlohmann::basic_json<IndexedMap>;

/// Returns the JSON text. Attributes may hold any bytes. Those that are no UTF-8 become U+FFFD, because JSON
/// has no other way.
std::string text_of(const Json& json);

std::string base64(std::span<const std::byte> bytes);

/// Returns a big-endian number. Zarr writes numbers that are not finite as texts.
Json number_of(Type type, std::span<const std::byte> bytes);

/// Returns the text, the number, or the list of numbers that an attribute holds.
Json value_of(const Attribute& attribute);

}  // namespace tailrace::cf
