// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/variables/chunked.hpp"

#include <algorithm>

#include "formats/variables/strided.hpp"

namespace tailrace::variables {

namespace {

/// Visits the chunks that contain elements of the part of a record.
class ChunkWalk {
 public:
  ChunkWalk(const ChunkedArray& array, std::span<const Index> begin, std::span<const int> plane,
            const cf::Unpacking& how, const layout::Box& cut, ElementType type, std::byte* values)
      : array_(array), record_(begin), plane_(plane), how_(how), cut_(cut), type_(type), values_(values) {
    for (std::size_t i = 0; i < plane.size(); ++i) extents_.push_back(cut.upper[i] - cut.lower[i]);
    value_strides_ = strides_of(extents_, size_of(type));
    for (std::size_t d = 0; d < begin.size(); ++d)
      origin_.push_back(begin[d] / array.chunk[d] * array.chunk[d]);
  }

  Status visit(std::size_t i, const DecodeChunk& decode) {
    if (i == plane_.size()) return take(decode);
    const auto d = static_cast<std::size_t>(plane_[i]);
    const Index length = array_.chunk[d];
    for (Index at = cut_.lower[i] / length * length; at < cut_.upper[i]; at += length) {
      origin_[d] = at;
      TR_TRY(visit(i + 1, decode));
    }
    return {};
  }
  [[nodiscard]] Index missing() const { return missing_; }

 private:
  [[nodiscard]] bool is_of_plane(std::size_t d) const {
    return std::ranges::count(plane_, static_cast<int>(d)) > 0;
  }
  /// Stores the elements that are both in the chunk and in the part. Elements of a chunk beyond the array
  /// mean nothing.
  Status take(const DecodeChunk& decode) {
    bool inside = true;
    for (std::size_t d = 0; d < origin_.size(); ++d)
      inside = inside && (is_of_plane(d) ? origin_[d] : record_[d]) < array_.shape[d];
    const Result<const std::byte*> decoded = inside ? decode(origin_) : Result<const std::byte*>(nullptr);
    TR_TRY(decoded.status());
    const std::byte* from = *decoded == nullptr ? array_.fill.data() : *decoded;
    std::vector<Bytes> strides(plane_.size(), 0);
    for (std::size_t d = 0; *decoded != nullptr && d < record_.size(); ++d) {
      if (!is_of_plane(d)) from += (record_[d] - origin_[d]) * array_.strides[d];
    }
    std::byte* to = values_;
    std::vector<Index> shared, written;
    for (std::size_t i = 0; i < plane_.size(); ++i) {
      const auto d = static_cast<std::size_t>(plane_[i]);
      const Index lower = std::max(cut_.lower[i], origin_[d]);
      shared.push_back(std::min(cut_.upper[i], origin_[d] + array_.chunk[d]) - lower);
      written.push_back(std::min(shared.back(), array_.shape[d] - lower));
      to += (lower - cut_.lower[i]) * value_strides_[i];
      if (*decoded == nullptr) continue;
      strides[i] = array_.strides[d];
      from += (lower - origin_[d]) * strides[i];
    }
    if (*decoded != nullptr && written != shared) return take_edge(from, strides, shared, written, to);
    missing_ += unpack_strided(how_, from, strides, shared, value_strides_, type_, to);
    return {};
  }

  /// Stores the shared elements of a chunk that reaches beyond the array: fill values everywhere, and then
  /// the array's elements over them.
  Status take_edge(const std::byte* from, std::span<const Bytes> strides, std::span<const Index> shared,
                   std::span<const Index> written, std::byte* to) {
    const std::vector<Bytes> none(plane_.size(), 0);
    const Index absent = unpack_strided(how_, array_.fill.data(), none, shared, value_strides_, type_, to);
    Index covered = 1;
    for (const Index each : written) covered *= std::max<Index>(each, 0);
    missing_ += absent > 0 ? absent - covered : 0;
    if (covered > 0) missing_ += unpack_strided(how_, from, strides, written, value_strides_, type_, to);
    return {};
  }

  const ChunkedArray& array_;
  std::span<const Index> record_;
  std::span<const int> plane_;
  const cf::Unpacking& how_;
  const layout::Box& cut_;
  ElementType type_;
  std::byte* values_;
  std::vector<Index> extents_;
  std::vector<Bytes> value_strides_;
  std::vector<Index> origin_;  // first element of the chunk
  Index missing_ = 0;
};

}  // namespace

ChunkedArray chunked_array(std::vector<Index> shape, std::vector<Index> chunk, ByteVector fill) {
  ChunkedArray array{std::move(shape), std::move(chunk), {}, std::move(fill)};
  array.strides = strides_of(array.chunk, std::ssize(array.fill));
  return array;
}

Result<Index> read_chunked(const ChunkedArray& array, std::span<const Index> begin,
                           std::span<const int> plane, const cf::Unpacking& how, const layout::Box& cut,
                           ElementType type, std::byte* values, const DecodeChunk& decode) {
  for (std::size_t i = 0; i < plane.size(); ++i) {
    if (cut.lower[i] == cut.upper[i]) return Index{0};
  }
  ChunkWalk walk(array, begin, plane, how, cut, type, values);
  TR_TRY(walk.visit(0, decode));
  return walk.missing();
}

}  // namespace tailrace::variables
