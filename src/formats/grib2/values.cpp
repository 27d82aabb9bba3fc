// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/values.hpp"

#include <cmath>

#include "formats/grib2/ccsds.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

// Sections 5 and 7 of a message that ecCodes made.
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
  // Sets back what the record before may have left in the handle, since it would change the packing: the bits
  // after a constant, D after a tiny range.
  for (const auto& [key, value] :
       {std::pair("bitsPerValue", static_cast<long>(bits)), std::pair("decimalScaleFactor", 0L)}) {
    const int error = handle_->set(key, value);
    if (error == 0) continue;
    if (handle_->is_lost()) handle_.reset();
    return failed(key, error);
  }
  const std::span<const double> all(values, static_cast<std::size_t>(count));
  if (const int error = handle_->set("values", all); error != 0) {
    handle_.reset();  // its state is unknown now
    return failed(cat(count, " values in ", bits, " bits"), error);
  }
  const Result<Encoded> encoded = sections_of(handle_->message());
  if (!encoded.is_ok()) {
    if (handle_->is_lost()) handle_.reset();
    return encoded.status();
  }
  out.reserve(out.size() + encoded->representation.size() + static_cast<std::size_t>(bitmap_header) +
              bitmap.size() + encoded->data.size() + static_cast<std::size_t>(end_length));
  out.insert(out.end(), encoded->representation.begin(), encoded->representation.end());
  append_bitmap(bitmap, out);
  out.insert(out.end(), encoded->data.begin(), encoded->data.end());
  return {};
}

namespace {

// Appends sections 5, 6 and 7 as this library packs values that are not all equal, without a bitmap.
Status append_own(const ByteVector& representation, const std::vector<double>& values, int bits,
                  ByteVector& out) {
  const auto count = static_cast<Index>(values.size());
  const std::optional<Scaling> scaling = scaling_for(range_of(values.data(), count), bits);
  if (!scaling) return {Code::data, "the values do not fit"};
  ByteVector data;
  if (const CcsdsParameters parameters = ccsds_parameters(representation); parameters.usual()) {
    TR_TRY(CcsdsPacking().append(parameters, values.data(), count, *scaling, data));
  } else {
    append_packed(values.data(), count, *scaling, data);
  }
  append_representation(representation, values.size(), *scaling, out);
  append_bitmap({}, out);
  append_data_header(static_cast<Bytes>(data.size()), out);
  out.insert(out.end(), data.begin(), data.end());
  return {};
}

bool agrees(EccodesPacking& eccodes, const ByteVector& representation, int points, int bits, double size) {
  std::vector<double> values(static_cast<std::size_t>(points));
  for (int i = 0; i < points; ++i)
    values[static_cast<std::size_t>(i)] = size * (std::sin(i * 1.7 + bits) - 0.3);
  ByteVector theirs, ours;
  return eccodes.append(representation, values.data(), points, bits, {}, theirs).is_ok() &&
         append_own(representation, values, bits, ours).is_ok() && ours == theirs;
}

Result<ByteVector> representation_of(const std::string& packing) {
  const auto lock = lock_definitions();
  Result<Handle> sample = Handle::from_sample("GRIB2");
  if (!sample.is_ok()) return sample.status();
  if (const int error = sample->set("packingType", packing); error != 0) return failed(packing, error);
  Result<Parts> parts = cut(sample->message());
  if (!parts.is_ok()) return parts.status();
  return std::move(parts->representation);
}

bool agrees_with_eccodes(const std::string& packing) {
  const Result<ByteVector> representation = representation_of(packing);
  if (!representation.is_ok()) return false;
  EccodesPacking eccodes;
  constexpr int few = 67;
  constexpr int over_two_intervals = 9001;  // of 128 blocks of 32 codes, in CCSDS
  for (int bits = 1; bits <= most_bits; ++bits) {
    for (const double size : {1.0, 3.7e-40, 2.5e30}) {
      if (!agrees(eccodes, *representation, few, bits, size)) return false;
    }
  }
  for (const int bits : {8, 16, 24}) {
    if (!agrees(eccodes, *representation, over_two_intervals, bits, 1)) return false;
  }
  return true;
}

}  // namespace

bool simple_packing_agrees() {
  static const bool agreed = agrees_with_eccodes("grid_simple");
  return agreed;
}

bool ccsds_packing_agrees() {
  static const bool agreed = agrees_with_eccodes("grid_ccsds");
  return agreed;
}

}  // namespace tailrace::grib2
