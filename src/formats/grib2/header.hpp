// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/codec/definition.hpp"
#include "formats/grib2/handle.hpp"
#include "formats/grib2/sections.hpp"
#include "formats/grib2/time.hpp"

namespace tailrace::grib2 {

/// One octet of the head that differs from the head of the first level.
struct Patch {
  std::size_t offset = 0;
  std::byte value{};
};

/// A field with a prepared header. Each record changes only octets at known places.
struct Field {
  codec::FieldDefinition definition;
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

/// Everything that was asked for of a field: the definitions with aliases resolved and ensembles understood.
struct Request {
  const codec::StreamDefinition* stream = nullptr;
  const codec::FieldDefinition* field = nullptr;
  codec::Keys stream_keys;  // without those that became typed members
  codec::Keys field_keys;
  std::string level_type;  // ecCodes' typeOfLevel
  std::optional<long> member;
  std::optional<long> members;
  std::optional<long> own_template;  // productDefinitionTemplateNumber, if a key chose it
  bool named_by_keys = false;        // the parameter is given by its numbers; the name is then only the
                                     // field's
};

/// Fields of one stream whose values here are equal share the first half of their headers.
struct FirstHalf {
  codec::Keys georeference_keys;
  std::uint64_t sample = 0;  // checksum of the georeference's sample, which may be large
  codec::Keys grid;
  std::vector<Index> shape;
  codec::Process process = codec::Process::instant;
  std::string level_type;
  std::optional<long> member;
  std::optional<long> members;
  std::optional<long> own_template;
  friend bool operator==(const FirstHalf&, const FirstHalf&) = default;
};

/// A header half-way: grid, base time and template are set; name, levels and keys of one field are not.
struct Base {
  FirstHalf half;  // a field with an equal one can use the base again
  ByteVector message;
  std::vector<double> sample_pv;
  codec::Keys front;  // the keys of sections 1 to 3 that were asked for and read back from `head`
  codec::Keys rest;   // all other keys that were asked for
  ByteVector head;    // of the first field prepared on this base
  TimeOffsets time;
  std::optional<Handle> named_by_numbers;  // half-way, with the numbers and a level of the last field named
                                           // by numbers
  std::optional<Handle> verified;          // the message in which the last field was read back
};

/// Prepares the headers of a stream's fields. The parts that fields have in common are made once.
class Headers {
 public:
  explicit Headers(codec::StreamDefinition stream) : stream_(std::move(stream)) {}
  /// Encodes one header as the definitions ask, reads every key back and finds which octets change with level
  /// and lead.
  Result<Field> prepare(const codec::FieldDefinition& field);

 private:
  Result<Field> prepare_on_base(const Request& request);

  codec::StreamDefinition stream_;
  std::vector<Base> bases_;  // the newest last
};

/// A field on a HEALPix grid: its section 3, which we make, and the stream and field with which ecCodes makes
/// the rest of the message, since many of its versions do not know the grid.
struct HealpixField {
  ByteVector section;  // empty: the field is on another grid
  codec::StreamDefinition stream;
  codec::FieldDefinition field;
  bool has_tables = false;  // a key gives the version of the tables
};
/// Code::format if the keys of the grid contradict themselves or the field's shape.
Result<HealpixField> healpix_field(const codec::StreamDefinition& stream,
                                   const codec::FieldDefinition& field);
/// Puts the grid into a field that was prepared in its place.
void put_healpix(const HealpixField& from, Field& field);

/// Packs and unpacks a prepared field for ranks that define the same field. Unpacking gives Code::corrupt if
/// the bytes do not belong to `definition`.
void pack(const Field& field, Packer& out);
Result<Field> unpack_field(const codec::StreamDefinition& stream, const codec::FieldDefinition& definition,
                           Unpacker& in);
/// Returns the members of a field that follow from the definitions alone.
Field field_of(const codec::StreamDefinition& stream, const codec::FieldDefinition& definition);

/// Resolves the definitions. Returns Code::argument or Code::format for keys that would be overridden.
Result<Request> resolve(const codec::StreamDefinition& stream, const codec::FieldDefinition& field);

/// Sets the grid of `field` and adds every key that was asked for to `wanted`.
Status set_grid(Handle& handle, const codec::FieldDefinition& field, const codec::Keys& keys,
                bool from_sample, codec::Keys& wanted);
/// Returns the keys that give the grid: the georeference's, or the field's own if it has no georeference.
codec::Keys grid_keys(const Request& request);

/// A level as GRIB2 holds it: scaled * 10^-scale, in the unit of code table 4.5. The first of the 32 bits of
/// `scaled` is the sign (WMO Manual on Codes, FM 92 GRIB, regulation 92.1.5); ecCodes takes it for a number.
inline constexpr long sign_of_surface = long{1} << 31;
struct Surface {
  long scale = 0;
  long scaled = 0;
  bool missing = false;
};
/// Returns `value` as the "First" or "Second" surface of the handle's template.
Result<Surface> surface_on(const Handle& handle, const Request& request, const std::string& which,
                           double value);
/// Returns ecCodes' error number, or 0 for success.
int set_surface(Handle& handle, const std::string& which, const Surface& surface);

/// The level with this number: its first surface, and the second one of a layer.
struct LevelSurfaces {
  double first = 0;
  std::optional<double> second;
};
/// Returns the surfaces of a level. ecCodes numbers some layers by their bottoms, from 1 on: soilLayer 2 lies
/// between 1 and 2.
LevelSurfaces surfaces_of(const Request& request, std::size_t level);

/// Returns true if two typeOfLevel are the same one in a file.
bool same_level_type(const std::string& wanted, const std::string& got);

/// Returns true if the message holds what was wanted, whichever way ecCodes prints it.
bool matches(const Handle& handle, const Wanted& wanted);
/// Encodes headers for all levels and several leads and reads all back. `time_is_known` says that the octets
/// of time were found, and all leads read back, on a header with equal sections 1 to 3 and the same template;
/// one lead is then enough. `handle` comes with a message of a similar field, if there is one, and leaves
/// with the last message read.
Status verify(const Field& field, const Request& request, const codec::Keys& wanted, bool time_is_known,
              std::optional<Handle>& handle);
/// Makes the error for a key that reads back differently.
Status differs(const Handle& handle, const Wanted& wanted, std::string_view hint);

}  // namespace tailrace::grib2
