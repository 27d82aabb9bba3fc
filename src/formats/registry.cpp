// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/registry.hpp"

#include <algorithm>

#include "base/options.hpp"
#include "base/text.hpp"
#include "grib2/codec.hpp"
#include "raw/codec.hpp"

namespace tailrace::formats {

namespace {

#ifdef TAILRACE_HAVE_GRIB
constexpr auto* make_grib2 = grib2::make;
#else
constexpr std::nullptr_t make_grib2 = nullptr;
#endif
constexpr std::string_view no_eccodes =
    "built without ecCodes; install libeccodes-dev and configure again with -DTAILRACE_GRIB=ON";
constexpr std::string_view absent = "not in this version";

std::vector<std::string_view> names() {
  std::vector<std::string_view> found;
  for (const Format& format : all()) {
    if (format.asked_as.empty()) found.push_back(format.name);
  }
  return found;
}

/// Returns "a", "a or b", "a, b or c".
std::string either(std::string_view before_each) {
  const std::vector<std::string_view> each = names();
  std::string text;
  for (std::size_t i = 0; i < each.size(); ++i)
    text += cat(i == 0 ? "" : i + 1 == each.size() ? " or " : ", ", before_each, each[i]);
  return text;
}

}  // namespace

const std::vector<Format>& all() {
  static const std::vector<Format> formats{
      {"grib2", make_grib2, no_eccodes, {".grib2", ".grb2", ".grib", ".grb"}, grib2::options()},
      {"raw", raw::make, ""},
      {"NetCDF",
       nullptr,
       absent,
       {".nc", ".nc4", ".cdf", ".netcdf"},
       {},
       {"netcdf", "netcdf3", "netcdf4", "nc", "nc4", "cdf"}},
      {"HDF5", nullptr, absent, {".h5", ".hdf5", ".hdf"}, {}, {"hdf5", "hdf", "h5"}},
      {"Zarr", nullptr, absent, {".zarr"}, {}, {"zarr"}},
      {"GRIB1", nullptr, absent, {".grib1", ".grb1"}, {}, {"grib1", "grb1"}},
  };
  return formats;
}

Result<const Format*> find(std::string_view text) {
  const std::string word = lower_case(text);
  for (const Format& format : all()) {
    const auto& words = format.asked_as;
    if (std::find(words.begin(), words.end(), word) != words.end())
      return Status(Code::settings,
                    cat(format.name, " is ", format.why, ": streams are written in ", either("")));
    if (words.empty() && format.name == text) return &format;
  }
  return parse_choice(text, names()).status();
}

Result<const Format*> promised_by(std::string_view file_name) {
  const std::string name = lower_case(file_name);
  for (const Format& format : all()) {
    for (const std::string_view ending : format.endings) {
      if (!name.ends_with(ending)) continue;
      if (format.asked_as.empty()) return &format;
      return Status(Code::settings,
                    cat("a name that ends in ", ending, " promises ", format.name, ", which is ", format.why,
                        ": end it in ", all().front().endings.front(), ", or say ", either("format="),
                        " if the file is to hold that under this name"));
    }
  }
  return &all().front();
}

Result<std::unique_ptr<codec::Codec>> make_codec(const codec::StreamDefinition& stream) {
  const Result<const Format*> found = find(stream.format);
  TR_TRY(found.status().in(cat("format=", stream.format)));
  const Format& format = **found;
  if (format.make == nullptr)
    return Status(Code::unsupported, cat("format '", format.name, "': ", format.why));
  if (!is_valid(stream.base, stream.calendar))
    return Status(Code::argument, cat("base time ", format_time(stream.base), " does not exist in calendar ",
                                      name_of(stream.calendar)));
  return format.make(stream);
}

}  // namespace tailrace::formats
