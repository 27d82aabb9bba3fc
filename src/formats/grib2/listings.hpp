// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "formats/codec/listing.hpp"
#include "formats/grib2/sections.hpp"

// The lines of files by which other tools find messages (docs/formats/other-indexes.md).
namespace tailrace::grib2 {

/// The parts of a message that a line of a listing needs: all but the values.
struct ListedMessage {
  Parts parts;
  Bytes length = 0;
};

/// Reads the message at an offset, without its values. Returns Code::corrupt if no message is there.
Result<ListedMessage> read_message(const codec::ReadBytes& read, Bytes offset);

/// A message with constant values in place of its own.
struct ValuelessMessage {
  ByteVector message;
  Bytes length = 0;  // of the message in the file
};
/// Reads the message of either edition at an offset, without its values. Returns Code::corrupt if no message
/// is there.
Result<ValuelessMessage> read_without_values(const codec::ReadBytes& read, Bytes offset);

/// Returns the line that `wgrib2 -s` prints for a message. Returns Code::format for product definition
/// templates, levels and time ranges for which this module does not know the line.
Result<std::string> wgrib2_line(const codec::ReadBytes& read, std::int64_t number, Bytes offset);
std::optional<Bytes> wgrib2_offset(std::string_view line, std::int64_t number);

/// The last two keys of a line of FILE.index tell the message's place; this is the first of the two. The
/// values of all keys before it come from the tables of ecCodes.
constexpr std::string_view ecmwf_place_key = "\"_offset\": ";

/// Returns the line of a message in an index like those of ECMWF's open data: a JSON object. It has only the
/// keys of MARS that the message has.
Result<std::string> ecmwf_line(const codec::ReadBytes& read, std::int64_t number, Bytes offset);
std::optional<Bytes> ecmwf_offset(std::string_view line, std::int64_t number);

/// Returns the bytes before the entries of cfgrib's index (version 0.9.15.1).
std::string_view cfgrib_head();
/// Returns the entry of a message in cfgrib's index. Code::format if ecCodes has no name for its parameter or
/// its type of level.
Result<std::string> cfgrib_entry(const codec::ReadBytes& read, std::int64_t number, Bytes offset);
std::optional<Bytes> cfgrib_offset(std::string_view entry, std::int64_t number);
constexpr std::string_view cfgrib_entry_end = "\nltp9\n";
/// The bytes behind the entries. They make a dictionary of the entries, the last entry first, so that of
/// messages with equal keys the first one stays, as in cfgrib. Then they give the FileIndex its attributes.
constexpr std::string_view cfgrib_tail =
    "lp0\n0cbuiltins\ndict\n(g0\ntRp1\n0cbuiltins\ngetattr\n(g1\nVupdate\ntR(cbuiltins\nreversed\n(g0\n"
    "tRtR0cbuiltins\nlist\n(cbuiltins\ngetattr\n(g1\nVitems\ntR(tRtRdb.";

/// Returns wgrib2's abbreviation for a parameter of WMO's tables, or "" if this module does not know it.
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

/// Returns the listings of GRIB1: wgrib2 reads none of its messages.
inline std::vector<codec::Listing> listings_of_edition_1() {
  std::vector<codec::Listing> kinds = listings();
  std::erase_if(kinds, [](const codec::Listing& each) { return each.word == "wgrib2"; });
  return kinds;
}

}  // namespace tailrace::grib2
