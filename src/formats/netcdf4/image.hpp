// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <hdf5.h>

#include <optional>

#include "ground/base/bytes.hpp"
#include "ground/base/types.hpp"

namespace tailrace::netcdf4 {

/// A file in memory, which the HDF5 library writes through a driver of this class, without storage. The
/// chunks of records lie in the real file already. So if the library asks for room for a chunk, the image
/// answers with the chunk's place, and drops the bytes that the library writes there. The superblock goes to
/// the file's first bytes, and all other metadata behind the data.
class Image {
 public:
  /// The steps of the real file lie from `begin` to `end`.
  Image(Bytes begin, Bytes end);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  /// Returns a property list with which H5Fcreate makes a file in this image, or a negative number if the
  /// library fails. The caller closes the list.
  [[nodiscard]] hid_t access();

  /// Sets the place that the library gets when it next asks for room for raw data.
  void expect_chunk(Bytes offset, Bytes length) { expected_ = {offset, length}; }
  /// Returns true once the library has asked for the room of the expected chunk.
  [[nodiscard]] bool took_chunk() const { return !expected_; }

  /// Returns true once the image has refused a call of the library. The library may ignore the refusal.
  [[nodiscard]] bool has_failed() const { return failed_; }

  [[nodiscard]] const ByteVector& superblock() const { return superblock_; }
  /// Returns all bytes behind the data, up to the end of the file.
  [[nodiscard]] ByteVector take_tail();

 private:
  friend struct Driver;
  struct Extent {
    Bytes offset = 0;
    Bytes length = 0;
  };
  [[nodiscard]] haddr_t allocate(H5FD_mem_t type, Bytes size);
  [[nodiscard]] bool write(Bytes offset, std::size_t size, const void* from);
  [[nodiscard]] bool read(Bytes offset, std::size_t size, void* to) const;

  hid_t driver_ = -1;
  Bytes begin_, tail_begin_;
  Bytes data_end_;
  Bytes allocated_ = 0;  // the end of all room that the library has asked for
  std::optional<Extent> expected_;
  bool failed_ = false;
  ByteVector superblock_, tail_;
};

}  // namespace tailrace::netcdf4
