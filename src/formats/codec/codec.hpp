// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/codec/definition.hpp"

namespace tailrace::codec {

/// The record's place in its stream, and the time for which it is valid. StreamDefinition::time says what
/// leads count.
struct RecordKey {
  int field = 0;    // number of the field, in the order of definitions
  Index level = 0;  // index into Levels::values
  std::int64_t lead = 0;
  std::int64_t interval_start = 0;  // statistics only: lead at which the interval began
};

/// The bits of its values that a record of a field with accuracy=auto keeps.
struct KeptBits {
  int bits = 0;            // the most significant ones of the mantissa, or of the codes of a packing
  double information = 1;  // the share of the information that they carry
  bool is_whole = false;   // all bits stay, since nothing tells which of them matter
  double left_out = 0;     // the share of all information that was taken for a trace of earlier rounding

  static KeptBits all(int bits) { return {bits, 1, true}; }
};

/// Turns assembled records into bytes. Each thread has an encoder of its own.
class Encoder {
 public:
  virtual ~Encoder() = default;
  /// Appends the encoded record to `out`. `values` holds the whole record in C order of the field's shape, in
  /// the type that Codec::assembled_type() returns; the encoder may overwrite it, unless Codec::only_reads()
  /// is true. Returns Code::data for a value that the format cannot hold (GRIB2: NaN and Inf, unless they
  /// mean "no value"). That error names the field, the level and the index in the record, and the caller adds
  /// the rank. The bytes depend on the arguments alone, never on earlier records. Returns Code::argument, and
  /// appends nothing, if the field was not defined or `count` is not the number of its elements. The caller
  /// reserves encoded_bound() in `out`.
  virtual Status encode(const RecordKey& key, std::byte* values, Index count, ByteVector& out) = 0;
  /// Returns the index in the record of the first value that made encode() fail with Code::data. Returns -1
  /// if the last encode() succeeded, or failed for another reason.
  [[nodiscard]] virtual Index offending() const { return -1; }
  /// Returns the lengths of the parts (chunks) of the record that the last encode() appended. Empty unless
  /// Codec::rest_of_step() needs them.
  [[nodiscard]] virtual std::vector<Bytes> parts() const { return {}; }
  /// Returns the bits that the record of the last encode() has kept, if its field has accuracy=auto.
  [[nodiscard]] virtual std::optional<KeptBits> kept_bits() const { return std::nullopt; }
};

/// The form of encoded records that consist of their values and nothing else: numbers of `scalar` bytes.
struct PlainValues {
  Bytes scalar = 0;
  std::endian order = std::endian::little;
  bool in_small_writes = true;  // a record may go out in many writes; false if each write opens an object
};

/// Bytes to be written at an offset, `times` times in a row.
struct Patch {
  Bytes offset = 0;
  ByteVector bytes;
  std::int64_t times = 1;
};

/// The places of records in a format whose steps all have the same size. Each record of a step has its own
/// place, and keeps it when other records of the step are not put.
struct FixedPlaces {
  Bytes step = 0;                          // size of a step
  std::vector<std::vector<Bytes>> places;  // by field and level: offset within the step
  /// True if encoded records differ in size. `places` then tells only where a field begins. The levels of the
  /// field follow one another from there, in the order in which they were put.
  bool are_packed = false;
};

/// How readers get the values of a record from its bytes, in the terms of numcodecs, Python's library of
/// filters for NumPy arrays.
struct Decoding {
  bool big_endian = false;
  std::string filter;  // the name of a filter of numcodecs whose result is float64; "" = the bytes are values
};

/// One committed step of a file, as the file's index describes it.
struct FinishedStep {
  struct Record {
    int field = 0;
    Index level = 0;
    Bytes offset = 0;
    Bytes length = 0;
    std::vector<Bytes> parts{};  // Encoder::parts(), for rest_of_step() alone: indexes do not store them
  };
  std::int64_t lead = 0;
  std::vector<Record> records;
};

/// The bytes that make a finished file readable, in formats that need an ending.
struct Ending {
  Patch head;       // replaces a part of the file's head
  ByteVector tail;  // behind the last step
};

/// Fills the span with the bytes of a file from the offset on. Returns their number, which is smaller than
/// the span only where the file ends.
using ReadBytes = std::function<Result<Bytes>(std::span<std::byte>, Bytes offset)>;

/// The result of a finder at one offset of a file: a whole record, the beginning of a record, or no record.
struct FoundRecord {
  enum class State { whole, torn /* begun as a record and not finished */, none };
  State state = State::none;
  RecordKey key;
  bool has_key = false;  // false: there is no record, or too little of it to tell its key
  Bytes length = 0;      // as the record states it, or up to the end of the file
};

/// Finds the records of a codec's own definitions by their bytes. Local. Each user has a finder of its own.
class Finder {
 public:
  virtual ~Finder() = default;
  /// Returns what begins at `offset` of a file of `size` bytes. A record counts as the codec's own only if
  /// all of its bytes that depend on the definitions are those that the codec would write. Fails only if
  /// `read` fails, with the same error.
  virtual Result<FoundRecord> find(const ReadBytes& read, Bytes offset, Bytes size) const = 0;
};

/// A format, and the definitions of one stream in it. Every rank that encodes calls `define` (or `adopt`) for
/// the same fields in the same order. Afterwards the codec does not change, and threads share it.
class Codec {
 public:
  virtual ~Codec() = default;
  /// Checks the field and prepares what its records need (GRIB2: encodes one header and reads every requested
  /// key back). The field's number is the count of earlier successful calls. Returns Code::argument if
  /// check_field() does, or if encoded_bound() would be beyond 2^63 bytes.
  virtual Status define(const FieldDefinition& field) = 0;
  /// Returns what `define` prepared for a field. Other ranks of the job hand these bytes to `adopt`.
  [[nodiscard]] virtual ByteVector prepared(int /*field*/) const { return {}; }
  /// Defines a field with what another rank prepared, without asking ecCodes or reading the georeference
  /// again. Returns Code::corrupt if `prepared` is damaged or belongs to another field.
  virtual Status adopt(const FieldDefinition& field, std::span<const std::byte> /*prepared*/) {
    return define(field);
  }
  /// Defines a field that `other` has as its field `number`, behind other fields than there.
  virtual Status define_again(const FieldDefinition& field, const Codec& other, int number) {
    return adopt(field, other.prepared(number));
  }
  /// Returns true if heads of files hold the coordinates of georeferences, and fields without time. Only
  /// ranks that write heads then need the values of these; other ranks adopt fields without them.
  [[nodiscard]] virtual bool has_coordinates() const { return false; }
  /// Adds an attribute of the file, of a field or of a dimension that is defined already. After an error the
  /// codec is as before. Only codecs with has_coordinates() have attributes.
  virtual Status add_attribute(const GivenAttribute& /*given*/) {
    return {Code::format, "files of this format hold no attributes"};
  }
  /// Returns the bytes of each file before its first step.
  [[nodiscard]] virtual ByteVector head() const { return {}; }
  /// Returns the ending that makes a file with these steps readable, or nothing if the format needs no
  /// ending. `read` reads the file. Its first step begins at `data_begin`, and its last step ends at
  /// `data_end`. Equal arguments give equal bytes.
  [[nodiscard]] virtual Result<std::optional<Ending>> ending(const ReadBytes& /*read*/,
                                                             std::span<const FinishedStep> /*steps*/,
                                                             Bytes /*data_begin*/, Bytes /*data_end*/) const {
    return std::optional<Ending>();
  }
  /// Returns the places of records within a step, or nothing if records follow one another in the order in
  /// which they were put. With fixed places each record may be put only once in a step.
  [[nodiscard]] virtual std::optional<FixedPlaces> fixed_places() const { return std::nullopt; }
  /// Returns what a step holds beside the records in `put`, in a format with fixed places: the step's time,
  /// and fill values (or an index) in place of the records that were not put. All offsets, also those in
  /// `put`, count from the beginning of the step.
  [[nodiscard]] virtual std::vector<Patch> rest_of_step(std::int64_t /*lead*/, std::int64_t /*previous_lead*/,
                                                        std::span<const FinishedStep::Record> /*put*/) const {
    return {};
  }
  /// Returns how other programs decode a record, or nothing if they cannot.
  [[nodiscard]] virtual std::optional<Decoding> decoding() const { return std::nullopt; }
  /// Returns an example of a record: the first level of a field at lead 0, with all values equal. Empty in
  /// formats that have no listings.
  [[nodiscard]] virtual ByteVector example(int /*field*/) const { return {}; }
  /// Returns an error if no record of the format can have this lead, which TimeAxis::check() has accepted: it
  /// contradicts the field's statistic, or is beyond what the format holds. In most formats neither can be.
  virtual Status check_lead(const RecordKey& /*key*/) const { return {}; }
  [[nodiscard]] virtual std::unique_ptr<Encoder> encoder() const = 0;
  /// Returns the form of the field's records if they consist of their values alone, otherwise nothing. A
  /// server can then write the values without an encoder. The record has exactly the size encoded_bound().
  [[nodiscard]] virtual std::optional<PlainValues> plain(int /*field*/) const { return std::nullopt; }
  /// Returns a finder for records of the fields defined so far. Returns null if records of this format cannot
  /// be told from other bytes.
  [[nodiscard]] virtual std::unique_ptr<Finder> finder() const { return nullptr; }
  /// Returns true if encode() leaves the values of the field's records as they are. They may then lie where
  /// nobody may write: in the array that a rank has lent.
  [[nodiscard]] virtual bool only_reads(int /*field*/) const { return false; }
  /// Returns the type into which a record of `field` is assembled: the field's own, or float64 if the codec
  /// needs it.
  [[nodiscard]] virtual ElementType assembled_type(int field) const = 0;
  /// Returns the predicted cost of encoding one record, in arbitrary but consistent units (about
  /// nanoseconds).
  [[nodiscard]] virtual double cost(int field) const = 0;
  /// Returns an upper bound of the size of one encoded record.
  [[nodiscard]] virtual Bytes encoded_bound(int field) const = 0;
  /// Returns an upper bound of the memory that encode() needs beside its input and output.
  [[nodiscard]] virtual Bytes working_bytes(int field) const = 0;
};

/// Returns Code::argument unless the field has what every format needs: a name, a known element type, a
/// shape, a level, and at most one of accuracy, information, relative accuracy and bits.
Status check_field(const FieldDefinition& field);

}  // namespace tailrace::codec
