// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <set>

#include "formats/codec/codec.hpp"

namespace tailrace::netcdf4 {

/// The bytes of a file as the HDF5 library reads them: through a driver of ours, so that errors of storage
/// stay what they are. Used under the library's mutex alone.
class ReadFile {
 public:
  ReadFile(codec::ReadBytes read, Bytes size) : read_(std::move(read)), size_(size) {}
  ~ReadFile();
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;

  /// Returns a property list with which H5Fopen opens the file, to be closed by the caller. A negative number
  /// if the library fails.
  [[nodiscard]] hid_t access();
  /// Takes the driver back, once the file is closed. The destructor does it, too.
  void close();
  /// Returns the first error of storage, which the library knows as a failure alone.
  [[nodiscard]] const Status& error() const { return error_; }

 private:
  friend struct ReadDriver;
  Status read_at(Bytes offset, std::span<std::byte> to);
  Status check_heaps(Bytes offset, std::span<const std::byte> bytes);
  codec::ReadBytes read_;
  Bytes size_;
  hid_t driver_ = -1;
  Status error_;
  std::set<Bytes> checked_;       // where global heaps lie that are sound
  std::uint64_t heap_bytes_ = 0;  // that were read for the checks, at least a heap's smallest size each
};

}  // namespace tailrace::netcdf4
