// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The same program as C++. Headers whose functions share a name with C's calls come first.
#include <algorithm>
#include <filesystem>
#include <list>
#include <string>

#include "files/statements_test.c"

/// Names that containers and <filesystem> have, too.
[[maybe_unused]] static void other_names(std::list<int>& list, std::string& text) {
  list.remove(1);
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  std::filesystem::remove(text);
}
