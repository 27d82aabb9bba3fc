// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/registry/registry.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "formats/cdf/codec.hpp"
#include "formats/cdf/front_end.hpp"
#include "formats/encoders/codec.hpp"
#include "formats/encoders/table.hpp"
#include "formats/grib2/codec.hpp"
#include "formats/grib2/edition1/codec.hpp"
#include "formats/grib2/reading/front_end.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#ifdef TAILRACE_HAVE_GRIB
#include "formats/grib2/listings.hpp"
#endif
#include "formats/netcdf4/codec.hpp"
#include "formats/netcdf4/front_end.hpp"
#include "formats/netcdf4/superblock.hpp"
#include "formats/raw/codec.hpp"
#include "formats/raw/front_end.hpp"
#include "formats/zarr/codec.hpp"
#include "formats/zarr/front_end.hpp"

namespace tailrace::formats {

namespace {

#ifdef TAILRACE_HAVE_GRIB
constexpr auto* make_grib2 = grib2::make;
constexpr auto* list_grib2 = grib2::listings;
constexpr auto* check_grib2 = grib2::check_keys;
constexpr auto* make_grib1 = grib2::edition1::make;
constexpr auto* list_grib1 = grib2::listings_of_edition_1;
constexpr auto* check_grib1 = grib2::edition1::check_keys;
#else
constexpr std::nullptr_t make_grib2 = nullptr;
constexpr auto* list_grib2 = +[] { return std::vector<codec::Listing>(); };
constexpr std::nullptr_t check_grib2 = nullptr;
constexpr std::nullptr_t make_grib1 = nullptr;
constexpr auto* list_grib1 = list_grib2;
constexpr std::nullptr_t check_grib1 = nullptr;
#endif
constexpr std::string_view no_eccodes =
    "built without ecCodes; install libeccodes-dev and configure again with -DTAILRACE_GRIB=ON";
#ifdef TAILRACE_HAVE_HDF5
constexpr auto* make_netcdf4 = netcdf4::make;
constexpr Finishing finish_netcdf4{netcdf4::unfinished, netcdf4::is_finished, netcdf4::reopen};
constexpr auto* go_on_netcdf4 = netcdf4::check_goes_on;
#else
constexpr std::nullptr_t make_netcdf4 = nullptr;
constexpr Finishing finish_netcdf4{netcdf4::unfinished, netcdf4::is_finished, nullptr};
constexpr std::nullptr_t go_on_netcdf4 = nullptr;
#endif
constexpr std::string_view no_hdf5 =
    "built without HDF5; install libhdf5-dev and libdeflate-dev, and configure again with -DTAILRACE_HDF5=ON";
#ifdef TAILRACE_HAVE_ZARR
constexpr auto* make_zarr = zarr::make;
constexpr auto* count_zarr = zarr::step_count;
constexpr auto* go_on_zarr = zarr::check_goes_on;
#else
constexpr std::nullptr_t make_zarr = nullptr;
constexpr std::nullptr_t count_zarr = nullptr;
constexpr std::nullptr_t go_on_zarr = nullptr;
#endif
constexpr std::string_view no_zarr =
    "built without nlohmann-json or libdeflate; install nlohmann-json3-dev and libdeflate-dev, and configure "
    "again with -DTAILRACE_ZARR=ON";
constexpr std::string_view absent = "not in this version";

std::vector<std::string_view> names() {
  std::vector<std::string_view> found;
  for (const Format& format : all()) {
    if (format.asked_as.empty()) found.push_back(format.name);
  }
  return found;
}

/// Joins words as "a", "a or b", "a, b or c", with `before_each` in front of each word and `behind_each`
/// behind it.
std::string list_of(const std::vector<std::string_view>& each, std::string_view before_each,
                    std::string_view behind_each = "") {
  std::string text;
  for (std::size_t i = 0; i < each.size(); ++i)
    text += cat(i == 0 ? "" : i + 1 == each.size() ? " or " : ", ", before_each, each[i], behind_each);
  return text;
}

/// Returns the names of all formats as "a, b or c".
std::string either(std::string_view before_each) { return list_of(names(), before_each); }

/// Returns the first ending of each format that has endings, as "a, b or c".
std::string usual_endings() {
  std::vector<std::string_view> each;
  for (const Format& format : all()) {
    if (format.asked_as.empty() && !format.endings.empty()) each.push_back(format.endings.front());
  }
  return list_of(each, "");
}

Format classic(std::string_view name, decltype(Format::make) make, std::vector<std::string_view> endings,
               decltype(Format::step_count) step_count) {
  return {.name = name,
          .make = make,
          .about = "classic [NetCDF](#netcdf)",
          .endings = std::move(endings),
          .options = cdf::options(),
          .step_count = step_count,
          .check_goes_on = cdf::check_goes_on,
          .reading = &cdf::front_end};
}

/// The formats that the program has registered. A format stays until the process ends and never moves,
/// because callers keep pointers to it.
struct Own {
  std::mutex mutex;
  std::map<std::string, Format, std::less<>> formats;
};

Own& own() {
  static Own& held = *new Own;
  return held;
}

/// Returns the format of a registered encoder, or null if no encoder has this name.
const Format* find_own(std::string_view name) {
  const encoders::Registered* const registered = encoders::find(name);
  if (registered == nullptr) return nullptr;
  Own& held = own();
  const std::lock_guard guard(held.mutex);
  const std::string_view lasting = registered->name;
  return &held.formats
              .try_emplace(registered->name,
                           Format{.name = lasting,
                                  .make = encoders::make,
                                  .options = {.stream = {{"time_units", {}}}, .field = {}, .keys = lasting}})
              .first->second;
}

Status no_such_format(std::string_view text) {
  std::vector<std::string_view> known = names();
  const std::vector<std::string> registered = encoders::names();
  known.insert(known.end(), registered.begin(), registered.end());
  return {Code::settings,
          cat(parse_choice(text, known).status().text(),
              ", or the name of an encoder that tr_encoder_register was given before on every rank")};
}

/// Adds the names that users may ask for although no format has them here.
std::vector<Format> with_names_of_others(std::vector<Format> formats) {
  const std::vector<Format> others{
      {.name = "NetCDF",
       .why = "called cdf5 here (netcdf4 is compressed; cdf2 and cdf1 are for older readers)",
       .endings = {".ncdf", ".ncd", ".ncf", ".nc3", ".nc5", ".cdf1", ".cdf2", ".cdf5", ".netcdf3"},
       .asked_as = {"netcdf", "netcdf3", "nc", "cdf"}},
      {.name = "NetCDF-4",
       .why = "called netcdf4 here",
       .endings = {".ncdf4", ".cdf4", ".netcdf4", ".nc4c"},
       .asked_as = {"nc4", "netcdf-4"}},
      {.name = "HDF5",
       .why = "called netcdf4 here, as it is HDF5",
       .endings = {".hdf"},
       .asked_as = {"hdf5", "hdf", "h5"}}};
  formats.insert(formats.end(), others.begin(), others.end());
  return formats;
}

}  // namespace

const std::vector<Format>& all() {
  static const auto& formats = *new const std::vector<Format>(with_names_of_others({
      {.name = grib2::format_name,
       .make = make_grib2,
       .why = no_eccodes,
       .about = "GRIB edition 2",
       .endings = {".grib2", ".grb2", ".grib", ".grb"},
       .options = grib2::options(),
       .listings = list_grib2(),
       .check_keys = check_grib2,
       .reading = &grib2::front_end},
      {.name = grib2::edition1::format_name,
       .make = make_grib1,
       .why = no_eccodes,
       .about = "GRIB [edition 1](#grib1), as archives ask for it",
       .endings = {".grib1", ".grb1"},
       .options = grib2::edition1::options(),
       .listings = list_grib1(),
       .check_keys = check_grib1,
       .reading = &grib2::front_end},
      {.name = "raw",
       .make = raw::make,
       .about = "elements in C order, little-endian, nothing around them",
       .options = {.stream = {{"time_units", {}}}, .field = {}, .keys = ""},
       .reading = &raw::front_end},
      classic("cdf5", cdf::make<cdf::Version::cdf5>, {".nc", ".cdf", ".netcdf"},
              cdf::count<cdf::Version::cdf5>),
      classic("cdf2", cdf::make<cdf::Version::cdf2>, {}, cdf::count<cdf::Version::cdf2>),
      classic("cdf1", cdf::make<cdf::Version::cdf1>, {}, cdf::count<cdf::Version::cdf1>),
      {.name = "netcdf4",
       .make = make_netcdf4,
       .why = no_hdf5,
       .about = "compressed [NetCDF-4](#netcdf-4)",
       .endings = {".nc4", ".h5", ".hdf5"},
       .options = netcdf4::options(),
       .finishing = finish_netcdf4,
       .check_goes_on = go_on_netcdf4,
       .reading = &netcdf4::front_end},
      {.name = zarr::format_name,
       .make = make_zarr,
       .why = no_zarr,
       .about = "a [Zarr](#zarr) store",
       .endings = {".zarr"},
       .options = zarr::options(),
       .step_count = count_zarr,
       .check_goes_on = go_on_zarr,
       .store = &zarr::store_kind,
       .reading = &zarr::front_end},
  }));
  return formats;
}

std::string about_formats() {
  std::vector<std::pair<std::vector<std::string_view>, std::string_view>> alike;
  for (const Format& format : all()) {
    if (!format.asked_as.empty()) continue;
    if (alike.empty() || alike.back().second != format.about) alike.push_back({{}, format.about});
    alike.back().first.push_back(format.name);
  }
  std::string text;
  for (const auto& [each, about] : alike)
    text += cat(text.empty() ? "" : "; ", list_of(each, "`", "`"), ": ", about);
  return text;
}

std::string about_endings() {
  std::string text;
  const Format& usual = all().front();
  for (const Format& format : all()) {
    if (format.asked_as.empty() && !format.endings.empty() && &format != &usual)
      text += cat(list_of(format.endings, "`", "`"), " means `", format.name, "`; ");
  }
  return cat(text, "any other means `", usual.name, "`");
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
  if (const Format* const found = find_own(text)) return found;
  return no_such_format(text);
}

Result<const Format*> promised_by(std::string_view file_name) {
  const std::string name = lower_case(file_name);
  for (const Format& format : all()) {
    for (const std::string_view ending : format.endings) {
      if (!name.ends_with(ending)) continue;
      if (format.asked_as.empty()) return &format;
      return Status(Code::settings,
                    cat("a name that ends in ", ending, " promises ", format.name, ", which is ", format.why,
                        ": end it in ", usual_endings(), ", or say ", either("format="),
                        " if the file is to hold that under this name"));
    }
  }
  return &all().front();
}

Status register_encoder(std::string_view name, const tr_encoder* functions, void* user) {
  const std::string word = lower_case(name);
  for (const Format& format : all()) {
    const auto& words = format.asked_as;
    if (word == lower_case(format.name) || std::find(words.begin(), words.end(), word) != words.end())
      return {Code::argument,
              cat("'", name, "' means the format ", format.name, "; choose another name for the encoder")};
  }
  return encoders::add(name, functions, user);
}

std::optional<codec::Patch> step_count(std::string_view name, std::int64_t steps) {
  const auto format = std::ranges::find(all(), name, &Format::name);
  if (format == all().end() || format->step_count == nullptr) return std::nullopt;
  return format->step_count(steps);
}

bool has_heads(std::string_view name) {
  const auto format = std::ranges::find(all(), name, &Format::name);
  return format != all().end() && format->check_goes_on != nullptr;
}

Status check_goes_on(std::string_view name, std::span<const std::byte> own, std::span<const std::byte> now) {
  const auto format = std::ranges::find(all(), name, &Format::name);
  return has_heads(name) ? format->check_goes_on(own, now) : Status();
}

const Finishing* finishing(std::string_view name) {
  const auto format = std::ranges::find(all(), name, &Format::name);
  return format == all().end() || !format->finishing ? nullptr : &*format->finishing;
}

Status check_can_finish(std::string_view name) {
  const auto format = std::ranges::find(all(), name, &Format::name);
  if (format == all().end() || !format->finishing || format->finishing->reopen != nullptr) return {};
  return {
      Code::unsupported,
      cat("files of format '", name,
          "' end with what makes them readable, and this Tailrace can neither make that nor take it away: ",
          format->why)};
}

std::vector<codec::Listing> listings() {
  std::vector<codec::Listing> found;
  for (const Format& format : all()) {
    // Formats share a kind of listing if one tool reads both.
    for (const codec::Listing& each : format.listings)
      if (std::ranges::find(found, each.word, &codec::Listing::word) == found.end()) found.push_back(each);
  }
  return found;
}

Result<codec::Listing> listing(std::string_view name, std::string_view word) {
  const auto format = std::ranges::find(all(), name, &Format::name);
  if (format == all().end() || format->make == nullptr)
    return Status(Code::unsupported,
                  cat("format '", name, "': ", format == all().end() ? absent : format->why));
  std::vector<std::string_view> words;
  for (const codec::Listing& each : format->listings) words.push_back(each.word);
  const Result<std::size_t> found = parse_choice(word, words);
  if (!found.is_ok()) {
    for (const Format& other : all()) {
      if (std::ranges::find(other.listings, word, &codec::Listing::word) != other.listings.end())
        return Status(Code::settings, cat("\"", word, "\" finds records of format=", other.name,
                                          " alone; format=", name, " takes ", list_of(words, "")));
    }
    return found.status();
  }
  return format->listings[*found];
}

Status check_keys(const codec::StreamDefinition& stream, std::span<const std::string> keys) {
  const auto format = std::ranges::find(all(), std::string_view(stream.format), &Format::name);
  return format == all().end() || format->check_keys == nullptr ? Status() : format->check_keys(stream, keys);
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
