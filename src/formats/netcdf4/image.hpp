// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <hdf5.h>

#include <optional>

#include "ground/base/bytes.hpp"
#include "ground/base/types.hpp"

namespace tailrace::netcdf4 {

/// The bytes of a file as the HDF5 library sees them through a driver of ours, without storage. Bytes of
/// records lie in the file already: where the library asks for room for a chunk it is told the chunk's place,
/// and what it writes there is dropped. Everything else goes behind the data, except the superblock, which
/// goes to the file's first bytes.
class Image {
 public:
  /// Steps lie from `begin` to `end`.
  Image(Bytes begin, Bytes end);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  /// Returns a property list with which H5Fcreate makes a file in this image, to be closed by the caller. A
  /// negative number if the library fails.
  [[nodiscard]] hid_t access();

  /// The next room for raw data that the library asks for is this one.
  void expect_chunk(Bytes offset, Bytes length) { expected_ = {offset, length}; }
  /// Returns true once the library has asked for it.
  [[nodiscard]] bool took_chunk() const { return !expected_; }

  /// Returns true once the image has refused a call of the library, which may have ignored that.
  [[nodiscard]] bool has_failed() const { return failed_; }

  [[nodiscard]] const ByteVector& superblock() const { return superblock_; }
  /// Returns everything behind the data.
  [[nodiscard]] ByteVector take_tail();

 private:
  friend struct Driver;
  struct Place {
    Bytes offset = 0;
    Bytes length = 0;
  };
  [[nodiscard]] haddr_t allocate(H5FD_mem_t type, Bytes size);
  [[nodiscard]] bool write(Bytes offset, std::size_t size, const void* from);
  [[nodiscard]] bool read(Bytes offset, std::size_t size, void* to) const;

  hid_t driver_ = -1;
  Bytes begin_, tail_begin_;
  Bytes data_end_;
  Bytes allocated_ = 0;  // the end of all that the library has asked for
  std::optional<Place> expected_;
  bool failed_ = false;
  ByteVector superblock_, tail_;
};

}  // namespace tailrace::netcdf4
