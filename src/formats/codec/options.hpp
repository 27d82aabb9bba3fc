// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string_view>
#include <vector>

namespace tailrace::codec {

/// An option that not every format has. One that the parser of options does not know goes into the keys of
/// the definition.
struct FormatOption {
  std::string_view key;
  std::vector<std::string_view> words;  // which it may be; none = any text
};

/// The options that belong to a format, and not to all of them.
struct FormatOptions {
  std::vector<FormatOption> stream, field;  // of tr_stream_create and tr_stream_define
  std::string_view keys;         // the kind of key that any other option is, as "GRIB"; "" = an error
  bool has_short_names = false;  // each name of a field says what the field is
};

}  // namespace tailrace::codec
