// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "netcdf4/read_driver.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "base/text.hpp"

namespace tailrace::netcdf4 {

namespace {

/// The library's own part comes first.
struct OpenedFile {
  H5FD_t own;
  ReadFile* file;
  haddr_t end;  // as the library has set it
};

}  // namespace

/// The functions that the library calls. No exception leaves them.
struct ReadDriver {
  static OpenedFile& of(const H5FD_t* file) {
    return *const_cast<OpenedFile*>(reinterpret_cast<const OpenedFile*>(file));
  }
  static H5FD_t* open(const char*, unsigned, hid_t access, haddr_t) {
    const void* const info = H5Pget_driver_info(access);
    if (info == nullptr) return nullptr;
    auto* const opened = new (std::nothrow) OpenedFile{};
    if (opened == nullptr) return nullptr;
    std::memcpy(&opened->file, info, sizeof opened->file);
    return &opened->own;
  }
  static herr_t close(H5FD_t* file) {
    delete &of(file);
    return 0;
  }
  static herr_t query(const H5FD_t*, unsigned long* flags) {
    *flags = 0;
    return 0;
  }
  static haddr_t get_end(const H5FD_t* file, H5FD_mem_t) { return of(file).end; }
  static herr_t set_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
    of(file).end = end;
    return 0;
  }
  static haddr_t get_size(const H5FD_t* file, H5FD_mem_t) {
    return static_cast<haddr_t>(of(file).file->size_);
  }
  static herr_t read(H5FD_t* opened, H5FD_mem_t, hid_t, haddr_t offset, size_t size, void* to) {
    ReadFile& file = *of(opened).file;
    try {
      const Status status = file.read_at(static_cast<Bytes>(offset), {static_cast<std::byte*>(to), size});
      if (status.is_ok()) return 0;
      if (file.error_.is_ok()) file.error_ = status;
    } catch (const std::exception&) {  // no memory for a text
    }
    return -1;
  }
  static herr_t refuse(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) { return -1; }

  static H5FD_class_t description() {
    H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 2)
    driver.version = H5FD_CLASS_VERSION;
    driver.value = static_cast<H5FD_class_value_t>(510);  // one that is for testing, of those below 512
#endif
    driver.name = "tailrace_read";
    driver.maxaddr = HADDR_MAX;
    driver.fc_degree = H5F_CLOSE_STRONG;
    driver.fapl_size = sizeof(ReadFile*);
    driver.open = open;
    driver.close = close;
    driver.query = query;
    driver.get_eoa = get_end;
    driver.set_eoa = set_end;
    driver.get_eof = get_size;
    driver.read = read;
    driver.write = refuse;
    std::fill(std::begin(driver.fl_map), std::end(driver.fl_map), H5FD_MEM_DEFAULT);
    return driver;
  }
};

ReadFile::~ReadFile() { close(); }

void ReadFile::close() {
  if (driver_ >= 0) H5FDunregister(std::exchange(driver_, -1));
}

Status ReadFile::read_at(Bytes offset, std::span<std::byte> to) {
  const Result<Bytes> got = read_(to, offset);
  TR_TRY(got.status());
  if (*got == std::ssize(to)) return {};
  return {Code::corrupt,
          cat("expected ", counted(to.size(), "byte"), " of metadata at byte ", offset, ", got ", *got)};
}

hid_t ReadFile::access() {
  static const H5FD_class_t driver = ReadDriver::description();
  // A program that uses the same library may close all of it in between: nothing is registered for good.
  if (driver_ < 0) driver_ = H5FDregister(&driver);
  if (driver_ < 0) return -1;
  const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  if (list < 0) return -1;
  ReadFile* const self = this;
  if (H5Pset_driver(list, driver_, static_cast<const void*>(&self)) >= 0) return list;
  H5Pclose(list);
  return -1;
}

}  // namespace tailrace::netcdf4
