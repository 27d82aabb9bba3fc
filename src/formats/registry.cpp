// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/registry.hpp"

#include <array>

#include "base/text.hpp"
#include "grib2/codec.hpp"
#include "raw/codec.hpp"

namespace tailrace::formats {

namespace {

using Make = Result<std::unique_ptr<codec::Codec>> (*)(const codec::StreamDefinition&);

struct Format {
  std::string_view name;
  Make make;             // null if this build lacks the format
  std::string_view why;  // the reason why `make` is null
};

// The registry of formats has one line for each format.
constexpr std::array<Format, 2> formats{{
    {"raw", raw::make, ""},
#ifdef TAILRACE_HAVE_GRIB
    {"grib2", grib2::make, ""},
#else
    {"grib2", nullptr,
     "built without ecCodes; install libeccodes-dev and configure again with -DTAILRACE_GRIB=ON"},
#endif
}};

}  // namespace

Result<std::unique_ptr<codec::Codec>> make_codec(const codec::StreamDefinition& stream) {
  std::vector<std::string_view> known;
  for (const Format& format : formats) {
    known.push_back(format.name);
    if (format.name != stream.format) continue;
    if (format.make == nullptr)
      return Status(Code::unsupported, cat("format '", format.name, "': ", format.why));
    if (!is_valid(stream.base, stream.calendar))
      return Status(Code::argument, cat("base time ", format_time(stream.base),
                                        " does not exist in calendar ", name_of(stream.calendar)));
    return format.make(stream);
  }
  return Status(Code::settings, cat("format '", stream.format, "' is unknown; the nearest is '",
                                    nearest(stream.format, known), "'"));
}

}  // namespace tailrace::formats
