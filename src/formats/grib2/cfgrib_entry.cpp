// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// An entry of cfgrib's index. The index is a pickle of Python: a program for a small stack machine, whose
// opcodes are listed in Python's pickletools.py. This file writes only the opcodes of protocol 0, which are
// text. It calls the function copyreg.__newobj__ in place of the opcode NEWOBJ, which is newer.
#include <array>
#include <charconv>

#include "formats/grib2/edition1/time.hpp"
#include "formats/grib2/handle.hpp"
#include "formats/grib2/listings.hpp"
#include "formats/grib2/sample.hpp"
#include "ground/base/calendar.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

std::string text_value(std::string_view value) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "V";
  for (const char c : value) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x20 && c != '\\') {
      text += c;
    } else {
      text += cat("\\u00", digits[code / 16], digits[code % 16]);
    }
  }
  return text + "\n";
}

/// Returns the value that cfgrib gives to a key that a message does not have.
std::string undefined() { return text_value("undef"); }

std::string integer_value(std::optional<std::int64_t> value) {
  return value ? cat("I", *value, "\n") : undefined();
}

std::string number_value(std::optional<double> value) {
  if (!value) return undefined();
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), *value).ptr;
  return cat("F", std::string_view(digits.data(), end), "\n");
}

/// Returns the seconds of a unit of code table 4.4, or nothing for units of no fixed length (months, years).
std::optional<std::int64_t> seconds_of(std::optional<long> unit) {
  constexpr std::int64_t hour = 3600;
  switch (unit.value_or(-1)) {
    case 0:
      return 60;
    case 1:
      return hour;
    case 2:
      return 24 * hour;
    case 10:
      return 3 * hour;
    case 11:
      return 6 * hour;
    case 12:
      return 12 * hour;
    case 13:
      return 1;
    default:
      return std::nullopt;
  }
}

/// Returns the hours from the base time to the time of a message, or to the end of its interval. They are
/// computed here because versions of ecCodes disagree about minutes.
std::optional<double> hours_of(const Handle& message) {
  if (message.integer("edition") == 1) {
    const std::int64_t end = edition1::read_time(message.message()).end;
    return end < 0 ? std::nullopt : std::optional(static_cast<double>(end) / 3600.0);
  }
  const auto seconds = [&](const std::string& count, const std::string& unit) -> std::optional<std::int64_t> {
    const std::optional<long> number = message.integer(count);
    const std::optional<std::int64_t> factor = seconds_of(message.integer(unit));
    if (!number || !factor) return std::nullopt;
    return *number * *factor;
  };
  const auto start = seconds("forecastTime", "indicatorOfUnitOfTimeRange");
  const auto length = message.has("lengthOfTimeRange")
                          ? seconds("lengthOfTimeRange", "indicatorOfUnitForTimeRange")
                          : std::optional<std::int64_t>(0);
  if (!start || !length) return std::nullopt;
  return static_cast<double>(*start + *length) / 3600.0;
}

/// Returns the seconds from 1970 to the base time. Like cfgrib, drops the seconds of the base time.
std::optional<std::int64_t> base_time_of(const Handle& message) {
  const std::optional<long> date = message.integer("dataDate");
  const std::optional<long> time = message.integer("dataTime");
  if (!date || !time) return std::nullopt;
  const DateTime base{*date / 10000,
                      static_cast<int>(*date / 100 % 100),
                      static_cast<int>(*date % 100),
                      static_cast<int>(*time / 100),
                      static_cast<int>(*time % 100),
                      0};
  if (!is_valid(base, Calendar::proleptic_gregorian)) return std::nullopt;
  return to_seconds(base, Calendar::proleptic_gregorian);
}

/// Returns the value of one of cfgrib's keys, with the type in which cfgrib has it.
std::string value_of(const Handle& message, std::string_view key) {
  if (key == "stepUnits") return integer_value(1);  // steps are in hours
  if (key == "step" || key == "endStep") return number_value(hours_of(message));
  if (key == "time") return integer_value(base_time_of(message));
  if (key == "level:float") return number_value(message.number("level"));
  for (const std::string_view text :
       {"centre", "centreDescription", "dataType", "gridType", "md5GridSection", "stepType", "typeOfLevel"}) {
    if (key != text) continue;
    const std::optional<std::string> value = message.text(std::string(key));
    return value ? text_value(*value) : undefined();
  }
  const std::optional<long> value = message.integer(std::string(key));
  return integer_value(value ? std::optional<std::int64_t>(*value) : std::nullopt);
}

/// The keys of an entry, in the order of cfgrib's index_keys. cfgrib makes the hash in the file's name from
/// them.
constexpr std::array<std::string_view, 22> keys{
    "centre",          "centreDescription", "dataDate",    "dataTime",
    "dataType",        "directionNumber",   "edition",     "endStep",
    "frequencyNumber", "gridType",          "level:float", "md5GridSection",
    "number",          "numberOfPoints",    "paramId",     "step",
    "stepType",        "stepUnits",         "subCentre",   "time",
    "typeOfLevel",     "uvRelativeToGrid"};

std::string make_head() {
  // Makes a cfgrib.messages.FileIndex. Its attributes follow as a dictionary.
  std::string head = "ccopyreg\n__newobj__\n(ccfgrib.messages\nFileIndex\ntR(";
  // cfgrib uses an index only if its attribute `fieldset` equals the file that it is opening. So the pickle
  // takes the value from the reader: a function of cfgrib loads the pickle, and its caller has the variable
  // `filestream`. The index then serves every spelling of the path, and a file that was moved with its index.
  // If the caller has no such variable, the value is None, and cfgrib ignores the index.
  head +=
      "Vfieldset\ncbuiltins\ngetattr\n(cbuiltins\ngetattr\n(cbuiltins\ngetattr\n(csys\n_getframe\n(tR"
      "Vf_back\nNtRVf_locals\n(dtRVget\ntR(Vfilestream\ntR";
  head += "Vindex_keys\n(l";
  for (const std::string_view key : keys) head += cat("V", key, "\na");
  head +=
      "Vfilter_by_keys\n(dVcomputed_keys\nccfgrib.cfmessage\nCOMPUTED_KEYS\nVindex_protocol_version\nV2\n"
      "Vfield_ids_index\n(";
  return head;
}

}  // namespace

std::string_view cfgrib_head() {
  static const auto& head = *new const std::string(make_head());
  return head;
}

Result<std::string> cfgrib_entry(const codec::ReadBytes& read, std::int64_t /*number*/, Bytes offset) {
  const Result<ValuelessMessage> message = read_without_values(read, offset);
  TR_TRY(message.status());
  const std::unique_lock definitions = lock_definitions();
  const ByteVector& without_values = message->message;
  if (without_healpix(without_values))
    return Status(Code::format,
                  cat("cfgrib's index of a HEALPix grid needs ecCodes 2.32 or later, and this is ",
                      library_text(), "; leave cfgrib out of index="));
  const Result<Handle> handle = Handle::from_message(without_values);
  TR_TRY(handle.status());
  // Two fields that this ecCodes has no name for would have equal keys here, although the reader's ecCodes
  // may tell them apart: cfgrib would find only one of the two.
  if (handle->integer("paramId").value_or(0) == 0 ||
      handle->text("typeOfLevel").value_or("unknown") == "unknown")
    return Status(
        Code::format,
        cat("cfgrib's index needs a parameter and a type of level that ecCodes has a name for, and it "
            "has paramId ",
            handle->text("paramId").value_or("none"), " and typeOfLevel ",
            handle->text("typeOfLevel").value_or("none"), " (", library_text(),
            "); give keys that it knows, or leave cfgrib out of index="));
  // An entry is a pair: the tuple of the keys' values, and a list with the offset.
  std::string entry = "((";
  for (const std::string_view key : keys) entry += value_of(*handle, key);
  return cat(entry, "t(I", offset, cfgrib_entry_end);
}

std::optional<Bytes> cfgrib_offset(std::string_view entry, std::int64_t /*number*/) {
  constexpr std::string_view before = "\nt(I";
  const std::size_t at = entry.rfind(before);
  if (!entry.starts_with("((") || at == std::string_view::npos) return std::nullopt;
  entry.remove_prefix(at + before.size());
  Bytes offset = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), offset);
  if (error != std::errc() || end != entry.data() + entry.size()) return std::nullopt;
  return offset;
}

}  // namespace tailrace::grib2
