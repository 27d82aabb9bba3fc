// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "formats/cf/indexed_map.hpp"
#include "formats/cf/model.hpp"

// The data model of NetCDF in JSON, as Zarr and files of references have it. For builds with nlohmann-json.
namespace tailrace::cf {

/// JSON whose objects keep the order of their members, and find a key quickly among very many.
using Json = nlohmann::basic_json<IndexedMap>;

/// Returns the JSON text. Attributes may hold any bytes, but JSON only UTF-8: all other bytes become U+FFFD.
std::string text_of(const Json& json);

std::string base64(std::span<const std::byte> bytes);

/// Returns the number that big-endian bytes hold. Numbers that are not finite become texts, as in Zarr.
Json number_of(Type type, std::span<const std::byte> bytes);

/// Returns the text, the number, or the list of numbers that an attribute holds.
Json value_of(const Attribute& attribute);

}  // namespace tailrace::cf
