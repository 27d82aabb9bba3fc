// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "codec/codec.hpp"

#include <array>
#include <cmath>

#include "base/text.hpp"
#include "codec/formats.hpp"

namespace tailrace::codec {

namespace {

using Make = Result<std::unique_ptr<Codec>> (*)(const StreamDefinition&);

struct Format {
  std::string_view name;
  Make make;             // null if this build lacks the format
  std::string_view why;  // the reason why `make` is null
};

// The registry of formats has one line for each format.
constexpr std::array<Format, 2> formats{{
    {"raw", make_raw, ""},
#ifdef TAILRACE_HAVE_GRIB
    {"grib2", make_grib2, ""},
#else
    {"grib2", nullptr,
     "built without ecCodes; install libeccodes-dev and configure again with -DTAILRACE_GRIB=ON"},
#endif
}};

Status check_values(const FieldDefinition& field) {
  if (size_of(field.type) == 0)
    return {Code::argument, cat("element type ", static_cast<std::int32_t>(field.type), " is unknown")};
  if (field.elements() <= 0)
    return {Code::argument, "a record has no elements, or more than 2^63: check the shape"};
  if (field.levels.values.empty()) return {Code::argument, "a field needs at least one level"};
  if (!field.levels.bottoms.empty() && field.levels.bottoms.size() != field.levels.values.size())
    return {Code::argument, cat(field.levels.bottoms.size(), " bottoms for ", field.levels.values.size(),
                                " levels; give one for each, or none")};
  const int given = field.accuracy.has_value() + field.relative_accuracy.has_value() + field.bits.has_value();
  if (given > 1)
    return {Code::argument, "accuracy, relative accuracy and bits exclude one another: give one of them"};
  for (const auto& limit : {field.accuracy, field.relative_accuracy}) {
    if (limit && !(*limit > 0 && std::isfinite(*limit)))
      return {Code::argument, cat("accuracy is ", *limit, "; it must be positive and finite")};
  }
  if (field.missing && std::isinf(*field.missing))
    return {Code::argument, "missing is infinite; give a finite value or NaN"};
  return {};
}

}  // namespace

Status check_field(const FieldDefinition& field) {
  if (field.name.empty()) return {Code::argument, "a field needs a name"};
  return check_values(field).in(cat("field '", field.name, "'"));
}

Result<std::unique_ptr<Codec>> make_codec(const StreamDefinition& stream) {
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

}  // namespace tailrace::codec
