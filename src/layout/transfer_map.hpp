// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "layout/memory.hpp"

namespace tailrace::layout {

/// Bytes of memory, counted from an array's base; `lowest` may lie before it.
struct MemoryExtent {
  Bytes lowest = 0;
  Bytes end = 0;
  [[nodiscard]] Bytes bytes() const { return end - lowest; }
};

/// Where one rank's elements of an array (or section) lie in a file and in its memory, in bytes: `file`
/// counts from the array's first byte in the file, `memory` from the array's base. Built once, then copies
/// any part of the file's range in one pass between memory and a stripe, without a packed piece between them.
class TransferMap {
 public:
  /// `rows` is what the rank owns in the file's order of elements, `memory` where: both in packed order.
  static TransferMap make(std::span<const Rows> rows, const MemoryMap& memory);
  /// The same for a packed piece: elements one after another in the order of the map's own runs.
  static TransferMap of_rows(std::span<const Rows> rows, Bytes element);

  [[nodiscard]] bool is_empty() const { return runs_.empty(); }
  /// The bytes of the file between the rank's first and behind its last.
  [[nodiscard]] Bytes begin() const { return runs_.empty() ? 0 : runs_.front().file; }
  [[nodiscard]] Bytes end() const { return ends_.empty() ? 0 : ends_.back(); }
  /// From the lowest byte in memory to behind the highest.
  [[nodiscard]] MemoryExtent memory_extent() const;
  /// Bytes of the rank within [begin, end) of the file.
  [[nodiscard]] Bytes bytes_in(Bytes begin, Bytes end) const;

  /// Where bytes [begin, end) of the file lie in memory, if they lie there one after another.
  [[nodiscard]] std::optional<Bytes> contiguous(Bytes begin, Bytes end) const;

  /// The parts of the map that lie one after another both in the file and in memory: their number, and each
  /// of them, not always in the file's order.
  [[nodiscard]] Index pieces() const;
  void for_each_piece(const std::function<void(Bytes file, Bytes memory, Bytes length)>& visit) const;

  /// Memory -> the stripe that shows bytes [begin, end) of the file.
  void gather(const std::byte* base, Bytes begin, Bytes end, std::byte* stripe) const;
  /// Copies from the stripe to memory.
  void scatter(std::byte* base, Bytes begin, Bytes end, const std::byte* stripe) const;
  /// The rank's bytes of [begin, end) in the order of the map's runs: from the stripe, and into it. Both ends
  /// of a message use the map that of_rows() makes.
  void take_from(const std::byte* stripe, Bytes begin, Bytes end, std::byte* piece) const;
  void put_into(std::byte* stripe, Bytes begin, Bytes end, const std::byte* piece) const;

 private:
  /// `rows` runs of `length` bytes, each further one `file_stride` (> 0) and `memory_stride` bytes on.
  struct Run {
    Bytes file = 0;
    Bytes memory = 0;
    Bytes length = 0;
    Bytes file_stride = 0;
    Bytes memory_stride = 0;
    Index rows = 1;
    [[nodiscard]] Bytes end() const { return file + (rows - 1) * file_stride + length; }
  };
  class Builder;

  template <typename Copy>
  void for_each(Bytes begin, Bytes end, const Copy& copy) const;
  void sort();

  std::vector<Run> runs_;    // by their first byte in the file
  std::vector<Bytes> ends_;  // the highest end of runs_[0 .. i]
};

}  // namespace tailrace::layout
