// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/layout/transfer_map.hpp"

#include <algorithm>
#include <cstring>

#include "ground/layout/array.hpp"
#include "ground/layout/copy_runs.hpp"

namespace tailrace::layout {

namespace {

/// Walks over the contiguous pieces of a memory map, one after another in packed order.
class MemoryPieces {
 public:
  explicit MemoryPieces(const MemoryMap& map) : map_(map) { enter(); }
  [[nodiscard]] bool is_over() const { return nest_ == map_.nests.size(); }
  [[nodiscard]] Bytes offset() const { return offset_ + used_; }
  [[nodiscard]] Bytes length() const { return runs_.length - used_; }
  void use(Bytes bytes) {
    used_ += bytes;
    if (used_ == runs_.length) advance();
  }

 private:
  void enter() {
    if (is_over()) return;
    const Nest& nest = map_.nests[nest_];
    runs_ = runs_of(nest, map_.element);
    at_.assign(runs_.loops.size(), 0);
    offset_ = nest.offset;
  }
  void advance() {
    used_ = 0;
    for (std::size_t d = at_.size(); d-- > 0;) {
      const Loop& loop = runs_.loops[d];
      offset_ += loop.stride;
      if (++at_[d] < loop.count) return;
      offset_ -= loop.stride * loop.count;
      at_[d] = 0;
    }
    ++nest_;
    enter();
  }

  const MemoryMap& map_;
  std::size_t nest_ = 0;
  Runs runs_;
  std::vector<Index> at_;
  Bytes offset_ = 0;
  Bytes used_ = 0;
};

}  // namespace

/// Makes runs: joins pieces that follow each other in both file and memory, and collects pieces of equal
/// length at equal distances.
class TransferMap::Builder {
 public:
  void add(Bytes file, Bytes memory, Bytes length) {
    if (open_.length > 0 && file == open_.file + open_.length && memory == open_.memory + open_.length) {
      open_.length += length;
      return;
    }
    close();
    open_ = {file, memory, length, 0, 0, 1};
  }
  std::vector<Run> take() {
    close();
    return std::move(runs_);
  }

 private:
  void close() {
    if (open_.length == 0) return;
    if (!runs_.empty() && runs_.back().length == open_.length && joins(runs_.back()))
      ++runs_.back().rows;
    else
      runs_.push_back(open_);
    open_.length = 0;
  }
  bool joins(Run& last) const {
    const Bytes file = open_.file - last.file - (last.rows - 1) * last.file_stride;
    const Bytes memory = open_.memory - last.memory - (last.rows - 1) * last.memory_stride;
    if (last.rows == 1) {
      if (file <= 0) return false;
      last.file_stride = file;
      last.memory_stride = memory;
    }
    return file == last.file_stride && memory == last.memory_stride;
  }

  Run open_;
  std::vector<Run> runs_;
};

TransferMap TransferMap::make(std::span<const Rows> rows, const MemoryMap& memory) {
  Builder builder;
  MemoryPieces pieces(memory);
  for (const Rows& each : rows) {
    for (Index row = 0; row < each.rows; ++row) {
      Bytes file = (each.global + row * each.stride) * memory.element;
      for (Bytes left = each.count * memory.element; left > 0 && !pieces.is_over();) {
        const Bytes length = std::min(left, pieces.length());
        builder.add(file, pieces.offset(), length);
        pieces.use(length);
        file += length;
        left -= length;
      }
    }
  }
  TransferMap map;
  map.runs_ = builder.take();
  map.sort();
  return map;
}

TransferMap TransferMap::of_rows(std::span<const Rows> rows, Bytes element) {
  TransferMap map;
  for (const Rows& each : rows) {
    const Bytes stride = each.rows > 1 ? each.stride * element : 0;
    map.runs_.push_back({each.global * element, 0, each.count * element, stride, 0, each.rows});
  }
  map.sort();
  return map;
}

void TransferMap::sort() {
  std::sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.file < b.file; });
  ends_.reserve(runs_.size());
  for (const Run& run : runs_) ends_.push_back(std::max(ends_.empty() ? 0 : ends_.back(), run.end()));
}

/// Calls copy(file, memory, length) for every contiguous part within [begin, end), in the order of the runs.
template <typename Copy>
void TransferMap::for_each(Bytes begin, Bytes end, const Copy& copy) const {
  const auto skip = std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin();
  for (auto run = runs_.begin() + skip; run != runs_.end() && run->file < end; ++run) {
    Index first = 0;
    Index last = run->rows - 1;
    if (run->rows > 1) {
      // The first row that ends after `begin`, and the last row that begins before `end`.
      const Bytes behind = begin - run->file - run->length;
      if (behind >= 0) first = behind / run->file_stride + 1;
      last = std::min(last, (end - 1 - run->file) / run->file_stride);
    }
    for (Index row = first; row <= last; ++row) {
      const Bytes file = run->file + row * run->file_stride;
      const Bytes from = std::max(file, begin);
      const Bytes to = std::min(file + run->length, end);
      if (from < to) copy(from, run->memory + row * run->memory_stride + (from - file), to - from);
    }
  }
}

Bytes TransferMap::bytes_in(Bytes begin, Bytes end) const {
  Bytes bytes = 0;
  for_each(begin, end, [&](Bytes, Bytes, Bytes length) { bytes += length; });
  return bytes;
}

std::optional<Bytes> TransferMap::contiguous(Bytes begin, Bytes end) const {
  const auto found = std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin();
  if (found == static_cast<std::ptrdiff_t>(runs_.size())) return std::nullopt;
  const Run& run = runs_[static_cast<std::size_t>(found)];
  if (begin < run.file) return std::nullopt;
  const Index row = run.rows > 1 ? (begin - run.file) / run.file_stride : 0;
  const Bytes into = begin - run.file - row * run.file_stride;
  if (row >= run.rows || into + (end - begin) > run.length) return std::nullopt;
  return run.memory + row * run.memory_stride + into;
}

Index TransferMap::pieces() const {
  Index pieces = 0;
  for (const Run& run : runs_) pieces += run.rows;
  return pieces;
}

void TransferMap::for_each_piece(const std::function<void(Bytes, Bytes, Bytes)>& visit) const {
  for_each(begin(), end(), visit);
}

MemoryExtent TransferMap::memory_extent() const {
  MemoryExtent extent;
  for (bool first = true; const Run& run : runs_) {
    const Bytes last_row = run.memory + (run.rows - 1) * run.memory_stride;
    const Bytes lowest = std::min(run.memory, last_row);
    const Bytes end = std::max(run.memory, last_row) + run.length;
    extent.lowest = first ? lowest : std::min(extent.lowest, lowest);
    extent.end = first ? end : std::max(extent.end, end);
    first = false;
  }
  return extent;
}

void TransferMap::gather(const std::byte* base, Bytes begin, Bytes end, std::byte* stripe) const {
  for_each(begin, end, [&](Bytes file, Bytes memory, Bytes length) {
    copy_run(stripe + (file - begin), base + memory, length);
  });
}

void TransferMap::scatter(std::byte* base, Bytes begin, Bytes end, const std::byte* stripe) const {
  for_each(begin, end, [&](Bytes file, Bytes memory, Bytes length) {
    copy_run(base + memory, stripe + (file - begin), length);
  });
}

void TransferMap::clear(Bytes begin, Bytes end, std::byte* stripe) const {
  for_each(begin, end, [&](Bytes file, Bytes, Bytes length) {
    std::memset(stripe + (file - begin), 0, static_cast<std::size_t>(length));
  });
}

void TransferMap::take_from(const std::byte* stripe, Bytes begin, Bytes end, std::byte* piece) const {
  for_each(begin, end, [&](Bytes file, Bytes, Bytes length) {
    copy_run(piece, stripe + (file - begin), length);
    piece += length;
  });
}

void TransferMap::put_into(std::byte* stripe, Bytes begin, Bytes end, const std::byte* piece) const {
  for_each(begin, end, [&](Bytes file, Bytes, Bytes length) {
    copy_run(stripe + (file - begin), piece, length);
    piece += length;
  });
}

}  // namespace tailrace::layout
