// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/variables/strided.hpp"

#include <algorithm>

#include "ground/base/byte_order.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"

namespace tailrace::variables {

namespace {

/// Reads a box of elements part by part.
class StridedReader {
 public:
  StridedReader(storage::File& file, const Strided& record, const cf::Unpacking& how,
                std::vector<Index> extents, ElementType type, Scratch& scratch)
      : file_(file),
        record_(record),
        how_(how),
        extents_(std::move(extents)),
        value_strides_(strides_of(extents_, size_of(type))),
        type_(type),
        element_(how.element_bytes()),
        scratch_(scratch) {}

  Status read(Bytes offset, std::byte* values) { return read_from(0, offset, values); }
  [[nodiscard]] Index missing() const { return missing_; }

 private:
  /// Reads the elements along dimension `d` and all faster ones.
  Status read_from(std::size_t d, Bytes offset, std::byte* values) {
    if (d == extents_.size()) return read_part(d, 1, offset, values);
    const Bytes stride = record_.strides[d];
    // Reading a gap takes less time than another call, as long as the gap is no longer than the elements
    // around it.
    std::vector<Index> row(extents_.begin() + static_cast<std::ptrdiff_t>(d) + 1, extents_.end());
    const Strided faster{
        0, {record_.strides.begin() + static_cast<std::ptrdiff_t>(d) + 1, record_.strides.end()}, {}};
    const Bytes useful = elements(row) * element_;
    const bool close = stride <= 2 * useful || stride <= small_gap;
    const Index most =
        close ? std::max<Index>(
                    1, (most_bytes_at_once - span_of(faster, row, element_)) / std::max<Bytes>(stride, 1) + 1)
              : 1;
    const bool whole = is_close_from(d + 1) && span_of(faster, row, element_) <= most_bytes_at_once;
    for (Index i = 0; i < extents_[d];) {
      const Index count = whole ? std::min(most, extents_[d] - i) : 1;
      std::byte* const to = values + i * value_strides_[d];
      TR_TRY(whole ? read_part(d, count, offset + i * stride, to)
                   : read_from(d + 1, offset + i * stride, to));
      i += count;
    }
    return {};
  }
  [[nodiscard]] static Index elements(std::span<const Index> extents) {
    Index count = 1;
    for (const Index each : extents) count *= each;
    return count;
  }
  /// True if the elements along `d` and all faster dimensions have no large gaps between them.
  [[nodiscard]] bool is_close_from(std::size_t d) const {
    for (; d < extents_.size(); ++d) {
      const Bytes useful = elements(std::span(extents_).subspan(d + 1)) * element_;
      if (extents_[d] > 1 && record_.strides[d] > 2 * useful && record_.strides[d] > small_gap) return false;
    }
    return true;
  }
  /// Reads `count` elements along `d`, with all faster dimensions, in one call.
  Status read_part(std::size_t d, Index count, Bytes offset, std::byte* values) {
    std::vector<Index> extents;
    std::vector<Bytes> strides, value_strides;
    if (d < extents_.size()) {
      extents.assign(extents_.begin() + static_cast<std::ptrdiff_t>(d), extents_.end());
      strides.assign(record_.strides.begin() + static_cast<std::ptrdiff_t>(d), record_.strides.end());
      value_strides.assign(value_strides_.begin() + static_cast<std::ptrdiff_t>(d), value_strides_.end());
      extents.front() = count;
    }
    const Bytes span = span_of({0, strides, {}}, extents, element_);
    scratch_.bytes.resize(static_cast<std::size_t>(span));
    const Result<Bytes> got = file_.read(scratch_.bytes, offset);
    TR_TRY(got.status());
    if (*got != span)
      return {Code::corrupt, cat("expected ", counted(span, "byte"), " of a record at byte ", offset,
                                 ", got ", *got, ": the file has become shorter")};
    // Elements lie at multiples of their size from the first one, except in records without padding (classic
    // NetCDF).
    if (std::ranges::any_of(strides, [&](Bytes each) { return each % element_ != 0; }))
      return reorder_and_unpack(extents, strides, value_strides, values);
    copy_ordered(scratch_.bytes.data(), scratch_.bytes.data(), span, how_.scalar_bytes(), record_.order);
    missing_ += unpack_strided(how_, scratch_.bytes.data(), strides, extents, value_strides, type_, values);
    return {};
  }
  /// Unpacks the elements step by step along the slowest dimension, for elements whose distance is no
  /// multiple of their size.
  Status reorder_and_unpack(std::span<const Index> extents, std::span<const Bytes> strides,
                            std::span<const Bytes> value_strides, std::byte* values) {
    const Strided faster{0, {strides.begin() + 1, strides.end()}, {}};
    const Bytes span = span_of(faster, extents.subspan(1), element_);
    ByteVector part(static_cast<std::size_t>(span));
    for (Index i = 0; i < extents.front(); ++i) {
      copy_ordered(part.data(), scratch_.bytes.data() + i * strides.front(), span, how_.scalar_bytes(),
                   record_.order);
      missing_ += unpack_strided(how_, part.data(), strides.subspan(1), extents.subspan(1),
                                 value_strides.subspan(1), type_, values + i * value_strides.front());
    }
    return {};
  }

  // Storage reads whole pages of 4 KiB: reading a gap of one page is faster than one call for each element of
  // a row.
  static constexpr Bytes small_gap = 4096;

  storage::File& file_;
  const Strided& record_;
  const cf::Unpacking& how_;
  std::vector<Index> extents_;
  std::vector<Bytes> value_strides_;
  ElementType type_;
  Bytes element_;
  Scratch& scratch_;
  Index missing_ = 0;
};

}  // namespace

Status check_cut(const std::vector<Index>& shape, const layout::Box& cut, ElementType type) {
  if (is_complex(type))
    return {Code::argument, cat("values become integers, float32 or float64, not ", name_of(type))};
  bool inside = cut.lower.size() == shape.size() && cut.upper.size() == shape.size();
  for (std::size_t d = 0; inside && d < shape.size(); ++d)
    inside = cut.lower[d] >= 0 && cut.lower[d] <= cut.upper[d] && cut.upper[d] <= shape[d];
  if (inside) return {};
  return {Code::argument, cat("the part from ", tuple(cut.lower), " to ", tuple(cut.upper),
                              " is not inside of a record of ", extents(shape))};
}

std::vector<Bytes> strides_of(const std::vector<Index>& shape, Bytes element) {
  std::vector<Bytes> strides(shape.size());
  Bytes next = element;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = next;
    next *= shape[d];
  }
  return strides;
}

Bytes span_of(const Strided& where, std::span<const Index> extents, Bytes element) {
  Bytes span = element;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 0) return 0;
    span += (extents[d] - 1) * where.strides[d];
  }
  return span;
}

Bytes strided_bound(const Strided& record, std::span<const Index> shape, Bytes element) {
  Bytes span = element;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    Bytes more = 0;
    if (__builtin_mul_overflow(std::max<Index>(shape[d], 1) - 1, record.strides[d], &more) ||
        __builtin_add_overflow(span, more, &span))
      return std::max(most_bytes_at_once, element);
  }
  return std::min(span, std::max(most_bytes_at_once, element));
}

Result<Index> read_strided(storage::File& file, const Strided& record, const cf::Unpacking& how,
                           const layout::Box& cut, ElementType type, std::byte* values, Scratch& scratch) {
  Bytes offset = record.offset;
  std::vector<Index> extents;
  for (std::size_t d = 0; d < cut.lower.size(); ++d) {
    extents.push_back(cut.upper[d] - cut.lower[d]);
    if (extents.back() == 0) return Index{0};
    offset += cut.lower[d] * record.strides[d];
  }
  StridedReader reader(file, record, how, std::move(extents), type, scratch);
  TR_TRY(reader.read(offset, values));
  return reader.missing();
}

Index unpack_strided(const cf::Unpacking& how, const std::byte* elements, std::span<const Bytes> strides,
                     std::span<const Index> extents, std::span<const Bytes> value_strides, ElementType type,
                     std::byte* values) {
  if (extents.empty()) return cf::unpack(how, elements, 1, 1, type, values);
  if (extents.size() == 1)
    return cf::unpack(how, elements, strides[0] / how.element_bytes(), extents[0], type, values);
  Index missing = 0;
  for (Index i = 0; i < extents[0]; ++i)
    missing += unpack_strided(how, elements + i * strides[0], strides.subspan(1), extents.subspan(1),
                              value_strides.subspan(1), type, values + i * value_strides[0]);
  return missing;
}

}  // namespace tailrace::variables
