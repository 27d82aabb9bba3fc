// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codec/definition.hpp"
#include "codec/grib2_handle.hpp"
#include "codec/grib2_sections.hpp"
#include "codec/grib2_time.hpp"

namespace tailrace::codec::grib2 {

/// One octet of the head that differs from the first level's.
struct Patch {
  std::size_t offset = 0;
  std::byte value{};
};

/// A field whose header is prepared: per record only octets at known places change.
struct Field {
  FieldDefinition definition;
  DateTime base;
  Index points = 0;
  bool ccsds = false;
  bool statistic = false;                  // records have an interval
  Parts parts;                             // for the first level, at lead 0
  std::vector<std::vector<Patch>> levels;  // for each level
  TimeOffsets time;
};

/// A key that was asked for, and the text of its value.
using Wanted = std::pair<std::string, std::string>;

/// What was asked for of a field, whoever asked: the definitions with aliases resolved and ensembles
/// understood.
struct Request {
  const StreamDefinition* stream = nullptr;
  const FieldDefinition* field = nullptr;
  Keys stream_keys;  // without those that became typed
  Keys field_keys;
  std::string level_type;  // ecCodes' typeOfLevel
  std::optional<long> member;
  std::optional<long> members;
  std::optional<long> own_template;  // productDefinitionTemplateNumber, if a key chose it
  bool named_by_keys = false;        // the parameter is given by its numbers: the name is only the field's
};

/// Encodes one header as the definitions ask, reads every key back and finds what changes with level and
/// lead.
Result<Field> prepare(const StreamDefinition& stream, const FieldDefinition& field);

/// Resolves the definitions; Code::argument or Code::format for keys that would be overridden.
Result<Request> resolve(const StreamDefinition& stream, const FieldDefinition& field);

/// Sets the grid of `field`; every key that was asked for is added to `wanted`.
Status set_grid(Handle& handle, const FieldDefinition& field, const Keys& keys, bool from_sample,
                Keys& wanted);
/// The keys that give the grid: the georeference's, or the field's own where it has none.
Keys grid_keys(const Request& request);

/// A level as GRIB2 holds it: scaled * 10^-scale, in the unit of code table 4.5.
struct Surface {
  long scale = 0;
  long scaled = 0;
  bool missing = false;
};
Result<Surface> surface_of(const std::string& level_type, long type_of_surface, double value);

/// Whether two typeOfLevel are one in a file.
bool same_level_type(const std::string& wanted, const std::string& got);

/// Whether the message holds what was wanted, whichever way ecCodes prints it.
bool matches(const Handle& handle, const Wanted& wanted);
/// Encodes headers for all levels and several leads and reads all back.
Status verify(const Field& field, const Request& request, const Keys& wanted);
/// The error of a key that reads back differently.
Status differs(const Handle& handle, const Wanted& wanted, std::string_view hint);

}  // namespace tailrace::codec::grib2
