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

/// A header half-way: grid, base time and template are there; name, levels and keys of one field are not.
struct Base {
  // What it was made of.
  Keys georeference_keys;
  std::uint64_t sample = 0;  // checksum of the georeference's, which may be large
  Keys grid;
  std::vector<Index> shape;
  Process process = Process::instant;
  std::string level_type;
  std::optional<long> member;
  std::optional<long> members;
  std::optional<long> own_template;

  ByteVector message;
  std::vector<double> sample_pv;
  Keys front;       // what was asked for of sections 1 to 3, and was read back from those of `head`
  Keys rest;        // what else was
  ByteVector head;  // of the first field that was prepared on it
  TimeOffsets time;
  std::optional<Handle> named_by_numbers;  // half-way, with the numbers and a level of the last such field
  std::optional<Handle> verified;          // the message in which the last field was read back

  [[nodiscard]] bool serves(const Request& request) const;
};

/// Prepares the headers of a stream's fields. What fields have in common is made once.
class Headers {
 public:
  explicit Headers(StreamDefinition stream) : stream_(std::move(stream)) {}
  /// Encodes one header as the definitions ask, reads every key back and finds what changes with level and
  /// lead.
  Result<Field> prepare(const FieldDefinition& field);

 private:
  Result<Field> prepare_on_base(const Request& request);

  StreamDefinition stream_;
  std::vector<Base> bases_;  // the newest last
};

/// A prepared field for ranks that define the same one, and that field again: Code::corrupt if the bytes are
/// none of `definition`.
void pack(const Field& field, Packer& out);
Result<Field> unpack_field(const StreamDefinition& stream, const FieldDefinition& definition, Unpacker& in);
/// What the definitions say themselves.
Field field_of(const StreamDefinition& stream, const FieldDefinition& definition);

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

/// ecCodes' error number; 0 for success.
int set_surface(Handle& handle, const std::string& which, const Surface& surface);

/// Whether two typeOfLevel are one in a file.
bool same_level_type(const std::string& wanted, const std::string& got);

/// Whether the message holds what was wanted, whichever way ecCodes prints it.
bool matches(const Handle& handle, const Wanted& wanted);
/// Encodes headers for all levels and several leads and reads all back. `time_is_known`: the octets of time
/// were found on a header with equal sections 1 to 3 and the same template, and all leads read back there;
/// one is enough. `handle`: a message of a similar field, if there is one; the last one read afterwards.
Status verify(const Field& field, const Request& request, const Keys& wanted, bool time_is_known,
              std::optional<Handle>& handle);
/// The error of a key that reads back differently.
Status differs(const Handle& handle, const Wanted& wanted, std::string_view hint);

}  // namespace tailrace::codec::grib2
