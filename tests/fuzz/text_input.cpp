// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "faces/streams/files/manifest.hpp"
#include "formats/cf/times.hpp"
#include "formats/listings/listings.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "inputs.hpp"
#ifdef TAILRACE_HAVE_GRIB
#include "formats/grib2/handle.hpp"
#endif

namespace tailrace::fuzz {

namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string take_line(std::string& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string line = text.substr(0, end);
  text.erase(0, end + 1);
  return line;
}

void put_file(storage::Target& target, const std::string& path, std::span<const std::byte> bytes) {
  const auto file = target.open(path, storage::OpenMode::create);
  must(file.is_ok() && (*file)->write(bytes, 0).is_ok(), "memory takes bytes");
}

/// Returns the GRIB message of which the listings tell, always the same one, or nothing in a build without
/// ecCodes.
const ByteVector& message() {
#ifdef TAILRACE_HAVE_GRIB
  static const ByteVector bytes = [] {
    const auto handle = grib2::Handle::from_sample("GRIB2");
    const auto of_sample = handle->message();
    return ByteVector(of_sample.begin(), of_sample.end());
  }();
#else
  static const ByteVector bytes;
#endif
  return bytes;
}

bool read_listing(const codec::Listing& kind, std::span<const std::byte> bytes) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  put_file(*target, "a", message());
  put_file(*target, cat("a", kind.suffix), bytes);
  const std::vector<storage::Range> records{{0, std::ssize(message())}};
  const Result<bool> is_ours = listings::is_ours(*target, "a", kind);
  must(is_ours.is_ok(), "a listing is ours or not");
  const Status completed = listings::complete_all(*target, "a", records);
  const Result<bool> still = listings::is_ours(*target, "a", kind);
  must(!completed.is_ok() || (still.is_ok() && *still == *is_ours), "listings stay whose they are");
  (void)listings::cut_all(*target, "a", {});
  return *is_ours;
}

bool read_manifest(std::span<const std::byte> bytes) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  put_file(*target, "manifest.jsonl", bytes);
  const auto entries = streams::read_manifest(*target, "manifest.jsonl");
  if (!entries.is_ok() || entries->empty()) return false;
  const Result<bool> added = streams::ensure_in_manifest(*target, "manifest.jsonl", entries->back());
  must(!added.is_ok() || !*added, "a line that is there is not added");
  return true;
}

}  // namespace

bool read_times_input(std::span<const std::byte> bytes) {
  std::string text = text_of(bytes);
  const std::string units = take_line(text), calendar = take_line(text);
  const Result<cf::TimeUnits> read = cf::parse_time_units(units, calendar);
  if (!read.is_ok()) return false;
  must(cf::are_time_units(units), "units that are read are those of a time axis");
  bool all_are_times = !text.empty();
  while (!text.empty()) {
    const Result<std::int64_t> seconds = cf::seconds_at(*read, std::strtod(take_line(text).c_str(), nullptr));
    all_are_times = all_are_times && seconds.is_ok();
    if (!seconds.is_ok()) continue;
    const DateTime time = from_seconds(*seconds, read->calendar);
    must(is_valid(time, read->calendar) && to_seconds(time, read->calendar) == *seconds,
         "a time that was read exists in its calendar");
  }
  return all_are_times;
}

bool read_listing_input(std::span<const std::byte> bytes) {
  bool is_ours = false;
  for (const Piece& piece : pieces_of(bytes)) {
    if (piece.name == "manifest") is_ours = read_manifest(piece.bytes) || is_ours;
    for (const formats::Format& format : formats::all()) {
      for (const codec::Listing& kind : format.listings) {
        if (!message().empty() && cat(".", piece.name) == kind.suffix)
          is_ours = read_listing(kind, piece.bytes) || is_ours;
      }
    }
  }
  return is_ours;
}

}  // namespace tailrace::fuzz
