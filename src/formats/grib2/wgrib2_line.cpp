// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Lines of wgrib2's inventory, as `wgrib2 -s` of version 3.4 prints them. Numbers of sections and octets are
// those of WMO's manual, where octets count from 1; indices count from 0.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "formats/grib2/listings.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

constexpr int ncep = 7;
constexpr int ecmwf = 98;
constexpr int no_surface = 255;

int octet(const std::byte* section, int number) { return std::to_integer<int>(section[number - 1]); }

/// Reads a signed number of four octets, as GRIB has it: a sign bit and a magnitude.
std::int64_t signed_number(const std::byte* from) {
  const std::uint64_t value = get_number(from, 4);
  constexpr std::uint64_t sign = std::uint64_t{1} << 31;
  return (value & sign) != 0 ? -static_cast<std::int64_t>(value & ~sign) : static_cast<std::int64_t>(value);
}

std::string printed(const char* format, double value) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// Returns a number as C's %g prints it, which is how wgrib2 prints levels.
std::string general(double value) { return printed("%g", value); }

/// A surface of a level. The value is a float, because wgrib2 computes with float.
struct Surface4 {
  int type = no_surface;
  float value = 9.999e20F;  // wgrib2's number for "undefined"
  bool is_missing = true;
};

Surface4 surface_at(const std::byte* octets) {
  Surface4 surface;
  surface.type = std::to_integer<int>(octets[0]);
  if (surface.type == no_surface) return surface;
  const int scale_octet = std::to_integer<int>(octets[1]);
  constexpr std::uint64_t missing = 0xffffffff;
  if (scale_octet == 255 || get_number(octets + 2, 4) == missing) return surface;
  const int scale = (scale_octet & 0x80) != 0 ? -(scale_octet & 0x7f) : scale_octet;
  surface.is_missing = false;
  // Computes the power from repeated squares of 0.1 or 10, in double, so that the last digit is that of
  // wgrib2.
  double power = 1;
  double base = scale > 0 ? 1.0 / 10.0 : 10.0;
  for (int rest = std::abs(scale); rest != 0; rest >>= 1, base *= base)
    if ((rest & 1) != 0) power *= base;
  const std::int64_t scaled = signed_number(octets + 2);
  surface.value =
      scale == 0 ? static_cast<float>(scaled) : static_cast<float>(static_cast<double>(scaled) * power);
  return surface;
}

struct LevelText {
  int type;
  const char* text;  // "%g" stands for the value
};

/// The texts of single surfaces. wgrib2 prints "reserved" for other types.
constexpr LevelText level_texts[]{
    {1, "surface"},
    {2, "cloud base"},
    {3, "cloud top"},
    {4, "0C isotherm"},
    {5, "level of adiabatic condensation from sfc"},
    {6, "max wind"},
    {7, "tropopause"},
    {8, "top of atmosphere"},
    {9, "sea bottom"},
    {10, "entire atmosphere"},
    {11, "cumulonimbus base"},
    {12, "cumulonimbus top"},
    {13, "lowest level %g%% integrated cloud cover"},
    {14, "level of free convection"},
    {15, "convection condensation level"},
    {16, "level of neutral buoyancy"},
    {17, "Departure level of most unstable parcel of air (MUDL)"},
    {18, "Departure level of mixed layer parcel of air with specified layer depth %g (Pa)"},
    {20, "%g K level"},
    {21, "lowest level > %g kg/m^3"},
    {22, "highest level > %g kg/m^3"},
    {23, "lowest level > %g Bq/m^3"},
    {24, "highest level > %g Bg/m^3"},
    {25, "highest level > %g dBZ"},
    {26, "convective cloud layer base"},
    {27, "convective clout layer top"},
    {30, "specified radius from center of sun"},
    {31, "ionosphere D-region level"},
    {32, "ionosphere E-region level"},
    {100, "%g mb"},
    {101, "mean sea level"},
    {102, "%g m above mean sea level"},
    {103, "%g m above ground"},
    {104, "%g sigma level"},
    {105, "%g hybrid level"},
    {106, "%g m underground"},
    {107, "%g K isentropic level"},
    {108, "%g mb above ground"},
    {109, "PV=%g (Km^2/kg/s) surface"},
    {111, "%g Eta level"},
    {113, "%g logarithmic hybrid level"},
    {114, "snow level"},
    {115, "%g sigma height level"},
    {117, "mixed layer depth"},
    {118, "%g hybrid height level"},
    {119, "%g hybrid pressure level"},
    {150, "%g generalized vertical height coordinate"},
    {151, "soil level %g"},
    {152, "sea-ice level"},
    {160, "%g m below sea level"},
    {161, "%g m below water surface"},
    {162, "lake or river bottom"},
    {163, "bottom of sediment layer"},
    {164, "bottom of thermally active sediment layer"},
    {165, "bottom of sediment layer penetrated by thermal wave"},
    {166, "maxing layer"},
    {167, "bottom of root zone"},
    {168, "ocean model level %g"},
    {169, "ocean level %g (kg*m-3) density difference to near surface"},
    {170, "ocean level %g (K) pot. temperature difference to near surface"},
    {171, "ocean level %g (m*m/s) vertical eddy diffusivity difference from near surface"},
    {172, "mixed layer depth (delta rho=%g)"},
    {174, "top surface of ice on sea, lake or river"},
    {175, "top surface of ice, und snow on sea, lake or river"},
    {176, "bottom surface ice on sea, lake or river"},
    {177, "deep soil"},
    {179, "top surface of glacier ice and inland ice"},
    {180, "deep inland or glacier ice"},
    {181, "grid tile land fraction as a model surface"},
    {182, "grid tile water fraction as a model surface"},
    {183, "grid tile ice fraction on sea, lake or river as a model surface"},
    {184, "grid tile glacier ice and inland ice fraction as a model surface"},
};

/// The texts of layers between two surfaces of one type. They stand behind the two values.
constexpr LevelText layer_texts[]{
    {100, " mb"},
    {102, " m above mean sea level"},
    {103, " m above ground"},
    {104, " sigma layer"},
    {105, " hybrid layer"},
    {106, " m below ground"},
    {107, " K isentropic layer"},
    {108, " mb above ground"},
    {111, " Eta layer"},
    {115, " sigma height layer"},
    {118, " hybrid height layer"},
    {119, " hybrid pressure layer"},
    {150, " generalized vertical height coordinate"},
    {160, " m below sea level"},
    {161, " m ocean layer"},
};

template <std::size_t count>
const char* text_of(const LevelText (&texts)[count], int type) {
  const auto found = std::ranges::find(texts, type, &LevelText::type);
  return found == std::end(texts) ? nullptr : found->text;
}

bool is_pressure(int type) { return type == 100 || type == 108; }

Result<std::string> level_text(const Surface4& surface) {
  constexpr int first_local = 192;
  if (surface.type >= first_local && surface.type != no_surface)
    return cat("local level type ", surface.type, surface.is_missing ? "" : cat(" ", general(surface.value)));
  if (surface.type == no_surface) return std::string();
  const float value = is_pressure(surface.type) ? static_cast<float>(surface.value * 0.01) : surface.value;
  const char* const text = text_of(level_texts, surface.type);
  return text == nullptr ? std::string("reserved") : printed(text, value);
}

Result<std::string> levels_text(const Surface4& first, const Surface4& second, int center) {
  if (first.type == no_surface && second.type == no_surface) return std::string("no_level");
  if (first.type == 1 && second.type == 8) return std::string("atmos col");
  if (first.type == 9 && second.type == 1) return std::string("ocean column");
  const char* const layer = first.type == second.type ? text_of(layer_texts, first.type) : nullptr;
  if (layer != nullptr) {
    const float scale = is_pressure(first.type) ? 100 : 1;
    return cat(general(first.value / scale), "-", general(second.value / scale), layer);
  }
  constexpr int first_local = 192;
  // NCEP and Korea have names for their own types of level.
  for (const int type : {first.type, second.type}) {
    if (type >= first_local && type != no_surface && (center == ncep || center == 40))
      return Status(Code::format, cat("index=wgrib2: the text of level type ", type, " of centre ", center,
                                      " is not known here; leave index=wgrib2 out"));
  }
  Result<std::string> text = level_text(first);
  TR_TRY(text.status());
  if (second.type == no_surface) return text;
  Result<std::string> more = level_text(second);
  TR_TRY(more.status());
  return cat(*text, " - ", *more);
}

constexpr std::pair<int, const char*> unit_texts[]{
    {0, "min"},    {1, "hour"},    {2, "day"},      {3, "month"},    {4, "year"},      {5, "decade"},
    {6, "normal"}, {7, "century"}, {10, "3-hours"}, {11, "6-hours"}, {12, "12-hours"}, {13, "sec"}};

std::string unit_text(int unit) {
  const auto found = std::ranges::find(unit_texts, unit, &std::pair<int, const char*>::first);
  return found == std::end(unit_texts) ? "?" : found->second;
}

/// A time in a unit of code table 4.4.
struct Time {
  int unit = 1;
  std::int64_t value = 0;
};

/// Returns the time in hours if its unit is 3, 6 or 12 hours, otherwise unchanged.
Time in_hours(Time time) {
  const int hours = time.unit == 10 ? 3 : time.unit == 11 ? 6 : time.unit == 12 ? 12 : 0;
  return hours == 0 ? time : Time{1, time.value * hours};
}

std::string time_text(Time time) {
  time = in_hours(time);
  return cat(time.value, " ", unit_text(time.unit));
}

/// Returns the text of a range of time, such as "0-3 hour".
std::string range_text(Time begin, Time length) {
  begin = in_hours(begin);
  length = in_hours(length);
  if (begin.value == 0)
    begin.unit = length.unit;
  else if (length.value == 0)
    length.unit = begin.unit;
  if (begin.unit != length.unit)
    return cat(time_text(begin), "-(", time_text(begin), "+", time_text(length), ")");
  struct Larger {
    int unit, factor, larger;
  };
  for (const Larger& step : {Larger{13, 60, 0}, Larger{0, 60, 1}, Larger{1, 24, 2}, Larger{3, 12, 4}}) {
    if (begin.unit != step.unit || begin.value % step.factor != 0 || length.value % step.factor != 0)
      continue;
    begin = {step.larger, begin.value / step.factor};
    length.value /= step.factor;
  }
  return cat(begin.value, "-", begin.value + length.value, " ", unit_text(begin.unit));
}

std::string statistic_text(int process) {
  constexpr std::pair<int, const char*> texts[]{{0, "ave"},
                                                {1, "acc"},
                                                {2, "max"},
                                                {3, "min"},
                                                {4, "last-first"},
                                                {5, "RMS"},
                                                {6, "StdDev"},
                                                {7, "covar"},
                                                {8, "first-last"},
                                                {9, "ratio"},
                                                {10, "standardized anomaly"},
                                                {11, "summation"},
                                                {12, "return period"},
                                                {100, "severity"},
                                                {101, "mode"},
                                                {255, "missing"}};
  const auto found = std::ranges::find(texts, process, &std::pair<int, const char*>::first);
  return found == std::end(texts) ? "???" : found->second;
}

/// A product definition template: the octets of section 4 that differ between the templates.
struct Template {
  int number;
  std::size_t length;  // of section 4, with one time range
  int ensemble;        // octet of the type of ensemble forecast, or of the derived forecast; 0 = none
  bool is_derived;
  int interval;  // octet of the year of the interval's end; 0 = none
};
constexpr Template templates[]{{0, 34, 0, false, 0},  {1, 37, 35, false, 0},   {2, 36, 35, true, 0},
                               {8, 58, 0, false, 35}, {11, 61, 35, false, 38}, {12, 60, 35, true, 37}};

Result<std::string> time_of(const std::byte* section, const Template& product) {
  const Time forecast{octet(section, 18), signed_number(section + 18)};
  if (product.interval == 0)
    return forecast.value == 0 ? std::string("anl") : cat(time_text(forecast), " fcst");
  const std::byte* const ranges = section + product.interval - 1 + 7;
  const std::byte* const range = ranges + 5;
  const Time length{std::to_integer<int>(range[2]), signed_number(range + 3)};
  const std::int64_t increment = signed_number(range + 8);
  const int count = std::to_integer<int>(ranges[0]);
  const int type = std::to_integer<int>(range[1]);
  if (count != 1 || (type != 1 && type != 2) || increment != 0)
    return Status(
        Code::format,
        "index=wgrib2: its text of more than one time range, of a time increment or of a type of it "
        "besides 1 and 2 is not known here; leave those keys or index=wgrib2 out");
  const std::string statistic = statistic_text(std::to_integer<int>(range[0]));
  if (type == 2) return cat(range_text(forecast, length), " ", statistic, " fcst");
  const std::string of = range_text({length.unit, 0}, length);
  if (forecast.value == 0) return cat(of, " ", statistic, " anl");
  return cat(of, " ", statistic, "(", forecast.value, " ", unit_text(forecast.unit), " fcst)");
}

std::string derived_text(int derived, int center) {
  constexpr const char* texts[]{
      "ens mean",        "wt ens mean",          "ens std dev",   "normalized ens std dev",
      "ens spread",      "ens large anom index", "unwt ens mean", "25%-75% range",
      "min all members", "max all members"};
  if (derived < static_cast<int>(std::size(texts))) return texts[derived];
  constexpr int first_of_ncep = 192;
  constexpr const char* of_ncep[]{"unwt mode all members",
                                  "10% all members",
                                  "50% all members",
                                  "90% all members",
                                  "stat. weight for each members",
                                  "percentile from climate distribution",
                                  "deviation of ens mean from daily climo",
                                  "extreme forecast index",
                                  "equally weighted mean",
                                  "5% all members",
                                  "25% all members",
                                  "75% all members",
                                  "95% all members"};
  const int place = derived - first_of_ncep;
  if (center == ncep && place >= 0 && place < static_cast<int>(std::size(of_ncep))) return of_ncep[place];
  return "unknown derived fcst";
}

std::string ensemble_text(const std::byte* section, const Template& product, int center) {
  const int type = octet(section, product.ensemble);
  if (product.is_derived) return derived_text(type, center);
  const int member = octet(section, product.ensemble + 1);
  const int size = octet(section, product.ensemble + 2);
  if (type == 0) return "ENS=hi-res ctl";
  // ECMWF leaves the type out. In its messages wgrib2 takes member 0 for the control forecast.
  const bool is_ecmwfs = center == ecmwf && type == 255 && size > 0;
  if (type == 1 || (is_ecmwfs && member == 0)) return "ENS=low-res ctl";
  if (type == 2) return cat("ENS=-", member);
  if (type == 3 || is_ecmwfs) return cat("ENS=+", member);
  if (type == 4) return cat("MM-ENS=", member);
  if (type == 192 && center == ncep) return cat("ENS=", member);
  return cat("ENS=? table4.6=", type, " pert=", member);
}

/// Returns the part of the line that wgrib2 prints behind the time: ensemble, process and reference time.
std::string rest_of(const std::byte* identification, const std::byte* section, const Template& product) {
  const int center = static_cast<int>(get_number(identification + 5, 2));
  std::string text;
  const auto add = [&](const std::string& more) { text += text.empty() ? more : cat(":", more); };
  if (product.ensemble != 0) add(ensemble_text(section, product, center));
  const int process = octet(section, 12);
  if (process == 5)
    add("probability forecast");
  else if (process == 6 || process == 7)
    add("analysis/forecast error");
  else if (process == 9)
    add("climatological");
  else if (center == ncep && process == 192)
    add("Confidence Indicator");
  else if (center == ncep && process == 194)
    add("Neighborhood Probability");
  else if (process >= 192 && process != 255)
    add(cat("process=", process));
  constexpr const char* references[]{"", "", "verifying time of forecast", "observation time", "local time"};
  const int reference = octet(identification, 12);
  if (reference > 1)
    add(cat("type_reftime=",
            reference < static_cast<int>(std::size(references)) ? references[reference] : "unknown"));
  return text;
}

std::string name_of(const ByteVector& head, const std::byte* identification, const std::byte* section) {
  const int discipline = std::to_integer<int>(head[6]);
  const int category = octet(section, 10);
  const int number = octet(section, 11);
  const int master = octet(identification, 10);
  const auto is_local = [](int code) { return code >= 192 && code <= 254; };
  if (is_local(discipline) || is_local(category) || is_local(number))
    return cat("var discipline=", discipline, " center=", get_number(identification + 5, 2),
               " local_table=", octet(identification, 11), " parmcat=", category, " parm=", number);
  const std::string_view name = master == 255 ? "" : wgrib2_name(discipline, category, number);
  if (!name.empty()) return std::string(name);
  return cat("var discipline=", discipline, " master_table=", master, " parmcat=", category,
             " parm=", number);
}

}  // namespace

Result<std::string> wgrib2_line(const codec::ReadBytes& read, std::int64_t number, Bytes offset) {
  const Result<ListedMessage> message = read_message(read, offset);
  TR_TRY(message.status());
  const ByteVector& head = message->parts.head;
  const std::byte* const identification = &head[section_begin(head, 1)];
  const std::size_t product_at = section_begin(head, 4);
  const std::byte* const section = &head[product_at];
  const auto number_of_template = static_cast<int>(get_number(section + 7, 2));
  const auto product = std::ranges::find(templates, number_of_template, &Template::number);
  if (product == std::end(templates))
    return Status(Code::format, cat("index=wgrib2: its line for productDefinitionTemplateNumber=",
                                    number_of_template, " is not known here; leave index=wgrib2 out"));
  if (head.size() - product_at < product->length)
    return Status(Code::corrupt, cat("the message at byte ", offset, " has a section 4 of ",
                                     head.size() - product_at, " bytes; its template has ", product->length));
  const int center = static_cast<int>(get_number(identification + 5, 2));
  const Result<std::string> level = levels_text(surface_at(section + 22), surface_at(section + 28), center);
  TR_TRY(level.status());
  const Result<std::string> time = time_of(section, *product);
  TR_TRY(time.status());
  std::array<char, 16> date{};
  std::snprintf(date.data(), date.size(), "%04d%02d%02d%02d",
                static_cast<int>(get_number(identification + 12, 2)), octet(identification, 15),
                octet(identification, 16), octet(identification, 17));
  return cat(number, ":", offset, ":d=", date.data(), ":", name_of(head, identification, section), ":",
             *level, ":", *time, ":", rest_of(identification, section, *product), "\n");
}

std::optional<Bytes> wgrib2_offset(std::string_view line, std::int64_t number) {
  const std::string begin = cat(number, ":");
  if (!line.starts_with(begin)) return std::nullopt;
  line.remove_prefix(begin.size());
  Bytes offset = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), offset);
  if (error != std::errc() || end == line.data() + line.size() || *end != ':') return std::nullopt;
  return offset;
}

}  // namespace tailrace::grib2
