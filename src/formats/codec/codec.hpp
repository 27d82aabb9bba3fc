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

/// Says which record of a stream is meant, and when it is valid. Leads are seconds after the stream's base
/// time.
struct RecordKey {
  int field = 0;    // index of definition
  Index level = 0;  // index into Levels::values
  std::int64_t lead = 0;
  std::int64_t interval_start = 0;  // statistics only: lead at which the interval began
};

/// Turns assembled records into bytes. Each thread has an encoder of its own.
class Encoder {
 public:
  virtual ~Encoder() = default;
  /// Appends the encoded record to `out`. `values` holds the whole record in C order of the field's shape, as
  /// the codec's assembled_type; the encoder may overwrite it. NaN and Inf without a missing value give
  /// Code::data, naming field, level value and the global index in the record (the caller adds the rank). The
  /// bytes depend on the arguments alone, never on what was encoded before. An `out` that comes empty leaves
  /// with little unused room.
  virtual Status encode(const RecordKey& key, std::byte* values, Index count, ByteVector& out) = 0;
  /// Returns the global index in the record of the first offending value after encode() has failed with
  /// Code::data, otherwise -1.
  [[nodiscard]] virtual Index offending() const { return -1; }
  /// Returns the lengths of the parts of the record that encode() has appended, if the codec needs them for
  /// the rest of the step.
  [[nodiscard]] virtual std::vector<Bytes> parts() const { return {}; }
};

/// Says that an encoded record is its values, as numbers of `scalar` bytes in this byte order.
struct PlainValues {
  Bytes scalar = 0;
  std::endian order = std::endian::little;
  bool in_small_writes = true;  // a record may be written in many; not so where each opens an object
};

/// Bytes at an offset, written as often as `times` says, one behind the other.
struct Patch {
  Bytes offset = 0;
  ByteVector bytes;
  std::int64_t times = 1;
};

/// The places of records in a format in which all steps of a file have the same size, and each record of a
/// step its own place whether the others are put or not.
struct FixedPlaces {
  Bytes step = 0;                          // size of a step
  std::vector<std::vector<Bytes>> places;  // by field and level: offset within the step
  /// The levels of a field follow one another as they were put, from its place on: their sizes differ.
  bool are_packed = false;
};

/// How readers that know NumPy's filters get the values of a record from its bytes.
struct Decoding {
  bool big_endian = false;
  std::string filter;  // the name of a filter of numcodecs whose result is float64; "" = the bytes are values
};

/// One committed step of a file, as its index tells it.
struct FinishedStep {
  struct Record {
    int field = 0;
    Index level = 0;
    Bytes offset = 0;
    Bytes length = 0;
    std::vector<Bytes> parts{};  // Encoder::parts(), for rest_of_step() alone: no index has them
  };
  std::int64_t lead = 0;
  std::vector<Record> records;
};

/// The bytes that make a file readable once its last step is there, in formats that need such.
struct Ending {
  Patch head;       // replaces a part of the file's head
  ByteVector tail;  // behind the last step
};

/// Fills the span with the bytes of a file from the offset on. Returns how many there were.
using ReadBytes = std::function<Result<Bytes>(std::span<std::byte>, Bytes offset)>;

/// The record that a finder has found at one offset of a file, if there is one.
struct FoundRecord {
  enum class State { whole, torn /* begun as a record and not finished */, none };
  State state = State::none;
  RecordKey key;  // set unless there is no record, or too little of it to tell
  bool has_key = false;
  Bytes length = 0;  // the length that the record states, or up to the end of the file
};

/// Finds the records of a codec's own definitions by their bytes. Local. Each user has a finder of its own.
class Finder {
 public:
  virtual ~Finder() = default;
  /// Tells what begins at `offset` of a file of `size` bytes. A record counts as the codec's own only if all
  /// of its bytes that depend on the definitions are those that the codec would write. An error is that of
  /// `read`.
  virtual Result<FoundRecord> find(const ReadBytes& read, Bytes offset, Bytes size) const = 0;
};

/// A format and a stream's definitions in it. `define` is called in the same order with the same
/// arguments on every rank that encodes; afterwards the codec is immutable and shared by threads.
class Codec {
 public:
  virtual ~Codec() = default;
  /// Checks the field, encodes one header and reads every requested key back. The field's number is the count
  /// of earlier successful calls.
  virtual Status define(const FieldDefinition& field) = 0;
  /// Returns the header that `define` prepared for a field. Other ranks of the job hand it to `adopt`.
  [[nodiscard]] virtual ByteVector prepared(int /*field*/) const { return {}; }
  /// Defines a field with the header that another rank prepared. The codec reads neither ecCodes nor the
  /// georeference again. Code::corrupt if `prepared` is damaged or belongs to another field.
  virtual Status adopt(const FieldDefinition& field, std::span<const std::byte> /*prepared*/) {
    return define(field);
  }
  /// Returns true if heads of files tell the coordinates of georeferences. Ranks that write no heads adopt
  /// fields without the values of coordinates.
  [[nodiscard]] virtual bool has_coordinates() const { return false; }
  /// Returns what each file begins with, before its first step.
  [[nodiscard]] virtual ByteVector head() const { return {}; }
  /// Returns what makes a file with these steps readable. `read` reads the file, whose first step begins at
  /// `data_begin`, and whose last one ends at `data_end`. None for formats whose files need no ending. Equal
  /// arguments give equal bytes.
  [[nodiscard]] virtual Result<std::optional<Ending>> ending(const ReadBytes& /*read*/,
                                                             std::span<const FinishedStep> /*steps*/,
                                                             Bytes /*data_begin*/, Bytes /*data_end*/) const {
    return std::optional<Ending>();
  }
  /// Returns the places of records within a step, or nothing if they follow one another as they were put. A
  /// field may be put once in a step then.
  [[nodiscard]] virtual std::optional<FixedPlaces> fixed_places() const { return std::nullopt; }
  /// Returns what a step holds beside the records that were put, in a format with fixed places: its time, and
  /// fill values for other records. Offsets count from the step's begin, those of `put` too.
  [[nodiscard]] virtual std::vector<Patch> rest_of_step(std::int64_t /*lead*/, std::int64_t /*previous_lead*/,
                                                        std::span<const FinishedStep::Record> /*put*/) const {
    return {};
  }
  /// Returns how other programs decode a record, or nothing if they cannot.
  [[nodiscard]] virtual std::optional<Decoding> decoding() const { return std::nullopt; }
  /// Returns a record as readers get it: of the first level of a field, at lead 0, with equal values. Empty
  /// in formats that have no listings.
  [[nodiscard]] virtual ByteVector example(int /*field*/) const { return {}; }
  /// Checks that a record can be encoded for this lead (units, statistics, going beyond what the format
  /// holds).
  virtual Status check_lead(const RecordKey& key) const = 0;
  [[nodiscard]] virtual std::unique_ptr<Encoder> encoder() const = 0;
  /// Returns how the values of a record follow one another in it, if it holds nothing else. Who puts them
  /// there so needs no encoder. The record has the size encoded_bound() then.
  [[nodiscard]] virtual std::optional<PlainValues> plain(int /*field*/) const { return std::nullopt; }
  /// Returns a finder for records of the fields defined so far. Returns null if records cannot be told from
  /// other bytes.
  [[nodiscard]] virtual std::unique_ptr<Finder> finder() const { return nullptr; }
  /// Returns the type into which a record of `field` is assembled: the field's own, or float64 if the codec
  /// needs it.
  [[nodiscard]] virtual ElementType assembled_type(int field) const = 0;
  /// Returns the predicted cost of encoding one record, in arbitrary but consistent units (about
  /// nanoseconds).
  [[nodiscard]] virtual double cost(int field) const = 0;
  /// Upper bounds of one encoded record's size, and of the memory that encode() needs beside its input and
  /// output.
  [[nodiscard]] virtual Bytes encoded_bound(int field) const = 0;
  [[nodiscard]] virtual Bytes working_bytes(int field) const = 0;
};

/// Checks what every format needs of a field: a name, a shape, and at most one way to say its precision.
Status check_field(const FieldDefinition& field);

}  // namespace tailrace::codec
