// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/netcdf4/image.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include "formats/netcdf4/driver.hpp"
#include "formats/netcdf4/head.hpp"

namespace tailrace::netcdf4 {

namespace {

constexpr Bytes word = 8;

Bytes aligned(Bytes offset) { return (offset + word - 1) / word * word; }

}  // namespace

/// The functions of the driver, which the library calls. No exception leaves them.
struct Driver : DriverOf<Image> {
  static haddr_t alloc(H5FD_t* file, H5FD_mem_t type, hid_t, hsize_t size) {
    Image& image = of(file);
    const haddr_t offset = image.allocate(type, static_cast<Bytes>(size));
    image.failed_ = image.failed_ || offset == HADDR_UNDEF;
    return offset;
  }
  static haddr_t get_end(const H5FD_t* file, H5FD_mem_t) { return static_cast<haddr_t>(of(file).allocated_); }
  static herr_t set_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
    of(file).allocated_ = static_cast<Bytes>(end);
    return 0;
  }
  static herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t size, void* to) {
    Image& image = of(file);
    if (image.read(static_cast<Bytes>(offset), size, to)) return 0;
    image.failed_ = true;
    return -1;
  }
  static herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t size, const void* from) {
    Image& image = of(file);
    try {
      if (image.write(static_cast<Bytes>(offset), size, from)) return 0;
    } catch (const std::exception&) {  // out of memory
    }
    image.failed_ = true;
    return -1;
  }

  static H5FD_class_t description() {
    H5FD_class_t driver = DriverOf::description("tailrace_image", 511);
    driver.alloc = alloc;
    driver.get_eoa = get_end;
    driver.set_eoa = set_end;
    driver.get_eof = get_end;
    driver.read = read;
    driver.write = write;
    return driver;
  }
};

Image::Image(Bytes begin, Bytes end) : begin_(begin), tail_begin_(aligned(end)), data_end_(end) {}

Image::~Image() {
  if (driver_ >= 0) H5FDunregister(driver_);
}

hid_t Image::access() {
  static const H5FD_class_t driver = Driver::description();
  return Driver::access(this, driver, driver_);
}

haddr_t Image::allocate(H5FD_mem_t type, Bytes size) {
  if (type == H5FD_MEM_DRAW && expected_) {
    const Extent extent = *expected_;
    if (extent.length != size) return HADDR_UNDEF;
    expected_.reset();
    return static_cast<haddr_t>(extent.offset);
  }
  if (allocated_ == 0) {  // the library asks for the superblock first
    if (type != H5FD_MEM_SUPER || size > superblock_room) return HADDR_UNDEF;
    allocated_ = tail_begin_;
    return 0;
  }
  const Bytes offset = aligned(std::max(allocated_, tail_begin_));
  allocated_ = offset + size;
  return static_cast<haddr_t>(offset);
}

bool Image::write(Bytes offset, std::size_t size, const void* from) {
  if (offset >= begin_ && offset < data_end_) return true;  // drops the bytes of a chunk
  ByteVector& part = offset < begin_ ? superblock_ : tail_;
  const Bytes at = offset < begin_ ? offset : offset - tail_begin_;
  const Bytes end = at + static_cast<Bytes>(size);
  if (at < 0 || (offset < begin_ && end > superblock_room)) return false;
  if (std::ssize(part) < end) part.resize(static_cast<std::size_t>(end));
  std::memcpy(part.data() + at, from, size);
  return true;
}

bool Image::read(Bytes offset, std::size_t size, void* to) const {
  const bool is_super = offset < begin_;
  const ByteVector& part = is_super ? superblock_ : tail_;
  const Bytes at = is_super ? offset : offset - tail_begin_;
  if (at < 0) return false;
  std::memset(to, 0, size);
  const Bytes there = std::clamp<Bytes>(std::ssize(part) - at, 0, static_cast<Bytes>(size));
  if (there > 0) std::memcpy(to, part.data() + at, static_cast<std::size_t>(there));
  return true;
}

ByteVector Image::take_tail() {
  // The library may not have written the end of its room. It belongs to the file, because readers check the
  // file's size.
  tail_.resize(static_cast<std::size_t>(std::max<Bytes>(0, allocated_ - tail_begin_)));
  tail_.insert(tail_.begin(), static_cast<std::size_t>(tail_begin_ - data_end_), std::byte{});
  return std::move(tail_);
}

}  // namespace tailrace::netcdf4
