// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "formats/codec/definition.hpp"
#include "ground/base/options.hpp"

// Values in the options of streams, fields and georeferences. Every function is local.
namespace tailrace::streams {

/// Appends a key with its value. Fails if `keys` has the key.
Status add_key(codec::Keys& keys, const Option& option);
/// Appends the keys in a value such as "centre=98, subCentre=3".
Status take_keys(const std::string& text, codec::Keys& keys);
/// Stores the name of a file, which must not be empty.
Status take_file(const std::string& text, std::string& file);

/// Takes the value of levels=: TYPE or TYPE:LIST.
Status take_levels(codec::Levels& levels, const std::string& text);
/// Takes the value of bottom=, one number for each level or one for all. The levels must be known before.
Status take_bottom(codec::Levels& levels, const std::string& text);
/// Fails unless the levels are hybrid and have the coefficients that they need.
Status check_coefficients(const codec::Levels& levels);

}  // namespace tailrace::streams
