// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// GRIB1 as a codec, on the same ground as GRIB2: a prepared header of each field, of which a record patches a
// few octets. Simple packing is the library's own, second-order packing that of ecCodes.
#include "formats/grib2/edition1/codec.hpp"

#include <algorithm>
#include <deque>
#include <type_traits>
#include <unordered_map>

#include "formats/grib2/edition1/finder.hpp"
#include "formats/grib2/edition1/header.hpp"
#include "formats/grib2/edition1/second_order.hpp"
#include "formats/grib2/edition1/sections.hpp"
#include "formats/grib2/edition1/time.hpp"
#include "formats/grib2/packing/choice.hpp"
#include "formats/grib2/sections.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2::edition1 {

namespace {

constexpr Edition edition{"GRIB1", ibm_references};
constexpr Bytes padding = 1;  // of a section

Bytes bitmap_bound(const Field& field) {
  return field.definition.missing ? bitmap_header + (field.points + 7) / 8 + padding : 0;
}

class Grib1Encoder final : public codec::Encoder {
 public:
  Grib1Encoder(const std::deque<Field>& fields, bool second_order)
      : fields_(fields), second_order_(second_order) {}

  Status encode(const codec::RecordKey& key, std::byte* values, Index count, ByteVector& out) override {
    if (key.field < 0 || key.field >= static_cast<int>(fields_.size()))
      return {Code::argument, cat("field number ", key.field, " was not defined; ", fields_.size(), " were")};
    const Field& field = fields_[static_cast<std::size_t>(key.field)];
    const std::size_t before = out.size();
    choosing_.begin();
    const bool narrow = field.definition.type == ElementType::f32 && !second_order_;
    Status status = narrow ? append(field, key, reinterpret_cast<float*>(values), count, out)
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
  Result<Bytes> append_second_order(const Value* values, const Choice& choice, std::size_t start,
                                    ByteVector& out);

  const std::deque<Field>& fields_;
  bool second_order_;
  Choosing choosing_{edition};
  SecondOrder eccodes_;
};

template <typename Value>
Status Grib1Encoder::append(const Field& field, const codec::RecordKey& key, Value* values, Index count,
                            ByteVector& out) {
  if (key.level < 0 || key.level >= static_cast<Index>(field.levels.size()))
    return {Code::argument,
            cat("level index ", key.level, " was not defined; ", field.levels.size(), " were")};
  if (count != field.points)
    return {Code::argument, cat("a record of ", count, " values was given, ", field.points, " were defined")};
  const codec::Process process = field.definition.statistic.process;
  const Result<Interval> interval = in_seconds(field.axis, key.interval_start, key.lead);
  TR_TRY(interval.status());
  TR_TRY(check_interval(*interval, process));
  const Result<Choice> choice = choosing_.choose(field, key.level, values, count);
  TR_TRY(choice.status());
  const Scaling& scaling = choice->scaling;
  const Bytes codes = choice->coded > 0 ? packed_length(choice->coded, scaling.bits) : 0;
  const auto head = static_cast<Bytes>(field.parts.head.size());
  const Bytes whole = head + bitmap_bound(field) + data_header + codes + padding + end_length;
  if (whole > most_message)
    return {Code::format, cat(place(field, key.level), ": ", codes,
                              " octets of values; a GRIB1 message holds at most ", most_message)};

  const std::size_t start = out.size();
  const auto needed = start + static_cast<std::size_t>(whole);
  if (needed > out.capacity()) out.reserve(start == 0 ? needed : std::max(needed, 2 * out.capacity()));
  out.insert(out.end(), field.parts.head.begin(), field.parts.head.end());
  for (const Patch& patch : field.levels[static_cast<std::size_t>(key.level)])
    out[start + patch.offset] = patch.value;
  write_time(&out[start], *interval, process);
  append_bitmap(choosing_.bitmap(), count, start, out);
  const std::size_t data = out.size();
  const Result<Bytes> packed = append_second_order(values, *choice, start, out);
  TR_TRY(packed.status());
  if (*packed > 0) {
    finish(start, data, *packed - data_header * 8, out);
    return {};
  }
  append_data_header(scaling, start, out);
  if (codes > 0) append_packed(values, choice->coded, scaling, out);
  finish(start, data, choice->coded * scaling.bits, out);
  return {};
}

template <typename Value>
Result<Bytes> Grib1Encoder::append_second_order(const Value* values, const Choice& choice, std::size_t start,
                                                ByteVector& out) {
  if constexpr (std::is_same_v<Value, double>) {
    if (second_order_ && !choice.constant && choice.coded > 0)
      return eccodes_.append(values, choice.coded, choice.scaling, start, out);
  }
  return 0;
}

/// Returns true if the octets of the header that records change lie in it.
bool has_sound_head(const Field& field) { return field.parts.head.size() >= least_head; }

class Grib1Codec final : public codec::Codec {
 public:
  explicit Grib1Codec(const codec::StreamDefinition& stream)
      : stream_(stream), second_order_(stream.packing == "second_order") {}

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
    Result<Field> adopted = unpack_field(stream_, field, in, has_sound_head);
    if (!adopted.is_ok()) return adopted.status();
    fields_.push_back(std::move(*adopted));
    return {};
  }
  Status check_lead(const codec::RecordKey& key) const override {
    const Field& field = at(key.field);
    const std::string name = cat("field '", field.definition.name, "'");
    const Result<Interval> interval = in_seconds(field.axis, key.interval_start, key.lead);
    TR_TRY(interval.status().in(name));
    TR_TRY(check_interval(*interval, field.definition.statistic.process).in(name));
    return check_since(field, key).in(name);
  }
  /// Returns the name of the filter of the Python package kerchunk.
  std::optional<codec::Decoding> decoding() const override { return codec::Decoding{false, "grib"}; }
  ByteVector example(int field) const override { return constant_message(at(field).parts.head); }
  std::unique_ptr<codec::Encoder> encoder() const override {
    return std::make_unique<Grib1Encoder>(fields_, second_order_);
  }
  std::unique_ptr<codec::Finder> finder() const override { return edition1::make_finder(fields_); }
  ElementType assembled_type(int field) const override {
    const bool narrow = at(field).definition.type == ElementType::f32 && !second_order_;
    return narrow ? ElementType::f32 : ElementType::f64;
  }

  double cost(int field) const override {
    // Nanoseconds per point: docs/design/038-grib1.md.
    const Field& defined = at(field);
    const double per_point = (second_order_ ? 33.0 : 0.6) + (defined.definition.information ? 1.5 : 0.0) +
                             (defined.definition.missing ? 2.0 : 0.0);
    return 2000.0 + per_point * static_cast<double>(defined.points);
  }
  Bytes encoded_bound(int field) const override {
    const Field& defined = at(field);
    return static_cast<Bytes>(defined.parts.head.size()) + bitmap_bound(defined) + data_header +
           data_bound(defined) + padding + end_length;
  }
  Bytes working_bytes(int field) const override {
    const Field& defined = at(field);
    constexpr Bytes small = 64 * 1024;
    const Bytes codes = defined.definition.information ? InformedScaling::working_bytes(defined.points) : 0;
    const Bytes always = small + bitmap_bound(defined) + codes;
    if (!second_order_) return always;
    // ecCodes holds the codes, their differences and the groups as numbers of 8 octets, and the message
    // twice. With ecCodes 2.28 its memory grew by 36 octets a value (1 bit, alternating), 38.8 (16 bits,
    // alternating) and 41.4 (32 bits of noise): this is a bound that lies 6 to 16 % above them.
    constexpr Bytes arrays = 5;
    return always + arrays * 8 * defined.points + 2 * data_bound(defined);
  }

 private:
  Status add(const codec::FieldDefinition& field);
  /// Returns Code::format if records of `field` cannot be told from those of a field before it.
  Status check_distinct(const Field& field);
  /// Records that second order makes longer stay simple.
  static Bytes data_bound(const Field& field) {
    return packed_length(field.points, widest(field.definition));
  }
  const Field& at(int field) const { return fields_[static_cast<std::size_t>(field)]; }

  codec::StreamDefinition stream_;
  bool second_order_;
  std::deque<Field> fields_;                              // encoders and finders keep references to it
  std::unordered_map<std::uint64_t, std::size_t> heads_;  // checksums of heads at lead 0: the field
  std::size_t noted_ = 0;                                 // fields whose heads are among them
};

Status Grib1Codec::check_distinct(const Field& field) {
  const auto marks_of = [](const Field& each) {
    std::vector<std::uint64_t> marks;
    ByteVector head = each.parts.head;
    for (const std::vector<Patch>& level : each.levels) {
      std::copy(each.parts.head.begin(), each.parts.head.end(), head.begin());
      for (const Patch& patch : level) head[patch.offset] = patch.value;
      marks.push_back(checksum(head));
    }
    return marks;
  };
  // A rank that only adopts fields has no use for them.
  for (; noted_ < fields_.size(); ++noted_)
    for (const std::uint64_t mark : marks_of(fields_[noted_])) heads_.try_emplace(mark, noted_);
  for (const std::uint64_t mark : marks_of(field)) {
    const auto same = heads_.find(mark);
    if (same == heads_.end()) continue;
    return {Code::format,
            cat("its records have the octets of field '", fields_[same->second].definition.name,
                "' in GRIB1, which tells neither names nor a maximum from a minimum: give it a parameter of "
                "its own (as mx2t and mn2t of centre=98 are, or by indicatorOfParameter and "
                "table2Version), another level, or write it to another stream")};
  }
  return {};
}

Status Grib1Codec::add(const codec::FieldDefinition& field) {
  if (field.bits && (*field.bits < 1 || *field.bits > most_bits))
    return {Code::argument, cat("bits=", *field.bits, "; a value takes 1 to ", most_bits, " bits")};
  if (field.reduction.operation != codec::Reduction::Operation::none)
    return {Code::format,
            "over=: a GRIB1 message has all points of a grid on a level: leave over= out, or write the field "
            "to NetCDF, Zarr or raw files"};
  if (is_text(field.type))
    return {Code::format, "GRIB1 holds numbers, and no texts: write them to a NetCDF or Zarr file"};
  if (is_complex(field.type))
    return {Code::format,
            cat("GRIB1 holds real numbers, not ", name_of(field.type), "; write the parts as two fields")};
  constexpr Index most_points = most_message * 8;
  if (field.elements() > most_points ||
      packed_length(field.elements(), field.bits.value_or(1)) > most_message - (64 << 10))
    return {Code::format,
            cat("a record of ", field.elements(), " points in ", field.bits.value_or(1),
                " bits takes more than the ", most_message,
                " octets of a GRIB1 message; ask for fewer bits, choose format=grib2, or write it in parts")};
  constexpr Bytes most_bitmap = 0xffffff;
  if (field.missing && bitmap_header + (field.elements() + 7) / 8 + padding > most_bitmap)
    return {Code::format, cat("missing=: a record of ", field.elements(),
                              " points needs a bitmap of more than the ", most_bitmap,
                              " octets that GRIB1 can say: leave missing= out, choose format=grib2, or write "
                              "it in parts")};
  TR_TRY(in_seconds(stream_.time, 0, field.statistic.duration).status().in("since="));
  Result<Field> prepared = prepare(stream_, field);
  if (!prepared.is_ok()) return prepared.status();
  TR_TRY(check_distinct(*prepared));
  fields_.push_back(std::move(*prepared));
  return {};
}

}  // namespace

Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream) {
  TR_TRY(check_stream(stream, "GRIB1", {"simple", "second_order"}));
  return std::unique_ptr<codec::Codec>(std::make_unique<Grib1Codec>(stream));
}

Status check_keys(const codec::StreamDefinition& stream, std::span<const std::string> keys) {
  std::vector<std::string> unknown(keys.begin(), keys.end());
  if (unknown.empty()) return {};
  const auto lock = lock_definitions();
  Result<Handle> handle = Handle::from_sample("GRIB1");
  TR_TRY(handle.status());
  // Some keys exist only once others are set. Errors are ignored here: define() reports wrong values.
  for (const auto& [key, value] : stream.keys) static_cast<void>(handle->set_text(key, value));
  std::erase_if(unknown, [&](const std::string& key) { return handle->has(key); });
  if (unknown.empty()) return {};
  const std::string& key = unknown.front();
  return {Code::settings,
          cat("unknown key \"", key, "\": it is no option, and ecCodes has no such key in GRIB1",
              did_you_mean(key, handle->keys(),
                           cat("a key of a centre's own section is given as keys=\"", key, "=...\"")))};
}

}  // namespace tailrace::grib2::edition1
