// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/chunking.hpp"

#include <algorithm>
#include <cstring>

#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cf {

std::vector<Index> Chunking::chunks() const {
  std::vector<Index> numbers;
  for (std::size_t i = 0; i < shape.size(); ++i) numbers.push_back((shape[i] + chunk[i] - 1) / chunk[i]);
  return numbers;
}

Index Chunking::count() const {
  Index product = 1;
  for (const Index each : chunks()) product *= each;
  return product;
}

Bytes Chunking::chunk_bytes() const {
  Bytes product = element_size;
  for (const Index each : chunk) product *= each;
  return product;
}

Result<std::vector<Index>> chunk_of(const codec::FieldDefinition& field, const std::vector<Index>& shape) {
  const std::string* const text = codec::find_key(field.keys, "chunks");
  if (text == nullptr) return shape;
  std::vector<Index> chunk;
  for (std::size_t begin = 0; begin <= text->size();) {
    const std::size_t end = std::min(text->find('x', begin), text->size());
    const Result<std::int64_t> length =
        parse_integer(std::string_view(*text).substr(begin, end - begin), 1, std::int64_t{1} << 40);
    TR_TRY(length.status().in("chunks"));
    chunk.push_back(*length);
    begin = end + 1;
  }
  if (chunk.size() != shape.size())
    return Status(Code::argument,
                  cat("chunks=", *text, " has ", counted(chunk.size(), "number"),
                      ", a level of the variable has ", counted(shape.size(), "dimension"), " in the file"));
  for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] = std::min(chunk[i], shape[i]);
  return chunk;
}

Status check_count(const Chunking& record) {
  if (record.count() <= most_chunks) return {};
  return {Code::argument, cat("chunks= cuts a record into ", record.count(), " chunks, and at most ",
                              most_chunks, " are taken: make them larger")};
}

namespace {

/// Fills `length` bytes with copies of one element.
void fill_with(std::byte* to, Bytes length, std::span<const std::byte> element) {
  if (length <= 0) return;
  std::ranges::copy(element, to);
  for (Bytes done = std::ssize(element); done < length; done *= 2)
    std::memcpy(to + done, to, static_cast<std::size_t>(std::min(done, length - done)));
}

}  // namespace

std::span<std::byte> Cutter::chunk(const Chunking& record, Index number, std::span<const std::byte> fill,
                                   std::span<std::byte> values) {
  if (record.count() == 1) return values;
  const std::vector<Index> numbers = record.chunks();
  const std::size_t rank = record.shape.size();
  std::vector<Index> place(rank, 0);  // of the chunk, along each dimension
  for (std::size_t d = rank; d-- > 0; number /= numbers[d]) place[d] = number % numbers[d];
  chunk_.resize(static_cast<std::size_t>(record.chunk_bytes()));
  const Bytes size = record.element_size;
  const Index row = record.chunk[rank - 1];
  const Index first = place[rank - 1] * row;
  const Index inside = std::min(row, record.shape[rank - 1] - first);
  std::vector<Index> at(rank - 1, 0);
  Index rows = 1;
  for (std::size_t d = 0; d + 1 < rank; ++d) rows *= record.chunk[d];
  std::byte* to = chunk_.data();
  for (Index i = 0; i < rows; ++i) {
    Index offset = 0;
    bool is_inside = true;
    for (std::size_t d = 0; d + 1 < rank; ++d) {
      const Index index = place[d] * record.chunk[d] + at[d];
      is_inside = is_inside && index < record.shape[d];
      offset = (offset + index) * record.shape[d + 1];
    }
    const Index taken = is_inside ? inside : 0;
    if (taken > 0)
      std::memcpy(to, values.data() + (offset + first) * size, static_cast<std::size_t>(taken * size));
    to += taken * size;
    fill_with(to, (row - taken) * size, fill);
    to += (row - taken) * size;
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == record.chunk[d];) at[d] = 0;
  }
  return chunk_;
}

}  // namespace tailrace::cf
