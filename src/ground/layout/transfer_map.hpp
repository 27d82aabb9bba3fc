// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ground/layout/memory.hpp"

namespace tailrace::layout {

/// A range of memory in bytes, counted from an array's base. `lowest` may lie before the base.
struct MemoryExtent {
  Bytes lowest = 0;
  Bytes end = 0;
  [[nodiscard]] Bytes bytes() const { return end - lowest; }
};

/// The places of one rank's elements of an array (or section) in a file and in its memory, in bytes. File
/// positions count from the array's first byte in the file, memory positions from the array's base. Made
/// once, it copies any part of the file's range between memory and a stripe in one pass, without packing in
/// between.
class TransferMap {
 public:
  /// Makes the map from `rows`, which tells the rank's elements in the file, and `memory`, which tells where
  /// they lie in memory. Both are in packed order.
  static TransferMap make(std::span<const Rows> rows, const MemoryMap& memory);
  /// Makes a map for a packed piece instead of an array: its elements follow one another in the order of the
  /// map's runs. Use it with take_from() and put_into().
  static TransferMap of_rows(std::span<const Rows> rows, Bytes element);

  [[nodiscard]] bool is_empty() const { return runs_.empty(); }
  /// The file range of the rank: its first byte, and the byte after its last.
  [[nodiscard]] Bytes begin() const { return runs_.empty() ? 0 : runs_.front().file; }
  [[nodiscard]] Bytes end() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Returns the range from the lowest byte in memory to the byte after the highest.
  [[nodiscard]] MemoryExtent memory_extent() const;
  /// Returns how many bytes of [begin, end) of the file the rank has.
  [[nodiscard]] Bytes bytes_in(Bytes begin, Bytes end) const;

  /// Returns where bytes [begin, end) of the file begin in memory, if they lie there one after another.
  [[nodiscard]] std::optional<Bytes> contiguous(Bytes begin, Bytes end) const;

  /// A piece is a part of the map that is contiguous both in the file and in memory. pieces() returns their
  /// number; for_each_piece() visits each, not always in the file's order.
  [[nodiscard]] Index pieces() const;
  void for_each_piece(const std::function<void(Bytes file, Bytes memory, Bytes length)>& visit) const;

  /// Copies from memory to the stripe that holds bytes [begin, end) of the file.
  void gather(const std::byte* base, Bytes begin, Bytes end, std::byte* stripe) const;
  /// Copies from the stripe to memory.
  void scatter(std::byte* base, Bytes begin, Bytes end, const std::byte* stripe) const;
  /// Sets the map's bytes of [begin, end) of the file to 0 in the stripe.
  void clear(Bytes begin, Bytes end, std::byte* stripe) const;
  /// Copy the rank's bytes of [begin, end) of the file, in the order of the map's runs, between a stripe and
  /// a packed piece. Both ends of a message use a map that of_rows() made.
  void take_from(const std::byte* stripe, Bytes begin, Bytes end, std::byte* piece) const;
  void put_into(std::byte* stripe, Bytes begin, Bytes end, const std::byte* piece) const;

 private:
  /// `rows` runs of `length` bytes. Each further run lies `file_stride` (> 0) bytes later in the file and
  /// `memory_stride` bytes further in memory.
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

  std::vector<Run> runs_;    // sorted by their first byte in the file
  std::vector<Bytes> ends_;  // the highest end of runs_[0 .. i]
};

}  // namespace tailrace::layout
