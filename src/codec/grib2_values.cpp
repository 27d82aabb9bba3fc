// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "codec/grib2_values.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace tailrace::codec::grib2 {

namespace {

// Sections 5, 6 and 7 of a message that ecCodes made, without what lies around them.
struct Encoded {
  std::span<const std::byte> representation;
  std::span<const std::byte> data;
};

Result<Encoded> sections_of(std::span<const std::byte> message) {
  Encoded found;
  std::size_t at = 16;
  while (at + 5 <= message.size()) {
    const std::size_t length = get_number(&message[at], 4);
    const int number = std::to_integer<int>(message[at + 4]);
    if (length < 5 || length > message.size() - at) break;
    if (number == 5) found.representation = message.subspan(at, length);
    if (number == 7) {
      found.data = message.subspan(at, length);
      return found;
    }
    at += length;
  }
  return Status(Code::corrupt, "ecCodes made a message whose sections contradict their lengths");
}

Status failed(std::string_view what, int error) {
  return {Code::data, cat("ecCodes does not pack the values (", what, "): ", reason(error))};
}

}  // namespace

Status EccodesPacking::begin(const ByteVector& representation) {
  const auto lock = lock_definitions();
  Result<Handle> sample = Handle::from_sample("GRIB2");
  if (!sample.is_ok()) return sample.status();
  if (const int error = sample->set("gridDefinitionTemplateNumber", 101L); error != 0)
    return failed("unstructured grid", error);
  Result<Parts> parts = cut(sample->message());
  if (!parts.is_ok()) return parts.status();
  parts->representation = representation;
  Result<Handle> handle = Handle::from_message(constant_message(*parts, 1));
  if (!handle.is_ok()) return handle.status();
  handle_ = std::move(*handle);
  representation_ = representation;
  return {};
}

Status EccodesPacking::append(const ByteVector& representation, const double* values, Index count, int bits,
                              std::span<const std::byte> bitmap, ByteVector& out) {
  if (!handle_ || representation_ != representation) TR_TRY(begin(representation));
  // What the record before left behind would choose another way of packing: bits after a constant, D after a
  // tiny range.
  if (const int error = handle_->set("bitsPerValue", static_cast<long>(bits)); error != 0)
    return failed("bitsPerValue", error);
  if (const int error = handle_->set("decimalScaleFactor", 0L); error != 0)
    return failed("decimalScaleFactor", error);
  const std::span<const double> all(values, static_cast<std::size_t>(count));
  if (const int error = handle_->set("values", all); error != 0) {
    handle_.reset();  // its state is unknown now
    return failed(cat(count, " values in ", bits, " bits"), error);
  }
  const Result<Encoded> encoded = sections_of(handle_->message());
  if (!encoded.is_ok()) return encoded.status();
  out.insert(out.end(), encoded->representation.begin(), encoded->representation.end());
  append_bitmap(bitmap, out);
  out.insert(out.end(), encoded->data.begin(), encoded->data.end());
  return {};
}

namespace {

bool agrees(EccodesPacking& eccodes, const ByteVector& representation, const std::vector<double>& values,
            int bits) {
  const auto count = static_cast<Index>(values.size());
  ByteVector theirs, ours;
  if (!eccodes.append(representation, values.data(), count, bits, {}, theirs).is_ok()) return false;
  const std::optional<Scaling> scaling = scaling_for(range_of(values.data(), count), bits);
  if (!scaling) return false;
  append_representation(representation, values.size(), *scaling, ours);
  append_bitmap({}, ours);
  append_data_header(packed_length(count, bits), ours);
  append_packed(values.data(), count, *scaling, ours);
  return ours == theirs;
}

bool compare_with_eccodes() {
  const Result<Handle> sample = Handle::from_sample("GRIB2");
  if (!sample.is_ok()) return false;
  const Result<Parts> parts = cut(sample->message());
  if (!parts.is_ok()) return false;
  EccodesPacking eccodes;
  constexpr int points = 67;
  for (int bits = 1; bits <= most_bits; ++bits) {
    for (const double size : {1.0, 3.7e-40, 2.5e30}) {
      std::vector<double> values(points);
      for (int i = 0; i < points; ++i)
        values[static_cast<std::size_t>(i)] = size * (std::sin(i * 1.7 + bits) - 0.3);
      if (!agrees(eccodes, parts->representation, values, bits)) return false;
    }
  }
  return true;
}

}  // namespace

bool simple_packing_agrees() {
  static const bool agreed = compare_with_eccodes();
  return agreed;
}

}  // namespace tailrace::codec::grib2
