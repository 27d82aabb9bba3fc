// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <set>

#include "formats/codec/codec.hpp"

namespace tailrace::netcdf4 {

/// A file that the HDF5 library reads through a driver of this class. The driver keeps errors of storage,
/// which the library would not pass on. Callers hold library_mutex().
class ReadFile {
 public:
  ReadFile(codec::ReadBytes read, Bytes size) : read_(std::move(read)), size_(size) {}
  ~ReadFile();
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;

  /// Returns a property list with which H5Fopen opens the file, or a negative number if the library fails.
  /// The caller closes the list.
  [[nodiscard]] hid_t access();
  /// Unregisters the driver. Call it once the file is closed; the destructor calls it, too.
  void close();
  /// Returns the first error of storage, or of a damaged global heap. The library knows only that a read
  /// failed.
  [[nodiscard]] const Status& error() const { return error_; }

 private:
  friend struct ReadDriver;
  Status read_at(Bytes offset, std::span<std::byte> to);
  Status check_heaps(Bytes offset, std::span<const std::byte> bytes);
  codec::ReadBytes read_;
  Bytes size_;
  hid_t driver_ = -1;
  Status error_;
  std::set<Bytes> checked_;       // offsets of global heaps that are sound
  std::uint64_t heap_bytes_ = 0;  // of all heaps checked; a small one counts as the smallest possible
};

}  // namespace tailrace::netcdf4
