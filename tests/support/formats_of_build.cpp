// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Prints the formats that this build writes, one on a line: its name, an ending of its files, and what they
// are: "variables" if they hold named variables with metadata, "store" if they are directories. Formats that
// are one kind of file in several versions, as those of classic NetCDF, are one line. Tests of all formats
// take them from here (small_model.py).
#include <cstdio>
#include <string>

#include "formats/registry/registry.hpp"

int main() {
  std::string_view about;
  for (const tailrace::formats::Format& format : tailrace::formats::all()) {
    if (format.make == nullptr || format.about == about) continue;
    about = format.about;
    const std::string name(format.name);
    const std::string ending = format.endings.empty() ? name : std::string(format.endings.front().substr(1));
    std::printf("%s %s%s%s\n", name.c_str(), ending.c_str(),
                tailrace::formats::has_heads(name) ? " variables" : "",
                format.store != nullptr ? " store" : "");
  }
}
