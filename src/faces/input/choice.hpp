// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "faces/input/definition.hpp"
#include "formats/sources/source.hpp"

namespace tailrace::input {

/// Records of one field, member, level and time in a file.
using Candidates = std::vector<const sources::Record*>;

/// Two levels are the same if they differ by rounding alone.
bool is_same_level(double a, double b);

/// Local. Blocks on storage if the definition chooses by what the inventory does not tell. Leaves those
/// records that have what the choice asks for, and this bottom. `what` begins texts of errors: "a.grib2 has
/// 't' at lead 0 s". Code::argument if none is left names what they have.
Status keep_chosen(const sources::Source& source, const Choice& choice, std::optional<double> bottom,
                   const std::string& what, Candidates& records);

/// Local. Blocks on storage if there are several. Returns the last record if the headers of all say the same,
/// and otherwise Code::argument, which names how they differ.
Result<const sources::Record*> the_last_of_equals(const sources::Source& source, const std::string& what,
                                                  const Candidates& records);

}  // namespace tailrace::input
