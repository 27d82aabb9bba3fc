// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace tailrace::run {

/// One way in which a program may use a descriptor without the calls that are taken over.
struct Escape {
  std::string way;
  std::string outcome;
  bool is_harmless = true;  // it fails, and does not read or write something else
};

/// Tries them on a placeholder, as a program would.
std::vector<Escape> try_escapes();
/// Returns a text about the other calls that are not taken over.
const char* other_escapes();

}  // namespace tailrace::run
