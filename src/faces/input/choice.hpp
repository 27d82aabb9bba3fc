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

/// True if the two levels differ only by rounding.
bool is_same_level(double a, double b);

/// Local. Blocks on storage if `choice` or `bottom` asks for traits, which the inventory lacks. Keeps only
/// the records that have the traits of `choice` and this bottom; keeps all if the format has no traits. If no
/// record is left, returns Code::argument with the traits that the file has. The text begins with `what`,
/// such as "a.grib2 has 't' at lead 0 s".
Status keep_chosen(const sources::Source& source, const Choice& choice, std::optional<double> bottom,
                   const std::string& what, Candidates& records);

/// Local. Blocks on storage if there are several records. Returns the last record if the headers of all are
/// the same; otherwise Code::argument, which names the differences.
Result<const sources::Record*> the_last_of_equals(const sources::Source& source, const std::string& what,
                                                  const Candidates& records);

}  // namespace tailrace::input
