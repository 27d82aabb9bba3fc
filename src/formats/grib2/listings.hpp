// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "formats/codec/listing.hpp"
#include "formats/grib2/sections.hpp"

// The files by which other tools find messages (docs/formats/other-indexes.md).
namespace tailrace::grib2 {

/// A message without its values, which are all that a line of a listing needs.
struct ListedMessage {
  Parts parts;
  Bytes length = 0;
};

/// Reads the message at an offset, apart from its values. Returns Code::corrupt if none is there.
Result<ListedMessage> read_message(const codec::ReadBytes& read, Bytes offset);

/// Returns the line that `wgrib2 -s` prints of a message. Returns Code::format for product definition
/// templates and time ranges whose line is not known here.
Result<std::string> wgrib2_line(const codec::ReadBytes& read, std::int64_t number, Bytes offset);
std::optional<Bytes> wgrib2_offset(std::string_view line, std::int64_t number);

/// The last two keys of a line of FILE.index follow from the message's place. The values of all others come
/// from the tables of ecCodes.
constexpr std::string_view ecmwf_place_key = "\"_offset\": ";

/// Returns the line of a message in an index as ECMWF's open data have: a JSON object. Keys of MARS that the
/// message does not have are left out.
Result<std::string> ecmwf_line(const codec::ReadBytes& read, std::int64_t number, Bytes offset);
std::optional<Bytes> ecmwf_offset(std::string_view line, std::int64_t number);

/// cfgrib's index (version 0.9.15.1): what stands before the entries, an entry, and what ends it.
std::string_view cfgrib_head();
Result<std::string> cfgrib_entry(const codec::ReadBytes& read, std::int64_t number, Bytes offset);
std::optional<Bytes> cfgrib_offset(std::string_view entry, std::int64_t number);
constexpr std::string_view cfgrib_entry_end = "\nltp9\n";
/// Behind the entries. Of messages that have all values in common cfgrib takes the first: a dictionary of the
/// entries is updated with them in the reverse order. Then the FileIndex gets its attributes.
constexpr std::string_view cfgrib_tail =
    "lp0\n0cbuiltins\ndict\n(g0\ntRp1\n0cbuiltins\ngetattr\n(g1\nVupdate\ntR(cbuiltins\nreversed\n(g0\n"
    "tRtR0cbuiltins\nlist\n(cbuiltins\ngetattr\n(g1\nVitems\ntR(tRtRdb.";

/// Returns wgrib2's abbreviation of a parameter of WMO's tables, or "" if it is not in the table here.
std::string_view wgrib2_name(int discipline, int category, int number);

inline std::vector<codec::Listing> listings() {
  return {{"wgrib2", ".idx", wgrib2_line, wgrib2_offset},
          {"ecmwf", ".index", ecmwf_line, ecmwf_offset, ecmwf_place_key},
          {"cfgrib",
           ".5b7b6.idx",
           cfgrib_entry,
           cfgrib_offset,
           {},
           cfgrib_entry_end,
           codec::Enclosure{cfgrib_head(), cfgrib_tail, "cfgrib.messages"}}};
}

}  // namespace tailrace::grib2
