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

}  // namespace tailrace::codec
