// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "engine/exchange/transfer.hpp"

namespace tailrace::files {

/// The bytes in a file in front of, between and behind the bytes of one array: markers of Fortran's records
/// and small items. Offsets into the array count its own bytes alone, from its first.
class Framing {
 public:
  /// `unit` > 1: numbers of this many bytes lie in the file in the other byte order.
  Framing(Bytes array_bytes, Bytes unit) : array_bytes_(array_bytes), unit_(unit) {}

  /// Inserts `bytes` in front of byte `before` of the array, or behind its last. Calls come in ascending
  /// order. When reading, only the number of bytes counts.
  void insert(Bytes before, ByteVector bytes);
  [[nodiscard]] Bytes inserted() const { return inserted_; }
  /// Returns the number of bytes in front of the array's first byte.
  [[nodiscard]] Bytes ahead() const {
    return inserts_.empty() || inserts_.front().before > 0
               ? 0
               : static_cast<Bytes>(inserts_.front().bytes.size());
  }

  /// Writes bytes [at, at + size) of the array, and the bytes inserted there, to a file in which the array's
  /// frame begins at `position`.
  Status write(std::span<const std::byte> bytes, Bytes at, const exchange::WriteBytes& writer,
               Bytes position) const;
  /// Reads the same bytes, and drops the inserted ones. Returns how many of the array's bytes there were.
  Result<Bytes> read(std::span<std::byte> bytes, Bytes at, const exchange::ReadBytes& reader,
                     Bytes position) const;

 private:
  struct Insert {
    Bytes before = 0;
    ByteVector bytes;
  };
  /// Bytes that lie together in the file, `offset` behind the begin of the frame: inserted ones, or `size`
  /// bytes of the array.
  struct Run {
    Bytes offset = 0;
    Bytes first = 0;  // among the bytes that are asked for
    Bytes size = 0;
    std::span<const std::byte> inserted;

    template <typename Byte>
    [[nodiscard]] std::span<Byte> of(std::span<Byte> bytes) const {
      return bytes.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(size));
    }
  };
  /// Returns the runs of bytes [begin, end) of the array and of the bytes inserted there, in the file's
  /// order.
  [[nodiscard]] std::vector<Run> runs(Bytes begin, Bytes end) const;

  Bytes array_bytes_;
  Bytes unit_;
  Bytes inserted_ = 0;
  std::vector<Insert> inserts_;
};

/// Returns a function that writes to, or reads from, the file through `framing`, with offsets that count the
/// array's bytes. If `framing` is nullptr, returns the function that it was given.
exchange::WriteBytes framed(exchange::WriteBytes writer, std::shared_ptr<const Framing> framing,
                            Bytes position);
exchange::ReadBytes framed(exchange::ReadBytes reader, std::shared_ptr<const Framing> framing,
                           Bytes position);

/// Reverses the bytes of each whole unit.
void swap_units(std::span<std::byte> bytes, Bytes unit);

}  // namespace tailrace::files
