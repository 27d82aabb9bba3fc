// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace tailrace::run {

/// One way in which a program may use a descriptor without a function of libc that the library takes over.
struct Escape {
  std::string way;
  std::string outcome;
  bool is_harmless = true;  // it fails: it reads and writes nothing else in place of the file
};

/// Tries all ways on a placeholder, as a program would, and returns their outcomes.
std::vector<Escape> try_escapes();
/// Returns a text about other calls that the library does not take over.
const char* other_escapes();

}  // namespace tailrace::run
