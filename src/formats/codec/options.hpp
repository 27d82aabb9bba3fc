// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string_view>
#include <vector>

namespace tailrace::codec {

/// An option that not every format has. If the parser of options has no place of its own for it, the option
/// goes into the keys of the definition.
struct FormatOption {
  std::string_view key;
  std::vector<std::string_view> words;  // the values that it may have; empty: any text
};

/// The options that belong to a format, and not to all of them.
struct FormatOptions {
  std::vector<FormatOption> stream, field;  // of tr_stream_create and tr_stream_define
  std::string_view keys;         // any other option is a key of this kind, such as "GRIB"; "": it is an error
  bool has_short_names = false;  // the name of a field says what quantity the field is
};

/// Returns the options of formats whose files have variables: attributes, the variable of time, and how
/// exactly values are kept.
inline FormatOptions options_of_variables() {
  return {.stream = {{"attributes", {}}, {"time_units", {}}, {"time_name", {}}},
          .field = {{"attributes", {}},
                    {"accuracy", {}},
                    {"information", {}},
                    {"relative_accuracy", {}},
                    {"bits", {}}},
          .keys = ""};
}

/// Returns the same with the options of formats that cut variables into compressed chunks.
inline FormatOptions options_of_chunked_variables() {
  FormatOptions options = options_of_variables();
  options.stream.push_back({"compress", {}});
  options.field.push_back({"compress", {}});
  options.field.push_back({"chunks", {}});
  return options;
}

}  // namespace tailrace::codec
