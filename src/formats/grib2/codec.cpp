// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// GRIB2 as a codec. `define` prepares the header of a field (header.cpp). For each record the encoder copies
// the header, patches a few of its octets, and packs the values.
#include <algorithm>
#include <deque>
#include <type_traits>

#include "formats/grib2/ccsds.hpp"
#include "formats/grib2/codec.hpp"
#include "formats/grib2/finder.hpp"
#include "formats/grib2/header.hpp"
#include "formats/grib2/packing.hpp"
#include "formats/grib2/packing/choice.hpp"
#include "formats/grib2/values.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

constexpr Bytes largest_section = 4294967295;
// ecCodes gives libaec an output buffer that is this much larger than the codes.
constexpr Bytes eccodes_margin = 10240;

/// The packings that this codec does itself. It leaves the others to ecCodes.
struct OwnPackings {
  bool simple = false;
  bool ccsds = false;

  [[nodiscard]] bool have(const Field& field) const {
    return field.ccsds ? ccsds && ccsds_parameters(field.parts.representation).usual() : simple;
  }
};

/// Returns the type in which records are assembled: float32 for a float32 field that this codec packs itself,
/// otherwise float64, because ecCodes takes doubles alone.
ElementType assembled(const Field& field, const OwnPackings& own) {
  return field.definition.type == ElementType::f32 && own.have(field) ? ElementType::f32 : ElementType::f64;
}

Bytes data_bound(const Field& field, const OwnPackings& own, Index coded, int bits) {
  if (!field.ccsds) return packed_length(coded, bits);
  const Bytes bound = ccsds_bound(ccsds_parameters(field.parts.representation), coded, bits);
  return own.have(field) ? bound : bound + eccodes_margin;
}

Bytes bitmap_length(const Field& field) { return field.definition.missing ? (field.points + 7) / 8 : 0; }

/// Reserves room for `more` octets. Doubles the room of a large `out`, so that records behind one another are
/// seldom copied. If `out` has only a head, which is small, the room is exactly what is needed.
void make_room(Bytes more, ByteVector& out) {
  const std::size_t needed = out.size() + static_cast<std::size_t>(more);
  if (needed > out.capacity()) out.reserve(std::max(needed, 2 * out.capacity()));
}

class Grib2Encoder final : public codec::Encoder {
 public:
  Grib2Encoder(const std::deque<Field>& fields, OwnPackings own) : fields_(fields), own_(own) {}

  Status encode(const codec::RecordKey& key, std::byte* values, Index count, ByteVector& out) override {
    if (key.field < 0 || key.field >= static_cast<int>(fields_.size()))
      return {Code::argument, cat("field number ", key.field, " was not defined; ", fields_.size(), " were")};
    const Field& field = fields_[static_cast<std::size_t>(key.field)];
    const std::size_t before = out.size();
    choosing_.begin();
    Status status = assembled(field, own_) == ElementType::f32
                        ? append(field, key, reinterpret_cast<float*>(values), count, out)
                        : append(field, key, reinterpret_cast<double*>(values), count, out);
    if (!status.is_ok()) out.resize(before);
    return status.in(cat("field '", field.definition.name, "'"));
  }
  [[nodiscard]] Index offending() const override { return choosing_.offending(); }
  [[nodiscard]] std::optional<codec::KeptBits> kept_bits() const override { return choosing_.kept_bits(); }

 private:
  template <typename Value>
  Status append(const Field& field, const codec::RecordKey& key, Value* values, Index count, ByteVector& out);
  template <typename Value>
  Status append_values(const Field& field, const codec::RecordKey& key, Value* values, Index count,
                       ByteVector& out);
  template <typename Value>
  Status append_own(const Field& field, Index level, const Value* values, Index coded, const Scaling& scaling,
                    ByteVector& out);

  const std::deque<Field>& fields_;
  OwnPackings own_;
  Choosing choosing_{{"GRIB2", float32_references}};
  CcsdsPacking ccsds_;
  EccodesPacking eccodes_;
};

Status too_long(const Field& field, Index level, Bytes length) {
  return {Code::format, cat(place(field, level), ": ", length,
                            " octets of values; a GRIB2 section holds at most ", largest_section)};
}

template <typename Value>
Status Grib2Encoder::append(const Field& field, const codec::RecordKey& key, Value* values, Index count,
                            ByteVector& out) {
  if (key.level < 0 || key.level >= static_cast<Index>(field.levels.size()))
    return {Code::argument,
            cat("level index ", key.level, " was not defined; ", field.levels.size(), " were")};
  if (count != field.points)
    return {Code::argument, cat("a record of ", count, " values was given, ", field.points, " were defined")};
  const Result<Interval> interval = in_seconds(field.axis, key.interval_start, key.lead);
  TR_TRY(interval.status());
  TR_TRY(check_interval(*interval, field.statistic, field.base));

  const std::size_t start = out.size();
  out.insert(out.end(), field.parts.head.begin(), field.parts.head.end());
  for (const Patch& patch : field.levels[static_cast<std::size_t>(key.level)])
    out[start + patch.offset] = patch.value;
  write_time(&out[start], field.time, *interval, field.base);
  TR_TRY(append_values(field, key, values, count, out));
  finish(start, out);
  return {};
}

template <typename Value>
Status Grib2Encoder::append_values(const Field& field, const codec::RecordKey& key, Value* values,
                                   Index count, ByteVector& out) {
  const Result<Choice> choice = choosing_.choose(field, key.level, values, count);
  TR_TRY(choice.status());
  const Scaling& scaling = choice->scaling;
  const ByteVector& bitmap = choosing_.bitmap();
  if (choice->coded == 0) {
    append_representation(field.parts.representation, 0, scaling, out);
    append_bitmap(bitmap, out);
    append_data_header(0, out);
    return {};
  }
  const Bytes length = packed_length(choice->coded, scaling.bits);
  if (length > largest_section - data_header) return too_long(field, key.level, length);
  if constexpr (std::is_same_v<Value, double>) {
    if (!choice->constant && !own_.have(field))
      return eccodes_.append(field.parts.representation, values, choice->coded, scaling.bits, bitmap, out);
  }
  return append_own(field, key.level, values, choice->coded, scaling, out);
}

/// Appends sections 5, 6 and 7, packed by this module instead of ecCodes.
template <typename Value>
Status Grib2Encoder::append_own(const Field& field, Index level, const Value* values, Index coded,
                                const Scaling& scaling, ByteVector& out) {
  const ByteVector& representation = field.parts.representation;
  const Bytes bound = scaling.bits > 0 ? data_bound(field, own_, coded, scaling.bits) : 0;
  make_room(static_cast<Bytes>(representation.size() + choosing_.bitmap().size()) + bitmap_header +
                data_header + bound + end_length,
            out);
  append_representation(representation, static_cast<std::uint64_t>(coded), scaling, out);
  append_bitmap(choosing_.bitmap(), out);
  const std::size_t section = out.size();
  append_data_header(0, out);
  if (scaling.bits > 0 && field.ccsds) {
    TR_TRY(ccsds_.append(ccsds_parameters(representation), values, coded, scaling, out));
  } else if (scaling.bits > 0) {
    append_packed(values, coded, scaling, out);
  }
  const auto length = static_cast<Bytes>(out.size() - section);
  if (length > largest_section) return too_long(field, level, length - data_header);
  put_number(&out[section], static_cast<std::uint64_t>(length), 4);
  return {};
}

class Grib2Codec final : public codec::Codec {
 public:
  explicit Grib2Codec(const codec::StreamDefinition& stream)
      : stream_(stream),
        headers_(stream),
        own_{stream.packing == "simple" && simple_packing_agrees(),
             stream.packing == "ccsds" && ccsds_packing_agrees()} {}

  Status define(const codec::FieldDefinition& field) override {
    TR_TRY(codec::check_field(field));
    return add(field).in(cat("field '", field.name, "'"));
  }
  ByteVector prepared(int field) const override {
    Packer out;
    pack(at(field), out);
    return out.take();
  }
  Status adopt(const codec::FieldDefinition& field, std::span<const std::byte> prepared) override {
    Unpacker in(prepared);
    Result<Field> adopted = unpack_field(stream_, field, in, has_all_octets);
    if (!adopted.is_ok()) return adopted.status();
    fields_.push_back(std::move(*adopted));
    return {};
  }
  Status check_lead(const codec::RecordKey& key) const override {
    const Field& field = at(key.field);
    const Result<Interval> interval = in_seconds(field.axis, key.interval_start, key.lead);
    TR_TRY(interval.status().in(name(key.field)));
    TR_TRY(check_interval(*interval, field.statistic, field.base).in(name(key.field)));
    return check_since(field, key).in(name(key.field));
  }
  /// Returns the name of the filter of the Python package kerchunk.
  std::optional<codec::Decoding> decoding() const override { return codec::Decoding{false, "grib"}; }
  ByteVector example(int field) const override {
    return constant_message(at(field).parts, static_cast<std::uint64_t>(at(field).points));
  }
  std::unique_ptr<codec::Encoder> encoder() const override {
    return std::make_unique<Grib2Encoder>(fields_, own_);
  }
  std::unique_ptr<codec::Finder> finder() const override { return make_finder(fields_); }
  /// With a missing value, compact() moves the other values together, in the record's own memory.
  bool only_reads(int field) const override { return !at(field).definition.missing; }
  ElementType assembled_type(int field) const override { return assembled(at(field), own_); }

  double cost(int field) const override {
    // Nanoseconds per point, measured at 16 bits: docs/design/004-grib-keys.md.
    const Field& defined = at(field);
    const double per_point = !own_.have(defined) ? 9.0 : defined.ccsds ? 2.0 : 0.6;
    return 2000.0 + per_point * static_cast<double>(defined.points) +
           (defined.definition.information ? 1.5 : 0.0) * static_cast<double>(defined.points) +
           (defined.definition.missing ? 2.0 : 0.0) * static_cast<double>(defined.points);
  }
  Bytes encoded_bound(int field) const override {
    const Field& defined = at(field);
    return static_cast<Bytes>(defined.parts.head.size() + defined.parts.representation.size()) +
           bitmap_header + bitmap_length(defined) + data_header +
           data_bound(defined, own_, defined.points, widest(defined.definition)) + end_length;
  }
  Bytes working_bytes(int field) const override {
    const Field& defined = at(field);
    constexpr Bytes small = 64 * 1024;
    const int bits = widest(defined.definition);
    const Bytes bound = data_bound(defined, own_, defined.points, bits);
    const Bytes codes = defined.definition.information ? InformedScaling::working_bytes(defined.points) : 0;
    const Bytes always = small + bitmap_length(defined) + codes;
    if (own_.have(defined) && !defined.ccsds) return always;
    // This counts the portions, and the copy that a server makes of a record that compressed well.
    if (own_.have(defined))
      return always + bound / 5 * 4 +
             CcsdsPacking::working_bytes(ccsds_parameters(defined.parts.representation), defined.points,
                                         bits);
    // ecCodes holds the codes in whole octets, libaec's output, the message of this record, and the message
    // of the record before.
    const Bytes octets = (bits + 7) / 8 * defined.points;
    return always + 2 * (octets + eccodes_margin) + 2 * bound;
  }

 private:
  Status add(const codec::FieldDefinition& field);
  const Field& at(int field) const { return fields_[static_cast<std::size_t>(field)]; }
  std::string name(int field) const { return cat("field '", at(field).definition.name, "'"); }

  codec::StreamDefinition stream_;
  Headers headers_;
  OwnPackings own_;
  std::deque<Field> fields_;  // encoders and finders keep references to it
};

Status Grib2Codec::add(const codec::FieldDefinition& field) {
  if (field.bits && (*field.bits < 1 || *field.bits > most_bits))
    return {Code::argument, cat("bits=", *field.bits, "; a value takes 1 to ", most_bits, " bits")};
  if (field.reduction.operation != codec::Reduction::Operation::none)
    return {Code::format,
            "over=: a GRIB2 message has all points of a grid on a level: leave over= out, or write the field "
            "to NetCDF, Zarr or raw files"};
  if (is_text(field.type))
    return {Code::format, "GRIB2 holds numbers, and no texts: write them to a NetCDF or Zarr file"};
  if (is_complex(field.type))
    return {Code::format,
            cat("GRIB2 holds real numbers, not ", name_of(field.type), "; write the parts as two fields")};
  // Octets 7-10 of section 3 and 6-9 of section 5 count points in 32 bits. All ones mean "missing".
  constexpr Index most_points = 4294967294;
  if (field.elements() > most_points)
    return {Code::format, cat("a record has ", field.elements(), " points, and GRIB2 holds at most ",
                              most_points, "; write it in parts")};
  // A precaution, not measured: sources of ecCodes near 2.28 loop over CCSDS values with an int.
  constexpr Index most_through_eccodes = 2147483647;
  if ((stream_.packing == "ccsds" || !own_.simple) && field.elements() > most_through_eccodes)
    return {Code::format, cat("a record of ", field.elements(), " points; CCSDS packing takes at most ",
                              most_through_eccodes, ": choose packing=simple, or write it in parts")};
  if (const int bits = field.bits.value_or(1);
      packed_length(field.elements(), bits) > largest_section - data_header)
    return {Code::format,
            cat("a record of ", field.elements(), " points in ", bits, " bits takes more than the ",
                largest_section, " octets of a GRIB2 section; ask for fewer bits, or write it in parts")};
  TR_TRY(in_seconds(stream_.time, 0, field.statistic.duration).status().in("since="));
  Result<Field> prepared = headers_.prepare(field);
  if (!prepared.is_ok()) return prepared.status();
  fields_.push_back(std::move(*prepared));
  return {};
}

}  // namespace

Status check_since(const Field& field, const codec::RecordKey& key) {
  const codec::Statistic& statistic = field.definition.statistic;
  if (!field.statistic) return {};
  if (statistic.since == codec::Statistic::Since::start && key.interval_start != 0)
    return {Code::argument, cat("the interval begins at ", field.axis.at(key.interval_start),
                                ", but the field was defined since=start")};
  if (statistic.since == codec::Statistic::Since::duration &&
      key.lead - key.interval_start > statistic.duration)
    return {Code::argument,
            cat("the interval from ", field.axis.text(key.interval_start), " to ", field.axis.text(key.lead),
                " is longer than the ", field.axis.text(statistic.duration), " it was defined with")};
  return {};
}

Status check_stream(const codec::StreamDefinition& stream, std::string_view edition,
                    const std::vector<std::string_view>& packings) {
  if (stream.calendar != Calendar::proleptic_gregorian)
    return {Code::format, cat(edition, " dates are proleptic Gregorian; calendar ", name_of(stream.calendar),
                              " cannot be held: choose format=raw, or calendar=proleptic_gregorian")};
  if (stream.time.is_model())
    return {Code::format,
            cat(edition,
                " counts times from a date, in whole seconds or longer units: leave time=model out and "
                "give leads, or choose another format")};
  return parse_choice(stream.packing, packings).status().in(cat("packing '", stream.packing, "'"));
}

Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream) {
  TR_TRY(check_stream(stream, "GRIB2", {"simple", "ccsds"}));
  return std::unique_ptr<codec::Codec>(std::make_unique<Grib2Codec>(stream));
}

}  // namespace tailrace::grib2
