// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

namespace tailrace::netcdf4 {

/// Opens, closes and describes files for the HDF5 library, which calls these functions. Two drivers derive
/// from it: each lets the library read or write an object of this process, an `Of`, as if it were a file. No
/// exception leaves the functions.
template <typename Of>
struct DriverOf {
  /// An open file as the library knows it. The library's own part must come first, because it casts the
  /// pointer.
  struct Opened {
    H5FD_t own;
    Of* of;
    haddr_t end;  // the end of the address space, as the library has set it; not every driver keeps it here
  };
  static Opened& opened(const H5FD_t* file) {
    return *const_cast<Opened*>(reinterpret_cast<const Opened*>(file));
  }
  static Of& of(const H5FD_t* file) { return *opened(file).of; }

  static H5FD_t* open(const char*, unsigned, hid_t access, haddr_t) {
    const void* const info = H5Pget_driver_info(access);
    if (info == nullptr) return nullptr;
    auto* const file = new (std::nothrow) Opened{};
    if (file == nullptr) return nullptr;
    std::memcpy(&file->of, info, sizeof file->of);
    return &file->own;
  }
  static herr_t close(H5FD_t* file) {
    delete &opened(file);
    return 0;
  }
  static herr_t query(const H5FD_t*, unsigned long* flags) {
    *flags = 0;  // no features: the library does not gather requests, and each comes here by itself
    return 0;
  }

  /// Returns a description with these functions. `number` tells the driver from others of this program: HDF5
  /// keeps some numbers below 512 for testing.
  static H5FD_class_t description(const char* name, [[maybe_unused]] int number) {
    H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 2)
    driver.version = H5FD_CLASS_VERSION;
    driver.value = static_cast<H5FD_class_value_t>(number);
#endif
    driver.name = name;
    driver.maxaddr = HADDR_MAX;
    driver.fc_degree = H5F_CLOSE_STRONG;
    driver.fapl_size = sizeof(Of*);
    driver.open = open;
    driver.close = close;
    driver.query = query;
    // The library manages free room for each kind of data by itself, so a chunk never gets room that metadata
    // gave back.
    std::fill(std::begin(driver.fl_map), std::end(driver.fl_map), H5FD_MEM_DEFAULT);
    return driver;
  }

  /// Returns a property list that opens `self` through the driver, or a negative number if the library fails.
  /// Each `self` registers the driver anew, as `id`, because a program that uses the same library may close
  /// the library in between.
  static hid_t access(Of* self, const H5FD_class_t& driver, hid_t& id) {
    if (id < 0) id = H5FDregister(&driver);
    if (id < 0) return -1;
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    if (list < 0) return -1;
    if (H5Pset_driver(list, id, static_cast<const void*>(&self)) >= 0) return list;
    H5Pclose(list);
    return -1;
  }
};

}  // namespace tailrace::netcdf4
