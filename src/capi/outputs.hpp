// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "restart/outputs.hpp"

namespace tailrace::capi {

/// Local. Returns the program's open outputs.
restart::Open what_is_open();

/// Local. Says that the program is about to close the file, of which this rank may have written some.
void note_closing(const files::File& file);
/// Local. Says the same of a formatted file of the first rank.
void note_closing_text(const std::string& path);
/// Local. Says that a file has another name now.
void note_renamed(const std::string& from, const std::string& to);

}  // namespace tailrace::capi
