// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/codec/codec.hpp"
#include "formats/grib2/handle.hpp"
#include "formats/grib2/sections.hpp"
#include "formats/grib2/time.hpp"

namespace tailrace::grib2 {

/// One octet of a level's head that differs from the head of the first level.
struct Patch {
  std::size_t offset = 0;
  std::byte value{};
};

/// A field with its prepared header. A record's header differs from it only in octets at known places.
struct Field {
  codec::FieldDefinition definition;
  DateTime base;
  TimeAxis axis;
  Index points = 0;
  bool ccsds = false;
  bool statistic = false;                  // records have an interval
  Parts parts;                             // those of the first level, at lead 0
  std::vector<std::vector<Patch>> levels;  // by level: what to change in the head
  TimeOffsets time;
};

/// A key that the definitions ask for, and the text of its value.
using Wanted = std::pair<std::string, std::string>;

/// Everything that the program asks for of a field: the definitions, with aliases resolved, and the keys of
/// ensembles and templates as typed members.
struct Request {
  const codec::StreamDefinition* stream = nullptr;
  const codec::FieldDefinition* field = nullptr;
  codec::Keys stream_keys;  // without the keys that became typed members
  codec::Keys field_keys;
  std::string level_type;  // ecCodes' typeOfLevel
  std::optional<long> member;
  std::optional<long> members;
  std::optional<long> own_template;  // productDefinitionTemplateNumber, if a key chose it
  bool named_by_keys = false;        // keys give the parameter; the field's name says nothing about it
};

/// What the first half of a header depends on. Fields of one stream for which all of it is equal share this
/// half.
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

/// The first half of a header: grid, base time and template are set; name, levels and keys of a field are
/// not. Later fields begin from it.
struct Base {
  FirstHalf half;  // a field with an equal FirstHalf may begin from this base
  ByteVector message;
  std::vector<double> sample_pv;
  codec::Keys front;  // the keys of sections 1 to 3 that the first field asked for, read back from `head`
  codec::Keys rest;   // all other keys that the first half asked for
  ByteVector head;    // of the first field
  TimeOffsets time;
  std::optional<Handle> named_by_numbers;  // of the last field that sets_numbers_alone()
  std::optional<Handle> verified;          // the message in which the last field was read back
};

/// Prepares the headers of a stream's fields. Fields share the halves of headers that they have in common.
class Headers {
 public:
  explicit Headers(codec::StreamDefinition stream) : stream_(std::move(stream)) {}
  /// Encodes one header as the definitions ask, finds the octets that change with level and lead, and reads
  /// every key back. Returns an error if a key reads back differently.
  Result<Field> prepare(const codec::FieldDefinition& field);

 private:
  Result<Field> prepare_on_base(const Request& request);

  codec::StreamDefinition stream_;
  std::vector<Base> bases_;  // the newest last
};

/// A field on a HEALPix grid. Many versions of ecCodes do not know this grid. So this module makes section 3
/// itself, and ecCodes makes the rest of the message from a stream and a field on an unstructured grid.
struct HealpixField {
  ByteVector section;              // section 3; empty: the field is on another grid
  codec::StreamDefinition stream;  // for ecCodes, without the keys of the grid
  codec::FieldDefinition field;    // likewise
  bool has_tables = false;         // a key gives the version of the tables
};
/// Returns the field's section 3 and what to give to ecCodes. Code::format if the keys of the grid contradict
/// themselves or the field's shape.
Result<HealpixField> healpix_field(const codec::StreamDefinition& stream,
                                   const codec::FieldDefinition& field);
/// Replaces the unstructured grid of a prepared field with its HEALPix grid.
void put_healpix(const HealpixField& from, Field& field);

/// Packs a prepared field for other ranks that define the same field.
void pack(const Field& field, Packer& out);
/// Unpacks a field that another rank has packed. Code::corrupt if the bytes do not belong to `definition`.
Result<Field> unpack_field(const codec::StreamDefinition& stream, const codec::FieldDefinition& definition,
                           Unpacker& in, bool (*is_sound)(const Field&));
/// Returns Code::format for a calendar that GRIB does not have, and Code::settings for a packing that is none
/// of `packings`. `edition` is its name in error texts.
Status check_stream(const codec::StreamDefinition& stream, std::string_view edition,
                    const std::vector<std::string_view>& packings);
/// Returns Code::argument if a record's interval contradicts since= of its field.
Status check_since(const Field& field, const codec::RecordKey& key);
/// Returns true if the octets that records of GRIB2 change lie in the field's header.
bool has_all_octets(const Field& field);
/// Returns a field with the members that follow from the definitions alone. The header is empty.
Field field_of(const codec::StreamDefinition& stream, const codec::FieldDefinition& definition);

/// Resolves the definitions of a field. Returns Code::argument for keys that an option or the step gives
/// already, and for levels that contradict their type, and Code::format for members that GRIB2 cannot hold.
Result<Request> resolve(const codec::StreamDefinition& stream, const codec::FieldDefinition& field);
/// Returns Code::format if no message describes the grid of the field's section.
Status check_section(const codec::StreamDefinition& stream, const codec::FieldDefinition& field);

/// Sets the grid of `field` from `keys` (and from the sample that the handle was opened with, if
/// `from_sample`). Adds the keys to `wanted`, for reading them back. `edition` is that of the handle.
Status set_grid(Handle& handle, const codec::FieldDefinition& field, const codec::Keys& keys,
                bool from_sample, codec::Keys& wanted, int edition = 2);
/// Returns the parts of a degree in which an edition holds angles.
constexpr double parts_of_degree(int edition) { return edition == 1 ? 1e3 : 1e6; }
/// Returns the keys that give the grid: those of the georeference, or else the field's own, or else the
/// stream's.
codec::Keys grid_keys(const Request& request);

/// A surface of a level as GRIB2 holds it: scaled * 10^-scale, in the unit of code table 4.5. The first of
/// the 32 bits of `scaled` is the sign (WMO Manual on Codes, FM 92 GRIB, regulation 92.1.5). ecCodes takes
/// all 32 bits for a number without a sign.
inline constexpr long sign_of_surface = long{1} << 31;
struct Surface {
  long scale = 0;
  long scaled = 0;
  bool missing = false;
};
/// Returns `value` as surface `which` ("First" or "Second") of the message in `handle`. Code::format if GRIB2
/// cannot hold it.
Result<Surface> surface_on(const Handle& handle, const Request& request, const std::string& which,
                           double value);
/// Returns ecCodes' error number, or 0 for success.
int set_surface(Handle& handle, const std::string& which, const Surface& surface);

/// The values of a level's surfaces. Only a layer has a second one.
struct LevelSurfaces {
  double first = 0;
  std::optional<double> second;
};
/// Returns the surfaces of the field's level with this index. ecCodes numbers some layers by their bottoms,
/// from 1 on: soilLayer 2 lies between 1 and 2.
LevelSurfaces surfaces_of(const Request& request, std::size_t level);

/// Returns true if a file does not tell the two typeOfLevel apart, or they are equal.
bool same_level_type(const std::string& wanted, const std::string& got);

/// Returns true if the key has the wanted value in the message: as text, number, list, or "missing".
bool matches(const Handle& handle, const Wanted& wanted);
/// Makes messages for all levels and several leads, and reads all keys back from them. With `time_is_known`
/// one lead is enough: several were read back on a header with equal sections 1 to 3 and the same template.
/// `handle` may hold the message of a similar field, which is then changed instead of opening a new one.
/// Afterwards it holds the message of the last level.
Status verify(const Field& field, const Request& request, const codec::Keys& wanted, bool time_is_known,
              std::optional<Handle>& handle);
/// Reads all keys back from the message. Returns the error for the first that is different.
Status read_back(const Handle& handle, const codec::Keys& wanted);
/// Sets the vertical coefficients, and reads them back: each may differ by `rounding` times its size.
Status set_coefficients(Handle& handle, const std::vector<double>& pv, double rounding,
                        std::string_view hint);
/// Makes the error for a key that ecCodes does not set: it returned `error`.
Status key_fails(int error, std::string_view key, std::string_view value, std::string_view hint);
/// Makes the error for a key that the message does not have.
Status no_such_key(const Handle& handle, std::string_view key, std::string_view value);
/// Returns true if a key of the field's sets the levels. The levels are then checked by reading back this
/// key.
bool levels_by_keys(const Request& request);
/// Makes the error for a key that reads back differently.
Status differs(const Handle& handle, const Wanted& wanted, std::string_view hint);

}  // namespace tailrace::grib2
